package clusters

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/web/power"
	"slipway.dev/slipway/web/rest"
)

// HostFlags are the flags to set on a host. A missing one stays.
type HostFlags struct {
	Accepted      *bool `json:"accepted,omitempty" doc:"True accepts it; it cannot be taken back"`
	InMaintenance *bool `json:"inMaintenance,omitempty"`
	IsProtected   *bool `json:"isProtected,omitempty"`
}

type ownedPower struct {
	rest.HostRef
	Body struct {
		Action bmc.Action `json:"action" enum:"on,off,cycle,reset"`
	}
}

// addApplianceHosts registers the questions about hosts, and what is done with them.
func (s *Server) addApplianceHosts() {
	question(s, http.MethodGet, "/hosts", "list-host-views", "List hosts with what they are made of, in order of their names",
		func(req *rest.Request, a Appliance, in *rest.Page) (rest.List[contract.HostView], error) {
			out := rest.List[contract.HostView]{Items: []contract.HostView{}}
			err := a.EachHost(req, func(v contract.HostView) error {
				switch {
				case v.Host.Name <= in.After:
				case len(out.Items) < in.Limit:
					out.Items = append(out.Items, withoutSecrets(v))
				default:
					out.Next = out.Items[len(out.Items)-1].Host.Name
					return errEnough
				}
				return nil
			})
			if errors.Is(err, errEnough) {
				err = nil
			}
			return out, err
		})
	question(s, http.MethodGet, "/hosts/{host}", "get-host-view", "Show a host with what it is made of", func(req *rest.Request, a Appliance, in *rest.HostRef) (contract.HostView, error) {
		v, err := a.FindHost(req, inventory.HostID(in.Host))
		return withoutSecrets(v), err
	})
	question(s, http.MethodPost, "/hosts", "declare-host", "Add a host that has not been seen yet, or show the one that has one of its MACs",
		func(req *rest.Request, a Appliance, in *struct{ Body inventory.Host }) (inventory.Host, error) {
			return a.DeclareHost(req, in.Body)
		})
	question(s, http.MethodPut, "/hosts/{host}", "put-host-view", "Change what people say of a host", func(req *rest.Request, a Appliance, in *struct {
		rest.HostRef
		Body inventory.Host
	},
	) (inventory.Host, error) {
		if strings.ToLower(in.Host) != string(in.Body.ID) {
			return inventory.Host{}, inventory.Errorf(inventory.Invalid, "the body is about host %s and the address about %s", in.Body.ID, inventory.Clean(in.Host, 80))
		}
		return a.UpdateHost(req, in.Body)
	})
	question(s, http.MethodPut, "/hosts/{host}/flags", "put-host-flags", "Accept a host, and say whether it is in maintenance or protected", func(req *rest.Request, a Appliance, in *struct {
		rest.HostRef
		Body HostFlags
	},
	) (done, error) {
		return done{}, setFlags(req, a, inventory.HostID(in.Host), in.Body)
	})
	question(s, http.MethodPut, "/hosts/{host}/bmc", "put-owned-bmc", "Set the controller of a host; without a password the stored one stays", func(req *rest.Request, a Appliance, in *struct {
		rest.HostRef
		Body power.SetBMC
	},
	) (done, error) {
		return done{}, a.SaveBMC(req, inventory.BMC{
			HostID: inventory.HostID(in.Host), Driver: in.Body.Driver, Address: in.Body.Address, Username: in.Body.Username, System: in.Body.System,
			InsecureSkipVerify: in.Body.InsecureSkipVerify, Fingerprint: in.Body.Fingerprint, MAC: in.Body.MAC, Options: in.Body.Options,
		}, in.Body.Password)
	})
	question(s, http.MethodPost, "/hosts/{host}/power", "power-owned-host", "Change the power of a host",
		func(req *rest.Request, a Appliance, in *ownedPower) (done, error) {
			return done{}, a.Power(req, inventory.HostID(in.Host), in.Body.Action)
		})
}

// withoutSecrets hides those options of a controller that may hold secrets.
func withoutSecrets(v contract.HostView) contract.HostView {
	if v.BMC != nil {
		b := power.Shown(v.Host.Name, *v.BMC).BMC
		v.BMC = &b
	}
	return v
}

// setFlags makes of a host what is to be so; what is so already is left alone.
func setFlags(ctx context.Context, a Appliance, id inventory.HostID, f HostFlags) error {
	if f.InMaintenance != nil {
		if err := a.Maintain(ctx, id, *f.InMaintenance); err != nil {
			return err
		}
	}
	if f.IsProtected != nil {
		if err := a.Protect(ctx, id, *f.IsProtected); err != nil {
			return err
		}
	}
	if f.Accepted != nil && *f.Accepted {
		return a.Accept(ctx, id)
	}
	return nil
}

// errEnough ends going through hosts.
var errEnough = inventory.Errorf(inventory.Internal, "the page is full")
