// Package agent owns the conversation of a machine in its RAM disk with the boot listener. It registers, asks for tasks,
// runs their handlers, and reports progress and results. It never stops trying, even if the server is down for days. It
// never touches the machine itself: a Handler does.
package agent

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

// Progress reports what a task is doing, in one line for people, and how far it is. A Handler may call it as often as it
// likes, from any goroutine. The agent sends the latest call, every wire.ReportEvery.
type Progress = func(detail string, p wire.Progress)

// Handler does one kind of task. It ends soon after ctx does. The agent sends the returned report, also after an error,
// and fills in Version, Task and State. An *inventory.Error brings the reason and the hint. Invalid counts as lasting:
// the server does not order the task again.
type Handler = func(ctx context.Context, task wire.Task, say Progress) (wire.Report, error)

// Config is what Run needs.
type Config struct {
	Session string // URL of the boot session
	// Others are the URLs of other boot listeners that know the session: of other instances of the server. The agent asks the next one when
	// one does not answer.
	Others   []string
	Info     func() wire.AgentInfo
	Handlers map[wire.Kind]Handler
	// Leave are the tasks that end this program: reboot, power off, kexec. The agent calls one after the handler of its
	// kind, if there is one, has succeeded, and after it has reported that to the server.
	Leave map[wire.Kind]func() error
	// Lost is called once, when the server has denied the session for LostAfter and no task is running. Only another
	// boot brings another session.
	Lost func()
	Log  *slog.Logger
	// Lines are the lines for the server's timeline; nil for none.
	Lines  *Lines
	Client *http.Client // nil for one of its own
}

// LostAfter is how long the server must deny the boot session before the agent gives it up.
const LostAfter = 10 * time.Minute

const (
	pollRunning = 5 * time.Second // between questions while a task runs
	waitDefault = 5 * time.Second // when a Wait does not say how long
	waitMost    = 5 * time.Minute
	backoffMost = 30 * time.Second
	linesEvery  = 3 * time.Second
	keepResults = 64               // results that a server may ask for again
	leaveRetry  = 30 * time.Second // how long a goodbye may take
)

// Run serves the session until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	u, err := url.Parse(cfg.Session)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return inventory.Errorf(inventory.Invalid, "%q is not the URL of a boot session", inventory.Clean(cfg.Session, 200)).
			WithHint("the kernel argument %s must hold one: was this kernel started by Slipway?", wire.ArgServer)
	}
	a := &agent{Config: cfg, door: newDoor(cfg), results: make(map[string]wire.Report)}
	linesCtx, stop := context.WithCancel(ctx)
	// Run returns after this goroutine has ended, so that nothing uses cfg any more.
	linesDone := make(chan struct{})
	go func() { defer close(linesDone); a.sendLines(linesCtx) }()
	defer func() { stop(); <-linesDone }()
	a.hello(ctx)
	a.serve(ctx)
	if a.current != nil {
		a.current.stop()
	}
	return nil
}

// agent is the state of Run, and its goroutine alone uses it. A task runs in goroutines of its own, which hand over their
// result by closing running.ended.
type agent struct {
	Config
	door    *door
	current *running
	results map[string]wire.Report // of finished tasks, by ID
	order   []string               // of results, oldest first
	denied  time.Time              // since when the server has denied the session; zero when it does not
	isLost  bool
}

// hello introduces the machine, for as long as it takes.
func (a *agent) hello(ctx context.Context) {
	for try := 0; ctx.Err() == nil; try++ {
		report := wire.Report{State: wire.Hello}
		if a.Info != nil {
			info := a.Info()
			report.Agent = &info
		}
		err := a.door.report(ctx, report)
		if err == nil {
			a.Log.Info("the server answers", "server", a.door.host())
			return
		}
		a.complain(ctx, err, try)
	}
}

// serve asks for tasks and has them done.
func (a *agent) serve(ctx context.Context) {
	for try := 0; ctx.Err() == nil; {
		task, err := a.door.task(ctx)
		if err != nil {
			a.complain(ctx, err, try)
			try++
			continue
		}
		if try > 0 {
			a.Log.Info("the server answers again", "server", a.door.host())
		}
		try, a.denied, a.isLost = 0, time.Time{}, false
		a.rest(ctx, a.take(ctx, task))
	}
}

// take acts on an answer, and returns how long to wait before the next question.
func (a *agent) take(ctx context.Context, task *wire.Task) time.Duration {
	switch {
	case task == nil: // nothing new
		return time.Second
	case task.Kind == wire.Wait:
		a.drop("the server has withdrawn the task")
		wait := cmp.Or(min(time.Duration(max(task.AgainSeconds, 0))*time.Second, waitMost), waitDefault)
		a.Log.Debug("waiting", "for", wait, "reason", inventory.Clean(task.Reason, 200))
		return wait
	// The server names the same task until it has its result.
	case a.current != nil && a.current.task.ID == task.ID:
		return pollRunning
	// The answer to a report was lost, or the server was restored from a backup. The task must not run twice.
	case a.hasResult(task.ID):
		a.Log.Info("the task is done already; telling the result again", "task", task.ID)
		if err := a.door.report(ctx, a.results[task.ID]); err != nil {
			a.complain(ctx, err, 0)
		}
		return waitDefault
	}
	a.drop("the server has another task")
	a.Log.Info("task", "kind", string(task.Kind), "task", task.ID, "reason", inventory.Clean(task.Reason, 200))
	a.current = a.start(ctx, *task)
	return pollRunning
}

// rest waits, or less when the running task ends meanwhile.
func (a *agent) rest(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(jitter(wait))
	defer timer.Stop()
	var ended <-chan struct{}
	if a.current != nil {
		ended = a.current.ended
	}
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-ended:
		r := a.current
		a.current = nil
		a.finish(ctx, r)
	}
}

// drop cancels the running task, if there is one, and waits for it: two tasks never touch the machine at once.
func (a *agent) drop(why string) {
	if a.current == nil {
		return
	}
	a.Log.Warn("stopping the task: "+why, "task", a.current.task.ID)
	a.current.stop()
	a.current = nil
}

// finish remembers and delivers a result, and leaves if that is what the task was for.
func (a *agent) finish(ctx context.Context, r *running) {
	leave := a.Leave[r.task.Kind]
	if leave == nil || r.result.State != wire.Done {
		a.remember(r.result)
		a.deliver(ctx, r.result)
		return
	}
	// After leave nobody can report. A server that does not answer delays the reboot only this long.
	goodbye, cancel := context.WithTimeout(ctx, leaveRetry)
	a.deliver(goodbye, r.result)
	cancel()
	a.Log.Info("leaving", "kind", string(r.task.Kind))
	a.flushLines(ctx)
	if err := leave(); err != nil {
		result := failure(r.task, wire.Report{}, err)
		a.remember(result)
		a.deliver(ctx, result)
	}
}

// deliver tells a result until the server has it, or refuses it for good.
func (a *agent) deliver(ctx context.Context, result wire.Report) {
	for try := 0; ctx.Err() == nil; try++ {
		err := a.door.report(ctx, result)
		var refused *refusal
		switch {
		case err == nil:
			return
		case errors.As(err, &refused) && refused.isFinal:
			a.Log.Error("the server refuses the result of the task", "task", result.Task, "err", err)
			return
		}
		a.complain(ctx, err, try)
	}
}

func (a *agent) hasResult(id string) bool {
	_, ok := a.results[id]
	return ok
}

func (a *agent) remember(r wire.Report) {
	if !a.hasResult(r.Task) {
		a.order = append(a.order, r.Task)
	}
	a.results[r.Task] = r
	if len(a.order) > keepResults {
		delete(a.results, a.order[0])
		a.order = a.order[1:]
	}
}

// complain says on the console that the server cannot be had, and waits: longer each time, and never in step with the
// other machines of the rack.
func (a *agent) complain(ctx context.Context, err error, try int) {
	if ctx.Err() != nil {
		return
	}
	wait := min(time.Second<<min(try, 10), backoffMost)
	if refused, ok := errors.AsType[*refusal](err); ok {
		wait = max(wait, min(refused.after, waitMost))
		a.deny(refused)
	}
	wait = jitter(wait)
	a.Log.Warn("the server cannot be had; asking again", "server", a.door.host(), "in", wait.Round(time.Second/10), "err", err)
	a.rest(ctx, wait)
}

// deny counts how long the server has not known the session.
func (a *agent) deny(r *refusal) {
	switch {
	case !r.isUnknown:
		a.denied = time.Time{}
	case a.denied.IsZero():
		a.denied = time.Now()
	case time.Since(a.denied) > LostAfter && a.current == nil && a.Lost != nil && !a.isLost:
		a.isLost = true
		a.Log.Error("the server does not know this boot session any more", "server", a.door.host())
		a.Lost()
	}
}

// jitter returns d, more or less a fifth.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}

// failure is the report of a task that did not succeed.
func failure(task wire.Task, report wire.Report, err error) wire.Report {
	report.Task, report.State = task.ID, wire.Failed
	if e, ok := errors.AsType[*inventory.Error](err); ok {
		report.Hint = e.Hint
		report.IsLasting = report.IsLasting || e.Kind == inventory.Invalid
	}
	report.Error = inventory.Clean(strings.ReplaceAll(err.Error(), "\n", "; "), 2000)
	return report
}
