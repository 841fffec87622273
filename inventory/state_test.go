package inventory

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func triggers() []Trigger {
	return []Trigger{Accept, Inspect, Inspected, Boot, Install, Arrive, Adopt, Retire, Fence, Wipe, Cleaned, Fault, Release}
}

func TestEveryStateIsReachableAndEveryEdgeExplained(t *testing.T) {
	reached := map[State]bool{Discovered: true}
	for range States() {
		for s := range reached {
			for _, e := range EdgesFrom(s) {
				reached[e.To] = true
			}
		}
	}
	for _, s := range States() {
		if !reached[s] {
			t.Errorf("no way leads from discovered to %s", s)
		}
		if len(EdgesFrom(s)) == 0 {
			t.Errorf("no way leads out of %s", s)
		}
		var seen []Trigger
		for _, e := range EdgesFrom(s) {
			if e.When == "" {
				t.Errorf("%s on %s is not explained", s, e.On)
			}
			if slices.Contains(seen, e.On) {
				t.Errorf("%s knows %s twice", s, e.On)
			}
			if !slices.Contains(triggers(), e.On) || !slices.Contains(States(), e.To) {
				t.Errorf("%s has an edge on %s to %s, which is not listed", s, e.On, e.To)
			}
			seen = append(seen, e.On)
		}
	}
	for _, on := range triggers() {
		if !slices.ContainsFunc(States(), func(s State) bool { _, err := s.Next(on); return err == nil }) {
			t.Errorf("no state knows %s", on)
		}
	}
	if len(edges) != len(States()) {
		t.Errorf("the table has %d states, States %d", len(edges), len(States()))
	}
}

func TestTheTableCannotBeChangedFromOutside(t *testing.T) {
	EdgesFrom(Discovered)[0].To = Active
	if EdgesFrom(Discovered)[0].To != Available {
		t.Error("EdgesFrom hands out the table itself")
	}
}

// TestRandomTriggersStayInTheTable walks hosts through random lives.
func TestRandomTriggersStayInTheTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, accepted := Discovered, false
		for _, on := range rapid.SliceOf(rapid.SampledFrom(triggers())).Draw(t, "triggers") {
			next, err := s.Next(on)
			i := slices.IndexFunc(EdgesFrom(s), func(e Edge) bool { return e.On == on })
			switch {
			case err != nil && (next != s || i >= 0):
				t.Fatalf("%s refuses %s but goes to %s", s, on, next)
			case err == nil && (i < 0 || EdgesFrom(s)[i].To != next):
				t.Fatalf("%s goes on %s to %s, which the table does not know", s, on, next)
			case !slices.Contains(States(), next):
				t.Fatalf("%s is not a state", next)
			}
			accepted = accepted || (s == Discovered && on == Accept)
			if next != Discovered && !accepted {
				t.Fatalf("a host is %s without having been accepted", next)
			}
			if s != Discovered && next == Discovered {
				t.Fatalf("a host became unknown again")
			}
			if (s == Releasing || s == Cleaning) && next != s && next != Failed && on != Fence && on != Cleaned {
				t.Fatalf("a host that is %s goes on by %s, without its fence or certificates", s, on)
			}
			s = next
		}
	})
	_, err := Discovered.Next(Boot)
	wantKind(t, err, Conflict, "a host that is discovered cannot boot")
	_, err = Available.Next(Release)
	wantKind(t, err, Conflict, "the host is available: there is nothing to release it from")
	_, err = Failed.Next(Accept)
	wantKind(t, err, Conflict, "the host is accepted already, and failed")
}

const statesPage = "../docs/states.md"

// TestStatesPageIsGenerated keeps the picture in docs equal to the table.
func TestStatesPageIsGenerated(t *testing.T) {
	var b strings.Builder
	b.WriteString("# States of a host\n\n" +
		"<!-- Generated from inventory/state.go by: go test ./inventory -run StatesPage -update -->\n\n" +
		"A host is in one state at a time. Only Slipway moves it, and every move is an event in the host's timeline that says why.\n\n" +
		"```mermaid\nstateDiagram-v2\n    [*] --> " + string(Discovered) + ": first packet\n")
	for _, s := range States() {
		for _, e := range EdgesFrom(s) {
			fmt.Fprintf(&b, "    %s --> %s: %s\n", s, e.To, e.On)
		}
	}
	b.WriteString("```\n\n| from | on | to | when |\n|---|---|---|---|\n")
	for _, s := range States() {
		for _, e := range EdgesFrom(s) {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", s, e.On, e.To, e.When)
		}
	}
	if *update {
		if err := os.MkdirAll("../docs", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(statesPage, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(statesPage)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("docs/states.md is not what the table says (-want +got); run with -update:\n%s", d)
	}
}
