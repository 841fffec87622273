// Package late owns the markers of late values. Slipway knows a late value only when a machine asks for its documents. It is a
// secret, a token that Slipway mints for the machine, or a URL of its boot session. A rendering has a marker in its place. The marker has letters
// and digits only, so that no encoding changes it, and tells how its value has to be encoded. So Slipway validates the
// text that it later delivers, but for these values. The package never reads a secret: Inject gets the values from its caller.
//
// A marker stands for a reference:
//
//	secret://NAME              a stored secret
//	secret://NAME#KEY          one text of a secret that is a YAML map of texts
//	secret://NAME#KIND:WHAT    what the bootstrapper KIND takes out of it
//	join://TARGET/token        a bootstrap token, minted for this host and boot
//	join://TARGET/token-id     its public half
//	session://report           URLs that take reports of this boot: append ?step=up to one
//	session://config/NAME      URLs of another document of the rendering
//	session://base             our boot server, without a slash at the end
//
// URLs are those of each instance that the machine reaches, with blanks between them. Scripts try one after the other.
package late

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

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

// capital is the letter of an encoding that a template asks for. It comes before the encoding that the place needs. For example,
// {{ secret "x" | shell }} in a script of a YAML text becomes SLIPWAYLATESj…: quoted for the shell first, and then for YAML.
func capital(e Encoding) string { return strings.ToUpper(string(rune(e))) }

func small(capital byte) Encoding { return Encoding(capital - 'A' + 'a') }

// A marker begins with Prefix, which no configuration may hold otherwise, and ends with markerEnd.
const (
	Prefix    = "SLIPWAYLATE"
	markerEnd = "Z"
)

var markerRE = regexp.MustCompile(Prefix + `([SJDB]*)([rjpbs])([0-9a-f]+)` + markerEnd)

// Marker returns the marker of a reference, to be put into text. Retag says how text around it is encoded.
func Marker(ref string) string { return MarkerIn(ref, Raw) }

// MarkerIn returns the marker of a reference whose value needs that encoding.
func MarkerIn(ref string, e Encoding) string {
	return Prefix + string(e) + hex.EncodeToString([]byte(ref)) + markerEnd
}

// RefersTo reports whether text holds a marker of that reference, in any encoding.
func RefersTo(text, ref string) bool {
	return strings.Contains(text, hex.EncodeToString([]byte(ref))+markerEnd)
}

// Retag gives every raw marker in text, which has just been encoded, the encoding that its value will need.
func Retag(text string, e Encoding) string {
	return rawRE.ReplaceAllString(text, Prefix+"${1}"+string(e)+"${2}"+markerEnd)
}

// rawRE finds the markers whose place has not said yet how it is encoded.
var rawRE = regexp.MustCompile(Prefix + `([SJDB]*)r([0-9a-f]+)` + markerEnd)

// RawMarkers returns where the markers stand whose values are put in without an encoding of their place.
func RawMarkers(text string) [][]int { return rawRE.FindAllStringIndex(text, -1) }

// Quoted gives every marker in a text, which a template has just encoded, that encoding besides.
func Quoted(text string, e Encoding) string {
	return rawRE.ReplaceAllString(text, Prefix+"${1}"+capital(e)+"r${2}"+markerEnd)
}

// jsonTailRE finds a marker whose last encoding is that of the template function json.
var jsonTailRE = regexp.MustCompile(Prefix + `([SJDB]*)Jr([0-9a-f]+)` + markerEnd)

// CountJSON counts the markers that a template has quoted as JSON last.
func CountJSON(text string) int { return len(jsonTailRE.FindAllString(text, -1)) }

// UnquoteJSON takes that encoding from the first most of them, and returns how many it has found.
func UnquoteJSON(text string, most int) (out string, n int) {
	out = jsonTailRE.ReplaceAllStringFunc(text, func(m string) string {
		if n == most {
			return m
		}
		n++
		return jsonTailRE.ReplaceAllString(m, Prefix+"${1}r${2}"+markerEnd)
	})
	return out, n
}

// IsWhole reports whether a text holds no part of a marker besides whole ones.
func IsWhole(text string) bool {
	return len(markerRE.FindAllStringIndex(text, -1)) == strings.Count(text, Prefix)
}

// HasMarker reports whether text holds a marker.
func HasMarker(text string) bool {
	return strings.Contains(text, Prefix) && markerRE.MatchString(text)
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

// IsSecret reports whether a reference stands for something that only its host may learn.
func IsSecret(ref string) bool {
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
			value = Encode(value, small(letter))
		}
		out.WriteString(Encode(value, Encoding(doc[m[4]])))
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

// Encode returns a text as it has to stand where a marker with that encoding stood.
func Encode(s string, e Encoding) string {
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

// IsSecretName accepts the name of a secret, or name#key for one text of a secret that is a map.
func IsSecretName(s string) bool {
	name, key, isPart := strings.Cut(s, "#")
	return inventory.CheckName("secret", name) == nil && (!isPart || secretKeyRE.MatchString(key))
}

var secretKeyRE = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)
