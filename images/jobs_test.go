package images

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"slipway.dev/slipway/inventory"
)

// bench is Jobs around an import that the test steers.
type jobBench struct {
	*Jobs
	release chan error // each value ends one import
	running atomic.Int64
	most    atomic.Int64
}

func newJobBench(t *testing.T, alter ...func(*JobsConfig)) *jobBench {
	t.Helper()
	b := &jobBench{release: make(chan error)}
	cfg := JobsConfig{Now: time.Now, Log: slog.New(slog.DiscardHandler), Check: func(ImportRequest) error { return nil }}
	cfg.Import = func(ctx context.Context, r ImportRequest, progress func(Progress)) (inventory.Image, error) {
		b.most.Store(max(b.most.Load(), b.running.Add(1)))
		defer b.running.Add(-1)
		progress(Progress{Step: StepFetch, File: "linux", Bytes: 1, TotalBytes: 10})
		select {
		case err := <-b.release:
			return inventory.Image{Name: r.Name}, err
		case <-ctx.Done():
			return inventory.Image{}, stopped(ctx)
		}
	}
	for _, a := range alter {
		a(&cfg)
	}
	b.Jobs = NewJobs(cfg)
	return b
}

// serve runs the jobs until the test ends.
func (b *jobBench) serve(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- b.Serve(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func (b *jobBench) start(t *testing.T, name string) Job {
	t.Helper()
	j, err := b.Start(ImportRequest{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func (b *jobBench) wantState(t *testing.T, id string, want JobState) Job {
	t.Helper()
	synctest.Wait()
	j, err := b.Find(id)
	if err != nil || j.State != want {
		t.Fatalf("job is %s (%v), want %s", j.State, err, want)
	}
	return j
}

func TestAJobGoesOnWithoutAnybodyWatching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newJobBench(t)
		defer b.serve(t)()
		j := b.start(t, "a")
		if j.State != JobWaiting || len(j.ID) != 12 {
			t.Errorf("a new job is %+v", j)
		}
		if got := b.wantState(t, j.ID, JobRunning); got.Progress.File != "linux" || got.StartedAt.IsZero() {
			t.Errorf("the running job shows %+v", got)
		}
		b.release <- nil
		if got := b.wantState(t, j.ID, JobDone); got.EndedAt.IsZero() || got.Error != "" {
			t.Errorf("the ended job shows %+v", got)
		}
	})
}

func TestAFailedJobKeepsItsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newJobBench(t)
		defer b.serve(t)()
		people, internal := b.start(t, "a"), b.start(t, "b")
		synctest.Wait()
		b.release <- fmt.Errorf("import: %w", inventory.Errorf(inventory.Invalid, "linux has the wrong checksum").WithHint("look there"))
		synctest.Wait()
		b.release <- errors.New("secret path /root/x")
		synctest.Wait()
		var seen []string
		for _, id := range []string{people.ID, internal.ID} {
			j := b.wantState(t, id, JobFailed)
			seen = append(seen, j.Error+"|"+j.Hint)
		}
		all := strings.Join(seen, "\n")
		if !strings.Contains(all, "linux has the wrong checksum|look there") || strings.Contains(all, "/root/x") {
			t.Errorf("reasons: %q", all)
		}
	})
}

func TestOnlyAFewImportsRunAtOnceAndFewWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newJobBench(t, func(c *JobsConfig) { c.RunningN, c.WaitingN = 2, 3 })
		defer b.serve(t)()
		b.start(t, "a")
		b.start(t, "b")
		synctest.Wait()
		for _, name := range []string{"c", "d", "e"} {
			b.start(t, name)
		}
		_, err := b.Start(ImportRequest{Name: "f"})
		wantError(t, err, inventory.Unavailable, "3 imports are waiting")
		_, err = b.Start(ImportRequest{Name: "a"})
		wantError(t, err, inventory.Conflict, "image a is being imported by job")
		for range 5 {
			b.release <- nil
		}
		synctest.Wait()
		if b.most.Load() != 2 {
			t.Errorf("%d ran at once", b.most.Load())
		}
		for _, j := range b.List() {
			if j.State != JobDone {
				t.Errorf("job %s is %s", j.Image, j.State)
			}
		}
	})
}

func TestAWatcherSeesTheLatestStateAndTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newJobBench(t)
		defer b.serve(t)()
		j := b.start(t, "a")
		var states []JobState
		done := make(chan struct{})
		go func() {
			defer close(done)
			for rev := int64(0); ; {
				now, err := b.Next(context.Background(), j.ID, rev)
				if err != nil || now.Revision <= rev {
					t.Errorf("next after %d: revision %d, %v", rev, now.Revision, err)
					return
				}
				rev = now.Revision
				states = append(states, now.State)
				if now.IsEnded() {
					return
				}
			}
		}()
		synctest.Wait()
		b.release <- nil
		<-done
		if states[len(states)-1] != JobDone {
			t.Errorf("saw %v", states)
		}
		if again, err := b.Next(context.Background(), j.ID, 1<<40); err != nil || again.State != JobDone {
			t.Errorf("an ended job must be returned at once: %v %v", again, err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		k := b.start(t, "b")
		synctest.Wait()
		if _, err := b.Next(ctx, k.ID, 1<<40); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a watcher that gives up got %v", err)
		}
		b.wantState(t, k.ID, JobRunning)
	})
}

func TestCancelStopsARunningAndAWaitingJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newJobBench(t, func(c *JobsConfig) { c.RunningN = 1 })
		defer b.serve(t)()
		one, two := b.start(t, "a"), b.start(t, "b")
		synctest.Wait()
		for _, id := range []string{two.ID, one.ID, one.ID} {
			if err := b.Cancel(id); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range []string{one.ID, two.ID} {
			if j := b.wantState(t, id, JobFailed); j.Error != "the import was stopped" || j.Hint == "" {
				t.Errorf("%+v", j)
			}
		}
		if err := b.Cancel("none"); err == nil {
			t.Error("cancelling nothing succeeded")
		}
		b.start(t, "a")
		synctest.Wait()
		b.release <- nil
	})
}

func TestStoppingTheServerEndsEveryJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newJobBench(t, func(c *JobsConfig) { c.RunningN = 1 })
		stop := b.serve(t)
		b.start(t, "a")
		b.start(t, "b")
		synctest.Wait()
		stop()
		for _, j := range b.List() {
			if j.State != JobFailed || j.Error == "" {
				t.Errorf("job %s is %s: %s", j.Image, j.State, j.Error)
			}
		}
	})
}

func TestOldJobsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newJobBench(t, func(c *JobsConfig) { c.KeptN = 3 })
		defer b.serve(t)()
		var first string
		for i := range 10 {
			j := b.start(t, fmt.Sprintf("image-%d", i))
			if i == 0 {
				first = j.ID
			}
			b.release <- nil
			synctest.Wait()
		}
		if n := len(b.List()); n > 4 {
			t.Errorf("%d jobs are remembered", n)
		}
		_, err := b.Find(first)
		wantError(t, err, inventory.NotFound, "no import job")
	})
}

func TestARefusedRequestMakesNoJob(t *testing.T) {
	b := newJobBench(t, func(c *JobsConfig) {
		c.Check = func(ImportRequest) error { return inventory.Errorf(inventory.Invalid, "no") }
	})
	if _, err := b.Start(ImportRequest{Name: "a"}); err == nil || len(b.List()) > 0 {
		t.Errorf("got %v and %v", err, b.List())
	}
}
