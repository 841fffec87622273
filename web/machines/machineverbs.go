package machines

import (
	"context"
	"net/http"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/web/rest"
)

// AckInput acknowledges a hook.
type AckInput struct {
	rest.NameRef
	Body struct {
		Step  inventory.HookStep `json:"step" enum:"pre-claim,pre-boot,post-join,pre-drain,pre-fence,pre-clean,pre-release"`
		Owner string             `json:"owner" maxLength:"63"`
	}
}

// HoldInput says why a hook is not acknowledged yet.
type HoldInput struct {
	rest.NameRef
	Body struct {
		Step   inventory.HookStep `json:"step" enum:"pre-claim,pre-boot,post-join,pre-drain,pre-fence,pre-clean,pre-release"`
		Owner  string             `json:"owner" maxLength:"63"`
		Reason string             `json:"reason" doc:"Why it is not acknowledged yet" maxLength:"300"`
	}
}

// RemediateInput names the steps of a remediation.
type RemediateInput struct {
	rest.NameRef
	Body struct {
		Steps []operation.Rung `json:"steps,omitempty" doc:"In this order, each when the one before has failed; all when empty" enum:"power-cycle,reinstall,replace" maxItems:"8"`
	}
}

// AdoptMachine is a machine that runs already, and its host.
type AdoptMachine struct {
	inventory.Machine
	Host string `json:"host" doc:"Name, id or MAC of the adopted host that it runs on" maxLength:"255"`
}

type adoptMachineInput struct {
	Body AdoptMachine
}

// addMachineVerbs registers what is done to machines.
func (s *Server) addMachineVerbs() {
	life := s.cfg.Engine
	addMachineVerb(s, "reinstall", "Reinstall a machine on its host; disks that are kept stay as they are", func(ctx context.Context, who ledger.Asker, in *rest.NameInput) (inventory.Machine, error) {
		return life.Reinstall(ctx, in.Name, who)
	})
	addMachineVerb(s, "retry", "Let a machine that has failed look for a host again", func(ctx context.Context, who ledger.Asker, in *rest.NameInput) (inventory.Machine, error) {
		return life.RetryMachine(ctx, in.Name, who)
	})
	addMachineVerb(s, "remediate", "Remediate a machine: power cycle, reinstall, replace", func(ctx context.Context, who ledger.Asker, in *RemediateInput) (inventory.Machine, error) {
		return life.Remediate(ctx, in.Name, in.Body.Steps, who)
	})
	addMachineVerb(s, "ack", "Acknowledge a hook, so that the step it blocks goes on", func(ctx context.Context, who ledger.Asker, in *AckInput) (inventory.Machine, error) {
		return life.AckHook(ctx, in.Name, in.Body.Step, in.Body.Owner, who)
	})
	addMachineVerb(s, "hold", "Say why a hook is not acknowledged yet", func(ctx context.Context, who ledger.Asker, in *HoldInput) (inventory.Machine, error) {
		return life.HoldHook(ctx, in.Name, in.Body.Step, in.Body.Owner, in.Body.Reason, who)
	})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: "/machines/adopt", ID: "adopt-machine", Scope: rest.OfPools, Tag: "machines", Status: http.StatusCreated,
		Summary: "Make a machine of a server that runs already", Errors: []int{http.StatusNotFound, http.StatusConflict},
		About: "Nothing is started on it, now or when the machine goes. The host is adopted first.",
	}, s.adoptMachine)
}

// addMachineVerb registers a verb on one machine.
func addMachineVerb[I any](s *Server, verb, summary string, do func(context.Context, ledger.Asker, *I) (inventory.Machine, error)) {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: "/machines/{name}/" + verb, ID: verb + "-machine", Scope: rest.OfPools, Tag: "machines",
		Summary: summary,
		Errors:  []int{http.StatusNotFound, http.StatusConflict, http.StatusForbidden},
	},
		func(req *rest.Request, in *I) (*rest.One[inventory.Machine], error) {
			if _, err := s.readMachine(req, any(in).(interface{ NamedThing() string }).NamedThing()); err != nil {
				return nil, err // the engine asks nobody who it is
			}
			m, err := do(req, s.rest.Asker(req), in)
			return &rest.One[inventory.Machine]{ETag: rest.ETag(m.Version), Body: m}, err
		})
}

func (s *Server) adoptMachine(req *rest.Request, in *adoptMachineInput) (*rest.One[inventory.Machine], error) {
	want, err := wantedBy(req, in.Body.Name, in.Body.Owner, in.Body.Machine)
	if err != nil {
		return nil, err
	}
	h, err := s.rest.ReadHost(req, in.Body.Host)
	if err != nil {
		return nil, err
	}
	if err := s.mayPlace(req, &want); err != nil {
		return nil, err
	}
	m, err := s.cfg.Engine.AdoptMachine(req, want, h.ID, s.rest.Asker(req))
	return &rest.One[inventory.Machine]{ETag: rest.ETag(m.Version), Body: m}, err
}

// What these inputs ask for, in words.

// Asked says which hook, for the audit.
func (in *AckInput) Asked() string { return string(in.Body.Step) + " of " + in.Body.Owner }

// Asked says which hook, for the audit.
func (in *HoldInput) Asked() string { return string(in.Body.Step) + " of " + in.Body.Owner }

// Asked says which steps, for the audit.
func (in *RemediateInput) Asked() string {
	var steps []string
	for _, s := range in.Body.Steps {
		steps = append(steps, string(s))
	}
	return strings.Join(steps, ", ")
}
