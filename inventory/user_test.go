package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGrants(t *testing.T) {
	v, o, a := Grant{Role: Viewer}, Grant{Role: Operator}, Grant{Role: Admin}
	in := func(r UserRole, pool string) Grant { return Grant{Role: r, Pool: pool} }
	for _, tc := range []struct {
		name         string
		token, owner Grants
		want         Grants
	}{
		{"an admin's token of an operator", Grants{a}, Grants{o}, Grants{o}},
		{"a viewer's token of an admin", Grants{v}, Grants{a}, Grants{v}},
		{"everywhere, of who is in a pool", Grants{o}, Grants{in(Operator, "p")}, Grants{in(Operator, "p")}},
		{"in a pool, of who is everywhere", Grants{in(Operator, "p")}, Grants{a}, Grants{in(Operator, "p")}},
		{"in another pool", Grants{in(Operator, "p")}, Grants{in(Admin, "q")}, Grants{}},
		{"more in a pool than everywhere", Grants{a}, Grants{v, in(Operator, "p")}, Grants{v, in(Operator, "p")}},
		{"nothing", nil, Grants{a}, Grants{}},
		{"of nothing", Grants{a}, nil, Grants{}},
	} {
		if diff := cmp.Diff(tc.want, tc.token.Within(tc.owner)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
		if covers := tc.owner.Covers(tc.token); covers != (len(tc.token) == 0 || cmp.Equal(tc.token.Within(tc.owner), tc.token)) {
			t.Errorf("%s: covered %v", tc.name, covers)
		}
	}
	if UserRole("king").Allows(Viewer) || UserRole("").Allows("") || !Admin.Allows(Viewer) || Viewer.Allows(Operator) {
		t.Error("roles are out of order")
	}
}

func TestUserValidate(t *testing.T) {
	valid := func() *User {
		return &User{Name: "anna", DisplayName: "Anna", Grants: Grants{{Role: Admin}, {Role: Operator, Pool: "web"}}, Issuer: "https://id.example", Subject: "42"}
	}
	testValidate(t, valid, (*User).Validate, []invalid[User]{
		{"no name", func(u *User) { u.Name = "" }, "not a name for a user"},
		{"a control character", func(u *User) { u.DisplayName = "\x1b[2J" }, "control character"},
		{"an issuer without subject", func(u *User) { u.Subject = "" }, "subject"},
		{"no such role", func(u *User) { u.Grants[0].Role = "king" }, "not a role"},
		{"no such pool name", func(u *User) { u.Grants[1].Pool = "A B" }, "not a name for a pool"},
		{"two grants in one place", func(u *User) { u.Grants[1].Pool = "" }, "two grants"},
	})
}
