package transfer

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"slipway.dev/slipway/inventory"
)

// Sheet says how the columns of a table are read whose headings are not ours.
type Sheet struct {
	Preset string   // netbox, maas, ansible or device42: what their exports call things
	Map    []string // COLUMN=FIELD, or COLUMN= to leave a column out; FIELD may be label:KEY
}

// decodeText turns what spreadsheet programs write into UTF-8: UTF-16 of either order, byte order marks, and the line
// ends of old Macs.
func decodeText(b []byte) ([]byte, error) {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		b = b[3:]
	case bytes.HasPrefix(b, []byte("\xff\xfe")):
		order, b = binary.LittleEndian, b[2:]
	case bytes.HasPrefix(b, []byte("\xfe\xff")):
		order, b = binary.BigEndian, b[2:]
	case len(b) > 3 && b[0] != 0 && b[1] == 0 && b[2] != 0 && b[3] == 0:
		order = binary.LittleEndian
	case len(b) > 3 && b[0] == 0 && b[1] != 0 && b[2] == 0 && b[3] != 0:
		order = binary.BigEndian
	}
	if order != nil {
		if len(b)%2 != 0 {
			return nil, inventory.Errorf(inventory.Invalid, "the file is UTF-16 and ends in the middle of a character").WithHint("save it again, as UTF-8 where that can be chosen")
		}
		units := make([]uint16, len(b)/2)
		for i := range units {
			units[i] = order.Uint16(b[2*i:])
		}
		b = []byte(string(utf16.Decode(units)))
	}
	if err := notATable(b); err != nil {
		return nil, err
	}
	if !bytes.Contains(b, []byte("\n")) {
		b = bytes.ReplaceAll(b, []byte("\r"), []byte("\n"))
	}
	return b, nil
}

// notATable says what a file is that holds no table.
func notATable(b []byte) error {
	text := bytes.ToLower(bytes.TrimLeft(b[:min(len(b), 512)], " \t\r\n"))
	begins := func(all ...string) bool {
		return slices.ContainsFunc(all, func(s string) bool { return bytes.HasPrefix(b, []byte(s)) || bytes.HasPrefix(text, []byte(s)) })
	}
	switch {
	case begins("PK\x03\x04", "\xd0\xcf\x11\xe0"):
		return inventory.Errorf(inventory.Invalid, "the file is a workbook of a spreadsheet program, not a CSV file").WithHint("save the sheet as CSV")
	case begins("<!doctype", "<html", "<?xml"):
		return inventory.Errorf(inventory.Invalid, "the file is a web page or XML, not a CSV file").WithHint("log in there, and export the table as CSV")
	case begins("[{", "[\n", "[\r", "{\"", "{\n", "{\r"):
		return inventory.Errorf(inventory.Invalid, "the file is JSON, not a CSV file").WithHint("export the table as CSV; files of Slipway are YAML")
	case begins("\x1f\x8b", "%PDF", "BZh", "\xfd7zxz"):
		return inventory.Errorf(inventory.Invalid, "the file is packed, or a PDF, not a CSV file").WithHint("unpack it, or export the table as CSV")
	}
	return nil
}

// separatorOf returns what stands between the cells: what the first row that has any has most of. Spreadsheet programs
// may say it themselves in a row of its own, which is blanked.
func separatorOf(b []byte) (rune, []byte) {
	first, _, _ := bytes.Cut(b, []byte("\n"))
	if said, ok := strings.CutPrefix(strings.Trim(string(first), "\r\""), "sep="); ok && utf8.RuneCountInString(said) == 1 && said != "\"" {
		r, _ := utf8.DecodeRuneInString(said)
		return r, b[len(first):]
	}
	for line := range bytes.Lines(b) {
		best, bestN, isQuoted := ',', 0, false
		counts := map[rune]int{}
		for _, r := range string(line) {
			switch {
			case r == '"':
				isQuoted = !isQuoted
			case !isQuoted && strings.ContainsRune(",;\t|", r):
				counts[r]++
			}
		}
		for _, r := range ",;\t|" {
			if counts[r] > bestN {
				best, bestN = r, counts[r]
			}
		}
		if bestN > 0 || len(bytes.TrimSpace(line)) > 0 {
			if isBlank(strings.FieldsFunc(string(line), func(r rune) bool { return r == best })) {
				continue
			}
			return best, b
		}
	}
	return ',', b
}

// isBlank reports a row that says nothing.
func isBlank(cells []string) bool {
	return !slices.ContainsFunc(cells, func(c string) bool { return strings.TrimSpace(c) != "" })
}

// heading is a name of a column as it is compared: without case, spaces and punctuation.
func heading(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == ':' || r == '#' {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

// column says what becomes of the cells of one column.
type column[T any] struct {
	field field[T]
	label string // key of a label instead
	isOut bool   // left out
}

// columnsOf finds the field of every heading. All headings that nothing is known of are one problem.
func columnsOf[T any](p *problems, line int, header []string, all []field[T], s Sheet, d *Document) []column[T] {
	own, err := s.parse()
	if err != nil {
		p.add(p.file, 0, err)
		return nil
	}
	used := map[string]bool{}
	for _, h := range header {
		used[heading(h)] = true
	}
	var missing []string
	for _, m := range own {
		if !used[heading(m.column)] {
			missing = append(missing, m.column)
		}
	}
	if len(missing) > 0 {
		p.add(p.file, line, inventory.Errorf(inventory.Invalid, "no column is called %s", quotedList(missing)).WithHint("columns are %s", quotedList(header)))
		return nil
	}
	columns := make([]column[T], len(header))
	var unknown []string
	given := map[string]bool{}
	for i, h := range header {
		target, isKnown := s.target(own, h, given)
		switch {
		case isKnown && target == "":
			columns[i].isOut = true
			if strings.TrimSpace(h) != "" {
				d.Ignored = append(d.Ignored, clip(h))
			}
			continue
		case !isKnown:
			target = h
		}
		if key, isLabel := strings.CutPrefix(target, "label:"); isLabel && isKnown {
			if f, ok := fieldOf(all, "labels"); ok {
				columns[i].label, columns[i].field = key, f
				given[target] = true
				continue
			}
		}
		f, ok := fieldOf(all, target)
		switch {
		case !ok && isMapped(own, h):
			p.add(p.file, line, inventory.Errorf(inventory.Invalid, "%q is not known here: --map makes it %q, which is no field", clip(h), clip(target)).WithHint("fields are %s", names(all)))
		case !ok:
			unknown = append(unknown, h)
		case given[f.name]:
			p.add(p.file, line, inventory.Errorf(inventory.Invalid, "column %s is there twice", f.name).WithHint("leave one out with --map"))
		}
		columns[i].field = f
		given[f.name] = true
	}
	if len(unknown) > 0 {
		p.add(p.file, line, unknownColumns(unknown, header, all))
	}
	return columns
}

// isMapped reports whether the caller has said what a column is.
func isMapped(own []mapping, h string) bool {
	return slices.ContainsFunc(own, func(m mapping) bool { return heading(m.column) == heading(h) })
}

func unknownColumns[T any](unknown, header []string, all []field[T]) error {
	e := inventory.Errorf(inventory.Invalid, "%s is not known here", quotedList(unknown))
	if len(unknown) > 1 {
		e = inventory.Errorf(inventory.Invalid, "%s are not known here", quotedList(unknown))
	}
	hint := "known are " + names(all) + "; name a column's field with --map COLUMN=FIELD, leave it out with --map COLUMN="
	if preset := presetFor(header); preset != "" {
		hint = "it looks like an export of " + presets[preset].title + ": --preset " + preset + "; else " + hint
	}
	return e.WithHint("%s", hint)
}

// quotedList names columns for a message.
func quotedList(all []string) string {
	var out []string
	for _, s := range all[:min(len(all), 40)] {
		out = append(out, `"`+clip(s)+`"`)
	}
	if len(all) > 40 {
		out = append(out, "and more")
	}
	return strings.Join(out, ", ")
}

// fieldOf finds a field by a heading in any case.
func fieldOf[T any](all []field[T], name string) (field[T], bool) {
	h := heading(name)
	for _, f := range all {
		if h != "" && heading(f.name) == h {
			return f, true
		}
	}
	return field[T]{}, false
}

// name and kind are those of the field; a label is a text.
func (c column[T]) name() string {
	if c.label != "" {
		return ""
	}
	return c.field.name
}

func (c column[T]) kind() kind {
	if c.label != "" {
		return asText
	}
	return c.field.kind
}

// texts splits a cell as its field wants it.
func (c column[T]) texts(cell string) []string {
	switch {
	case c.field.name == "macs":
		return strings.FieldsFunc(cell, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",;|/", r) })
	case c.field.kind == asList || c.field.kind == asPairs:
		return strings.Fields(cell)
	}
	return one(strings.TrimSpace(cell))
}

// rowReader reads the rows that say something.
type rowReader struct {
	in *csv.Reader
	n  int // cells of a row
}

// read returns the next row that is not blank, with the cells of the header, and io.EOF at the end.
func (r *rowReader) read() ([]string, error) {
	for {
		cells, err := r.in.Read()
		if err != nil {
			return nil, err
		}
		if isBlank(cells) {
			continue
		}
		if r.n > 0 && len(cells) > r.n && isBlank(cells[r.n:]) {
			cells = cells[:r.n] // spreadsheets write columns that were used once
		}
		if r.n > 0 && len(cells) != r.n {
			line, at := r.in.FieldPos(0)
			return cells, &csv.ParseError{StartLine: line, Line: line, Column: at, Err: csv.ErrFieldCount}
		}
		return cells, nil
	}
}
