package egress

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func policy(allow ...string) *Policy {
	list, err := ParseAllow(allow)
	if err != nil {
		panic(err)
	}
	return New(Config{
		Allow: list,
		Own: func() []netip.Addr {
			return []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("2001:db8::1")}
		},
		Doors: func() []uint16 { return []uint16{8067, 80} },
	})
}

func TestWhatThePolicyRefuses(t *testing.T) {
	for _, c := range []struct {
		at   string
		why  string // part of the reason, "" when it may be connected to
		open []string
	}{
		{"198.51.100.7:443", "", nil},
		{"10.0.0.5:443", "", nil}, // controllers and mirrors are in private networks
		{"[2001:db8::5]:443", "", nil},
		{"127.0.0.1:81", "loopback", nil},
		{"127.8.8.8:1", "loopback", nil},
		{"[::1]:81", "loopback", nil},
		{"[::ffff:127.0.0.1]:81", "loopback", nil},
		{"0.0.0.0:80", "listener", nil},
		{"0.0.0.0:81", "unspecified", nil},
		{"0.1.2.3:81", "0.0.0.0/8", nil},
		{"[::]:81", "unspecified", nil},
		{"169.254.169.254:80", "link-local", nil},
		{"169.254.170.2:80", "link-local", nil},
		{"[fe80::1%eth0]:80", "link-local", nil},
		{"[::ffff:169.254.169.254]:80", "link-local", nil},
		{"[fd00:ec2::254]:80", "metadata", nil},
		{"[fd20:ce::254]:80", "metadata", nil},
		{"100.100.100.200:80", "metadata", nil},
		{"168.63.129.16:80", "metadata", nil},
		{"192.0.0.192:80", "metadata", nil},
		{"224.0.0.1:80", "multicast", nil},
		{"[ff02::1]:80", "multicast", nil},
		{"255.255.255.255:80", "broadcast", nil},
		{"[64:ff9b::7f00:1]:81", "leads to 127.0.0.1", nil},
		{"[64:ff9b::a9fe:a9fe]:80", "leads to 169.254.169.254", nil},
		{"[64:ff9b::a00:1]:81", "leads to 10.0.0.1", nil},
		{"[64:ff9b::c633:6407]:80", "", nil},
		{"[64:ff9b:1::a9fe:a9fe]:80", "leads to", nil},
		{"[64:ff9b:1:a9fe:a9:fe00::]:80", "leads to 169.254.169.254", nil},
		{"[::127.0.0.1]:81", "leads to 127.0.0.1", nil},
		{"[::ffff:0:127.0.0.1]:81", "leads to 127.0.0.1", nil},
		{"[2002:7f00:1::]:81", "leads to 127.0.0.1", nil},
		{"[2001:0:4136:e378:8000:63bf:5601:5601]:80", "leads to 169.254.169.254", nil},
		{"[2001:db8:1::5efe:a9fe:a9fe]:80", "leads to 169.254.169.254", nil},
		{"[2001:db8:1::200:5efe:7f00:1]:81", "leads to 127.0.0.1", nil},
		{"10.0.0.1:443", "this machine", nil},
		{"[2001:db8::1]:443", "this machine", nil},
		{"10.0.0.1:8067", "listener", nil},
		// Allow lists.
		{"127.0.0.1:9000", "", []string{"127.0.0.0/8"}},
		{"[::ffff:127.0.0.1]:9000", "", []string{"127.0.0.0/8"}},
		{"[64:ff9b::7f00:1]:9000", "", []string{"127.0.0.0/8"}},
		{"[::1]:9000", "loopback", []string{"127.0.0.0/8"}},
		{"127.0.0.1:8067", "listener", []string{"0.0.0.0/0"}},
		{"10.0.0.1:80", "listener", []string{"10.0.0.1"}},
		{"10.0.0.1:8080", "", []string{"10.0.0.1"}},
		{"10.0.0.5:80", "", []string{"10.0.0.1"}}, // a door's port elsewhere
		{"169.254.169.254:80", "", []string{"169.254.0.0/16"}},
	} {
		err := policy(c.open...).Check(netip.MustParseAddrPort(c.at))
		var r *Refused
		switch {
		case c.why == "" && err != nil:
			t.Errorf("%s with %v: %v; want it to be allowed", c.at, c.open, err)
		case c.why != "" && (!errors.As(err, &r) || !strings.Contains(r.Why, c.why)):
			t.Errorf("%s with %v: %v; want a refusal with %q", c.at, c.open, err, c.why)
		}
	}
	if err := (*Policy)(nil).Check(netip.MustParseAddrPort("127.0.0.1:80")); err != nil {
		t.Errorf("no policy: %v", err)
	}
}

func TestAnAllowListIsOfNetworks(t *testing.T) {
	got, err := ParseAllow([]string{"127.0.0.0/8", "10.1.2.3", "fd00::/8", "10.9.9.9/8"})
	if want := "[127.0.0.0/8 10.1.2.3/32 fd00::/8 10.0.0.0/8]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("got %v, %v; want %s", got, err, want)
	}
	for _, bad := range []string{"", "localhost", "10.0.0.0/33", "::ffff:127.0.0.1", "fe80::1%eth0", "127.0.0.1:80"} {
		if _, err := ParseAllow([]string{bad}); err == nil {
			t.Errorf("%q is taken for a network", bad)
		}
	}
}

func TestTheAddressIsCheckedWhenTheConnectionIsMade(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	path := filepath.Join(t.TempDir(), "s")
	s, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var r *Refused
	// A name is checked behind its resolution: localhost stands for any name that leads here.
	for _, at := range []string{l.Addr().String(), strings.Replace(l.Addr().String(), "127.0.0.1", "localhost", 1)} {
		if _, err := policy().DialContext(t.Context(), "tcp", at); !errors.As(err, &r) {
			t.Errorf("dial %s: %v; want a refusal", at, err)
		}
		if c, err := policy("127.0.0.0/8", "::1").DialContext(t.Context(), "tcp", at); err != nil {
			t.Errorf("dial %s, allowed: %v", at, err)
		} else {
			c.Close()
		}
	}
	if _, err := policy().DialContext(t.Context(), "udp", "127.0.0.1:9"); !errors.As(err, &r) {
		t.Errorf("udp: %v", err)
	}
	if _, err := policy().DialContext(t.Context(), "unix", path); !errors.As(err, &r) {
		t.Errorf("a socket of this machine: %v", err)
	}
	if c, err := policy("127.0.0.1").DialContext(t.Context(), "unix", path); err != nil {
		t.Errorf("a socket of this machine, allowed: %v", err)
	} else {
		c.Close()
	}
	if own := interfaceAddrs(); !slices.Contains(own, netip.MustParseAddr("127.0.0.1")) {
		t.Errorf("addresses of this machine: %v", own)
	}
}

func get(t *testing.T, rt http.RoundTripper, at string) error {
	t.Helper()
	resp, err := (&http.Client{Transport: rt, Timeout: 5 * time.Second}).Get(at)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

func TestARedirectIsCheckedToo(t *testing.T) {
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer inner.Close()
	// The outer server is at an address that is allowed, and sends on to one that is not.
	var to string
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skip("this machine has no 127.0.0.2")
	}
	outer := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/here" {
			http.Redirect(w, r, to, http.StatusFound)
		}
	})}}
	outer.Start()
	defer outer.Close()
	rt := policy("127.0.0.2").Transport(&http.Transport{}, nil)
	for _, to = range []string{inner.URL, strings.Replace(inner.URL, "127.0.0.1", "localhost", 1), "http://169.254.169.254/", "http://[::ffff:127.0.0.1]/", "http://0/", "http://127.1/", "http://0x7f.1/"} {
		var r *Refused
		if err := get(t, rt, outer.URL); !errors.As(err, &r) {
			t.Errorf("a redirect to %s: %v; want a refusal", to, err)
		}
	}
	to = "file:///etc/passwd"
	if err := get(t, rt, outer.URL); err == nil {
		t.Error("a redirect to a file is followed")
	}
	if err := get(t, rt, outer.URL+"/here"); err != nil {
		t.Errorf("what is allowed: %v", err)
	}
}

func TestAProxyFetchesOnlyWhatMayBeFetchedDirectly(t *testing.T) {
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = append(asked, r.URL.String()) }))
	defer proxy.Close()
	via, _ := url.Parse(proxy.URL)
	rt := policy().Transport(&http.Transport{}, func(r *http.Request) (*url.URL, error) {
		if r.URL.Host == via.Host {
			return nil, nil // NO_PROXY
		}
		return via, nil
	})
	var r *Refused
	for _, at := range []string{
		"http://127.0.0.1:1/", "http://169.254.169.254/latest", "http://localhost/", "http://a.localhost./", "http://metadata.google.internal/",
		"http://[64:ff9b::7f00:1]:1/", "http://127.1/", "http://2130706433/", "http://0177.0.0.1/", "http://10.0.0.1/",
		proxy.URL, // the proxy's own pages
	} {
		if err := get(t, rt, at); !errors.As(err, &r) {
			t.Errorf("%s by a proxy: %v; want a refusal", at, err)
		}
	}
	if len(asked) > 0 {
		t.Errorf("the proxy was asked for %v", asked)
	}
	for _, at := range []string{"http://198.51.100.7/", "http://only.the.proxy.knows.invalid/"} {
		if err := get(t, rt, at); err != nil {
			t.Errorf("%s by a proxy: %v", at, err)
		}
	}
	if len(asked) != 2 {
		t.Errorf("the proxy was asked for %v", asked)
	}
}

func FuzzCheckRefusesEveryWayToLoopback(f *testing.F) {
	for _, s := range []string{"127.0.0.1", "::1", "64:ff9b::7f00:1", "2002:7f00:1::", "::ffff:7f00:1", "10.0.0.1", "2001:0:7f00:1::"} {
		a := netip.MustParseAddr(s).As16()
		f.Add(a[:])
	}
	p := policy()
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		refused := p.Check(netip.AddrPortFrom(a, 9)) != nil
		if inner := a.Unmap(); (inner.IsLoopback() || inner.IsUnspecified() || inner.IsLinkLocalUnicast() || inner.IsMulticast()) && !refused {
			t.Errorf("%s is allowed", a)
		}
		for _, inner := range embedded(a.Unmap()) {
			if p.Check(netip.AddrPortFrom(inner, 9)) != nil && !refused {
				t.Errorf("%s is allowed, and leads to %s", a, inner)
			}
		}
	})
}

// Whoever is not allowed any more sends nothing, also over a connection that stands.
func TestAGuardedPolicySendsNothingWhenItMayNot(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	var may error
	p := policy("127.0.0.0/8").Guarded(func() error { return may })
	dials := map[string]func() (net.Conn, error){
		"tcp": func() (net.Conn, error) { return p.DialContext(t.Context(), "tcp", tcp.Addr().String()) },
		"udp": func() (net.Conn, error) { return p.Dial(t.Context(), "udp", udp.LocalAddr().String()) },
	}
	for name, dial := range dials {
		may = nil
		c, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte("on")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		may = errors.New("another one has the engine")
		if _, err := c.Write([]byte("off")); !errors.Is(err, may) {
			t.Errorf("%s: it is sent: %v", name, err)
		}
		if c, err := dial(); !errors.Is(err, may) {
			t.Errorf("%s: it connects: %v", name, err)
			c.Close()
		}
		if !errors.Is(p.MaySend(), may) {
			t.Errorf("%s: a packet may be sent", name)
		}
	}
}
