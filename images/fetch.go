package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
	"slipway.dev/slipway/inventory/sleep"
)

// newTransport returns a transport to the addresses that the policy allows. Each step of a request has a deadline of
// its own. The stall timer of get covers the body, for which no total time fits: an ISO takes hours on a slow line.
func newTransport(p *egress.Policy) http.RoundTripper {
	return p.Transport(&http.Transport{
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 30 * time.Second, // the header alone; the stall timer covers the body
		IdleConnTimeout:       30 * time.Second,
		// A dial function of one's own switches HTTP/2 off in net/http, and this switches it on again.
		ForceAttemptHTTP2: true,
		// Sums are of the bytes as published, so nothing may unpack them on the way.
		DisableCompression: true,
	}, nil)
}

const maxRedirects = 5 // a mirror's redirector needs one or two

func newClient(t http.RoundTripper) *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(to *http.Request, via []*http.Request) error {
		refuse := func(format string, args ...any) error {
			e := inventory.Errorf(inventory.Invalid, "%s redirects %s", redact(via[0].URL), fmt.Sprintf(format, args...))
			return e.WithHint("import from the address where the file really is")
		}
		if len(via) > maxRedirects {
			return refuse("more than %d times", maxRedirects)
		}
		// From https down to http anybody on the way could replace the file, and without a sum nobody would notice.
		if to.URL.Scheme != "https" && (to.URL.Scheme != "http" || via[0].URL.Scheme == "https") {
			return refuse("to %s, which is less safe", redact(to.URL))
		}
		for _, v := range via {
			if v.URL.String() == to.URL.String() {
				return refuse("in a circle")
			}
		}
		return nil
	}}
}

// redact returns a URL without password and query, either of which may be a secret.
// Logs, events and job lists show addresses to readers who must not see passwords or signed query strings.
func redact(u *url.URL) string {
	c := *u
	c.User, c.RawQuery, c.Fragment = nil, "", ""
	return c.String()
}

func redactString(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "an unreadable address"
	}
	return redact(u)
}

// tryAgain wraps an error that may not occur at the next attempt: a silent server, a 5xx, a cut connection.
type tryAgain struct{ error }

func (e tryAgain) Unwrap() error { return e.error }

// retry calls once until it succeeds, returns an error that is not tryAgain, or fails TriesN times in a row without
// progress. The wait doubles from RetryFor up to 30 seconds. note gets a line for each failed attempt.
func (c *Cache) retry(ctx context.Context, once func() (progress int64, err error), note func(string, ...any)) error {
	wait := c.cfg.RetryFor
	for failedN := 1; ; failedN++ {
		progress, err := once()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return stopped(ctx)
		}
		var again tryAgain
		if !errors.As(err, &again) {
			return err
		}
		// If every byte counted, a server that gives a little each time would hold an import without an end. 1 MiB
		// per TriesN attempts bounds that.
		if progress >= enoughProgress {
			failedN, wait = 1, c.cfg.RetryFor
		}
		if failedN >= c.cfg.TriesN {
			return again.error
		}
		note("%s; trying again", plain(again.error))
		if sleep.For(ctx, wait) != nil {
			return stopped(ctx)
		}
		wait = min(2*wait, 30*time.Second)
	}
}

const enoughProgress = 1 << 20 // bytes in one attempt, after which the count of tries begins again

// stopped says why a context ended.
func stopped(ctx context.Context) error {
	e := inventory.Errorf(inventory.Unavailable, "the import was stopped").
		WithHint("import again: Slipway keeps the part that has arrived, and continues from there")
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e = inventory.Errorf(inventory.Unavailable, "the import took longer than it was allowed").WithHint("%s", e.Hint)
	}
	e.Err = context.Cause(ctx)
	return e
}

// plain returns the part of an error that is for people.
func plain(err error) string {
	if e, ok := errors.AsType[*inventory.Error](err); ok {
		return e.Msg
	}
	return err.Error()
}

// get starts a request that ends when the server is silent for StallFor. Closing the body releases everything.
func (c *Cache) get(ctx context.Context, rawURL string, header http.Header) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	// The timer begins before the request, so that name resolution and the wait for the header count as well. The
	// cause tells a stall from a cancellation by a person.
	stall := time.AfterFunc(c.cfg.StallFor, func() { cancel(errStalled) })
	done := func() { stall.Stop(); cancel(nil) } // the first cause stays: a stall before it still counts
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, rawURL, nil)
	if err != nil {
		done()
		return nil, inventory.Errorf(inventory.Invalid, "%q is not a web address", inventory.Clean(rawURL, 200))
	}
	req.Header = header.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	req.Header.Set("User-Agent", "slipway")
	resp, err := c.client.Do(req)
	if err != nil {
		stalled := errors.Is(context.Cause(ctx), errStalled)
		done()
		return nil, unreachedError(req.URL, err, stalled)
	}
	resp.Body = &stallReader{body: resp.Body, ctx: ctx, timer: stall, after: c.cfg.StallFor, done: done, from: req.URL}
	return resp, nil
}

var errStalled = errors.New("the server is silent")

// stallReader restarts the stall timer with every read.
type stallReader struct {
	body  io.ReadCloser
	ctx   context.Context
	timer *time.Timer
	after time.Duration
	done  func()
	from  *url.URL
}

// Read returns io.EOF only at the end that the server declared.
func (r *stallReader) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	// Only bytes count as life. A proxy that keeps the connection open and sends nothing is a stall.
	if n > 0 {
		r.timer.Reset(r.after)
	}
	if err != nil && err != io.EOF {
		// The driver reports a cancelled context after a stall; its cause tells what it was.
		return n, brokenError(r.from, err, errors.Is(context.Cause(r.ctx), errStalled))
	}
	return n, err
}

// Close ends the request.
func (r *stallReader) Close() error {
	err := r.body.Close()
	r.done()
	return err
}

// statusError says what a refusing answer means. NotFound is kept apart because another place may have the file.
func statusError(u string, resp *http.Response) error {
	e := inventory.Errorf(inventory.Unavailable, "%s answers %s", redactString(u), inventory.Clean(resp.Status, 100))
	switch code := resp.StatusCode; {
	case code == http.StatusNotFound || code == http.StatusGone:
		e = inventory.Errorf(inventory.NotFound, "%s does not exist", redactString(u))
		return e.WithHint("check the release and the address")
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		return tryAgain{e.WithHint("the server has trouble; import again later")}
	}
	e.Kind = inventory.Invalid
	return e.WithHint("open the address in a browser to see what it wants")
}

// fetchText fetches a small file whole, or reads it when it is a path.
func (c *Cache) fetchText(ctx context.Context, at string, limit int64, note func(string, ...any)) ([]byte, error) {
	if !isURL(at) { // a path on the server's machine
		return readLocal(at, limit)
	}
	var text []byte
	err := c.retry(ctx, func() (int64, error) {
		resp, err := c.get(ctx, at, nil)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return 0, statusError(at, resp)
		}
		text, err = io.ReadAll(io.LimitReader(resp.Body, limit+1)) // one byte more tells a longer file
		if err == nil && int64(len(text)) > limit {
			err = inventory.Errorf(inventory.Invalid, "%s is larger than %s", redactString(at), FormatBytes(limit))
		}
		return 0, err
	}, note)
	return text, err
}

func readLocal(name string, limit int64) ([]byte, error) {
	f, _, err := openLocal(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(text)) > limit {
		return nil, inventory.Errorf(inventory.Invalid, "%s is larger than %s", name, FormatBytes(limit))
	}
	return text, nil
}

// openLocal opens a regular file of this machine; anything else might never end.
func openLocal(name string) (*os.File, os.FileInfo, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil, inventory.Errorf(inventory.NotFound, "%s does not exist", name).
			WithHint("the path counts on the machine that runs the server")
	case errors.Is(err, os.ErrPermission):
		return nil, nil, inventory.Errorf(inventory.Invalid, "the server may not read %s", name).
			WithHint("make it readable for the user that the server runs as")
	case err != nil:
		return nil, nil, inventory.Errorf(inventory.Invalid, "%s cannot be read: %v", name, errors.Unwrap(err))
	case !info.Mode().IsRegular():
		return nil, nil, inventory.Errorf(inventory.Invalid, "%s is not a file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, inventory.Errorf(inventory.Invalid, "%s cannot be read: %v", name, errors.Unwrap(err))
	}
	return f, info, nil
}

// contentRange reads the header of a 206 answer (RFC 9110 section 14.4); total is 0 when the server does not know it.
func contentRange(h string) (first, total int64, ok bool) {
	rest, found := strings.CutPrefix(h, "bytes ")
	span, size, found2 := strings.Cut(rest, "/")
	a, b, found3 := strings.Cut(span, "-")
	if !found || !found2 || !found3 {
		return 0, 0, false
	}
	first, err1 := strconv.ParseInt(a, 10, 64)
	last, err2 := strconv.ParseInt(b, 10, 64)
	if err1 != nil || err2 != nil || first < 0 || last < first {
		return 0, 0, false
	}
	if size == "*" {
		return first, 0, true
	}
	total, err := strconv.ParseInt(size, 10, 64)
	return first, total, err == nil && total > last
}
