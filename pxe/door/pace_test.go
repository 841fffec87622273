package door

import (
	"testing"
	"time"
)

func TestHandshakesHaveARatePerSourceAndInAll(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	limits := Arrivals{All: Pace{PerSecond: 100, Burst: 200}, PerSource: Pace{PerSecond: 10, Burst: 20}}
	newDoor := func() *Door {
		return New(Config{All: 1 << 20, Knows: isOne, Arrivals: limits, Now: func() time.Time { return now }})
	}
	let := func(d *Door, tries int, who func(int) string) (n int) {
		for i := range tries {
			if p, _ := enter(d, addr(who(i))); p != nil {
				n++
			}
		}
		return n
	}
	one := func(s string) func(int) string { return func(int) string { return s } }

	d := newDoor()
	if n := let(d, 1000, one("10.0.0.7")); n != 20 {
		t.Errorf("one source is let in %d times at once", n)
	}
	if n := let(d, 5, one("10.0.0.8")); n != 5 {
		t.Errorf("another source is let in %d of 5 times", n)
	}
	now = now.Add(time.Second)
	if n := let(d, 1000, one("10.0.0.7")); n != 10 {
		t.Errorf("a second later it is let in %d times", n)
	}
	if n := let(d, 1000, func(i int) string { return []string{"2001:db8::1", "2001:db8::2"}[i%2] }); n != 20 {
		t.Errorf("an IPv6 network is let in %d times", n)
	}

	d = newDoor()
	p, _ := enter(d, addr("10.0.0.9"))
	p.Trust()
	if n := let(d, 60_000, func(i int) string { return stranger(i).String() }); n > 200 {
		t.Errorf("a flood from everywhere is let in %d times at once", n)
	}
	if n := let(d, 1, one("10.9.9.9")); n != 0 {
		t.Error("a stranger is let in beside the flood: nothing is limited")
	}
	for _, who := range []string{"10.0.0.1", "10.0.0.9"} { // a known host, and who has proved who he is
		if n := let(d, 5, one(who)); n != 5 {
			t.Errorf("%s is let in %d of 5 times beside the flood", who, n)
		}
	}
	if n := len(d.arrivals.bySource); n > pacedSources {
		t.Errorf("%d sources are remembered", n)
	}

	limits.PerKnown = Pace{PerSecond: 50, Burst: 60}
	d = newDoor()
	p, _ = enter(d, addr("10.0.0.9"))
	p.Trust()
	for who, want := range map[string]int{"10.0.0.1": 60, "10.0.0.9": 19, "10.0.0.8": 20} {
		if n := let(d, 1000, one(who)); n != want {
			t.Errorf("%s is let in %d times at once, want %d", who, n, want)
		}
	}
	now = now.Add(time.Second)
	for who, want := range map[string]int{"10.0.0.1": 50, "10.0.0.9": 50, "10.0.0.8": 10} {
		if n := let(d, 1000, one(who)); n != want {
			t.Errorf("a second later %s is let in %d times, want %d", who, n, want)
		}
	}
}

func TestADoorWithoutARateTakesAllThatHaveRoom(t *testing.T) {
	d := New(Config{All: 5000})
	for range 5000 {
		if p, _ := enter(d, addr("10.0.0.7")); p == nil {
			t.Fatal("one is refused")
		}
	}
}
