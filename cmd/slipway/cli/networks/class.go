package networks

import (
	"fmt"
	"strings"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

func classes(c *client.Client) client.Noun[inventory.Class] { return c.Classes }

// ClassCommand is slipway class.
type ClassCommand struct {
	List   classList   `cmd:"" help:"List classes of DHCP clients."`
	Show   classShow   `cmd:"" help:"Show a class with its options."`
	Create classCreate `cmd:"" help:"Add a class: which clients are in it, and the options that they get."`
	Update classUpdate `cmd:"" help:"Change a class; other settings stay."`
	Delete classDelete `cmd:"" help:"Delete classes."`
}

type classList struct{}

// Run lists classes.
func (*classList) Run(s *cli.Session) error {
	return cli.ShowList(s, classes, client.Query{}, 0, []string{"NAME", "CLIENTS", "PRIORITY", "OPTIONS"}, func(c inventory.Class) []string {
		return []string{c.Name, classClients(c), fmt.Sprint(c.Priority), fmt.Sprint(len(c.Options) + len(c.Options6))}
	})
}

// classClients says which clients are in a class.
func classClients(c inventory.Class) string {
	var all []string
	for _, l := range []struct {
		what string
		list []string
	}{{"vendor class", c.VendorClasses}, {"user class", c.UserClasses}, {"MAC", c.MACPrefixes}} {
		if len(l.list) > 0 {
			all = append(all, l.what+" "+strings.Join(l.list, " or "))
		}
	}
	if len(c.Archs) > 0 {
		all = append(all, "architecture "+strings.Trim(fmt.Sprint(c.Archs), "[]"))
	}
	return strings.Join(all, ", ")
}

type classShow struct {
	Class string `arg:""`
}

// Run shows a class.
func (c *classShow) Run(s *cli.Session) error {
	return cli.ShowOne(s, classes, c.Class, func(t *cli.TableWriter, v inventory.Class) {
		t.Field("name", v.Name)
		t.Field("clients", classClients(v))
		t.Field("priority", fmt.Sprint(v.Priority))
		showOptions(t, "option", v.Options)
		showOptions(t, "IPv6 option", v.Options6)
	})
}

// classFlags are what can be said of a class; nil is not given.
type classFlags struct {
	VendorClass []string `sep:"none" help:"Vendor class (option 60) with * for any text, such as onie_vendor:*; repeat for more." placeholder:"TEXT"`
	UserClass   []string `sep:"none" help:"User class (option 77) with * for any text; repeat for more." placeholder:"TEXT"`
	Arch        []int    `help:"Client architecture (option 93), a number; repeat for more." placeholder:"N"`
	MACPrefix   []string `name:"mac-prefix" help:"Beginning of a MAC, such as 00:04:f2; repeat for more." placeholder:"PREFIX"`
	Priority    *int     `help:"Of several classes with an option the highest counts." placeholder:"N"`
	Option      []string `sep:"none" help:"A DHCPv4 option, NAME=VALUE or NUMBER/TYPE=VALUE; repeat for more, give it empty for none." placeholder:"OPTION"`
	Option6     []string `sep:"none" name:"option6" help:"A DHCPv6 option in the same form." placeholder:"OPTION"`
	DryRun      bool     `help:"Only show what would change."`
}

func (f *classFlags) apply(c *inventory.Class) error {
	setList(&c.VendorClasses, f.VendorClass)
	setList(&c.UserClasses, f.UserClass)
	setList(&c.MACPrefixes, f.MACPrefix)
	if f.Arch != nil {
		c.Archs = f.Arch
	}
	cli.Set(&c.Priority, f.Priority)
	if err := setOptions(&c.Options, f.Option); err != nil {
		return err
	}
	return setOptions(&c.Options6, f.Option6)
}

// setList replaces a list by what flags say; a single empty flag empties it.
func setList(to *[]string, given []string) {
	switch {
	case given == nil:
	case len(given) == 1 && given[0] == "":
		*to = nil
	default:
		*to = given
	}
}

// setOptions replaces options by what flags say; a single empty flag takes all away.
func setOptions(to *[]inventory.Option, given []string) error {
	if given == nil {
		return nil
	}
	*to = nil
	for _, text := range given {
		if text == "" && len(given) == 1 {
			return nil
		}
		o, err := inventory.ParseOption(text)
		if err != nil {
			return err
		}
		*to = append(*to, o)
	}
	return nil
}

// showOptions lists options as the flags take them.
func showOptions(t *cli.TableWriter, name string, list []inventory.Option) {
	for i := range list {
		t.Field(name, list[i].Text())
	}
}

type classCreate struct {
	Name string `arg:"" help:"Its name, a DNS label."`
	classFlags
}

// Run adds a class.
func (c *classCreate) Run(s *cli.Session) error {
	v := inventory.Class{Name: c.Name}
	if err := c.apply(&v); err != nil {
		return err
	}
	return cli.Write(s, classes, "POST", "", v, c.DryRun)
}

type classUpdate struct {
	Class string `arg:""`
	classFlags
}

// Run changes a class as it is stored now.
func (c *classUpdate) Run(s *cli.Session, api *client.Client) error {
	v, err := api.Classes.Get(s.Ctx, c.Class)
	if err != nil {
		return err
	}
	if err := c.apply(&v); err != nil {
		return err
	}
	return cli.Write(s, classes, "PUT", c.Class, v, c.DryRun, client.IfVersion(v.Version))
}

type classDelete struct {
	Classes []string `arg:""`
	DryRun  bool     `help:"Only show what would be deleted."`
}

// Run deletes classes.
func (c *classDelete) Run(s *cli.Session) error { return cli.Remove(s, classes, c.Classes, c.DryRun) }
