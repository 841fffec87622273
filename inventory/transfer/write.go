package transfer

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/inventory"
)

// Export makes a document that gives every field of the things in c; read and imported again, it changes nothing.
func Export(c Current) Document {
	var d Document
	for _, n := range tables() {
		n.export(c, &d)
	}
	for i := range d.BMCs { // no file ever has a password
		d.BMCs[i].Value.Sealed, d.BMCs[i].Value.Others = nil, nil
	}
	return d
}

// Only returns the document with nothing but one of its nouns.
func (d Document) Only(noun Noun) (one Document) {
	for _, n := range tables() {
		if n.name() == noun {
			n.only(&one, &d)
		}
	}
	return one
}

// WriteCSV writes the document's things of that noun, with a header row and all columns.
func WriteCSV(w io.Writer, noun Noun, d Document) error {
	switch noun {
	case Hosts:
		return writeTable(w, d.Hosts, hostFields())
	case Subnets:
		return writeTable(w, d.Subnets, subnetFields())
	case Reservations:
		return writeTable(w, d.Reservations, reservationFields())
	}
	return inventory.Errorf(inventory.Invalid, "%q cannot be exported as CSV", noun).WithHint("use hosts, subnets or reservations, or ask for YAML")
}

func writeTable[T any](w io.Writer, rows []Row[T], fields []field[T]) error {
	out := csv.NewWriter(w)
	cells := make([]string, len(fields))
	for i, f := range fields {
		cells[i] = f.name
	}
	if err := out.Write(cells); err != nil {
		return fmt.Errorf("write header: %w", err)
	}
	for _, r := range rows {
		for i, f := range fields {
			cells[i] = safeCell(f.name, f.kind, strings.Join(f.get(&r.Value), " "))
		}
		if err := out.Write(cells); err != nil {
			return fmt.Errorf("write row: %w", err)
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	return nil
}

// safeCell marks a cell that a spreadsheet would take for a formula, for the texts are the machines' own, and one that reading
// would change. Reading takes the mark away.
func safeCell(field string, k kind, cell string) string {
	if cell == "" {
		return ""
	}
	if back, err := (Sheet{}).tidy(field, k, cell); err != nil || back != cell || strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return marked + cell
	}
	return cell
}

// WriteYAML writes the document; fields that are empty are left out.
func WriteYAML(w io.Writer, d Document) error {
	root := &yaml.Node{Kind: yaml.MappingNode}
	all := tables()
	for _, n := range slices.Backward(all) {
		if n.isFirst() {
			n.write(root, &d)
		}
	}
	for _, n := range all {
		if !n.isFirst() {
			n.write(root, &d)
		}
	}
	out := yaml.NewEncoder(w)
	out.SetIndent(2)
	if err := out.Encode(root); err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	return nil
}

func (n noun[T]) write(root *yaml.Node, d *Document) {
	rows := *n.rows(d)
	if len(rows) == 0 {
		return
	}
	entries := &yaml.Node{Kind: yaml.SequenceNode}
	for _, r := range rows {
		entry := &yaml.Node{Kind: yaml.MappingNode}
		for _, f := range n.fields {
			if texts := f.get(&r.Value); len(texts) > 0 {
				entry.Content = append(entry.Content, scalar(asText, f.name), f.node(texts))
			}
		}
		entries.Content = append(entries.Content, entry)
	}
	root.Content = append(root.Content, scalar(asText, string(n.noun)), entries)
}

func (f field[T]) node(texts []string) *yaml.Node {
	switch f.kind {
	case asList:
		n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, s := range texts {
			n.Content = append(n.Content, scalar(asText, s))
		}
		return n
	case asPairs:
		n := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
		for _, s := range texts {
			k, v, _ := strings.Cut(s, "=")
			n.Content = append(n.Content, scalar(asText, k), scalar(asText, v))
		}
		return n
	}
	return scalar(f.kind, texts[0])
}

func scalar(k kind, s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	switch k {
	case asNumber:
		n.Tag = "!!int"
	case asFlag:
		n.Tag = "!!bool"
	case asBlock:
		n.Style = yaml.LiteralStyle
		if strings.ContainsAny(s, "\t\r") || s != strings.TrimLeft(s, " \n") { // the library writes such blocks wrongly
			n.Style = yaml.DoubleQuotedStyle
		}
	}
	return n
}
