package scoped

import (
	"cmp"
	"fmt"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ref"
)

// Caller is whom the inventory is shown to.
type Caller struct {
	User   string // the user's name; "" for a token without owner
	Grants inventory.Grants
	// MustSetUp: a second factor comes before anything else.
	MustSetUp bool
	// Needed is the role that the operation needs.
	Needed inventory.UserRole
	// Named collects what the texts name that the caller is shown.
	Named *ref.Book
}

// Refused says which role is missing, and who can give it.
func (c Caller) Refused(needed inventory.UserRole, where string, has inventory.UserRole) error {
	if c.MustSetUp {
		return inventory.Errorf(inventory.Forbidden, "user %s has to set up a second factor first", c.User).
			WithHint("under Settings, Account, or on the server: slipway user second-factor set %s", c.User)
	}
	is := "you have none"
	if has != "" {
		is = "you are " + string(has)
	}
	return inventory.Errorf(inventory.Forbidden, "this needs role %s%s; %s", needed, where, is+c.restOf(where)).
		WithHint("an admin can grant it: slipway user grant %s %s", OrName(c.User), needed)
}

// restOf names the pools where the caller has roles, for a caller that has none everywhere.
func (c Caller) restOf(where string) string {
	if where != " everywhere" || c.Grants.Everywhere() != "" || len(c.Grants) == 0 {
		return ""
	}
	return fmt.Sprintf(" there (you have %s)", inventory.Clean(c.Grants.String(), 120))
}

// OrName returns the user's name, or NAME where nobody is named, for commands in hints.
func OrName(user string) string {
	return cmp.Or(user, "NAME")
}
