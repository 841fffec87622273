package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
)

// with adds data to an event.
func with(ev inventory.Event, data map[string]any) inventory.Event {
	ev.Data = data
	return ev
}

func moved(seconds float64, from, to inventory.State) inventory.Event {
	return with(at(seconds, inventory.EventStateChanged, fmt.Sprintf("%s → %s", from, to)), map[string]any{"from": string(from), "to": string(to)})
}

// lifeEvents are what a server tells of an installed machine, each boot with a session of its own.
func lifeEvents() []inventory.Event {
	evs := []inventory.Event{
		at(2, inventory.EventHostDiscovered, "host-5254005a0001 heard on subnet lab"),
		moved(3, inventory.Discovered, inventory.Available),
		moved(3, inventory.Available, inventory.Inspecting),
		at(20, inventory.EventAgentStarted, "our agent runs"),
		at(25, inventory.EventInspected, "1 disk"),
		moved(26, inventory.Inspecting, inventory.Available),
		at(27, inventory.EventClaimed, "claimed by machine bios"),
		moved(27, inventory.Available, inventory.Installing),
		with(at(28, inventory.EventOperation, "install for machine bios: power"), map[string]any{"step": "power"}),
		at(50, inventory.EventAgentStarted, "our agent runs"),
		with(at(60, inventory.EventOperation, "install for machine bios: reboot"), map[string]any{"step": "reboot"}),
		at(80, inventory.EventReported, "up: Linux 6.1 runs from /dev/vda3's disk as bios"),
		moved(80, inventory.Installing, inventory.Active),
		moved(82, inventory.Active, inventory.Releasing),
		moved(83, inventory.Releasing, inventory.Cleaning),
		at(110, inventory.EventAgentStarted, "our agent runs"),
		at(112, inventory.EventWiped, "1 disks, full"),
		moved(113, inventory.Cleaning, inventory.Available),
	}
	for i := range evs {
		evs[i].SessionID = inventory.SessionID(fmt.Sprint("s", i/5))
	}
	return evs
}

func TestAnInstalledMachinePassesTheStepsOfItsLife(t *testing.T) {
	b := newBoard(LifeSpecs(1), 3, t0)
	b.rows[0].IsLeaving = true
	var passed []string
	for _, ev := range lifeEvents() {
		if b.isDone() {
			t.Errorf("done before %s", ev.Detail)
		}
		if r, s := b.event(ev); s >= 0 {
			passed = append(passed, fmt.Sprintf("%s %s", s, seconds(r.At[s])))
		}
	}
	want := []string{
		"heard 2.0", "accepted 3.0", "inspected 25.0", "claimed 27.0", "agent 50.0", "written 60.0", "running 80.0", "fenced 83.0",
		"wiped 112.0", "free 113.0",
	}
	if diff := cmp.Diff(want, passed); diff != "" {
		t.Error(diff)
	}
	if !b.isDone() {
		t.Error("not done")
	}
}

func TestTableOfMachinesOfBothKinds(t *testing.T) {
	b := newBoard(LifeSpecs(5), 3, t0)
	for _, ev := range lifeEvents()[:9] {
		b.event(ev)
	}
	for _, ev := range bootEvents() {
		ev.MAC, ev.HostID = b.rows[2].MAC, "h3"
		b.event(ev)
	}
	for _, ev := range lifeEvents() {
		ev.MAC, ev.HostID = b.rows[3].MAC, "h4"
		b.event(ev)
	}
	b.rows[1].IsLeaving, b.rows[3].IsLeaving = true, true
	b.rows[4].HostID = "h5"
	b.takeLife([]inventory.Machine{
		{Name: "bios", Phase: inventory.MachineProvisioning},
		{Name: "uefi-2", Phase: inventory.MachineFailed, Reason: "3 hosts failed", Hint: "look at them"},
	}, []inventory.Operation{{
		ID: "o", HostID: "h1", Kind: inventory.OpInstall, Step: inventory.StepWrite, State: inventory.OpRunning,
		Progress: inventory.Progress{Detail: "writing the image to vda", Bytes: 12_300_000, Total: 50_331_648, BytesPerSecond: 16_000_000},
	}})
	golden(t, "life.golden.txt", table(b.copy(), 0)+"\n"+table(b.copy(), 80)+"\n"+report(b.copy()))
	if r := b.problem(); r == nil || r.Name != "uefi-2" {
		t.Errorf("problem %v", r)
	}
}

// lifeServer is a server with one host, whose machine runs as soon as it is wanted.
type lifeServer struct {
	fakeServer
	asked []string
}

func (f *lifeServer) hosts(context.Context) ([]inventory.Host, error) {
	return []inventory.Host{host(inventory.Available)}, nil
}

func (f *lifeServer) under(context.Context) ([]inventory.Machine, []inventory.Operation, error) {
	return []inventory.Machine{{Name: "bios", Phase: inventory.MachineRunning}}, nil, nil
}

func (f *lifeServer) create(_ context.Context, s Spec) error {
	f.asked = append(f.asked, "create "+s.MachineName())
	return nil
}

func (f *lifeServer) remove(_ context.Context, s Spec) error {
	if f.asked = append(f.asked, "remove "+s.MachineName()); len(f.asked) < 3 {
		return inventory.Errorf(inventory.Unavailable, "no answer")
	}
	return nil
}

func TestAMachineIsWantedOnceAndEndedOnceItRuns(t *testing.T) {
	for _, c := range []struct {
		name      string
		isLeaving bool
		want      []string
	}{
		{"one that stays", false, []string{"create bios"}},
		{"one that leaves, at the second try", true, []string{"create bios", "remove bios", "remove bios"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBoard(LifeSpecs(1), 3, t0)
			b.rows[0].IsLeaving = c.isLeaving
			api := &lifeServer{}
			f := &follower{api: api, board: b}
			for _, ev := range lifeEvents()[:4] {
				b.event(ev)
			}
			f.poll(t.Context()) // nothing is known of its hardware yet
			for _, ev := range lifeEvents() {
				b.event(ev)
				f.poll(t.Context())
			}
			if diff := cmp.Diff(c.want, api.asked); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheDomainOfAnInstalledMachine(t *testing.T) {
	got, err := domainXML(LifeSpecs(2)[1], "/var/lib/slipway-lab", "slipway0", AccelTCG)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "installed.golden.xml", got)
}

func TestADiskIsWipedWhenEveryByteOfItIsZero(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(f *os.File) error
		want int64
	}{
		{"a disk that was never written", func(*os.File) error { return nil }, -1},
		{"a disk of written zeroes", func(f *os.File) error { _, err := f.WriteAt(make([]byte, 3<<20), 0); return err }, -1},
		{"a byte at the end", func(f *os.File) error { _, err := f.WriteAt([]byte{1}, 8<<20-1); return err }, 8<<20 - 1},
		{"a byte behind written zeroes", func(f *os.File) error {
			_, err := f.WriteAt(append(make([]byte, 2<<20), 7), 1<<20)
			return err
		}, 3 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := os.Create(filepath.Join(t.TempDir(), "disk"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := f.Truncate(8 << 20); err != nil {
				t.Fatal(err)
			}
			if err := c.make(f); err != nil {
				t.Fatal(err)
			}
			if got, err := firstData(f.Name()); err != nil || got != c.want {
				t.Errorf("%d, %v; want %d", got, err, c.want)
			}
			if is, err := isInstalled(f.Name()); is || err != nil {
				t.Errorf("taken for installed: %v", err)
			}
		})
	}
}

func TestAWaitingOperationSaysWhatItWaitsFor(t *testing.T) {
	r := row{Spec: LifeSpecs(1)[0], Op: inventory.Operation{ID: "o", Kind: inventory.OpRelease, Step: inventory.StepFence, State: inventory.OpWaiting, Reason: "not fenced: no answer", StartedAt: time.Now()}}
	if got := lifeWord(r); !strings.HasSuffix(got, "release: fence, waits: not fenced: no answer") {
		t.Errorf("%q", got)
	}
}
