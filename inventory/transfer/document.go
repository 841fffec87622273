// Package transfer owns the files that carry hosts, subnets, reservations and configurations in and out. It defines their
// columns and keys in CSV and YAML, finds faults by line, and says what an import would change. It never opens a file and
// never commits: readers and the transaction are the caller's.
//
// Start reading at Document, then ReadYAML and ReadCSV, then Plan and Apply.
package transfer

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	facts "slipway.dev/slipway/inventory/noun"
)

// Limits of one file. A YAML file takes some fifty times its size in memory while it is read.
const (
	maxCSVBytes  = 32 << 20
	maxYAMLBytes = 16 << 20
	maxRows      = 100_000
	maxProblems  = 20
)

// Document is what a file says. A row sets only the fields that it gives: a new thing has defaults for the rest, an
// existing one keeps what it has. A field that is given empty is emptied.
type Document struct {
	Hosts        []Row[inventory.Host]
	Subnets      []Row[inventory.Subnet]
	Reservations []Row[inventory.Reservation]
	Profiles     []Row[inventory.Profile]
	Layers       []Row[inventory.Layer] // a host's by the name of the host
	Targets      []Row[inventory.JoinTarget]
	Secrets      []Row[inventory.Secret] // names only, never values
	Ignored      []string                // headings of a table that were left out
	BMCs         []Row[inventory.BMC]    // with the name of the host as its id; never passwords
	Plain        map[Noun]*[]Row[any]    // records of plain nouns without code in this package
}

// Row is one thing of a document and the fields that the file gives of it.
type Row[T any] struct {
	Value T
	Given []string // names of fields, as the file calls them
	File  string
	Line  int

	isBroken bool // some of its fields could not be read
}

// Noun names what a file holds: a CSV file hosts, subnets or reservations, a YAML file any of them.
type Noun string

// The nouns, as they are called in files and URLs. The table of package noun has more.
const (
	Hosts        Noun = "hosts"
	Subnets      Noun = "subnets"
	Reservations Noun = "reservations"
	Profiles     Noun = "profiles"
	Layers       Noun = "layers"
	Targets      Noun = "targets"
	Secrets      Noun = "secrets"
	BMCs         Noun = "bmcs"
)

// Singular is one of the noun, as events and errors call it.
func (n Noun) Singular() string {
	for _, f := range facts.All() {
		if about := f.About(); about.Many == string(n) {
			return about.One
		}
	}
	return strings.TrimSuffix(string(n), "s")
}

// Problem is one thing that is wrong with a file.
type Problem struct {
	File string
	Line int // 0: the file as a whole
	Msg  string
	Hint string
}

func (p Problem) String() string {
	s := p.File
	if p.Line > 0 {
		s += fmt.Sprintf(":%d", p.Line)
	}
	s += ": " + p.Msg
	if p.Hint != "" {
		s += " (" + p.Hint + ")"
	}
	return s
}

// Problems is everything found wrong, at most 20; it is the cause in the *inventory.Error that Read, Plan and Apply
// return.
type Problems []Problem

// Error lists the problems, one per line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = p[i].String()
	}
	return strings.Join(lines, "\n")
}

// problems collects what is wrong.
type problems struct {
	file string
	list Problems
	more bool
}

// add notes err, which concerns that line; its message and hint are kept apart if it has them.
func (p *problems) add(file string, line int, err error) {
	if len(p.list) >= maxProblems {
		p.more = true
		return
	}
	problem := Problem{File: file, Line: line, Msg: err.Error()}
	if said, ok := errors.AsType[*inventory.Error](err); ok {
		problem.Msg, problem.Hint = said.Msg, said.Hint
	}
	p.list = append(p.list, problem)
}

// full reports that there is no use in looking for more.
func (p *problems) full() bool { return p.more }

// err is nil, or an Invalid error with every problem in its message.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	slices.SortStableFunc(p.list, func(a, b Problem) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line)) })
	msg := p.list.Error()
	if p.more {
		msg += "\nand more; these are the first " + fmt.Sprint(maxProblems)
	}
	return &inventory.Error{Kind: inventory.Invalid, Msg: msg, Hint: "nothing was changed; correct the file and import it again", Err: p.list}
}

// readLimited reads the whole input, which must not be larger than limit.
func readLimited(name string, r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, &inventory.Error{Kind: inventory.Invalid, Msg: "cannot read " + name, Err: err}
	}
	if int64(len(b)) > limit {
		return nil, inventory.Errorf(inventory.Invalid, "%s is larger than %d MiB", name, limit>>20).
			WithHint("split it; each part is imported by itself")
	}
	return b, nil
}
