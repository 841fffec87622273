package standalone

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"slipway.dev/slipway/kubernetes/node"
)

// known are turns of a cluster without machines so far.
func known(t *testing.T, all map[string]slot) *turns {
	t.Helper()
	x := newTurns(func(context.Context) (map[string]slot, error) { return all, nil })
	if err := x.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return x
}

func worker(name string) slot {
	return slot{key: types.NamespacedName{Namespace: "a", Name: name}, target: "a/lab", createdAt: time.Unix(1, 0)}
}

func plane(name string) slot {
	s := worker(name)
	s.isPlane = true
	return s
}

func at(s slot, st node.Stage) slot {
	s.stage = st
	return s
}

func TestSoManyWorkersJoinAtATime(t *testing.T) {
	x := known(t, nil)
	r := node.TurnRules{Workers: 2}
	for i, want := range []bool{true, true, false} {
		name := fmt.Sprint("w", i)
		if v := x.take(name, worker(name), r); (v.Wait == "") != want {
			t.Errorf("%s: %q", name, v.Wait)
		}
	}
	if v := x.take("w0", worker("w0"), r); v.Wait != "" {
		t.Errorf("one that has its turn loses it: %q", v.Wait)
	}
	if v := x.take("p", plane("p"), r); v.Wait != "" {
		t.Errorf("a control plane waits for workers: %q", v.Wait)
	}
	x.note("w1", at(worker("w1"), node.StageDone))
	if v := x.take("w2", worker("w2"), r); v.Wait != "" {
		t.Errorf("the place of one that has joined stays taken: %q", v.Wait)
	}
	x.forget("w2")
	if v := x.take("w3", worker("w3"), r); v.Wait != "" {
		t.Errorf("the place of one that is gone stays taken: %q", v.Wait)
	}
}

func TestOnlyOneMakesTheClusterAndTheOthersFollow(t *testing.T) {
	x := known(t, nil)
	r := node.TurnRules{Workers: 20, IsInit: true}
	if v := x.take("w", worker("w"), r); v.Wait == "" || !v.IsInitMissing {
		t.Errorf("a worker joins what is not there: %q", v.Wait)
	}
	if v := x.take("p1", plane("p1"), r); !v.IsFirst || v.Wait != "" {
		t.Errorf("nobody makes the cluster: %q", v.Wait)
	}
	if v := x.take("p2", plane("p2"), r); v.IsFirst || v.Wait == "" || !v.IsInitMissing {
		t.Errorf("two make the cluster: %q", v.Wait)
	}
	x.note("p1", at(plane("p1"), node.StageWaiting)) // its host failed
	if v := x.take("p2", plane("p2"), r); v.IsFirst || v.Wait == "" {
		t.Errorf("two make the cluster after a failure: %q", v.Wait)
	}
	r.IsInitialized = true
	if v := x.take("w", worker("w"), r); v.Wait != "" {
		t.Errorf("a worker waits for what is there: %q", v.Wait)
	}
	x.note("p1", at(plane("p1"), node.StageJoining))
	if v := x.take("p2", plane("p2"), r); v.Wait == "" || v.IsInitMissing {
		t.Errorf("two control planes join at a time: %q", v.Wait)
	}
	x.note("p1", at(plane("p1"), node.StageDone))
	if v := x.take("p2", plane("p2"), r); v.IsFirst || v.Wait != "" {
		t.Errorf("the next does not follow: %q", v.Wait)
	}
}

func TestTheFirstOneMayGoAndAnotherMakesTheCluster(t *testing.T) {
	x := known(t, nil)
	r := node.TurnRules{Workers: 20, IsInit: true}
	x.take("p1", plane("p1"), r)
	x.forget("p1")
	if v := x.take("p2", plane("p2"), r); !v.IsFirst {
		t.Error("nobody makes the cluster any more")
	}
}

func TestWhoJoinsIsKnownAfterARestart(t *testing.T) {
	first := at(plane("p1"), node.StageJoining)
	first.isFirst = true
	x := known(t, map[string]slot{"p1": first, "w1": at(worker("w1"), node.StageJoining)})
	if v := x.take("p2", plane("p2"), node.TurnRules{Workers: 1, IsInit: true}); v.IsFirst || v.Wait == "" {
		t.Errorf("two make the cluster: %q", v.Wait)
	}
	if v := x.take("w2", worker("w2"), node.TurnRules{Workers: 1}); v.Wait == "" {
		t.Error("more workers join than may")
	}
}

func TestMarksComeBackAsTheyWereWritten(t *testing.T) {
	for _, m := range []marks{{}, {claim: "c1"}, {at: "2026-01-01T00:00:00Z", rebooted: "2026-01-02T00:00:00Z", claim: "c"}} {
		for _, config := range []string{"", "host:\n  hostname: a\n", "# a comment\nhost: {}\n"} {
			got, rest := splitMarks(withMarks(config, m))
			if got != m || rest != config {
				t.Errorf("%+v over %q came back as %+v over %q", m, config, got, rest)
			}
		}
	}
}
