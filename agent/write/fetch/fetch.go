// Package fetch owns how the agent gets files over HTTP: a stream that continues after a broken connection, ranges of
// a file, and small documents. It stores nothing, and keeps URLs out of errors, because they carry the secret of a
// session.
package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
)

// Source is a file on a server. Its zero values have defaults; only URL is required. Several goroutines may use it.
type Source struct {
	Client    *http.Client // http.DefaultClient when nil
	URL       string
	Elsewhere []string // the same file at other servers: a try that brings nothing is followed by one at the next
	Name      string   // for people: "the image"

	// Tries is how many tries in a row may bring no data before the fetch fails; 0 means 10.
	Tries int
	// StallFor is how long a connection may be silent; a minute when 0.
	StallFor time.Duration
	// Wait sleeps; tests need not.
	Wait func(ctx context.Context, d time.Duration) error

	failed atomic.Uint32 // tries: it chooses the server of the next one
}

// url is where the next try goes.
func (s *Source) url() string {
	if n := s.failed.Load() % uint32(1+len(s.Elsewhere)); n > 0 {
		return s.Elsewhere[n-1]
	}
	return s.URL
}

// The longest pause between two tries, and the longest that a server may ask for.
const (
	maxPause      = 15 * time.Second
	maxRetryAfter = 2 * time.Minute
)

// answer is a response and how to end it.
type answer struct {
	*http.Response
	stop context.CancelFunc
}

func (a *answer) close() {
	a.Body.Close()
	a.stop()
}

// refusal is an error status.
type refusal struct {
	why     *inventory.Error
	after   time.Duration
	isFinal bool
}

func (r *refusal) Error() string { return r.why.Error() }

func (s *Source) name() string {
	return cmp.Or(s.Name, "the file")
}

func (s *Source) tries() int {
	if s.Tries > 0 {
		return s.Tries
	}
	return 10
}

func (s *Source) stall() time.Duration {
	if s.StallFor > 0 {
		return s.StallFor
	}
	return time.Minute
}

// get sends one request for the bytes from off to last; -1 is the end of the file. The stall timer covers the wait
// for the header; the readers of the body have one of their own.
func (s *Source) get(ctx context.Context, off, last int64, etag string) (*answer, error) {
	ctx, stop := context.WithCancel(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url(), nil)
	if err != nil {
		stop()
		return nil, &refusal{isFinal: true, why: inventory.Errorf(inventory.Invalid, "the address of %s cannot be read", s.name())}
	}
	// Packed on the way the bytes would not be those of the digest.
	req.Header.Set("Accept-Encoding", "identity")
	switch {
	case last >= 0:
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", off, last))
	case off > 0:
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", off))
	}
	// The server sends the whole file when it has changed (RFC 9110 section 13.1.5), which connect then notices.
	if etag != "" {
		req.Header.Set("If-Range", etag)
	}
	// No timeout for the whole request: an image may take an hour. The timer below ends it after silence.
	client := cmp.Or(s.Client, http.DefaultClient)
	silence := time.AfterFunc(s.stall(), stop)
	resp, err := client.Do(req)
	silence.Stop()
	if err != nil {
		stop()
		return nil, bare(err)
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusPartialContent {
		defer stop()
		defer resp.Body.Close()
		return nil, s.refused(resp)
	}
	return &answer{Response: resp, stop: stop}, nil
}

// bare takes the URL out of an error of the HTTP client.
func bare(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

func (s *Source) refused(resp *http.Response) error {
	r := &refusal{}
	kind, why := inventory.Unavailable, ""
	switch code := resp.StatusCode; {
	case code == http.StatusNotFound || code == http.StatusGone:
		kind, r.isFinal, why = inventory.NotFound, true, "is not there any more"
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		kind, r.isFinal, why = inventory.Forbidden, true, "may not be fetched by this machine"
	// The file ends before the byte at which we continue.
	case code == http.StatusRequestedRangeNotSatisfiable:
		kind, r.isFinal, why = inventory.Invalid, true, "is shorter than it should be"
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		why = "is not to be had now"
	default:
		kind, r.isFinal, why = inventory.Internal, true, "cannot be fetched"
	}
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n > 0 {
		r.after = min(time.Duration(n)*time.Second, maxRetryAfter)
	}
	r.why = inventory.Errorf(kind, "%s %s: the server answers %s", s.name(), why, inventory.Clean(resp.Status, 80))
	return r
}

// again waits before the next try, or returns the reason why there is none. n counts the tries without a byte, from
// 1. The pause doubles from half a second to 15 seconds, with a random half: a rack must not ask again in the same
// moment.
func (s *Source) again(ctx context.Context, n int, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var r *refusal
	isRefusal := errors.As(err, &r)
	// A refusal is final when all servers have given one in a row.
	if isRefusal && r.isFinal && n > len(s.Elsewhere) {
		return r.why
	}
	s.failed.Add(1)
	if n <= len(s.Elsewhere) {
		return nil // the next server need not be spared
	}
	if n >= s.tries() {
		if isRefusal {
			return r.why
		}
		return inventory.Errorf(inventory.Unavailable, "%s cannot be fetched after %d tries: %s", s.name(), n, inventory.Clean(err.Error(), 300)).
			WithHint("look at the network between this machine and the server")
	}
	pause := min(time.Second/2<<min(n-1, 10), maxPause)
	pause = pause/2 + rand.N(pause/2+1) // not all machines at the same time
	if isRefusal && r.after > 0 {
		pause = r.after
	}
	wait := s.Wait
	if wait == nil {
		wait = sleep.For
	}
	return wait(ctx, pause)
}

// Document fetches a whole file of at most limit bytes; a larger one is Invalid. The other errors are NotFound,
// Forbidden, and Unavailable when the tries are used up.
func (s *Source) Document(ctx context.Context, limit int64) ([]byte, error) {
	for try := 1; ; try++ {
		b, err := s.document(ctx, limit)
		if err == nil {
			return b, nil
		}
		if err := s.again(ctx, try, err); err != nil {
			return nil, err
		}
	}
}

func (s *Source) document(ctx context.Context, limit int64) ([]byte, error) {
	a, err := s.get(ctx, 0, -1, "")
	if err != nil {
		return nil, err
	}
	defer a.close()
	silence := time.AfterFunc(s.stall(), a.stop)
	defer silence.Stop()
	// One byte more than allowed, to distinguish a file of exactly limit bytes from a larger one.
	b, err := io.ReadAll(io.LimitReader(a.Body, limit+1))
	if err != nil {
		return nil, bare(err)
	}
	if int64(len(b)) > limit {
		return nil, &refusal{isFinal: true, why: inventory.Errorf(inventory.Invalid, "%s is larger than %d bytes", s.name(), limit)}
	}
	return b, nil
}

// Range fetches n bytes at an offset. It returns fewer at the end of the file. Invalid means that the server knows no
// ranges.
func (s *Source) Range(ctx context.Context, off, n int64) ([]byte, error) {
	for try := 1; ; try++ {
		b, err := s.ranged(ctx, off, n)
		if err == nil {
			return b, nil
		}
		if err := s.again(ctx, try, err); err != nil {
			return nil, err
		}
	}
}

func (s *Source) ranged(ctx context.Context, off, n int64) ([]byte, error) {
	a, err := s.get(ctx, off, off+n-1, "")
	if err != nil {
		return nil, err
	}
	defer a.close()
	// A server without ranges answers 200 with the whole file. At offset 0 that is what the request wanted.
	if a.StatusCode != http.StatusPartialContent && off > 0 {
		return nil, &refusal{isFinal: true, why: inventory.Errorf(inventory.Invalid, "%s is of a format that needs a server which knows byte ranges, and this one does not", s.name())}
	}
	silence := time.AfterFunc(s.stall(), a.stop)
	defer silence.Stop()
	b := make([]byte, n)
	got, err := io.ReadFull(a.Body, b)
	// After a short body the file is complete only when the server confirms it. Otherwise the connection broke.
	if errors.Is(err, io.ErrUnexpectedEOF) && isWhole(a, off+int64(got)) {
		return b[:got], nil // the file ends here
	}
	return b[:got], bare(err)
}

// isWhole reports whether the file ends at an offset, by the server's word.
func isWhole(a *answer, end int64) bool {
	total, ok := total(a, 0)
	return ok && total == end
}

// total returns the size of the whole file, from an answer that began at off.
func total(a *answer, off int64) (int64, bool) {
	if a.StatusCode == http.StatusPartialContent {
		_, size, ok := strings.Cut(a.Header.Get("Content-Range"), "/")
		n, err := strconv.ParseInt(size, 10, 64)
		return n, ok && err == nil
	}
	return a.ContentLength - off, a.ContentLength >= 0
}
