package hardware

import (
	"errors"
	"reflect"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// schema tells CEL the fields of our types by their JSON names, and reads them in place: an expression may be asked of
// ten thousand hosts, and copying each into maps would cost more than everything else.
type schema struct {
	types.Provider // CEL's own types
	structs        map[string]*object
}

// object is one of our types.
type object struct {
	typ    *cel.Type
	fields map[string]*types.FieldType
	names  []string
}

// celName names a type in expressions; nobody has to write it.
func celName(t reflect.Type) string { return "slipway." + t.Name() }

func newSchema(base types.Provider, root reflect.Type) *schema {
	s := &schema{Provider: base, structs: map[string]*object{}}
	s.add(root)
	return s
}

func (s *schema) add(t reflect.Type) *cel.Type {
	if have, ok := s.structs[celName(t)]; ok {
		return have.typ
	}
	o := &object{typ: cel.ObjectType(celName(t)), fields: map[string]*types.FieldType{}}
	s.structs[celName(t)] = o
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		typ := s.typeOf(t.Field(i).Type)
		if name == "" || name == "-" || typ == nil {
			continue
		}
		o.names = append(o.names, name)
		o.fields[name] = &types.FieldType{Type: typ, IsSet: isSet(i), GetFrom: getFrom(t, i, name)}
	}
	return o.typ
}

// typeOf returns nil for what expressions cannot see.
func (s *schema) typeOf(t reflect.Type) *cel.Type {
	switch t.Kind() {
	case reflect.String:
		return cel.StringType
	case reflect.Int, reflect.Int64:
		return cel.IntType
	case reflect.Bool:
		return cel.BoolType
	case reflect.Map:
		return cel.MapType(cel.StringType, cel.StringType)
	case reflect.Pointer:
		return s.typeOf(t.Elem())
	case reflect.Slice:
		return cel.ListType(s.typeOf(t.Elem()))
	case reflect.Struct:
		return s.add(t)
	}
	return nil
}

// field returns a field of what obj points at; obj is always a pointer to a struct of the schema.
func field(obj any, i int) reflect.Value { return reflect.ValueOf(obj).Elem().Field(i) }

func isSet(i int) ref.FieldTester {
	return func(obj any) bool {
		f := field(obj, i)
		if f.Kind() == reflect.Slice || f.Kind() == reflect.Map {
			return f.Len() > 0
		}
		return !f.IsZero()
	}
}

var errNeverInspected = errors.New("was never inspected")

func getFrom(t reflect.Type, i int, name string) ref.FieldGetter {
	unknown := errors.New("no " + name)
	return func(obj any) (any, error) {
		f := field(obj, i)
		if f.Kind() == reflect.Pointer {
			if f.IsNil() {
				if v, ok := obj.(*view); ok && !v.IsInspected {
					return nil, errNeverInspected
				}
				return nil, unknown
			}
			f = f.Elem()
		}
		return read(f), nil
	}
}

// read returns a value as CEL's interpreter takes it; structs stay where they are.
func read(f reflect.Value) any {
	switch f.Kind() {
	case reflect.String:
		return types.String(f.String())
	case reflect.Int, reflect.Int64:
		return types.Int(f.Int())
	case reflect.Bool:
		return types.Bool(f.Bool())
	case reflect.Struct:
		return f.Addr().Interface()
	case reflect.Slice:
		return f.Addr().Interface()
	}
	return f.Interface()
}

// FindStructType implements types.Provider.
func (s *schema) FindStructType(name string) (*types.Type, bool) {
	if o, ok := s.structs[name]; ok {
		return types.NewTypeTypeWithParam(o.typ), true
	}
	return s.Provider.FindStructType(name)
}

// FindStructFieldNames implements types.Provider.
func (s *schema) FindStructFieldNames(name string) ([]string, bool) {
	if o, ok := s.structs[name]; ok {
		return o.names, true
	}
	return s.Provider.FindStructFieldNames(name)
}

// FindStructFieldType implements types.Provider.
func (s *schema) FindStructFieldType(name, fieldName string) (*types.FieldType, bool) {
	if o, ok := s.structs[name]; ok {
		f, ok := o.fields[fieldName]
		return f, ok
	}
	return s.Provider.FindStructFieldType(name, fieldName)
}

// NewValue implements types.Provider: expressions read hosts and make none.
func (s *schema) NewValue(name string, fields map[string]ref.Val) ref.Val {
	if _, ok := s.structs[name]; ok {
		return types.NewErr("a %s cannot be made here", name)
	}
	return s.Provider.NewValue(name, fields)
}

// NativeToValue implements types.Adapter.
func (s *schema) NativeToValue(value any) ref.Val {
	switch v := value.(type) {
	case ref.Val:
		return v
	case map[string]string:
		return types.NewStringStringMap(s, v)
	}
	v := reflect.ValueOf(value)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return types.DefaultTypeAdapter.NativeToValue(value)
	}
	switch e := v.Elem(); e.Kind() {
	case reflect.Struct:
		if o, ok := s.structs[celName(e.Type())]; ok {
			return &item{object: o, ptr: value}
		}
	case reflect.Slice:
		all := make([]ref.Val, e.Len())
		for i := range all {
			all[i] = s.NativeToValue(read(e.Index(i)))
		}
		return types.NewRefValList(s, all)
	}
	return types.DefaultTypeAdapter.NativeToValue(value)
}

// item is one struct as a CEL value.
type item struct {
	*object
	ptr any
}

// ConvertToNative implements ref.Val.
func (*item) ConvertToNative(t reflect.Type) (any, error) {
	return nil, errors.New("no conversion to " + t.String())
}

// ConvertToType implements ref.Val.
func (i *item) ConvertToType(t ref.Type) ref.Val {
	if t == types.TypeType {
		return i.typ
	}
	return types.NewErr("no conversion to %s", t.TypeName())
}

// Equal implements ref.Val.
func (i *item) Equal(other ref.Val) ref.Val {
	o, ok := other.(*item)
	return types.Bool(ok && reflect.DeepEqual(i.ptr, o.ptr))
}

// Type implements ref.Val.
func (i *item) Type() ref.Type { return i.typ }

// Value implements ref.Val.
func (i *item) Value() any { return i.ptr }
