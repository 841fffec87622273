package inventory

import (
	"slices"
	"strings"
	"time"
)

// UserRole says how much somebody may do. Each role may do all that the ones below it may.
type UserRole string

// The roles, from the least to the most.
const (
	Viewer   UserRole = "viewer"   // looks
	Operator UserRole = "operator" // acts on hosts and machines, and says what they become
	Admin    UserRole = "admin"    // decides who may come in, what is served, and what all share
)

// Roles returns every role, the least first.
func Roles() []UserRole { return []UserRole{Viewer, Operator, Admin} }

// Allows reports whether the role is enough for an operation that needs needed. The empty role allows nothing.
func (r UserRole) Allows(needed UserRole) bool {
	return r != "" && needed != "" && slices.Index(Roles(), r) >= slices.Index(Roles(), needed)
}

// lesser returns the role that allows less, which is none when either is none.
func lesser(a, b UserRole) UserRole {
	switch {
	case a == "" || b == "":
		return ""
	case a.Allows(b):
		return b
	}
	return a
}

// Grant gives a role, everywhere or in one pool.
type Grant struct {
	Role UserRole `json:"role" enum:"viewer,operator,admin"`
	Pool string   `json:"pool,omitempty" maxLength:"63" doc:"Only for the hosts and machines of this pool; without it everywhere"`
}

// String writes a grant as the command line does: operator, or operator:pool.
func (g Grant) String() string {
	if g.Pool == "" {
		return string(g.Role)
	}
	return string(g.Role) + ":" + g.Pool
}

// Grants are all that somebody may do.
type Grants []Grant

// AdminEverywhere is what the Unix socket's users have.
func AdminEverywhere() Grants { return Grants{{Role: Admin}} }

// Everywhere returns the role that is not bound to a pool, "" for none.
func (g Grants) Everywhere() UserRole { return g.of(func(x Grant) bool { return x.Pool == "" }) }

// In returns the role in a pool: the one there or the one everywhere, whichever allows more.
func (g Grants) In(pool string) UserRole {
	return g.of(func(x Grant) bool { return x.Pool == "" || x.Pool == pool })
}

// Highest returns the role that allows the most, wherever that is.
func (g Grants) Highest() UserRole { return g.of(func(Grant) bool { return true }) }

func (g Grants) of(counts func(Grant) bool) (best UserRole) {
	for _, x := range g {
		if counts(x) && (best == "" || x.Role.Allows(best)) {
			best = x.Role
		}
	}
	return best
}

// Pools returns the pools that the grants name, in order.
func (g Grants) Pools() (names []string) {
	for _, x := range g {
		if x.Pool != "" {
			names = append(names, x.Pool)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Within returns what is left of the grants of a token when its owner has only these: never more than either allows.
func (g Grants) Within(owner Grants) Grants {
	left := Grants{}
	add := func(role UserRole, pool string) {
		if role != "" {
			left = append(left, Grant{Role: role, Pool: pool})
		}
	}
	add(lesser(g.Everywhere(), owner.Everywhere()), "")
	names := append(g.Pools(), owner.Pools()...)
	slices.Sort(names)
	for _, pool := range slices.Compact(names) {
		if role := lesser(g.In(pool), owner.In(pool)); role != left.Everywhere() {
			add(role, pool)
		}
	}
	return left
}

// Covers reports whether the grants allow all that others do.
func (g Grants) Covers(others Grants) bool {
	for _, x := range others {
		has := g.Everywhere()
		if x.Pool != "" {
			has = g.In(x.Pool)
		}
		if !has.Allows(x.Role) {
			return false
		}
	}
	return true
}

// String lists the grants with commas.
func (g Grants) String() string {
	var words []string
	for _, x := range g {
		words = append(words, x.String())
	}
	return strings.Join(words, ", ")
}

// Validate checks grants by themselves; whether their pools exist is for the store to say.
func (g Grants) Validate() error {
	if len(g) > 256 {
		return Errorf(Invalid, "there are %d grants; at most 256 are allowed", len(g))
	}
	seen := map[string]bool{}
	for _, x := range g {
		if !slices.Contains(Roles(), x.Role) {
			return Errorf(Invalid, "%q is not a role", Clean(string(x.Role), 40)).WithHint("use viewer, operator or admin")
		}
		if x.Pool != "" {
			if err := checkField("grants", "pool", x.Pool); err != nil {
				return err
			}
		}
		if seen[x.Pool] {
			return Errorf(Invalid, "two grants speak of %s", orEverywhere(x.Pool)).WithHint("the higher role holds all that the lower does: keep that")
		}
		seen[x.Pool] = true
	}
	return nil
}

func orEverywhere(pool string) string {
	if pool == "" {
		return "everywhere"
	}
	return "pool " + pool
}

// User is a person who logs in.
type User struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName,omitempty"`
	// PasswordHash is a PHC string of argon2id, "" when the user has no password. It never leaves the server.
	PasswordHash string `json:"-"`
	HasPassword  bool   `json:"hasPassword,omitempty" readOnly:"true"`
	Grants       Grants `json:"grants"`
	IsDisabled   bool   `json:"isDisabled,omitempty" doc:"Comes in no more, and neither do the user's tokens"`
	// NeedsSecondFactor asks for one of this user, whatever the settings say of the role.
	NeedsSecondFactor bool   `json:"needsSecondFactor,omitempty" doc:"Has to set up a second factor before anything else"`
	HasSecondFactor   bool   `json:"hasSecondFactor,omitempty" readOnly:"true"`
	SealedFactors     []byte `json:"-"` // second factors, sealed; SaveFactors writes them
	// Issuer and Subject name the user at a provider of identities, both or neither.
	Issuer    string    `json:"issuer,omitempty" doc:"The provider that vouches for the user, where that is not a password here"`
	Subject   string    `json:"subject,omitempty" doc:"The user's name at that provider"`
	LoginAt   time.Time `json:"loginAt,omitzero" readOnly:"true" doc:"The last login"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	Version   int64     `json:"version"`
}

// IsExternal reports whether another provider vouches for the user.
func (u *User) IsExternal() bool { return u.Issuer != "" }

// Validate checks a user by itself.
func (u *User) Validate() error {
	if err := checkField("name", "user", u.Name); err != nil {
		return err
	}
	for field, text := range map[string]string{"displayName": u.DisplayName, "issuer": u.Issuer, "subject": u.Subject} {
		if err := CheckText("user "+u.Name+": "+field, text, 255); err != nil {
			return err
		}
	}
	if (u.Issuer == "") != (u.Subject == "") {
		return Errorf(Invalid, "user %s has an issuer without a subject, or a subject without an issuer", u.Name).WithHint("give both or neither")
	}
	return u.Grants.Validate()
}

// Login is one browser in which somebody has logged in.
type Login struct {
	ID     string `json:"id"`
	Hash   string `json:"-"`               // SHA-256 of the cookie, in hex
	User   string `json:"user,omitempty"`  // one of User and Token
	Token  string `json:"token,omitempty"` // logged in with this token, and may do what it may
	Source string `json:"source,omitempty" doc:"The address it came from"`
	Agent  string `json:"agent,omitempty" doc:"What the browser calls itself"`

	CreatedAt time.Time `json:"createdAt"`
	SeenAt    time.Time `json:"seenAt"`
	ExpiresAt time.Time `json:"expiresAt" doc:"It ends then at the latest"`
}
