package provision

import (
	"slices"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
)

// A machine that names another controller as its own would have the server log in there, and be fenced by it.
func TestAControllerThatOnlyAMachineNamesIsNotConnected(t *testing.T) {
	for name, c := range map[string]struct {
		says, network string
		why           string // "" for an account
	}{
		"nobody has confirmed it":           {"10.0.9.9", "", "the host is powered by fake"},
		"an admin names its address":        {"10.0.9.9", "10.0.9.9", ""},
		"an admin names its network":        {"10.0.9.9", "10.0.8.0/22", ""},
		"written as IPv6":                   {"::ffff:10.0.9.9", "10.0.9.0/24", ""},
		"another network":                   {"192.0.2.7", "10.0.9.0/24", "not in 10.0.9.0/24"},
		"the controller of another host":    {"10.0.9.1", "10.0.9.0/24", "that is the controller of other"},
		"the same, written in another way":  {"::ffff:10.0.9.1", "10.0.9.0/24", "that is the controller of other"},
		"a name that DNS would have to say": {"bmc.example", "10.0.9.0/24", "no address"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			other, s := l.add("other", false), l.add("a", true)
			l.write(func(tx inventory.Tx) error {
				return tx.SaveBMC(&inventory.BMC{HostID: other.host().ID, Driver: inventory.Redfish, Address: "https://10.0.9.1:443"}, l.clock)
			})
			s.bmcAddress = c.says
			_, err := l.engine.Inspect(t.Context(), s.host().ID, operation.InspectRequest{MayRestart: true, BMCUser: "slipway", BMCNetwork: c.network}, ledger.By("a test"))
			l.must(err)
			l.until("it is inspected", l.hostIs(s, inventory.Available))
			var b inventory.BMC
			l.must(l.store.Read(t.Context(), func(tx inventory.Tx) (err error) {
				b, err = tx.FindBMC(s.host().ID)
				return err
			}))
			if c.why == "" {
				if b.Driver != inventory.IPMI || s.account.Name != "slipway" {
					t.Errorf("controller %+v, account %q", b, s.account.Name)
				}
				return
			}
			isSaid := slices.ContainsFunc(l.openIssues(), func(i inventory.Issue) bool {
				return i.Type == inventory.IssueBMC && strings.Contains(i.Cause, c.why) && strings.Contains(i.Hint, "--bmc-network")
			})
			if b.Driver != inventory.FakeBMC || s.account.Name != "" || !isSaid {
				t.Errorf("controller %+v, account %q, issues %+v", b, s.account.Name, l.openIssues())
			}
		})
	}
}

func TestAControllerThatAnEarlierInspectionFoundIsConnected(t *testing.T) {
	l := newLife(t)
	s := l.add("a", false)
	s.bmcAddress, s.isOn = "10.0.9.9", true
	for _, user := range []string{"", "slipway"} {
		s.runs = ""
		_, err := l.engine.Inspect(t.Context(), s.host().ID, operation.InspectRequest{MayRestart: true, BMCUser: user}, ledger.By("a test"))
		l.must(err)
		l.until("it is inspected", l.hostIs(s, inventory.Available))
	}
	if s.account.Name != "slipway" {
		t.Errorf("no account was made: %+v", l.openIssues())
	}
}

func TestWhereAControllerIsMustBeAnAddressOrANetwork(t *testing.T) {
	for text, want := range map[string]string{"": "invalid Prefix", "10.1.2.3": "10.1.2.3/32", "10.1.2.3/16": "10.1.0.0/16", "::ffff:10.1.2.3": "10.1.2.3/32", "fd00::1": "fd00::1/128"} {
		if got, err := operation.ParseBMCNetwork(text); err != nil || got.String() != want {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"bmc.example", "10.1.2.3/33", "fe80::1%eth0", "https://10.1.2.3", " 10.1.2.3"} {
		if _, err := operation.ParseBMCNetwork(text); !inventory.IsKind(err, inventory.Invalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
