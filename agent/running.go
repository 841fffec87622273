package agent

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

// running is a task under way.
type running struct {
	task   wire.Task
	cancel context.CancelFunc
	ended  chan struct{} // closed when result is there
	result wire.Report

	mu     sync.Mutex
	latest *wire.Report // progress that was not sent yet
}

// start has a task done in the background.
func (a *agent) start(ctx context.Context, task wire.Task) *running {
	ctx, cancel := context.WithCancel(ctx)
	r := &running{task: task, cancel: cancel, ended: make(chan struct{})}
	teller := make(chan struct{})
	tellCtx, stopTelling := context.WithCancel(ctx)
	go func() { defer close(teller); a.tell(tellCtx, r) }()
	go func() {
		defer close(r.ended)
		r.result = a.do(ctx, r)
		// The result comes last: late progress would make the task look unfinished.
		stopTelling()
		<-teller // so that no progress arrives after the result
		cancel()
	}()
	return r
}

// stop cancels the task and waits until it has let go of the machine.
func (r *running) stop() {
	r.cancel()
	<-r.ended
}

// do calls the handler; its panic is the task's failure, not the end of the machine's init.
func (a *agent) do(ctx context.Context, r *running) (result wire.Report) {
	defer func() {
		if p := recover(); p != nil {
			// Without recover the panic would end process 1, and with it the kernel: the reason would be lost.
			a.Log.Error("the task broke", "task", r.task.ID, "panic", p, "stack", string(debug.Stack()))
			result = failure(r.task, wire.Report{}, inventory.Errorf(inventory.Internal, "the agent broke at this task: %v", p).
				WithHint("the log of the host has the place; please report it"))
		}
	}()
	handler, ok := a.Handlers[r.task.Kind]
	if !ok {
		if a.Leave[r.task.Kind] != nil {
			return wire.Report{Task: r.task.ID, State: wire.Done}
		}
		return failure(r.task, wire.Report{}, inventory.Errorf(inventory.Invalid, "this agent cannot do a task of kind %q", inventory.Clean(string(r.task.Kind), 40)).
			WithHint("build a newer agent image: slipway agent-image build"))
	}
	began := time.Now()
	report, err := handler(ctx, r.task, r.say)
	spent := time.Since(began).Round(time.Millisecond)
	if err != nil {
		a.Log.Error("the task did not succeed", "task", r.task.ID, "kind", string(r.task.Kind), "for", spent, "err", err)
		return failure(r.task, report, err)
	}
	a.Log.Info("the task is done", "task", r.task.ID, "kind", string(r.task.Kind), "for", spent)
	report.Task, report.State = r.task.ID, wire.Done
	return report
}

// say is the task's Progress.
func (r *running) say(detail string, p wire.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest = &wire.Report{Task: r.task.ID, State: wire.Running, Detail: inventory.Clean(detail, 300), Progress: &p}
}

// tell sends what the task said last, every wire.ReportEvery. Progress that cannot be sent is superseded, not queued.
func (a *agent) tell(ctx context.Context, r *running) {
	ticker := time.NewTicker(wire.ReportEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		r.mu.Lock()
		report := r.latest
		r.latest = nil
		r.mu.Unlock()
		if report == nil {
			continue
		}
		if err := a.door.report(ctx, *report); err != nil && ctx.Err() == nil {
			a.Log.Debug("progress was not delivered", "err", err)
		}
	}
}
