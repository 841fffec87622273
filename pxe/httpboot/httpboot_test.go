package httpboot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// boots is an engine in memory: it echoes what it is asked, and fails as told.
type boots struct {
	mu       sync.Mutex
	err      error
	panics   bool
	reports  []pxe.Report
	started  []pxe.Transfer
	ended    chan pxe.Transfer
	sessions []inventory.SessionID
}

func (b *boots) failure(s inventory.SessionID) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.panics {
		panic("boots is broken")
	}
	b.sessions = append(b.sessions, s)
	return b.err
}

func (b *boots) set(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

func (b *boots) Ask(_ context.Context, s inventory.SessionID, source netip.Addr, base string) ([]byte, error) {
	return fmt.Appendf(nil, "#!ipxe\nask %s %s %s\n", s, source, base), b.failure(s)
}

func (b *boots) Script(_ context.Context, s inventory.SessionID, c pxe.Client, base string) ([]byte, error) {
	return fmt.Appendf(nil, "#!ipxe\nscript %s %s %s %s %s %s\n", s, c.MAC, c.Identity.Serial, c.Address, c.Server, base), b.failure(s)
}

func (b *boots) Document(_ context.Context, r pxe.ConfigRequest) (pxe.ConfigDocument, error) {
	text := fmt.Sprintf("%s %s %s %q %q peek=%v", r.Name, r.Source, r.Base, r.Accept, r.Agent, r.IsPeek)
	return pxe.ConfigDocument{ContentType: "text/cloud-config", Data: []byte(text)}, b.failure(r.Session)
}

func (b *boots) Report(_ context.Context, s inventory.SessionID, _ netip.Addr, key string, r pxe.Report) error {
	r.Log += key
	err := b.failure(s)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reports = append(b.reports, r)
	return err
}

func (b *boots) Artefact(_ context.Context, s inventory.SessionID, _ netip.Addr, d inventory.Digest, _ string) (inventory.Digest, error) {
	return d, b.failure(s)
}

func (b *boots) Transferring(t pxe.Transfer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.started = append(b.started, t)
}

func (b *boots) Transferred(t pxe.Transfer) { b.ended <- t }

func (b *boots) wait(t *testing.T) pxe.Transfer {
	t.Helper()
	select {
	case e := <-b.ended:
		return e
	case <-time.After(20 * time.Second):
		t.Fatal("no transfer ended")
		return pxe.Transfer{}
	}
}

type loaders map[string]images.Loader

func (l loaders) Find(name string) (images.Loader, bool) {
	found, ok := l[name]
	return found, ok
}

// folder has artefacts as files named by their digest.
type folder string

func (d folder) Open(digest inventory.Digest) (*os.File, inventory.Artefact, error) {
	f, err := os.Open(filepath.Join(string(d), digest.Hex()))
	if err != nil {
		return nil, inventory.Artefact{}, inventory.Errorf(inventory.NotFound, "artefact %s is not in the artefact folder", digest)
	}
	info, err := f.Stat()
	return f, inventory.Artefact{Digest: digest, SizeBytes: info.Size()}, err
}

func (d folder) add(t *testing.T, data []byte) inventory.Digest {
	t.Helper()
	digest := digestOf(data)
	if err := os.WriteFile(filepath.Join(string(d), digest.Hex()), data, 0o644); err != nil {
		t.Fatal(err)
	}
	return digest
}

func digestOf(data []byte) inventory.Digest {
	return inventory.Digest(fmt.Sprintf("sha256:%x", sha256.Sum256(data)))
}

func fileOf(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// testDoor is a running server with what it runs on.
type testDoor struct {
	*Server
	boots *boots
	files folder
	addr  string
	t     *testing.T
}

func start(t *testing.T, change func(*Config)) *testDoor {
	t.Helper()
	d := &testDoor{boots: &boots{ended: make(chan pxe.Transfer, 1000)}, files: folder(t.TempDir()), t: t}
	snp := fileOf(174_001)
	cfg := Config{
		Listen: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}, Boots: d.boots, Artefacts: d.files,
		Loaders: loaders{"snponly.efi": {Name: "snponly.efi", Type: "application/efi", Data: snp, SHA256: digestOf(snp)}},
		Now:     time.Now, Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&cfg)
	}
	d.Server = New(cfg)
	if err := d.Listen(); err != nil {
		t.Fatal(err)
	}
	d.addr = d.Addrs()[0].String()
	return d
}

// serve runs the door until the end of the test.
func (d *testDoor) serve() *testDoor {
	ctx, cancel := context.WithCancel(d.t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Serve(ctx) }()
	d.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			d.t.Errorf("serve: %v", err)
		}
	})
	return d
}

// answer is a response with its body.
type answer struct {
	*http.Response
	body []byte
}

func (d *testDoor) do(method, path string, header map[string]string, body string) answer {
	d.t.Helper()
	req, err := http.NewRequest(method, "http://"+d.addr+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	client := http.Client{
		Transport:     &http.Transport{DisableCompression: true, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("it redirects") },
	}
	res, err := client.Do(req)
	if err != nil {
		d.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		d.t.Fatalf("%s %s: %v", method, path, err)
	}
	if len(res.TransferEncoding) > 0 || res.Header.Get("Location") != "" || res.ContentLength < 0 && res.StatusCode != http.StatusNotModified {
		d.t.Errorf("%s %s: chunked %v, location %q, length %d", method, path, res.TransferEncoding, res.Header.Get("Location"), res.ContentLength)
	}
	return answer{res, got}
}

func (d *testDoor) get(path string) answer { d.t.Helper(); return d.do(http.MethodGet, path, nil, "") }

func TestALoaderComesAsFirmwareWantsIt(t *testing.T) {
	d := start(t, nil).serve()
	want := fileOf(174_001)
	for _, path := range []string{"/boot/snponly.efi", "/boot/" + sid + "/snponly.efi", "//boot//" + sid + "//snponly.efi"} {
		head := d.do(http.MethodHead, path, nil, "")
		got := d.do(http.MethodGet, path, map[string]string{"Host": "10.0.0.1"}, "")
		if head.StatusCode != 200 || got.StatusCode != 200 || !bytes.Equal(got.body, want) || len(head.body) != 0 {
			t.Fatalf("%s: HEAD %d, GET %d with %d bytes", path, head.StatusCode, got.StatusCode, len(got.body))
		}
		etag := `"` + digestOf(want).Hex() + `"`
		for _, a := range []answer{head, got} {
			if a.ContentLength != int64(len(want)) || a.Header.Get("ETag") != etag || a.Header.Get("Content-Type") != "application/efi" ||
				a.Header.Get("Last-Modified") != "" || a.Header.Get("Content-Encoding") != "" {
				t.Errorf("%s: %v", path, a.Header)
			}
		}
		e := d.boots.wait(t)
		if e.Err != nil || e.Bytes != int64(len(want)) || e.Size != e.Bytes || e.Proto != "http" || e.Name != "snponly.efi" ||
			e.Source != netip.MustParseAddr("127.0.0.1") || (e.Session == sid) != strings.Contains(path, sid) {
			t.Errorf("%s: ended as %+v", path, e)
		}
	}
	if n := len(d.boots.started); n != 3 || len(d.boots.ended) != 0 {
		t.Errorf("%d transfers began and %d more ended", n, len(d.boots.ended))
	}
}

func TestScriptsAreMadeForTheMachineThatAsks(t *testing.T) {
	d := start(t, nil).serve()
	base := "http://" + d.addr
	for path, want := range map[string]string{
		"/boot/ask":                                       "ask  127.0.0.1 " + base,
		"/boot/" + sid + "/ask":                           "ask " + sid + " 127.0.0.1 " + base,
		"/boot/autoexec.ipxe":                             "ask  127.0.0.1 " + base,
		"/boot/" + sid + "/script?x=1":                    "script " + sid + "   127.0.0.1 127.0.0.1 " + base,
		"/boot/script?mac=52-54-00-AA-00-01&serial=S%201": "script  52:54:00:aa:00:01 S 1 127.0.0.1 127.0.0.1 " + base,
	} {
		got := d.do(http.MethodGet, path, map[string]string{"Host": "evil.example"}, "")
		if got.StatusCode != 200 || string(got.body) != "#!ipxe\n"+want+"\n" || !strings.HasPrefix(got.Header.Get("Content-Type"), "text/plain") ||
			got.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %q", path, got.StatusCode, got.body)
		}
	}
	if got := d.do(http.MethodHead, "/boot/ask", nil, ""); got.StatusCode != 200 {
		t.Errorf("HEAD of ask: %d", got.StatusCode)
	}
	if got := d.do(http.MethodHead, "/boot/script", nil, ""); got.StatusCode != 405 || got.Header.Get("Allow") != "GET" {
		t.Errorf("HEAD of script: %d", got.StatusCode)
	}
}

func TestAMachineWhoseScriptFailsIsToldOnItsConsole(t *testing.T) {
	d := start(t, nil).serve()
	for _, c := range []struct {
		what, path string
		err        error
		want       string
	}{
		{
			"the store cannot write", "/boot/" + sid + "/script?mac=52:54:00:aa:00:01",
			inventory.Errorf(inventory.Unavailable, "the database is read-only").WithHint("free disk space"), "the database is read-only",
		},
		{"the session is not known", "/boot/" + sid + "/ask", inventory.Errorf(inventory.NotFound, "no such boot"), "no such boot"},
		{"a bug", "/boot/ask", errors.New("secret: /var/lib/slipway/db: index out of range"), "internal error"},
		{"a MAC that is none", "/boot/script?mac=nonsense", nil, "is not a MAC address"},
		{"a text that would be a command", "/boot/ask", inventory.Errorf(inventory.Invalid, "x\nsanboot http://evil/ && ${net0/mac}"), "Slipway: "},
	} {
		t.Run(c.what, func(t *testing.T) {
			d.boots.set(c.err)
			got := d.get(c.path)
			text := string(got.body)
			if got.StatusCode != 200 || !strings.HasPrefix(text, "#!ipxe\n") || !strings.Contains(text, c.want) ||
				!strings.Contains(text, "sleep ") || !strings.Contains(text, "chain ") || !strings.Contains(text, "http://"+d.addr+"/boot/") {
				t.Errorf("%d %s", got.StatusCode, text)
			}
			if strings.Contains(text, "/var/lib") || strings.Contains(text, "\nsanboot") || strings.Contains(text, "${net0") {
				t.Errorf("the script has what it must not: %s", text)
			}
		})
	}
}

func TestRefusalsSayWhyAndWhen(t *testing.T) {
	d := start(t, nil).serve()
	digest := d.files.add(t, fileOf(1000))
	path := "/boot/" + sid + "/artefact/" + digest.Hex() + "/linux"
	for _, c := range []struct {
		err    error
		status int
		retry  string
	}{
		{inventory.Errorf(inventory.Unavailable, "why").WithHint("what next"), 503, "5"},
		{inventory.Errorf(inventory.Internal, "why").WithHint("what next"), 503, "10"},
		{inventory.Errorf(inventory.Conflict, "why").WithHint("what next"), 503, "10"},
		{inventory.Errorf(inventory.NotFound, "why").WithHint("what next"), 404, ""},
		{inventory.Errorf(inventory.Forbidden, "why").WithHint("what next"), 403, ""},
		{inventory.Errorf(inventory.Invalid, "why").WithHint("what next"), 400, ""},
	} {
		d.boots.set(c.err)
		for _, p := range []string{path, "/boot/" + sid + "/report?step=up"} {
			got := d.get(p)
			if got.StatusCode != c.status || got.Header.Get("Retry-After") != c.retry || string(got.body) != "why\nwhat next\n" {
				t.Errorf("%v at %s: %d, Retry-After %q, %q", c.err, p, got.StatusCode, got.Header.Get("Retry-After"), got.body)
			}
		}
	}
	d.boots.set(errors.New("sqlite: /var/lib/slipway.db"))
	if got := d.get(path); got.StatusCode != 503 || strings.Contains(string(got.body), "sqlite") || len(got.body) == 0 {
		t.Errorf("%d %q", got.StatusCode, got.body)
	}
	d.boots.set(nil)
	if got := d.get("/boot/" + sid + "/artefact/" + hex + "/linux"); got.StatusCode != 404 || !strings.Contains(string(got.body), "artefact") {
		t.Errorf("a missing artefact: %d %q", got.StatusCode, got.body)
	}
	if e := d.boots.wait(t); e.Err == nil || e.Name != "linux" {
		t.Errorf("a missing artefact is told as %+v", e)
	}
	if got := d.get("/boot/shimx64.efi"); got.StatusCode != 404 || !strings.Contains(string(got.body), "shimx64.efi is not installed") {
		t.Errorf("a missing loader: %d %q", got.StatusCode, got.body)
	}
	d.boots.wait(t)
	for _, p := range []string{"/", "/boot", "/boot/", "/favicon.ico", "/boot/" + sid, "/boot/..%2fetc%2fpasswd", "/boot/" + sid + "/nothing"} {
		if got := d.get(p); got.StatusCode != 404 || !strings.Contains(string(got.body), "snponly.efi") || !strings.Contains(string(got.body), "/boot/ask") {
			t.Errorf("%s: %d %q", p, got.StatusCode, got.body)
		}
	}
	for _, m := range []string{"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"} {
		if got := d.do(m, "/boot/snponly.efi", nil, ""); got.StatusCode != 405 || got.Header.Get("Allow") != "GET, HEAD" || len(got.body) == 0 {
			t.Errorf("%s: %d", m, got.StatusCode)
		}
	}
}

func TestReportsArriveClean(t *testing.T) {
	d := start(t, nil).serve()
	path := "/boot/" + sid + "/report?step=failed&detail=" + "no%20disk%0Afound%00"
	if got := d.get(path); got.StatusCode != 200 || string(got.body) != "reported\n" {
		t.Errorf("GET: %d %q", got.StatusCode, got.body)
	}
	if got := d.do("POST", path, nil, "line 1\r\nline 2\x1b[2J\n"); got.StatusCode != 200 {
		t.Errorf("POST: %d %q", got.StatusCode, got.body)
	}
	if got := d.do("POST", path, nil, strings.Repeat("x", maxReport+1)); got.StatusCode != 413 || !strings.Contains(string(got.body), "64 KiB") {
		t.Errorf("a long POST: %d %q", got.StatusCode, got.body)
	}
	want := []pxe.Report{{Step: "failed", Detail: "no disk found"}, {Step: "failed", Detail: "no disk found", Log: "line 1\nline 2[2J\n"}}
	if len(d.boots.reports) != 2 || d.boots.reports[0] != want[0] || d.boots.reports[1] != want[1] {
		t.Errorf("%+v", d.boots.reports)
	}
}

func TestAPanicClosesOneConnectionOnly(t *testing.T) {
	d := start(t, nil).serve()
	d.boots.panics = true
	res, err := http.Get("http://" + d.addr + "/boot/ask")
	if err == nil {
		res.Body.Close()
		t.Errorf("answered with %d", res.StatusCode)
	}
	if got := d.get("/boot/snponly.efi"); got.StatusCode != 200 {
		t.Errorf("afterwards: %d", got.StatusCode)
	}
	if err := prometheus.NewPedanticRegistry().Register(d.Metrics); err != nil {
		t.Error(err)
	}
}
