package simulate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// httpClient fetches as firmware and iPXE do: HTTP/1.1 over kept-alive connections from the leased address, no
// redirects, no compression, and a Content-Length that must be true.
type httpClient struct {
	client *http.Client
	agent  string
	isEFI  bool // EDK2: HEAD first, and a Host without the port
	wait   func(ctx context.Context, d time.Duration) error
	slow   func(d time.Duration) // called after each piece by a slow machine; nil for others
	abort  func(bytes int64) bool
}

func newHTTPClient(dial func(ctx context.Context, to string) (net.Conn, error)) *httpClient {
	return &httpClient{client: &http.Client{
		Transport: &http.Transport{
			DialContext:           func(ctx context.Context, _, to string) (net.Conn, error) { return dial(ctx, to) },
			DisableCompression:    true,
			MaxIdleConnsPerHost:   1,
			ResponseHeaderTimeout: 120 * time.Second, // iPXE's idle watchdog
		},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("the server redirects, which boot firmware does not follow")
		},
	}}
}

func (c *httpClient) close() { c.client.CloseIdleConnections() }

// maxScript is the longest script that is read; longer files are only hashed.
const maxScript = 64 << 10

// statusError is an answer other than 200.
type statusError struct {
	url    string
	status int
	body   string
}

func (e *statusError) Error() string {
	line, _, _ := strings.Cut(strings.TrimSpace(e.body), "\n")
	return fmt.Sprintf("%s: HTTP %d %s", withoutQuery(e.url), e.status, line)
}

func withoutQuery(u string) string {
	short, _, _ := strings.Cut(u, "?")
	return short
}

// fetch gets a file, after 503 again when the server says so (Retry-After in seconds, as iPXE understands it).
func (c *httpClient) fetch(ctx context.Context, target string) (download, error) {
	size := int64(-1)
	if c.isEFI {
		n, err := c.head(ctx, target)
		if err != nil {
			return download{}, err
		}
		size = n
	}
	for {
		d, again, err := c.get(ctx, target)
		if again > 0 {
			if err := c.wait(ctx, again); err != nil {
				return d, err
			}
			continue
		}
		if err == nil && size >= 0 && size != d.size {
			err = fmt.Errorf("%s: HEAD said %d bytes, GET sent %d", withoutQuery(target), size, d.size)
		}
		return d, err
	}
}

func (c *httpClient) request(ctx context.Context, method, target string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, target, nil)
	if err != nil {
		return nil, fmt.Errorf("%q is no URL: %w", target, err)
	}
	r.Header.Set("User-Agent", c.agent)
	if c.isEFI {
		r.Host = r.URL.Hostname()
	}
	res, err := c.client.Do(r)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		if op, ok := errors.AsType[*net.OpError](err); ok {
			err = op.Err // without the addresses, so that equal faults of many machines add up
		}
		return nil, fmt.Errorf("%s: %w", withoutQuery(target), err)
	}
	return res, nil
}

func (c *httpClient) head(ctx context.Context, target string) (int64, error) {
	res, err := c.request(ctx, http.MethodHead, target)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return 0, &statusError{url: target, status: res.StatusCode}
	}
	if res.ContentLength < 0 {
		return 0, fmt.Errorf("%s: HEAD has no Content-Length, which EDK2 needs", withoutQuery(target))
	}
	return res.ContentLength, nil
}

func (c *httpClient) get(ctx context.Context, target string) (d download, again time.Duration, err error) {
	start := time.Now()
	res, err := c.request(ctx, http.MethodGet, target)
	if err != nil {
		return d, 0, err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusServiceUnavailable {
		if s, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && s > 0 && s < 3600 {
			_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxScript))
			return d, time.Duration(s) * time.Second, nil
		}
	}
	if res.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(res.Body, 512))
		return d, 0, &statusError{url: target, status: res.StatusCode, body: string(b)}
	}
	if c.isEFI && res.ContentLength < 0 {
		return d, 0, fmt.Errorf("%s: no Content-Length, which EDK2 needs", withoutQuery(target))
	}
	d.etag = res.Header.Get("ETag")
	d.name = lastName(target)
	if err := c.read(res.Body, &d); err != nil {
		return d, 0, fmt.Errorf("%s after %d bytes: %w", withoutQuery(target), d.size, err)
	}
	d.took = time.Since(start)
	return d, 0, checkDigest(target, &d)
}

func (c *httpClient) read(body io.Reader, d *download) error {
	hash, b := sha256.New(), make([]byte, 32<<10)
	for {
		n, err := body.Read(b)
		hash.Write(b[:n])
		d.size += int64(n)
		if len(d.body) < maxScript {
			d.body = append(d.body, b[:min(n, maxScript-len(d.body))]...)
		}
		if c.abort != nil && c.abort(d.size) {
			return errBrokenOff
		}
		if c.slow != nil && n > 0 {
			c.slow(20 * time.Millisecond)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	hash.Sum(d.digest[:0])
	d.head = d.body[:min(len(d.body), headBytes)]
	if !isScript(d.head) || d.size > maxScript {
		d.head, d.body = append([]byte(nil), d.head...), nil
	}
	return nil
}

// hexDigest is a SHA-256 in a URL or an ETag.
var hexDigest = regexp.MustCompile(`(?i)\b[0-9a-f]{64}\b`)

// checkDigest compares what came with the digest that the URL or the ETag promises.
func checkDigest(target string, d *download) error {
	got := hex.EncodeToString(d.digest[:])
	for _, where := range []struct{ what, text string }{{"URL", withoutQuery(target)}, {"ETag", d.etag}} {
		if want := hexDigest.FindString(where.text); want != "" && !strings.EqualFold(want, got) {
			return fmt.Errorf("%s: its content has the digest %s, not the one in its %s", d.name, got, where.what)
		}
	}
	return nil
}

func lastName(target string) string {
	short := withoutQuery(target)
	return short[strings.LastIndexByte(short, '/')+1:]
}
