package layer

import (
	"encoding"
	"reflect"
	"slices"
	"strings"

	"slipway.dev/slipway/machineconfig"
)

// kind is what a place in a layer may hold.
type kind uint8

const (
	textKind   kind = iota + 1
	intKind         // a whole number
	boolKind        // true or false
	modeKind        // a scalar that reads itself, such as Mode
	objectKind      // a map with known keys
	mapKind         // a map of text to text
	keyedKind       // a list of objects that are merged by their key
	setKind         // a list of texts that layers add to
	wordsKind       // a list of texts that a narrower layer replaces
)

// about says what is expected, for messages.
func (k kind) about() string {
	switch k {
	case textKind:
		return "a text"
	case intKind:
		return "a whole number"
	case boolKind:
		return "true or false"
	case modeKind:
		return "a mode such as 0644"
	case objectKind, mapKind:
		return "a map of keys to values"
	}
	return "a list"
}

// shape says what a place in a layer may hold and how layers are merged there. It is built once from Config's types.
type shape struct {
	kind  kind
	typ   reflect.Type // of the value, without pointer
	isPtr bool

	fields []*fieldShape // of objects
	byName map[string]*fieldShape
	elem   *shape // of keyed lists and maps
	// whole objects are one value: a narrower layer replaces them.
	whole bool
	// keys are the fields that name an item of a keyed list; needed says that the first of them must be there.
	keys   []string
	needed bool
}

// fieldShape is a key of an object.
type fieldShape struct {
	name  string
	pos   int // in shape.fields
	index []int
	shape *shape
	// group numbers fields that are one value together: a narrower layer that sets one of them drops the others. 0 is
	// none.
	group int
}

// listKeys names the items of lists of objects. Items without a key, such as commands without a name, add up.
var listKeys = map[reflect.Type][]string{
	reflect.TypeFor[machineconfig.Interface]():     {"name"},
	reflect.TypeFor[machineconfig.Bond]():          {"name"},
	reflect.TypeFor[machineconfig.VLAN]():          {"name"},
	reflect.TypeFor[machineconfig.Bridge]():        {"name"},
	reflect.TypeFor[machineconfig.WireGuard]():     {"name"},
	reflect.TypeFor[machineconfig.Peer]():          {"publicKey"},
	reflect.TypeFor[machineconfig.Route]():         {"to", "metric", "table"},
	reflect.TypeFor[machineconfig.Rule]():          {"priority"},
	reflect.TypeFor[machineconfig.Disk]():          {"name"},
	reflect.TypeFor[machineconfig.Partition]():     {"label"},
	reflect.TypeFor[machineconfig.RAID]():          {"name"},
	reflect.TypeFor[machineconfig.LUKS]():          {"name"},
	reflect.TypeFor[machineconfig.Tang]():          {"url"},
	reflect.TypeFor[machineconfig.VolumeGroup]():   {"name"},
	reflect.TypeFor[machineconfig.LogicalVolume](): {"name"},
	reflect.TypeFor[machineconfig.Filesystem]():    {"device"},
	reflect.TypeFor[machineconfig.Subvolume]():     {"name"},
	reflect.TypeFor[machineconfig.Mount]():         {"mountPoint"},
	reflect.TypeFor[machineconfig.User]():          {"name"},
	reflect.TypeFor[machineconfig.Group]():         {"name"},
	reflect.TypeFor[machineconfig.File]():          {"path"},
	reflect.TypeFor[machineconfig.Directory]():     {"path"},
	reflect.TypeFor[machineconfig.Link]():          {"path"},
	reflect.TypeFor[machineconfig.Unit]():          {"name"},
	reflect.TypeFor[machineconfig.DropIn]():        {"name"},
	reflect.TypeFor[machineconfig.Repo]():          {"id"},
	reflect.TypeFor[machineconfig.Pin]():           {"name"},
	reflect.TypeFor[machineconfig.Snap]():          {"name"},
	reflect.TypeFor[machineconfig.Script]():        {"name"},
	reflect.TypeFor[machineconfig.Extension]():     {"name"},
	reflect.TypeFor[machineconfig.Command]():       {"name"},
	reflect.TypeFor[machineconfig.Taint]():         {"key", "effect"},
}

// groups lists fields of an object that are one value together.
var groups = map[reflect.Type][]string{
	reflect.TypeFor[machineconfig.File]():      {"text", "base64", "secret", "remote"},
	reflect.TypeFor[machineconfig.Command]():   {"shell", "argv"},
	reflect.TypeFor[machineconfig.Extension](): {"url", "sha256"},
	// A size in one unit drops what a wider layer says in the other.
	reflect.TypeFor[machineconfig.LogicalVolume](): {"sizeMiB", "percent"},
}

// wholes are objects that are one value.
var wholes = []reflect.Type{
	reflect.TypeFor[machineconfig.DeviceSelector](), reflect.TypeFor[machineconfig.Remote](), reflect.TypeFor[machineconfig.PortMatch](),
}

// words are lists in which order and repetition count, so that a narrower layer replaces them.
var words = map[reflect.Type]string{
	reflect.TypeFor[machineconfig.Command]():    "argv",
	reflect.TypeFor[machineconfig.Filesystem](): "options",
}

// configShape is the shape of a layer.
var configShape = newShape(reflect.TypeFor[machineconfig.Config]())

func newShape(t reflect.Type) *shape {
	s := &shape{typ: t}
	if t.Kind() == reflect.Pointer {
		s = newShape(t.Elem())
		s.isPtr = true
		return s
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		s.kind = modeKind
		return s
	}
	switch t.Kind() {
	case reflect.Bool:
		s.kind = boolKind
	case reflect.Int:
		s.kind = intKind
	case reflect.String:
		s.kind = textKind
	case reflect.Map:
		s.kind, s.elem = mapKind, newShape(t.Elem())
	case reflect.Slice:
		s.elem = newShape(t.Elem())
		s.kind = setKind
		if s.elem.kind == objectKind {
			s.kind, s.keys = keyedKind, listKeys[t.Elem()]
			s.needed = t.Elem() != reflect.TypeFor[machineconfig.Command]()
		}
	case reflect.Struct:
		s.kind, s.byName = objectKind, map[string]*fieldShape{}
		s.whole = slices.Contains(wholes, t)
		s.addFields(t, nil)
	}
	return s
}

// addFields adds the fields of a struct, those of inline ones too.
func (s *shape) addFields(t reflect.Type, index []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(slices.Clone(index), i)
		tag, opts, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case tag == "-":
		case opts == "inline":
			s.addFields(f.Type, at)
		default:
			fs := &fieldShape{name: tag, pos: len(s.fields), index: at, shape: newShape(f.Type)}
			if slices.Contains(groups[s.typ], tag) {
				fs.group = 1
			}
			if words[s.typ] == tag && tag != "" {
				fs.shape.kind = wordsKind
			}
			s.fields = append(s.fields, fs)
			s.byName[tag] = fs
		}
	}
}

// names returns the keys of an object, in the order of the type.
func (s *shape) names() []string {
	var names []string
	for _, f := range s.fields {
		names = append(names, f.name)
	}
	return names
}
