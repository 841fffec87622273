package dhcp

import (
	"encoding/hex"
	"strconv"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	wanted "slipway.dev/slipway/inventory/option"
	"slipway.dev/slipway/pxe/lease"
)

func optionsOf(t *testing.T, texts ...string) (all []wanted.Option) {
	t.Helper()
	for _, s := range texts {
		o, err := inventory.ParseOption(s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	if err := inventory.CheckOptions(wanted.OfClass, "c", "options", all, false); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestOptionsAreSentToWhoAsksAndAlwaysWhereThatIsSaid(t *testing.T) {
	d := newDesk(t, func(n *lease.Network, c *Config) {
		c.Classes = func() []inventory.Class {
			return []inventory.Class{{Name: "phones", VendorClasses: []string{"phone*"}, Options: optionsOf(t, "66=tftp.lab", "always:224/empty", "6=10.98.0.53", "always:225/hex=0102", "226/text="+strings.Repeat("x", 700))}}
		}
	})
	for _, c := range []struct {
		name   string
		packet []byte
		want   string // codes behind those of the lease
	}{
		{"asks for nothing in particular", build(discover, 1, nil, opt(60, []byte("phone 7")...)), "1 3 121 26 15 42 6 66 224 225"},
		{"asks for 66", build(discover, 1, nil, opt(60, []byte("phone 7")...), opt(55, 66)), "1 3 66 224 225"},
		{"asks for 6 and 66", build(discover, 1, nil, opt(60, []byte("phone 7")...), opt(55, 6, 66)), "1 3 6 66 224 225"},
		{"takes large answers", build(discover, 1, nil, opt(60, []byte("phone 7")...), opt(55, 226), opt(57, 5, 0xdc)), "1 3 224 225 226 226 226"},
		{"is in no class", build(discover, 1, nil, opt(60, []byte("cup")...), opt(55, 66)), "1 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := d.one(c.packet, "", offer)
			var got []string
			for _, code := range order(r.b)[5:] { // 53, 54, 51, 58, 59
				got = append(got, strconv.Itoa(code))
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %s, want %s", strings.Join(got, " "), c.want)
			}
			if dns := r.m.Options[6]; strings.Contains(c.want, " 6 ") && hex.EncodeToString(dns) != "0a620035" {
				t.Errorf("the class's name server is not the one that is sent: %x", dns)
			}
		})
	}
}
