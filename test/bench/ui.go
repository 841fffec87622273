package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// What the web UI is promised to do with 10,000 hosts.
const (
	uiRows     = 1000.0 // ms from an empty cache to the first rows
	uiFilter   = 200.0  // ms from a key to the hosts that are found
	uiScroll   = 300.0  // ms from the first row to the last
	uiFrames   = 1.0    // % of the frames that may be dropped at 100 changes a second: none that is seen
	uiHeap     = 10.0   // MB that the page may grow by under these changes
	uiServer   = 20.0   // MB that the server may grow by
	uiTransfer = 600.0  // kB until the first rows are there, compressed
	uiList     = 50.0   // ms of the list's pages, p99
)

// skipped is a benchmark that cannot run here; its text says why.
type skipped string

func (s skipped) Error() string { return string(s) }

// uiRun is what one run of test/ui/scale.bench.mjs has found.
type uiRun struct {
	First struct {
		Rows, Whole float64 // ms
		KB, WholeKB float64
	}
	Overview     struct{ KB float64 }
	Filter, End  float64 // ms
	Quiet, Live  uiFramesOf
	Heap         []float64 // MB, from the beginning of the changes to their end
	Server       []float64 // MB of memory that is the server's own, at the same times
	API          map[string]struct{ P50, P99 float64 }
	Changes      struct{ PerSecond float64 }
	Arrives      float64
	WorstPerPage float64 // ms, p99 of the slowest page that the UI asks for
}

type uiFramesOf struct{ P50, P99, Most, Dropped float64 }

// uiBenchmark is a figure of a run with a browser, which is made once.
func uiBenchmark(name, unit string, limit float64, of func(*uiRun) float64) func(context.Context, *Env) (Figure, error) {
	return func(ctx context.Context, e *Env) (Figure, error) {
		f := Figure{Name: name, IsCost: true, Unit: unit, PeerName: "promised", Peer: limit}
		if e.Slipway == "" {
			return f, nil // there is no other peer
		}
		if e.ui == nil && e.uiErr == nil {
			e.ui, e.uiErr = runUI(ctx, e)
		}
		if e.uiErr != nil {
			return f, e.uiErr
		}
		f.Ours = of(e.ui)
		return f, nil
	}
}

// runUI runs the script in a browser. Node is not of Debian 12, so its absence is no fault of this machine.
func runUI(ctx context.Context, e *Env) (*uiRun, error) {
	for program, why := range map[string]string{"node": "Node 20 or newer", "chromium": "the Debian package chromium", "ip": "the Debian package iproute2"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, skipped("needs " + why)
		}
	}
	script, err := filepath.Abs("../ui/scale.bench.mjs")
	if err != nil {
		return nil, err
	}
	for file, why := range map[string]string{"ui/dist/index.html": "the web UI: make ui build", "ui/node_modules/playwright-core": "npm packages: make ui"} {
		if _, err := os.Stat(filepath.Join("../..", file)); err != nil {
			return nil, skipped("needs " + why)
		}
	}
	seconds := "120"
	if e.Quick {
		seconds = "30"
	}
	cmd := exec.CommandContext(ctx, "node", script)
	cmd.Env = append(os.Environ(), "SLIPWAY_BIN="+e.Slipway, "SLIPWAY_SCALE_FOR="+seconds)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, e.Talk
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w", script, err)
	}
	r := &uiRun{}
	if err := json.Unmarshal(out.Bytes(), r); err != nil {
		return nil, fmt.Errorf("read what %s found: %w", script, err)
	}
	if len(r.Heap) < 2 || len(r.Server) < 2 || r.First.Rows <= 0 {
		return nil, errors.New("the script found nothing")
	}
	for name, page := range r.API {
		if name != "plain" {
			r.WorstPerPage = max(r.WorstPerPage, page.P99)
		}
	}
	e.say("all rows after %.0f ms and %.0f kB; /: %.0f kB; at rest %.1f%% of the frames dropped, with %.0f changes/s the longest took %.0f ms; a change arrives after %.0f ms",
		r.First.Whole, r.First.WholeKB, r.Overview.KB, r.Quiet.Dropped, r.Changes.PerSecond, r.Live.Most, r.Arrives)
	return r, nil
}

func uiBenchmarks() []Benchmark {
	one := func(name, unit string, limit float64, of func(*uiRun) float64) Benchmark {
		return Benchmark{Name: name, Run: uiBenchmark(name, unit, limit, of)}
	}
	return []Benchmark{
		one("ui-10k-rows", "ms", uiRows, func(r *uiRun) float64 { return r.First.Rows }),
		one("ui-10k-filter", "ms", uiFilter, func(r *uiRun) float64 { return r.Filter }),
		one("ui-10k-scroll", "ms", uiScroll, func(r *uiRun) float64 { return r.End }),
		one("ui-10k-frames", "%", uiFrames, func(r *uiRun) float64 { return r.Live.Dropped }),
		one("ui-10k-heap", "MB", uiHeap, func(r *uiRun) float64 { return max(0, r.Heap[len(r.Heap)-1]-r.Heap[0]) }),
		one("ui-10k-server", "MB", uiServer, func(r *uiRun) float64 { return max(0, r.Server[len(r.Server)-1]-r.Server[0]) }),
		one("ui-10k-transfer", "kB", uiTransfer, func(r *uiRun) float64 { return max(r.First.KB, r.Overview.KB) }),
		one("ui-10k-list", "ms-p99", uiList, func(r *uiRun) float64 { return r.WorstPerPage }),
		{Name: "ui-events", Run: uiEvents},
	}
}
