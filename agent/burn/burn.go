// Package burn owns the load test of a machine. It loads processors, memory, disks and network ports for a time, and checks
// the results of their work. It never writes to a disk unless the task allows that.
package burn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

// The tests, as a task names them.
const (
	cpuTest    = "cpu"
	memoryTest = "memory"
	diskTest   = "disk"
	portTest   = "port"
)

// forDefault is how long a burn-in takes when the task does not say, forMost how long at most.
const (
	forDefault = 5 * time.Minute
	forMost    = 7 * 24 * time.Hour
)

// Source is the machine that is loaded.
type Source struct {
	Root  string // of the file system: / but in tests
	Disks []inventory.Disk
	Ports []inventory.Port
	Log   *slog.Logger
	// MemoryBytes bounds how much memory is tested; 0 for most of what is free.
	MemoryBytes int64
	// RegionBytes bounds how much of a disk one pass touches; 0 for all of it.
	RegionBytes int64
}

// part is one test of one thing.
type part struct {
	name string
	run  func(ctx context.Context) inventory.BurnInTest
}

// Run loads the machine and returns what came of it. All tests run at once, because parts fail under each other's load.
// An error says which tests did not pass; the report is there as well.
func (s *Source) Run(ctx context.Context, task wire.BurnInTask, say func(detail string, p wire.Progress)) (inventory.BurnIn, error) {
	d := time.Duration(task.ForSeconds) * time.Second
	if d <= 0 {
		d = forDefault
	}
	d = min(d, forMost)
	parts, err := s.parts(task)
	if err != nil {
		return inventory.BurnIn{}, err
	}
	report := inventory.BurnIn{ForSeconds: int(d.Seconds()), Tests: make([]inventory.BurnInTest, len(parts))}
	began := time.Now()
	work, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var crew sync.WaitGroup
	for i, p := range parts {
		crew.Go(func() {
			start := time.Now()
			t := guard(work, p)
			t.Name, t.Seconds = p.name, time.Since(start).Round(time.Millisecond).Seconds()
			t.Detail = inventory.Clean(t.Detail, 500)
			// Each goroutine has an element of its own, so that no lock is needed. Wait comes before anybody reads them.
			report.Tests[i] = t
			s.Log.Info("burn-in", "test", p.name, "passed", t.Passed, "detail", t.Detail)
		})
	}
	done := make(chan struct{})
	go func() { crew.Wait(); close(done) }()
	tell(done, began, d, len(parts), say)
	// ctx, and not work: the end of the time is what a burn-in waits for.
	if err := ctx.Err(); err != nil {
		return report, err
	}
	return report, verdict(report)
}

// tell says how far it is until done.
func tell(done <-chan struct{}, began time.Time, d time.Duration, n int, say func(string, wire.Progress)) {
	ticker := time.NewTicker(wire.ReportEvery)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			left := max(d-time.Since(began), 0).Round(time.Second)
			say(fmt.Sprintf("burn-in: %d tests, %s left", n, left), wire.Progress{})
		}
	}
}

// verdict is nil when all passed.
func verdict(report inventory.BurnIn) error {
	var bad []string
	for _, t := range report.Tests {
		if !t.Passed {
			bad = append(bad, t.Name+": "+t.Detail)
		}
	}
	if bad == nil {
		return nil
	}
	return inventory.Errorf(inventory.Invalid, "%d of %d burn-in tests did not pass: %s", len(bad), len(report.Tests), strings.Join(bad, "; ")).
		WithHint("replace the part, or look at the report of the host")
}

// guard turns a panic of a test into its failure: a broken processor may well cause one.
func guard(ctx context.Context, p part) (t inventory.BurnInTest) {
	defer func() {
		if r := recover(); r != nil {
			t = inventory.BurnInTest{Detail: fmt.Sprintf("the test broke: %v", r)}
		}
	}()
	return p.run(ctx)
}

// parts lists what is tested.
func (s *Source) parts(task wire.BurnInTask) (parts []part, err error) {
	known := []string{cpuTest, memoryTest, diskTest, portTest}
	for _, name := range task.Tests {
		if !slices.Contains(known, name) {
			return nil, inventory.Errorf(inventory.Invalid, "%q is no burn-in test", inventory.Clean(name, 40)).WithHint("use some of %v", known)
		}
	}
	isWanted := func(name string) bool { return len(task.Tests) == 0 || slices.Contains(task.Tests, name) }
	if isWanted(cpuTest) {
		parts = append(parts, part{cpuTest, cpu})
	}
	if isWanted(memoryTest) {
		parts = append(parts, part{memoryTest, s.memory})
	}
	for _, d := range s.Disks {
		if isWanted(diskTest) {
			parts = append(parts, part{diskTest + " " + d.Name, func(ctx context.Context) inventory.BurnInTest { return s.disk(ctx, d, task.MayWrite) }})
		}
	}
	for _, p := range s.Ports {
		if isWanted(portTest) && p.HasLink {
			parts = append(parts, part{portTest + " " + string(p.MAC), func(ctx context.Context) inventory.BurnInTest { return s.port(ctx, p) }})
		}
	}
	if len(parts) == 0 {
		return nil, inventory.Errorf(inventory.Invalid, "there is nothing to test: the machine has no disk and no port with a link")
	}
	return parts, nil
}

// isOver reports whether a test ended because its time was up, not because the task was called off or something broke.
func isOver(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
