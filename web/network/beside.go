package network

import (
	"net/http"
	"net/netip"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/web/rest"
)

// addBeside registers the questions about networks that have other DHCP servers.
func (s *Server) addBeside() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/subnets/{name}/foreign-servers", ID: "list-foreign-servers", Scope: rest.OfNobody, Tag: "subnets",
		Errors: []int{http.StatusNotFound}, Summary: "List the other DHCP servers that were noticed on a subnet in the last hour",
		About: "A server that answered is there. One that only a machine named need not be.",
	}, s.listForeign)
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: "/subnets/{name}/probe", ID: "probe-subnet", Needs: inventory.Operator, Scope: rest.OfNobody, Tag: "subnets",
		Errors: []int{http.StatusNotFound, http.StatusConflict}, Summary: "Ask the DHCP servers of a subnet what they tell machines that boot from the network",
		About: "It asks as BIOS, UEFI, UEFI HTTP Boot, ARM and iPXE would, and takes no address. The answer shows where each kind is led. It takes three seconds.",
	}, s.probe)
}

func (s *Server) findSubnet(req *rest.Request, name string) (n inventory.Subnet, err error) {
	return rest.Read(req, s.rest.Store, func(tx inventory.Tx) (inventory.Subnet, error) { return tx.Subnets().Find(name) })
}

func (s *Server) listForeign(req *rest.Request, in *rest.NameInput) (*rest.Listed[pxe.ForeignServer], error) {
	n, err := s.findSubnet(req, in.Name)
	if err != nil {
		return nil, err
	}
	var all []pxe.ForeignServer
	if s.cfg.ForeignServers != nil {
		all = s.cfg.ForeignServers(n.Name)
	}
	return rest.PageOf(all, len(all), func(f pxe.ForeignServer) string { return f.Name() }), nil
}

type probeInput struct {
	rest.NameRef
	Server string `query:"server" maxLength:"64" doc:"Ask this DHCP server alone, as a relay agent does; for networks that are reached by relay only" example:"10.9.0.2"`
}

func (s *Server) probe(req *rest.Request, in *probeInput) (*rest.Listed[pxe.ProbeLine], error) {
	var server netip.Addr
	if in.Server != "" {
		var err error
		if server, err = netip.ParseAddr(in.Server); err != nil {
			return nil, inventory.Errorf(inventory.Invalid, "%q is not an address", inventory.Clean(in.Server, 64)).At("server")
		}
	}
	n, err := s.findSubnet(req, in.Name)
	if err != nil {
		return nil, err
	}
	if server.IsValid() && server.Is6() != n.Is6() {
		return nil, inventory.Errorf(inventory.Invalid, "%s is not of the family of %s", server, n.CIDR).At("server")
	}
	if s.cfg.Probe == nil {
		return nil, inventory.Errorf(inventory.Conflict, "this server answers no DHCP")
	}
	lines, err := s.cfg.Probe(req, n, server)
	return rest.PageOf(lines, len(lines), func(l pxe.ProbeLine) string { return l.Kind }), err
}
