package instance

import (
	"errors"
	"testing"
	"time"

	"slipway.dev/slipway/provision/duty"
)

// TestALeaderThatDoesNotAnswerIsTold lets an instance ask its leader every two seconds.
func TestALeaderThatDoesNotAnswerIsTold(t *testing.T) {
	closed, noRoute := errors.New("connection refused"), errors.New("no route")
	type step struct {
		after  time.Duration
		leader string
		life   duty.Life
		err    error
		want   string
	}
	for name, steps := range map[string][]step{
		"it answers": {{0, "a", duty.Alive, nil, ""}, {time.Hour, "a", duty.Alive, nil, ""}},
		"it does not, and then it does": {
			{0, "a", duty.Alive, closed, ""},
			{5 * time.Second, "a", duty.Alive, closed, ""},
			{time.Second, "a", duty.Alive, closed, "connection refused"},
			{2 * time.Second, "a", duty.Alive, noRoute, "connection refused"}, // each reason would be written
			{30 * time.Second, "a", duty.Alive, noRoute, "no route"},
			{2 * time.Second, "a", duty.Alive, nil, ""},
			{2 * time.Second, "a", duty.Alive, closed, ""},
		},
		"it is dead": {
			{0, "a", duty.Alive, closed, ""},
			{3 * time.Second, "a", duty.Silent, closed, ""},
			{20 * time.Second, "a", duty.Silent, closed, ""},
		},
		"another takes over, and needs some seconds": {
			{0, "a", duty.Alive, closed, ""},
			{6 * time.Second, "a", duty.Alive, closed, "connection refused"},
			{2 * time.Second, "c", duty.Alive, closed, ""},
			{2 * time.Second, "c", duty.Alive, nil, ""},
		},
		"nobody knows whether it lives": {
			{0, "a", duty.Alive, closed, ""},
			{6 * time.Second, "a", duty.Alive, closed, "connection refused"},
			{2 * time.Second, "a", duty.Unknown, closed, "connection refused"},
		},
		"nobody has the engine": {{0, "", duty.Unknown, closed, ""}, {time.Hour, "", duty.Unknown, closed, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			var e ear
			now := time.Now()
			for n, s := range steps {
				now = now.Add(s.after)
				if got := e.hear(s.leader, s.life, s.err, now); got != s.want {
					t.Errorf("step %d: %q, want %q", n+1, got, s.want)
				}
			}
		})
	}
}

func TestOnlyALiveInstanceIsCutOff(t *testing.T) {
	for name, tc := range map[string]struct {
		reason         string
		life           duty.Life
		leads, wasTold bool
		want           bool
	}{
		"it is":                                {"no route", duty.Alive, false, false, true},
		"it gets answers":                      {"", duty.Alive, false, true, false},
		"it is silent":                         {"no route", duty.Silent, false, true, false},
		"it has stopped":                       {"no route", duty.Stopped, false, true, false},
		"nobody knows":                         {"no route", duty.Unknown, false, false, false},
		"nobody knows, and it was before":      {"no route", duty.Unknown, false, true, true},
		"it has taken over, and says so later": {"no route", duty.Alive, true, true, false},
	} {
		p := duty.Peer{Sight: duty.Sight{Life: tc.life}, IsLeader: tc.leads}
		p.CutOff = tc.reason
		if got := isCutOff(p, tc.wasTold); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
