package redfish

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/bmc/redfish/redfishtest"
	"slipway.dev/slipway/inventory"
)

func addrOf(t *testing.T, address string) netip.AddrPort {
	t.Helper()
	u, err := url.Parse(address)
	ok(t, err)
	a, err := netip.ParseAddrPort(u.Host)
	ok(t, err)
	return a
}

func TestAProbeTellsWhoAnswers(t *testing.T) {
	s := redfishtest.New(redfishtest.Options{Dialect: redfishtest.IDRAC})
	srv := s.StartTLS(t)
	got, err := Probe(t.Context(), addrOf(t, srv.URL), ProbeClient(5*time.Second, nil))
	ok(t, err)
	want := Found{
		Address: srv.URL, Vendor: "Dell", Product: "Integrated Dell Remote Access Controller", Name: "Root Service",
		UUID: "92384634-2938-2342-8820-489239905423", Version: "1.15.0", Fingerprint: fingerprint(srv.Certificate().Raw),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, r := range s.Requests() {
		if r.String() != "GET /redfish/v1/" {
			t.Errorf("it asked for more: %s", r)
		}
	}
	if s.Sessions() > 0 {
		t.Error("it logged in")
	}
}

func TestAProbeOfSomethingElse(t *testing.T) {
	for _, tc := range []struct {
		name string
		h    http.HandlerFunc
		kind inventory.Kind
	}{
		{"a web page", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, inventory.NotFound},
		{"another API", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"version":"1"}`)) }, inventory.NotFound},
		{"nothing there", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, inventory.NotFound},
		{"a way to another host", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://192.0.2.66/", http.StatusFound)
		}, inventory.NotFound},
		{"a body without end", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"RedfishVersion":"` + strings.Repeat("1", 2<<20)))
		}, inventory.NotFound},
		{"a broken connection", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, inventory.Unavailable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			srv := httptest.NewTLSServer(tc.h)
			defer srv.Close()
			_, err := Probe(t.Context(), addrOf(t, srv.URL), ProbeClient(5*time.Second, nil))
			is(t, err, tc.kind)
		})
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	_, err := Probe(t.Context(), addrOf(t, plain.URL), ProbeClient(5*time.Second, nil))
	is(t, err, inventory.NotFound)
	_, err = Probe(t.Context(), netip.MustParseAddrPort("127.0.0.1:1"), ProbeClient(5*time.Second, nil))
	is(t, err, inventory.Unavailable)
}

func TestAnAddressIsWrittenAsURLsDo(t *testing.T) {
	for in, want := range map[string]string{"192.0.2.1": "192.0.2.1", "2001:db8::1": "[2001:db8::1]"} {
		if got := host(netip.MustParseAddr(in)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
