// Package storetest owns the conformance suite that every inventory.Store passes, whatever its database. It is for
// tests only: no other code imports it.
package storetest

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"slipway.dev/slipway/inventory"
)

// Now is the time that the suite lives at. It has microseconds, which no store keeps.
var Now = time.Date(2026, 11, 21, 8, 30, 0, 123_456_000, time.UTC)

// Run runs the suite, but for the part of RunInstances; open returns an empty store, which the test closes itself when t ends.
func Run(t *testing.T, open func(t *testing.T) inventory.Store) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s inventory.Store)
	}{
		{"a host comes back as it was stored", hostRoundTrip},
		{"a host is found by name, MAC and hint", hostLookups},
		{"a host name or MAC belongs to one host", hostConflicts},
		{"an update needs the stored version", hostVersions},
		{"each field of a host is written when it changes", hostFields},
		{"an update rewrites NICs and labels", hostNICsAndLabels},
		{"hosts are filtered, paged and counted", hostLists},
		{"a pinned profile must exist and cannot be deleted", pinnedProfile},
		{"a deleted host frees its name and MACs", hostDelete},
		{"subnets keep their ranges and do not overlap", subnets},
		{"reservations belong to one machine per subnet", reservations},
		{"leases overwrite each other", leases},
		{"networks of both families beside each other", networks6},
		{"an address is kept for one machine", allocations},
		{"what machines hold is found by its value", holdings},
		{"classes of DHCP clients", classes},
		{"racks are kept by site, row and name", racks},
		{"a deleted subnet takes everything in it along", subnetDelete},
		{"artefacts, images and profiles hold each other", images},
		{"an image and a profile come back with their configuration", configRoundTrip},
		{"a profile gains a revision with every change of content", profileRevisions},
		{"a profile extends one that is stored, never itself", profileParents},
		{"a host pins a revision that is stored", pinnedRevision},
		{"layers are kept by key, with revisions", layers},
		{"a rendering is kept once per host, the latest first", renderings},
		{"a secret comes back sealed, and is not listed", secrets},
		{"a join target holds its secrets", joinTargets},
		{"a cluster holds its kubeconfig, and its state is no version", clusters},
		{"what a cluster may do is kept by its UID", clusterAccess},
		{"a join token is found by its session and state", joinTokens},
		{"deliveries and locks are overwritten", deliveriesAndLocks},
		{"a key of the site is overwritten, and found by its name", siteKeys},
		{"a machine comes back as it was stored", machineRoundTrip},
		{"a machine names what is stored, and is the only one of its owner", machineRefusals},
		{"machines are filtered, paged and due", machineLists},
		{"pools are kept by name, and while a machine names them", pools},
		{"a claim binds one machine to one host", claims},
		{"a claim is a change of its host and its machine", claimVersions},
		{"of 500 machines that want 100 hosts, 100 get one", claimStorm},
		{"hosts that could be claimed are listed", claimable},
		{"hosts are filtered by the pool of their machine", hostsOfPool},
		{"an operation comes back as it was stored", operationRoundTrip},
		{"a host has one open operation", oneOperation},
		{"operations are listed latest first", operationLists},
		{"operations are due in order", dueOperations},
		{"operations past their budget are counted", countOperations},
		{"inspections are numbered", inspections},
		{"what a host heard is kept from one inspection to the next", heardTwice},
		{"reports are kept for ever", reports},
		{"one controller powers one host", bmcs},
		{"ended operations and old inspections are forgotten", forgettingLife},
		{"sessions are found while they are open", sessions},
		{"every field of a session is saved again", sessionFields},
		{"sessions are listed latest first", sessionLists},
		{"event ids only grow", events},
		{"events added together are told their ids", eventIDs},
		{"events are filtered", eventFilters},
		{"old history is forgotten, the newest event and what is open stay", forgetting},
		{"what belongs to a boot goes with its session", forgettingBoots},
		{"an issue is open once", issues},
		{"a token is found by its hash", tokens},
		{"every plain noun is kept by its key", plainNouns},
		{"a user comes back, and one person is one user", users},
		{"logins end, and go with their user or token", logins},
		{"the audit is found, filtered and paged", audits},
		{"a view is its owner's, or everybody's", views},
		{"what other tables know of hosts is read with them", hostExtras},
		{"a transaction reads what it has stored as others read it later", readsItsOwn},
		{"a failed write leaves no trace", rollback},
		{"a panicking write leaves no trace", panics},
		{"failing writes do not take others along", rollbackInGroup},
		{"a write that was given up is not run", givenUp},
		{"a read sees one moment and cannot write", snapshot},
		{"a transaction ends with its function", ended},
		{"concurrent writers lose nothing", concurrentWriters},
		{"one of many claimants of a MAC wins", concurrentMAC},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

// write and read run fn and end the test on an error.
func write(t *testing.T, s inventory.Store, fn func(inventory.Tx) error) {
	t.Helper()
	if err := s.Write(t.Context(), fn); err != nil {
		t.Fatalf("write: %v", err)
	}
}

func read(t *testing.T, s inventory.Store, fn func(inventory.Tx) error) {
	t.Helper()
	if err := s.Read(t.Context(), fn); err != nil {
		t.Fatalf("read: %v", err)
	}
}

// refuses expects fn to fail with that kind, and with a message that has all the words.
func refuses(t *testing.T, s inventory.Store, kind inventory.Kind, words string, fn func(inventory.Tx) error) {
	t.Helper()
	expect(t, s.Write(t.Context(), fn), kind, words)
}

func expect(t *testing.T, err error, kind inventory.Kind, words string) {
	t.Helper()
	var e *inventory.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v (%T), want an *inventory.Error of kind %s", err, err, kind)
	}
	if e.Kind != kind {
		t.Errorf("got kind %s (%v), want %s", e.Kind, err, kind)
	}
	for _, w := range strings.Fields(words) {
		if !strings.Contains(e.Msg, w) {
			t.Errorf("message %q does not name %q", e.Msg, w)
		}
	}
}

// same compares what was stored with what came back; empty lists and absent ones are the same.
func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// Host returns a valid host number n, as machines in the field are.
func Host(n int) inventory.Host {
	return inventory.Host{
		ID: inventory.HostID(fmt.Sprintf("0193-%08d", n)), Name: fmt.Sprintf("host-%05d", n),
		State: inventory.Available, StateSinceAt: Now.Truncate(time.Millisecond),
		UUID: fmt.Sprintf("4c4c4544-0000-0000-0000-%012d", n), Serial: fmt.Sprintf("SN%06d", n),
		Manufacturer: "Dell Inc.", Product: "PowerEdge R650", Arch: inventory.X8664, Firmware: inventory.UEFI, MemoryMiB: 65536,
		Place:  inventory.Place{Site: "fra1", Row: "a", Rack: fmt.Sprintf("r%02d", n/40), Unit: n%40 + 1, Height: n % 3, Face: []inventory.Face{"", inventory.Front, inventory.Rear}[n%3]},
		Labels: map[string]string{"role": "worker", "slot": fmt.Sprint(n % 40)},
		Facts:  map[string]string{"bios": "1.2.3"},
		NICs:   []inventory.NIC{{MAC: MAC(2 * n), Name: "eno1", Vendor: "Intel", IsBoot: true}, {MAC: MAC(2*n + 1), Name: "eno2"}},
	}
}

// MAC returns a MAC number n.
func MAC(n int) inventory.MAC {
	return inventory.MAC(fmt.Sprintf("52:54:%02x:%02x:%02x:%02x", byte(n>>24), byte(n>>16), byte(n>>8), byte(n)))
}

// Subnet returns the subnet 10.n.0.0/16 with one range.
func Subnet(name string, n byte) inventory.Subnet {
	at := func(c, d byte) netip.Addr { return netip.AddrFrom4([4]byte{10, n, c, d}) }
	return inventory.Subnet{
		Name: name, CIDR: netip.PrefixFrom(at(0, 0), 16), Interface: "eno1", Mode: inventory.ModeFull,
		Gateway: at(0, 1), DNS: []netip.Addr{at(0, 2), at(0, 3)}, NTP: []netip.Addr{at(0, 4)}, Domain: "rack.example", MTU: 9000,
		Routes:   []inventory.Route{{To: netip.MustParsePrefix("192.168.0.0/16"), Via: at(0, 9)}},
		LeaseFor: inventory.Duration(24 * time.Hour), BootLeaseFor: inventory.Duration(10 * time.Minute),
		Unknown: inventory.UnknownDisk, Ranges: []inventory.Range{{First: at(1, 0), Last: at(200, 255)}},
		StaticRanges: []inventory.Range{{First: at(201, 0), Last: at(201, 255)}},
	}
}

// Lease returns the lease of 10.n.x.y, its number i counted from 10.n.1.0.
func Lease(subnet string, n byte, i int) inventory.Lease {
	return inventory.Lease{
		Address: netip.AddrFrom4([4]byte{10, n, byte(1 + i>>8), byte(i)}), Subnet: subnet, MAC: MAC(i),
		ClientID: "01" + strings.ReplaceAll(string(MAC(i)), ":", ""), Hostname: fmt.Sprintf("host-%05d", i),
		State: inventory.LeaseBound, IsBoot: true,
		StartsAt: Now.Truncate(time.Millisecond), ExpiresAt: Now.Truncate(time.Millisecond).Add(10 * time.Minute),
	}
}
