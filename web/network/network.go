package network

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
	"slipway.dev/slipway/web/rest"
)

// addSubnets registers the operations on subnets and their ranges.
func (s *Server) addSubnets() {
	n := rest.Plain(noun.Subnets, s.rest.Now, func(_ inventory.Tx, in, _ *inventory.Subnet) error {
		in.FillDefaults()
		return in.Validate()
	})
	n.Burden, n.Counts = subnetBurden, countsOfSubnet
	rest.AddNoun(s.rest, n)
	for _, o := range []struct {
		method, id, summary string
		edit                func([]inventory.Range, inventory.Range) ([]inventory.Range, error)
	}{
		{http.MethodPut, "add-range", "Add a range to a subnet", func(have []inventory.Range, r inventory.Range) ([]inventory.Range, error) {
			if slices.Contains(have, r) {
				return have, nil
			}
			return append(have, r), nil
		}},
		{http.MethodDelete, "remove-range", "Take a range from a subnet", func(have []inventory.Range, r inventory.Range) ([]inventory.Range, error) {
			i := slices.Index(have, r)
			if i < 0 {
				return nil, inventory.Errorf(inventory.NotFound, "there is no range %s-%s", r.First, r.Last).WithHint("slipway subnet show lists the ranges")
			}
			return slices.Delete(have, i, i+1), nil
		}},
	} {
		rest.Register(s.rest, rest.Operation{
			Method: o.method, Path: "/subnets/{name}/ranges/{range}", ID: o.id, Needs: inventory.Admin, Tag: "subnets", Summary: o.summary,
			Dry: true, Result: inventory.Subnet{}, Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed},
		},
			func(req *rest.Request, in *rangeInput) (*rest.Written, error) {
				return s.editRange(req, in, o.id, o.edit)
			})
	}
}

type rangeInput struct {
	rest.WriteOptions
	Name  string `path:"name" maxLength:"255"`
	Range string `path:"range" maxLength:"96" example:"10.0.0.100-10.0.0.199"`
}

// editRange changes the ranges of a subnet.
func (s *Server) editRange(req *rest.Request, in *rangeInput, what string, edit func([]inventory.Range, inventory.Range) ([]inventory.Range, error)) (*rest.Written, error) {
	r, err := parseRange(in.Range)
	if err != nil {
		return nil, err
	}
	var old, n inventory.Subnet
	err = s.rest.Write(req, in.DryRun, func(tx inventory.Tx) (err error) {
		if old, err = tx.Subnets().Find(in.Name); err != nil {
			return err
		}
		if err := in.Check("subnet", in.Name, old.Version); err != nil {
			return err
		}
		n = old
		if n.Ranges, err = edit(slices.Clone(old.Ranges), r); err != nil {
			return err
		}
		if err := n.Validate(); err != nil || slices.Equal(n.Ranges, old.Ranges) {
			return err
		}
		if err := tx.Subnets().Update(&n, s.rest.Now()); err != nil {
			return err
		}
		rest.Edited(req, "subnet", n.Name, inventory.AuditUpdate, old, n, n.Version)
		return s.rest.Changed(req, tx, "subnet/"+n.Name, strings.ReplaceAll(what, "-", " ")+" "+in.Range+" of subnet "+n.Name)
	})
	if err != nil {
		return nil, err
	}
	if in.DryRun {
		return &rest.Written{Status: http.StatusOK, Body: rest.Diff{IsDryRun: true, Changes: rest.Compare(old, n), Result: n}}, nil
	}
	return &rest.Written{Status: http.StatusOK, ETag: rest.ETag(n.Version), Body: n}, nil
}

// parseRange reads FIRST-LAST.
func parseRange(text string) (inventory.Range, error) {
	first, last, _ := strings.Cut(text, "-")
	a, err1 := netip.ParseAddr(first)
	b, err2 := netip.ParseAddr(last)
	if err1 != nil || err2 != nil {
		return inventory.Range{}, inventory.Errorf(inventory.Invalid, "%q is not a range", inventory.Clean(text, 80)).
			WithHint("write its first and last address: 10.0.0.100-10.0.0.199")
	}
	return inventory.Range{First: a, Last: b}, nil
}

// parseAddr reads the address that names a reservation or lease.
func parseAddr(text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return a, inventory.Errorf(inventory.Invalid, "%q is not an address", inventory.Clean(text, 80)).WithHint("write it as 10.0.0.17")
	}
	return a, nil
}

// addReservations registers the operations on reservations, which are named by their address.
func (s *Server) addReservations() {
	now := s.rest.Now
	find := func(tx inventory.Tx, name string) (r inventory.Reservation, err error) {
		a, err := parseAddr(name)
		if err != nil {
			return r, err
		}
		return tx.FindReservation(a)
	}
	rest.AddNoun(s.rest, rest.Noun[inventory.Reservation]{
		Singular: "reservation", Plural: "reservations", Needs: inventory.Admin, Scope: rest.OfPools, Article: "a",
		Name:    func(r inventory.Reservation) string { return r.Address.String() },
		Version: func(r inventory.Reservation) int64 { return r.Version },
		Prepare: prepareReservation,
		Find:    find,
		Create:  func(tx inventory.Tx, in *inventory.Reservation) error { return tx.CreateReservation(in, now()) },
		Update:  func(tx inventory.Tx, in *inventory.Reservation) error { return tx.UpdateReservation(in, now()) },
		Remove: func(tx inventory.Tx, name string) error {
			a, err := parseAddr(name)
			if err != nil {
				return err
			}
			return tx.DeleteReservation(a)
		},
	})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/reservations", ID: "list-reservations",
		Scope: rest.OfPools, Tag: "reservations", Summary: "List reservations", AtAny: true,
	},
		func(req *rest.Request, in *bySubnet) (out *rest.Listed[inventory.Reservation], err error) {
			err = s.rest.Store.Read(req, func(tx inventory.Tx) error {
				rows, err := tx.ListReservations(in.Subnet, in.More())
				out = rest.PageOf(rows, in.Limit, func(r inventory.Reservation) string { return r.Address.String() })
				return err
			})
			return out, err
		})
}

type bySubnet struct {
	rest.Page
	Subnet string `query:"subnet" doc:"Only those of this subnet" maxLength:"63"`
}

// prepareReservation makes a reservation ready; its subnet is found by its address when it is not named.
func prepareReservation(tx inventory.Tx, in *inventory.Reservation, name string, old *inventory.Reservation) error {
	if name != "" {
		a, err := parseAddr(name)
		if err != nil {
			return err
		}
		if in.Address.IsValid() && in.Address != a {
			return inventory.Errorf(inventory.Invalid, "the body is about %s and the address about %s", in.Address, a)
		}
		in.Address = a
	}
	subnets, err := tx.Subnets().List(inventory.Page{})
	if err != nil {
		return err
	}
	i := slices.IndexFunc(subnets, func(n inventory.Subnet) bool {
		return n.Name == in.Subnet || in.Subnet == "" && n.CIDR.Contains(in.Address)
	})
	if i < 0 {
		return inventory.Errorf(inventory.NotFound, "no subnet for %s", in.Address).WithHint("create it first: slipway subnet create NAME --cidr CIDR")
	}
	in.Subnet, in.UUID = subnets[i].Name, strings.ToLower(in.UUID)
	if in.MAC != "" {
		if in.MAC, err = inventory.ParseMAC(string(in.MAC)); err != nil {
			return err
		}
	}
	if old != nil {
		in.CreatedAt, in.UpdatedAt, in.Version = old.CreatedAt, old.UpdatedAt, old.Version
	}
	return in.Validate(&subnets[i])
}

// addLeases registers the operations on leases: DHCP makes them, so that callers can only read and delete them.
func (s *Server) addLeases() {
	find := func(tx inventory.Tx, name string) (l inventory.Lease, err error) {
		a, err := parseAddr(name)
		if err != nil {
			return l, err
		}
		return tx.FindLease(a)
	}
	rest.AddNoun(s.rest, rest.Noun[inventory.Lease]{
		Singular: "lease", Plural: "leases", Needs: inventory.Admin, Scope: rest.OfPools, Article: "a",
		Name:    func(l inventory.Lease) string { return l.Address.String() },
		Version: func(inventory.Lease) int64 { return 0 },
		Find:    find,
		Remove: func(tx inventory.Tx, name string) error {
			l, err := find(tx, name)
			if err != nil {
				return err
			}
			return tx.DeleteLease(l.Address)
		},
	})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/leases", ID: "list-leases",
		Scope: rest.OfPools, Tag: "leases", Summary: "List leases", Errors: []int{http.StatusNotFound}, AtAny: true,
	},
		func(req *rest.Request, in *leaseQuery) (out *rest.Listed[inventory.Lease], err error) {
			err = s.rest.Store.Read(req, func(tx inventory.Tx) error {
				if in.Host != "" {
					out, err = leasesOfHost(tx, *in)
					return err
				}
				rows, err := tx.ListLeases(in.Subnet, in.More())
				out = rest.PageOf(rows, in.Limit, func(l inventory.Lease) string { return l.Address.String() })
				return err
			})
			return out, err
		})
}

// leaseQuery has its parts spelt out: the API library looks past an embedded type that is not exported.
type leaseQuery struct {
	rest.Page
	Subnet string `query:"subnet" doc:"Only those of this subnet" maxLength:"63"`
	rest.ByHost
}

// leasesOfHost lists what the ports of a host were given, in the order of its ports.
func leasesOfHost(tx inventory.Tx, in leaseQuery) (*rest.Listed[inventory.Lease], error) {
	h, err := rest.FindHost(tx, in.Host)
	if err != nil {
		return nil, err
	}
	var all []inventory.Lease
	for _, n := range h.NICs {
		of, err := tx.ListLeasesOf(n.MAC)
		if err != nil {
			return nil, err
		}
		for _, l := range of {
			if in.Subnet == "" || l.Subnet == in.Subnet {
				all = append(all, l)
			}
		}
	}
	return &rest.Listed[inventory.Lease]{Body: rest.List[inventory.Lease]{Items: append([]inventory.Lease{}, all...)}}, nil
}

// subnetBurden says what goes with a subnet.
func subnetBurden(tx inventory.Tx, n inventory.Subnet) (string, error) {
	rows, err := tx.ListReservations(n.Name, inventory.Page{})
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return fmt.Sprintf("%d of its reservations go with it", len(rows)), nil
}

func countsOfSubnet(tx inventory.Tx, n inventory.Subnet) (map[string]int, error) {
	reserved, err := tx.ListReservations(n.Name, inventory.Page{})
	if err != nil {
		return nil, err
	}
	leases, err := tx.ListLeases(n.Name, inventory.Page{})
	return map[string]int{"reservation": len(reserved), "lease": len(leases)}, err
}
