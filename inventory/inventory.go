// Package inventory owns the words of Slipway: hosts with NICs and places, subnets and leases, images and profiles. It also
// has boot sessions, events, issues, the table of host states, and the one error type. It never touches a socket, a file or
// a clock: callers pass in the time.
//
// Start reading at Host, then state.go (what can happen to one), then store.go (what a store promises).
package inventory

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"slipway.dev/slipway/inventory/ref"
)

// Kind says what sort of failure an Error is. The API maps each kind to one HTTP status.
type Kind string

// The kinds of failure. There is one per thing a caller can do about it.
const (
	Invalid      Kind = "invalid"      // the request is wrong; sending it again will not help
	NotFound     Kind = "not-found"    // no such thing
	Conflict     Kind = "conflict"     // the thing changed meanwhile, or its name or address is taken
	Unauthorized Kind = "unauthorized" // no or unknown credentials
	Forbidden    Kind = "forbidden"    // known, but not allowed
	Unavailable  Kind = "unavailable"  // not now; worth trying again
	Internal     Kind = "internal"     // our fault
)

// Error is every failure that may reach a person. Msg says what is wrong and Hint what to do next; both are safe
// to show. Field is the part of what was given that is wrong, by its JSON name, where one is to blame. Err, the cause,
// goes to the log only.
type Error struct {
	Kind  Kind
	Msg   string
	Hint  string
	Field string
	Refs  []Ref // what Msg and Hint name besides what the caller has named
	Err   error
}

// Error returns the message followed by the cause. It is for logs; Msg is for people.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Msg + ": " + e.Err.Error()
	}
	return e.Msg
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error of that kind; a %w verb in the format becomes the cause as well as part of the text.
func Errorf(kind Kind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Msg: err.Error(), Refs: RefsIn(args...), Err: errors.Unwrap(err)}
}

// IsKind reports whether err is an Error of that kind, or was caused by one.
func IsKind(err error, k Kind) bool { return err != nil && KindOf(err) == k }

// KindOf returns the kind of an Error, "" of all other errors.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}

// MessageOf is what an error says to people: without the causes, where it is an Error.
func MessageOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Msg
	}
	return err.Error()
}

// HintOf returns the hint of an Error, "" of all other errors.
func HintOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Hint
	}
	return ""
}

// WithHint returns a copy of e that tells the reader what to do next.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := e.Naming(RefsIn(args...)...)
	c.Hint = fmt.Sprintf(format, args...)
	return c
}

// At returns a copy of e that blames a field.
func (e *Error) At(field string) *Error {
	c := *e
	c.Field = field
	return &c
}

// Ref is a thing that a text names: package web/scoped leaves out, for each reader, the names that the reader may not know.
type Ref = ref.Ref

// How a text refers to things: a sentence takes the answers of these as arguments.
var HostRef, MachineRef, PoolRef, OfMachine, RefTo = ref.Host, ref.Machine, ref.Pool, ref.WithMachine, ref.To

// RefsOf returns what the texts of an error name.
func RefsOf(err error) []Ref {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Refs
	}
	return nil
}

// RefsIn returns what the arguments of a format name.
func RefsIn(args ...any) (all []Ref) {
	for _, arg := range args {
		switch v := arg.(type) {
		case ref.Referrer:
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

// MAC is a link address in lower case with colons, such as 52:54:00:aa:00:01.
type MAC string

// ParseMAC reads a six-byte MAC in any usual spelling: colons, dashes, Cisco dots or bare digits, any case.
func ParseMAC(s string) (MAC, error) {
	b, digitN := make([]byte, 0, len("52:54:00:aa:00:01")), 0
	for i := range len(s) {
		c := s[i]
		switch {
		case c == ':' || c == '-' || c == '.':
			continue
		case c >= 'A' && c <= 'F':
			c += 'a' - 'A'
		case (c < '0' || c > '9') && (c < 'a' || c > 'f'):
			return "", notMAC(s)
		}
		if digitN == 12 {
			return "", notMAC(s)
		}
		if digitN > 0 && digitN%2 == 0 {
			b = append(b, ':')
		}
		b = append(b, c)
		digitN++
	}
	if digitN != 12 {
		return "", notMAC(s)
	}
	m := MAC(b)
	if m == "00:00:00:00:00:00" || m == "ff:ff:ff:ff:ff:ff" {
		return "", Errorf(Invalid, "%s belongs to no machine", m)
	}
	return m, nil
}

func notMAC(s string) error {
	return Errorf(Invalid, "%q is not a MAC address", s).WithHint("write it as 52:54:00:aa:00:01")
}

// Hyphens returns the MAC as iPXE's ${mac:hexhyp} and BOOTIF spell it: 52-54-00-aa-00-01.
func (m MAC) Hyphens() string { return strings.ReplaceAll(string(m), ":", "-") }

// Duration is a time.Duration that reads and writes as text such as "12h" in JSON, YAML and flags.
type Duration time.Duration

// MarshalText writes the duration without trailing zero units: 12h, 90s, 1h30m.
func (d Duration) MarshalText() ([]byte, error) {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return []byte(s), nil
}

// UnmarshalText reads what ParseDuration reads.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := ParseDuration(string(b))
	if err != nil {
		return err
	}
	*d = Duration(v)
	return nil
}

// ParseDuration reads what time.ParseDuration reads, and whole days such as 30d.
func ParseDuration(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	v, err := time.ParseDuration(text)
	if err != nil {
		return 0, Errorf(Invalid, "%q is not a duration", Clean(text, 40)).WithHint("write it as 90s, 10m, 12h or 30d")
	}
	return v, nil
}

// String returns the duration as MarshalText writes it.
func (d Duration) String() string {
	b, _ := d.MarshalText()
	return string(b)
}

// CleanLines is Clean for a text of several lines: line ends and tabs stay. It drops the beginning of a long text, because
// the end of a log says what happened.
func CleanLines(s string, limit int) string {
	if len(s) > limit {
		s = s[len(s)-limit:]
	}
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}

var (
	nameRE  = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	labelRE = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._/-]{0,251}[A-Za-z0-9])?$`)
	valueRE = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$`)
)

// CheckName accepts a DNS label (RFC 1123 section 2.1): it is used as host name, in URLs and in file names.
func CheckName(noun, name string) error {
	if !nameRE.MatchString(name) {
		return Errorf(Invalid, "%q is not a name for %s", name, withArticle(noun)).
			WithHint("use 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit")
	}
	return nil
}

// withArticle puts a or an before a noun. A user is none of those with an.
func withArticle(noun string) string {
	if strings.ContainsAny(noun[:min(len(noun), 1)], "aeio") {
		return "an " + noun
	}
	return "a " + noun
}

// checkField is CheckName for a field of what is stored; the error names the field.
func checkField(field, noun, name string) error {
	var e *Error
	if errors.As(CheckName(noun, name), &e) {
		return e.At(field)
	}
	return nil
}

// CheckLabels accepts keys and values as Kubernetes does, so that labels can travel to nodes unchanged.
func CheckLabels(labels map[string]string) error {
	for k, v := range labels {
		if !labelRE.MatchString(k) || !valueRE.MatchString(v) {
			return Errorf(Invalid, "label %q=%q is not allowed", k, v).
				WithHint("keys and values use letters, digits, '.', '_' and '-'; a key may have a prefix such as example.com/")
		}
	}
	return nil
}

// CheckText refuses control characters, which no store and no console should see, and texts over limit bytes.
func CheckText(field, s string, limit int) error {
	if len(s) > limit {
		return Errorf(Invalid, "%s is %d bytes long; at most %d are allowed", field, len(s), limit)
	}
	if i := strings.IndexFunc(s, func(r rune) bool { return r < 0x20 && r != '\t' && r != '\n' || r == 0x7f }); i >= 0 {
		return Errorf(Invalid, "%s has a control character at byte %d", field, i)
	}
	return nil
}

// Clean makes a machine's text fit to store and show. Control characters become spaces. It drops invalid UTF-8 and what
// turns the direction of writing, and truncates at limit bytes.
func Clean(s string, limit int) string {
	s = strings.ToValidUTF8(s, "")
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r < 0x20 || r == 0x7f:
			return ' '
		case unicode.Is(unicode.Bidi_Control, r): // "gpj.exe" would read as "exe.jpg"
			return -1
		}
		return r
	}, s))
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "")
		// A sentence loses its last word whole: a reference could not find a name that is cut in the middle, to hide it.
		if i := strings.LastIndexByte(s, ' '); limit >= 200 && i > limit-100 {
			s = s[:i]
		}
	}
	return s
}

// NameFrom makes a name out of a text: upper case becomes lower case, and each character but letters and digits of ASCII a dash. It
// returns otherwise for a text without letters and digits. The caller cuts the name where 63 characters are the limit.
func NameFrom(text, otherwise string) string {
	name := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, text), "-")
	return cmp.Or(name, otherwise)
}
