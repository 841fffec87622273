package networks

import (
	"fmt"
	"strings"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/cmd/slipway/cli/nouns"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/option"
)

// ClassCommand is slipway class.
type ClassCommand struct {
	List   nouns.List[class, inventory.Class]        `cmd:"" help:"List classes of DHCP clients."`
	Show   nouns.Show[class, inventory.Class]        `cmd:"" help:"Show a class with its options."`
	Create nouns.Create[classFlags, inventory.Class] `cmd:"" help:"Add a class: which clients are in it, and the options that they get."`
	Update nouns.Set[classFlags, inventory.Class]    `cmd:"" help:"Change a class; other settings stay."`
	Delete nouns.Delete[class, inventory.Class]      `cmd:"" help:"Delete classes."`
}

// class is how people read a class.
type class struct{ nouns.Plain[inventory.Class] }

// Fields implements nouns.Noun.
func (class) Fields(f *nouns.Fields, c inventory.Class) {
	f.Both("name", c.Name)
	f.Both("clients", classClients(c))
	f.Both("priority", fmt.Sprint(c.Priority))
	f.Listed("options", fmt.Sprint(len(c.Options)+len(c.Options6)))
	f.Shown("option", optionTexts(c.Options)...)
	f.Shown("IPv6 option", optionTexts(c.Options6)...)
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

// classFlags are what can be said of a class; nil is not given.
type classFlags struct {
	class
	VendorClass []string `sep:"none" help:"Vendor class (option 60) with * for any text, such as onie_vendor:*; repeat for more." placeholder:"TEXT"`
	UserClass   []string `sep:"none" help:"User class (option 77) with * for any text; repeat for more." placeholder:"TEXT"`
	Arch        []int    `help:"Client architecture (option 93), a number; repeat for more." placeholder:"N"`
	MACPrefix   []string `name:"mac-prefix" help:"Beginning of a MAC, such as 00:04:f2; repeat for more." placeholder:"PREFIX"`
	Priority    *int     `help:"Of several classes with an option the highest counts." placeholder:"N"`
	Option      []string `sep:"none" help:"A DHCPv4 option, NAME=VALUE or NUMBER/TYPE=VALUE; repeat for more, give it empty for none." placeholder:"OPTION"`
	Option6     []string `sep:"none" name:"option6" help:"A DHCPv6 option in the same form." placeholder:"OPTION"`
}

// Apply implements nouns.Flags.
func (f classFlags) Apply(_ *cli.Session, c *inventory.Class) error {
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
func setOptions(to *[]option.Option, given []string) error {
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

// optionTexts writes options as the flags take them.
func optionTexts(list []option.Option) (out []string) {
	for i := range list {
		out = append(out, list[i].Text())
	}
	return out
}
