// Package noun owns the table of plain nouns: records that people write and read, without a life of their own. A row has the
// names of a noun, the roles for writes and reads, the effects of a deletion, and a sample. The store, the REST API, the client and
// the tests use the same row. The package never stores or answers anything itself.
//
// Start reading at Noun; then All.
package noun

import (
	"reflect"
	"time"

	"slipway.dev/slipway/inventory"
)

// Scope says of what the reads of a noun speak. Writes need the role everywhere.
type Scope int

const (
	// OfAll needs the role everywhere.
	OfAll Scope = iota
	// OfPools speaks of hosts, machines, and what belongs to them. A role in one pool is enough. The store shows such a
	// caller what is in its pools, and lets it change no more (see package scoped).
	OfPools
	// OfNobody is about things that belong to nobody, such as images: a caller with a role in any pool may read them.
	OfNobody
)

// Facts are the facts of a noun, whatever its records hold.
type Facts struct {
	One, Many string // as paths and commands call it
	Article   string // a or an
	Table     string // of the database
	// Needs and ReadNeeds are the roles for writes and reads; "" is what is usual for an operation.
	Needs, ReadNeeds inventory.UserRole
	Scope            Scope
	// Gone is what a deletion takes away; see package foresight. In braces stand the name, and counts.
	Gone string
	// Optional are the fields that a request may leave out: they have a default, or the address of a PUT names them.
	Optional []string
	// Screen is how people read and write it; nil for a noun whose screens are written by hand.
	Screen *Screen
	// Files are the fields, as JSON names them, that files of import and export have; the first one names a record. It is nil for a
	// noun that no file has, and for one with code of its own in package transfer.
	Files []string
}

// Stamps are the fields of a record that the server fills in.
type Stamps struct {
	Created, Updated *time.Time
	Version          *int64
}

// Noun describes a plain noun.
type Noun[R any] struct {
	Facts
	Records  func(inventory.RecordTx) inventory.Records[R]
	Name     func(*R) *string // the field that names a record; nil for one that ID names
	ID       func(*R) string
	Stamps   func(*R) Stamps
	Validate func(*R) error
	Sample   R // for tests; it names only samples of nouns before it
}

// About returns the facts of a noun.
func (n Noun[R]) About() Facts { return n.Facts }

// Type is the name of its record's type, which the description of the API uses.
func (n Noun[R]) Type() string { return reflect.TypeFor[R]().Name() }

// Key is what a record is found by.
func (n Noun[R]) Key(r *R) string {
	if n.Name == nil {
		return n.ID(r)
	}
	return *n.Name(r)
}

// Keep gives a record that is written over old what the server has filled in.
func (n Noun[R]) Keep(r, old *R) {
	to, from := n.Stamps(r), n.Stamps(old)
	*to.Created, *to.Updated, *to.Version = *from.Created, *from.Updated, *from.Version
}

// Any is a noun with records of any type, for code that handles all nouns.
type Any interface {
	About() Facts
	Type() string
	New() any // a sample
	KeyOf(record any) string
	StampsOf(record any) Stamps // copies
	Check(record *any) error
	Of(tx inventory.RecordTx) inventory.Records[any]
}

// New returns a sample.
func (n Noun[R]) New() any { return n.Sample }

// KeyOf is Key of a record of any type.
func (n Noun[R]) KeyOf(record any) string {
	r := record.(R)
	return n.Key(&r)
}

// StampsOf is Stamps of a record of any type.
func (n Noun[R]) StampsOf(record any) Stamps {
	r := record.(R)
	return n.Stamps(&r)
}

// Check is Validate of a record of any type.
func (n Noun[R]) Check(record *any) error {
	r := (*record).(R)
	err := n.Validate(&r)
	*record = r
	return err
}

// Of returns the records without their type.
func (n Noun[R]) Of(tx inventory.RecordTx) inventory.Records[any] { return untyped[R]{n.Records(tx)} }

// untyped are records without their type.
type untyped[R any] struct{ all inventory.Records[R] }

func (x untyped[R]) Find(name string) (any, error) { return x.all.Find(name) }
func (x untyped[R]) Delete(name string) error      { return x.all.Delete(name) }

func (x untyped[R]) List(p inventory.Page) (out []any, err error) {
	rows, err := x.all.List(p)
	for _, r := range rows {
		out = append(out, r)
	}
	return out, err
}

func (x untyped[R]) Create(r *any, now time.Time) error { return x.write(x.all.Create, r, now) }
func (x untyped[R]) Update(r *any, now time.Time) error { return x.write(x.all.Update, r, now) }

func (x untyped[R]) write(do func(*R, time.Time) error, r *any, now time.Time) error {
	typed := (*r).(R)
	err := do(&typed, now)
	*r = typed
	return err
}
