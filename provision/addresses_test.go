package provision

import (
	"crypto/rand"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/ledger"
)

// addressed is a rack with a subnet, whose profile has a configuration.
func addressed(t *testing.T, config string) *life {
	t.Helper()
	l := newLife(t)
	l.profileSays(config)
	l.write(func(tx inventory.Tx) error {
		n := inventory.Subnet{
			Name: "prod", CIDR: netip.MustParsePrefix("192.0.2.0/24"), Gateway: netip.MustParseAddr("192.0.2.1"),
			Ranges:       []inventory.Range{{First: netip.MustParseAddr("192.0.2.100"), Last: netip.MustParseAddr("192.0.2.199")}},
			StaticRanges: []inventory.Range{{First: netip.MustParseAddr("192.0.2.10"), Last: netip.MustParseAddr("192.0.2.13")}},
		}
		n.FillDefaults()
		return tx.Subnets().Create(&n, l.clock)
	})
	return l
}

func (l *life) profileSays(config string) {
	l.t.Helper()
	l.write(func(tx inventory.Tx) error {
		p, err := tx.Profiles().Find("debian12")
		p.Config = config
		if err != nil {
			return err
		}
		return tx.Profiles().Update(&p, l.clock)
	})
}

func (l *life) wish(m inventory.Machine) error {
	l.t.Helper()
	m.Profile = "debian12"
	_, err := l.engine.CreateMachine(l.t.Context(), m, ledger.By("test"))
	return err
}

// has returns the static addresses of a machine, in order.
func (l *life) has(name string) string {
	l.t.Helper()
	var all []string
	l.read(func(tx inventory.Tx) error {
		m, err := tx.FindMachine(name)
		if err != nil {
			return err
		}
		held, err := tx.ListHoldings(inventory.AddressFilter{Owner: "machine/" + m.UID})
		for _, h := range held {
			if h.Kind == inventory.HoldsAddress {
				all = append(all, h.Value)
			}
		}
		return err
	})
	return strings.Join(all, " ")
}

func (l *life) read(fn func(inventory.Tx) error) {
	l.t.Helper()
	if err := l.store.Read(l.t.Context(), fn); err != nil {
		l.t.Fatal(err)
	}
}

const lan = "network: {interfaces: [{name: lan0, mac: boot, addresses: ['%s']}]}\n"

func TestNoTwoMachinesGetOneAddressOrName(t *testing.T) {
	own := func(config string) inventory.Machine { return inventory.Machine{Name: "two", Config: config} }
	object := func(kind, name string) inventory.Machine { // of a cluster
		return inventory.Machine{Name: "two", Hostname: name, Owner: kind + "/" + name + "/" + rand.Text()}
	}
	chosen := func(m inventory.Machine, hostname string) inventory.Machine {
		m.Hostname = hostname
		return m
	}
	for _, tc := range []struct {
		name, profile string
		one           inventory.Machine
		two           inventory.Machine
		want, hint    string // "" for two that may be
	}{
		{"the profile's address", fmt.Sprintf(lan, "192.0.2.50/24"), inventory.Machine{}, own(""), "machine two: the address 192.0.2.50 is that of machine one", "fromSubnets"},
		{"another prefix length", "", inventory.Machine{Config: fmt.Sprintf(lan, "192.0.2.50/24")}, own(fmt.Sprintf(lan, "192.0.2.50/25")), "192.0.2.50 is that of machine one", "fromSubnets"},
		{"another way to write it", "", inventory.Machine{Config: fmt.Sprintf(lan, "2001:db8::a/64")}, own(fmt.Sprintf(lan, "2001:0DB8:0:0::000A/64")), "2001:db8::a is that of machine one", "fromSubnets"},
		{"a template that differs", fmt.Sprintf(lan, "{{ .Parameters.ip }}/24"), inventory.Machine{Parameters: map[string]string{"ip": "192.0.2.50"}}, inventory.Machine{Name: "two", Parameters: map[string]string{"ip": "192.0.2.51"}}, "", ""},
		{"a template that says the same", fmt.Sprintf(lan, "{{ .Parameters.ip }}/24"), inventory.Machine{Parameters: map[string]string{"ip": "192.0.2.50"}}, inventory.Machine{Name: "two", Parameters: map[string]string{"ip": "192.0.2.50"}}, "192.0.2.50 is that of machine one", "fromSubnets"},
		{"a file of a network tool", "files: [{path: /etc/systemd/network/10.network, text: \"[Network]\\nAddress=192.0.2.50/24\\n\"}]\n", inventory.Machine{}, own(""), "192.0.2.50 is that of machine one", "fromSubnets"},
		{"a netplan file", "files: [{path: /etc/netplan/9.yaml, text: '{network: {ethernets: {a: {addresses: [192.0.2.50/24], nameservers: {addresses: [192.0.2.53]}}}}}'}]\n", inventory.Machine{}, own(""), "192.0.2.50 is that of machine one", "fromSubnets"},
		{"a link-local address", fmt.Sprintf(lan, "fe80::1/64"), inventory.Machine{}, own(""), "", ""},
		{"the profile's host name", "host: {hostname: web}\n", inventory.Machine{}, own(""), "the host name web is that of machine one", "leave host.hostname out"},
		{"in capitals", "", inventory.Machine{Config: "host: {hostname: Web}\n"}, inventory.Machine{Name: "two", Config: "host: {hostname: wEB}\n"}, "the host name web is that of machine one", ""},
		{"a name and a whole one", "", inventory.Machine{Hostname: "web.example.com"}, inventory.Machine{Name: "two", Hostname: "web"}, "the host name web is that of machine one", ""},
		{"two domains", "", inventory.Machine{Hostname: "web.a.example.com"}, inventory.Machine{Name: "two", Hostname: "web.b.example.com"}, "", ""},
		{"the name of another machine", "", inventory.Machine{}, inventory.Machine{Name: "two", Hostname: "one"}, "the host name one is that of machine one", ""},
		{"objects of one name in two namespaces", "", object("a/one/MetalMachine", "web"), object("a/two/MetalMachine", "web"), "", ""},
		{"objects of one name in two clusters", "", object("a/one/MetalMachine", "web"), object("b/one/MetalMachine", "web"), "", ""},
		{"an object that is made again while its machine runs", "", object("a/one/MetalMachine", "web"), object("a/one/MetalMachine", "web"), "", ""},
		{"machines of Cluster API of one name in two namespaces", "", chosen(object("a/one/SlipwayMachine", "m1"), "m"), chosen(object("a/two/SlipwayMachine", "m2"), "m"), "", ""},
		{"objects of two kinds in one namespace", "", object("a/one/MetalMachine", "web"), object("a/one/SlipwayMachine", "web"), "the host name web is that of machine one", ""},
		{"an object that chooses the name of another", "", object("a/one/MetalMachine", "web"), chosen(object("a/two/MetalMachine", "db"), "web"), "the host name web is that of machine one", ""},
		{"two objects that choose one name", "", chosen(object("a/one/MetalMachine", "db"), "web"), chosen(object("a/two/MetalMachine", "db"), "web"), "the host name web is that of machine one", ""},
		{"an object and a machine of people", "", object("a/one/MetalMachine", "web"), inventory.Machine{Name: "two", Hostname: "web.example.com"}, "the host name web.example.com is that of machine one", ""},
		{"objects of one name with the domain of their profile", "host: {domain: example.com}\n", object("a/one/MetalMachine", "web"), object("a/two/MetalMachine", "web"), "the host name web.example.com is that of machine one", ""},
		{"the gateway", "", inventory.Machine{}, own(fmt.Sprintf(lan, "192.0.2.1/24")), "192.0.2.1 is the gateway of subnet prod", "another address"},
		{"an address that DHCP leases", "", inventory.Machine{}, own(fmt.Sprintf(lan, "192.0.2.150/24")), "192.0.2.150 is in the range 192.0.2.100-192.0.2.199 of subnet prod, which DHCP leases", "outside of the range"},
		{"a reserved address", "", inventory.Machine{}, own(fmt.Sprintf(lan, "192.0.2.60/24")), "192.0.2.60 is reserved in DHCP for 52:54:00:ff:00:01", "--host"},
		{"a leased address", "", inventory.Machine{}, own(fmt.Sprintf(lan, "192.0.2.70/24")), "192.0.2.70 is leased to 52:54:00:ff:00:02", ""},
		{"a controller", "", inventory.Machine{}, own(fmt.Sprintf(lan, "192.0.2.80/24")), "192.0.2.80 is that of the controller of host r1", ""},
		{"a virtual address", "", inventory.Machine{}, own(fmt.Sprintf(lan, "192.0.2.90/24")), "192.0.2.90 is the virtual address of target lab", ""},
		{"this server", "", inventory.Machine{}, own(fmt.Sprintf(lan, "192.0.2.2/24")), "192.0.2.2 is this server's own", ""},
		{"an address that is kept for another", "network: {interfaces: [{name: lan0, mac: boot, fromSubnets: [prod]}]}\n", inventory.Machine{}, own(fmt.Sprintf(lan, "192.0.2.10/24")), "192.0.2.10 is that of machine one", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := addressed(t, tc.profile)
			l.engine.cfg.Ours = func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("192.0.2.2")} }
			l.engine.outfit()
			l.add("r1", false)
			l.write(func(tx inventory.Tx) error {
				h, err := tx.FindHostByName("r1")
				if err != nil {
					return err
				}
				if err := tx.SaveBMC(&inventory.BMC{HostID: h.ID, Driver: inventory.Redfish, Address: "https://192.0.2.80"}, l.clock); err != nil {
					return err
				}
				if err := tx.CreateReservation(&inventory.Reservation{Address: netip.MustParseAddr("192.0.2.60"), Subnet: "prod", MAC: "52:54:00:ff:00:01"}, l.clock); err != nil {
					return err
				}
				if err := tx.JoinTargets().Create(&inventory.JoinTarget{Name: "lab", Endpoint: "192.0.2.90:6443", VIP: netip.MustParseAddr("192.0.2.90")}, l.clock); err != nil {
					return err
				}
				return tx.SaveLease(inventory.Lease{Address: netip.MustParseAddr("192.0.2.70"), Subnet: "prod", MAC: "52:54:00:ff:00:02", State: inventory.LeaseBound, ExpiresAt: l.clock.Add(time.Hour)})
			})
			tc.one.Name = "one"
			if err := l.wish(tc.one); err != nil {
				t.Fatal(err)
			}
			err := l.wish(tc.two)
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !inventory.IsKind(err, inventory.Invalid) || !strings.Contains(ledger.PublicMessage(err), tc.want) || !strings.Contains(inventory.HintOf(err), tc.hint) || inventory.HintOf(err) == "" {
				t.Errorf("got %v (%s), want it refused: %s", err, inventory.HintOf(err), tc.want)
			}
		})
	}
}

func TestEachMachineKeepsAnAddressOfItsOwn(t *testing.T) {
	l := addressed(t, "network: {interfaces: [{name: lan0, mac: boot, fromSubnets: [prod]}]}\n")
	l.write(func(tx inventory.Tx) error {
		return tx.CreateReservation(&inventory.Reservation{Address: netip.MustParseAddr("192.0.2.11"), Subnet: "prod", MAC: "52:54:00:ff:00:01"}, l.clock)
	})
	var together sync.WaitGroup
	for _, name := range []string{"a", "b"} { // at once
		together.Go(func() {
			if err := l.wish(inventory.Machine{Name: name}); err != nil {
				t.Error(err)
			}
		})
	}
	together.Wait()
	if got := l.has("a") + " " + l.has("b"); got != "192.0.2.10 192.0.2.12" && got != "192.0.2.12 192.0.2.10" {
		t.Errorf("a and b have %s", got)
	}
	if err := l.wish(inventory.Machine{Name: "c"}); err != nil || l.has("c") != "192.0.2.13" {
		t.Errorf("c has %s: %v", l.has("c"), err)
	}
	err := l.wish(inventory.Machine{Name: "d"})
	if !inventory.IsKind(err, inventory.Invalid) || !strings.Contains(ledger.PublicMessage(err), "subnet prod has no free address left") || !strings.Contains(inventory.HintOf(err), "--static-range") {
		t.Errorf("a full subnet: %v (%s)", err, inventory.HintOf(err))
	}
	if _, err := l.engine.DeleteMachine(t.Context(), "c", false, ledger.By("test")); err != nil {
		t.Fatal(err)
	}
	if err := l.wish(inventory.Machine{Name: "d"}); err != nil || l.has("d") != "192.0.2.13" {
		t.Errorf("what was freed: %s, %v", l.has("d"), err)
	}
	m, _ := l.find("d")
	err = l.store.Write(t.Context(), func(tx inventory.Tx) error {
		_, err := l.engine.FixAddress(tx, &m, nil, netip.MustParseAddr("192.0.2.10"))
		return err
	})
	if !inventory.IsKind(err, inventory.Invalid) || !strings.Contains(ledger.PublicMessage(err), "192.0.2.10 is that of machine ") {
		t.Errorf("one that is taken was fixed: %v", err)
	}
	err = l.store.Write(t.Context(), func(tx inventory.Tx) error { return l.engine.FreeAddress(tx, netip.MustParseAddr("192.0.2.13")) })
	if !inventory.IsKind(err, inventory.Conflict) {
		t.Errorf("one that is used was freed: %v", err)
	}
}

func TestAnAddressStaysThroughAReinstallAndReachesTheDocument(t *testing.T) {
	l := addressed(t, "network: {interfaces: [{name: lan0, mac: boot, fromSubnets: [prod], routes: [{to: 0.0.0.0/0, via: 192.0.2.1}]}]}\n")
	l.add("r1", true)
	if err := l.wish(inventory.Machine{Name: "web"}); err != nil {
		t.Fatal(err)
	}
	l.until("it runs", func() bool { m, _ := l.find("web"); return m.Phase == inventory.MachineRunning })
	var h inventory.Host
	l.read(func(tx inventory.Tx) (err error) {
		h, err = tx.FindHostByName("r1")
		return err
	})
	v, err := l.engine.Preview(t.Context(), h.ID, nil)
	if err != nil || v.Findings.HasErrors() {
		t.Fatal(err, v.Findings)
	}
	text := ""
	for _, d := range v.Documents {
		text += d.Text
	}
	if !strings.Contains(text, "192.0.2.10/24") {
		t.Errorf("the documents do not say its address:\n%s", text)
	}
	if _, err := l.engine.Reinstall(t.Context(), "web", ledger.By("test")); err != nil {
		t.Fatal(err)
	}
	if got := l.has("web"); got != "192.0.2.10" {
		t.Errorf("after a reinstall: %s", got)
	}
	l.write(func(tx inventory.Tx) error { // its old system may run on
		m, err := tx.FindMachine("web")
		if err != nil {
			return err
		}
		return l.engine.DeleteIn(tx, &m, true, "test")
	})
	l.read(func(tx inventory.Tx) error {
		a, err := tx.FindAllocation(netip.MustParseAddr("192.0.2.10"))
		if err != nil || a.HostID != h.ID || !strings.Contains(a.Note, "left by machine web") {
			t.Errorf("left behind: %v, %+v", err, a)
		}
		return nil
	})
	if err := l.wish(inventory.Machine{Name: "next"}); err != nil || l.has("next") != "192.0.2.11" {
		t.Errorf("the next one has %s: %v", l.has("next"), err)
	}
}

func TestAProfileWithOneAddressForFiveMachinesIsNotSaved(t *testing.T) {
	l := addressed(t, "host: {timezone: Etc/UTC}\n")
	for i := range 5 {
		if err := l.wish(inventory.Machine{Name: fmt.Sprintf("web-%d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	p := func() (p inventory.Profile) {
		l.read(func(tx inventory.Tx) (err error) {
			p, err = tx.Profiles().Find("debian12")
			return err
		})
		return p
	}()
	save := func(config string) (configuration.Impact, error) {
		draft := p
		draft.Config = config
		i, err := l.engine.CheckProfile(t.Context(), &draft)
		if err != nil {
			t.Fatal(err)
		}
		return i, l.saved(&draft, nil)
	}
	i, err := save("files: []\n" + fmt.Sprintf(lan, "192.0.2.50/24"))
	if i.FailedN != 4 || i.Err() == nil || !strings.Contains(i.Findings[0].Message, "the address 192.0.2.50 is that of machine web-0") || i.Findings[0].Source != "profile debian12:2" {
		t.Errorf("impact: %+v", i)
	}
	if !inventory.IsKind(err, inventory.Invalid) {
		t.Errorf("saved in its transaction: %v", err)
	}
	i, err = save("network: {interfaces: [{name: lan0, mac: boot, fromSubnets: [prod]}]}\n")
	if i.Err() == nil || err == nil || !strings.Contains(ledger.PublicMessage(err), "no free address left") {
		t.Errorf("five machines get four addresses: %v, %+v", err, i)
	}
	if _, err := l.engine.DeleteMachine(t.Context(), "web-4", false, ledger.By("test")); err != nil {
		t.Fatal(err)
	}
	i, err = save("network: {interfaces: [{name: lan0, mac: boot, fromSubnets: [prod]}]}\n")
	if i.Err() != nil || err != nil || l.has("web-3") != "192.0.2.13" {
		t.Errorf("four machines: %v, %+v, %s", err, i, l.has("web-3"))
	}
}

func TestWhatAnOldDatabaseHasTwiceIsAnIssue(t *testing.T) {
	l := addressed(t, fmt.Sprintf(lan, "192.0.2.50/24"))
	for n, name := range []string{"one", "two", "three"} {
		m := inventory.Machine{Name: name, UID: fmt.Sprintf("01OLD%d", n), Profile: "debian12", Phase: inventory.MachinePending}
		if name == "three" {
			m.Config = "network: {interfaces: [{name: lan0, addresses: {$replace: [192.0.2.1/24]}}]}\n"
		}
		l.write(func(tx inventory.Tx) error { return tx.CreateMachine(&m, l.clock) })
	}
	open := func() (causes []string) {
		t.Helper()
		l.engine.HeldElsewhere()
		if err := l.engine.clashes.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.read(func(tx inventory.Tx) error {
			all, err := tx.ListIssues(false, "")
			for _, i := range all {
				if i.Type == inventory.IssueTwice {
					causes = append(causes, i.Cause)
				}
			}
			return err
		})
		return causes
	}
	got := strings.Join(open(), "\n")
	for _, want := range []string{"machine two: the address 192.0.2.50 is that of machine one (profile debian12:1)", "machine three: the address 192.0.2.1 is the gateway of subnet prod (machine/three:1)"} {
		if !strings.Contains(got, want) {
			t.Errorf("no issue %q in\n%s", want, got)
		}
	}
	l.profileSays("host: {timezone: Etc/UTC}\n")
	if got := open(); len(got) != 1 || !strings.Contains(got[0], "gateway") {
		t.Errorf("open after the profile was mended: %v", got)
	}
}
