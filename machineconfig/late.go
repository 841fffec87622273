package machineconfig

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Late values are known only when a machine asks for its documents: secrets, tokens that are minted for it, URLs of
// its boot session. In a rendering a marker stands for each; it is made of letters and digits only, so that no
// encoding changes it, and says how its value has to be encoded. What was validated is what is served, but for these.
//
// References:
//
//	secret://NAME              a stored secret
//	secret://NAME#KEY          one text of a secret that is a YAML map of texts
//	secret://NAME#KIND:WHAT    what the bootstrapper KIND takes out of it
//	join://TARGET/token        a bootstrap token, minted for this host and boot
//	join://TARGET/token-id     its public half
//	session://report           URL that takes reports of this boot: append ?step=up
//	session://config/NAME      URL of another document of the rendering
//	session://base             our boot server, without a slash at the end

// Encoding is what has to be done to a late value where its marker stands.
type Encoding byte

// The encodings.
const (
	Raw        Encoding = 'r' // as it is
	JSONString Encoding = 'j' // inside a double-quoted JSON or YAML string
	Percent    Encoding = 'p' // percent-encoded, inside a data: URL
	Base64     Encoding = 'b' // base64 by itself: the marker stands for the whole content
	ShellQuote Encoding = 's' // inside a single-quoted word of a shell
	UnitQuote  Encoding = 'd' // inside a double-quoted word of a unit of systemd
)

// What a template does to a late value comes before what its place asks for. It is said in capitals: {{ secret "x" | shell }}
// in a script that is in a YAML text is SLIPWAYLATESj…, which is quoted for the shell first and for YAML then.
var inner = map[byte]Encoding{'S': ShellQuote, 'J': JSONString, 'D': UnitQuote, 'B': Base64}

const (
	markerStart = "SLIPWAYLATE"
	markerEnd   = "Z"
)

var markerRE = regexp.MustCompile(markerStart + `([SJDB]*)([rjpbs])([0-9a-f]+)` + markerEnd)

// Late returns the marker of a reference, to be put into text. Provisioners encode text and its markers with Encode.
func Late(ref string) string { return marker(ref, Raw) }

func marker(ref string, e Encoding) string {
	return markerStart + string(e) + hex.EncodeToString([]byte(ref)) + markerEnd
}

// LateIn returns the marker of a reference whose value needs that encoding.
func LateIn(ref string, e Encoding) string { return marker(ref, e) }

// RefersTo reports whether text holds a marker of that reference, in any encoding.
func RefersTo(text, ref string) bool {
	return strings.Contains(text, hex.EncodeToString([]byte(ref))+markerEnd)
}

// Retag gives every raw marker in text, which has just been encoded, the encoding that its value will need.
func Retag(text string, e Encoding) string {
	return rawRE.ReplaceAllString(text, markerStart+"${1}"+string(e)+"${2}"+markerEnd)
}

// rawRE finds the markers whose place has not said yet how it is encoded.
var rawRE = regexp.MustCompile(markerStart + `([SJDB]*)r([0-9a-f]+)` + markerEnd)

// RawMarkers returns where the markers stand whose values are put in without an encoding of their place.
func RawMarkers(text string) [][]int { return rawRE.FindAllStringIndex(text, -1) }

// quoted gives every marker in a text, which a template has just encoded, that encoding besides.
func quoted(text string, letter byte) string {
	return rawRE.ReplaceAllString(text, markerStart+"${1}"+string(letter)+"r${2}"+markerEnd)
}

// HasLate reports whether text holds a marker.
func HasLate(text string) bool {
	return strings.Contains(text, markerStart) && markerRE.MatchString(text)
}

// References returns the references of all markers in a document, sorted, each once.
func References(doc []byte) []string {
	var refs []string
	for _, m := range markerRE.FindAllSubmatch(doc, -1) {
		if ref, err := hex.DecodeString(string(m[3])); err == nil {
			refs = append(refs, string(ref))
		}
	}
	slices.Sort(refs)
	return slices.Compact(refs)
}

// IsSecretRef reports whether a reference stands for something that only its host may learn.
func IsSecretRef(ref string) bool {
	return strings.HasPrefix(ref, "secret://") || strings.HasPrefix(ref, "join://")
}

// Inject replaces every marker by its value. lookup is called once per reference; its error ends the injection.
func Inject(doc []byte, lookup func(ref string) ([]byte, error)) ([]byte, error) {
	values := map[string][]byte{}
	for _, ref := range References(doc) {
		v, err := lookup(ref)
		if err != nil {
			return nil, err
		}
		values[ref] = v
	}
	if len(values) == 0 {
		return doc, nil
	}
	var out bytes.Buffer
	last := 0
	for _, m := range markerRE.FindAllSubmatchIndex(doc, -1) {
		ref, err := hex.DecodeString(string(doc[m[6]:m[7]]))
		if err != nil {
			return nil, fmt.Errorf("a marker has an odd reference: %w", err)
		}
		out.Write(doc[last:m[0]])
		value := string(values[string(ref)])
		for _, letter := range doc[m[2]:m[3]] {
			value = encode(value, inner[letter])
		}
		out.WriteString(encode(value, Encoding(doc[m[4]])))
		last = m[1]
	}
	out.Write(doc[last:])
	return out.Bytes(), nil
}

// Redact replaces every marker by its reference in guillemets, for people to read.
func Redact(doc []byte) []byte {
	return markerRE.ReplaceAllFunc(doc, func(m []byte) []byte {
		ref, _ := hex.DecodeString(string(markerRE.FindSubmatch(m)[3]))
		return []byte("«" + string(ref) + "»")
	})
}

func encode(s string, e Encoding) string {
	switch e {
	case JSONString:
		return jsonBody(s)
	case Percent:
		return percent(s)
	case Base64:
		return base64.StdEncoding.EncodeToString([]byte(s))
	case ShellQuote:
		return strings.ReplaceAll(s, "'", `'\''`)
	case UnitQuote:
		return unitBody(s)
	}
	return s
}

// unitBody returns what stands between double quotes in a unit of systemd. A $ is doubled in no setting but commands.
func unitBody(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '%':
			b.WriteString("%%")
		case r == '\n':
			b.WriteString(`\n`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// jsonBody returns what stands between the quotes of a JSON string. What is not ASCII is escaped: some readers of YAML
// refuse DEL and C1 characters, and cloud-init spoils U+0080 to U+00FF on its way through a multipart message.
func jsonBody(s string) string {
	quoted, _ := json.Marshal(s) // a string always marshals
	var b strings.Builder
	for _, r := range string(quoted[1 : len(quoted)-1]) {
		if r < 0x7f || r > 0xffff { // a pair of surrogates is JSON, but not YAML
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}

// percent encodes all but the unreserved characters of RFC 3986 section 2.3.
func percent(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// DataURL returns text as a data: URL; its markers will be percent-encoded.
func DataURL(text string) string { return "data:," + Retag(percent(text), Percent) }

// ShellWord returns text as one single-quoted word of a shell, with its markers.
func ShellWord(text string) string {
	return "'" + Retag(strings.ReplaceAll(text, "'", `'\''`), ShellQuote) + "'"
}
