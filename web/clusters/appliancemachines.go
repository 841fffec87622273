package clusters

import (
	"errors"
	"net/http"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/web/machines"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// Parameters of these operations.
type (
	ownersQuery struct {
		rest.Page
		Owner string `query:"owner" doc:"The owner, or how it begins" maxLength:"512"`
	}
	offer struct {
		Cluster string `json:"cluster" doc:"UID of the cluster whose objects may take the machine over; empty for none" maxLength:"64"`
	}
	handOver struct {
		Owner string `json:"owner" doc:"Who wants the machine from now on" maxLength:"512"`
	}
	deleteOwnedInput struct {
		rest.NameRef
		Force bool `query:"force" doc:"Without fencing or wiping: its host is quarantined"`
	}
)

// addApplianceMachines registers what can be asked of machines, and what is wanted of them.
func (s *Server) addApplianceMachines() {
	question(s, http.MethodGet, "/machines", "list-owned-machines", "List the machines of owners, with all that tells how far they are",
		func(req *rest.Request, a Appliance, in *ownersQuery) (rest.List[contract.View], error) {
			all, err := a.ListMachines(req, in.Owner)
			if err != nil {
				return rest.List[contract.View]{}, err
			}
			return rest.Cut(all, in.Page, func(v contract.View) string { return v.Machine.Name }).Body, nil
		})
	byName(s, http.MethodGet, "/owners/{name}", "find-owned-machine", "Show the machine of an owner", Appliance.FindMachine)
	byName(s, http.MethodGet, "/claims/{name}", "get-claim", "Show the machine that holds a claim", Appliance.FindClaim)
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
		func(req *rest.Request, a Appliance, in *bodied[wire.BootstrapData]) (wire.BootstrapVerdict, error) {
			err := a.GiveBootstrap(req, in.Name, contract.Bootstrap{Value: in.Body.Value, Format: in.Body.Format}, in.Body.Check)
			if unusable, ok := errors.AsType[*contract.BootstrapError](err); ok {
				return wire.BootstrapVerdict{BootstrapError: *unusable}, nil
			}
			return wire.BootstrapVerdict{IsUsable: true}, err
		})
}

// addApplianceVerbs registers how machines are made, and what is done to them.
func (s *Server) addApplianceVerbs() {
	question(s, http.MethodPost, "/machines", "create-owned-machine", "Want a machine for an owner; the one that it has stays",
		func(req *rest.Request, a Appliance, in *struct{ Body inventory.Machine }) (inventory.Machine, error) {
			return a.CreateMachine(req, in.Body)
		})
	question(s, http.MethodDelete, "/machines/{name}", "delete-owned-machine", "Ask for the end of a machine",
		func(req *rest.Request, a Appliance, in *deleteOwnedInput) (inventory.Machine, error) {
			return a.DeleteMachine(req, in.Name, in.Force)
		})
	byName(s, http.MethodPost, "/machines/{name}/reinstall", "reinstall-owned-machine", "Reinstall a machine on its host", Appliance.Reinstall)
	byName(s, http.MethodPost, "/machines/{name}/retry", "retry-owned-machine", "Let a machine that has failed look for a host again", Appliance.RetryMachine)
	question(s, http.MethodPost, "/machines/{name}/remediate", "remediate-owned-machine", "Remediate a machine: power cycle, reinstall, replace",
		func(req *rest.Request, a Appliance, in *machines.RemediateInput) (inventory.Machine, error) {
			var steps []string
			for _, r := range in.Body.Steps {
				steps = append(steps, string(r))
			}
			return a.Remediate(req, in.Name, steps)
		})
	question(s, http.MethodPost, "/machines/{name}/ack", "ack-owned-machine", "Acknowledge a hook, so that the step it blocks goes on",
		func(req *rest.Request, a Appliance, in *machines.AckInput) (inventory.Machine, error) {
			return a.AckHook(req, in.Name, in.Body.Step, in.Body.Owner)
		})
	question(s, http.MethodPost, "/machines/{name}/hold", "hold-owned-machine", "Say why a hook is not acknowledged yet",
		func(req *rest.Request, a Appliance, in *machines.HoldInput) (inventory.Machine, error) {
			return a.HoldHook(req, in.Name, in.Body.Step, in.Body.Owner, in.Body.Reason)
		})
}
