package transfer

import (
	"strconv"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/option"
)

// Classes of DHCP clients. They come in YAML only: their texts have blanks.

func classFields() []field[inventory.Class] {
	type class = inventory.Class
	same := func(s string) (string, error) { return s, nil }
	back := func(s string) string { return s }
	return []field[class]{
		keeping(textField("name", func(c *class) *string { return &c.Name }, func(s string) error { return inventory.CheckName("class", s) })),
		listField("vendorClasses", func(c *class) *[]string { return &c.VendorClasses }, same, back),
		listField("userClasses", func(c *class) *[]string { return &c.UserClasses }, same, back),
		listField("archs", func(c *class) *[]int { return &c.Archs }, parseArch, strconv.Itoa),
		listField("macPrefixes", func(c *class) *[]string { return &c.MACPrefixes }, same, back),
		numberField("priority", func(c *class) *int { return &c.Priority }),
		listField("options", func(c *class) *[]option.Option { return &c.Options }, inventory.ParseOption, writeOption),
		listField("options6", func(c *class) *[]option.Option { return &c.Options6 }, inventory.ParseOption, writeOption),
	}
}

func parseArch(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, inventory.Errorf(inventory.Invalid, "%q is not a number of an architecture", clip(s))
	}
	return n, nil
}

func (d *Document) checkClasses(p *problems) {
	byName := newOnce(p)
	for _, r := range d.Classes {
		if p.full() {
			return
		}
		if r.Value.Name == "" && !r.isBroken {
			p.add(r.File, r.Line, inventory.Errorf(inventory.Invalid, "the class has no name"))
			continue
		}
		// Into the form that is kept; Plan checks the whole.
		_ = inventory.CheckOptions(option.OfClass, "", "", r.Value.Options, false)
		_ = inventory.CheckOptions(option.OfClass, "", "", r.Value.Options6, true)
		byName.see("class", r.Value.Name, r.File, r.Line)
	}
}
