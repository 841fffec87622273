package httpboot

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"
)

func TestRangesAddUpToAFile(t *testing.T) {
	broke := errors.New("broke")
	type step struct {
		from, to int64
		err      error
		ended    bool
		bytes    int64
	}
	for _, c := range []struct {
		what  string
		steps []step
	}{
		{"the whole file at once", []step{{0, 1000, nil, true, 1000}}},
		{"broken off and resumed", []step{{0, 400, broke, true, 400}, {400, 1000, nil, true, 1000}}},
		{"broken off twice", []step{{0, 400, broke, true, 400}, {400, 500, broke, true, 500}, {500, 1000, nil, true, 1000}}},
		{"resumed with an overlap", []step{{0, 400, broke, true, 400}, {300, 1000, nil, true, 1000}}},
		{"resumed from the start", []step{{0, 400, broke, true, 400}, {0, 1000, nil, true, 1000}}},
		{"pieces in any order", []step{{500, 1000, nil, false, 500}, {0, 250, nil, false, 750}, {250, 500, nil, true, 1000}}},
		{"the same piece twice is no progress", []step{{0, 100, nil, false, 100}, {0, 100, nil, false, 100}}},
		{"nothing sent", []step{{0, 0, broke, true, 0}}},
		{"broken behind the last byte", []step{{0, 1000, broke, true, 1000}}},
	} {
		t.Run(c.what, func(t *testing.T) {
			clk := newClock()
			p := newProgress(clk.now)
			k := fetchKey{name: "linux"}
			for i, s := range c.steps {
				_, isNew := p.begin(k, 1000)
				if isNew != (i == 0) {
					t.Errorf("step %d: new is %v", i, isNew)
				}
				clk.step(time.Second)
				got, ended := p.end(k, span{s.from, s.to}, 1000, s.err)
				if ended != s.ended || got.Bytes != s.bytes || got.Size != 1000 {
					t.Errorf("step %d: ended %v with %d of %d, want %v with %d", i, ended, got.Bytes, got.Size, s.ended, s.bytes)
				}
				if ended && (got.Err == nil) != (s.bytes == 1000) {
					t.Errorf("step %d: %v at %d bytes", i, got.Err, got.Bytes)
				}
				if ended && got.Err == nil && got.Took != time.Duration(i+1)*time.Second {
					t.Errorf("took %s", got.Took)
				}
			}
		})
	}
}

func TestAMachineThatStopsAskingIsTold(t *testing.T) {
	clk := newClock()
	p := newProgress(clk.now)
	k := fetchKey{name: "linux", source: netip.MustParseAddr("10.0.0.9")}
	p.begin(k, 1000)
	p.end(k, span{0, 300}, 1000, nil)
	broken := fetchKey{name: "initrd"}
	p.begin(broken, 1000)
	p.end(broken, span{0, 10}, 1000, errClosed)
	running := fetchKey{name: "running"}
	p.begin(running, 1000)

	if got := p.sweep(); len(got) != 0 {
		t.Errorf("at once: %+v", got)
	}
	clk.step(silentFor)
	got := p.sweep()
	if len(got) != 1 || got[0].Name != "linux" || got[0].Bytes != 300 || !errors.Is(got[0].Err, errStoppedAsking) {
		t.Errorf("%+v", got)
	}
	if len(p.files) != 1 {
		t.Errorf("%d files are kept, want the running one", len(p.files))
	}
}

func TestFollowingFilesIsBounded(t *testing.T) {
	p := newProgress(newClock().now)
	for i := range maxFetches + 10 {
		p.begin(fetchKey{name: fmt.Sprint(i)}, 1000)
	}
	if len(p.files) != maxFetches {
		t.Errorf("%d files are followed", len(p.files))
	}
	k := fetchKey{name: fmt.Sprint(maxFetches + 1)}
	if got, ended := p.end(k, span{0, 1000}, 1000, nil); !ended || got.Bytes != 1000 {
		t.Errorf("a file that is not followed ends with %v, %+v", ended, got)
	}
	f := &fetch{size: 1 << 20}
	for i := range int64(10_000) {
		f.add(span{i * 10, i*10 + 5})
	}
	if len(f.have) > maxSpans {
		t.Errorf("%d pieces are kept", len(f.have))
	}
}

type clock struct{ t time.Time }

func newClock() *clock { return &clock{time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time { return c.t }

func (c *clock) step(d time.Duration) { c.t = c.t.Add(d) }
