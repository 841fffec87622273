package metal

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
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

func at(s slot, st stage) slot {
	s.stage = st
	return s
}

func TestSoManyWorkersJoinAtATime(t *testing.T) {
	x := known(t, nil)
	r := rules{workers: 2}
	for i, want := range []bool{true, true, false} {
		name := fmt.Sprint("w", i)
		if _, wait, _ := x.take(name, worker(name), r); (wait == "") != want {
			t.Errorf("%s: %q", name, wait)
		}
	}
	if _, wait, _ := x.take("w0", worker("w0"), r); wait != "" {
		t.Errorf("one that has its turn loses it: %q", wait)
	}
	if _, wait, _ := x.take("p", plane("p"), r); wait != "" {
		t.Errorf("a control plane waits for workers: %q", wait)
	}
	x.note("w1", at(worker("w1"), stageDone))
	if _, wait, _ := x.take("w2", worker("w2"), r); wait != "" {
		t.Errorf("the place of one that has joined stays taken: %q", wait)
	}
	x.forget("w2")
	if _, wait, _ := x.take("w3", worker("w3"), r); wait != "" {
		t.Errorf("the place of one that is gone stays taken: %q", wait)
	}
}

func TestOnlyOneMakesTheClusterAndTheOthersFollow(t *testing.T) {
	x := known(t, nil)
	r := rules{workers: 20, isInit: true}
	if _, wait, isInit := x.take("w", worker("w"), r); wait == "" || !isInit {
		t.Errorf("a worker joins what is not there: %q", wait)
	}
	if isFirst, wait, _ := x.take("p1", plane("p1"), r); !isFirst || wait != "" {
		t.Errorf("nobody makes the cluster: %q", wait)
	}
	if isFirst, wait, isInit := x.take("p2", plane("p2"), r); isFirst || wait == "" || !isInit {
		t.Errorf("two make the cluster: %q", wait)
	}
	x.note("p1", at(plane("p1"), stageWaiting)) // its host failed
	if isFirst, wait, _ := x.take("p2", plane("p2"), r); isFirst || wait == "" {
		t.Errorf("two make the cluster after a failure: %q", wait)
	}
	r.isInitialized = true
	if _, wait, _ := x.take("w", worker("w"), r); wait != "" {
		t.Errorf("a worker waits for what is there: %q", wait)
	}
	x.note("p1", at(plane("p1"), stageJoining))
	if _, wait, isInit := x.take("p2", plane("p2"), r); wait == "" || isInit {
		t.Errorf("two control planes join at a time: %q", wait)
	}
	x.note("p1", at(plane("p1"), stageDone))
	if isFirst, wait, _ := x.take("p2", plane("p2"), r); isFirst || wait != "" {
		t.Errorf("the next does not follow: %q", wait)
	}
}

func TestTheFirstOneMayGoAndAnotherMakesTheCluster(t *testing.T) {
	x := known(t, nil)
	r := rules{workers: 20, isInit: true}
	x.take("p1", plane("p1"), r)
	x.forget("p1")
	if isFirst, _, _ := x.take("p2", plane("p2"), r); !isFirst {
		t.Error("nobody makes the cluster any more")
	}
}

func TestWhoJoinsIsKnownAfterARestart(t *testing.T) {
	first := at(plane("p1"), stageJoining)
	first.isFirst = true
	x := known(t, map[string]slot{"p1": first, "w1": at(worker("w1"), stageJoining)})
	if isFirst, wait, _ := x.take("p2", plane("p2"), rules{workers: 1, isInit: true}); isFirst || wait == "" {
		t.Errorf("two make the cluster: %q", wait)
	}
	if _, wait, _ := x.take("w2", worker("w2"), rules{workers: 1}); wait == "" {
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
