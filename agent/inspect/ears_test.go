package inspect

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
)

// device makes a folder like /sys in which a port has a driver.
func device(t *testing.T, port, driver string) string {
	t.Helper()
	sys := t.TempDir()
	dir := filepath.Join(sys, "class/net", port, "device")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/sys/bus/x/drivers/"+driver, filepath.Join(dir, "driver")); err != nil {
		t.Fatal(err)
	}
	return sys
}

func TestHowLongASwitchIsWaitedFor(t *testing.T) {
	for _, c := range []struct {
		name, driver string
		set          time.Duration
		isHeard      bool
		want         time.Duration
	}{
		{"a physical port", "i40e", 0, false, lldpFor},
		{"a virtual port", "virtio_net", 0, false, lldpVirtual},
		{"as the caller says", "i40e", time.Second, false, time.Second},
		{"not at all when it has spoken", "i40e", 0, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &Ears{Log: slog.New(slog.DiscardHandler), Sys: device(t, "eth0", c.driver), For: c.set}
				e.linked = map[string]time.Time{"eth0": time.Now()}
				e.heard = map[string]inventory.Neighbour{}
				if c.isHeard {
					e.heard["eth0"] = inventory.Neighbour{Chassis: "x", Port: "y"}
				}
				began := time.Now()
				heard := e.Neighbours(t.Context())
				if spent := time.Since(began); spent < c.want || spent > c.want+time.Second || len(heard) != len(e.heard) {
					t.Errorf("waited %s for %v, want %s", spent, heard, c.want)
				}
			})
		})
	}
}

// TestASwitchIsHeard sends one frame over a cable of two virtual ports, in a network namespace.
func TestASwitchIsHeard(t *testing.T) {
	if os.Getenv("SLIPWAY_NET") != "1" {
		t.Skip("needs root and a network namespace: SLIPWAY_NET=1 go test ./agent/inspect")
	}
	runtime.LockOSThread() // never unlocked: the thread ends with the namespace
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "port0"}, PeerName: "switch0"}); err != nil {
		t.Fatal(err)
	}
	var peer netlink.Link
	for _, name := range []string{"port0", "switch0"} {
		if peer, err = netlink.LinkByName(name); err == nil {
			err = netlink.LinkSetUp(peer)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	e := &Ears{Log: slog.New(slog.DiscardHandler), Sys: device(t, "port0", "veth")}
	e.look(ctx) // opens its socket in this thread's namespace

	frame := append([]byte{0x01, 0x80, 0xc2, 0, 0, 0x0e, 2, 0, 0, 0, 0, 1, 0x88, 0xcc}, "\x02\x07\x04\x00\x1c\x73\x00\x00\x01\x04\x0a\x05Ethernet7\x06\x02\x00\x78\x00\x00"...)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	var n inventory.Neighbour
	for n.Chassis == "" && ctx.Err() == nil { // the link may not be up yet: a switch speaks again, too
		if err := unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: peer.Attrs().Index, Halen: 6}); err != nil {
			t.Fatal(err)
		}
		e.look(ctx)
		n = e.Neighbours(ctx)["port0"]
	}
	if n.Chassis != "00:1c:73:00:00:01" || n.Port != "Ethernet7" {
		t.Errorf("%+v", n)
	}
	cancel()
	e.crew.Wait()
}
