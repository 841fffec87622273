package convert

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	sigsyaml "sigs.k8s.io/yaml"
)

// WriteTo writes the objects as YAML, each below where it came from and what it does not say.
func (r *Result) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	for i, o := range r.Objects {
		if i > 0 {
			b.WriteString("---\n")
		}
		b.WriteString("# from " + o.Source + "\n")
		for _, n := range o.Notes {
			comment(&b, n)
		}
		if o.Object == nil {
			continue
		}
		text, err := sigsyaml.Marshal(o.Object)
		if err != nil {
			return 0, fmt.Errorf("write %s: %w", o.Source, err)
		}
		b.Write(withoutStatus(text))
	}
	for i, t := range r.Broken {
		if i == 0 && len(r.Objects) > 0 {
			b.WriteString("---\n")
		}
		comment(&b, "not read: "+t)
	}
	return b.WriteTo(w)
}

// comment writes a note. A long one, as a list of paths is, goes on below.
func comment(b *bytes.Buffer, note string) {
	const width = 140
	line := "# -"
	for word := range strings.FieldsSeq(note) {
		if len(line) > 4 && len(line)+1+len(word) > width {
			b.WriteString(line + "\n")
			line = "#  "
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
}

// withoutStatus leaves out a status, which is not what anybody wants.
func withoutStatus(text []byte) []byte {
	var root map[string]any
	if sigsyaml.Unmarshal(text, &root) != nil || root["status"] == nil {
		return text
	}
	delete(root, "status")
	short, err := sigsyaml.Marshal(root)
	if err != nil {
		return text
	}
	return short
}
