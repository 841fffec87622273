package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

// maxTask bounds what is read of an answer.
const maxTask = 1 << 20

// door is the server's boot listener, as this agent sees it. Several goroutines use it: Run, the task's progress, the lines.
type door struct {
	bases  []string // URLs of the session: of the instance that it began at, and of others
	at     atomic.Int32
	client *http.Client
}

// base returns the URL of the session at the instance that is asked now.
func (d *door) base() string { return d.bases[d.at.Load()] }

// host is for people: the session's id is a credential and stays out of logs.
func (d *door) host() string {
	u, err := url.Parse(d.base())
	if err != nil {
		return ""
	}
	return u.Host
}

func newDoor(cfg Config) *door {
	d := &door{bases: []string{strings.TrimSuffix(cfg.Session, "/")}, client: cfg.Client}
	if u, err := url.Parse(d.bases[0]); err == nil {
		for _, other := range cfg.Others {
			// Only where it is differs. It is never asked without TLS when the session is with.
			if o, err := url.Parse(other); err == nil && o.Host != "" && o.Scheme == u.Scheme {
				u.Host = o.Host
				d.bases = append(d.bases, u.String())
			}
		}
	}
	if d.client == nil {
		d.client = &http.Client{Transport: &http.Transport{
			// No Proxy: the boot network has none, and the environment of an init is nobody's.
			DialContext:         (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
			TLSHandshakeTimeout: 10 * time.Second,
			MaxIdleConns:        4,
			IdleConnTimeout:     30 * time.Second,
			// Long-polled answers start late by design.
			ResponseHeaderTimeout: wire.TaskWait + 20*time.Second,
		}}
	}
	c := *d.client
	// A redirect would carry the session's id, which is a credential, to another server.
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	d.client = &c
	return d
}

// refusal is an answer of the server other than yes.
type refusal struct {
	status    int
	text      string
	after     time.Duration // how long it asks us to wait
	isUnknown bool          // it does not know the session
	isFinal   bool          // the same request will never be accepted
}

func (r *refusal) Error() string {
	if r.text == "" {
		return fmt.Sprintf("it answers %d %s", r.status, http.StatusText(r.status))
	}
	return fmt.Sprintf("it answers %d %s: %s", r.status, http.StatusText(r.status), r.text)
}

// task asks for a task; nil means nothing new.
func (d *door) task(ctx context.Context) (*wire.Task, error) {
	// The server holds the question for up to TaskWait until it has a task; the rest is for a slow network.
	ctx, cancel := context.WithTimeout(ctx, wire.TaskWait+30*time.Second)
	defer cancel()
	body, err := d.do(ctx, http.MethodGet, fmt.Sprintf("/agent/task?version=%d", wire.Version), nil)
	if err != nil || len(body) == 0 {
		return nil, err
	}
	if len(body) > maxTask {
		return nil, inventory.Errorf(inventory.Unavailable, "it sent a task of more than %d bytes", maxTask)
	}
	var task wire.Task
	if err := json.Unmarshal(body, &task); err != nil {
		// The cause stays out: it may quote the task, and tasks have secrets.
		return nil, inventory.Errorf(inventory.Unavailable, "it sent something that is no task")
	}
	if task.Kind == "" || task.Kind != wire.Wait && task.ID == "" || len(task.ID) > 200 {
		return nil, inventory.Errorf(inventory.Unavailable, "it sent a task without kind or id")
	}
	return &task, nil
}

// report tells the server something.
func (d *door) report(ctx context.Context, r wire.Report) error {
	r.Version = wire.Version
	body, err := encode(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	_, err = d.do(ctx, http.MethodPost, "/agent/report", body)
	return err
}

// encode makes a report fit wire.MaxReport: what a machine may have thousands of goes first.
func encode(r wire.Report) ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode report: %w", err)
	}
	if len(body) <= wire.MaxReport {
		return body, nil
	}
	if r.Hardware != nil {
		h := *r.Hardware
		h.PCI, h.CPU.Flags = nil, nil
		r.Hardware = &h
	}
	r.Log = inventory.CleanLines(r.Log, 64<<10)
	if body, err = json.Marshal(r); err == nil && len(body) <= wire.MaxReport {
		return body, nil
	}
	return json.Marshal(wire.Report{
		Version: r.Version, Task: r.Task, State: wire.Failed,
		Error: fmt.Sprintf("the report of this machine has more than %d bytes", wire.MaxReport),
	})
}

// do sends one request and returns at most maxTask+1 bytes of a good answer's body.
func (d *door) do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	at := d.at.Load()
	req, err := http.NewRequestWithContext(ctx, method, d.bases[at]+path, bytes.NewReader(body))
	if err != nil {
		return nil, inventory.Errorf(inventory.Invalid, "the session's URL cannot be used")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "slipway-agent")
	res, err := d.client.Do(req)
	if err != nil {
		// Perhaps that instance is gone for good. Another goroutine may have gone on already.
		d.at.CompareAndSwap(at, (at+1)%int32(len(d.bases)))
		return nil, plain(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxTask+1))
	if res.StatusCode/100 != 2 {
		return nil, refuse(res, data)
	}
	if err != nil {
		return nil, fmt.Errorf("the answer broke off: %w", plain(err))
	}
	return data, nil
}

// plain takes the URL out of an error of net/http: it has the session's id.
func plain(err error) error {
	if e, ok := err.(*url.Error); ok {
		return e.Err
	}
	return err
}

// refuse reads the reason in a refusal: problem+json (RFC 9457), or plain text.
func refuse(res *http.Response, body []byte) *refusal {
	r := &refusal{status: res.StatusCode}
	var problem struct{ Detail, Hint string }
	if json.Unmarshal(body, &problem) == nil && problem.Detail != "" {
		r.text = inventory.Clean(problem.Detail, 300)
	} else if strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") {
		r.text = inventory.Clean(string(body[:min(len(body), 1000)]), 300)
	}
	if n, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && n > 0 {
		r.after = time.Duration(min(n, 3600)) * time.Second
	}
	switch res.StatusCode {
	// The server does not know the session, perhaps only for now: the agent goes on asking, for LostAfter.
	case http.StatusNotFound, http.StatusGone:
		r.isUnknown = true
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusConflict:
		r.isFinal = true
	}
	return r
}
