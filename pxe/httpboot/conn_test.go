package httpboot

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/pxe/door"
)

// net/http hands an *os.File inside one io.LimitedReader to a connection that has ReadFrom, and copies everything else.
// This test fails when anything comes between: a ResponseWriter or connection without ReadFrom, a wrapped file, a
// chunked or compressed body. That the kernel then really gets sendfile is checked in test/net.
func TestFilesAreHandedToTheKernel(t *testing.T) {
	d := start(t, nil)
	var asFile atomic.Int64
	d.listeners[0].send = func(to *net.TCPConn, f *os.File, n int64) (int64, error) {
		sent, err := sendByKernel(to, f, n)
		asFile.Add(sent)
		return sent, err
	}
	d.serve()
	data := fileOf(5<<20 + 123)
	digest := d.files.add(t, data)
	path := "/boot/" + sid + "/artefact/" + digest.Hex() + "/linux"
	const sniffed = 512 // net/http writes the first bytes together with the header
	for _, c := range []struct {
		header map[string]string
		want   []byte
	}{{nil, data}, {map[string]string{"Range": "bytes=1000000-"}, data[1000000:]}} {
		asFile.Store(0)
		got := d.do(http.MethodGet, path, c.header, "")
		if !bytes.Equal(got.body, c.want) || asFile.Load() < int64(len(c.want))-sniffed {
			t.Errorf("%v: %d bytes came, %d of them by sendfile", c.header, len(got.body), asFile.Load())
		}
	}
	if _, ok := any(d.listeners[0].TCPListener).(*net.TCPListener); !ok {
		t.Error("the listener hides its type")
	}
}

// A file that the kernel cannot send is copied, and nothing of it twice.
func TestFilesAreCopiedWhereTheKernelCannot(t *testing.T) {
	d := start(t, nil)
	d.listeners[0].send = func(*net.TCPConn, *os.File, int64) (int64, error) {
		return 0, os.NewSyscallError("sendfile", syscall.EINVAL)
	}
	d.serve()
	data := fileOf(1<<20 + 5)
	got := d.get("/boot/" + sid + "/artefact/" + d.files.add(t, data).Hex() + "/linux")
	if !bytes.Equal(got.body, data) {
		t.Errorf("%d bytes came, %d were there", len(got.body), len(data))
	}
}

func TestTheLongestIdleConnectionOfAnAddressMakesRoom(t *testing.T) {
	d := start(t, func(c *Config) { c.Door = door.New(door.Config{All: 8, PerSource: 2}) }).serve()
	open := func() net.Conn {
		conn, err := net.Dial("tcp", d.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	first, second := open(), open()
	for d.cfg.Door.Len() < 2 {
		time.Sleep(time.Millisecond)
	}
	third := open()
	_ = first.SetReadDeadline(time.Now().Add(5 * time.Second))
	if n, err := first.Read(make([]byte, 1)); n != 0 || err == nil || os.IsTimeout(err) {
		t.Errorf("the first idle connection is still there: read %d, %v", n, err)
	}
	for _, conn := range []net.Conn{second, third} {
		fmt.Fprintf(conn, "HEAD /boot/snponly.efi HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if got, _ := io.ReadAll(conn); !strings.HasPrefix(string(got), "HTTP/1.1 200 OK") {
			t.Errorf("another connection is answered with %q", got)
		}
	}
}

func TestAnAddressThatIsNotServedIsClosedAtOnce(t *testing.T) {
	d := start(t, func(c *Config) { c.Serves = func(netip.Addr) bool { return false } }).serve()
	conn, err := net.Dial("tcp", d.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil || os.IsTimeout(err) {
		t.Errorf("read %d, %v", n, err)
	}
}

func TestMalformedRequestsGetAnAnswerOrAreClosed(t *testing.T) {
	d := start(t, nil).serve()
	long := strings.Repeat("x", maxHeader+8192)
	for _, c := range []struct{ what, send, want string }{
		{"no HTTP", "SSH-2.0-client\r\n\r\n", "400"},
		{"no Host", "GET /boot/ask HTTP/1.1\r\n\r\n", "400"},
		{"no Host in HTTP/1.0, as some firmware", "GET /boot/ask HTTP/1.0\r\n\r\n", "200"},
		{"Host without port", "GET /boot/ask HTTP/1.1\r\nHost: 10.0.0.1\r\nConnection: close\r\n\r\n", "200"},
		{"an absolute URL", "GET http://10.0.0.1:99/boot/ask HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\r\n", "200"},
		{"dots in the request line", "GET /boot/../../etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "404"},
		{"a path without slash", "GET boot/ask HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
		{"a huge header", "GET /boot/ask HTTP/1.1\r\nHost: x\r\nX: " + long + "\r\n\r\n", "431"},
		{"a huge URL", "GET /boot/" + long + " HTTP/1.1\r\nHost: x\r\n\r\n", "431"},
		{"a header with NUL", "GET /boot/ask HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n", "400"},
		{"two lengths", "POST /boot/report HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "400"},
		{"a negative length", "POST /boot/report HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", "400"},
		{"an unknown encoding", "POST /boot/report HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: rot13\r\n\r\n", "501"},
		{"a chunked report", "POST /boot/report?step=up HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "200"},
		{"a broken chunk", "POST /boot/report?step=up HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\nzz\r\n", "400"},
		{"a proxy request", "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\nConnection: close\r\n\r\n", "404"},
		{"every option", "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "404"},
		{"HTTP/2 without asking", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "404"},
	} {
		t.Run(c.what, func(t *testing.T) {
			conn, err := net.Dial("tcp", d.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
			_, _ = io.WriteString(conn, c.send)
			got, _ := io.ReadAll(conn)
			if line, _, _ := strings.Cut(string(got), "\r\n"); !strings.Contains(line, " "+c.want) {
				t.Errorf("answered with %q", got)
			}
		})
	}
}

func TestGarbageCostsNothing(t *testing.T) {
	d := start(t, nil).serve()
	r := rand.New(rand.NewPCG(1, 2))
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 500 {
		conn, err := net.Dial("tcp", d.addr)
		if err != nil {
			t.Fatal(err)
		}
		p := make([]byte, r.IntN(4000))
		for i := range p {
			p[i] = byte(r.Uint32())
		}
		if r.IntN(2) == 0 {
			p = append([]byte("GET /boot/"), p...)
		}
		_, _ = conn.Write(p)
		conn.Close()
	}
	if got := d.get("/boot/snponly.efi"); got.StatusCode != 200 {
		t.Fatalf("afterwards: %d", got.StatusCode)
	}
	for end := time.Now().Add(10 * time.Second); d.cfg.Door.Len() > 0 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	if n := d.cfg.Door.Len(); n > 0 {
		t.Errorf("%d connections are still counted", n)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
}
