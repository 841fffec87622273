package web

import (
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
)

// machineQuery narrows the list of machines.
type machineQuery struct {
	Page
	Pool    string                 `query:"pool" maxLength:"63"`
	Phase   inventory.MachinePhase `query:"phase" enum:"pending,provisioning,running,deleting,failed"`
	Profile string                 `query:"profile" maxLength:"63"`
	Owner   string                 `query:"owner" doc:"How the owner begins" maxLength:"512"`
}

// addMachines registers the operations on machines as things; addMachineVerbs adds what is done to them. The engine
// makes and ends machines; what they should be at their next installation is written here.
func (s *Server) addMachines() {
	addNoun(s.rest, noun[inventory.Machine]{
		singular: "machine", plural: "machines", scope: ofPools, article: "a",
		name:    machineName,
		version: func(m inventory.Machine) int64 { return m.Version },
		find:    findMachine,
	})
	register(s.rest, operation{method: http.MethodGet, path: "/machines", id: "list-machines", scope: ofPools, tag: "machines", summary: "List machines"},
		func(req *Request, in *machineQuery) (out *listed[inventory.Machine], err error) {
			err = s.rest.store.Read(req, func(tx inventory.Tx) error {
				rows, err := tx.ListMachines(inventory.MachineFilter{Pool: in.Pool, Phase: in.Phase, Profile: in.Profile, OwnerPrefix: in.Owner}, in.more())
				out = pageOf(rows, in.Limit, machineName)
				return err
			})
			return out, err
		})
	register(s.rest, operation{
		method: http.MethodPost, path: "/machines", id: "create-machine", scope: ofPools, tag: "machines", summary: "Want a machine", dry: true,
		result: inventory.Machine{}, status: http.StatusCreated, errors: []int{http.StatusConflict},
		about: "A host is found for it at once or later. With an owner that has a machine already, it answers that one, with status 200.",
	}, s.createMachine)
	register(s.rest, operation{
		method: http.MethodPut, path: "/machines/{name}", id: "put-machine", scope: ofPools, tag: "machines",
		summary: "Make a machine as given, whether it exists or not", dry: true, result: inventory.Machine{},
		errors: []int{http.StatusConflict, http.StatusNotFound, http.StatusPreconditionFailed},
		about:  "A machine that has a host keeps its pool and placement. Another profile, parameters and root disk count from its next installation on.",
	}, s.putMachine)
	register(s.rest, operation{
		method: http.MethodPatch, path: "/machines/{name}", id: "patch-machine", scope: ofPools, tag: "machines", summary: "Change some fields of a machine",
		dry: true, result: inventory.Machine{}, errors: []int{http.StatusConflict, http.StatusNotFound, http.StatusPreconditionFailed},
	}, s.patchMachine)
	register(s.rest, operation{
		method: http.MethodDelete, path: "/machines/{name}", id: "delete-machine", scope: ofPools, tag: "machines", dry: true, status: http.StatusAccepted,
		summary: "End a machine: its host is fenced, wiped and free again", result: inventory.Machine{},
		errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusForbidden, http.StatusPreconditionFailed},
		about:  "Answers 204 when the machine is gone with that, and 202 with the machine while its host is being fenced or wiped.",
	}, s.deleteMachine)
	paths := s.rest.api.OpenAPI().Paths
	paths["/api/v1/machines/{name}"].Delete.Responses["204"] = &huma.Response{Description: "It is gone"}
	paths["/api/v1/machines"].Post.Responses["200"] = paths["/api/v1/machines/{name}"].Put.Responses["200"]
}

func machineName(m inventory.Machine) string { return m.Name }

func findMachine(tx inventory.Tx, name string) (inventory.Machine, error) {
	return tx.FindMachine(name)
}

func (s *Server) readMachine(req *Request, name string) (m inventory.Machine, err error) {
	err = s.rest.store.Read(req, func(tx inventory.Tx) error {
		m, err = findMachine(tx, name)
		return err
	})
	return m, err
}

func (s *Server) createMachine(req *Request, in *createInput[inventory.Machine]) (*written, error) {
	return s.insertMachine(req, in.Body, in.DryRun, http.StatusCreated)
}

// wantedBy is a new machine as the caller may want it: only an admin everywhere names its owner.
func wantedBy(req *Request, name, owner string, in inventory.Machine) (inventory.Machine, error) {
	want := inventory.Machine{Name: name, Owner: owner}
	want.TakeWanted(in)
	want.Saved = savedBy(req)
	if owner != "" && !want.SavedByAdmin {
		return want, inventory.Errorf(inventory.Forbidden, "only an admin everywhere names the owner of a machine").WithHint("leave out owner")
	}
	if owner != "" && !strings.HasPrefix(owner, contract.LocalCluster+"/") {
		want.Saved = inventory.Saved{SavedBy: "kubernetes"} // its object is the word of whoever may write there
	}
	return want, nil
}

// insertMachine has the engine make a machine. A dry run makes it in a transaction that is taken back.
func (s *Server) insertMachine(req *Request, in inventory.Machine, isDryRun bool, status int) (*written, error) {
	want, err := wantedBy(req, in.Name, in.Owner, in)
	if err != nil {
		return nil, err
	}
	isThere := false
	err = s.rest.write(req, true, func(tx inventory.Tx) error {
		if err := mayPlace(tx, &want); err != nil {
			return err
		}
		if in.Owner != "" {
			if _, err := tx.FindMachineByOwner(in.Owner); err == nil {
				status, isThere = http.StatusOK, true // the engine answers that one
				return nil
			}
		}
		if !isDryRun {
			return nil
		}
		m := want
		if err := s.cfg.Lifecycle.CheckMachine(tx, &m); err != nil {
			return err
		}
		m.UID, m.Phase = noULID, inventory.MachinePending
		if err := tx.CreateMachine(&m, s.cfg.Now()); err != nil {
			return err
		}
		return s.cfg.Lifecycle.HoldMachine(tx, &m)
	})
	if err != nil {
		return nil, s.unnamed(req, err)
	}
	if isDryRun {
		want.Phase = inventory.MachinePending
		return machineWritten(nil, want, true, status), nil
	}
	req.trail.succeeds(status)
	if !isThere {
		req.trail.lastly(func(tx inventory.Tx) error {
			m, err := tx.FindMachine(want.Name)
			if err == nil {
				edited(req, "machine", m.Name, inventory.AuditCreate, nil, m, m.Version)
			}
			return err
		})
	}
	m, err := s.cfg.Lifecycle.CreateMachine(req, want, s.rest.asker(req))
	return machineWritten(nil, m, false, status), s.unnamed(req, err)
}

// noULID stands for the id of a machine that is never made.
const noULID = "00000000000000000000000000"

func machineWritten(old *inventory.Machine, m inventory.Machine, isDryRun bool, status int) *written {
	if isDryRun {
		return &written{Status: http.StatusOK, Body: Diff{IsDryRun: true, Changes: compare(deref(old), m), Result: m}}
	}
	return &written{Status: status, ETag: etag(m.Version), Body: m}
}

func (s *Server) putMachine(req *Request, in *putInput[inventory.Machine]) (*written, error) {
	stored, err := s.readMachine(req, in.Name)
	switch {
	case err == nil:
		if err := sameName("machine", &in.Body.Name, in.Name); err != nil {
			return nil, err
		}
		owner := in.Body.Owner
		return s.editMachine(req, in.WriteOptions, stored.Name, func(m *inventory.Machine) error {
			if owner != m.Owner {
				return inventory.Errorf(inventory.Conflict, "machine %s belongs to %q", m.Name, m.Owner).WithHint("its owner cannot be changed")
			}
			m.TakeWanted(in.Body)
			return nil
		})
	case !inventory.IsKind(err, inventory.NotFound):
		return nil, err
	case in.IfMatch != "":
		return nil, &statusError{status: http.StatusPreconditionFailed, err: inventory.Errorf(inventory.Conflict, "machine %s does not exist", inventory.Clean(in.Name, 80)).
			WithHint("leave out If-Match to create it")}
	}
	if err := sameName("machine", &in.Body.Name, in.Name); err != nil {
		return nil, err
	}
	return s.insertMachine(req, in.Body, in.DryRun, http.StatusOK)
}

type patchMachineInput struct {
	WriteOptions
	NameRef
	Body MachinePatch
}

func (s *Server) patchMachine(req *Request, in *patchMachineInput) (*written, error) {
	return s.editMachine(req, in.WriteOptions, in.Name, func(m *inventory.Machine) error {
		in.Body.apply(m)
		return nil
	})
}

// editMachine changes what is wanted of a machine, and stores it if that changed anything.
func (s *Server) editMachine(req *Request, o WriteOptions, name string, edit func(*inventory.Machine) error) (*written, error) {
	var old, m inventory.Machine
	err := s.rest.write(req, o.DryRun, func(tx inventory.Tx) (err error) {
		if old, err = findMachine(tx, name); err != nil {
			return err
		}
		if err := o.check("machine", name, old.Version); err != nil {
			return err
		}
		m = old
		m.Hooks = slices.Clone(old.Hooks)
		if err := edit(&m); err != nil {
			return err
		}
		signMachine(req, old, &m)
		if err := s.cfg.Lifecycle.EditMachine(tx, old, &m, req.by()); err != nil || m.Version == old.Version {
			return err
		}
		edited(req, "machine", m.Name, inventory.AuditUpdate, old, m, m.Version)
		return nil
	})
	return machineWritten(&old, m, o.DryRun, http.StatusOK), s.unnamed(req, err)
}

// checkExpression compiles what is required, so that nonsense is refused before anything waits for it.
func checkExpression(r inventory.HardwareRequirements) error {
	if r.Expression == "" {
		return nil
	}
	_, err := hardware.Compile(r.Expression)
	return err
}

type deleteMachineInput struct {
	WriteOptions
	NameRef
	Force bool `query:"force" doc:"Neither fence nor wipe: the host is quarantined, and its old system may run on"`
}

func (s *Server) deleteMachine(req *Request, in *deleteMachineInput) (*written, error) {
	m, err := s.readMachine(req, in.Name)
	if err != nil {
		return nil, err
	}
	if err := in.check("machine", in.Name, m.Version); err != nil {
		return nil, err
	}
	if in.DryRun {
		verb := map[bool]string{false: "delete", true: "force"}[in.Force]
		does, err := s.foreseeMachine(req, in.Name, verb)
		if err != nil {
			return nil, err
		}
		return (&written{Status: http.StatusOK, Body: Diff{IsDryRun: true, Changes: compare(m, nil)}}).does(does), nil
	}
	req.trail.concern(m.HostID)
	edited(req, "machine", m.Name, inventory.AuditDelete, m, nil, 0)
	req.trail.lastly(func(tx inventory.Tx) error {
		_, err := tx.FindMachineByUID(m.UID)
		if inventory.IsKind(err, inventory.NotFound) {
			req.trail.succeeds(http.StatusNoContent)
			return nil
		}
		return err
	})
	if m, err = s.cfg.Lifecycle.DeleteMachine(req, in.Name, in.Force, s.rest.asker(req)); err != nil {
		return nil, err
	}
	err = s.rest.store.Read(req, func(tx inventory.Tx) error {
		m, err = tx.FindMachineByUID(m.UID)
		return err
	})
	if inventory.IsKind(err, inventory.NotFound) {
		return &written{Status: http.StatusNoContent}, nil
	}
	return machineWritten(nil, m, false, http.StatusAccepted), err
}
