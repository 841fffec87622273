package serve

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/keys"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/web/system"
)

// signed makes a certificate for a name, signed by itself.
func signed(t *testing.T, name string, until time.Time) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: until.Add(-365 * 24 * time.Hour), NotAfter: until}
	if name != "" {
		c.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// tlsDoor is an admin door over TLS with a clock.
type tlsDoor struct {
	*keys.AdminTLS
	dir string
	at  time.Time
}

func newTLSDoor(t *testing.T, given keys.Pair) *tlsDoor {
	t.Helper()
	c := &Config{AdminListen: "0.0.0.0:8067", DataDir: t.TempDir(), AdminTLSCert: given.Cert, AdminTLSKey: given.Key}
	s, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(c.DataDir, "slipway.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	key, err := keys.OpenKey(t.Context(), s, c.DataDir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	door, err := openAdminTLS(t.Context(), c, &keys.Vault{Store: s, Box: key.Box, Dir: c.DataDir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	d := &tlsDoor{AdminTLS: door, dir: c.DataDir, at: time.Now()}
	door.Now = func() time.Time { return d.at }
	return d
}

// names shakes hands with the door and returns for whom its certificate is.
func (d *tlsDoor) names(t *testing.T) []string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := d.Wrap(l).Accept()
		if err == nil {
			_ = c.(*tls.Conn).HandshakeContext(context.Background())
			_ = c.Close()
		}
	}()
	c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return keys.NamesOf(c.ConnectionState().PeerCertificates[0])
}

func write(t *testing.T, p keys.Pair, cert, key []byte) {
	t.Helper()
	for name, b := range map[string][]byte{p.Cert: cert, p.Key: key} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBeyondLoopbackTheSitesOwnAuthoritySigns(t *testing.T) {
	d := newTLSDoor(t, keys.Pair{})
	roots := x509.NewCertPool()
	if s := d.TLSState(); s.From != system.TLSSite || !roots.AppendCertsFromPEM([]byte(s.CA)) {
		t.Fatalf("%+v", s)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil {
			t.Error("the handler does not know of TLS")
		}
		_, _ = io.WriteString(w, r.Proto)
	})}
	go func() { _ = srv.Serve(d.Wrap(l)) }()
	t.Cleanup(func() { _ = srv.Close() })

	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	res, err := client.Get("https://" + l.Addr().String() + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, _ := io.ReadAll(res.Body); string(b) != "HTTP/2.0" {
		t.Errorf("it speaks %s", b)
	}
	plain, err := http.Get("http://" + l.Addr().String() + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Body.Close()
	if b, _ := io.ReadAll(plain.Body); plain.StatusCode != http.StatusBadRequest || !strings.Contains(string(b), "HTTPS") {
		t.Errorf("without TLS it says %d %s", plain.StatusCode, b)
	}
}

// TestWhatIsWrongWithTheCertificateIsSaid writes certificates over each other. The server goes on with the last one that it could read.
func TestWhatIsWrongWithTheCertificateIsSaid(t *testing.T) {
	files := keys.Pair{Cert: filepath.Join(t.TempDir(), "a.crt"), Key: filepath.Join(t.TempDir(), "a.key")}
	day := 24 * time.Hour
	give := func(until time.Duration) {
		cert, key := signed(t, "one.example", time.Now().Add(until))
		write(t, files, cert, key)
	}
	give(90 * day)
	d := newTLSDoor(t, files)
	for _, tc := range []struct {
		name   string
		do     func()
		asked  string
		status string
		says   string
	}{
		{"it is well", func() {}, "one.example", ok, "until"},
		{"another name", func() {}, "two.example", warning, "is not for two.example"},
		{"another address", func() {}, "10.0.0.1", warning, "is not for 10.0.0.1"},
		{"it ends soon", func() { d.at = d.at.Add(80 * day) }, "one.example", warning, "in 9 days"},
		{"it has ended", func() { d.at = d.at.Add(20 * day) }, "one.example", failed, "has ended on"},
		{"another one that has ended", func() { give(50 * day) }, "one.example", failed, "not in force: the certificate ended on"},
		{"no certificate", func() { write(t, files, []byte("x"), []byte("y")) }, "one.example", failed, "failed to find any PEM"},
		{"no file", func() { _ = os.Remove(files.Cert) }, "one.example", failed, "no such file"},
		{"a clock that is behind", func() { give(90 * day); d.at = d.at.Add(-400 * day) }, "one.example", failed, "is not valid before"},
		{"the clock is right again", func() { d.at = d.at.Add(400*day - 90*day) }, "one.example", ok, "until"},
	} {
		tc.do()
		d.at = d.at.Add(time.Minute) // files are looked at every few seconds
		k := d.Check([]string{tc.asked})
		if k.Status != tc.status || !strings.Contains(k.Detail, tc.says) || (k.Hint == "") != (tc.status == ok) {
			t.Errorf("%s: %+v", tc.name, k)
		}
	}
	site := newTLSDoor(t, keys.Pair{})
	if k := site.Check([]string{"two.example"}); k.Status != ok {
		t.Errorf("the site's own: %+v", k)
	}
	site.at = site.at.Add(keys.CAFor - 10*day)
	k := site.Check(nil)
	if k.Status != warning || !strings.Contains(k.Detail, "the authority ends on") || !strings.Contains(k.Hint, "slipway tls rotate") {
		t.Errorf("its authority ends soon: %+v", k)
	}
}

func TestARenewedCertificateNeedsNoRestart(t *testing.T) {
	files := keys.Pair{Cert: filepath.Join(t.TempDir(), "a.crt"), Key: filepath.Join(t.TempDir(), "a.key")}
	cert, key := signed(t, "one.example", time.Now().Add(90*24*time.Hour))
	write(t, files, cert, key)
	d := newTLSDoor(t, files)
	if got := d.names(t); len(got) != 1 || got[0] != "one.example" {
		t.Fatal(got)
	}
	if k := d.Check(nil); k.Status != ok {
		t.Errorf("%+v", k)
	}

	other, otherKey := signed(t, "two.example", time.Now().Add(10*24*time.Hour))
	write(t, files, other, key) // half of it
	d.at = d.at.Add(time.Minute)
	if got := d.names(t); got[0] != "one.example" {
		t.Errorf("a certificate with another's key is shown: %s", got)
	}
	if k := d.Check(nil); k.Status != failed || k.Hint == "" {
		t.Errorf("%+v", k)
	}
	write(t, files, other, otherKey)
	d.at = d.at.Add(time.Minute)
	if got := d.names(t); got[0] != "two.example" {
		t.Errorf("the renewed one is not shown: %s", got)
	}
	if k := d.Check(nil); k.Status != warning || !strings.Contains(k.Detail, "in 9 days") {
		t.Errorf("%+v", k)
	}
	if err := d.SetTLS(t.Context(), cert, key); err == nil {
		t.Error("an uploaded one goes before the files that the settings name")
	}
}

func TestACertificateIsUploadedAndTakenAway(t *testing.T) {
	d := newTLSDoor(t, keys.Pair{})
	cert, key := signed(t, "up.example", time.Now().Add(90*24*time.Hour))
	if err := d.SetTLS(t.Context(), cert, key); err != nil {
		t.Fatal(err)
	}
	if got := d.names(t); got[0] != "up.example" || d.TLSState().From != system.TLSUploaded || d.TLSState().CA != "" {
		t.Errorf("%s %+v", got, d.TLSState())
	}
	if files, err := filepath.Glob(filepath.Join(d.dir, "*.key")); err != nil || len(files) != 1 {
		t.Errorf("keys in the data directory: %v %v, want only that of the secrets", files, err)
	}
	if err := d.DropTLS(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := d.names(t); d.TLSState().From != system.TLSSite || got[len(got)-1] != "127.0.0.1" {
		t.Errorf("%s %+v", got, d.TLSState())
	}
	if err := d.DropTLS(t.Context()); err == nil {
		t.Error("what is gone is taken away again")
	}
}

func TestACertificateThatCannotBeShownIsRefused(t *testing.T) {
	d := newTLSDoor(t, keys.Pair{})
	later := time.Now().Add(90 * 24 * time.Hour)
	good, goodKey := signed(t, "a.example", later)
	_, otherKey := signed(t, "a.example", later)
	old, oldKey := signed(t, "a.example", time.Now().Add(-time.Hour))
	nameless, namelessKey := signed(t, "", later)
	for name, c := range map[string]struct {
		cert, key []byte
		says      string
	}{
		"another's key": {good, otherKey, "private key does not match"},
		"no PEM":        {[]byte("hello"), goodKey, "PEM"},
		"ended":         {old, oldKey, "ended on"},
		"no name in it": {nameless, namelessKey, "names no host"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := d.SetTLS(t.Context(), c.cert, c.key); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
			if d.TLSState().From != system.TLSSite {
				t.Error("it is in force")
			}
		})
	}
}

func TestWhereTheAdminDoorSpeaksTLS(t *testing.T) {
	for at, want := range map[string]bool{"127.0.0.1:8067": false, "[::1]:8067": false, "0.0.0.0:8067": true, "10.0.0.1:8067": true, "[::]:8067": true, "fd:3": false} {
		if got := beyondLoopback(at); got != want {
			t.Errorf("%s: %v", at, got)
		}
	}
}
