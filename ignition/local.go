package ignition

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/inventory"
)

// WithLocal returns a Butane document with the content of local files in place of their names, so that it needs no other
// files. read returns a file by the name that the document gives it. All else stays as it is written, line by line.
func WithLocal(text string, read func(name string) ([]byte, error)) (string, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return text, nil // the check reports what is wrong with it
	}
	l := &local{lines: strings.SplitAfter(text, "\n"), read: read}
	l.walk(&doc, 0)
	return strings.Join(l.lines, ""), l.err
}

// local puts the content of files into lines.
type local struct {
	lines []string
	read  func(name string) ([]byte, error)
	err   error
}

func (l *local) fail(at *yaml.Node, hint, format string, args ...any) {
	if l.err == nil {
		l.err = inventory.Errorf(inventory.Invalid, "%d:%d: %s", at.Line, at.Column, fmt.Sprintf(format, args...)).WithHint("%s", hint)
	}
}

// walk goes backwards, so that what is put into a line moves nothing that is still to be read.
func (l *local) walk(n *yaml.Node, depth int) {
	if depth > 100 || l.err != nil {
		return
	}
	for i := len(n.Content) - 1; i >= 0; i-- {
		if n.Kind != yaml.MappingNode {
			l.walk(n.Content[i], depth+1)
			continue
		}
		key, value := n.Content[i-1], n.Content[i]
		i--
		switch {
		case key.Value == "trees":
			l.fail(key, "write its files under storage.files, each with contents: {local: NAME}", "a tree of local files is not uploaded")
		case key.Value == "ssh_authorized_keys_local":
			l.fail(key, "write the keys under ssh_authorized_keys", "local files of SSH keys are not uploaded")
		case value.Kind == yaml.ScalarNode && key.Value == "local":
			l.put(key, value, func(b []byte) string { return `source: "data:;base64,` + base64.StdEncoding.EncodeToString(b) + `"` })
		case value.Kind == yaml.ScalarNode && key.Value == "contents_local":
			l.put(key, value, func(b []byte) string {
				if !utf8.Valid(b) {
					l.fail(value, "a unit is UTF-8", "%s is no text", inventory.Clean(value.Value, 100))
				}
				quoted, _ := json.Marshal(string(b)) // a string always marshals
				return "contents: " + strings.ReplaceAll(string(quoted), "{{", `{{"{{"}}`)
			})
		default:
			l.walk(value, depth+1)
		}
	}
}

// put writes what a file becomes from the key to the end of the value.
func (l *local) put(key, value *yaml.Node, say func([]byte) string) {
	line := []rune(l.lines[key.Line-1])
	end := value.Column - 1
	name := []rune(value.Value)
	if value.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		name = append(append([]rune{line[min(end, len(line)-1)]}, name...), line[min(end, len(line)-1)])
	}
	if value.Line != key.Line || value.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 || !strings.HasPrefix(string(line[min(end, len(line)):]), string(name)) {
		l.fail(value, "write "+key.Value+": NAME on one line", "the name of a local file is not written plainly")
		return
	}
	b, err := l.read(value.Value)
	if err != nil {
		l.fail(value, "give the folder that holds it", "%v", err)
		return
	}
	l.lines[key.Line-1] = string(line[:key.Column-1]) + say(b) + string(line[end+len(name):])
}
