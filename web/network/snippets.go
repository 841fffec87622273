package network

import (
	"net/http"
	"net/netip"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/usage"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// addNetworks registers the questions about networks beyond the nouns.
func (s *Server) addNetworks() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/interfaces", ID: "list-interfaces", Tag: "subnets", Summary: "List the server's network interfaces",
		About: "Those that could serve machines: without loopback.",
	}, func(req *rest.Request, _ *struct{}) (*rest.Listed[wire.Interface], error) {
		all, err := s.interfaces(req)
		return rest.PageOf(all, len(all), func(i wire.Interface) string { return i.Name }), err
	})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/subnets/{name}/usage", ID: "get-subnet-usage", Scope: rest.OfNobody, Tag: "subnets", Errors: []int{http.StatusNotFound},
		AtAny:   true,
		Summary: "Count what the addresses of a subnet are doing",
	}, func(req *rest.Request, in *rest.NameInput) (*rest.One[usage.SubnetUse], error) {
		out := &rest.One[usage.SubnetUse]{}
		err := s.rest.Store.Read(req, func(tx inventory.Tx) error {
			n, err := tx.Subnets().Find(in.Name)
			if err != nil {
				return err
			}
			leases, err := tx.ListLeases(n.Name, inventory.Page{})
			if err != nil {
				return err
			}
			reservations, err := tx.ListReservations(n.Name, inventory.Page{})
			out.Body = usage.Of(&n, leases, reservations, s.rest.Now())
			return err
		})
		return out, err
	})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/subnets/{name}/snippets", ID: "get-subnet-snippets", Scope: rest.OfNobody, Tag: "subnets",
		Errors:  []int{http.StatusNotFound, http.StatusConflict},
		Summary: "Write the configuration with which another DHCP server sends machines to Slipway",
	}, s.snippets)
	s.addBeside()
}

// interfaces lists the server's interfaces with the subnets that they are in.
func (s *Server) interfaces(req *rest.Request) ([]wire.Interface, error) {
	if s.cfg.Interfaces == nil {
		return nil, nil
	}
	all := s.cfg.Interfaces()
	err := s.rest.Store.Read(req, func(tx inventory.Tx) error {
		subnets, err := tx.Subnets().List(inventory.Page{})
		for i := range all {
			for _, a := range all[i].Addresses {
				if j := slices.IndexFunc(subnets, func(n inventory.Subnet) bool { return n.CIDR.Contains(a.Addr()) }); j >= 0 {
					all[i].Subnet = subnets[j].Name
				}
			}
		}
		return err
	})
	return all, err
}

type snippetInput struct {
	rest.NameRef
	Server string `query:"server" doc:"Only for this one" enum:"dnsmasq,kea,dhcpd,mikrotik,windows"`
}

// snippets writes the configurations for a subnet. Machines behind a relay are sent to our first address.
func (s *Server) snippets(req *rest.Request, in *snippetInput) (*rest.Listed[pxe.Snippet], error) {
	n, err := rest.Read(req, s.rest.Store, func(tx inventory.Tx) (inventory.Subnet, error) { return tx.Subnets().Find(in.Name) })
	if err != nil {
		return nil, err
	}
	all, err := s.interfaces(req)
	if err != nil {
		return nil, err
	}
	var us netip.Addr
	for _, i := range all {
		for _, a := range i.Addresses {
			if i.IsServed && (!us.IsValid() || n.CIDR.Contains(a.Addr())) {
				us = a.Addr()
			}
		}
	}
	if !us.IsValid() {
		return nil, inventory.Errorf(inventory.Conflict, "none of the interfaces that machines are answered on has an address").
			WithHint("give one to the interface that is named with --interface")
	}
	out := pxe.Snippets(n, us, s.cfg.BootPort, in.Server)
	return rest.PageOf(out, len(out), func(s pxe.Snippet) string { return s.Server }), nil
}
