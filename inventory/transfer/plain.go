package transfer

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/inventory"
	facts "slipway.dev/slipway/inventory/noun"
	"slipway.dev/slipway/inventory/option"
)

// Plain nouns without code of their own. Files of their row in package noun names the fields; the type of a field says how it is
// written. The records have no type here, so that a new noun changes nothing in this package.

func plainNouns() (all []noun[any]) {
	for _, n := range facts.All() {
		name := Noun(n.About().Many)
		if n.About().Files == nil {
			continue
		}
		all = append(all, noun[any]{
			noun: name, fields: recordFields(n), key: func(r *any) string { return n.KeyOf(*r) }, check: n.Check,
			rows:  func(d *Document) *[]Row[any] { return listOf(&d.Plain, name) },
			there: func(c *Current) *[]any { return listOf(&c.Plain, name) },
			empty: reflect.Zero(reflect.TypeOf(n.New())).Interface(),
		}.storedIn(n.Of))
	}
	return all
}

// listOf returns the list of a noun, which the caller may fill.
func listOf[T any](lists *map[Noun]*[]T, name Noun) *[]T {
	if *lists == nil {
		*lists = map[Noun]*[]T{}
	}
	if (*lists)[name] == nil {
		(*lists)[name] = new([]T)
	}
	return (*lists)[name]
}

// recordFields returns the fields that Files names. One that the form of the noun must have cannot be emptied.
func recordFields(n facts.Any) (fields []field[any]) {
	about := n.About()
	for i, name := range about.Files {
		f := recordField(about.One, name, reflect.TypeOf(n.New()))
		isMust := func(f facts.Field) bool { return f.Name == name && f.IsMust }
		f.keeps = i == 0 || about.Screen != nil && slices.ContainsFunc(about.Screen.Fields, isMust)
		fields = append(fields, f)
	}
	return fields
}

// recordField returns the field of a record that has a name in JSON. It panics if files cannot have it.
func recordField(one, name string, record reflect.Type) field[any] {
	for _, at := range reflect.VisibleFields(record) {
		inJSON, _, _ := strings.Cut(at.Tag.Get("json"), ",")
		switch kind := at.Type.Kind(); {
		case inJSON != name:
		case name == "name":
			return part(at, textField(name, itself[string], named(one)))
		case at.Type == reflect.TypeFor[inventory.Duration]():
			return part(at, parsedField(name, itself[inventory.Duration], parseDuration, writeDuration))
		case at.Type == reflect.TypeFor[[]string]():
			return part(at, textsField(name, itself[[]string]))
		case at.Type == reflect.TypeFor[[]int]():
			return part(at, listField(name, itself[[]int], parseNumber, strconv.Itoa))
		case at.Type == reflect.TypeFor[[]option.Option]():
			return part(at, listField(name, itself[[]option.Option], inventory.ParseOption, writeOption))
		case at.Type == reflect.TypeFor[map[string]string]():
			return part(at, mapField(name, itself[map[string]string]))
		case kind == reflect.String:
			return part(at, textField(name, itself[string], nil))
		case kind == reflect.Int:
			return part(at, numberField(name, itself[int]))
		case kind == reflect.Bool:
			return part(at, flagField(name, itself[bool]))
		case kind == reflect.Struct:
			return part(at, structField(name))
		}
	}
	panic("a file cannot have the field " + name + " of a " + one)
}

func itself[V any](v *V) *V { return v }

// part makes of a field of a value, such as a text, a field of the record that has this value at a place.
func part[V any](at reflect.StructField, f field[V]) field[any] {
	value := func(record reflect.Value) V {
		return record.FieldByIndex(at.Index).Convert(reflect.TypeFor[V]()).Interface().(V)
	}
	return field[any]{
		name: f.name, kind: f.kind,
		get: func(r *any) []string {
			v := value(reflect.ValueOf(*r))
			return f.get(&v)
		},
		set: func(r *any, texts []string) error {
			changed := reflect.New(reflect.TypeOf(*r)).Elem() // a value in an interface cannot be changed
			changed.Set(reflect.ValueOf(*r))
			v := value(changed)
			err := f.set(&v, texts)
			changed.FieldByIndex(at.Index).Set(reflect.ValueOf(v).Convert(at.Type))
			*r = changed.Interface()
			return err
		},
	}
}

// structField is a small struct, such as requirements, as a mapping of the keys that it has in JSON. What is zero is left
// out.
func structField(name string) field[any] {
	return field[any]{
		name: name, kind: asPairs,
		get: func(v *any) []string { return structPairs(*v) },
		set: func(v *any, texts []string) error {
			into := reflect.New(reflect.TypeOf(*v))
			err := readPairs(into.Interface(), texts)
			if err == nil {
				*v = into.Elem().Interface()
			}
			return err
		},
	}
}
