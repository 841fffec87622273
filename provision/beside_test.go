package provision

import (
	"context"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/pxe"
)

// subnet stores the subnet of the machines in a mode.
func (r *rack) subnet(mode inventory.SubnetMode) {
	r.write(func(tx inventory.Tx) error {
		return tx.Subnets().Create(&inventory.Subnet{
			Name: "rack", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Mode: mode, Unknown: inventory.UnknownDisk,
			LeaseFor: inventory.Duration(time.Hour), BootLeaseFor: inventory.Duration(time.Hour),
		}, r.clock)
	})
}

// TestABootBesideAnotherServer has the machine's address come from elsewhere: its requests are still known as its own.
func TestABootBesideAnotherServer(t *testing.T) {
	r := newRack(t)
	r.subnet(inventory.ModeProxy)
	m, other := r.machine(1), r.machine(2)
	theirs := netip.MustParseAddr("10.0.0.77")
	heard := func(m *machine, s pxe.Stage) pxe.Reply {
		c := m.at(s)
		c.Address, c.IsProxy = netip.Addr{}, true
		reply := r.engine.Offer(context.Background(), c, base)
		r.engine.Note(context.Background(), c, inventory.EventDHCPDiscover, "")
		r.settle()
		return reply
	}
	if reply := heard(m, pxe.StageFirmware); reply.Class != "PXEClient" || reply.Next != netip.MustParseAddr("10.0.0.1") || reply.File == "" {
		t.Errorf("the firmware is told %+v", reply)
	}
	said := m.at(pxe.StageFirmware)
	said.Address, said.IsProxy = theirs, true
	r.engine.Beside(said, false)
	r.engine.Beside(said, false) // again, which is no news
	r.settle()
	if s, ok := r.engine.SessionAt(theirs); !ok || s.MAC != m.mac() {
		t.Fatalf("who asks from %s is %+v", theirs, s)
	}
	s, _ := r.engine.sessions.Of(m.mac())
	if got := r.kinds(s.ID); !slices.Equal(got, []string{inventory.EventHostDiscovered, inventory.EventSessionStarted, inventory.EventDHCPDiscover, inventory.EventDHCPBeside}) &&
		!slices.Contains(got, inventory.EventDHCPBeside) {
		t.Errorf("the timeline has %v", got)
	}
	// Another machine's word takes the address away from nobody; what the server was heard to say does.
	heard(other, pxe.StageFirmware)
	claim := other.at(pxe.StageFirmware)
	claim.Address = theirs
	r.engine.Beside(claim, false)
	if s, _ := r.engine.SessionAt(theirs); s.MAC != m.mac() {
		t.Error("a claim took the address of a boot that goes on")
	}
	r.engine.Beside(claim, true)
	if s, _ := r.engine.SessionAt(theirs); s.MAC != other.mac() {
		t.Error("the server gave the address to the other machine, and it still counts as the first one's")
	}
	r.settle()
}

// TestTheNeighbourTableTellsWhoAsks knows a machine whose DHCP nobody heard by the MAC that has the address.
func TestTheNeighbourTableTellsWhoAsks(t *testing.T) {
	r := newRack(t)
	m := r.machine(1)
	at := netip.MustParseAddr("10.0.0.78")
	r.engine.cfg.Neighbour = func(a netip.Addr) (inventory.MAC, bool) { return m.mac(), a == at }
	r.engine.outfit()
	if _, ok := r.engine.SessionAt(at); ok {
		t.Error("a machine that does not boot has a session")
	}
	c := m.at(pxe.StageFirmware)
	c.Address = netip.Addr{}
	r.engine.Offer(context.Background(), c, base)
	if s, ok := r.engine.SessionAt(at); !ok || s.MAC != m.mac() {
		t.Errorf("who asks from %s is %+v", at, s)
	}
	r.settle()
}

func TestForeignServersAreIssues(t *testing.T) {
	four := pxe.ForeignServer{Subnet: "rack", Interface: "eno2", Server: netip.MustParseAddr("10.0.0.9"), MAC: "52:54:00:aa:00:09"}
	six := pxe.ForeignServer{Subnet: "rack", Interface: "eno2", Server: netip.MustParseAddr("fe80::9"), DUID: "0003000152540000aa09"}
	proxy := four
	proxy.IsProxy = true
	for _, c := range []struct {
		name  string
		f     pxe.ForeignServer
		mode  inventory.SubnetMode
		heard bool
		want  inventory.Severity
		cause string
	}{
		{"heard on our network", four, inventory.ModeFull, true, inventory.SeverityError, "10.0.0.9"},
		{"a proxy, heard", proxy, inventory.ModeFull, true, inventory.SeverityError, "ProxyDHCP server 10.0.0.9 (52:54:00:aa:00:09, ACME) names boot files on eno2"},
		{"named by a machine", four, inventory.ModeFull, false, inventory.SeverityWarning, "10.0.0.9"},
		{"beside us, as it should be", four, inventory.ModeProxy, true, "", ""},
		{"where we serve reservations", four, inventory.ModeReservations, true, "", ""},
		{"DHCPv6, heard", six, inventory.ModeFull, true, inventory.SeverityError, "DHCPv6 server fe80::9 (DUID 0003000152540000aa09)"},
		{"DHCPv6, named by a machine", six, inventory.ModeFull, false, inventory.SeverityWarning, "DUID 0003000152540000aa09"},
		{"DHCPv6, where we serve reservations", six, inventory.ModeReservations, true, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRack(t)
			r.subnet(c.mode)
			f := c.f
			f.IsHeard = c.heard
			r.engine.Foreign(f)
			r.settle()
			issues := r.openIssues()
			if c.want == "" {
				if len(issues) != 0 {
					t.Errorf("opened %+v", issues)
				}
				return
			}
			if len(issues) != 1 || issues[0].Severity != c.want || !strings.Contains(issues[0].Cause, c.cause) {
				t.Fatalf("opened %+v", issues)
			}
			if c.heard && f.MAC != "" && !strings.Contains(issues[0].Cause, "52:54:00:aa:00:09, ACME") {
				t.Errorf("nothing of the MAC and its vendor in %q", issues[0].Cause)
			}
			ours := []string{f.Subnet}
			r.engine.ForeignGone([]pxe.ForeignServer{f}, ours, 2*time.Hour)
			r.engine.ForeignGone(nil, []string{"elsewhere"}, time.Hour) // another instance listens on f.Subnet
			r.engine.ForeignGone(nil, ours, time.Hour-time.Second)
			r.settle()
			if len(r.openIssues()) != 1 {
				t.Error("closed although the server is there, or nobody knows after a restart")
			}
			r.engine.ForeignGone(nil, ours, time.Hour)
			r.settle()
			if len(r.openIssues()) != 0 {
				t.Error("not closed when the server was gone")
			}
		})
	}
}

func TestAFullSubnetIsCalledFullWhileMachinesGoWithoutAddresses(t *testing.T) {
	r := newRack(t)
	for _, step := range []struct {
		passes time.Duration
		isFull bool // told again
		want   int  // open issues
	}{{0, true, 1}, {50 * time.Second, true, 1}, {50 * time.Second, false, 1}, {20 * time.Second, false, 0}, {time.Hour, true, 1}} {
		r.clock = r.clock.Add(step.passes)
		if step.isFull {
			r.engine.Exhausted("lab")
		}
		r.settle()
		if err := sweep(r.engine); err != nil {
			t.Fatal(err)
		}
		if got := r.openIssues(); len(got) != step.want {
			t.Errorf("after %s: %+v", step.passes, got)
		}
	}
}

// A network that is given to the other server has no rogue any more.
func TestAForeignServerIsNoneWhereItIsToServe(t *testing.T) {
	r := newRack(t)
	r.subnet(inventory.ModeFull)
	f := pxe.ForeignServer{Subnet: "rack", Interface: "eno2", Server: netip.MustParseAddr("10.0.0.9"), MAC: "52:54:00:aa:00:09", IsHeard: true}
	r.engine.Foreign(f)
	r.settle()
	r.write(func(tx inventory.Tx) error {
		n, err := tx.Subnets().Find("rack")
		if err != nil {
			return err
		}
		n.Mode = inventory.ModeProxy
		return tx.Subnets().Update(&n, r.clock)
	})
	r.engine.Exhausted("rack") // which is no other server's doing
	r.settle()
	r.engine.ForeignGone([]pxe.ForeignServer{f}, []string{"rack"}, time.Minute)
	r.settle()
	if open := r.openIssues(); len(open) != 1 || open[0].Type != inventory.IssuePoolExhausted {
		t.Errorf("%+v", open)
	}
}

// on is what DHCP tells of a machine on a switch port.
func (m *machine) on(port string) pxe.Client {
	c := m.at(pxe.StageFirmware)
	c.Port, c.HasPort, c.Relay = port, true, netip.MustParseAddr("10.0.0.254")
	return c
}

func TestAPlannedHostIsTheMachineOnItsPort(t *testing.T) {
	r := newRack(t)
	r.write(func(tx inventory.Tx) error {
		return tx.CreateHost(&inventory.Host{
			ID: "00000000-0000-7000-8000-00000000aaaa", Name: "db-7", State: inventory.Available, StateSinceAt: r.clock, Port: "5@sw1",
		}, r.clock)
	})
	m := r.machine(1)
	r.engine.Offer(context.Background(), m.on("5@sw1"), base)
	r.settle()
	if h := m.host(); h.Name != "db-7" || h.Facts[inventory.FactPort] != "5@sw1" || h.Facts[inventory.FactRelay] != "10.0.0.254" {
		t.Errorf("the machine on the port is %+v", h)
	}
	other := r.machine(2) // another machine on the same port
	r.engine.Offer(context.Background(), other.on("5@sw1"), base)
	r.settle()
	if h := other.host(); h.Name == "db-7" {
		t.Error("a second machine became the host")
	}
	if i := r.openIssues(); len(i) != 1 || i[0].Type != inventory.IssueWrongPort || !strings.Contains(i[0].Cause, string(other.mac())) {
		t.Errorf("issues %+v", i)
	}
}

func TestAHostBootsOnItsPortOnly(t *testing.T) {
	r := newRack(t)
	m := r.accepted()
	_, err := r.engine.UpdateHost(context.Background(), func() inventory.Host { h := m.host(); h.Port = "5@sw1"; return h }(), ledger.By("a test"))
	r.must(err)
	if open := r.stalledIssues(inventory.IssueWrongPort); len(open) != 1 || !strings.Contains(open[0].Cause, "no switch port") {
		t.Errorf("pinned to a port that it was not heard on: %+v", open)
	}
	script := func(port string) string {
		r.clock = r.clock.Add(2 * time.Minute)
		r.engine.Offer(context.Background(), m.on(port), base)
		r.settle()
		return m.script(m.dhcp(pxe.StageIPXE).File)
	}
	if got := script("5@sw1"); !strings.Contains(got, "image-live") && !strings.Contains(got, "linux") {
		t.Errorf("on its port it is told:\n%s", got)
	}
	if got := script("6@sw1"); !strings.Contains(got, "pinned to port 5@sw1") {
		t.Errorf("elsewhere it is told:\n%s", got)
	}
	isOpen := func() bool {
		return slices.ContainsFunc(r.openIssues(), func(i inventory.Issue) bool { return i.Type == inventory.IssueWrongPort })
	}
	if !isOpen() {
		t.Error("no issue that a machine with its MAC is elsewhere")
	}
	if got := script(""); !strings.Contains(got, "no switch port") {
		t.Errorf("without any port it is told:\n%s", got)
	}
	if got := script("5@sw1"); strings.Contains(got, "pinned to port") || isOpen() {
		t.Errorf("back on its port it is told:\n%s", got)
	}
	script("6@sw1")
	h := m.host()
	h.Port = "6@sw1"
	if _, err := r.engine.UpdateHost(context.Background(), h, ledger.By("a test")); err != nil || isOpen() {
		t.Errorf("pinned anew to where it is, the issue is still open (%v)", err)
	}
}

// A script names the other instances that live now and have an address on the network of the machine: for the files of the image, and for
// the next question.
func TestAScriptNamesTheInstancesOfItsNetwork(t *testing.T) {
	r := newRack(t)
	r.subnet(inventory.ModeFull)
	m := r.accepted()
	at := func(text string) []string {
		var hosts []string
		for _, word := range strings.Fields(text) {
			if u, err := url.Parse(word); err == nil && u.Host != "" && strings.Contains(word, "/artefact/") {
				hosts = append(hosts, u.Host)
			}
		}
		slices.Sort(hosts)
		return hosts
	}
	for name, c := range map[string]struct {
		others, want []string
	}{
		"alone":           {nil, []string{"10.0.0.1"}},
		"two others":      {[]string{"10.0.0.2", "10.0.0.3"}, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}},
		"another network": {[]string{"10.0.1.2", "fd00::2", "10.0.0.3"}, []string{"10.0.0.1", "10.0.0.3"}},
	} {
		r.others = nil
		for _, a := range c.others {
			r.others = append(r.others, netip.MustParseAddr(a))
		}
		script, _ := m.boot()
		if got := at(script); !slices.Equal(got, c.want) {
			t.Errorf("%s: files at %v, want %v:\n%s", name, got, c.want, script)
		}
		for _, word := range strings.Fields(script) {
			isFree := strings.Contains(word, "/artefact/") || strings.HasSuffix(word, "/ask")
			if strings.HasPrefix(word, "http://") && !isFree && !strings.HasPrefix(word, base+"/") {
				t.Errorf("%s: the machine speaks with another instance: %s", name, word)
			}
		}
	}
}
