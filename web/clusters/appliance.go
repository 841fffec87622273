package clusters

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/web/events"
	"slipway.dev/slipway/web/power"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// Appliance is what controllers of custom resources ask. Controllers in this process use the same one, so that controllers
// elsewhere get the same answers.
type Appliance = contract.Appliance

// ClusterView is the appliance as the holder of a cluster's token may use it, package kubernetes/backend.
type ClusterView interface {
	Appliance
	// Hear returns what the cluster may hear of an event, and whether it hears of it at all.
	Hear(ctx context.Context, e inventory.Event) (inventory.Event, bool)
}

// ApplianceSecret is a secret that is kept for the object of an attached cluster.
type ApplianceSecret struct {
	Owner string `json:"owner" maxLength:"512"`
	Value []byte `json:"value" writeOnly:"true" doc:"In base64. It never comes out again, but to the machines that are given it"`
}

// HostFlags are the flags to set on a host. A missing one stays.
type HostFlags struct {
	Accepted      *bool `json:"accepted,omitempty" doc:"True accepts it; it cannot be taken back"`
	InMaintenance *bool `json:"inMaintenance,omitempty"`
	IsProtected   *bool `json:"isProtected,omitempty"`
}

// BootstrapData are what a bootstrap provider wrote for one machine.
type BootstrapData struct {
	Value  []byte `json:"value" writeOnly:"true" doc:"In base64. It is kept in memory only, until the machine has fetched its configuration"`
	Format string `json:"format,omitempty" doc:"cloud-config when empty" maxLength:"63"`
	Check  bool   `json:"check,omitempty" doc:"Keep nothing, and only say whether the machine could boot with it"`
}

// BootstrapVerdict says whether a machine can boot with its bootstrap data, and why not.
type BootstrapVerdict struct {
	IsUsable bool `json:"isUsable"`
	contract.BootstrapError
}

// InitHolder is the machine whose turn it is to be the first control plane of a target.
type InitHolder struct {
	Machine string `json:"machine" doc:"Empty for none"`
}

// Parameters of these operations.
type (
	ownersQuery struct {
		rest.Page
		Owner string `query:"owner" doc:"The owner, or how it begins" maxLength:"512"`
	}
	ownedRef struct {
		rest.NameRef
		Owner string `query:"owner" doc:"Whose it is" maxLength:"512" required:"true"`
	}
	bodied[T any] struct {
		rest.NameRef
		Body T
	}
	offer struct {
		Cluster string `json:"cluster" doc:"UID of the cluster whose objects may take the machine over; empty for none" maxLength:"64"`
	}
	handOver struct {
		Owner string `json:"owner" doc:"Who wants the machine from now on" maxLength:"512"`
	}
)

// applianceBody is the most that a machine with its configuration, or bootstrap data, may be.
const applianceBody = 4 << 20

// ControllersConfig is what Controllers need.
type ControllersConfig struct {
	Frame     *rest.Frame
	Events    *events.Server
	Appliance Appliance // what controllers in a cluster are told; nil: there are none
	// View returns it as the holder of a token may use it that is bound to a cluster, by its UID, and to namespaces of it.
	View func(uid string, namespaces []string) ClusterView
}

// Controllers answers controllers that run elsewhere.
type Controllers struct {
	cfg   ControllersConfig
	rest  *rest.Frame
	views clusterViews
}

// NewControllers returns Controllers; Register makes their operations known.
func NewControllers(cfg ControllersConfig) *Controllers {
	return &Controllers{cfg: cfg, rest: cfg.Frame}
}

// Register adds the operations to the frame.
func (s *Controllers) Register() {
	question(s, http.MethodGet, "", "get-appliance", "Show what provider ids begin with, and what the token is bound to",
		func(req *rest.Request, a Appliance, _ *struct{}) (info wire.ApplianceInfo, err error) {
			c := req.Caller
			info = wire.ApplianceInfo{Site: a.Site(), Cluster: c.Cluster, Namespaces: c.Namespaces}
			err = s.rest.Store.Read(req, func(tx inventory.Tx) (err error) {
				info.LastEvent, err = tx.LastEventID()
				return err
			})
			return info, err
		})
	s.addApplianceMachines()
	s.addApplianceVerbs()
	s.addApplianceHosts()
	s.addApplianceNouns()
	s.addApplianceEvents()
	question(s, http.MethodPut, "/pools/{name}", "put-owned-pool", "Keep a pool for its owner", func(req *rest.Request, a Appliance, in *bodied[wire.Pool]) (done, error) {
		if err := rest.SameName("pool", &in.Body.Name, in.Name); err != nil {
			return done{}, err
		}
		return done{}, a.SavePool(req, in.Body.Pool)
	})
	question(s, http.MethodPut, "/targets/{name}", "put-owned-target", "Keep a join target for its owner", func(req *rest.Request, a Appliance, in *bodied[inventory.JoinTarget]) (done, error) {
		if err := rest.SameName("target", &in.Body.Name, in.Name); err != nil {
			return done{}, err
		}
		return done{}, a.SaveTarget(req, in.Body)
	})
	question(s, http.MethodPut, "/secrets/{name}", "put-owned-secret", "Keep a secret for its owner", func(req *rest.Request, a Appliance, in *bodied[ApplianceSecret]) (done, error) {
		return done{}, a.SaveSecret(req, in.Name, in.Body.Owner, in.Body.Value)
	})
	for noun, remove := range map[string]func(Appliance, context.Context, string, string) error{
		"pool": Appliance.DeletePool, "target": Appliance.DeleteTarget, "secret": Appliance.DeleteSecret,
	} {
		question(s, http.MethodDelete, "/"+noun+"s/{name}", "delete-owned-"+noun, "Forget a "+noun+" of an owner; what is not there is no error",
			func(req *rest.Request, a Appliance, in *ownedRef) (done, error) {
				return done{}, remove(a, req, in.Name, in.Owner)
			})
	}
	question(s, http.MethodGet, "/targets/{name}/holder", "get-init-holder", "Show which machine is to be the first control plane of a target",
		func(req *rest.Request, a Appliance, in *rest.NameInput) (InitHolder, error) {
			m, err := a.InitHolder(req, in.Name)
			return InitHolder{m}, err
		})
}

func (s *Controllers) addApplianceMachines() {
	question(s, http.MethodGet, "/machines", "list-owned-machines", "List the machines of owners, with all that tells how far they are",
		func(req *rest.Request, a Appliance, in *ownersQuery) (rest.List[contract.View], error) {
			all, err := a.ListMachines(req, in.Owner)
			if err != nil {
				return rest.List[contract.View]{}, err
			}
			return rest.Cut(all, in.Page, func(v contract.View) string { return v.Machine.Name }).Body, nil
		})
	question(s, http.MethodGet, "/owners/{name}", "find-owned-machine", "Show the machine of an owner", func(req *rest.Request, a Appliance, in *rest.NameInput) (contract.View, error) {
		return a.FindMachine(req, in.Name)
	})
	question(s, http.MethodGet, "/claims/{name}", "get-claim", "Show the machine that holds a claim", func(req *rest.Request, a Appliance, in *rest.NameInput) (contract.View, error) {
		return a.FindClaim(req, inventory.ClaimID(in.Name))
	})
	question(s, http.MethodGet, "/claims/{name}/takeable", "get-takeable", "Show the machine that holds a claim, when an owner may take it over",
		func(req *rest.Request, a Appliance, in *ownedRef) (contract.View, error) {
			return a.Takeable(req, inventory.ClaimID(in.Name), in.Owner)
		})
	question(s, http.MethodPut, "/owners/{name}/offer", "offer-machine", "Say which cluster may take over the machine of an owner",
		func(req *rest.Request, a Appliance, in *bodied[offer]) (done, error) {
			return done{}, a.Offer(req, in.Name, in.Body.Cluster)
		})
	question(s, http.MethodPost, "/claims/{name}/handover", "hand-over-claim", "Give the machine that holds a claim to another owner; nothing happens on its host",
		func(req *rest.Request, a Appliance, in *bodied[handOver]) (inventory.Machine, error) {
			return a.HandOver(req, inventory.ClaimID(in.Name), in.Body.Owner)
		})
	question(s, http.MethodPut, "/machines/{name}", "put-owned-machine", "Change what is wanted of a machine; hooks that are left out are acknowledged",
		func(req *rest.Request, a Appliance, in *bodied[inventory.Machine]) (inventory.Machine, error) {
			if err := rest.SameName("machine", &in.Body.Name, in.Name); err != nil {
				return inventory.Machine{}, err
			}
			return a.UpdateMachine(req, in.Body)
		})
	question(s, http.MethodPost, "/machines/{name}/bootstrap", "give-bootstrap", "Hand over the bootstrap data that a machine waits for",
		func(req *rest.Request, a Appliance, in *bodied[BootstrapData]) (BootstrapVerdict, error) {
			err := a.GiveBootstrap(req, in.Name, contract.Bootstrap{Value: in.Body.Value, Format: in.Body.Format}, in.Body.Check)
			if unusable, ok := errors.AsType[*contract.BootstrapError](err); ok {
				return BootstrapVerdict{BootstrapError: *unusable}, nil
			}
			return BootstrapVerdict{IsUsable: true}, err
		})
}

func (s *Controllers) addApplianceHosts() {
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
	question(s, http.MethodPut, "/hosts/{host}/bmc", "put-owned-bmc", "Say how a host is powered; without a password the one stored stays", func(req *rest.Request, a Appliance, in *struct {
		rest.HostRef
		Body power.SetBMC
	},
	) (done, error) {
		return done{}, a.SaveBMC(req, inventory.BMC{
			HostID: inventory.HostID(in.Host), Driver: in.Body.Driver, Address: in.Body.Address, Username: in.Body.Username, System: in.Body.System,
			InsecureSkipVerify: in.Body.InsecureSkipVerify, Fingerprint: in.Body.Fingerprint, MAC: in.Body.MAC, Options: in.Body.Options,
		}, in.Body.Password)
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

// done is an answer that says no more than that.
type done struct{}

// question registers one question to the appliance.
func question[I, O any](s *Controllers, method, path, id, summary string, do func(req *rest.Request, a Appliance, in *I) (O, error)) {
	o := rest.Operation{
		Method: method, Path: "/appliance" + path, ID: id, Needs: inventory.Admin, ForClusters: true, Tag: "appliance",
		Summary: summary, Body: applianceBody,
		About: "For controllers of custom resources that run in a cluster, with a token of that cluster; people use the nouns.",
	}
	if method != http.MethodGet {
		o.Errors = append(o.Errors, http.StatusConflict)
	}
	if strings.Contains(path, "{") {
		o.Errors = append(o.Errors, http.StatusNotFound)
	}
	find := func(req *rest.Request, in *I) (out O, err error) {
		a, err := s.applianceOf(req)
		if err != nil {
			return out, err
		}
		return do(req, a, in)
	}
	if _, isDone := any(*new(O)).(done); isDone {
		o.Status = http.StatusNoContent
		rest.Register(s.rest, o, func(req *rest.Request, in *I) (*struct{}, error) {
			_, err := find(req, in)
			return nil, err
		})
		return
	}
	rest.Register(s.rest, o, func(req *rest.Request, in *I) (*struct{ Body O }, error) {
		out, err := find(req, in)
		return &struct{ Body O }{out}, err
	})
}
