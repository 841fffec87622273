package fetch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pin/tftp/v3"
)

// serve runs a TFTP server on loopback that has the files big and small, and a file without end.
func serve(t *testing.T) netip.AddrPort {
	t.Helper()
	s := tftp.NewServer(func(name string, to io.ReaderFrom) error {
		switch name {
		case "big":
			_, err := to.ReadFrom(bytes.NewReader(big()))
			return err
		case "endless":
			_, err := to.ReadFrom(endless{})
			return err
		}
		return errors.New("this server has no such boot file")
	}, nil)
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(conn) }()
	t.Cleanup(s.Shutdown)
	return conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

// big has no whole number of blocks.
func big() []byte { return bytes.Repeat([]byte("loader "), 30_001) }

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestAFileComesWhole(t *testing.T) {
	got, err := File(t.Context(), serve(t), netip.MustParseAddr("127.0.0.1"), "big")
	if err != nil || !bytes.Equal(got, big()) {
		t.Errorf("%d bytes, want %d; %v", len(got), len(big()), err)
	}
}

func TestARefusalSaysItsReason(t *testing.T) {
	_, err := File(t.Context(), serve(t), netip.Addr{}, "nothing")
	if err == nil || !strings.Contains(err.Error(), "no such boot file") {
		t.Errorf("%v", err)
	}
}

func TestASilentServerIsGivenUp(t *testing.T) {
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	start := time.Now()
	if _, err := File(t.Context(), conn.LocalAddr().(*net.UDPAddr).AddrPort(), netip.Addr{}, "big"); err == nil {
		t.Error("a silent server had a file")
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("gave up after %s", took)
	}
}

func TestAFileWithoutEndIsCutOff(t *testing.T) {
	b := bounded{ctx: t.Context(), left: 10}
	if _, err := b.Write(make([]byte, 11)); !errors.Is(err, errTooLong) {
		t.Errorf("11 bytes of 10: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := File(ctx, serve(t), netip.Addr{}, "endless"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a file without end in 100 ms: %v", err)
	}
}
