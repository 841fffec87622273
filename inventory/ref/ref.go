// Package ref refers to the things that a text names, so that each reader sees the names that it may know.
package ref

import "slices"

// Kind says what sort of thing a Ref names.
type Kind string

// The kinds of things whose names are confidential. A reader may know a name if the reader has a role in a pool of the thing.
const (
	OfHost    Kind = "host" // by its name, its id or one of its MACs
	OfMachine Kind = "machine"
	OfPool    Kind = "pool"
)

// Ref is a thing that a text names. An error, an event and an issue keep the references of their texts. For each reader, package
// web/scoped leaves out the names that this reader may not know.
//
// A sentence that names something else than its own subject takes a Ref as argument:
//
//	Errorf(Conflict, "MAC %s belongs to host %s", mac, HostRef(other.Name))
type Ref struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
}

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

// String returns the name, so that a Ref can be an argument of a format.
func (r Ref) String() string { return r.Name }

// References implements Referrer.
func (r Ref) References() []Ref { return []Ref{r} }

// Referrer names things as an argument of a format.
type Referrer interface{ References() []Ref }
