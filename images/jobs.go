package images

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"slipway.dev/slipway/inventory"
)

// JobState names the state of an import job.
type JobState string

// The states of a job. The last two are final.
const (
	JobWaiting JobState = "waiting"
	JobRunning JobState = "running"
	JobDone    JobState = "done"
	JobFailed  JobState = "failed"
)

// Job is an import that runs in the background. Jobs live in memory: a restart of the server forgets them, and the
// partial downloads on disk remain.
type Job struct {
	ID       string   `json:"id"`
	Image    string   `json:"image"` // name of the image being imported
	State    JobState `json:"state"`
	Progress Progress `json:"progress"`
	// Error and Hint say why it failed.
	Error     string    `json:"error,omitempty"`
	Hint      string    `json:"hint,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	StartedAt time.Time `json:"startedAt,omitzero"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
	// Revision grows with every change; Next waits for one.
	Revision int64 `json:"revision"`
}

// IsEnded reports whether the job is in a final state.
func (j Job) IsEnded() bool { return j.State == JobDone || j.State == JobFailed }

// JobsConfig is what Jobs needs.
type JobsConfig struct {
	// Import runs one import; it is Cache.Import outside tests.
	Import func(context.Context, ImportRequest, func(Progress)) (inventory.Image, error)
	// Check refuses a request that cannot succeed, before a job is made of it; it is Catalogue.Check outside tests.
	Check    func(ImportRequest) error
	Now      func() time.Time
	Log      *slog.Logger
	RunningN int // imports at a time: 2
	WaitingN int // jobs waiting at most: 32
	KeptN    int // ended jobs remembered: 100
}

// Jobs runs imports, RunningN at a time, and the others in the order of their arrival. Many goroutines may call its
// methods. mu guards jobs and every field of the embedded Job; it is never held during an import.
type Jobs struct {
	cfg   JobsConfig
	queue chan *job

	mu   sync.Mutex
	jobs []*job // oldest first
}

// job is a Job with what runs it.
type job struct {
	Job
	request ImportRequest
	cancel  context.CancelCauseFunc
	ctx     context.Context
	changed chan struct{} // closed and replaced with every change
	wokenAt time.Time     // when watchers were last woken for progress
}

// NewJobs returns Jobs. No job begins before Serve runs.
func NewJobs(cfg JobsConfig) *Jobs {
	cfg.RunningN = cmp.Or(cfg.RunningN, 2)
	cfg.WaitingN = cmp.Or(cfg.WaitingN, 32)
	cfg.KeptN = cmp.Or(cfg.KeptN, 100)
	return &Jobs{cfg: cfg, queue: make(chan *job, cfg.WaitingN)}
}

var (
	errCancelled = errors.New("cancelled by a person")
	errShutdown  = errors.New("server stops")
)

// Serve runs jobs until ctx ends. It then cancels the running ones, waits for them, and ends those in the queue as
// failed, so that everybody in Next gets an answer.
func (j *Jobs) Serve(ctx context.Context) error {
	var g errgroup.Group
	for range j.cfg.RunningN {
		g.Go(func() error {
			for {
				select {
				case <-ctx.Done():
					return nil
				case next := <-j.queue:
					// A job has a context of its own and not a child of ctx: Cancel must reach it before any worker
					// has taken it.
					stop := context.AfterFunc(ctx, func() { next.cancel(errShutdown) })
					j.run(next)
					stop()
				}
			}
		})
	}
	err := g.Wait()
	for {
		select {
		case left := <-j.queue:
			left.cancel(errShutdown)
			j.run(left)
		default:
			return err
		}
	}
}

// Start makes a job of the request and returns it at once. The error is Conflict while another job for the same image
// waits or runs, Unavailable when WaitingN jobs wait, and else the error of Check.
func (j *Jobs) Start(r ImportRequest) (Job, error) {
	if err := j.cfg.Check(r); err != nil {
		return Job{}, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, other := range j.jobs {
		if other.Image == r.Name && !other.IsEnded() {
			return Job{}, inventory.Errorf(inventory.Conflict, "image %s is being imported by job %s", r.Name, other.ID).
				WithHint("wait for it, or cancel it")
		}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	n := &job{
		Job:     Job{ID: strings.ToLower(rand.Text()[:12]), Image: r.Name, State: JobWaiting, CreatedAt: j.cfg.Now().UTC(), Revision: 1},
		request: r, ctx: ctx, cancel: cancel, changed: make(chan struct{}),
	}
	select {
	// The lock is held, and the send never blocks: two Starts for one image cannot both pass the loop above. A
	// cancelled job keeps its place in the queue until a worker takes it out.
	case j.queue <- n:
	default:
		cancel(nil)
		return Job{}, inventory.Errorf(inventory.Unavailable, "%d imports are waiting already", j.cfg.WaitingN).
			WithHint("try again when some are done")
	}
	j.jobs = append(j.jobs, n)
	j.forget()
	return n.Job, nil
}

// Retry starts a failed job again as a new job. allowLocal and isAdmin are the rights of the caller, as in a request.
// Another user may ask for the retry, so that the rights of the first caller do not count.
func (j *Jobs) Retry(id string, allowLocal, isAdmin bool) (Job, error) {
	x, err := j.find(id)
	if err != nil {
		return Job{}, err
	}
	j.mu.Lock()
	state, r := x.State, x.request
	j.mu.Unlock()
	if state != JobFailed {
		return Job{}, inventory.Errorf(inventory.Conflict, "import %s is %s", id, state).WithHint("only an import that failed is tried again")
	}
	r.AllowLocal, r.IsAdmin = allowLocal, isAdmin
	return j.Start(r)
}

// forget drops the oldest ended jobs beyond KeptN. The caller holds mu.
func (j *Jobs) forget() {
	ended := 0
	for _, x := range j.jobs {
		if x.IsEnded() {
			ended++
		}
	}
	j.jobs = slices.DeleteFunc(j.jobs, func(x *job) bool {
		if ended > j.cfg.KeptN && x.IsEnded() {
			ended--
			return true
		}
		return false
	})
}

// List returns all remembered jobs, oldest first.
func (j *Jobs) List() []Job {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make([]Job, 0, len(j.jobs))
	for _, x := range j.jobs {
		out = append(out, x.Job)
	}
	return out
}

// Find returns the present state of a job, or NotFound.
func (j *Jobs) Find(id string) (Job, error) {
	x, err := j.find(id)
	if err != nil {
		return Job{}, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return x.Job, nil
}

func (j *Jobs) find(id string) (*job, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, x := range j.jobs {
		if x.ID == id {
			return x, nil
		}
	}
	return nil, inventory.Errorf(inventory.NotFound, "there is no import job %q", inventory.Clean(id, 40)).
		WithHint("jobs are forgotten when the server stops; the image tells whether it was imported")
}

// Next waits until the job has a higher revision than the given one, and returns it. Revision 0 returns the job at
// once, and so does every job that has ended. A slow watcher skips changes. The error is NotFound, or that of ctx.
func (j *Jobs) Next(ctx context.Context, id string, revision int64) (Job, error) {
	x, err := j.find(id)
	if err != nil {
		return Job{}, err
	}
	for {
		j.mu.Lock()
		// Both under one lock: a change after it closes exactly this channel, so no change is missed.
		now, changed := x.Job, x.changed
		j.mu.Unlock()
		if now.Revision > revision || now.IsEnded() {
			return now, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Job{}, ctx.Err()
		}
	}
}

// Cancel stops a job. The download so far stays for the next import. A waiting job ends here; a running job ends when
// its import returns. An ended job stays as it is, and that is no error.
func (j *Jobs) Cancel(id string) error {
	x, err := j.find(id)
	if err != nil {
		return err
	}
	x.cancel(errCancelled)
	j.change(x, func(p *Job) {
		if p.State == JobWaiting {
			j.end(p, stopped(x.ctx))
		}
	})
	return nil
}

// change alters a job and wakes all who wait for it. An ended job stays as it is: Cancel and the worker may race, and
// the first result counts.
func (j *Jobs) change(x *job, alter func(*Job)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if x.IsEnded() {
		return
	}
	alter(&x.Job)
	x.Revision++
	close(x.changed)
	x.changed = make(chan struct{})
}

// end writes the result into a job.
func (j *Jobs) end(p *Job, err error) {
	p.EndedAt = j.cfg.Now().UTC()
	if err == nil {
		p.State = JobDone
		return
	}
	// Any viewer may read jobs. An internal error can hold paths and SQL, so that only the log gets it.
	p.State, p.Error = JobFailed, "the import failed for a reason that is in the server's log"
	if e, ok := errors.AsType[*inventory.Error](err); ok && e.Kind != inventory.Internal {
		p.Error, p.Hint = e.Msg, e.Hint
	}
}

// run imports.
func (j *Jobs) run(x *job) {
	defer x.cancel(nil)
	if x.ctx.Err() == nil {
		j.change(x, func(p *Job) { p.State, p.StartedAt = JobRunning, j.cfg.Now().UTC() })
		img, err := j.cfg.Import(x.ctx, x.request, func(p Progress) { j.progress(x, p) })
		j.change(x, func(p *Job) { j.end(p, err) })
		if err != nil {
			j.cfg.Log.Warn("image not imported", "image", x.Image, "op", x.ID, "err", err)
			return
		}
		j.cfg.Log.Info("image imported", "image", img.Name, "op", x.ID)
		return
	}
	j.change(x, func(p *Job) { j.end(p, stopped(x.ctx)) })
}

// progressEvery is how often watchers are woken while only bytes change.
const progressEvery = 100 * time.Millisecond

// progress takes over what the import reports. Every chunk counts, but watchers are not woken for each.
func (j *Jobs) progress(x *job, p Progress) {
	j.mu.Lock()
	old := x.Progress
	now := j.cfg.Now()
	isStep := old.Step != p.Step || old.FileN != p.FileN || old.Note != p.Note || p.Bytes == p.TotalBytes
	quiet := !isStep && now.Sub(x.wokenAt) < progressEvery
	if quiet {
		x.Progress = p
	} else {
		x.wokenAt = now
	}
	j.mu.Unlock()
	if !quiet {
		j.change(x, func(job *Job) { job.Progress = p })
	}
}
