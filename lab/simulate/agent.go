package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	agentwire "slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
)

// errEnded means that the server does not know the boot any more: the agent restarts the machine.
var errEnded = errors.New("the server ended this boot")

// agent is our agent as a machine runs it: it asks for tasks and reports, over HTTP, until the server lets it go.
type agent struct {
	*machine
	http    *httpClient
	session string
	last    agentwire.Report // of the task that was finished last
}

// argument finds a word of the kernel's arguments.
func argument(args, name string) string {
	for _, word := range strings.Fields(args) {
		if v, ok := strings.CutPrefix(word, name+"="); ok {
			return v
		}
	}
	return ""
}

// runAgent is a boot of the agent image.
func (m *machine) runAgent(ctx context.Context, session string) (Stage, error) {
	c := m.http("slipway-agent", false)
	c.abort, c.slow = nil, nil
	defer c.close()
	a := &agent{machine: m, http: c, session: strings.TrimSuffix(session, "/")}
	m.enter(StageAgent)
	hello := agentwire.Report{State: agentwire.Hello, Agent: &agentwire.AgentInfo{Build: "simulated", Kernel: "6.12", UUID: m.hardware().System.UUID, Serial: m.hardware().System.Serial, Uptime: 1}}
	if err := a.report(ctx, hello); err != nil {
		return a.left(err)
	}
	for {
		t, err := a.ask(ctx)
		if err != nil {
			return a.left(err)
		}
		switch t.Kind {
		case agentwire.Wait:
			if err := sleep.For(ctx, time.Duration(max(t.AgainSeconds, 1))*time.Second); err != nil {
				return "", err
			}
			continue
		case agentwire.PowerOff:
			m.outletOff()
			return StageOff, nil
		}
		if t.ID != a.last.Task {
			r, isDropped := a.doUntilWithdrawn(ctx, t)
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			if isDropped {
				continue
			}
			a.last = r
		}
		if err := a.report(ctx, a.last); err != nil {
			return a.left(err)
		}
		if t.Kind == agentwire.Reboot {
			return StageOff, nil
		}
	}
}

// pollEvery is how often the agent asks, while it does a task, whether that is still wanted, as the real one does.
const pollEvery = 5 * time.Second

// doUntilWithdrawn does a task, and drops it as soon as the server has another one, or none.
func (a *agent) doUntilWithdrawn(ctx context.Context, t agentwire.Task) (r agentwire.Report, isDropped bool) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		r = a.do(ctx, t)
	}()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return r, false
		case <-tick.C:
		}
		if a.isWanted(ctx, t) {
			continue
		}
		select {
		case <-done: // meanwhile: the server has still to hear of it
			return r, false
		default:
		}
		stop()
		<-done
		return r, true
	}
}

// isWanted asks once. No answer is as good as yes.
func (a *agent) isWanted(ctx context.Context, t agentwire.Task) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/agent/task?version=%d", a.session, agentwire.Version), nil)
	if err != nil {
		return true
	}
	r.Header.Set("User-Agent", a.http.agent)
	res, err := a.http.client.Do(r)
	if err != nil {
		return true
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode == http.StatusForbidden || res.StatusCode == http.StatusNotFound {
		return false
	}
	var now agentwire.Task
	isAnswer := res.StatusCode/100 == 2 && json.NewDecoder(io.LimitReader(res.Body, agentwire.MaxReport)).Decode(&now) == nil && now.Kind != ""
	return !isAnswer || now.ID == t.ID
}

// left is how the agent ends: a machine whose boot the server does not know restarts.
func (a *agent) left(err error) (Stage, error) {
	if errors.Is(err, errEnded) {
		a.group.stats.count("agents sent away")
		return StageOff, nil
	}
	return "", fmt.Errorf("agent: %w", err)
}

func (a *agent) ask(ctx context.Context) (t agentwire.Task, err error) {
	body, err := a.call(ctx, http.MethodGet, fmt.Sprintf("%s/agent/task?version=%d", a.session, agentwire.Version), nil, nil)
	if err != nil {
		return t, err
	}
	if err := json.Unmarshal(body, &t); err != nil || t.Kind == "" {
		return t, fmt.Errorf("the server sent %q, which is no task", clip(string(body)))
	}
	return t, nil
}

func (a *agent) report(ctx context.Context, r agentwire.Report) error {
	r.Version = agentwire.Version
	body, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode a report: %w", err)
	}
	start := time.Now()
	_, err = a.call(ctx, http.MethodPost, a.session+"/agent/report", &Moment{What: "report " + string(r.State), Task: r.Task}, body)
	a.group.stats.took("agent report", time.Since(start))
	return err
}

// call sends a request until the server answers it: one that was killed comes back. Each answer to a report is a line in the machine's
// record.
func (a *agent) call(ctx context.Context, method, target string, report *Moment, body []byte) ([]byte, error) {
	for {
		r, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
		if err != nil {
			return nil, fmt.Errorf("%q is no URL: %w", target, err)
		}
		r.Header.Set("User-Agent", a.http.agent)
		res, err := a.http.client.Do(r)
		if err == nil {
			got, readErr := io.ReadAll(io.LimitReader(res.Body, agentwire.MaxReport))
			_ = res.Body.Close()
			a.answered(report, r.URL, res.StatusCode, got, readErr)
			switch code := res.StatusCode; {
			case code == http.StatusForbidden || code == http.StatusNotFound:
				return nil, errEnded
			case code/100 == 2 && readErr == nil:
				return got, nil
			case code/100 == 4 && code != http.StatusTooManyRequests:
				return nil, &statusError{url: target, status: code, body: string(got)}
			}
		}
		a.answered(report, r.URL, 0, nil, err)
		a.group.stats.count("agent retries")
		if err := sleep.For(ctx, patiently(a.timer(2*time.Second))); err != nil {
			return nil, err
		}
	}
}

// answered writes to the machine's record what became of a report; nil: of another request.
func (a *agent) answered(report *Moment, to *url.URL, status int, body []byte, err error) {
	if report == nil || status == 0 && err == nil {
		return
	}
	l := *report
	l.Server, l.Status = to.Host, status
	if id := bootIDs.FindStringSubmatch(to.Path); id != nil {
		l.Boot = id[1]
	}
	if !l.IsAcknowledged() {
		l.Text = inventory.Clean(string(body), 300)
	}
	if err != nil {
		l.Text = err.Error()
	}
	a.lived(l)
}

// patiently keeps retries at least half a second apart, at any pace.
func patiently(d time.Duration) time.Duration { return max(d, 500*time.Millisecond) }

// do does a task, and returns the report of it.
func (a *agent) do(ctx context.Context, t agentwire.Task) agentwire.Report {
	a.enter(StageAgent)
	r := agentwire.Report{Task: t.ID, State: agentwire.Done}
	a.act(string(t.Kind), t.ID)
	start := time.Now()
	var err error
	switch t.Kind {
	case agentwire.Inspect:
		err = a.rest(ctx, 2*time.Second)
		hw := a.hardware()
		r.Hardware = &hw
	case agentwire.BurnIn:
		r.BurnIn, err = a.burnIn(ctx, t.BurnIn)
	case agentwire.Wipe:
		a.disk = disk{}
		if err = a.rest(ctx, 3*time.Second); err == nil {
			r.Certificates = a.certificates(t.Wipe)
			a.act("wiped", t.ID)
		}
	case agentwire.Write:
		r.Write, err = a.write(ctx, t)
	case agentwire.Reboot:
	default:
		err = fmt.Errorf("a task of kind %q is not simulated", t.Kind)
	}
	a.group.stats.took("agent "+string(t.Kind), time.Since(start))
	if err != nil {
		return agentwire.Report{Task: t.ID, State: agentwire.Failed, Error: inventory.Clean(err.Error(), 300)}
	}
	return r
}

// burnIn takes as long as the task says, at any pace: the server measures that.
func (a *agent) burnIn(ctx context.Context, t *agentwire.BurnInTask) (*inventory.BurnIn, error) {
	if t == nil {
		return nil, errors.New("the task does not say how long")
	}
	hw := a.hardware()
	names := []string{"cpu", "memory"}
	for _, d := range hw.Disks {
		names = append(names, "disk "+d.Name)
	}
	for _, p := range hw.Ports {
		if p.HasLink {
			names = append(names, "port "+string(p.MAC))
		}
	}
	out := &inventory.BurnIn{ForSeconds: t.ForSeconds}
	for _, n := range names {
		out.Tests = append(out.Tests, inventory.BurnInTest{Name: n, Passed: true, Detail: "simulated", Seconds: float64(t.ForSeconds)})
	}
	return out, sleep.For(ctx, time.Duration(t.ForSeconds)*time.Second)
}

// write fetches an image and forgets it, and keeps where the system that it holds is to report.
func (a *agent) write(ctx context.Context, t agentwire.Task) (*agentwire.WriteResult, error) {
	if t.Write == nil {
		return nil, errors.New("the task does not say what to write")
	}
	a.disk = disk{}
	a.enter(StageWriting)
	out := &agentwire.WriteResult{Digest: t.Write.Image.Digest}
	if disks := a.hardware().Disks; len(disks) > 0 {
		out.Disk = disks[0]
	}
	if a.group.cfg.Download {
		for out.ReadBytes < t.Write.Image.SizeBytes || out.ReadBytes == 0 {
			n, err := a.download(ctx, t.Write.Image.URL, out.ReadBytes)
			out.ReadBytes += n
			a.group.stats.bytes(n)
			if err == nil {
				break
			}
			if errors.Is(err, errEnded) {
				return nil, err
			}
			wait := patiently(a.timer(2 * time.Second))
			if busy := new(busyError); errors.As(err, &busy) {
				wait = busy.again
				a.group.stats.count("503 answers")
			} else {
				a.group.stats.count("downloads resumed")
			}
			if err := sleep.For(ctx, wait); err != nil {
				return nil, err
			}
		}
	}
	if err := a.rest(ctx, 4*time.Second); err != nil {
		return nil, err
	}
	d := disk{task: t.ID}
	for _, target := range t.Write.Seed.Documents {
		body, err := a.call(ctx, http.MethodGet, target, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("fetch a document: %w", err)
		}
		if where := reportIn(body); where != "" {
			d.report = where
		}
	}
	a.disk = d
	a.act("written", t.ID)
	out.IsWritten, out.IsSeeded, out.WrittenBytes = true, len(t.Write.Seed.Documents) > 0, out.ReadBytes
	return out, nil
}

// busyError is an answer 503 that says when to ask again.
type busyError struct{ again time.Duration }

func (e *busyError) Error() string { return "the server is busy" }

// download reads a file from an offset on, and returns how many bytes came.
func (a *agent) download(ctx context.Context, target string, from int64) (int64, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return 0, fmt.Errorf("%q is no URL: %w", target, err)
	}
	if from > 0 {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	res, err := a.http.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	after, _ := strconv.Atoi(res.Header.Get("Retry-After"))
	switch {
	case res.StatusCode == http.StatusForbidden || res.StatusCode == http.StatusNotFound:
		return 0, errEnded
	case res.StatusCode == http.StatusServiceUnavailable && after > 0 && after < 3600:
		return 0, &busyError{time.Duration(after) * time.Second}
	case from > 0 && res.StatusCode != http.StatusPartialContent, from == 0 && res.StatusCode != http.StatusOK:
		return 0, &statusError{url: target, status: res.StatusCode}
	}
	return discard(res.Body)
}

// discard reads to the end in large pieces, as a program that writes to a disk does; io.Discard reads 8 KB at a time.
func discard(r io.Reader) (n int64, _ error) {
	for b := make([]byte, 256<<10); ; {
		got, err := r.Read(b)
		n += int64(got)
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// reportURLs are those in documents for operating systems: /boot/<session>/report, with a key behind it or not.
var reportURLs = regexp.MustCompile(`https?://[^\s"'\\<>]+/boot/[0-9a-f]{32}/report[^\s"'\\<>]*`)

// bootIDs are the ids of boots in paths of URLs.
var bootIDs = regexp.MustCompile(`/boot/([0-9a-f]{32})(?:/|$)`)

// reportIn finds where a system that was configured by a document reports.
func reportIn(document []byte) string { return string(reportURLs.Find(document)) }

// fromDisk boots what was written: a system that asks for an address and reports, if its configuration says where.
func (m *machine) fromDisk(ctx context.Context) (Stage, error) {
	if m.disk.task == "" || m.disk.report == "" {
		return StageDisk, nil
	}
	m.enter(StageSystem)
	if err := m.rest(ctx, 5*time.Second); err != nil {
		return "", err
	}
	if err := (osClient{m}).start(ctx); err != nil {
		return "", fmt.Errorf("the system on disk: %w", err)
	}
	if m.dice.happens(FaultNeverReport) {
		return StageSilent, nil
	}
	u, err := url.Parse(m.disk.report)
	if err != nil {
		return "", fmt.Errorf("%q is no URL: %w", m.disk.report, err)
	}
	q := u.Query()
	q.Set("step", "up")
	q.Set("detail", "synthetic system is up")
	u.RawQuery = q.Encode()
	c := m.http("curl/8.14", false)
	c.abort, c.slow = nil, nil
	defer c.close()
	a := &agent{machine: m, http: c}
	for {
		_, err := a.call(ctx, http.MethodGet, u.String(), &Moment{What: "report up", Task: m.disk.task}, nil)
		switch {
		case err == nil:
			m.act("up", m.disk.task)
			m.disk.isReported = true
			return StageBooted, nil
		case !errors.Is(err, errEnded):
			return "", fmt.Errorf("report: %w", err)
		case m.disk.isReported: // at an earlier boot, which the server may have forgotten
			return StageBooted, nil
		}
		m.group.stats.count("reports refused")
		if err := sleep.For(ctx, patiently(m.timer(4*time.Second))); err != nil {
			return "", err
		}
	}
}
