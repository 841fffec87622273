package inventory

import (
	"regexp"
	"slices"
	"strings"
	"time"
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

	Options  []Option `json:"options,omitempty" doc:"DHCPv4 options"`
	Options6 []Option `json:"options6,omitempty" doc:"DHCPv6 options"`

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
	if err := CheckOptions(OptionsOfClass, c.Name, "options", c.Options, false); err != nil {
		return err
	}
	return CheckOptions(OptionsOfClass, c.Name, "options6", c.Options6, true)
}

var macPrefix = regexp.MustCompile(`^[0-9a-f]{2}(:[0-9a-f]{2}){0,5}$`)

// OptionsOf returns the options for one of the two families.
func (c *Class) OptionsOf(is6 bool) []Option {
	if is6 {
		return c.Options6
	}
	return c.Options
}

// ClassClient is what is known of a client for finding its classes.
type ClassClient struct {
	MAC         MAC
	VendorClass string
	UserClasses []string
	Archs       []int
}

// Has reports whether a client is in the class.
func (c *Class) Has(x ClassClient) bool {
	fits := func(patterns, texts []string) bool {
		return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
			return slices.ContainsFunc(texts, func(t string) bool { return t != "" && matchesStar(p, t) })
		})
	}
	isOf := func(p string) bool { return strings.HasPrefix(string(x.MAC), p) }
	return fits(c.VendorClasses, []string{x.VendorClass}) && fits(c.UserClasses, x.UserClasses) &&
		(len(c.Archs) == 0 || slices.ContainsFunc(c.Archs, func(a int) bool { return slices.Contains(x.Archs, a) })) &&
		(len(c.MACPrefixes) == 0 || slices.ContainsFunc(c.MACPrefixes, isOf))
}

// NeedsPacket reports whether a packet is needed to tell who is in the class: its MAC alone does not.
func (c *Class) NeedsPacket() bool { return len(c.VendorClasses)+len(c.UserClasses)+len(c.Archs) > 0 }

// matchesStar reports whether a text is the pattern, in which * stands for any text.
func matchesStar(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	first, last := parts[0], parts[len(parts)-1]
	if len(parts) == 1 {
		return pattern == text
	}
	if !strings.HasPrefix(text, first) || len(text) < len(first)+len(last) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(text, p)
		if i < 0 {
			return false
		}
		text = text[i+len(p):]
	}
	return true
}

// ClassesOf returns the classes that a client is in, the first of them first.
func ClassesOf(all []Class, x ClassClient) (in []Class) {
	for _, c := range all {
		if c.Has(x) {
			in = append(in, c)
		}
	}
	slices.SortStableFunc(in, func(a, b Class) int {
		if a.Priority != b.Priority {
			return b.Priority - a.Priority
		}
		return strings.Compare(a.Name, b.Name)
	})
	return in
}
