package inventory

import (
	"regexp"
	"strings"
	"time"

	"slipway.dev/slipway/inventory/option"
)

// Class groups DHCP clients by what their packets say, and gives them options. A client is in it when each list that has
// something has one that fits.
type Class struct {
	Name          string   `json:"name"`
	VendorClasses []string `json:"vendorClasses,omitempty" doc:"Option 60, for IPv6 16; * stands for any text, as in onie_vendor:*"`
	UserClasses   []string `json:"userClasses,omitempty" doc:"Option 77, for IPv6 15; * stands for any text"`
	Archs         []int    `json:"archs,omitempty" doc:"Client architecture: option 93, for IPv6 61"`
	MACPrefixes   []string `json:"macPrefixes,omitempty" doc:"Beginnings of MACs, such as 00:04:f2"`
	Priority      int      `json:"priority,omitempty" doc:"Of several classes with an option the highest priority counts, then the name"`

	Options  []option.Option `json:"options,omitempty" doc:"DHCPv4 options"`
	Options6 []option.Option `json:"options6,omitempty" doc:"DHCPv6 options"`

	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	Version   int64     `json:"version"`
}

// Validate checks a class, and brings it into the form in which it is kept.
func (c *Class) Validate() error {
	if err := checkField("name", "class", c.Name); err != nil {
		return err
	}
	if len(c.VendorClasses)+len(c.UserClasses)+len(c.Archs)+len(c.MACPrefixes) == 0 {
		return Errorf(Invalid, "class %s says of no client that it is in it", c.Name).At("vendorClasses").
			WithHint("give a vendor class, a user class, an architecture or the beginning of a MAC; options for everybody belong to the subnet")
	}
	for field, list := range map[string][]string{"vendorClasses": c.VendorClasses, "userClasses": c.UserClasses} {
		for _, text := range list {
			if err := CheckText(field, text, 128); err != nil || strings.Trim(text, "*") == "" || len(list) > 64 {
				return Errorf(Invalid, "class %s: %q does not fit into %s", c.Name, Clean(text, 40), field).At(field).
					WithHint("at most 64 texts of 128 bytes each, with something besides *")
			}
		}
	}
	for _, a := range c.Archs {
		if a < 0 || a > 65535 || len(c.Archs) > 64 {
			return Errorf(Invalid, "class %s: %d is not a client architecture", c.Name, a).At("archs").WithHint("0 is BIOS, 7 is UEFI x86-64, 11 is UEFI arm64")
		}
	}
	for i, p := range c.MACPrefixes {
		c.MACPrefixes[i] = strings.ReplaceAll(strings.ToLower(p), "-", ":")
		if !macPrefix.MatchString(c.MACPrefixes[i]) || len(c.MACPrefixes) > 256 {
			return Errorf(Invalid, "class %s: %q is not the beginning of a MAC", c.Name, Clean(p, 40)).At("macPrefixes").WithHint("write it as 00:04:f2")
		}
	}
	if c.Priority < -1000 || c.Priority > 1000 {
		return Errorf(Invalid, "class %s: priority %d is not between -1000 and 1000", c.Name, c.Priority).At("priority")
	}
	if err := CheckOptions(option.OfClass, c.Name, "options", c.Options, false); err != nil {
		return err
	}
	return CheckOptions(option.OfClass, c.Name, "options6", c.Options6, true)
}

var macPrefix = regexp.MustCompile(`^[0-9a-f]{2}(:[0-9a-f]{2}){0,5}$`)

// OptionsOf returns the options for one of the two families.
func (c *Class) OptionsOf(is6 bool) []option.Option {
	if is6 {
		return c.Options6
	}
	return c.Options
}

// NeedsPacket reports whether a packet is needed to tell who is in the class: its MAC alone does not.
func (c *Class) NeedsPacket() bool { return len(c.VendorClasses)+len(c.UserClasses)+len(c.Archs) > 0 }

// CheckOptions fills in and checks a list of DHCP options. Is6 says of which DHCP they are. The error names the owner and the
// option, and blames the field.
func CheckOptions(owner option.Owner, name, field string, list []option.Option, is6 bool) error {
	r := option.Check(owner, list, is6)
	if r == nil {
		return nil
	}
	e := &Error{Kind: Invalid, Hint: r.Hint, Field: field}
	if e.Msg = string(owner) + " " + name + " " + r.Msg; r.Option != "" {
		e.Msg = string(owner) + " " + name + ", option " + Clean(r.Option, 60) + ": " + r.Msg
	}
	return e
}

// ParseOption reads what option.Parse reads.
func ParseOption(text string) (option.Option, error) {
	o, r := option.Parse(text)
	if r != nil {
		return o, &Error{Kind: Invalid, Msg: r.Msg, Hint: r.Hint}
	}
	return o, nil
}
