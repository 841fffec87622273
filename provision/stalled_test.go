package provision

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/lease"
)

// look lets what was noted be written, and boots be looked over.
func (r *rack) look() {
	r.t.Helper()
	r.settle()
	r.must(lookOver(r.engine))
	r.settle()
}

// lookOver looks over all boots that are due.
func lookOver(e *Engine) error {
	for {
		if hasMore, err := e.WatchBoots(context.Background()); err != nil || !hasMore {
			return err
		}
	}
}

// sweep ends what is over, in memory and in the store.
func sweep(e *Engine) error {
	if err := lookOver(e); err != nil {
		return err
	}
	return e.Sweep(context.Background())
}

// leg is a stretch of a boot, and what has to follow it.
type leg struct {
	name    string
	play    func(m *machine)
	expects string // "" when nothing is owed after it
}

func (m *machine) hear(kind string) {
	m.r.engine.Note(context.Background(), m.at(pxe.StageFirmware), kind, "")
}

func (m *machine) seek() {
	m.r.engine.Offer(context.Background(), m.at(pxe.StageFirmware), base)
	m.hear(inventory.EventDHCPDiscover)
}

// vain is a DISCOVER that is not answered.
func (m *machine) vain(reason lease.Reason) {
	c := m.at(pxe.StageFirmware)
	c.Address = netip.Addr{}
	m.r.engine.Unanswered(c, "eth1", string(reason), reason == lease.IsOff || reason == lease.NoReservation)
}

func (m *machine) fetch(name string) {
	m.r.engine.Transferring(pxe.Transfer{Source: m.address(), Proto: "http", Name: name})
	m.r.engine.Transferred(pxe.Transfer{Source: m.address(), Proto: "http", Name: name, Bytes: 5, Size: 5})
}

// legs are those of a boot until its files are fetched.
func legs() []leg {
	return []leg{
		{"DISCOVER", func(m *machine) { m.vain(lease.NoSubnet) }, "is offered an address"},
		{"OFFER", func(m *machine) { m.seek(); m.hear(inventory.EventDHCPOffer) }, "takes the address"},
		{"REQUEST", func(m *machine) { m.hear(inventory.EventDHCPRequest) }, "takes the address"},
		{"ACK", func(m *machine) { m.hear(inventory.EventDHCPAck) }, "fetches a boot loader"},
		{"RRQ", func(m *machine) {
			m.r.engine.Transferring(pxe.Transfer{Source: m.address(), Proto: "tftp", Name: "snponly.efi"})
		}, "whole boot loader"},
		{"loader", func(m *machine) {
			m.r.engine.Transferred(pxe.Transfer{Source: m.address(), Proto: "tftp", Name: "snponly.efi", Bytes: 5, Size: 5})
		}, "asks what to boot"},
		{"script", func(m *machine) { m.script(m.dhcp(pxe.StageIPXE).File) }, "fetches what it boots"},
		{"kernel", func(m *machine) { m.fetch("linux") }, "what it fetched runs"},
	}
}

// events returns the details of a host's events of a kind.
func (m *machine) events(kind string) (details []string) {
	m.r.t.Helper()
	m.r.must(m.r.store.Read(context.Background(), func(tx inventory.Tx) error {
		h, err := tx.FindHostByMAC(m.mac())
		if err != nil {
			return err
		}
		all, err := tx.ListEvents(inventory.EventFilter{HostID: h.ID}, 0, 1000)
		for _, e := range all {
			if e.Kind == kind {
				details = append(details, e.Detail)
			}
		}
		return err
	}))
	return details
}

// standsAt plays a boot up to a leg, waits in vain, and lets it go on: the issue opens and closes, and the timeline says
// both.
func standsAt(t *testing.T, r *rack, m *machine, way []leg, at int) {
	t.Helper()
	for _, l := range way[:at+1] {
		r.clock = r.clock.Add(time.Second)
		l.play(m)
		r.look()
	}
	if open := r.stalledIssues(inventory.IssueStalled); len(open) != 0 {
		t.Fatalf("after %s, before its deadline: %+v", way[at].name, open)
	}
	deadline := 2*time.Minute + time.Second
	if strings.HasPrefix(way[at].expects, "what it fetched") {
		deadline = 8*time.Minute + time.Second
	}
	r.clock = r.clock.Add(deadline)
	r.look()
	open := r.stalledIssues(inventory.IssueStalled)
	if len(open) != 1 || !strings.Contains(open[0].Cause, way[at].expects) || open[0].Hint == "" || len(open[0].HostIDs) != 1 || open[0].HostIDs[0] != m.host().ID {
		t.Fatalf("after %s, past its deadline: %+v, want %q", way[at].name, open, way[at].expects)
	}
	if told := m.events(inventory.EventIssueOpened); !slices.ContainsFunc(told, func(s string) bool { return strings.Contains(s, way[at].expects) }) {
		t.Errorf("the timeline has %q", told)
	}
	r.clock = r.clock.Add(time.Second)
	way[at+1].play(m)
	r.look()
	if way[at+1].name == "REQUEST" { // it takes the address, but comes no further than asking for it
		return
	}
	if open := r.stalledIssues(inventory.IssueStalled); len(open) != 0 {
		t.Errorf("after %s it went on with %s: %+v", way[at].name, way[at+1].name, open)
	}
	if told := m.events(inventory.EventIssueClosed); !slices.ContainsFunc(told, func(s string) bool { return strings.Contains(s, inventory.IssueStalled) }) {
		t.Errorf("that it went on is not in the timeline: %q", told)
	}
}

// Each step of a boot has an expected next one and a deadline: of a host that is to boot a profile's image without an
// operation, of one that was never heard before, and of one with an operation.
func TestEachStepOfABootHasADeadline(t *testing.T) {
	t.Run("known", func(t *testing.T) {
		way := append(legs(), leg{"initrd", func(m *machine) { m.fetch("initrd") }, ""})
		for at := range len(way) - 1 {
			t.Run(way[at].name, func(t *testing.T) {
				r := newRack(t)
				r.image("live", false, "mac", 0)
				r.write(func(tx inventory.Tx) error {
					i, err := tx.Images().Find("image-live")
					if err != nil {
						return err
					}
					i.Files = append(i.Files, inventory.ImageArtefact{Role: inventory.RoleInitrd, Name: "initrd", Digest: i.Files[0].Digest})
					return tx.Images().Update(&i, r.clock)
				})
				m := r.machine(1)
				m.boot()
				m.accept()
				r.clock = r.clock.Add(time.Hour)
				standsAt(t, r, m, way, at)
			})
		}
	})
	t.Run("new", func(t *testing.T) {
		way := legs()[1:6]
		way = append(way, leg{"script", func(m *machine) { m.script(m.dhcp(pxe.StageIPXE).File) }, ""})
		for at := range len(way) - 1 {
			t.Run(way[at].name, func(t *testing.T) {
				r := newRack(t)
				standsAt(t, r, r.machine(1), way, at)
			})
		}
	})
	t.Run("operation", func(t *testing.T) {
		way := append(legs(), leg{"agent", func(m *machine) {
			s, _ := m.r.engine.sessions.Of(m.mac())
			m.r.must(m.r.engine.AgentReport(context.Background(), s.ID, m.address(), m.r.engine.AgentKey(s.ID), wire.Report{
				Version: wire.Version, State: wire.Hello, Agent: &wire.AgentInfo{UUID: m.uuid},
			}))
		}, ""})
		for at := range len(way) - 1 {
			t.Run(way[at].name, func(t *testing.T) {
				l := newLife(t)
				s := l.add("r1-u01", false)
				_, err := l.engine.Inspect(context.Background(), s.host().ID, operation.InspectRequest{}, ledger.By("a test"))
				l.must(err)
				standsAt(t, l.rack, s.machine, way, at)
			})
		}
	})
}

// What was sent keeps a boot going: a large file takes longer than a deadline.
func TestABootThatIsBeingSentAFileDoesNotStandStill(t *testing.T) {
	r := newRack(t)
	m := r.accepted()
	m.boot()
	r.engine.Transferring(pxe.Transfer{Source: m.address(), Proto: "http", Name: "linux"})
	r.clock = r.clock.Add(10 * time.Minute)
	if r.look(); len(r.stalledIssues(inventory.IssueStalled)) != 0 {
		t.Error("a boot that is being sent a file counts as standing still")
	}
	r.clock = r.clock.Add(session.LoadingFor)
	if r.look(); len(r.stalledIssues(inventory.IssueStalled)) != 1 {
		t.Error("a file whose end nobody tells keeps a boot going for ever")
	}
}

// Firmware that asks again and again comes no further: one issue, from the first minute until it comes further.
func TestFirmwareThatAsksForEverStandsStill(t *testing.T) {
	r := newRack(t)
	m := r.accepted()
	r.clock = r.clock.Add(time.Hour)
	for range 10 { // EDK2: four DISCOVERs, a minute of other protocols, and again
		for _, wait := range []time.Duration{0, 4, 8, 16, 62} {
			r.clock = r.clock.Add(wait * time.Second)
			if wait < 62 {
				m.seek()
				m.hear(inventory.EventDHCPOffer)
			}
			r.look()
		}
	}
	open := r.stalledIssues(inventory.IssueStalled)
	if told := m.events(inventory.EventIssueOpened); len(open) != 1 || len(told) != 1 {
		t.Errorf("open: %+v; the timeline has %q", open, told)
	}
	m.boot()
	if r.look(); len(r.stalledIssues(inventory.IssueStalled)) != 0 {
		t.Error("still open after it booted")
	}
}

// An issue outlives the silence of its machine and a restart of the server, and closes when the machine comes further.
func TestAStalledBootIsRememberedUntilTheMachineComesFurther(t *testing.T) {
	r := newRack(t)
	m := r.accepted()
	r.clock = r.clock.Add(time.Hour)
	m.dhcp(pxe.StageFirmware)
	r.clock = r.clock.Add(2 * time.Minute)
	r.look()
	r.clock = r.clock.Add(session.SilentFor)
	r.must(sweep(r.engine))
	r.look()
	if len(r.stalledIssues(inventory.IssueStalled)) != 1 {
		t.Fatal("the issue closed because the machine is silent")
	}
	r.restart()
	if r.look(); len(r.stalledIssues(inventory.IssueStalled)) != 1 {
		t.Fatal("the issue closed with the restart")
	}
	m.dhcp(pxe.StageFirmware)
	if r.look(); len(r.stalledIssues(inventory.IssueStalled)) != 1 {
		t.Fatal("the issue closed although the machine came no further")
	}
	m.boot()
	if r.look(); len(r.stalledIssues(inventory.IssueStalled)) != 0 {
		t.Fatal("still open after it booted")
	}
	m.dhcp(pxe.StageFirmware)
	r.clock = r.clock.Add(2 * time.Minute)
	r.look()
	r.clock = r.clock.Add(stalledFor + time.Second)
	r.must(sweep(r.engine))
	if r.look(); len(r.stalledIssues(inventory.IssueStalled)) != 0 {
		t.Error("open a day after the last sign")
	}
}

// A later attempt that stands still elsewhere is what the issue is about then.
func TestTheIssueIsAboutTheLatestBootThatStandsStill(t *testing.T) {
	r := newRack(t)
	r.image("live", false, "mac", 0)
	m := r.known(1)
	m.dhcp(pxe.StageFirmware)
	r.clock = r.clock.Add(2 * time.Minute)
	r.look()
	if open := r.stalledIssues(inventory.IssueStalled); len(open) != 1 || !strings.Contains(open[0].Cause, "after dhcp.ack") {
		t.Fatalf("%+v", open)
	}
	m.vain(lease.NoSubnet)
	r.look()
	r.clock = r.clock.Add(2 * time.Minute)
	r.look()
	r.look()
	if open := r.stalledIssues(inventory.IssueStalled); len(open) != 1 || !strings.Contains(open[0].Cause, "after dhcp.discover") || open[0].SeenN != 2 {
		t.Errorf("%+v", open)
	}
}
