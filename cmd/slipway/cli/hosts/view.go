package hosts

import (
	"strings"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

func views(c *client.Client) client.Noun[client.View] { return c.Views }

// ViewCommand is slipway view.
type ViewCommand struct {
	List   viewList   `cmd:"" help:"List views of the hosts: your own, and those that are shared with you."`
	Show   viewShow   `cmd:"" help:"Show a view."`
	Set    viewSet    `cmd:"" help:"Keep a view of the hosts, whether it exists or not."`
	Delete viewDelete `cmd:"" help:"Delete views."`
}

type viewList struct{}

// Run lists views.
func (*viewList) Run(s *cli.Session) error {
	return cli.ShowList(s, views, client.Query{}, 0, []string{"NAME", "OWNER", "QUERY", "GROUP", "SORT", "COLUMNS"}, func(v client.View) []string {
		owner := v.Owner
		if v.IsShared {
			owner = "(shared)"
		}
		if len(v.Pools) > 0 {
			owner = "(" + strings.Join(v.Pools, ",") + ")"
		}
		return []string{v.Name, owner, v.Query, v.Group, v.Sort, strings.Join(v.Columns, ",")}
	})
}

type viewShow struct {
	View string `arg:""`
}

// Run shows a view.
func (c *viewShow) Run(s *cli.Session) error {
	return cli.ShowOne(s, views, c.View, func(t *cli.TableWriter, v client.View) {
		t.Field("name", v.Name)
		t.Field("owner", v.Owner)
		t.Field("shared", cli.YesNo(v.IsShared))
		t.Field("pools", strings.Join(v.Pools, ","))
		t.Field("query", v.Query)
		t.Field("columns", strings.Join(v.Columns, ","))
		t.Field("group", v.Group)
		t.Field("sort", v.Sort)
		t.Field("changed", cli.TimeText(v.UpdatedAt))
	})
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
	v := client.View{View: inventory.View{Name: c.View, Query: c.Query, Columns: c.Columns, Group: c.Group, Sort: c.Sort, Pools: c.Pools}, IsShared: c.Shared || len(c.Pools) > 0}
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
