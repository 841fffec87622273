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

// ExplainerConfig is what an Explainer needs.
type ExplainerConfig struct {
	Frame  *rest.Frame
	Engine Diagnoser
	// Conceal takes the names that the caller may not know out of a script, which names refs.
	Conceal func(req *rest.Request, text string, refs ...inventory.Ref) (string, error)
	// BootBase is the address of the boot listener in script previews, such as http://10.0.0.1.
	BootBase string
}

// Explainer answers what hosts would boot, and why they do not.
type Explainer struct {
	cfg  ExplainerConfig
	rest *rest.Frame
}

// NewExplainer returns an Explainer; Register makes its operations known.
func NewExplainer(cfg ExplainerConfig) *Explainer { return &Explainer{cfg: cfg, rest: cfg.Frame} }

// Register adds the operations to the frame.
func (x *Explainer) Register() {
	x.addDiagnoses()
	x.addExplanations()
}

// Diagnoser is what the engine knows of the boots of hosts.
type Diagnoser interface {
	Explain(ctx context.Context, id inventory.HostID, base string) (boot.Explanation, error)
	// Diagnose says why a machine does not boot; id is "" for one that is not listed, mac "" for the port heard last.
	Diagnose(ctx context.Context, id inventory.HostID, mac inventory.MAC) (watch.Diagnosis, error)
	// Record returns what was on the wire.
	Record(ctx context.Context, id inventory.HostID, mac inventory.MAC) ([]trace.Frame, error)
}

// addDiagnoses registers why machines do not boot, and what was on the wire.
func (x *Explainer) addDiagnoses() {
	rest.Register(x.rest, rest.Operation{
		Method: http.MethodGet, Path: "/hosts/{host}/diagnosis", ID: "diagnose-host", Scope: rest.OfPools, Tag: "hosts",
		Summary: "Say why a host does not boot: ranked causes with what was seen, and its latest packets", Errors: []int{http.StatusNotFound},
	},
		func(req *rest.Request, in *portInput) (*rest.One[watch.Diagnosis], error) {
			id, mac, err := x.port(req, in)
			if err != nil {
				return nil, err
			}
			d, err := x.cfg.Engine.Diagnose(req, id, mac)
			return &rest.One[watch.Diagnosis]{Body: d}, err
		})
	rest.Register(x.rest, rest.Operation{
		Method: http.MethodGet, Path: "/hosts/{host}/packets", ID: "packets-of-host", Scope: rest.OfPools, Needs: inventory.Operator, Tag: "hosts", Plain: packetsType,
		Summary: "Download the latest packets of a host's boots as a capture file", Errors: []int{http.StatusNotFound},
		About: "The last packets of each port are kept in memory. File contents, configurations and keys are left out.",
	},
		func(req *rest.Request, in *portInput) (*rest.Text, error) {
			id, mac, err := x.port(req, in)
			if err != nil {
				return nil, err
			}
			return x.packets(req, id, mac)
		})
	rest.Register(x.rest, rest.Operation{
		Method: http.MethodGet, Path: "/strangers/{mac}/diagnosis", ID: "diagnose-stranger", Tag: "hosts",
		Summary: "Say why a machine that is not listed does not boot", Errors: []int{http.StatusNotFound},
	},
		func(req *rest.Request, in *strangerInput) (*rest.One[watch.Diagnosis], error) {
			mac, err := x.stranger(req, in.MAC)
			if err != nil {
				return nil, err
			}
			d, err := x.cfg.Engine.Diagnose(req, "", mac)
			return &rest.One[watch.Diagnosis]{Body: d}, err
		})
	rest.Register(x.rest, rest.Operation{
		Method: http.MethodGet, Path: "/strangers/{mac}/packets", ID: "packets-of-stranger", Needs: inventory.Operator, Tag: "hosts", Plain: packetsType,
		Summary: "Download the latest packets of a machine that is not listed", Errors: []int{http.StatusNotFound},
	},
		func(req *rest.Request, in *strangerInput) (*rest.Text, error) {
			mac, err := x.stranger(req, in.MAC)
			if err != nil {
				return nil, err
			}
			return x.packets(req, "", mac)
		})
}

// port finds the host, and the port of it that a request names.
func (x *Explainer) port(req *rest.Request, in *portInput) (inventory.HostID, inventory.MAC, error) {
	h, err := x.rest.ReadHost(req, in.Host)
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
func (x *Explainer) stranger(req *rest.Request, text string) (inventory.MAC, error) {
	mac, err := inventory.ParseMAC(text)
	if err != nil {
		return "", err
	}
	if h, err := x.rest.ReadHost(req, string(mac)); err == nil {
		return "", inventory.Errorf(inventory.NotFound, "%s is no stranger: it is a port of host %s", mac, h.Name).WithHint("slipway host explain %s", h.Name)
	} else if !inventory.IsKind(err, inventory.NotFound) {
		return "", err
	}
	return mac, nil
}

func (x *Explainer) packets(ctx context.Context, id inventory.HostID, mac inventory.MAC) (*rest.Text, error) {
	frames, err := x.cfg.Engine.Record(ctx, id, mac)
	if err != nil {
		return nil, err
	}
	return &rest.Text{ContentType: packetsType, Body: trace.AppendPCAP(nil, frames)}, nil
}

// addExplanations registers what can be asked of the next boot of a host.
func (x *Explainer) addExplanations() {
	rest.Register(x.rest, rest.Operation{
		Method: http.MethodGet, Path: "/hosts/{host}/explain", ID: "explain-host", Scope: rest.OfPools, Tag: "hosts",
		Summary: "Say what a host would boot now, and why", Errors: []int{http.StatusNotFound},
	},
		func(req *rest.Request, in *rest.HostRef) (*rest.One[boot.Explanation], error) {
			e, err := x.explain(req, in.Host)
			return &rest.One[boot.Explanation]{Body: e}, err
		})
	rest.Register(x.rest, rest.Operation{
		Method: http.MethodGet, Path: "/hosts/{host}/script", ID: "script-of-host", Scope: rest.OfPools, Tag: "hosts", Plain: "text/plain",
		Summary: "Show the boot script that a host would get now", Errors: []int{http.StatusNotFound},
	},
		func(req *rest.Request, in *rest.HostRef) (*rest.Text, error) {
			e, err := x.explain(req, in.Host)
			if err == nil {
				e.Script, err = x.cfg.Conceal(req, e.Script, e.Refs...)
			}
			return &rest.Text{ContentType: "text/plain; charset=utf-8", Body: []byte(e.Script)}, err
		})
}

func (x *Explainer) explain(req *rest.Request, ref string) (boot.Explanation, error) {
	h, err := x.rest.ReadHost(req, ref)
	if err != nil {
		return boot.Explanation{}, err
	}
	return x.cfg.Engine.Explain(req, h.ID, x.cfg.BootBase)
}
