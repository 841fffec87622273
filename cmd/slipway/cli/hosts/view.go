package hosts

import (
	"strings"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/cmd/slipway/cli/nouns"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// ViewCommand is slipway view.
type ViewCommand struct {
	List   nouns.List[view, wire.KeptView] `cmd:"" help:"List views of the hosts: your own, and those that are shared with you."`
	Show   nouns.Show[view, wire.KeptView] `cmd:"" help:"Show a view."`
	Set    viewSet                         `cmd:"" help:"Keep a view of the hosts, whether it exists or not."`
	Delete viewDelete                      `cmd:"" help:"Delete views."`
}

// view is how people read a view.
type view struct{}

// About implements nouns.Noun.
func (view) About() (one, many string) { return "view", "views" }

// Calls implements nouns.Noun.
func (view) Calls(c *client.Client) client.Noun[wire.KeptView] { return c.Views }

// Fields implements nouns.Noun.
func (view) Fields(f *nouns.Fields, v wire.KeptView) {
	owner, columns := v.Owner, strings.Join(v.Columns, ",")
	if v.IsShared {
		owner = "(shared)"
	}
	if len(v.Pools) > 0 {
		owner = "(" + strings.Join(v.Pools, ",") + ")"
	}
	f.Both("name", v.Name)
	f.Listed("owner", owner)
	f.Shown("owner", v.Owner)
	f.Shown("shared", cli.YesNo(v.IsShared))
	f.Shown("pools", strings.Join(v.Pools, ","))
	f.Both("query", v.Query)
	f.Shown("columns", columns)
	f.Both("group", v.Group)
	f.Both("sort", v.Sort)
	f.Listed("columns", columns)
	f.Shown("changed", cli.TimeText(v.UpdatedAt))
}

type viewSet struct {
	View    string   `arg:""`
	Query   string   `help:"The search, as in the search box (docs/search.md)." placeholder:"TEXT"`
	Columns []string `help:"Columns, in their order." placeholder:"KEY,..."`
	Group   string   `help:"Column to group by." placeholder:"KEY"`
	Sort    string   `help:"Column to sort by, with - before it for descending." placeholder:"KEY"`
	Shared  bool     `help:"For others too, instead of for you. Over the socket views are always shared."`
	Pools   []string `name:"pool" help:"Share it only with those who have a role in this pool; repeat for more. Without it an existing view keeps its pools. A new one is for all, or for your pools where you are operator in pools only." placeholder:"NAME"`
}

// Run keeps a view.
func (c *viewSet) Run(s *cli.Session, api *client.Client) error {
	v := wire.KeptView{View: inventory.View{Name: c.View, Query: c.Query, Columns: c.Columns, Group: c.Group, Sort: c.Sort, Pools: c.Pools}, IsShared: c.Shared || len(c.Pools) > 0}
	return s.Stored(api.Views.Put(s.Ctx, c.View, v))
}

type viewDelete struct {
	Views  []string `arg:""`
	Shared bool     `help:"The shared one, where you have one of that name, too."`
}

// Run deletes views.
func (c *viewDelete) Run(s *cli.Session) error {
	return s.Each(c.Views, func(api *client.Client, name string) error { return api.DeleteView(s.Ctx, name, c.Shared) })
}
