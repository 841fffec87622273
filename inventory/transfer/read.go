package transfer

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/inventory"
)

// ReadCSV reads hosts, subnets or reservations: whichever the header row shows, subnets by their column cidr,
// reservations by their column address. Error messages use name for the file. The error is Invalid and lists everything that
// is wrong, with line numbers.
func ReadCSV(name string, r io.Reader) (Document, error) { return ReadSheet(name, r, Sheet{}) }

// ReadSheet reads a table as spreadsheet programs and other inventories write it, with the headings of s. It may be UTF-8
// or UTF-16, have commas, semicolons, tabs or bars, and blank rows.
func ReadSheet(name string, r io.Reader, s Sheet) (Document, error) {
	b, err := readLimited(name, r, maxCSVBytes)
	if err != nil {
		return Document{}, err
	}
	p := &problems{file: name}
	if b, err = decodeText(b); err != nil {
		p.add(name, 0, err)
		return Document{}, p.err()
	}
	separator, b := separatorOf(b)
	in := csv.NewReader(bytes.NewReader(b))
	in.ReuseRecord, in.Comma, in.FieldsPerRecord = true, separator, -1
	rows := &rowReader{in: in}
	header, err := rows.read()
	if err != nil {
		p.addCSV(err)
		return Document{}, p.err()
	}
	for i := range header {
		header[i] = strings.TrimSpace(header[i])
	}
	header = slices.Clone(header)
	rows.n = len(header)
	has := func(field string) bool {
		return slices.ContainsFunc(header, func(h string) bool { return heading(h) == field }) ||
			slices.ContainsFunc(s.Map, func(m string) bool { return strings.HasSuffix(m, "="+field) })
	}
	var d Document
	switch {
	case s.Preset == "" && has("address"):
		d.Reservations = readTable(p, rows, header, reservationNoun(), s, &d)
	case s.Preset == "" && has("cidr"):
		d.Subnets = readTable(p, rows, header, subnetNoun(), s, &d)
	default:
		d.Hosts = readTable(p, rows, header, hostNoun(), s, &d)
	}
	d.check(p)
	if err := p.err(); err != nil {
		return Document{}, err
	}
	return d, nil
}

// addCSV notes an error of the CSV reader.
func (p *problems) addCSV(err error) {
	var at *csv.ParseError
	switch {
	case errors.Is(err, io.EOF):
		p.add(p.file, 0, inventory.Errorf(inventory.Invalid, "the file is empty").WithHint("the first row names the columns"))
	case errors.As(err, &at):
		p.add(p.file, at.Line, inventory.Errorf(inventory.Invalid, "%s", at.Err).
			WithHint("every row has as many cells as the first; cells with commas or quotes are quoted"))
	default:
		p.add(p.file, 0, err)
	}
}

// readTable reads the rows below the header.
func readTable[T any](p *problems, in *rowReader, header []string, n noun[T], s Sheet, d *Document) (rows []Row[T]) {
	first, _ := in.in.FieldPos(0)
	columns := columnsOf(p, first, header, n.fields, s, d)
	if len(p.list) > 0 { // without its columns, no row can be read
		return nil
	}
	for !p.full() {
		cells, err := in.read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			p.addCSV(err)
			if errors.Is(err, csv.ErrFieldCount) {
				continue
			}
			break // after a broken quote nothing is what it seems
		}
		line, _ := in.in.FieldPos(0)
		if len(rows) == maxRows {
			p.add(p.file, line, inventory.Errorf(inventory.Invalid, "more than %d rows", maxRows).WithHint("split the file"))
			break
		}
		row := Row[T]{Value: n.empty, File: p.file, Line: line}
		readRow(p, &row, in, header, columns, cells, s)
		rows = append(rows, row)
	}
	return rows
}

// readRow sets the fields of a row. Columns that are labels come together.
func readRow[T any](p *problems, row *Row[T], in *rowReader, header []string, columns []column[T], cells []string, s Sheet) {
	fail := func(i int, name string, err error) {
		at, _ := in.in.FieldPos(i)
		row.isBroken = true
		p.add(p.file, at, fieldError(name, err))
	}
	areLabels := slices.ContainsFunc(columns, func(c column[T]) bool { return c.label != "" })
	labelsAt, labels := -1, []string(nil)
	for i, c := range columns {
		var cell string
		var err error
		if !c.isOut {
			if cell, err = s.tidy(c.name(), c.kind(), cells[i]); err != nil {
				fail(i, c.field.name, err)
				continue
			}
		}
		switch {
		case c.isOut && header[i] == "" && strings.TrimSpace(cells[i]) != "":
			fail(i, fmt.Sprintf("column %d", i+1), inventory.Errorf(inventory.Invalid, "it has no heading and holds %q", clip(cells[i])).WithHint("give the column a heading, or empty it"))
		case c.isOut:
		case c.label != "":
			if v := labelOf(cell); v != "" {
				labels = append(labels, c.label+"="+v)
			}
			labelsAt = i
		case c.field.name == "labels" && areLabels:
			labels, labelsAt = append(labels, c.texts(cell)...), i
		default:
			if err := assign(row, c.field, c.texts(cell)); err != nil {
				fail(i, c.field.name, err)
			}
		}
	}
	if labelsAt < 0 {
		return
	}
	if err := assign(row, columns[labelsAt].field, labels); err != nil {
		fail(labelsAt, "labels", err)
	}
}

// fieldError puts the field's name in front of what is wrong with it.
func fieldError(name string, err error) error {
	var said *inventory.Error
	if !errors.As(err, &said) {
		return fmt.Errorf("%s: %w", name, err)
	}
	c := *said
	c.Msg = name + ": " + c.Msg
	return &c
}

var yamlLineRE = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

// ReadYAML reads a file with the nouns as keys, each a list. Error messages use name for the file. The error is Invalid
// and lists everything that is wrong, with line numbers. It refuses aliases, which make a small file large.
func ReadYAML(name string, r io.Reader) (Document, error) {
	b, err := readLimited(name, r, maxYAMLBytes)
	if err != nil {
		return Document{}, err
	}
	p := &problems{file: name}
	var d Document
	var root, second yaml.Node
	in := yaml.NewDecoder(bytes.NewReader(b))
	switch err := in.Decode(&root); {
	case errors.Is(err, io.EOF):
		p.add(name, 0, inventory.Errorf(inventory.Invalid, "the file is empty").WithHint("its keys are %s", nouns()))
	case err != nil:
		p.addYAML(err)
	default:
		if err := in.Decode(&second); err == nil {
			p.add(name, second.Line, inventory.Errorf(inventory.Invalid, "a second document begins here").WithHint("write one document per file"))
		} else if !errors.Is(err, io.EOF) {
			p.addYAML(err)
		}
		d.read(p, root.Content[0])
	}
	d.check(p)
	if err := p.err(); err != nil {
		return Document{}, err
	}
	return d, nil
}

// addYAML notes a syntax error; the parser says the line in its text only.
func (p *problems) addYAML(err error) {
	line, msg := 0, err.Error()
	if m := yamlLineRE.FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1]) // 0 when it says none
		msg = m[2]
	}
	p.add(p.file, line, inventory.Errorf(inventory.Invalid, "%s", clip(msg)))
}

func (d *Document) read(p *problems, root *yaml.Node) {
	if root.Kind != yaml.MappingNode {
		p.add(p.file, root.Line, inventory.Errorf(inventory.Invalid, "the file does not begin with a key").
			WithHint("its keys are %s", nouns()))
		return
	}
	eachKey(p, root, func(key, value *yaml.Node) {
		for _, n := range tables() {
			if n.name() == Noun(key.Value) {
				n.read(p, value, d)
				return
			}
		}
		p.add(p.file, key.Line, inventory.Errorf(inventory.Invalid, "%q is not known here", clip(key.Value)).
			WithHint("known are %s", nouns()))
	})
}

// eachKey calls fn for the keys of a mapping and notes those that come twice.
func eachKey(p *problems, mapping *yaml.Node, fn func(key, value *yaml.Node)) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(mapping.Content) && !p.full(); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			p.add(p.file, key.Line, inventory.Errorf(inventory.Invalid, "a key must be a word"))
			continue
		}
		if seen[key.Value] {
			p.add(p.file, key.Line, inventory.Errorf(inventory.Invalid, "key %q is there twice", clip(key.Value)))
			continue
		}
		seen[key.Value] = true
		fn(key, value)
	}
}

// isNull reports a value that was left out, as in "hosts:" with nothing behind it.
func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// readList reads a list of mappings, one per row.
func readList[T any](p *problems, value *yaml.Node, n noun[T]) (rows []Row[T]) {
	if isNull(value) {
		return nil
	}
	if value.Kind != yaml.SequenceNode {
		p.add(p.file, value.Line, inventory.Errorf(inventory.Invalid, "a list is expected here").WithHint("begin each entry with '- '"))
		return nil
	}
	for i, entry := range value.Content {
		if p.full() {
			break
		}
		if i == maxRows {
			p.add(p.file, entry.Line, inventory.Errorf(inventory.Invalid, "more than %d rows", maxRows).WithHint("split the file"))
			break
		}
		if entry.Kind == yaml.AliasNode {
			p.add(p.file, entry.Line, errAlias())
			continue
		}
		if entry.Kind != yaml.MappingNode {
			p.add(p.file, entry.Line, inventory.Errorf(inventory.Invalid, "an entry with keys is expected here").WithHint("known are %s", names(n.fields)))
			continue
		}
		row := Row[T]{Value: n.empty, File: p.file, Line: entry.Line}
		eachKey(p, entry, func(key, value *yaml.Node) {
			f, err := lookup(n.fields, key.Value)
			if err != nil {
				row.isBroken = true
				p.add(p.file, key.Line, err)
				return
			}
			texts, err := f.texts(value)
			if err == nil {
				err = assign(&row, f, texts)
			}
			if err != nil {
				row.isBroken = true
				p.add(p.file, value.Line, fieldError(f.name, err))
			}
		})
		rows = append(rows, row)
	}
	return rows
}

func errAlias() error {
	return inventory.Errorf(inventory.Invalid, "aliases are not read").WithHint("write the values out")
}

// texts reads the value of a field. Scalars are taken as they are written, so that 007 stays 007.
func (f field[T]) texts(value *yaml.Node) (texts []string, err error) {
	if isNull(value) {
		return nil, nil
	}
	if value.Kind == yaml.AliasNode {
		return nil, errAlias()
	}
	scalar := func(n *yaml.Node) (string, error) {
		if n.Kind != yaml.ScalarNode {
			return "", inventory.Errorf(inventory.Invalid, "a plain value is expected in line %d", n.Line)
		}
		return n.Value, nil
	}
	switch f.kind {
	case asList:
		if value.Kind != yaml.SequenceNode {
			return nil, inventory.Errorf(inventory.Invalid, "a list is expected here").WithHint("write [a, b]")
		}
		for _, n := range value.Content {
			s, err := scalar(n)
			if err != nil {
				return nil, err
			}
			texts = append(texts, s)
		}
		return texts, nil
	case asPairs:
		if value.Kind != yaml.MappingNode {
			return nil, inventory.Errorf(inventory.Invalid, "keys with values are expected here").WithHint("write {key: value}")
		}
		for i := 0; i+1 < len(value.Content); i += 2 {
			k, errKey := scalar(value.Content[i])
			v, errValue := scalar(value.Content[i+1])
			if err := cmp.Or(errKey, errValue); err != nil {
				return nil, err
			}
			if isNull(value.Content[i+1]) {
				v = ""
			}
			texts = append(texts, k+"="+v)
		}
		return texts, nil
	}
	s, err := scalar(value)
	return one(s), err
}
