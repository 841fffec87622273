// Package nouns owns the commands that nouns have in common: list, show, create, set and delete. A room of the command line describes
// a noun with a small type; the table of package noun says the rest of a plain one. It decides nothing: it calls the REST API.
//
// Start reading at Noun; then List and Create.
package nouns

import (
	"strings"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory/noun"
	"slipway.dev/slipway/web/client"
)

// Noun describes a noun to these commands. Kong makes commands from their types, so a description is an empty struct.
type Noun[R any] interface {
	named
	// Calls returns the calls of the API.
	Calls(c *client.Client) client.Noun[R]
	// Fields adds what people read of a record, in order. Lists take their headings from that of an empty record.
	Fields(f *Fields, r R)
}

// named gives the names of the arguments for one record and for several.
type named interface {
	About() (one, many string)
}

// Plain describes a plain noun as far as the table of nouns knows it: all but its Fields.
type Plain[R any] struct{}

// About returns the names of the noun.
func (Plain[R]) About() (one, many string) {
	n := noun.Of[R]()
	return n.One, n.Many
}

// Calls returns the calls of the API.
func (Plain[R]) Calls(c *client.Client) client.Noun[R] { return client.Of(c, noun.Of[R]()) }

// New returns a record with that name.
func (Plain[R]) New(name string) (r R) {
	*noun.Of[R]().Name(&r) = name
	return r
}

// Version returns the version of a record.
func (Plain[R]) Version(r R) int64 { return *noun.Of[R]().Stamps(&r).Version }

// Fields takes what people read of a record.
type Fields struct {
	headings, cells []string         // of lists
	alone           *cli.TableWriter // for a record that is shown alone; nil for a list
}

// Both adds a field of lists and of a record that is shown alone.
func (f *Fields) Both(name, value string) {
	f.Listed(name, value)
	f.Shown(name, value)
}

// Listed adds a column of lists.
func (f *Fields) Listed(name, value string) {
	f.headings, f.cells = append(f.headings, strings.ToUpper(name)), append(f.cells, value)
}

// Shown adds fields of a record that is shown alone, one for each value.
func (f *Fields) Shown(name string, values ...string) {
	for _, v := range values {
		if f.alone != nil {
			f.alone.Field(name, v)
		}
	}
}

// Texts adds lines without a name to a record that is shown alone.
func (f *Fields) Texts(lines ...string) {
	for _, line := range lines {
		if f.alone != nil {
			f.alone.Text(line)
		}
	}
}

// Table writes a record that is shown alone.
func Table[D Noun[R], R any](t *cli.TableWriter, r R) {
	var d D
	d.Fields(&Fields{alone: t}, r)
}

// row returns the headings and the cells of a record in a list.
func row[D Noun[R], R any](r R) Fields {
	var d D
	var f Fields
	d.Fields(&f, r)
	return f
}
