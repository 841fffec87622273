package machineconfig

import (
	"encoding"
	"reflect"
	"slices"
	"strings"

	"slipway.dev/slipway/machineconfig/docschema"
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
	reflect.TypeFor[Interface]():     {"name"},
	reflect.TypeFor[Bond]():          {"name"},
	reflect.TypeFor[VLAN]():          {"name"},
	reflect.TypeFor[Bridge]():        {"name"},
	reflect.TypeFor[WireGuard]():     {"name"},
	reflect.TypeFor[Peer]():          {"publicKey"},
	reflect.TypeFor[Route]():         {"to", "metric", "table"},
	reflect.TypeFor[Rule]():          {"priority"},
	reflect.TypeFor[Disk]():          {"name"},
	reflect.TypeFor[Partition]():     {"label"},
	reflect.TypeFor[RAID]():          {"name"},
	reflect.TypeFor[LUKS]():          {"name"},
	reflect.TypeFor[Tang]():          {"url"},
	reflect.TypeFor[VolumeGroup]():   {"name"},
	reflect.TypeFor[LogicalVolume](): {"name"},
	reflect.TypeFor[Filesystem]():    {"device"},
	reflect.TypeFor[Subvolume]():     {"name"},
	reflect.TypeFor[Mount]():         {"mountPoint"},
	reflect.TypeFor[User]():          {"name"},
	reflect.TypeFor[Group]():         {"name"},
	reflect.TypeFor[File]():          {"path"},
	reflect.TypeFor[Directory]():     {"path"},
	reflect.TypeFor[Link]():          {"path"},
	reflect.TypeFor[Unit]():          {"name"},
	reflect.TypeFor[DropIn]():        {"name"},
	reflect.TypeFor[Repo]():          {"id"},
	reflect.TypeFor[Pin]():           {"name"},
	reflect.TypeFor[Snap]():          {"name"},
	reflect.TypeFor[Script]():        {"name"},
	reflect.TypeFor[Extension]():     {"name"},
	reflect.TypeFor[Command]():       {"name"},
	reflect.TypeFor[Taint]():         {"key", "effect"},
}

// groups lists fields of an object that are one value together.
var groups = map[reflect.Type][]string{
	reflect.TypeFor[File]():      {"text", "base64", "secret", "remote"},
	reflect.TypeFor[Command]():   {"shell", "argv"},
	reflect.TypeFor[Extension](): {"url", "sha256"},
	// A size in one unit drops what a wider layer says in the other.
	reflect.TypeFor[LogicalVolume](): {"sizeMiB", "percent"},
}

// wholes are objects that are one value.
var wholes = []reflect.Type{reflect.TypeFor[DeviceSelector](), reflect.TypeFor[Remote](), reflect.TypeFor[PortMatch]()}

// words are lists in which order and repetition count, so that a narrower layer replaces them.
var words = map[reflect.Type]string{
	reflect.TypeFor[Command]():    "argv",
	reflect.TypeFor[Filesystem](): "options",
}

// configShape is the shape of a layer.
var configShape = newShape(reflect.TypeFor[Config]())

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
			s.needed = t.Elem() != reflect.TypeFor[Command]()
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

// nearest returns the word that one of a few typing errors makes of name, "" if none is near.
func nearest(name string, among []string) string {
	best, bestD := "", len(name)/3+2
	for _, w := range among {
		if strings.EqualFold(name, w) || strings.EqualFold(strings.NewReplacer("_", "", "-", "").Replace(name), w) {
			return w
		}
		if max(len(name), len(w)) > 64 {
			continue
		}
		if d := docschema.Distance(name, w); d < bestD {
			best, bestD = w, d
		}
	}
	return best
}
