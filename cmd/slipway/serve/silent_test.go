package serve

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/fake"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
)

// TestErrorsOfControllersAreNoPortScanner: who chooses the address of a controller reads one sentence, whatever the network says. The
// cause is in the error for the log.
func TestErrorsOfControllersAreNoPortScanner(t *testing.T) {
	listen := func(answer func(net.Conn)) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
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
				go answer(c)
			}
		}()
		return l.Addr().String()
	}
	silent := listen(func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	banner := listen(func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.2\r\n"); _ = c.Close() })
	gone := listen(func(net.Conn) {})
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		gone = l.Addr().String()
		_ = l.Close()
	}
	mute, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	policy := egress.New(egress.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	open := openBMC(drivers(nil, fake.New(fake.Options{})), policy)
	for name, c := range map[string]struct {
		driver  inventory.BMCDriver
		address string // with AT for the place
		at      []string
		options map[string]string
	}{
		"redfish":      {driver: inventory.Redfish, address: "https://AT", at: []string{gone, silent, banner}},
		"redfish http": {driver: inventory.Redfish, address: "http://AT", at: []string{gone, silent, banner}},
		"ipmi":         {driver: inventory.IPMI, address: "AT", at: []string{gone, mute.LocalAddr().String()}},
		"libvirt":      {driver: inventory.Libvirt, address: "qemu+tcp://AT/system", at: []string{gone, silent, banner}},
		"webhook": {driver: inventory.Webhook, address: "https://AT", at: []string{gone, silent, banner}, options: map[string]string{
			"on.path": "/on", "off.path": "/off", "status.path": "/power", "status.pointer": "/power",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told, logged := map[string]bool{}, map[string]bool{}
			for _, at := range c.at {
				d, err := open(bmc.Target{BMC: inventory.BMC{
					HostID: "h", Driver: c.driver, Address: strings.Replace(c.address, "AT", at, 1), Username: "admin", System: "one", Options: c.options,
				}, Password: "secret"})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				_, err = d.Power(ctx)
				cancel()
				_ = d.Close()
				var e *inventory.Error
				if !errors.As(err, &e) || e.Kind != inventory.Unavailable {
					t.Fatalf("%s: %v", at, err)
				}
				told[strings.ReplaceAll(e.Msg+" | "+e.Hint, at, "AT")], logged[strings.ReplaceAll(e.Error(), at, "AT")] = true, true
			}
			if len(told) != 1 {
				t.Errorf("told apart: %v", told)
			}
			if len(logged) < 2 {
				t.Errorf("the log does not tell them apart either: %v", logged)
			}
		})
	}
}

// Nobody has this server connect to its own listeners, whatever an admin allows.
func TestNoListenerOfOursIsConnectedToForOthers(t *testing.T) {
	cfg := Default()
	cfg.BootTLSPort, cfg.Egress.Allow = 8443, []string{"127.0.0.0/8"}
	var admin atomic.Uint32
	admin.Store(8067)
	policy, err := egressPolicy(&cfg, &admin)
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range []uint16{80, 8443, 8067, 8069} {
		if policy.Check(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)) == nil {
			t.Errorf("port %d is connected to", port)
		}
	}
	if err := policy.Check(netip.MustParseAddrPort("127.0.0.1:8070")); err != nil {
		t.Errorf("another port: %v", err)
	}
}
