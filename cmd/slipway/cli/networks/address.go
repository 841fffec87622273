package networks

import (
	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

func addresses(c *client.Client) client.Noun[wire.Address] { return c.Addresses.Noun }

// AddressCommand is slipway address.
type AddressCommand struct {
	List addressList `cmd:"" help:"List the static addresses of machines, and where each comes from."`
	Set  addressSet  `cmd:"" help:"Keep an address for a machine, in place of the one that it has in that subnet."`
	Free addressFree `cmd:"" help:"Free addresses that nobody asks for any more."`
}

type addressList struct {
	Subnet  string `help:"Only those of this subnet." placeholder:"NAME"`
	Machine string `help:"Only those of this machine." placeholder:"NAME"`
	Profile string `help:"Only those of the machines of this profile." placeholder:"NAME"`
	Host    string `help:"Only those of this host." placeholder:"HOST"`
}

// Run lists addresses.
func (c *addressList) Run(s *cli.Session) error {
	q := client.Query{Subnet: c.Subnet, Machine: c.Machine, Profile: c.Profile, Host: c.Host}
	return cli.ShowList(s, addresses, q, 0, []string{"ADDRESS", "SUBNET", "MACHINE", "HOST", "FROM", "SOURCE"}, func(a wire.Address) []string {
		from := a.From
		if a.IsTwice {
			from += " (twice)"
		}
		return []string{a.Address.String(), a.Subnet, a.Machine, a.Host, from, a.Source}
	})
}

type addressSet struct {
	Address string `arg:"" help:"An address in a static range of a subnet."`
	Machine string `help:"The machine that gets it." placeholder:"NAME" xor:"who" required:""`
	Host    string `help:"Or a host that no machine has." placeholder:"HOST" xor:"who" required:""`
	DryRun  bool   `help:"Only say whether it could be kept."`
}

// Run keeps an address.
func (c *addressSet) Run(s *cli.Session, api *client.Client) error {
	a, err := cli.ParseAddr("address", c.Address)
	if err != nil {
		return err
	}
	return s.Stored(api.Addresses.Keep(s.Ctx, a, c.Machine, c.Host, c.DryRun))
}

type addressFree struct {
	Addresses []string `arg:""`
	DryRun    bool     `help:"Only show what would be freed."`
}

// Run frees addresses.
func (c *addressFree) Run(s *cli.Session) error {
	return cli.Remove(s, addresses, c.Addresses, c.DryRun)
}
