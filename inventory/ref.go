package inventory

import "errors"

// RefKind says what sort of thing a Ref names.
type RefKind string

// The things whose names not every reader may know: who may know one depends on the pools of the thing and of the reader.
const (
	RefHost    RefKind = "host" // by its name, its id or one of its MACs
	RefMachine RefKind = "machine"
	RefPool    RefKind = "pool"
)

// Ref is a thing that a text names. An error, an event and an issue keep the references of their texts beside them: package
// web/scoped leaves out, for each reader, the names that the reader may not know.
//
// A sentence that names something else than its own subject takes a Ref as argument:
//
//	Errorf(Conflict, "MAC %s belongs to host %s", mac, HostRef(other.Name))
type Ref struct {
	Kind RefKind `json:"kind"`
	Name string  `json:"name"`
}

// HostRef refers to a host, by its name, its id or a MAC.
func HostRef[S ~string](name S) Ref { return Ref{Kind: RefHost, Name: string(name)} }

// MachineRef refers to a machine by its name.
func MachineRef(name string) Ref { return Ref{Kind: RefMachine, Name: name} }

// PoolRef refers to a pool by its name.
func PoolRef(name string) Ref { return Ref{Kind: RefPool, Name: name} }

// OfMachine adds the machine of that name to references, if there is one.
func OfMachine(name string, refs ...Ref) []Ref {
	if name == "" {
		return refs
	}
	return append(refs[:len(refs):len(refs)], MachineRef(name))
}

// RefTo refers to a thing by its noun, and reports whether its name is one that not everybody may know.
func RefTo(noun, name string) (r Ref, is bool) {
	r = Ref{Kind: RefKind(noun), Name: name}
	return r, name != "" && (r.Kind == RefHost || r.Kind == RefMachine || r.Kind == RefPool)
}

// String returns the name, so that a Ref can stand in a format.
func (r Ref) String() string { return r.Name }

// References implements Referrer.
func (r Ref) References() []Ref { return []Ref{r} }

// Referrer is what names things when it stands in a sentence.
type Referrer interface{ References() []Ref }

// RefsOf returns what the texts of an error name.
func RefsOf(err error) []Ref {
	var e *Error
	if errors.As(err, &e) {
		return e.Refs
	}
	return nil
}

// refsIn returns what the arguments of a format name.
func refsIn(args []any) (all []Ref) {
	for _, arg := range args {
		switch v := arg.(type) {
		case Referrer:
			all = append(all, v.References()...)
		case error:
			all = append(all, RefsOf(v)...)
		}
	}
	return all
}

// Naming returns a copy of e whose texts name these things, too.
func (e *Error) Naming(refs ...Ref) *Error {
	c := *e
	c.Refs = append(c.Refs[:len(c.Refs):len(c.Refs)], refs...)
	return &c
}

// References implements Referrer.
func (h Holder) References() []Ref {
	var all []Ref
	if h.Machine != "" {
		all = append(all, MachineRef(h.Machine))
	}
	if h.Host != "" {
		all = append(all, HostRef(h.Host))
	}
	return all
}
