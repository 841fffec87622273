package libvirt_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/libvirt"
	"slipway.dev/slipway/inventory"
)

func openAt(t *testing.T, address, system string) bmc.Driver {
	t.Helper()
	d, err := libvirt.Open(bmc.Target{BMC: inventory.BMC{Driver: inventory.Libvirt, Address: address, System: system}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// daemonThat listens on a socket of its own and hands each connection to serve.
func daemonThat(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); serve(c) }()
		}
	}()
	return "unix://" + path
}

func TestDaemonsThatMisbehaveAreUnavailable(t *testing.T) {
	packet := func(size uint32, rest int) []byte {
		return append(binary.BigEndian.AppendUint32(nil, size), bytes.Repeat([]byte{0xff}, rest)...)
	}
	for name, address := range map[string]string{
		"no daemon":                 "unix://" + filepath.Join(t.TempDir(), "none"),
		"nobody listens by TCP":     "qemu+tcp://127.0.0.1:1/system",
		"hangs up":                  daemonThat(t, func(net.Conn) {}),
		"never answers":             daemonThat(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }),
		"speaks HTTP":               daemonThat(t, func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) }),
		"a packet without a header": daemonThat(t, func(c net.Conn) { _, _ = c.Write(packet(5, 40)); _, _ = io.Copy(io.Discard, c) }),
		"a packet of 4 GiB":         daemonThat(t, func(c net.Conn) { _, _ = c.Write(packet(1<<32-1, 40)); _, _ = io.Copy(io.Discard, c) }),
	} {
		t.Run(name, func(t *testing.T) {
			d := openAt(t, address, "m")
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			begun := time.Now()
			for range 2 {
				if _, err := d.Power(ctx); bmc.KindOf(err) != inventory.Unavailable {
					t.Errorf("kind %s: %v", bmc.KindOf(err), err)
				}
			}
			if took := time.Since(begun); took > 3*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}
