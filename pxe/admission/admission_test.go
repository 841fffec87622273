package admission

import (
	"fmt"
	"testing"
	"time"
)

type clock struct{ t time.Time }

func newClock() *clock { return &clock{time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time { return c.t }

func (c *clock) step(d time.Duration) { c.t = c.t.Add(d) }

func TestTheLinkDecidesHowManyDownloadAtOnce(t *testing.T) {
	for _, c := range []struct {
		what  string
		rules Rules
		want  int
	}{
		{"nothing known", Rules{}, 256},
		{"1 Gb/s with the usual floor", Rules{BytesPerSecond: 125_000_000}, 25},
		{"10 Gb/s with 20 MB/s each", Rules{BytesPerSecond: 1_250_000_000, Floor: 20_000_000}, 62},
		{"a link below the floor serves one at a time", Rules{BytesPerSecond: 1_000_000}, 1},
		{"fewer by choice", Rules{Downloads: 4, BytesPerSecond: 125_000_000}, 4},
	} {
		if got := c.rules.slots(); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
}

func TestTheOldestBootIsNextInLine(t *testing.T) {
	clk := newClock()
	l := newLine(Rules{Downloads: 1, BytesPerSecond: 10_000_000}, clk.now)
	const size = 40_000_000 // 4 s
	enter := func(boot string) int { _, place := l.enter(boot, size); return place }

	if enter("a") != 0 {
		t.Fatal("an empty line lets the first one wait")
	}
	for i, boot := range []string{"b", "c", "d"} {
		clk.step(time.Second)
		if got := enter(boot); got != i+1 {
			t.Errorf("%s has place %d, want %d", boot, got, i+1)
		}
	}
	clk.step(time.Second)
	l.leave("a", 4*time.Second)
	if got := enter("e"); got != 4 {
		t.Errorf("a new boot has place %d before those who wait", got)
	}
	if got := enter("d"); got != 3 {
		t.Errorf("d asks early and has place %d, want 3", got)
	}
	if got := enter("a"); got != 0 {
		t.Errorf("the boot that has its kernel waits at place %d for its initrd", got)
	}
	l.leave("a", 4*time.Second)
	if got := enter("b"); got != 0 {
		t.Errorf("b is next and has place %d", got)
	}
	l.leave("b", 4*time.Second)
	clk.step(longestWait + grace) // c and d never come back
	if got := enter("e"); got != 0 {
		t.Errorf("e waits at place %d for machines that are gone", got)
	}
}

func TestWaitsAreWholeSecondsThatGrowWithTheLine(t *testing.T) {
	clk := newClock()
	l := newLine(Rules{Downloads: 2, BytesPerSecond: 100_000_000}, clk.now)
	const size = 100_000_000 // 2 s each when two share the link
	seen := map[time.Duration]bool{}
	var first, last time.Duration
	for i := range 200 {
		wait, place := l.enter(fmt.Sprintf("boot %03d", i), size)
		if i < 2 {
			if wait != 0 {
				t.Fatalf("boot %d waits", i)
			}
			continue
		}
		if place != i-1 || wait < time.Second || wait > longestWait || wait%time.Second != 0 {
			t.Fatalf("boot %d: place %d, %s", i, place, wait)
		}
		if i == 2 {
			first = wait
		}
		last = wait
		if i < 12 {
			seen[wait] = true
		}
	}
	if first > 5*time.Second || last != longestWait {
		t.Errorf("the first waits %s, the last %s", first, last)
	}
	if len(seen) < 3 {
		t.Errorf("ten machines come back at only %d different times", len(seen))
	}
}

func TestALineForgetsThoseThatAreGone(t *testing.T) {
	clk := newClock()
	l := newLine(Rules{Downloads: 1}, clk.now)
	for i := range 100 {
		l.enter(fmt.Sprint(i), 1)
	}
	if q, a := l.lengths(); q != 99 || a != 1 {
		t.Fatalf("%d wait, %d load", q, a)
	}
	clk.step(forgetAfter + time.Second)
	l.sweep()
	if len(l.boots) != 1 || len(l.queue) != 0 {
		t.Errorf("%d boots kept, %d in line; only the one that loads should be", len(l.boots), len(l.queue))
	}
	for i := range maxWaiters + 100 {
		l.enter(fmt.Sprint("flood", i), 1)
	}
	if len(l.boots) > maxWaiters {
		t.Errorf("%d boots are remembered", len(l.boots))
	}
}

func TestBootsThatHaveLoadedKeepNobodyOut(t *testing.T) {
	clk := newClock()
	l := newLine(Rules{Downloads: 2}, clk.now)
	for i := range 3 * maxWaiters {
		boot := fmt.Sprint(i)
		if wait, place := l.enter(boot, 1); wait != 0 {
			t.Fatalf("boot %d waits %s at place %d, and nobody loads", i, wait, place)
		}
		l.leave(boot, time.Millisecond)
		clk.step(2 * time.Millisecond)
	}
	if len(l.boots) > maxWaiters {
		t.Errorf("%d boots are remembered", len(l.boots))
	}
	if wait, _ := l.enter("loads", 1); wait != 0 {
		t.Fatal("it waits")
	}
	if _, place := l.enter("loads too", 1); place != 0 {
		t.Fatal("the second waits")
	}
	if _, place := l.enter("waits", 1); place != 1 {
		t.Fatalf("the third has place %d", place)
	}
	clk.step(grace + time.Second/2) // they load on, and it is still in the line
	for i := range 2 * maxWaiters {
		boot := fmt.Sprint("x", i)
		l.boots[boot] = &waiter{boot: boot}
		if len(l.boots) >= maxWaiters {
			break
		}
	}
	if _, place := l.enter("next", 1); place != 2 {
		t.Errorf("behind the one that waits it has place %d, want 2", place)
	}
	for _, boot := range []string{"loads", "loads too", "waits"} {
		if l.boots[boot] == nil {
			t.Errorf("%q is forgotten", boot)
		}
	}
}

func TestEverybodyGetsThroughTheLine(t *testing.T) {
	clk := newClock()
	rules := Rules{Downloads: 4, BytesPerSecond: 125_000_000}
	l := newLine(rules, clk.now)
	const size, boots = 125_000_000, 48 // 12 s of link time in all, 4 s each
	next := make([]time.Time, boots)
	done := make([]time.Time, boots)
	for i := range next {
		next[i] = clk.now().Add(time.Duration(i%5) * 100 * time.Millisecond)
	}
	for left := boots; left > 0 && clk.now().Before(newClock().t.Add(10*time.Minute)); clk.step(100 * time.Millisecond) {
		for i := range next {
			if !done[i].IsZero() {
				if done[i].Equal(clk.now()) {
					l.leave(fmt.Sprint(i), 4*time.Second)
					left--
				}
				continue
			}
			if next[i].After(clk.now()) {
				continue
			}
			if wait, _ := l.enter(fmt.Sprint(i), size); wait > 0 {
				next[i] = clk.now().Add(wait)
			} else {
				done[i] = clk.now().Add(4 * time.Second)
			}
		}
	}
	if took := clk.now().Sub(newClock().t); took > 2*48*time.Second {
		t.Errorf("48 machines took %s; the link alone needs 48 s", took)
	} else {
		t.Logf("48 machines took %s; the link alone needs 48 s", took)
	}
}

func TestHowLongToWait(t *testing.T) {
	wait := func(rules Rules, boot string, place int, took ...time.Duration) time.Duration {
		l := newLine(rules, newClock().now)
		for _, d := range took {
			l.enter("before", 1)
			l.leave("before", d)
		}
		return l.waitFor(boot, place, 50_000_000)
	}
	two := Rules{Downloads: 2, BytesPerSecond: 10_000_000} // 10 s each
	if one := wait(two, "a", 1); wait(two, "a", 2) != one || wait(two, "a", 3) != one+10*time.Second {
		t.Errorf("two at a time wait %s and %s, those after them %s", one, wait(two, "a", 2), wait(two, "a", 3))
	}
	if got, usual := wait(Rules{Downloads: 1}, "a", 1, 20*time.Second, 20*time.Second, 20*time.Second, 20*time.Second), wait(Rules{Downloads: 1}, "a", 1); got <= usual {
		t.Errorf("on a link of unknown speed: %s after slow downloads, %s before", got, usual)
	}
	seen := map[time.Duration]bool{}
	for i := range 100 {
		seen[wait(two, fmt.Sprint(i), 1)] = true
	}
	if len(seen) != 4 {
		t.Errorf("machines at the same place come back at %d different times, want 4", len(seen))
	}
}

func TestHowLongABootIsRemembered(t *testing.T) {
	for _, c := range []struct {
		name string
		play func(l *line, clk *clock) bool
		want bool
	}{
		{"it was late, and is still before those that came after it", func(l *line, clk *clock) bool {
			l.enter("loads", 1)
			l.enter("late", 1)
			clk.step(longestWait + 2*grace)
			l.enter("new", 1)
			l.sweep()
			clk.step(time.Second)
			_, place := l.enter("late", 1)
			return place == 1
		}, true},
		{"it loaded for long, and comes for its next file", func(l *line, clk *clock) bool {
			l.enter("loads", 1)
			clk.step(forgetAfter + time.Minute)
			l.leave("loads", forgetAfter)
			l.sweep()
			return l.boots["loads"] != nil
		}, true},
		{"it has loaded just now, and the line is full", func(l *line, clk *clock) bool {
			for i := range maxWaiters {
				l.enter(fmt.Sprint(i), 1)
				l.leave(fmt.Sprint(i), time.Second)
			}
			clk.step(grace)
			l.enter("new", 1)
			return l.boots["1"] != nil
		}, true},
		{"that was a while ago", func(l *line, clk *clock) bool {
			for i := range maxWaiters {
				l.enter(fmt.Sprint(i), 1)
				l.leave(fmt.Sprint(i), time.Second)
			}
			clk.step(grace + time.Second)
			l.enter("new", 1)
			return l.boots["1"] != nil
		}, false},
	} {
		clk := newClock()
		if got := c.play(newLine(Rules{Downloads: 1}, clk.now), clk); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
