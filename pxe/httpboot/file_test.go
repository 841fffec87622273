package httpboot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/pxe/admission"
)

func TestAnArtefactCanBeFetchedInParts(t *testing.T) {
	d := start(t, nil).serve()
	data := fileOf(3 << 20)
	digest := d.files.add(t, data)
	path, etag := "/boot/"+sid+"/artefact/"+digest.Hex()+"/initrd.img", `"`+digest.Hex()+`"`
	for _, c := range []struct {
		what   string
		header map[string]string
		status int
		want   []byte
	}{
		{"all of it", nil, 200, data},
		{"its beginning", map[string]string{"Range": "bytes=0-999"}, 206, data[:1000]},
		{"its end", map[string]string{"Range": "bytes=-1000"}, 206, data[len(data)-1000:]},
		{"the rest, resumed by EDK2", map[string]string{"Range": "bytes=1048576-", "If-Match": etag}, 206, data[1<<20:]},
		{"the rest, resumed by curl", map[string]string{"Range": "bytes=1048576-", "If-Range": etag}, 206, data[1<<20:]},
		{"resumed after the content changed", map[string]string{"Range": "bytes=1048576-", "If-Range": `"other"`}, 200, data},
		{"resumed strictly after the content changed", map[string]string{"Range": "bytes=1048576-", "If-Match": `"other"`}, 412, nil},
		{"several parts, which come as a whole", map[string]string{"Range": "bytes=0-1,5-6"}, 200, data},
		{"what it has already", map[string]string{"If-None-Match": etag}, 304, nil},
		{"a part that is not there", map[string]string{"Range": "bytes=99999999-"}, 416, nil},
		{"a range that is none", map[string]string{"Range": "bytes=x"}, 416, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			got := d.do(http.MethodGet, path, c.header, "")
			if got.StatusCode != c.status || c.want != nil && !bytes.Equal(got.body, c.want) {
				t.Fatalf("%d with %d bytes, want %d with %d", got.StatusCode, len(got.body), c.status, len(c.want))
			}
			if c.status < 300 && (got.Header.Get("ETag") != etag || got.Header.Get("Accept-Ranges") != "bytes") {
				t.Errorf("%v", got.Header)
			}
			if c.status == 200 {
				if e := d.boots.wait(t); e.Err != nil || e.Bytes != int64(len(data)) {
					t.Errorf("ended as %+v", e)
				}
			}
		})
	}
	if head := d.do(http.MethodHead, path, nil, ""); head.StatusCode != 200 || head.ContentLength != int64(len(data)) ||
		head.Header.Get("Content-Type") != "application/vnd.efi-img" {
		t.Errorf("HEAD: %d %v", head.StatusCode, head.Header)
	}
	// All parts but the last mile were asked for above; the part that completes them is told as the whole.
	d.progress.files = map[fetchKey]*fetch{}
	d.do(http.MethodGet, path, map[string]string{"Range": "bytes=0-1048575"}, "")
	if len(d.boots.ended) != 0 {
		t.Errorf("a first part is told as %+v", <-d.boots.ended)
	}
	d.do(http.MethodGet, path, map[string]string{"Range": "bytes=1048576-"}, "")
	if e := d.boots.wait(t); e.Err != nil || e.Bytes != int64(len(data)) {
		t.Errorf("ended as %+v", e)
	}
	if n := len(d.progress.files); n != 0 {
		t.Errorf("%d files are still followed", n)
	}
}

func TestAnAbortedDownloadTellsHowFarItCame(t *testing.T) {
	d := start(t, nil).serve()
	data := fileOf(32 << 20)
	digest := d.files.add(t, data)
	conn, err := net.Dial("tcp", d.addr)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /boot/%s/artefact/%s/linux HTTP/1.1\r\nHost: x\r\n\r\n", sid, digest.Hex())
	if _, err := io.ReadFull(conn, make([]byte, 4<<20)); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	e := d.boots.wait(t)
	if !errors.Is(e.Err, errClosed) || e.Bytes < 3<<20 || e.Bytes >= int64(len(data)) || e.Size != int64(len(data)) || e.Session != sid {
		t.Errorf("ended as %+v", e)
	}
}

func TestAFileThatOnlyTheKernelHasTakenIsNotSent(t *testing.T) {
	d := start(t, nil).serve()
	for range 5 {
		conn, err := net.Dial("tcp", d.addr)
		if err != nil {
			t.Fatal(err)
		}
		// The loader fits into the buffers of both ends. This end reads a little of it and goes.
		_ = conn.(*net.TCPConn).SetReadBuffer(4096)
		fmt.Fprintf(conn, "GET /boot/snponly.efi HTTP/1.1\r\nHost: x\r\n\r\n")
		if _, err := io.ReadFull(conn, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond) // until the server has written it all
		conn.Close()
		if e := d.boots.wait(t); !errors.Is(e.Err, errClosed) || e.Bytes >= e.Size {
			t.Errorf("ended as %+v", e)
		}
	}
}

func TestAMachineThatTakesNothingIsNotAReset(t *testing.T) {
	for why, want := range map[error]error{syscall.ECONNRESET: errClosed, os.ErrDeadlineExceeded: errStalled} {
		broken := &conn{TCPConn: &net.TCPConn{}}
		_ = broken.failed(fmt.Errorf("write: %w", why))
		x := &exchange{r: httptest.NewRequest(http.MethodGet, "/", nil)}
		x.r = x.r.WithContext(context.WithValue(x.r.Context(), connKey{}, broken))
		if unread, err := x.arrived(false); !errors.Is(err, want) || unread < copied {
			t.Errorf("%v: %d unread, %v", why, unread, err)
		}
	}
}

func TestMoreDownloadsThanTheLinkCarriesWait(t *testing.T) {
	d := start(t, func(c *Config) {
		c.Admission = admission.New(func(local netip.Addr) admission.Rules {
			if local != netip.MustParseAddr("127.0.0.1") {
				t.Errorf("asked for the rules of %s", local)
			}
			return admission.Rules{Downloads: 1}
		}, time.Now)
	}).serve()
	data := fileOf(32 << 20)
	digest := d.files.add(t, data)
	other := strings.Repeat("f", 32)
	conn, err := net.Dial("tcp", d.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /boot/%s/artefact/%s/linux HTTP/1.1\r\nHost: x\r\n\r\n", sid, digest.Hex())
	if _, err := io.ReadFull(conn, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	got := d.get("/boot/" + other + "/artefact/" + digest.Hex() + "/linux")
	if got.StatusCode != 503 || got.Header.Get("Retry-After") == "" || strings.Trim(got.Header.Get("Retry-After"), "0123456789") != "" ||
		!strings.Contains(string(got.body), "number 1 in line") {
		t.Errorf("%d, Retry-After %q, %q", got.StatusCode, got.Header.Get("Retry-After"), got.body)
	}
	if head := d.do(http.MethodHead, "/boot/"+other+"/artefact/"+digest.Hex()+"/linux", nil, ""); head.StatusCode != 200 {
		t.Errorf("HEAD waits too: %d", head.StatusCode)
	}
	if got := d.get("/boot/" + other + "/snponly.efi"); got.StatusCode != 200 {
		t.Errorf("a loader waits too: %d", got.StatusCode)
	}
	d.boots.wait(t)
	conn.Close()
	d.boots.wait(t)
	for _, active := d.cfg.Admission.Lengths(); active > 0; _, active = d.cfg.Admission.Lengths() {
		time.Sleep(time.Millisecond)
	}
	if got := d.get("/boot/" + other + "/artefact/" + digest.Hex() + "/linux"); got.StatusCode != 200 || !bytes.Equal(got.body, data) {
		t.Errorf("when its turn has come: %d", got.StatusCode)
	}
	if q, _ := d.cfg.Admission.Lengths(); q != 0 {
		t.Errorf("%d still wait", q)
	}
}
