package images

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
)

// loopback2 is a policy that refuses this machine but for 127.0.0.2.
func loopback2() *egress.Policy {
	return egress.New(egress.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}})
}

// serveAt serves at an address of this machine.
func serveAt(t *testing.T, addr string, h http.HandlerFunc) string {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Skip(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

func TestErrorsOfAnImportAreNoPortScanner(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skip(err)
	}
	closed.Close()
	noHTTP, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer noHTTP.Close()
	go func() {
		for {
			c, err := noHTTP.Accept()
			if err != nil {
				return
			}
			c.Read(make([]byte, 4096)) // the request; an answer before it has another error
			c.Write([]byte("SSH-2.0-OpenSSH_9.2\r\n"))
			c.Close()
		}
	}()
	done := make(chan struct{})
	silent := serveAt(t, "127.0.0.2:0", func(http.ResponseWriter, *http.Request) { <-done })
	t.Cleanup(func() { close(done) })
	inner := serveAt(t, "127.0.0.1:0", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("secret")) })
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(inner, "http://"))
	sendsOn := serveAt(t, "127.0.0.2:0", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, inner+"/linux", http.StatusFound) })
	f := newFixture(t, func(c *Config) { c.Egress, c.StallFor, c.TriesN = loopback2(), 200*time.Millisecond, 2 })
	var hints []string
	for _, c := range []struct{ name, at, admin string }{
		{"a closed port", "http://" + closed.Addr().String(), "refused"},
		{"another protocol", "http://" + noHTTP.Addr().String(), "malformed"},
		{"a silent server", silent, "sends nothing more"},
		{"no TLS", strings.Replace(silent, "http:", "https:", 1), "HTTP response to HTTPS client"},
		{"an unknown name", "http://no.such.name.invalid", "cannot be resolved"},
		{"loopback", inner, "loopback"},
		{"a name of loopback", "http://localhost:" + port, "loopback"},
		{"mapped loopback", "http://[::ffff:127.0.0.1]:" + port, "loopback"},
		{"a redirect to loopback", sendsOn, "loopback"},
		{"metadata", "http://169.254.169.254/latest/meta-data", "link-local"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, ask := range []func(string) ImportRequest{
				func(at string) ImportRequest {
					return ImportRequest{Name: "x", Files: []ImportFile{{Role: inventory.RoleKernel, Source: at}}}
				},
				func(at string) ImportRequest {
					return ImportRequest{Name: "x", Sums: at, Files: []ImportFile{{Role: inventory.RoleKernel, Source: "http://127.0.0.2/linux"}}}
				},
			} {
				r := ask(c.at + "/linux")
				var notes []string
				_, err := f.Import(t.Context(), r, func(p Progress) { notes = append(notes, p.Note) })
				var e *inventory.Error
				if !errors.As(err, &e) {
					t.Fatalf("imported, or %v", err)
				}
				if !strings.HasSuffix(e.Msg, "/linux cannot be fetched") || e.Kind != inventory.Unavailable {
					t.Errorf("an operator is told %q (%v)", e.Msg, e.Kind)
				}
				if !strings.Contains(err.Error(), c.admin) {
					t.Errorf("the log has %q; want %q in it", err, c.admin)
				}
				for _, n := range notes {
					if n != "" && !strings.HasSuffix(n, "/linux cannot be fetched; trying again") {
						t.Errorf("an operator sees the note %q", n)
					}
				}
				hints = append(hints, e.Hint)
				r.IsAdmin = true
				if _, err = f.Import(t.Context(), r, nil); !errors.As(err, &e) || !strings.Contains(e.Msg, c.admin) {
					t.Errorf("an admin is told %v; want %q in it", err, c.admin)
				}
			}
		})
	}
	if all := slices.Compact(hints); len(all) != 1 {
		t.Errorf("hints differ: %q", all)
	}
	f.wantNothing(t)
}
