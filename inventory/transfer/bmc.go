package transfer

import (
	"time"

	"slipway.dev/slipway/inventory"
)

// bmcFields call a BMC by the name of its host. No file ever holds a password: one that is stored stays, as long as
// the same controller is asked; a new BMC has none until it is set.
func bmcFields() []field[inventory.BMC] {
	type bmc = inventory.BMC
	return []field[bmc]{
		keeping(textField("host", func(b *bmc) *inventory.HostID { return &b.HostID }, named("host"))),
		keeping(textField("driver", func(b *bmc) *inventory.BMCDriver { return &b.Driver }, nil)),
		textField("address", func(b *bmc) *string { return &b.Address }, plain("address")),
		textField("username", func(b *bmc) *string { return &b.Username }, plain("username")),
		textField("system", func(b *bmc) *string { return &b.System }, plain("system")),
		flagField("insecureSkipVerify", func(b *bmc) *bool { return &b.InsecureSkipVerify }),
		textField("fingerprint", func(b *bmc) *string { return &b.Fingerprint }, plain("fingerprint")),
		parsedField("mac", func(b *bmc) *inventory.MAC { return &b.MAC }, inventory.ParseMAC, func(m inventory.MAC) string { return string(m) }),
		mapField("options", func(b *bmc) *map[string]string { return &b.Options }),
	}
}

// planBMCs plans BMCs, in which hosts are called by their names.
func planBMCs(p *problems, d Document, c Current, diff *Diff) {
	hosts := hostNames(c, diff)
	bmcs := bmcNoun()
	valid := bmcs.check
	bmcs.check = func(b *inventory.BMC) error {
		if !hosts[string(b.HostID)] {
			return inventory.Errorf(inventory.NotFound, "bmc: there is no host %s", b.HostID).WithHint("list them with: slipway host list")
		}
		return valid(b)
	}
	all := bmcs.plan(p, d, c, diff)
	holder := map[string]inventory.HostID{}
	for _, b := range namedBMCs(c) { // compared with what is there now, too: rows are applied one after the other
		holder[controller(b)] = b.HostID
	}
	for _, r := range d.BMCs {
		b := all[string(r.Value.HostID)]
		key := controller(b)
		if other, has := holder[key]; key != "" && has && other != b.HostID {
			p.add(r.File, r.Line, inventory.Errorf(inventory.Conflict, "the %s controller at %s powers host %s", b.Driver, b.Address, other).
				WithHint("one controller powers one host: correct the address, or take it away from host %s first", other))
		}
		holder[key] = b.HostID
	}
}

// controller tells what a BMC speaks to; "" for those that have nothing behind their address.
func controller(b inventory.BMC) string {
	if b.Driver == inventory.WoL || b.Driver == inventory.Manual || b.Address+b.System == "" {
		return ""
	}
	return string(b.Driver) + "\n" + b.Address + "\n" + b.System
}

// namedBMCs returns the BMCs with the names of hosts instead of their ids.
func namedBMCs(c Current) []inventory.BMC {
	names := namesByID(c)
	var bmcs []inventory.BMC
	for _, b := range c.BMCs {
		if b.HostID = inventory.HostID(names[b.HostID]); b.HostID != "" {
			bmcs = append(bmcs, b)
		}
	}
	return bmcs
}

// saveBMC stores a BMC that has the name of its host as its id.
func saveBMC(tx inventory.Tx, v *inventory.BMC, isNew bool, now time.Time) error {
	h, err := tx.FindHostByName(string(v.HostID))
	if err != nil {
		return err
	}
	b := *v
	b.HostID = h.ID
	if !isNew {
		old, err := tx.FindBMC(h.ID)
		if err != nil {
			return err
		}
		if controller(old) != controller(b) || old.Username != b.Username { // a password goes to nobody else
			b.Sealed, b.Others = nil, nil
		}
	}
	return tx.SaveBMC(&b, now)
}
