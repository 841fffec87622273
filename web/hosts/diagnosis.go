package hosts

import (
	"context"
	"net/http"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/boot"
	"slipway.dev/slipway/provision/watch"
	"slipway.dev/slipway/pxe/trace"
	"slipway.dev/slipway/web/rest"
)

type portInput struct {
	rest.HostRef
	MAC string `query:"mac" doc:"MAC of one of its ports; absent: the one with the newest packet" maxLength:"64"`
}

type strangerInput struct {
	MAC string `path:"mac" doc:"MAC of a machine that is not listed as a host" maxLength:"64"`
}

const packetsType = "application/vnd.tcpdump.pcap"

// addDiagnoses registers why machines do not boot, and what was on the wire.
func (s *Server) addDiagnoses() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/hosts/{host}/diagnosis", ID: "diagnose-host", Scope: rest.OfPools, Tag: "hosts",
		Summary: "Say why a host does not boot: ranked causes with what was seen, and its latest packets", Errors: []int{http.StatusNotFound},
	},
		func(req *rest.Request, in *portInput) (*rest.One[watch.Diagnosis], error) {
			id, mac, err := s.port(req, in)
			if err != nil {
				return nil, err
			}
			d, err := s.cfg.Engine.Diagnose(req, id, mac)
			return &rest.One[watch.Diagnosis]{Body: d}, err
		})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/hosts/{host}/packets", ID: "packets-of-host", Scope: rest.OfPools, Needs: inventory.Operator, Tag: "hosts", Plain: packetsType,
		Summary: "Download the latest packets of a host's boots as a capture file", Errors: []int{http.StatusNotFound},
		About: "The last packets of each port are kept in memory. File contents, configurations and keys are left out.",
	},
		func(req *rest.Request, in *portInput) (*rest.Text, error) {
			id, mac, err := s.port(req, in)
			if err != nil {
				return nil, err
			}
			return s.packets(req, id, mac)
		})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/strangers/{mac}/diagnosis", ID: "diagnose-stranger", Tag: "hosts",
		Summary: "Say why a machine that is not listed does not boot", Errors: []int{http.StatusNotFound},
	},
		func(req *rest.Request, in *strangerInput) (*rest.One[watch.Diagnosis], error) {
			mac, err := s.stranger(req, in.MAC)
			if err != nil {
				return nil, err
			}
			d, err := s.cfg.Engine.Diagnose(req, "", mac)
			return &rest.One[watch.Diagnosis]{Body: d}, err
		})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/strangers/{mac}/packets", ID: "packets-of-stranger", Needs: inventory.Operator, Tag: "hosts", Plain: packetsType,
		Summary: "Download the latest packets of a machine that is not listed", Errors: []int{http.StatusNotFound},
	},
		func(req *rest.Request, in *strangerInput) (*rest.Text, error) {
			mac, err := s.stranger(req, in.MAC)
			if err != nil {
				return nil, err
			}
			return s.packets(req, "", mac)
		})
}

// port finds the host, and the port of it that a request names.
func (s *Server) port(req *rest.Request, in *portInput) (inventory.HostID, inventory.MAC, error) {
	h, err := s.rest.ReadHost(req, in.Host)
	if err != nil || in.MAC == "" {
		return h.ID, "", err
	}
	mac, err := inventory.ParseMAC(in.MAC)
	if err != nil {
		return "", "", err
	}
	if !slices.ContainsFunc(h.NICs, func(n inventory.NIC) bool { return n.MAC == mac }) {
		return "", "", inventory.Errorf(inventory.NotFound, "host %s has no port %s", h.Name, mac).WithHint("slipway host show %s lists its ports", h.Name)
	}
	return h.ID, mac, nil
}

// stranger reads the MAC of a machine that is no host's.
func (s *Server) stranger(req *rest.Request, text string) (inventory.MAC, error) {
	mac, err := inventory.ParseMAC(text)
	if err != nil {
		return "", err
	}
	if h, err := s.rest.ReadHost(req, string(mac)); err == nil {
		return "", inventory.Errorf(inventory.NotFound, "%s is no stranger: it is a port of host %s", mac, h.Name).WithHint("slipway host explain %s", h.Name)
	} else if !inventory.IsKind(err, inventory.NotFound) {
		return "", err
	}
	return mac, nil
}

func (s *Server) packets(ctx context.Context, id inventory.HostID, mac inventory.MAC) (*rest.Text, error) {
	frames, err := s.cfg.Engine.Record(ctx, id, mac)
	if err != nil {
		return nil, err
	}
	return &rest.Text{ContentType: packetsType, Body: trace.AppendPCAP(nil, frames)}, nil
}

// addExplanations registers what can be asked of the next boot of a host.
func (s *Server) addExplanations() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/hosts/{host}/explain", ID: "explain-host", Scope: rest.OfPools, Tag: "hosts",
		Summary: "Say what a host would boot now, and why", Errors: []int{http.StatusNotFound},
	},
		func(req *rest.Request, in *rest.HostRef) (*rest.One[boot.Explanation], error) {
			e, err := s.explain(req, in.Host)
			return &rest.One[boot.Explanation]{Body: e}, err
		})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/hosts/{host}/script", ID: "script-of-host", Scope: rest.OfPools, Tag: "hosts", Plain: "text/plain",
		Summary: "Show the boot script that a host would get now", Errors: []int{http.StatusNotFound},
	},
		func(req *rest.Request, in *rest.HostRef) (*rest.Text, error) {
			e, err := s.explain(req, in.Host)
			if err == nil {
				e.Script, err = s.cfg.Conceal.Text(req, e.Script, e.Refs...)
			}
			return &rest.Text{ContentType: "text/plain; charset=utf-8", Body: []byte(e.Script)}, err
		})
}

func (s *Server) explain(req *rest.Request, ref string) (boot.Explanation, error) {
	h, err := s.rest.ReadHost(req, ref)
	if err != nil {
		return boot.Explanation{}, err
	}
	return s.cfg.Engine.Explain(req, h.ID, s.cfg.Addresses.Boot)
}
