package hosts

import (
	"context"
	"net/http"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/web/power"
	"slipway.dev/slipway/web/rest"
)

type installInput struct {
	rest.HostRef
	Body struct {
		Profile string `json:"profile,omitempty" doc:"Profile to pin; empty keeps what decides now" maxLength:"63"`
	}
}

type inspectInput struct {
	rest.HostRef
	Body operation.InspectRequest
}

type cleanInput struct {
	rest.HostRef
	Body struct {
		Mode inventory.CleanMode `json:"mode,omitempty" doc:"quick when absent" enum:"none,quick,full,secure,"`
	}
}

// addHostVerbs registers what is done to hosts.
func (s *Server) addHostVerbs() {
	life := s.cfg.Engine
	plain := func(verb, summary string, do func(Engine, context.Context, inventory.HostID, ledger.Asker) (inventory.Host, error)) {
		addVerb(s, verb, summary, func(ctx context.Context, who ledger.Asker, id inventory.HostID, _ *rest.HostRef) (inventory.Host, error) {
			return do(life, ctx, id, who)
		})
	}
	onOff := func(verb, summary string, do func(Engine, context.Context, inventory.HostID, bool, ledger.Asker) (inventory.Host, error)) {
		addVerb(s, verb, summary, func(ctx context.Context, who ledger.Asker, id inventory.HostID, in *power.OnInput) (inventory.Host, error) {
			return do(life, ctx, id, in.Body.On, who)
		})
	}
	plain("accept", "Accept a discovered host", Engine.Accept)
	plain("release", "Take a host back, or clear its failure", Engine.Release)
	addVerb(s, "install", "Arm a host to be installed at its next boot; this overwrites its disks", func(ctx context.Context, who ledger.Asker, id inventory.HostID, in *installInput) (inventory.Host, error) {
		return life.Install(ctx, id, in.Body.Profile, who)
	})
	onOff("maintain", "Put a host into maintenance, or take it out", Engine.Maintain)
	onOff("cordon", "Keep machines from claiming a host, or end that; all else goes on", Engine.Cordon)
	onOff("retain", "Leave the disks of a host as they are when its machine goes, or end that", Engine.Retain)
	onOff("protect", "Keep everything destructive away from a host, or end that", Engine.Protect)
	onOff("adopt", "Say that a server runs already, so that nothing is ever started on it; or end that", Engine.Adopt)
	plain("confirm", "Say that the machine that boots as a host is that host, or that its next boot is", Engine.Confirm)
	addVerb(s, "inspect", "Look at a host's hardware, and burn it in where asked for", func(ctx context.Context, who ledger.Asker, id inventory.HostID, in *inspectInput) (inventory.Host, error) {
		return life.Inspect(ctx, id, in.Body, who)
	})
	addVerb(s, "clean", "Wipe the disks of a host that no machine has claimed", func(ctx context.Context, who ledger.Asker, id inventory.HostID, in *cleanInput) (inventory.Host, error) {
		return life.CleanHost(ctx, id, in.Body.Mode, who)
	})
}

// named is an input that names a host.
type named interface{ NamedHost() string }

// addVerb registers a verb on one host. Only the engine changes what such verbs change.
func addVerb[I any, P interface {
	*I
	named
}](s *Server, verb, summary string, do func(context.Context, ledger.Asker, inventory.HostID, P) (inventory.Host, error)) {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: "/hosts/{host}/" + verb, ID: verb + "-host", Scope: rest.OfPools, Tag: "hosts", Summary: summary,
		Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusForbidden},
	},
		func(req *rest.Request, in *I) (*rest.One[inventory.Host], error) {
			h, err := s.rest.ReadHost(req, P(in).NamedHost())
			if err != nil {
				return nil, err
			}
			h, err = do(req, s.rest.Asker(req), h.ID, in)
			return &rest.One[inventory.Host]{ETag: rest.ETag(h.Version), Body: h}, err
		})
}

// isSaid reports whether an error is about the host that was asked for, and not about us.
func isSaid(err error) bool {
	return inventory.IsKind(err, inventory.Conflict) || inventory.IsKind(err, inventory.NotFound) || inventory.IsKind(err, inventory.Forbidden)
}

// What these inputs ask for, in words.

func (in *installInput) Asked() string {
	if in.Body.Profile == "" {
		return ""
	}
	return "profile " + in.Body.Profile
}

func (in *cleanInput) Asked() string {
	if in.Body.Mode == "" {
		return "quick"
	}
	return string(in.Body.Mode)
}
