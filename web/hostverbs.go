package web

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"golang.org/x/sync/errgroup"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision"
)

// onInput switches a flag of a host.
type onInput struct {
	HostRef
	Body struct {
		On bool `json:"on"`
	}
}

type installInput struct {
	HostRef
	Body struct {
		Profile string `json:"profile,omitempty" doc:"Profile to pin; empty keeps what decides now" maxLength:"63"`
	}
}

type inspectInput struct {
	HostRef
	Body provision.InspectRequest
}

type cleanInput struct {
	HostRef
	Body struct {
		Mode inventory.CleanMode `json:"mode,omitempty" doc:"quick when absent" enum:"none,quick,full,secure,"`
	}
}

// addHostVerbs registers what is done to hosts, and what can be asked of their next boot.
func (s *Server) addHostVerbs() {
	register(s, operation{
		method: http.MethodPost, path: "/hosts/accept", id: "accept-hosts", scope: ofPools, tag: "hosts", summary: "Accept discovered hosts in bulk",
		about:  "Those named, all, or those that a selector matches. A host that cannot be accepted is skipped, with the reason.",
		errors: []int{http.StatusNotFound}, isLong: true,
	}, s.acceptMany)
	life := s.cfg.Lifecycle
	addVerb(s, "accept", "Accept a discovered host", func(ctx context.Context, id inventory.HostID, _ *HostRef) (inventory.Host, error) {
		return life.Accept(ctx, id, by(ctx))
	})
	addVerb(s, "release", "Take a host back, or clear its failure", func(ctx context.Context, id inventory.HostID, _ *HostRef) (inventory.Host, error) {
		return life.Release(ctx, id, by(ctx))
	})
	addVerb(s, "install", "Arm a host to be installed at its next boot; this overwrites its disks", func(ctx context.Context, id inventory.HostID, in *installInput) (inventory.Host, error) {
		return life.Install(ctx, id, in.Body.Profile, by(ctx))
	})
	addVerb(s, "maintain", "Put a host into maintenance, or take it out", func(ctx context.Context, id inventory.HostID, in *onInput) (inventory.Host, error) {
		return life.Maintain(ctx, id, in.Body.On, by(ctx))
	})
	addVerb(s, "cordon", "Keep machines from claiming a host, or end that; all else goes on", func(ctx context.Context, id inventory.HostID, in *onInput) (inventory.Host, error) {
		return life.Cordon(ctx, id, in.Body.On, by(ctx))
	})
	addVerb(s, "retain", "Leave the disks of a host as they are when its machine goes, or end that", func(ctx context.Context, id inventory.HostID, in *onInput) (inventory.Host, error) {
		return life.Retain(ctx, id, in.Body.On, by(ctx))
	})
	addVerb(s, "protect", "Keep everything destructive away from a host, or end that", func(ctx context.Context, id inventory.HostID, in *onInput) (inventory.Host, error) {
		return life.Protect(ctx, id, in.Body.On, by(ctx))
	})
	addVerb(s, "adopt", "Say that a server runs already, so that nothing is ever started on it; or end that", func(ctx context.Context, id inventory.HostID, in *onInput) (inventory.Host, error) {
		return life.Adopt(ctx, id, in.Body.On, by(ctx))
	})
	addVerb(s, "inspect", "Look at a host's hardware, and burn it in where asked for", func(ctx context.Context, id inventory.HostID, in *inspectInput) (inventory.Host, error) {
		return life.Inspect(ctx, id, in.Body, by(ctx))
	})
	addVerb(s, "clean", "Wipe the disks of a host that no machine has claimed", func(ctx context.Context, id inventory.HostID, in *cleanInput) (inventory.Host, error) {
		return life.CleanHost(ctx, id, in.Body.Mode, by(ctx))
	})
	s.addPower()
	register(s, operation{
		method: http.MethodGet, path: "/hosts/{host}/explain", id: "explain-host", scope: ofPools, tag: "hosts",
		summary: "Say what a host would boot now, and why", errors: []int{http.StatusNotFound},
	},
		func(ctx context.Context, in *HostRef) (*one[provision.Explanation], error) {
			x, err := s.explain(ctx, in.Host)
			return &one[provision.Explanation]{Body: x}, err
		})
	register(s, operation{
		method: http.MethodGet, path: "/hosts/{host}/script", id: "script-of-host", scope: ofPools, tag: "hosts", plain: "text/plain",
		summary: "Show the boot script that a host would get now", errors: []int{http.StatusNotFound},
	},
		func(ctx context.Context, in *HostRef) (*textOutput, error) {
			x, err := s.explain(ctx, in.Host)
			return &textOutput{ContentType: "text/plain; charset=utf-8", Body: []byte(x.Script)}, err
		})
}

// textOutput is a body that is not JSON.
type textOutput struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

func (s *Server) explain(ctx context.Context, ref string) (provision.Explanation, error) {
	h, err := s.readHost(ctx, ref)
	if err != nil {
		return provision.Explanation{}, err
	}
	return s.cfg.Lifecycle.Explain(ctx, h.ID, s.cfg.BootBase)
}

// named is an input that names a host.
type named interface{ hostRef() string }

func (in *HostRef) hostRef() string { return in.Host }

// addVerb registers a verb on one host. Only the engine changes what such verbs change.
func addVerb[I any, P interface {
	*I
	named
}](s *Server, verb, summary string, do func(context.Context, inventory.HostID, P) (inventory.Host, error)) {
	register(s, operation{
		method: http.MethodPost, path: "/hosts/{host}/" + verb, id: verb + "-host", scope: ofPools, tag: "hosts", summary: summary,
		errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusForbidden},
	},
		func(ctx context.Context, in *I) (*one[inventory.Host], error) {
			h, err := s.readHost(ctx, P(in).hostRef())
			if err != nil {
				return nil, err
			}
			h, err = do(ctx, h.ID, in)
			return &one[inventory.Host]{ETag: etag(h.Version), Body: h}, err
		})
}

// AcceptRequest says which discovered hosts to accept.
type AcceptRequest struct {
	Hosts    []string `json:"hosts,omitempty" doc:"Names, ids or MACs" maxItems:"10000"`
	All      bool     `json:"all,omitempty" doc:"All discovered hosts"`
	Selector string   `json:"selector,omitempty" doc:"Those that it matches" maxLength:"1024"`
}

// AcceptResult says what became of each host.
type AcceptResult struct {
	IsDryRun bool      `json:"isDryRun"`
	Accepted []string  `json:"accepted" doc:"Names of the hosts accepted, or with dryRun to be accepted"`
	Skipped  []Skipped `json:"skipped,omitempty"`
}

// Skipped is a host that was left as it is.
type Skipped struct {
	Host   string `json:"host"`
	Reason string `json:"reason"`
	Hint   string `json:"hint,omitempty"`
}

type acceptInput struct {
	DryRun bool `query:"dryRun" doc:"Only say which hosts it would accept"`
	Body   AcceptRequest
}

// acceptAtOnce is how many hosts are accepted side by side: their commits share the disk's time.
const acceptAtOnce = 32

// acceptMany accepts hosts one by one: one that has moved on meanwhile does not hold up the others.
func (s *Server) acceptMany(ctx context.Context, in *acceptInput) (*one[AcceptResult], error) {
	hosts, skipped, err := s.candidates(ctx, in.Body)
	if err != nil {
		return nil, err
	}
	out := AcceptResult{IsDryRun: in.DryRun, Accepted: []string{}, Skipped: skipped}
	why := make([]error, len(hosts))
	if !in.DryRun {
		var g errgroup.Group
		g.SetLimit(acceptAtOnce)
		var once sync.Once
		var broken error
		for i, h := range hosts {
			g.Go(func() error {
				if _, why[i] = s.cfg.Lifecycle.Accept(ctx, h.ID, by(ctx)); why[i] != nil && !isSaid(why[i]) {
					once.Do(func() { broken = why[i] })
				}
				return nil
			})
		}
		_ = g.Wait() // none returns an error
		if broken != nil {
			return nil, broken
		}
	}
	for i, h := range hosts {
		var e *inventory.Error
		if errors.As(why[i], &e) {
			out.Skipped = append(out.Skipped, Skipped{Host: h.Name, Reason: e.Msg, Hint: e.Hint})
			continue
		}
		out.Accepted = append(out.Accepted, h.Name)
	}
	return &one[AcceptResult]{Body: out}, nil
}

// isSaid reports whether an error is about the host that was asked for, and not about us.
func isSaid(err error) bool {
	return isKind(err, inventory.Conflict) || isKind(err, inventory.NotFound) || isKind(err, inventory.Forbidden)
}

// candidates returns the hosts that a request is about and that can be accepted.
func (s *Server) candidates(ctx context.Context, r AcceptRequest) (hosts []inventory.Host, skipped []Skipped, err error) {
	sel, err := inventory.ParseSelector(r.Selector)
	if err != nil {
		return nil, nil, err
	}
	n := 0
	for _, given := range []bool{len(r.Hosts) > 0, r.All, sel != nil} {
		if given {
			n++
		}
	}
	if n != 1 {
		return nil, nil, inventory.Errorf(inventory.Invalid, "say which hosts to accept, in one way").WithHint("give names, or all, or a selector")
	}
	err = s.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		hosts, skipped = nil, nil
		if len(r.Hosts) == 0 {
			all, err := tx.ListHosts(inventory.HostFilter{State: inventory.Discovered}, inventory.Page{})
			for i := range all {
				if r.All || sel.Matches(&all[i]) {
					hosts = append(hosts, all[i])
				}
			}
			return err
		}
		for _, ref := range r.Hosts {
			h, err := findHost(tx, ref)
			var e *inventory.Error
			switch {
			case errors.As(err, &e) && e.Kind == inventory.NotFound:
				skipped = append(skipped, Skipped{Host: inventory.Clean(ref, 80), Reason: e.Msg, Hint: e.Hint})
			case err != nil:
				return err
			default:
				if _, err := h.State.Next(inventory.Accept); errors.As(err, &e) {
					skipped = append(skipped, Skipped{Host: h.Name, Reason: e.Msg})
					continue
				}
				hosts = append(hosts, h)
			}
		}
		return nil
	})
	return hosts, skipped, err
}
