package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
)

var t0 = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// at makes an event of the first machine, that many seconds after it was switched on.
func at(seconds float64, kind, detail string) inventory.Event {
	return inventory.Event{
		At: t0.Add(time.Duration(seconds * 1e9)), Kind: kind, Detail: detail, MAC: Specs(1)[0].MAC,
		HostID: "h1", SessionID: "s1",
	}
}

func bootEvents() []inventory.Event {
	return []inventory.Event{
		at(2.1, inventory.EventHostDiscovered, "host-5254005a0001 heard on subnet lab"),
		at(2.1, inventory.EventSessionStarted, "ipxe bios x86_64"),
		{At: t0.Add(2200 * time.Millisecond), Kind: inventory.EventStateChanged, HostID: "h1", Detail: "discovered → available: accepted"},
		at(2.3, inventory.EventDHCPAck, "10.213.0.128"),
		at(2.4, inventory.EventScriptAsked, "iPXE asks"),
		at(2.5, inventory.EventBootDecided, "image: profile lab gives it image lab-debian-12"),
		at(3.1, inventory.EventArtefactSent, "linux over http"),
		at(4.9, inventory.EventArtefactSent, "initrd.gz over http"),
		at(5.0, inventory.EventArtefactSent, "slipway-init.gz over http"),
		at(14.8, inventory.EventReported, "up: Linux 6.1.0-50-amd64 runs on bios after 5.32 s of its own"),
		at(14.9, inventory.EventSessionEnded, "arrived after 12.8s"),
	}
}

func host(state inventory.State) inventory.Host {
	return inventory.Host{ID: "h1", Name: "host-5254005a0001", State: state, NICs: []inventory.NIC{{MAC: Specs(1)[0].MAC}}}
}

func TestAMachinePassesItsSteps(t *testing.T) {
	b := newBoard(Specs(1), 3, t0)
	var passed []string
	for _, ev := range bootEvents() {
		if _, s := b.event(ev); s >= 0 {
			passed = append(passed, fmt.Sprintf("%s %s", s, seconds(b.rows[0].At[s])))
		}
	}
	want := []string{"heard 2.1", "accepted 2.2", "address 2.3", "script 2.4", "files 5.0", "booted 14.8"}
	if diff := cmp.Diff(want, passed); diff != "" {
		t.Error(diff)
	}
	if !b.isDone() {
		t.Error("not done")
	}
}

func TestANewBootStartsOver(t *testing.T) {
	b := newBoard(Specs(1), 3, t0)
	for _, ev := range bootEvents()[:7] {
		b.event(ev)
	}
	again := at(40, inventory.EventSessionStarted, "ipxe bios x86_64")
	again.SessionID = "s2"
	b.event(again)
	r := b.rows[0]
	if r.At[stepHeard] != 2100*time.Millisecond || r.At[stepAccepted] == 0 || r.At[stepScript] != 0 || r.FilesN != 0 {
		t.Errorf("after a new boot: %v, %d files", r.At, r.FilesN)
	}
}

func TestEventsOfOtherMachinesAreNotOurs(t *testing.T) {
	b := newBoard(Specs(1), 3, t0)
	for _, ev := range []inventory.Event{
		{Kind: inventory.EventDHCPAck, MAC: "00:11:22:33:44:55", HostID: "h9"},
		{Kind: inventory.EventServer, Detail: "started"},
	} {
		if r, _ := b.event(ev); r != nil {
			t.Errorf("%s was taken for %s", ev.Kind, r.Name)
		}
	}
}

func TestTableOfARackUnderWay(t *testing.T) {
	b := newBoard(Specs(4), 3, t0)
	b.takeHosts([]inventory.Host{host(inventory.Active)})
	for _, ev := range bootEvents() {
		b.event(ev)
	}
	b.rows[0].Profile = "lab"
	for _, ev := range bootEvents()[:2] {
		ev.MAC, ev.HostID, ev.SessionID = b.rows[1].MAC, "h2", "s2"
		b.event(ev)
	}
	failed := host(inventory.Failed)
	failed.ID, failed.Name, failed.NICs[0].MAC, failed.StateReason = "h3", "host-3", b.rows[2].MAC, "6 boots without an arrival"
	b.takeHosts([]inventory.Host{failed})
	golden(t, "table.golden.txt", table(b.copy(), 0))
	golden(t, "table-80.golden.txt", table(b.copy(), 80))
	golden(t, "report.golden.txt", report(b.copy()))
	golden(t, "timeline.golden.txt", b.timeline(b.rows[0])+b.timeline(b.rows[3]))
	if r := b.problem(); r == nil || r.Name != "uefi-http" {
		t.Errorf("problem %v", r)
	}
}

// fakeServer is a server with one machine of the lab's and one of somebody else's.
type fakeServer struct {
	state    inventory.State
	accepted []string
	conflict bool
	broken   error // what ends the event stream
}

func (f *fakeServer) hosts(context.Context) ([]inventory.Host, error) {
	other := inventory.Host{ID: "other", Name: "other", State: inventory.Discovered, NICs: []inventory.NIC{{MAC: "00:11:22:33:44:55"}}}
	return []inventory.Host{host(f.state), other}, nil
}

func (f *fakeServer) accept(_ context.Context, h inventory.Host, s Spec) error {
	f.accepted = append(f.accepted, h.Name+" as "+s.HostName())
	f.state = inventory.Available
	if f.conflict {
		return inventory.Errorf(inventory.Conflict, "a host that is available cannot accept")
	}
	return nil
}

func (f *fakeServer) profileOf(context.Context, string) string { return "lab" }

func (f *fakeServer) follow(ctx context.Context, each func(inventory.Event)) error {
	if f.broken != nil {
		return f.broken
	}
	for _, ev := range bootEvents() {
		each(ev)
	}
	<-ctx.Done()
	return ctx.Err()
}

func TestFollowAcceptsOurMachinesAndSeesThemArrive(t *testing.T) {
	for _, c := range []struct {
		name string
		api  fakeServer
	}{
		{"at once", fakeServer{state: inventory.Discovered}},
		{"when a rule was faster", fakeServer{state: inventory.Discovered, conflict: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBoard(Specs(1), 3, t0)
			var steps []string
			f := &follower{api: &c.api, board: b, reached: func(_ *row, s step) { steps = append(steps, s.String()) }}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if err := f.follow(ctx, b.isDone); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"host-5254005a0001 as lab-bios"}, c.api.accepted); diff != "" {
				t.Error(diff)
			}
			if !slices.Contains(steps, "booted") || b.rows[0].Profile != "lab" {
				t.Errorf("steps %v, profile %q", steps, b.rows[0].Profile)
			}
		})
	}
}

func TestFollowEndsWithItsContext(t *testing.T) {
	b := newBoard(Specs(2), 3, t0)
	f := &follower{api: &fakeServer{state: inventory.Discovered}, board: b}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.follow(ctx, b.isDone); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestFollowEndsWhenEventsAreRefused(t *testing.T) {
	b := newBoard(Specs(1), 3, t0)
	want := inventory.Errorf(inventory.Unauthorized, "no")
	f := &follower{api: &fakeServer{state: inventory.Discovered, broken: want}, board: b}
	if err := f.follow(t.Context(), b.isDone); !errors.Is(err, want) {
		t.Errorf("got %v", err)
	}
}

func TestMissingPackagesAreNamedWithTheirPurpose(t *testing.T) {
	got := Missing([]Package{
		{"bash", "is there", "sh"}, {"nosuch", "is not", "no-such-program"}, {"nofile", "is not either", "/no/such/file"}, {"root", "is", "/"},
	})
	if len(got) != 2 || got[0].Name != "nosuch" || got[1].Name != "nofile" {
		t.Errorf("got %v", got)
	}
	for _, p := range Packages() {
		if p.Why == "" || p.Has == "" || strings.Contains(p.Name, " ") {
			t.Errorf("package %+v is not complete", p)
		}
	}
}

func (f *fakeServer) under(context.Context) ([]inventory.Machine, []inventory.Operation, error) {
	return nil, nil, nil
}
func (f *fakeServer) create(context.Context, Spec) error { return nil }
func (f *fakeServer) remove(context.Context, Spec) error { return nil }
