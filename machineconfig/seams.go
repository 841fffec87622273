package machineconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

// Bootstrapper turns a BootstrapSpec into an Activation and says what it needs. It is pure: late values, such as a
// token that is minted when the machine asks, are markers (see package late).
type Bootstrapper interface {
	Kind() string
	// Emit returns what makes the machine part of something. Errors are *inventory.Error with a Path-like message.
	Emit(in BootstrapInput) (*Activation, Requirements, error)
}

// What is wrong with a finished bootstrap document, as the cause of a Bootstrapper's error.
var (
	ErrUnsupportedFormat    = errors.New("unsupported format")    // it is of another kind, or for another tool
	ErrUnsupportedDirective = errors.New("unsupported directive") // this OS has no way to express a part of it
)

// BootstrapInput is what a bootstrapper knows.
type BootstrapInput struct {
	Config *Config // merged, with Host filled in
	Spec   BootstrapSpec
	Target *inventory.JoinTarget // nil when Spec names none
	OS     Target
	Format string // of the provisioner that will render it
	// Secret is the value of Spec.Secret when a bootstrapper must look into it to render (capi-secret, talos); nil
	// otherwise. What is taken from it must be in the output as a marker only: see package late.
	Secret []byte
}

// Requirements are what an activation needs of the OS. The OS adapters of package machineconfig/osadapter meet them.
type Requirements struct {
	Binaries []string // kubeadm, kubelet, containerd
	Version  string   // of Kubernetes, for adapters
	Modules  []string
	Sysctl   map[string]string
	Ports    []int
	NoSwap   bool
}

// Provisioner says a Config in a format. It is pure.
type Provisioner interface {
	// Kind is the format's name as images and profiles spell it: ignition, cloud-init, autoinstall, ...
	Kind() string
	// Documents are the formats that a profile's own document may have with it.
	Documents() []inventory.DocumentFormat
	// Capabilities says for every path of Fields how well it can be carried to a target.
	Capabilities(t Target) Capabilities
	// Render says c. What cannot be said, and every warning of the format's own parser, is a finding; with an error
	// among them the result is nil. It is called for configurations that passed Validate and Check.
	Render(t Target, c *Config) (*Rendered, Report)
}

// Target is what will read a rendering.
type Target struct {
	OS      string         // entry of the OS catalogue: flatcar, debian, ...
	Release string         // 12, 24.04, stable
	Arch    inventory.Arch // x86_64
	// Tool is the version of the tool that reads it: the newest Ignition spec, the cloud-init version, the release of an
	// installer.
	Tool string
	// InitrdPath is where the tool finds the document in the initrd; "" when it fetches it.
	InitrdPath string
}

// String names the target for people.
func (t Target) String() string { return strings.TrimSpace(t.OS + " " + t.Release) }

// Support says how well a format carries a field.
type Support uint8

// The levels of support.
const (
	Lossless    Support = iota + 1
	Emulated            // works by other means, such as a command as a unit; differs in timing at most
	Lossy               // part of it is lost: the profile has to accept that
	Unsupported         // the format has no way to express it
)

func (s Support) String() string {
	return [...]string{"unknown", "lossless", "emulated", "lossy", "unsupported"}[s]
}

// MarshalText writes the level's name.
func (s Support) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Capability is one cell of the capability table.
type Capability struct {
	Support Support `json:"support"`
	Note    string  `json:"note,omitempty"` // how it is emulated, or what is lost and what to use instead
}

// Carried is the cell of a field that the format has words for.
func Carried() Capability { return Capability{Support: Lossless} }

// EmulatedBy is the cell of a field that the format expresses by other means; the note names them.
func EmulatedBy(note string) Capability { return Capability{Support: Emulated, Note: note} }

// NotCarried is the cell of a field that the format cannot express. The note says why, or what to use instead.
func NotCarried(note string) Capability { return Capability{Support: Unsupported, Note: note} }

// Capabilities is a column of the capability table: for every path of Fields, one cell.
type Capabilities map[string]Capability

// With adds one cell for many rows, whose paths stand between blanks.
func (c Capabilities) With(cell Capability, paths string) Capabilities {
	for _, p := range strings.Fields(paths) {
		c[p] = cell
	}
	return c
}

// Severity is how bad a finding is.
type Severity string

// The severities. An error keeps a profile from being saved.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning" // shown, and does not stand in the way
)

// Finding is something to say about a configuration.
type Finding struct {
	Severity Severity `json:"severity"`
	Path     string   `json:"path,omitempty"`   // JSON pointer into Config, list items by their key
	Source   string   `json:"source,omitempty"` // layer and place: "profile web:12:3", or "document:4:1"
	Code     string   `json:"code"`             // such as not-expressible, unknown-key, duplicate
	Message  string   `json:"message"`
	Hint     string   `json:"hint,omitempty"`

	Refs []inventory.Ref `json:"-"` // what Message and Hint name
}

func (f Finding) String() string {
	var b strings.Builder
	for _, s := range []string{f.Source, f.Path} {
		if s != "" {
			b.WriteString(s + ": ")
		}
	}
	b.WriteString(f.Message)
	if f.Hint != "" {
		b.WriteString(" (" + f.Hint + ")")
	}
	return b.String()
}

// Report is a list of findings.
type Report []Finding

// Errorf adds an error.
func (r *Report) Errorf(path, code, format string, args ...any) *Finding {
	*r = append(*r, Finding{
		Severity: SeverityError, Path: path, Code: code, Message: fmt.Sprintf(format, args...), Refs: inventory.RefsIn(args...),
	})
	return &(*r)[len(*r)-1]
}

// Says gives a finding the hint and the references of an error whose message it has.
func (f *Finding) Says(e *inventory.Error) {
	f.Hint, f.Refs = e.Hint, append(f.Refs, e.Refs...)
}

// Warnf adds a warning.
func (r *Report) Warnf(path, code, format string, args ...any) *Finding {
	f := r.Errorf(path, code, format, args...)
	f.Severity = SeverityWarning
	return f
}

// HasErrors reports whether there is an error among the findings.
func (r Report) HasErrors() bool {
	return slices.ContainsFunc(r, func(f Finding) bool { return f.Severity == SeverityError })
}

// Err returns the errors as one *inventory.Error of kind Invalid, nil if there are none. Its message is the first
// with the number of the others; Err.Err holds all, a line each.
func (r Report) Err() error {
	var all []string
	var first Finding
	var refs []inventory.Ref
	for _, f := range r {
		if f.Severity == SeverityError {
			refs = append(refs, f.Refs...)
			if all == nil {
				first = f
			}
			all = append(all, f.String())
		}
	}
	if all == nil {
		return nil
	}
	hint := first.Hint
	first.Hint = ""
	msg := first.String()
	if n := len(all) - 1; n > 0 {
		msg += fmt.Sprintf(" (and %d more)", n)
	}
	return &inventory.Error{Kind: inventory.Invalid, Msg: msg, Hint: hint, Refs: refs, Err: fmt.Errorf("%s", strings.Join(all, "\n"))}
}

// NotExpressible is the finding for a field that a format cannot carry to a target.
func NotExpressible(path, provisioner string, t Target, c Capability) Finding {
	return Finding{
		Severity: SeverityError, Path: path, Code: "not-expressible",
		Message: fmt.Sprintf("is not expressible in %s for %s", provisioner, t), Hint: c.Note,
	}
}

// Rendered is a Config in a format.
type Rendered struct {
	Documents []Document
	// Args are added to the kernel's arguments, besides those of the image.
	Args []string
}

// Document is one file of a rendering.
type Document struct {
	Name        string // last part of its URL: config.ign, user-data, meta-data, ks.cfg, preseed.cfg, machine.yaml
	ContentType string
	Data        []byte // with markers of late values
	// Path is where it is in the initrd when it is delivered that way; "" if it can only be fetched.
	Path string
}
