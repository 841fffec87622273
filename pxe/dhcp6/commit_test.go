package dhcp6

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/lease6"
)

// refusing is a store that refuses the leases of one subnet, or all of them.
type refusing struct {
	subnet string
	all    error
	groups []int
}

func (r *refusing) Save(_ context.Context, leases []inventory.Lease) error {
	r.groups = append(r.groups, len(leases))
	if slices.ContainsFunc(leases, func(l inventory.Lease) bool { return l.Subnet == r.subnet }) {
		return inventory.Errorf(inventory.Conflict, "duty network/%s is no longer held by instance a", r.subnet)
	}
	return r.all
}

func TestALeaseThatTheStoreRefusesCostsOnlyItself(t *testing.T) {
	for _, c := range []struct {
		name   string
		store  refusing
		sent   []string
		groups []int
		states int
	}{
		{"all is well", refusing{}, []string{"six", "other"}, []int{2}, 0},
		{"another instance has one of the networks", refusing{subnet: "six"}, []string{"other"}, []int{2, 1, 1}, 0},
		{"the disk is full", refusing{all: errors.New("disk full")}, nil, []int{2}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			states := 0
			var subnets []inventory.Subnet
			for i, name := range []string{"six", "other"} {
				base := netip.AddrFrom16([16]byte{0xfd, byte(i), 15: 0x10})
				subnets = append(subnets, inventory.Subnet{
					Name: name, CIDR: netip.PrefixFrom(base, 64).Masked(), Mode: inventory.ModeFull, LeaseFor: inventory.Duration(time.Hour),
					Ranges: []inventory.Range{{First: base, Last: base}},
				})
			}
			s := New(Config{
				Book: lease6.New(lease6.Network{Subnets: subnets}, nil), Leases: &c.store, Now: time.Now, Log: slog.New(slog.DiscardHandler),
				StoreState: func(error) { states++ },
			})
			var sent []string
			for _, n := range subnets {
				_, l, why := s.cfg.Book.Assign(lease6.Client{Subnet: n.Name, DUID: "0001", IAID: 1}, netip.Addr{}, time.Now())
				if why != "" {
					t.Fatal(why)
				}
				s.commits.add(pending{leases: []inventory.Lease{l}, isNew: true, send: func() { sent = append(sent, n.Name) }})
			}
			s.commits.flush(t.Context())
			if !slices.Equal(sent, c.sent) || !slices.Equal(c.store.groups, c.groups) || states != c.states {
				t.Errorf("answers for %v, groups of %v, %d changes of state; want %v, %v, %d", sent, c.store.groups, states, c.sent, c.groups, c.states)
			}
		})
	}
}
