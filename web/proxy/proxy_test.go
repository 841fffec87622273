package proxy

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
)

func parsed(t *testing.T, texts ...string) Trusted {
	t.Helper()
	p, err := Parse(texts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestHeadersCountOnlyFromTrustedProxies(t *testing.T) {
	trusted := parsed(t, "10.0.0.5", "10.1.0.0/24", "fd00::/64")
	for _, tc := range []struct {
		name, remote string
		header       []string
		want         string
		isTLS        bool
	}{
		{"no proxy", "192.0.2.1:9", nil, "192.0.2.1", false},
		{"a stranger that names another", "192.0.2.1:9", []string{"X-Forwarded-For", "198.51.100.1", "X-Forwarded-Proto", "https", "Forwarded", "for=198.51.100.1;proto=https"}, "192.0.2.1", false},
		{"a proxy without header", "10.0.0.5:9", nil, "10.0.0.5", false},
		{"a proxy", "10.0.0.5:9", []string{"X-Forwarded-For", "198.51.100.1", "X-Forwarded-Proto", "https"}, "198.51.100.1", true},
		{"a proxy in an IPv4-mapped address", "[::ffff:10.0.0.5]:9", []string{"X-Forwarded-For", "198.51.100.1"}, "198.51.100.1", false},
		{"what the client has put before", "10.0.0.5:9", []string{"X-Forwarded-For", "203.0.113.9, 198.51.100.1"}, "198.51.100.1", false},
		{"in two lines", "10.0.0.5:9", []string{"X-Forwarded-For", "203.0.113.9", "X-Forwarded-For", "198.51.100.1"}, "198.51.100.1", false},
		{"a chain of proxies", "10.0.0.5:9", []string{"X-Forwarded-For", "203.0.113.9, 198.51.100.1, 10.1.0.7"}, "198.51.100.1", false},
		{"noise before the client", "10.0.0.5:9", []string{"X-Forwarded-For", "<script>, 198.51.100.1"}, "198.51.100.1", false},
		{"noise as the client", "10.0.0.5:9", []string{"X-Forwarded-For", "198.51.100.1, unknown"}, "10.0.0.5", false},
		{"the standard's header", "10.0.0.5:9", []string{"Forwarded", `for=203.0.113.9, for="[2001:db8::7]:4711";proto=https;by=10.0.0.5`}, "2001:db8::7", true},
		{"the standard's header, IPv4 with port", "[fd00::1]:9", []string{"Forwarded", `For="198.51.100.1:80" ; Proto=http`}, "198.51.100.1", false},
		{"both, of one mind", "10.0.0.5:9", []string{"X-Forwarded-For", "198.51.100.1", "Forwarded", "for=198.51.100.1"}, "198.51.100.1", false},
		{"both, one forged", "10.0.0.5:9", []string{"X-Forwarded-For", "198.51.100.1", "Forwarded", "for=127.0.0.1"}, "10.0.0.5", false},
		{"an obfuscated client", "10.0.0.5:9", []string{"Forwarded", "for=_hidden"}, "10.0.0.5", false},
	} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", "/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.RemoteAddr = tc.remote
		for i := 0; i < len(tc.header); i += 2 {
			r.Header.Add(tc.header[i], tc.header[i+1])
		}
		if got := trusted.Of(r); got.Addr.String() != tc.want || got.IsTLS != tc.isTLS {
			t.Errorf("%s: %s, TLS %v; want %s, %v", tc.name, got.Addr, got.IsTLS, tc.want, tc.isTLS)
		}
		if got := Trusted(nil).Of(r); got.Addr != netip.MustParseAddrPort(tc.remote).Addr().Unmap() {
			t.Errorf("%s: without trusted proxies the header gives %s", tc.name, got.Addr)
		}
	}
}

func TestNobodyTrustsEverybody(t *testing.T) {
	for _, text := range []string{"0.0.0.0/0", "::/0", "proxy.example", "10.0.0.0/33", ""} {
		if got, err := Parse([]string{text}); err == nil {
			t.Errorf("%q is taken as %v", text, got)
		}
	}
}

const (
	v2Signed   = "\r\n\r\n\x00\r\nQUIT\n"
	familyTCP4 = 0x11
	familyTCP6 = 0x21
)

func v2(command, family byte, body []byte) string {
	return v2Signed + string([]byte{0x20 | command, family, byte(len(body) >> 8), byte(len(body))}) + string(body)
}

var headers = []struct{ name, text, want string }{
	{"version 1", "PROXY TCP4 192.0.2.1 10.0.0.1 51000 8067\r\n", "192.0.2.1:51000"},
	{"version 1, IPv6", "PROXY TCP6 2001:db8::1 fd00::1 51000 8067\r\n", "[2001:db8::1]:51000"},
	{"version 1, unknown", "PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", "invalid AddrPort"},
	{"version 1, IPv6 under IPv4", "PROXY TCP4 2001:db8::1 10.0.0.1 51000 8067\r\n", "error"},
	{"version 1, without end", "PROXY TCP4 " + strings.Repeat("1", 200), "error"},
	{"version 1, a bad port", "PROXY TCP4 192.0.2.1 10.0.0.1 510000 8067\r\n", "error"},
	{"version 2", v2(1, familyTCP4, []byte{192, 0, 2, 1, 10, 0, 0, 1, 0xc7, 0x38, 0x1f, 0x83}), "192.0.2.1:51000"},
	{"version 2 with more", v2(1, familyTCP4, []byte{192, 0, 2, 1, 10, 0, 0, 1, 0xc7, 0x38, 0x1f, 0x83, 4, 0, 1, 0}), "192.0.2.1:51000"},
	{"version 2, IPv6", v2(1, familyTCP6, append(append(netip.MustParseAddr("2001:db8::1").AsSlice(), make([]byte, 16)...), 0xc7, 0x38, 0, 80)), "[2001:db8::1]:51000"},
	{"version 2, the proxy itself", v2(0, 0, nil), "invalid AddrPort"},
	{"version 2, cut short", v2(1, familyTCP4, []byte{192, 0, 2, 1}), "error"},
	{"version 2, a Unix socket", v2(1, 0x31, make([]byte, 216)), "error"},
	{"no header", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "error"},
	{"nothing", "", "error"},
}

// readHeader reads a header as a connection does; the address is zero where the proxy speaks for itself.
func readHeader(in *bufio.Reader) (netip.AddrPort, error) {
	h, err := proxyproto.Read(in)
	if err == nil {
		err = checkHeader(h)
	}
	if err != nil || h.Command.IsLocal() {
		return netip.AddrPort{}, err
	}
	return h.SourceAddr.(*net.TCPAddr).AddrPort(), nil
}

func TestReadHeader(t *testing.T) {
	for _, tc := range headers {
		in := bufio.NewReader(strings.NewReader(tc.text + "GET /"))
		got, err := readHeader(in)
		if said := got.String(); tc.want == "error" && err == nil || tc.want != "error" && (err != nil || said != tc.want) {
			t.Errorf("%s: %s, %v; want %s", tc.name, said, err, tc.want)
		} else if err == nil {
			if rest, _ := io.ReadAll(in); string(rest) != "GET /" {
				t.Errorf("%s: the request after it is %q", tc.name, rest)
			}
		}
	}
}

func TestTheClientIsWhoTheProxyNames(t *testing.T) {
	seen := func(t *testing.T, trusted Trusted, sent string) string {
		t.Helper()
		srv := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "seen "+r.RemoteAddr)
		})}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = srv.Serve(Listen(l, trusted)) }()
		defer srv.Close()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = io.WriteString(c, sent+"GET / HTTP/1.0\r\n\r\n")
		all, _ := io.ReadAll(c)
		_, said, _ := bytes.Cut(all, []byte("seen "))
		return string(said)
	}
	const line = "PROXY TCP4 192.0.2.1 10.0.0.1 51000 8067\r\n"
	if got := seen(t, parsed(t, "127.0.0.0/8"), line); got != "192.0.2.1:51000" {
		t.Errorf("behind a trusted proxy: %q", got)
	}
	if got := seen(t, parsed(t, "127.0.0.0/8"), ""); got != "" {
		t.Errorf("a connection of the proxy without header is answered: %q", got)
	}
	if got := seen(t, parsed(t, "10.0.0.0/8"), line); strings.HasPrefix(got, "192.0.2.1") {
		t.Error("a stranger chooses the address that is seen")
	}
	if got := seen(t, parsed(t, "10.0.0.0/8"), ""); !strings.HasPrefix(got, "127.0.0.1:") {
		t.Errorf("without a proxy: %q", got)
	}
}

func FuzzReadHeader(f *testing.F) {
	for _, tc := range headers {
		f.Add([]byte(tc.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := readHeader(bufio.NewReader(bytes.NewReader(text)))
		if err != nil && got.IsValid() {
			t.Fatalf("%s with %v", got, err)
		}
	})
}

func FuzzOf(f *testing.F) {
	f.Add("198.51.100.1, 10.0.0.5", `for="[2001:db8::7]:4711";proto=https`, "https")
	trusted := Trusted{netip.MustParsePrefix("10.0.0.0/8")}
	f.Fuzz(func(t *testing.T, x, standard, proto string) {
		r := &http.Request{RemoteAddr: "10.0.0.5:1", Header: http.Header{"X-Forwarded-For": {x}, "Forwarded": {standard}, "X-Forwarded-Proto": {proto}}}
		if c := trusted.Of(r); !c.Addr.IsValid() || c.Addr.Zone() != "" {
			t.Fatalf("%v", c)
		}
	})
}
