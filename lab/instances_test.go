package lab

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/wire"
)

func TestALabRefusesServersThatItCannotHave(t *testing.T) {
	for _, n := range []int{-1, 0, MostInstances + 1, 9} {
		err := (&UpCommand{Machines: 1, Instances: n}).Run()
		if !inventory.IsKind(err, inventory.Invalid) || !strings.Contains(err.Error(), "servers is not possible") {
			t.Errorf("%d: %v", n, err)
		}
	}
}

func TestALabWaitsForServersThatAreAliveAndOneThatLeads(t *testing.T) {
	one, two := wire.Instance{Name: "one", Life: "alive"}, wire.Instance{Name: "two", Life: "alive"}
	leads := func(i wire.Instance) wire.Instance { i.IsLeader = true; return i }
	silent := func(i wire.Instance) wire.Instance { i.Life = "silent"; return i }
	for _, c := range []struct {
		name   string
		all    []wire.Instance
		is     bool
		leader string
	}{
		{"both, and the first leads", []wire.Instance{leads(one), two}, true, "one"},
		{"both, and the second leads", []wire.Instance{one, leads(two)}, true, "two"},
		{"nobody leads yet", []wire.Instance{one, two}, false, ""},
		{"only one is there", []wire.Instance{leads(one)}, false, "one"},
		{"the second is silent", []wire.Instance{leads(one), silent(two)}, false, "one"},
		{"the one that leads is silent", []wire.Instance{silent(leads(one)), two}, false, ""},
		{"none", nil, false, ""},
	} {
		name := ""
		if l := leader(c.all); l != nil {
			name = l.Name
		}
		if is := areAlive(2)(c.all); is != c.is || name != c.leader {
			t.Errorf("%s: %v, %q leads", c.name, is, name)
		}
	}
}

func TestServersOfADatabaseHaveTheSameKeyAndNothingElse(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "two")
	if err := shareKey(from, to); err == nil {
		t.Error("a key was copied that is not there")
	}
	for name, text := range map[string]string{"secret.key": "k\n", "instance.id": "i\n"} {
		if err := os.WriteFile(filepath.Join(from, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := shareKey(from, to); err != nil {
		t.Fatal(err)
	}
	has, err := os.ReadDir(to)
	if err != nil || len(has) != 1 || has[0].Name() != "secret.key" {
		t.Errorf("%v, %v", has, err)
	}
	if i, err := os.Stat(filepath.Join(to, "secret.key")); err != nil || i.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", i, err)
	}
}

func TestFilesOfServersHaveTheirNames(t *testing.T) {
	r := &Rack{cfg: RackConfig{Dir: "/lab", Bridge: "b"}, seats: make([]seat, 2)}
	if s := newServer(r, 0, "", "slipway"); s.dataDir != "/lab/data" || s.logPath != "/lab/serve.log" || s.pidPath != "/lab/serve.pid" {
		t.Errorf("alone: %s, %s, %s", s.dataDir, s.logPath, s.pidPath)
	}
	s := newServer(r, 1, "two", "slipway")
	if s.socket() != "/lab/two-data/slipway.sock" || s.pidPath != "/lab/two-serve.pid" || !slices.Contains(s.args, s.dataDir) {
		t.Errorf("the second: %s, %s, %q", s.socket(), s.pidPath, s.args)
	}
}

// TestEventsOfMachinesOfTheLabAreHeard holds that a check hears when a machine of its own boots, and nothing of others.
func TestEventsOfMachinesOfTheLabAreHeard(t *testing.T) {
	b := newBoard(Specs(1), 3, t0)
	var heard []string
	f := &follower{api: &fakeServer{}, board: b, heard: func(_ context.Context, ev inventory.Event) { heard = append(heard, ev.Kind) }}
	for _, mac := range []inventory.MAC{b.rows[0].MAC, "52:54:00:00:00:01"} {
		f.take(t.Context(), inventory.Event{Kind: inventory.EventArtefactSent, MAC: mac})
	}
	if len(heard) != 1 || heard[0] != inventory.EventArtefactSent {
		t.Errorf("%q", heard)
	}
}
