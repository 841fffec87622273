package node

import (
	"slices"
	"testing"
)

func TestWhoseTurnItIs(t *testing.T) {
	plane, worker := Joiner{Name: "p", IsPlane: true}, Joiner{Name: "w"}
	at := func(m Joiner, s Stage) Joiner { m.Stage = s; return m }
	first := Joiner{Name: "one", IsPlane: true, IsFirst: true, Stage: StageJoining}
	made, making := TurnRules{IsInit: true, IsInitialized: true}, TurnRules{IsInit: true}
	for _, tc := range []struct {
		name   string
		m      Joiner
		others []Joiner
		rules  TurnRules
		want   Turn
	}{
		{"a control plane makes the cluster", plane, []Joiner{worker}, making, Turn{IsFirst: true}},
		{"while another makes it, it waits", plane, []Joiner{first}, making, Turn{Wait: "machine one makes the cluster; the others follow", IsInitMissing: true}},
		{"also while the host of that one is replaced", plane, []Joiner{at(first, StageWaiting)}, making, Turn{Wait: "machine one makes the cluster; the others follow", IsInitMissing: true}},
		{"a worker waits for the cluster", worker, nil, making, Turn{Wait: "workers wait until the control plane is initialized", IsInitMissing: true}},
		{"in a cluster that is there nobody makes it", plane, []Joiner{at(first, StageDone)}, made, Turn{}},
		{"control planes come one at a time", plane, []Joiner{at(plane, StageJoining)}, made, Turn{Wait: "control planes join one at a time"}},
		{"workers do not hold them up", plane, []Joiner{at(worker, StageJoining)}, made, Turn{}},
		{"nor they workers", worker, []Joiner{at(plane, StageJoining)}, made, Turn{}},
		{"so many workers at a time", worker, []Joiner{at(worker, StageJoining)}, TurnRules{Workers: 1}, Turn{Wait: "1 workers join at a time"}},
		{"those that have joined do not count", worker, []Joiner{at(worker, StageDone), at(worker, StageReady)}, TurnRules{Workers: 1}, Turn{}},
		{"20 where nobody says how many", worker, slices.Repeat([]Joiner{at(worker, StageJoining)}, DefaultWorkers), TurnRules{}, Turn{Wait: "20 workers join at a time"}},
		{"the twentieth goes", worker, slices.Repeat([]Joiner{at(worker, StageJoining)}, DefaultWorkers-1), TurnRules{}, Turn{}},
	} {
		if got := JudgeTurn(at(tc.m, StageReady), slices.Values(tc.others), tc.rules); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}
