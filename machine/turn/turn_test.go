package turn

import (
	"slices"
	"testing"
)

func TestWhoseTurnItIs(t *testing.T) {
	plane, worker := Machine{Name: "p", IsPlane: true}, Machine{Name: "w"}
	at := func(m Machine, s Stage) Machine { m.Stage = s; return m }
	first := Machine{Name: "one", IsPlane: true, IsFirst: true, Stage: Joining}
	made, making := Rules{IsInit: true, IsInitialized: true}, Rules{IsInit: true}
	for _, tc := range []struct {
		name   string
		m      Machine
		others []Machine
		rules  Rules
		want   Verdict
	}{
		{"a control plane makes the cluster", plane, []Machine{worker}, making, Verdict{IsFirst: true}},
		{"while another makes it, it waits", plane, []Machine{first}, making, Verdict{Wait: "machine one makes the cluster; the others follow", IsInitMissing: true}},
		{"also while the host of that one is replaced", plane, []Machine{at(first, Waiting)}, making, Verdict{Wait: "machine one makes the cluster; the others follow", IsInitMissing: true}},
		{"a worker waits for the cluster", worker, nil, making, Verdict{Wait: "workers wait until the control plane is initialized", IsInitMissing: true}},
		{"in a cluster that is there nobody makes it", plane, []Machine{at(first, Done)}, made, Verdict{}},
		{"control planes come one at a time", plane, []Machine{at(plane, Joining)}, made, Verdict{Wait: "control planes join one at a time"}},
		{"workers do not hold them up", plane, []Machine{at(worker, Joining)}, made, Verdict{}},
		{"nor they workers", worker, []Machine{at(plane, Joining)}, made, Verdict{}},
		{"so many workers at a time", worker, []Machine{at(worker, Joining)}, Rules{Workers: 1}, Verdict{Wait: "1 workers join at a time"}},
		{"those that have joined do not count", worker, []Machine{at(worker, Done), at(worker, Ready)}, Rules{Workers: 1}, Verdict{}},
		{"20 where nobody says how many", worker, slices.Repeat([]Machine{at(worker, Joining)}, DefaultWorkers), Rules{}, Verdict{Wait: "20 workers join at a time"}},
		{"the twentieth goes", worker, slices.Repeat([]Machine{at(worker, Joining)}, DefaultWorkers-1), Rules{}, Verdict{}},
	} {
		if got := Judge(at(tc.m, Ready), slices.Values(tc.others), tc.rules); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}
