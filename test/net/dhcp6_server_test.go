package net_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/dhcp6"
	"slipway.dev/slipway/pxe/lease6"
	"slipway.dev/slipway/pxe/ra"
	"slipway.dev/slipway/test/netlab"
)

// serveDHCP6 is the server under test: the real DHCPv6 and router advertisement doors on the real store.
func serveDHCP6() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var in dhcpSetup
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		return err
	}
	store, err := sqlstore.Open(ctx, sqlstore.Config{Path: in.DB})
	if err != nil {
		return err
	}
	defer store.Close()
	if err := store.Write(ctx, func(tx inventory.Tx) error { return create(tx, in) }); err != nil {
		return err
	}
	var network lease6.Network
	var leases []inventory.Lease
	err = store.Read(ctx, func(tx inventory.Tx) (err error) {
		network.Ours = in.Ours
		if network.Subnets, err = tx.Subnets().List(inventory.Page{}); err != nil {
			return err
		}
		if network.Reservations, err = tx.ListReservations("", inventory.Page{}); err != nil {
			return err
		}
		leases, err = tx.ListLeases("", inventory.Page{})
		return err
	})
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stdout, nil))
	door := dhcp6.New(dhcp6.Config{
		Interfaces: in.Interfaces, Book: lease6.New(network, leases), Leases: shelf{store}, Boots: operator{}, BootPort: 80,
		DUID: []byte{0, 3, 0, 1, 2, 0, 0, 0, 0, 1}, ProbeFor: in.ProbeFor, PerSource: in.PerSource, Now: time.Now, Log: log,
		Classes:    func() []inventory.Class { return in.Classes },
		Foreign:    func(f pxe.ForeignServer) { fmt.Println("foreign6", f.Subnet, f.DUID, f.Server, f.IsHeard) },
		StoreState: func(err error) { fmt.Println("store state:", err) },
	})
	adverts := ra.New(ra.Config{Interfaces: in.Interfaces, Subnets: func(string) []inventory.Subnet { return network.Subnets }, Log: log})
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return door.Serve(ctx) })
	g.Go(func() error { return probeWhenTold(ctx, door, in.Interfaces[0]) })
	g.Go(func() error { return adverts.Serve(ctx) })
	return g.Wait()
}

// probeWhenTold asks for other servers at SIGUSR1, and prints what they say.
func probeWhenTold(ctx context.Context, door *dhcp6.Server, iface string) error {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGUSR1)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-told:
		}
		offers, err := door.Probe(ctx, dhcp6.ProbeSetup{Interface: iface, Wait: 2 * time.Second})
		if err != nil {
			return err
		}
		for _, o := range offers {
			fmt.Println("probed", o.Kind, o.Server, o.Address, o.File)
		}
		fmt.Printf("probe done, %d offers\n", len(offers))
	}
}

// rack6 is a wire with our server, which has fd77:1::1 on srv0, and machines.
type rack6 struct {
	*lab
	server string
	wireIf string // the server's interface, a bridge that machines are plugged into
}

func newRack6(t *testing.T, programs ...string) *rack6 {
	t.Helper()
	l := newLab(t, programs...)
	r := &rack6{lab: l, server: l.NS("srv"), wireIf: "srv0"}
	l.In(r.server, "ip", "link", "add", "srv0", "type", "bridge")
	l.In(r.server, "ip", "link", "set", "srv0", "up")
	l.In(r.server, "ip", "addr", "add", "fd77:1::1/64", "dev", "srv0", "nodad")
	return r
}

// machine makes a namespace with an eth0 on the wire, with the MAC 52:54:00:77:00:<n>.
func (r *rack6) machine(n int) string {
	r.T.Helper()
	ns := r.NS(fmt.Sprintf("m%d", n))
	r.Wire(r.server, fmt.Sprintf("p%d", n), ns, "eth0")
	r.In(ns, "ip", "link", "set", "eth0", "down")
	r.In(ns, "ip", "link", "set", "eth0", "address", mac6(n))
	r.In(ns, "sysctl", "-qw", "net.ipv6.conf.eth0.accept_dad=0", "net.ipv6.conf.eth0.router_solicitations=0")
	r.In(ns, "ip", "link", "set", "eth0", "up")
	r.In(r.server, "ip", "link", "set", fmt.Sprintf("p%d", n), "master", r.wireIf)
	return ns
}

func mac6(n int) string { return fmt.Sprintf("52:54:00:77:00:%02x", n) }

func (r *rack6) setup() dhcpSetup {
	at := netip.MustParseAddr
	return dhcpSetup{
		DB: filepath.Join(r.Dir, "slipway.db"), Interfaces: []string{"srv0"}, Ours: []netip.Addr{at("fd77:1::1")},
		Subnets: []inventory.Subnet{{
			Name: "six", CIDR: netip.MustParsePrefix("fd77:1::/64"), Interface: "srv0", Mode: inventory.ModeFull, Unknown: inventory.UnknownDisk,
			DNS: []netip.Addr{at("fd77:1::53")}, Domain: "lab.example", LeaseFor: inventory.Duration(time.Hour), BootLeaseFor: inventory.Duration(10 * time.Minute),
			Ranges: []inventory.Range{{First: at("fd77:1::1000"), Last: at("fd77:1::1fff")}},
		}},
	}
}

// serve starts the server and waits until it answers.
func (r *rack6) serve(setup dhcpSetup) *dhcpServer {
	r.T.Helper()
	s := &dhcpServer{lab: r.lab, ns: r.server, setup: setup}
	input, err := json.Marshal(setup)
	if err != nil {
		r.T.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		r.T.Fatal(err)
	}
	s.process = r.Start(r.server, []string{netlab.Child("dhcp6")}, strings.NewReader(string(input)), exe)
	s.WaitFor("answering dhcpv6", 1)
	s.WaitFor("answering router solicitations", 1)
	return s
}
