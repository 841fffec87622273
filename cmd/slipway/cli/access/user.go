// Package access owns the commands for who may do what: slipway user, token, tls, acceptrule and whoami. It decides nothing: it calls
// the REST API.
package access

import (
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"strings"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/cmd/slipway/cli/nouns"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// UserCommand is slipway user.
type UserCommand struct {
	List     nouns.List[user, inventory.User]   `cmd:"" help:"List users."`
	Show     nouns.Show[user, inventory.User]   `cmd:"" help:"Show a user."`
	Create   userCreate                         `cmd:"" help:"Make a user, with a password."`
	Password userPassword                       `cmd:"" help:"Set a user's password; the user's logins end."`
	Grant    userGrant                          `cmd:"" help:"Give a user a role, everywhere or in a pool."`
	Revoke   userRevoke                         `cmd:"" help:"Take from a user the role everywhere, or the one in a pool."`
	Disable  userDisable                        `cmd:"" help:"Keep a user out, with the user's tokens."`
	Enable   userEnable                         `cmd:"" help:"Let a user in again."`
	Delete   nouns.Delete[user, inventory.User] `cmd:"" help:"Delete users, with their tokens."`

	SecondFactor userFactor `cmd:"" help:"Authenticator apps in addition to the password."`
}

// user is how people read a user.
type user struct{ nouns.Plain[inventory.User] }

// Fields implements nouns.Noun.
func (user) Fields(f *nouns.Fields, u inventory.User) {
	f.Both("name", u.Name)
	f.Both("full name", u.DisplayName)
	f.Both("grants", u.Grants.String())
	f.Both("state", userState(u))
	f.Shown("second factor", factorState(u))
	f.Shown("issuer", u.Issuer)
	f.Shown("subject", u.Subject)
	f.Both("last login", cli.TimeText(u.LoginAt))
	f.Shown("created", cli.TimeText(u.CreatedAt))
}

func userState(u inventory.User) string {
	switch {
	case u.IsDisabled:
		return "disabled"
	case !u.HasPassword && !u.IsExternal():
		return "no password"
	}
	return "enabled"
}

// grantFlags say what somebody may do.
type grantFlags struct {
	Role string   `help:"viewer, operator or admin." placeholder:"ROLE"`
	Pool []string `help:"Only for what is in these pools; without it everywhere." placeholder:"POOL"`
}

// grants reads the flags; without a role there are none.
func (f *grantFlags) grants() (inventory.Grants, error) {
	if f.Role == "" {
		if len(f.Pool) > 0 {
			return nil, cli.Usage("say which with --role viewer, operator or admin", "--pool needs a role")
		}
		return nil, nil
	}
	g := inventory.Grants{}
	if len(f.Pool) == 0 {
		g = append(g, inventory.Grant{Role: inventory.UserRole(f.Role)})
	}
	for _, pool := range f.Pool {
		g = append(g, inventory.Grant{Role: inventory.UserRole(f.Role), Pool: pool})
	}
	if err := g.Validate(); err != nil {
		return nil, cli.Usage("use viewer, operator or admin, and each pool once", "%v", err)
	}
	return g, nil
}

// passwordFlags say where a password comes from; there is no flag with the password itself, which everybody on the machine
// could see.
type passwordFlags struct {
	PasswordFile string `help:"File with the password; - is standard input, or a question at a terminal. Without it one is made and shown." placeholder:"FILE"`
}

// password reads the password, or makes one.
func (f *passwordFlags) password(s *cli.Session, user string) (password string, isMade bool, err error) {
	if f.PasswordFile != "" {
		password, err = s.ReadSecret("password of "+user, f.PasswordFile)
		return password, false, err
	}
	return newPassword(), true, nil
}

// newPassword draws a password of 100 random bits that can be read over the telephone.
func newPassword() string {
	b := make([]byte, 13)
	_, _ = rand.Read(b) // never fails
	text := strings.ToLower(base32.StdEncoding.EncodeToString(b))[:20]
	return text[:5] + "-" + text[5:10] + "-" + text[10:15] + "-" + text[15:]
}

// tellPassword shows a password that was made; it is the only thing on standard output.
func tellPassword(s *cli.Session, user, password string) error {
	s.Say("this is the password of user %s; it is shown this once", user)
	_, err := fmt.Fprintln(s.Out, password)
	return err
}

type userCreate struct {
	Name          string `arg:"" help:"A DNS label: the name to log in with."`
	FullName      string `help:"As people call the user." placeholder:"TEXT"`
	grantFlags    `embed:""`
	passwordFlags `embed:""`
}

// Run makes a user. The password is set first thing after: until then nobody can log in.
func (c *userCreate) Run(s *cli.Session, api *client.Client) error {
	grants, err := c.grants()
	if err != nil {
		return err
	}
	password, isMade, err := c.password(s, c.Name)
	if err != nil {
		return err
	}
	u, err := api.Users.Create(s.Ctx, inventory.User{Name: c.Name, DisplayName: c.FullName, Grants: grants})
	if err != nil {
		return err
	}
	if err := api.SetPassword(s.Ctx, c.Name, password); err != nil {
		s.Say("user %s is there, but has no password: set one with: slipway user password %s", c.Name, c.Name)
		return err
	}
	if len(grants) == 0 {
		s.Say("user %s may do nothing yet: slipway user grant %s ROLE", c.Name, c.Name)
	}
	if isMade {
		return tellPassword(s, c.Name, password)
	}
	u.HasPassword = true
	return s.Stored(u, nil)
}

type userPassword struct {
	User          string `arg:""`
	passwordFlags `embed:""`
}

// Run sets a password.
func (c *userPassword) Run(s *cli.Session, api *client.Client) error {
	password, isMade, err := c.password(s, c.User)
	if err != nil {
		return err
	}
	if err := api.SetPassword(s.Ctx, c.User, password); err != nil || !isMade {
		return err
	}
	return tellPassword(s, c.User, password)
}

// change reads a user, changes it, and stores it unless somebody else has changed it meanwhile.
func changeUser(s *cli.Session, api *client.Client, name string, edit func(*inventory.User)) error {
	u, err := api.Users.Get(s.Ctx, name)
	if err != nil {
		return err
	}
	edit(&u)
	return s.Stored(api.Users.Put(s.Ctx, name, u, client.IfVersion(u.Version)))
}

// without returns grants without those that speak of a pool, "" for everywhere.
func without(g inventory.Grants, pool string) (rest inventory.Grants) {
	for _, x := range g {
		if x.Pool != pool {
			rest = append(rest, x)
		}
	}
	return rest
}

type userGrant struct {
	User string   `arg:""`
	Role string   `arg:"" enum:"viewer,operator,admin" help:"viewer, operator or admin."`
	Pool []string `help:"Only for what is in these pools; without it everywhere." placeholder:"POOL"`
}

// Run gives a role, in place of the one that the user had there.
func (c *userGrant) Run(s *cli.Session, api *client.Client) error {
	given, err := (&grantFlags{Role: c.Role, Pool: c.Pool}).grants()
	if err != nil {
		return err
	}
	return changeUser(s, api, c.User, func(u *inventory.User) {
		for _, g := range given {
			u.Grants = append(without(u.Grants, g.Pool), g)
		}
	})
}

type userRevoke struct {
	User string   `arg:""`
	Pool []string `help:"The roles in these pools; without it the one everywhere." placeholder:"POOL"`
}

// Run takes roles.
func (c *userRevoke) Run(s *cli.Session, api *client.Client) error {
	return changeUser(s, api, c.User, func(u *inventory.User) {
		if len(c.Pool) == 0 {
			u.Grants = without(u.Grants, "")
		}
		for _, pool := range c.Pool {
			u.Grants = without(u.Grants, pool)
		}
	})
}

type userDisable struct {
	User string `arg:""`
}

// Run disables a user.
func (c *userDisable) Run(s *cli.Session, api *client.Client) error {
	return changeUser(s, api, c.User, func(u *inventory.User) { u.IsDisabled = true })
}

type userEnable struct {
	User string `arg:""`
}

// Run enables a user.
func (c *userEnable) Run(s *cli.Session, api *client.Client) error {
	return changeUser(s, api, c.User, func(u *inventory.User) { u.IsDisabled = false })
}

type userFactor struct {
	Show    userFactorShow    `cmd:"" help:"Show which second factors a user has."`
	Set     userFactorSet     `cmd:"" help:"Set up an authenticator app for a user, by its first code. Security keys are registered in a browser."`
	Remove  userFactorRemove  `cmd:"" help:"Take a user's second factors away, such as when the app or a security key is lost."`
	Require userFactorRequire `cmd:"" help:"Have a user set up a second factor before anything else."`
}

// factorState is a user's second factor, in a word.
func factorState(u inventory.User) string {
	switch {
	case u.HasSecondFactor:
		return "set up"
	case u.NeedsSecondFactor:
		return "has to be set up"
	}
	return "none"
}

type userFactorShow struct {
	User string `arg:""`
}

// Run shows the second factors of a user.
func (c *userFactorShow) Run(s *cli.Session, api *client.Client) error {
	return cli.Answered(api.SecondFactors(s.Ctx, c.User)).Show(s, func(t *cli.TableWriter, f wire.SecondFactors) {
		t.Row("FACTOR", "SITE", "ADDED", "USED")
		if f.App {
			t.Row("authenticator app", "", "", "")
		}
		for _, k := range f.SecurityKeys {
			t.Row("security key "+k.Name, k.Site, cli.TimeText(k.AddedAt), cli.TimeText(k.UsedAt))
		}
		if f.App || len(f.SecurityKeys) > 0 {
			t.Row(fmt.Sprintf("%d recovery codes", f.RecoveryCodes), "", "", "")
		}
	})
}

type userFactorSet struct {
	User string `arg:""`
}

// Run shows the secret to the person at the terminal, and asks for the first code. The recovery codes are the only thing on standard
// output.
func (c *userFactorSet) Run(s *cli.Session, api *client.Client) error {
	f, err := api.BeginSecondFactor(s.Ctx, c.User)
	if err != nil {
		return err
	}
	s.Say("put this into the authenticator app of user %s: %s", c.User, f.Secret)
	s.Say("or as an address: %s", f.URL)
	code, err := s.ReadSecret("code that the app shows now", "-")
	if err != nil {
		return err
	}
	codes, err := api.SetSecondFactor(s.Ctx, c.User, f.Ticket, strings.TrimSpace(code))
	if err != nil {
		return err
	}
	s.Say("user %s has a second factor; these recovery codes are shown this once, and each is good once in place of a code:", c.User)
	_, err = fmt.Fprintln(s.Out, strings.Join(codes, "\n"))
	return err
}

type userFactorRemove struct {
	User string `arg:""`
	Key  string `help:"Only the security key with this name."`
}

// Run takes second factors away.
func (c *userFactorRemove) Run(s *cli.Session, api *client.Client) error {
	return api.RemoveSecondFactor(s.Ctx, c.User, c.Key)
}

type userFactorRequire struct {
	User string `arg:""`
	Off  bool   `help:"No longer."`
}

// Run asks for a second factor of a user.
func (c *userFactorRequire) Run(s *cli.Session, api *client.Client) error {
	return changeUser(s, api, c.User, func(u *inventory.User) { u.NeedsSecondFactor = !c.Off })
}
