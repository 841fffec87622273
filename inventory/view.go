package inventory

import (
	"strings"
	"time"
)

// View is a way to look at the hosts, kept under a name: what is searched for, and how it is shown.
type View struct {
	Name  string `json:"name" required:"false" maxLength:"64" doc:"In people's words, such as Rack 3, failing"`
	Owner string `json:"owner,omitempty" readOnly:"true" doc:"The user whose it is; absent for one that all share"`
	// Query is in the language of docs/search.md. Only the reader of a view reads it.
	Query   string   `json:"query,omitempty" maxLength:"1000" doc:"As in the search box: rack=R3 memory>256G"`
	Columns []string `json:"columns,omitempty" maxItems:"64" doc:"In their order; absent for the usual ones"`
	Group   string   `json:"group,omitempty" maxLength:"64" doc:"Column that the hosts are grouped by"`
	Sort    string   `json:"sort,omitempty" maxLength:"65" doc:"Column, with - before it for descending"`
	// Pools narrow down who sees a shared view, because its name and query tell of what is in them.
	Pools []string `json:"pools,omitempty" maxItems:"256" doc:"Of a shared view: only for those who have a role in one of these pools, or everywhere; absent for all"`

	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	Version   int64     `json:"version"`
}

// Validate checks a view.
func (v *View) Validate() error {
	if v.Name == "" || strings.TrimSpace(v.Name) != v.Name || len(v.Name) > 64 {
		return Errorf(Invalid, "%q is not a name for a view", Clean(v.Name, 80)).WithHint("use 1 to 64 bytes, without spaces at the ends")
	}
	for _, t := range []struct {
		field, text string
		max         int
	}{{"name", v.Name, 64}, {"query", v.Query, 1000}, {"group", v.Group, 64}, {"sort", v.Sort, 65}} {
		if err := CheckText("view: "+t.field, t.text, t.max); err != nil {
			return err
		}
		if strings.ContainsAny(t.text, "\n\t") {
			return Errorf(Invalid, "view: %s has more than one line", t.field)
		}
	}
	if len(v.Columns) > 64 {
		return Errorf(Invalid, "view %s has %d columns; at most 64 are allowed", v.Name, len(v.Columns))
	}
	if v.Owner != "" && len(v.Pools) > 0 {
		return Errorf(Invalid, "view %s is a user's own and names pools", v.Name).At("pools").WithHint("only shared views are of pools: leave them out, or share it")
	}
	if len(v.Pools) > 256 {
		return Errorf(Invalid, "view %s names %d pools; at most 256 are allowed", v.Name, len(v.Pools)).At("pools")
	}
	for _, p := range v.Pools {
		if err := CheckName("pool", p); err != nil {
			return err
		}
	}
	for _, c := range v.Columns {
		if err := CheckText("view: column", c, 280); err != nil {
			return err
		}
	}
	return nil
}
