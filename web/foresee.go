package web

import (
	"net/http"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/foresight"
	"slipway.dev/slipway/web/rest"
)

// Foresight is what would happen.
type Foresight struct {
	Does string `json:"does" doc:"What would happen, as a sentence without its end"`
}

type foreseeInput struct {
	rest.NameRef
	Verb string `query:"verb" enum:"delete,force,reinstall,power-cycle,replace" default:"delete" doc:"force is a deletion by force; the last three are the steps of a remediation"`
}

// addForesight registers the questions what would happen. Deletions answer them in their dry runs, too.
func (s *Server) addForesight() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/machines/{name}/foresight", ID: "foresee-machine", Scope: rest.OfPools, Tag: "machines",
		Summary: "Say what a verb would do to a machine, its host and its disks", About: "Nothing is changed. It refuses a request in the same words as the real one.",
		Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusForbidden},
	}, func(req *rest.Request, in *foreseeInput) (*rest.One[Foresight], error) {
		does, err := s.foreseeMachine(req, in.Name, in.Verb)
		return &rest.One[Foresight]{Body: Foresight{Does: does}}, err
	})
}

func (s *Server) foreseeMachine(req *rest.Request, name, verb string) (string, error) {
	if _, err := s.readMachine(req, name); err != nil {
		return "", err // the engine asks nobody who it is
	}
	e, err := s.cfg.Lifecycle.ForeseeMachine(req, name, verb)
	if err != nil {
		return "", err
	}
	return foresight.End(e), nil
}

func countsOfSubnet(tx inventory.Tx, n inventory.Subnet) (map[string]int, error) {
	reserved, err := tx.ListReservations(n.Name, inventory.Page{})
	if err != nil {
		return nil, err
	}
	leases, err := tx.ListLeases(n.Name, inventory.Page{})
	return map[string]int{"reservation": len(reserved), "lease": len(leases)}, err
}

// countsOfProfile counts the hosts that are pinned to a profile, and the machines.
func countsOfProfile(tx inventory.Tx, p inventory.Profile) (map[string]int, error) {
	hosts, err := tx.ListHosts(inventory.HostFilter{}, inventory.Page{})
	if err != nil {
		return nil, err
	}
	hosts = slices.DeleteFunc(hosts, func(h inventory.Host) bool { return h.Profile != p.Name })
	machines, err := tx.ListMachines(inventory.MachineFilter{Profile: p.Name}, inventory.Page{})
	return map[string]int{"host": len(hosts), "machine": len(machines)}, err
}

func countsOfPool(tx inventory.Tx, p Pool) (map[string]int, error) {
	all, err := counted(tx, []inventory.Pool{p.Pool})
	if err != nil {
		return nil, err
	}
	return map[string]int{"host": all[0].Hosts.Total}, nil
}

// countsOfTarget counts the machines whose node a target's cluster has.
func countsOfTarget(tx inventory.Tx, t inventory.JoinTarget) (map[string]int, error) {
	machines, err := tx.ListMachines(inventory.MachineFilter{}, inventory.Page{})
	n := 0
	for i := range machines {
		if machines[i].Drain.Target == t.Name {
			n++
		}
	}
	return map[string]int{"node": n}, err
}

func countsOfCluster(tx inventory.Tx, c inventory.Cluster) (map[string]int, error) {
	if c.UID == "" {
		return nil, nil
	}
	machines, err := tx.ListMachines(inventory.MachineFilter{OwnerPrefix: c.UID + "/"}, inventory.Page{})
	return map[string]int{"machine": len(machines)}, err
}

// detaching tells the ways of letting a cluster go apart.
func (in *deleteClusterInput) how() string {
	switch {
	case in.Force:
		return "force"
	case in.Purge:
		return "purge"
	}
	return ""
}
