// Package ref refers to the things that a text names, so that each reader sees the names that it may know.
package ref

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Kind says what sort of thing a Ref names.
type Kind string

// The kinds of things whose names are confidential. A reader may know a name if the reader has a role in a pool of the thing.
const (
	OfHost    Kind = "host" // by its name, its id or one of its MACs
	OfMachine Kind = "machine"
	OfPool    Kind = "pool"
	// Unknown stands for everything that a text may name. Texts of versions without references have it.
	Unknown Kind = "unknown"
)

// Hidden stands for a name that the reader may not know, and for a text that may name anything.
const Hidden = "(hidden)"

// Ref is a thing that a text names. Everything with a text keeps the references of that text: errors, events and issues, and the
// reasons of hosts, machines, operations, boots and controllers. For each reader, package web/scoped leaves out the names that this
// reader may not know.
//
// A sentence that names something else than its own subject takes a Ref as argument:
//
//	Errorf(Conflict, "MAC %s belongs to host %s", mac, HostRef(other.Name))
type Ref struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
	// Pools has the pools of the thing with commas between, as they were when the store wrote the reference; NoPool for none. It decides
	// about things that are gone. It is empty in references that are not stored.
	Pools string `json:"pools,omitempty"`
}

// NoPool stands in Pools for a thing of which the store found no pool. No pool can have this name.
const NoPool = "-"

// Host refers to a host, by its name, its id or a MAC.
func Host(name string) Ref { return Ref{Kind: OfHost, Name: name} }

// Machine refers to a machine by its name.
func Machine(name string) Ref { return Ref{Kind: OfMachine, Name: name} }

// Pool refers to a pool by its name.
func Pool(name string) Ref { return Ref{Kind: OfPool, Name: name} }

// WithMachine adds the machine of that name to references, if there is one.
func WithMachine(name string, refs ...Ref) []Ref {
	if name == "" {
		return refs
	}
	return append(refs[:len(refs):len(refs)], Machine(name))
}

// Named leaves out the references without a name.
func Named(refs ...Ref) []Ref {
	return slices.DeleteFunc(refs, func(r Ref) bool { return r.Name == "" })
}

// To refers to a thing by its noun, and reports whether its name is one that not everybody may know.
func To(noun, name string) (r Ref, is bool) {
	r = Ref{Kind: Kind(noun), Name: name}
	return r, name != "" && (r.Kind == OfHost || r.Kind == OfMachine || r.Kind == OfPool)
}

// In returns those references whose names a text holds, each once. A text of unknown references keeps them.
func In(text string, refs ...Ref) (all []Ref) {
	for _, r := range refs {
		if (r.Kind == Unknown || r.Name != "" && strings.Contains(text, r.Name)) && !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	return all
}

// Within returns the references in a value and in everything that it holds.
func Within(v any) []Ref {
	var found []Ref
	collect(reflect.ValueOf(v), &found)
	return found
}

var (
	refsType     = reflect.TypeFor[[]Ref]()
	referrerType = reflect.TypeFor[Referrer]()
)

func collect(v reflect.Value, into *[]Ref) {
	if !v.IsValid() {
		return
	}
	if v.Type() == refsType {
		*into = append(*into, v.Interface().([]Ref)...)
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		collect(v.Elem(), into)
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			collect(v.Index(i), into)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			collect(v.MapIndex(k), into)
		}
	case reflect.Struct:
		collectFields(v, into)
	}
}

// collectFields asks what refers to things by itself, and reads the exported fields.
func collectFields(v reflect.Value, into *[]Ref) {
	if p := reflect.PointerTo(v.Type()); p.Implements(referrerType) {
		c := reflect.New(v.Type())
		c.Elem().Set(v)
		*into = append(*into, c.Interface().(Referrer).References()...)
	}
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() {
			collect(v.Field(i), into)
		}
	}
}

// Book collects the references of all texts that an answer may be made of. Its methods may be called at the same time. A nil Book
// collects nothing.
type Book struct {
	mu  sync.Mutex
	all map[Ref]bool
}

// Add notes references.
func (b *Book) Add(refs ...Ref) {
	if b == nil || len(refs) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[Ref]bool{}
	}
	for _, r := range refs {
		b.all[r] = true
	}
}

// All returns what was noted.
func (b *Book) All() (all []Ref) {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for r := range b.all {
		all = append(all, r)
	}
	return all
}

// String returns the name, so that a Ref can be an argument of a format.
func (r Ref) String() string { return r.Name }

// References implements Referrer.
func (r Ref) References() []Ref { return []Ref{r} }

// Referrer names things as an argument of a format.
type Referrer interface{ References() []Ref }
