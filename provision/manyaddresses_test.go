package provision

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
)

// lanOf is a network with n addresses, the first of which is given.
func lanOf(first string, n int) string {
	return "network: {interfaces: [{name: lan0, mac: boot, addresses: [" + strings.Join(following(first, n), ", ") + "]}]}\n"
}

func following(first string, n int) (all []string) {
	a := netip.MustParseAddr(first)
	for range n {
		all = append(all, a.String()+"/16")
		a = a.Next()
	}
	return all
}

// withWide is a rack with a subnet whose static range has 50 addresses.
func withWide(t *testing.T) *life {
	l := addressed(t, "host: {timezone: Etc/UTC}\n")
	l.write(func(tx inventory.Tx) error {
		n := inventory.Subnet{Name: "wide", CIDR: netip.MustParsePrefix("198.51.100.0/24"), Mode: inventory.ModeOff, StaticRanges: []inventory.Range{wideRange("10", "59")}}
		n.FillDefaults()
		return tx.Subnets().Create(&n, l.clock)
	})
	return l
}

func wideRange(first, last string) inventory.Range {
	return inventory.Range{First: netip.MustParseAddr("198.51.100." + first), Last: netip.MustParseAddr("198.51.100." + last)}
}

func TestOneMachineDoesNotTakeAllAddresses(t *testing.T) {
	l := withWide(t)
	netplan := "files: [{path: /etc/netplan/9.yaml, text: '{network: {ethernets: {a: {addresses: [" + strings.Join(following("10.9.0.1", 300), ", ") + "]}}}}'}]\n"
	kept := strings.Replace(lanOf("198.51.100.30", 16), "mac: boot", "mac: boot, fromSubnets: [wide]", 1)
	for n, tc := range []struct{ name, config, want, hint string }{
		{"257 addresses", lanOf("10.9.0.1", 257), "its configuration has more than 256 static addresses", "leave out some"},
		{"300 addresses in a file", netplan, "its configuration has more than 256 static addresses", "leave out some"},
		{"17 of a static range", lanOf("198.51.100.10", 17), "writes 17 addresses of static ranges, such as 198.51.100.10 of subnet wide; at most 16", "fromSubnets: [wide]"},
		{"256 addresses", lanOf("10.8.0.1", 256), "", ""},
		{"16 of a static range, and one that is kept", kept, "", ""},
		{"50 beside the static range", lanOf("198.51.100.100", 50), "", ""},
	} {
		err := l.wish(inventory.Machine{Name: fmt.Sprintf("m-%d", n), Config: tc.config})
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", tc.name, err)
		case tc.want != "" && (!inventory.IsKind(err, inventory.Invalid) || !strings.Contains(ledger.PublicMessage(err), tc.want) || !strings.Contains(inventory.HintOf(err), tc.hint)):
			t.Errorf("%s: %v (%s)", tc.name, err, inventory.HintOf(err))
		}
	}
	if got := l.has("m-4"); !strings.Contains(got, "198.51.100.10 ") {
		t.Errorf("the address that is kept beside written ones: %s", got)
	}
}

func TestWhatAMachineHadBeforeAStaticRangeCameStays(t *testing.T) {
	l := withWide(t)
	if err := l.wish(inventory.Machine{Name: "old", Config: lanOf("198.51.100.100", 20)}); err != nil {
		t.Fatal(err)
	}
	l.write(func(tx inventory.Tx) error {
		n, err := tx.Subnets().Find("wide")
		if err != nil {
			return err
		}
		n.StaticRanges = append(n.StaticRanges, wideRange("100", "200"))
		return tx.Subnets().Update(&n, l.clock)
	})
	change := func(config, hostname string) error {
		return l.store.Write(t.Context(), func(tx inventory.Tx) error {
			m, err := tx.FindMachine("old")
			if err != nil {
				return err
			}
			m.Config, m.Hostname = config, hostname
			if err := tx.UpdateMachine(&m, l.clock); err != nil {
				return err
			}
			return l.engine.HoldMachine(tx, &m)
		})
	}
	if err := change(lanOf("198.51.100.100", 20), "new-name"); err != nil {
		t.Errorf("another name: %v", err)
	}
	if err := change(lanOf("198.51.100.100", 21), "new-name"); !inventory.IsKind(err, inventory.Invalid) || !strings.Contains(ledger.PublicMessage(err), "such as 198.51.100.120") {
		t.Errorf("one more address: %v", err)
	}
}

func TestAProfileWithTooManyAddressesIsNotSaved(t *testing.T) {
	l := withWide(t)
	if err := l.wish(inventory.Machine{Name: "web"}); err != nil {
		t.Fatal(err)
	}
	var draft inventory.Profile
	l.read(func(tx inventory.Tx) (err error) {
		draft, err = tx.Profiles().Find("debian12")
		return err
	})
	for _, config := range []string{lanOf("10.9.0.1", 257), lanOf("198.51.100.10", 17)} {
		draft.Config = config
		i, err := l.engine.CheckProfile(t.Context(), &draft)
		if err != nil {
			t.Fatal(err)
		}
		isSaid := false
		for _, f := range i.Findings {
			isSaid = isSaid || f.Code == "too-many-addresses" && f.Hint != ""
		}
		if i.Err() == nil || !isSaid {
			t.Errorf("%.80s: %+v", config, i.Findings)
		}
	}
}
