package allowance

import (
	"fmt"
	"testing"
	"time"
)

var plan = Plan{
	Session: Limits{Rate{3, 60}, Rate{1000, 0}}, MAC: Limits{Rate{5, 0}, Rate{10_000, 0}}, Port: Limits{Rate{8, 0}, Rate{10_000, 0}},
	Strangers: Limits{Rate{12, 0}, Rate{10_000, 0}}, KnownSession: Limits{Rate{50, 0}, Rate{10_000, 0}}, KnownMAC: Limits{Rate{60, 0}, Rate{10_000, 0}},
}

// spend says how many of n rows are had.
func spend(b *Book, now time.Time, w Who, n int) (had int) {
	for range n {
		if b.Spend(now, w, 1, 1) {
			had++
		}
	}
	return had
}

func TestEverybodyWhoPaysHasABudget(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	b := New(plan)
	for i, tc := range []struct {
		what string
		who  Who
		want int
	}{
		{"a session", Who{Session: "s1", MAC: "m1", Port: "p1"}, 3},
		{"another session of that MAC", Who{Session: "s2", MAC: "m1", Port: "p1"}, 2},
		{"another MAC on that port", Who{Session: "s3", MAC: "m2", Port: "p1"}, 3},
		{"a MAC on a port that has nothing left", Who{Session: "s4", MAC: "m3", Port: "p1"}, 0},
		{"a MAC on another port", Who{Session: "s5", MAC: "m4", Port: "p2"}, 3},
		{"one more stranger, when all of them have spent theirs", Who{Session: "s6", MAC: "m5", Port: "p3"}, 1},
		{"a stranger without any name", Who{}, 0},
		{"a known machine", Who{Session: "s7", MAC: "m6", Port: "p1", IsKnown: true}, 50},
		{"its next session", Who{Session: "s8", MAC: "m6", Port: "p1", IsKnown: true}, 10},
	} {
		if had := spend(b, now, tc.who, 100); had != tc.want {
			t.Errorf("%d, %s: %d rows, want %d", i, tc.what, had, tc.want)
		}
	}
}

func TestWhatIsRefusedCostsNothingAndComesBack(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	b := New(plan)
	w := Who{Session: "s"}
	if b.Spend(now, w, 1, 5000) {
		t.Error("more bytes than there may be")
	}
	if had := spend(b, now, w, 10); had != 3 {
		t.Errorf("%d rows after a refusal, want 3", had)
	}
	if had := spend(b, now.Add(2*time.Minute), w, 10); had != 2 {
		t.Errorf("%d rows after two minutes, want 2", had)
	}
	if had := spend(b, now.Add(-time.Hour), w, 10); had != 0 {
		t.Errorf("%d rows after the clock was set back", had)
	}
}

func TestAFloodOfNamesCostsNoMemory(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	p := plan
	p.Strangers = Limits{Rate{1e9, 0}, Rate{1e9, 0}}
	b := New(p)
	b.most = 100
	for i := range 1000 {
		b.Spend(now, Who{MAC: fmt.Sprint(i)}, 1, 1)
	}
	if len(b.purses) > 100 {
		t.Errorf("%d purses", len(b.purses))
	}
	if !b.Spend(now, Who{MAC: "known", IsKnown: true}, 1, 1) {
		t.Error("a known machine pays for the flood")
	}
}
