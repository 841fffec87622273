package net_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/dhcp"
	"slipway.dev/slipway/pxe/lease"
	"slipway.dev/slipway/test/netlab"
)

// dhcpSetup is what a DHCP server under test is told, as JSON on its standard input.
type dhcpSetup struct {
	DB           string
	Interfaces   []string
	Subnets      []inventory.Subnet
	Reservations []inventory.Reservation
	Classes      []inventory.Class
	Ours         []netip.Addr
	ProbeFor     time.Duration
	PerSource    int
	Known        []string // MACs of known machines
	IsLimited    bool     // strangers are, as in the program
}

// serveDHCP is the server under test: the real door on the real store, and a boot engine that says what it is asked.
func serveDHCP() error {
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
	var network lease.Network
	var leases []inventory.Lease
	err = store.Read(ctx, func(tx inventory.Tx) (err error) {
		network.Ours = in.Ours
		if in.IsLimited {
			network.Limits = lease.Limits{KeptPart: 8, PerPort: 32, OfferFor: 15 * time.Second}
		}
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
	server := dhcp.New(dhcp.Config{
		Interfaces: in.Interfaces, Book: lease.New(network, leases), Leases: shelf{store}, Boots: operator{},
		Knows:    func(m [6]byte) bool { return slices.Contains(in.Known, net.HardwareAddr(m[:]).String()) },
		ProbeFor: in.ProbeFor, PerSource: in.PerSource, Now: time.Now, Classes: func() []inventory.Class { return in.Classes },
		Log:        slog.New(slog.NewTextHandler(os.Stdout, nil)),
		StoreState: func(err error) { fmt.Println("store state:", err) },
	})
	return server.Serve(ctx)
}

// create stores what is not there yet: a server that is started again finds its own.
func create(tx inventory.Tx, in dhcpSetup) error {
	now := time.Now()
	for i := range in.Subnets {
		if _, err := tx.Subnets().Find(in.Subnets[i].Name); err == nil {
			continue
		}
		if err := in.Subnets[i].Validate(); err != nil {
			return err
		}
		if err := tx.Subnets().Create(&in.Subnets[i], now); err != nil {
			return err
		}
	}
	for i := range in.Reservations {
		if _, err := tx.FindReservation(in.Reservations[i].Address); err == nil {
			continue
		}
		if err := tx.CreateReservation(&in.Reservations[i], now); err != nil {
			return err
		}
	}
	return nil
}

// shelf writes leases as the program does: one transaction for a group.
type shelf struct{ store inventory.Store }

func (s shelf) Save(ctx context.Context, leases []inventory.Lease) error {
	return s.store.Write(ctx, func(tx inventory.Tx) error {
		for _, l := range leases {
			if err := tx.SaveLease(l); err != nil {
				return err
			}
		}
		return nil
	})
}

// operator stands for the boot engine and prints what it is told.
type operator struct{}

func (operator) Offer(_ context.Context, c pxe.Client, base string) pxe.Reply {
	return pxe.Answer(c, pxe.Decision{Boot: pxe.BootImage, Loader: "snponly.efi"}, "", base)
}

func (operator) Note(_ context.Context, c pxe.Client, kind, detail string) {
	fmt.Println("note", kind, c.MAC, detail)
}

func (operator) Conflict(a netip.Addr, subnet string, who inventory.MAC, detail string) {
	fmt.Println("conflict", a, subnet, who, detail)
}

func (operator) Beside(c pxe.Client, isHeard bool) {
	fmt.Println("beside", c.MAC, c.Address, isHeard)
}

func (operator) Foreign(f pxe.ForeignServer) {
	fmt.Println("foreign", f.Subnet, f.Server, f.MAC, f.IsHeard, f.IsProxy)
}

func (operator) Exhausted(subnet string) { fmt.Println("exhausted", subnet) }

// dhcpServer is a server under test in its namespace.
type dhcpServer struct {
	*process
	lab   *lab
	ns    string
	setup dhcpSetup
}

// serve starts the server and waits until it answers on every interface.
func (l *lab) serve(ns string, setup dhcpSetup) *dhcpServer {
	l.T.Helper()
	s := &dhcpServer{lab: l, ns: ns, setup: setup}
	s.begin()
	return s
}

func (s *dhcpServer) begin() {
	s.lab.T.Helper()
	s.process = s.lab.serveOnly(s.ns, s.setup)
	s.WaitFor("answering dhcp", len(s.setup.Interfaces))
}

// serveOnly starts the server and does not wait.
func (l *lab) serveOnly(ns string, setup dhcpSetup) *process {
	l.T.Helper()
	input, err := json.Marshal(setup)
	if err != nil {
		l.T.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		l.T.Fatal(err)
	}
	return l.Start(ns, []string{netlab.Child("dhcp")}, strings.NewReader(string(input)), exe)
}

// read looks into the server's database, as another process sees it.
func (s *dhcpServer) read(fn func(inventory.Tx) error) {
	s.lab.T.Helper()
	store, err := sqlstore.Open(s.lab.T.Context(), sqlstore.Config{Path: s.setup.DB})
	if err != nil {
		s.lab.T.Fatal(err)
	}
	defer store.Close()
	if err := store.Read(s.lab.T.Context(), fn); err != nil {
		s.lab.T.Fatal(err)
	}
}

// lease reads a lease from the server's database, as another process sees it.
func (s *dhcpServer) lease(addr string) (found inventory.Lease, ok bool) {
	s.lab.T.Helper()
	store, err := sqlstore.Open(s.lab.T.Context(), sqlstore.Config{Path: s.setup.DB})
	if err != nil {
		s.lab.T.Fatal(err)
	}
	defer store.Close()
	err = store.Read(s.lab.T.Context(), func(tx inventory.Tx) (err error) {
		found, err = tx.FindLease(netip.MustParseAddr(addr))
		return err
	})
	var e *inventory.Error
	if errors.As(err, &e) && e.Kind == inventory.NotFound {
		return found, false
	}
	if err != nil {
		s.lab.T.Fatal(err)
	}
	return found, true
}

// waitState waits until the database holds a lease in that state: what no client waits for is stored a little later.
func (s *dhcpServer) waitState(addr string, want inventory.LeaseState) {
	s.lab.T.Helper()
	var l inventory.Lease
	for range 100 {
		if l, _ = s.lease(addr); l.State == want {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.lab.T.Errorf("the store has %+v, want it %s", l, want)
}

// rackNet is a subnet for tests, 10.77.<n>.0/24 with the range .100 to .199.
func rackNet(n int, iface string) inventory.Subnet {
	at := func(host int) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, byte(n), byte(host)}) }
	return inventory.Subnet{
		Name: fmt.Sprintf("rack%d", n), CIDR: netip.PrefixFrom(at(0), 24), Interface: iface, Mode: inventory.ModeFull,
		Gateway: at(1), DNS: []netip.Addr{at(1)}, Domain: "lab.example", LeaseFor: inventory.Duration(time.Hour),
		BootLeaseFor: inventory.Duration(10 * time.Minute), Unknown: inventory.UnknownWait,
		Ranges: []inventory.Range{{First: at(100), Last: at(199)}},
	}
}

// rack is one server interface with a subnet, a switch, and machines on it.
type rack struct {
	*lab
	server string // namespace, with interface srv0 10.77.1.1/24
	sw     string // namespace of the switch
	n      int
}

func newRack(t *testing.T, programs ...string) *rack {
	l := newLab(t, programs...)
	r := &rack{lab: l, server: l.NS("srv"), sw: l.NS("sw")}
	l.In(r.sw, "ip", "link", "add", "br0", "type", "bridge")
	l.In(r.sw, "ip", "link", "set", "br0", "up")
	r.plug(r.server, "srv0")
	l.In(r.server, "ip", "addr", "add", "10.77.1.1/24", "dev", "srv0")
	return r
}

// plug puts an interface of a namespace on the switch.
func (r *rack) plug(ns, iface string) {
	r.T.Helper()
	r.n++
	end := fmt.Sprintf("p%d", r.n)
	r.Wire(ns, iface, r.sw, end)
	r.In(r.sw, "ip", "link", "set", end, "master", "br0")
}

// machine makes a namespace with the interface eth0 and the MAC 02:00:00:00:00:<n>.
func (r *rack) machine(n int) string {
	r.T.Helper()
	ns := r.NS(fmt.Sprintf("m%d", n))
	r.plug(ns, "eth0")
	r.In(ns, "ip", "link", "set", "eth0", "address", mac(n))
	return ns
}

func mac(n int) string { return fmt.Sprintf("02:00:00:00:00:%02x", n) }

func (r *rack) setup() dhcpSetup {
	return dhcpSetup{
		Interfaces: []string{"srv0"}, Subnets: []inventory.Subnet{rackNet(1, "srv0")},
		Ours: []netip.Addr{netip.MustParseAddr("10.77.1.1")}, DB: filepath.Join(r.Dir, "slipway.db"),
	}
}
