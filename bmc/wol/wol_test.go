package wol_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/bmctest"
	"slipway.dev/slipway/bmc/wol"
	"slipway.dev/slipway/inventory"
)

const mac = inventory.MAC("52:54:00:aa:00:01")

func target(address string, options map[string]string) bmc.Target {
	return bmc.Target{BMC: inventory.BMC{Driver: inventory.WoL, Address: address, Options: options}, HostMACs: []inventory.MAC{mac, "52:54:00:aa:00:02"}}
}

// magic is the packet as the data sheets of NICs draw it.
func magic(last byte, tail ...byte) []byte {
	p := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	for range 16 {
		p = append(p, 0x52, 0x54, 0x00, 0xaa, 0x00, last)
	}
	return append(p, tail...)
}

var refused = []bmc.Action{bmc.Off, bmc.Shutdown, bmc.Cycle, bmc.Reset}

func TestWoLPassesTheConformanceSuite(t *testing.T) {
	drop := func(context.Context, netip.AddrPort, []byte) error { return nil }
	t.Run("when nobody sees the machine", func(t *testing.T) {
		bmctest.Run(t, bmctest.Case{
			CannotRead: true, Refuses: refused,
			Open: func(t *testing.T, _ inventory.PowerState) bmc.Driver {
				return open(t, wol.Options{Send: drop}, target("", nil))
			},
		})
	})
	t.Run("when the machine is seen on the network", func(t *testing.T) {
		bmctest.Run(t, bmctest.Case{
			Refuses: refused,
			Open: func(t *testing.T, is inventory.PowerState) bmc.Driver {
				var up atomic.Bool
				up.Store(is == inventory.PowerOn)
				return open(t, wol.Options{
					Send: func(context.Context, netip.AddrPort, []byte) error { up.Store(true); return nil },
					IsUp: func(context.Context, inventory.BMC) (bool, error) { return up.Load(), nil },
				}, target("", nil))
			},
		})
	})
}

func open(t *testing.T, o wol.Options, to bmc.Target) bmc.Driver {
	t.Helper()
	d, err := wol.Opener(o)(to)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestMagicPacketsOnTheWire(t *testing.T) {
	for name, c := range map[string]struct {
		options  map[string]string
		password string
		tail     []byte
	}{
		"plain":                          {},
		"with a SecureOn password":       {map[string]string{"secureon": "01:23:45:67:89:ab"}, "", []byte{0x01, 0x23, 0x45, 0x67, 0x89, 0xab}},
		"with the password as SecureOn":  {nil, "0123456789ab", []byte{0x01, 0x23, 0x45, 0x67, 0x89, 0xab}},
		"options are nearer than fields": {map[string]string{"secureon": "ff-ff-ff-ff-ff-00"}, "0123456789ab", []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0x00}},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.ListenPacket("udp4", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			to := target(l.LocalAddr().String(), c.options)
			to.Password = c.password
			if err := open(t, wol.Options{}, to).SetPower(t.Context(), bmc.On); err != nil {
				t.Fatal(err)
			}
			for n := range 6 { // both NICs, three times
				if err := l.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
					t.Fatal(err)
				}
				b := make([]byte, 2000)
				got, _, err := l.ReadFrom(b)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(magic(byte(1+n%2), c.tail...), b[:got]); diff != "" {
					t.Errorf("packet %d:\n%s", n, diff)
				}
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"":                  "255.255.255.255:9",
		"10.0.0.255":        "10.0.0.255:9",
		"10.0.0.255:7":      "10.0.0.255:7",
		"[ff02::1%eth0]:9":  "[ff02::1%eth0]:9",
		"10.0.0.255:0":      "invalid",
		"broadcast.example": "invalid",
		"10.0.0.0/24":       "invalid",
	} {
		got := ""
		d, err := wol.Opener(wol.Options{Send: func(_ context.Context, to netip.AddrPort, _ []byte) error { got = to.String(); return nil }})(target(address, nil))
		if err != nil {
			got = string(bmc.KindOf(err))
		} else if err := d.SetPower(t.Context(), bmc.On); err != nil {
			t.Error(err)
		}
		if got != want {
			t.Errorf("%q: %s; want %s", address, got, want)
		}
	}
}

func TestOptionsAreStrict(t *testing.T) {
	for name, o := range map[string]map[string]string{
		"unknown":       {"colour": "blue"},
		"port 0":        {"port": "0"},
		"port too high": {"port": "65536"},
		"short secret":  {"secureon": "01:23"},
		"no hex":        {"secureon": "zz:23:45:67:89:ab"},
	} {
		if _, err := wol.Opener(wol.Options{})(target("", o)); bmc.KindOf(err) != inventory.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := wol.Opener(wol.Options{})(bmc.Target{}); bmc.KindOf(err) != inventory.Invalid {
		t.Errorf("no MAC: %v", err)
	}
}

func TestFailuresAreUnavailable(t *testing.T) {
	broken := errors.New("network is down")
	d := open(t, wol.Options{
		Send: func(context.Context, netip.AddrPort, []byte) error { return broken },
		IsUp: func(context.Context, inventory.BMC) (bool, error) { return false, broken },
	}, target("", nil))
	if err := d.SetPower(t.Context(), bmc.On); bmc.KindOf(err) != inventory.Unavailable {
		t.Error(err)
	}
	if is, err := d.Power(t.Context()); bmc.KindOf(err) != inventory.Unavailable || is != inventory.PowerUnknown {
		t.Error(is, err)
	}
}

// TestBroadcasts runs itself again in a network namespace, where a broadcast reaches nobody but the test.
func TestBroadcasts(t *testing.T) {
	if os.Getenv("SLIPWAY_NET") != "1" {
		t.Skip("needs root to make a network namespace; run with SLIPWAY_NET=1")
	}
	if os.Getenv("SLIPWAY_WOL_INSIDE") != "1" {
		cmd := exec.Command("unshare", "-n", "sh", "-c", `ip link set lo up && ip link add d0 type veth peer name d1 && ip addr add 192.0.2.1/24 brd + dev d0 && ip link set d0 up && ip link set d1 up && exec "$0" -test.run '^TestBroadcasts$' -test.v`, os.Args[0])
		cmd.Env = append(os.Environ(), "SLIPWAY_WOL_INSIDE=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("--- PASS: TestBroadcasts")) {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	l, err := net.ListenPacket("udp4", "192.0.2.255:9")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := open(t, wol.Options{}, target("192.0.2.255", nil)).SetPower(t.Context(), bmc.On); err != nil {
		t.Fatal(err)
	}
	if err := l.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 2000)
	n, _, err := l.ReadFrom(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(magic(1), b[:n]); diff != "" {
		t.Error(diff)
	}
}
