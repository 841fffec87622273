package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// TableWriter writes rows of cells.
type TableWriter struct {
	w     *tabwriter.Writer
	heads []string // of the columns
}

// wideCell is the longest text that other cells stand beside: a longer one would push them far to the right.
const wideCell = 72

// Row writes one line; what machines and people have written cannot steer the terminal. A row in capitals names the columns.
// Behind a cell that is too wide the others follow on lines of their own, with the names of their columns.
func (t *TableWriter) Row(cells ...string) {
	if !slices.ContainsFunc(cells, func(c string) bool { return !headRE.MatchString(c) }) {
		t.heads = slices.Clone(cells)
	}
	wide := len(cells)
	for i, c := range cells {
		if c = Plain(c); c == "" {
			c = "-"
		}
		cells[i] = c
		if wide == len(cells) && utf8.RuneCountInString(c) > wideCell {
			wide = i + 1
		}
	}
	fmt.Fprintln(t.w, strings.Join(cells[:wide], "\t"))
	for i := wide; i < len(cells); i++ {
		if cells[i] == "-" {
			continue
		}
		name := ""
		if i < len(t.heads) {
			name = strings.ToLower(t.heads[i]) + ": "
		}
		fmt.Fprintln(t.w, strings.Repeat("\t", wide-1)+name+cells[i])
	}
}

var headRE = regexp.MustCompile(`^[A-Z][A-Z. %/-]+$`)

// Field writes a name and its value, unless that is empty.
func (t *TableWriter) Field(name, value string) {
	if value != "" {
		fmt.Fprintf(t.w, "%s\t%s\n", name, Plain(value))
	}
}

// Text writes a line that has no cells.
func (t *TableWriter) Text(line string) { fmt.Fprintln(t.w, Plain(line)) }

// WriteJSON writes a value as JSON with a line break at the end. With isPretty it indents; < and > stay as they are.
func WriteJSON(w io.Writer, v any, isPretty bool) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if isPretty {
		enc.SetIndent("", "  ")
	}
	return enc.Encode(v)
}

// writeYAML writes what JSON would say, with the same names in the same order.
func writeYAML(w io.Writer, v any) error {
	var text bytes.Buffer
	if err := WriteJSON(&text, v, false); err != nil {
		return err
	}
	var node yaml.Node
	if err := yaml.Unmarshal(text.Bytes(), &node); err != nil {
		return fmt.Errorf("turn JSON into YAML: %w", err)
	}
	blockStyle(&node)
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(&node); err != nil {
		return err
	}
	return enc.Close()
}

// blockStyle takes away the braces and quotes that came with JSON, where YAML does not need them.
func blockStyle(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		blockStyle(c)
	}
}
