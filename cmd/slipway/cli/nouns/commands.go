package nouns

import (
	"github.com/alecthomas/kong"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/web/client"
)

// NameArguments is for kong.PostBuild: it names the arguments of these commands after their nouns, for usage lines.
func NameArguments(k *kong.Kong) error {
	return kong.Visit(k.Model, func(v kong.Visitable, next kong.Next) error {
		if n, isNode := v.(*kong.Node); isNode {
			if c, isOurs := n.Target.Interface().(interface{ argument() string }); isOurs {
				n.Positional[0].Name = c.argument()
			}
		}
		return next(nil)
	})
}

// names returns how a noun calls one record, and several.
func names[D named]() (one, many string) {
	var d D
	return d.About()
}

// List is the command that lists all records.
type List[D Noun[R], R any] struct{}

// Run lists the records.
func (List[D, R]) Run(s *cli.Session) error { return list[D, R](s, client.Query{}) }

// ListBy is List with flags that narrow it.
type ListBy[D Noun[R], R any, F Filter] struct {
	Filter F `embed:""`
}

// Filter are the flags that narrow a list.
type Filter interface{ Query() client.Query }

// Run lists the records that the flags ask for.
func (c ListBy[D, R, F]) Run(s *cli.Session) error { return list[D, R](s, c.Filter.Query()) }

func list[D Noun[R], R any](s *cli.Session, q client.Query) error {
	var d D
	var none R
	return cli.ShowList(s, d.Calls, q, 0, row[D, R](none).headings, func(r R) []string { return row[D, R](r).cells })
}

// Show is the command that shows a record.
type Show[D Noun[R], R any] struct {
	Name string `arg:""`
}

func (Show[D, R]) argument() string {
	one, _ := names[D]()
	return one
}

// Run shows the record.
func (c Show[D, R]) Run(s *cli.Session) error {
	var d D
	return cli.ShowOne(s, d.Calls, c.Name, Table[D, R])
}

// Create is the command that adds a record. A variable of its help is ${does}: what a dry run only shows.
type Create[F NewFlags[R], R any] struct {
	Name   string `arg:"" help:"Its name, a DNS label."`
	Flags  F      `embed:""`
	DryRun bool   `help:"Only show what would ${does=change}."`
}

// Flags change a record.
type Flags[R any] interface {
	Noun[R]
	// Apply changes a record as the flags say.
	Apply(s *cli.Session, r *R) error
	// Version returns the version of a record.
	Version(r R) int64
}

// NewFlags make a new record.
type NewFlags[R any] interface {
	Flags[R]
	// New returns a record with that name, and what is usual for the rest.
	New(name string) R
}

// Run adds the record.
func (c Create[F, R]) Run(s *cli.Session) error {
	r := c.Flags.New(c.Name)
	if err := c.Flags.Apply(s, &r); err != nil {
		return err
	}
	return cli.Write(s, c.Flags.Calls, "POST", "", r, c.DryRun)
}

// Set is the command that changes a record.
type Set[F Flags[R], R any] struct {
	Name   string `arg:""`
	Flags  F      `embed:""`
	DryRun bool   `help:"Only show what would change."`
}

func (Set[F, R]) argument() string {
	one, _ := names[F]()
	return one
}

// Run changes the record as it is stored now.
func (c Set[F, R]) Run(s *cli.Session, api *client.Client) error {
	r, err := c.Flags.Calls(api).Get(s.Ctx, c.Name)
	if err != nil {
		return err
	}
	if err := c.Flags.Apply(s, &r); err != nil {
		return err
	}
	return cli.Write(s, c.Flags.Calls, "PUT", c.Name, r, c.DryRun, client.IfVersion(c.Flags.Version(r)))
}

// Delete is the command that deletes records.
type Delete[D Noun[R], R any] struct {
	Names  []string `arg:""`
	DryRun bool     `help:"Only show what would be deleted."`
}

func (Delete[D, R]) argument() string {
	_, many := names[D]()
	return many
}

// Run deletes the records.
func (c Delete[D, R]) Run(s *cli.Session) error {
	var d D
	return cli.Remove(s, d.Calls, c.Names, c.DryRun)
}
