package access

import (
	"fmt"
	"strings"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

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
func (c *userFactorRequire) Run(s *cli.Session) error {
	return changeUser(s, c.User, func(u *inventory.User) { u.NeedsSecondFactor = !c.Off })
}
