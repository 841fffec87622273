package machines

import (
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/web/audit"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/scoped"
)

// machineQuery narrows the list of machines.
type machineQuery struct {
	rest.Page
	Pool    string                 `query:"pool" maxLength:"63"`
	Phase   inventory.MachinePhase `query:"phase" enum:"pending,provisioning,running,deleting,failed"`
	Profile string                 `query:"profile" maxLength:"63"`
	Owner   string                 `query:"owner" doc:"How the owner begins" maxLength:"512"`
}

// addMachines registers the operations on machines as things; addMachineVerbs adds what is done to them. The engine
// makes and ends machines; what they should be at their next installation is written here.
func (s *Server) addMachines() {
	rest.AddNoun(s.rest, rest.Noun[inventory.Machine]{
		Singular: "machine", Plural: "machines", Scope: rest.OfPools, Article: "a",
		Name:    machineName,
		Version: func(m inventory.Machine) int64 { return m.Version },
		Find:    inventory.Tx.FindMachine,
	})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/machines", ID: "list-machines",
		Scope: rest.OfPools, Tag: "machines", Summary: "List machines", AtAny: true,
	},
		func(req *rest.Request, in *machineQuery) (out *rest.Listed[inventory.Machine], err error) {
			err = s.rest.Store.Read(req, func(tx inventory.Tx) error {
				rows, err := tx.ListMachines(inventory.MachineFilter{Pool: in.Pool, Phase: in.Phase, Profile: in.Profile, OwnerPrefix: in.Owner}, in.More())
				out = rest.PageOf(rows, in.Limit, machineName)
				return err
			})
			return out, err
		})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: "/machines", ID: "create-machine", Scope: rest.OfPools, Tag: "machines",
		Summary: "Want a machine", Dry: true,
		Result: inventory.Machine{}, Status: http.StatusCreated, Errors: []int{http.StatusConflict},
		About: "A host is found for it at once or later. With an owner that has a machine already, it answers that one, with status 200.",
	}, s.createMachine)
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPut, Path: "/machines/{name}", ID: "put-machine", Scope: rest.OfPools, Tag: "machines",
		Summary: "Make a machine as given, whether it exists or not", Dry: true, Result: inventory.Machine{},
		Errors: []int{http.StatusConflict, http.StatusNotFound, http.StatusPreconditionFailed},
		About:  "A machine that has a host keeps its pool and placement. Another profile, parameters and root disk count from its next installation on.",
	}, s.putMachine)
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPatch, Path: "/machines/{name}", ID: "patch-machine", Scope: rest.OfPools, Tag: "machines",
		Summary: "Change some fields of a machine",
		Dry:     true, Result: inventory.Machine{}, Errors: []int{http.StatusConflict, http.StatusNotFound, http.StatusPreconditionFailed},
	}, s.patchMachine)
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodDelete, Path: "/machines/{name}", ID: "delete-machine", Scope: rest.OfPools, Tag: "machines", Dry: true, Status: http.StatusAccepted,
		Summary: "End a machine: its host is fenced, wiped and free again", Result: inventory.Machine{},
		Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusForbidden, http.StatusPreconditionFailed},
		About:  "Answers 204 when the machine is gone with that, and 202 with the machine while its host is being fenced or wiped.",
	}, s.deleteMachine)
	s.rest.Describe(http.MethodDelete, "/machines/{name}", func(op *huma.Operation) {
		op.Responses["204"] = &huma.Response{Description: "It is gone"}
	})
	s.rest.Describe(http.MethodPut, "/machines/{name}", func(put *huma.Operation) {
		s.rest.Describe(http.MethodPost, "/machines", func(post *huma.Operation) { post.Responses["200"] = put.Responses["200"] })
	})
}

func machineName(m inventory.Machine) string { return m.Name }

func (s *Server) createMachine(req *rest.Request, in *rest.CreateInput[inventory.Machine]) (*rest.Written, error) {
	return s.insertMachine(req, in.Body, in.DryRun, http.StatusCreated)
}

// wantedBy is a new machine as the caller may want it: only an admin everywhere names its owner.
func wantedBy(req *rest.Request, name, owner string, in inventory.Machine) (inventory.Machine, error) {
	want := inventory.Machine{Name: name, Owner: owner}
	want.TakeWanted(in)
	want.Saved = rest.SavedBy(req)
	if owner != "" && !want.SavedByAdmin {
		return want, inventory.Errorf(inventory.Forbidden, "only an admin everywhere names the owner of a machine").WithHint("leave out owner")
	}
	if owner != "" && !strings.HasPrefix(owner, contract.LocalCluster+"/") {
		want.Saved = inventory.Saved{SavedBy: "kubernetes"} // its object is the word of anyone who may write there
	}
	return want, nil
}

// insertMachine has the engine make a machine. A dry run makes it in a transaction that is taken back.
func (s *Server) insertMachine(req *rest.Request, in inventory.Machine, isDryRun bool, status int) (*rest.Written, error) {
	want, err := wantedBy(req, in.Name, in.Owner, in)
	if err != nil {
		return nil, err
	}
	isThere := false
	err = s.rest.Write(req, true, func(tx inventory.Tx) error {
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
		if err := s.cfg.Engine.CheckMachine(tx, &m); err != nil {
			return err
		}
		m.UID, m.Phase = noULID, inventory.MachinePending
		if err := tx.CreateMachine(&m, s.rest.Now()); err != nil {
			return err
		}
		return s.cfg.Engine.HoldMachine(tx, &m)
	})
	if err != nil {
		return nil, err
	}
	if isDryRun {
		want.Phase = inventory.MachinePending
		return machineWritten(nil, want, true, status), nil
	}
	req.Trail.Succeeds(status)
	if !isThere {
		req.Trail.Lastly(func(tx inventory.Tx) error {
			m, err := tx.FindMachine(want.Name)
			if err == nil {
				rest.Edited(req, "machine", m.Name, inventory.AuditCreate, nil, m, m.Version)
			}
			return err
		})
	}
	m, err := s.cfg.Engine.CreateMachine(req, want, s.rest.Asker(req))
	return machineWritten(nil, m, false, status), err
}

// noULID stands for the id of a machine that is never made.
const noULID = "00000000000000000000000000"

func machineWritten(old *inventory.Machine, m inventory.Machine, isDryRun bool, status int) *rest.Written {
	if isDryRun {
		return &rest.Written{Status: http.StatusOK, Body: rest.Diff{IsDryRun: true, Changes: rest.Compare(rest.Deref(old), m), Result: m}}
	}
	return &rest.Written{Status: status, ETag: rest.ETag(m.Version), Body: m}
}

func (s *Server) putMachine(req *rest.Request, in *rest.PutInput[inventory.Machine]) (*rest.Written, error) {
	stored, err := s.readMachine(req, in.Name)
	switch {
	case err == nil:
		if err := rest.SameName("machine", &in.Body.Name, in.Name); err != nil {
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
		return nil, &rest.StatusError{Status: http.StatusPreconditionFailed, Err: inventory.Errorf(inventory.Conflict, "machine %s does not exist", inventory.Clean(in.Name, 80)).
			WithHint("leave out If-Match to create it")}
	}
	if err := rest.SameName("machine", &in.Body.Name, in.Name); err != nil {
		return nil, err
	}
	return s.insertMachine(req, in.Body, in.DryRun, http.StatusOK)
}

type patchMachineInput struct {
	rest.WriteOptions
	rest.NameRef
	Body MachinePatch
}

func (s *Server) patchMachine(req *rest.Request, in *patchMachineInput) (*rest.Written, error) {
	return s.editMachine(req, in.WriteOptions, in.Name, func(m *inventory.Machine) error {
		in.Body.apply(m)
		return nil
	})
}

// editMachine changes what is wanted of a machine, and stores it if that changed anything.
func (s *Server) editMachine(req *rest.Request, o rest.WriteOptions, name string, edit func(*inventory.Machine) error) (*rest.Written, error) {
	var old, m inventory.Machine
	err := s.rest.Write(req, o.DryRun, func(tx inventory.Tx) (err error) {
		if old, err = tx.FindMachine(name); err != nil {
			return err
		}
		if err := o.Check("machine", name, old.Version); err != nil {
			return err
		}
		m = old
		m.Hooks = slices.Clone(old.Hooks)
		if err := edit(&m); err != nil {
			return err
		}
		signMachine(req, old, &m)
		if err := s.cfg.Engine.EditMachine(tx, old, &m, req.By()); err != nil || m.Version == old.Version {
			return err
		}
		rest.Edited(req, "machine", m.Name, inventory.AuditUpdate, old, m, m.Version)
		return nil
	})
	return machineWritten(&old, m, o.DryRun, http.StatusOK), err
}

type deleteMachineInput struct {
	rest.WriteOptions
	rest.NameRef
	Force bool `query:"force" doc:"Neither fence nor wipe: Slipway quarantines the host, and its old system may still run"`
}

func (s *Server) deleteMachine(req *rest.Request, in *deleteMachineInput) (*rest.Written, error) {
	m, err := s.readMachine(req, in.Name)
	if err != nil {
		return nil, err
	}
	if err := in.Check("machine", in.Name, m.Version); err != nil {
		return nil, err
	}
	if in.DryRun {
		verb := map[bool]string{false: "delete", true: "force"}[in.Force]
		does, err := s.foreseeMachine(req, in.Name, verb)
		if err != nil {
			return nil, err
		}
		return (&rest.Written{Status: http.StatusOK, Body: rest.Diff{IsDryRun: true, Changes: rest.Compare(m, nil)}}).Does(does), nil
	}
	req.Trail.Concern(m.HostID)
	rest.Edited(req, "machine", m.Name, inventory.AuditDelete, m, nil, 0)
	// The answer is read in the transaction of the deletion. Afterwards the database may be gone, and a refusal would say that the machine is
	// still there.
	var left inventory.Machine
	isGone := false
	req.Trail.Lastly(func(tx inventory.Tx) (err error) {
		left, err = tx.FindMachineByUID(m.UID)
		if isGone = inventory.IsKind(err, inventory.NotFound); isGone {
			req.Trail.Succeeds(http.StatusNoContent)
			return nil
		}
		return err
	})
	if _, err := s.cfg.Engine.DeleteMachine(req, in.Name, in.Force, s.rest.Asker(req)); err != nil {
		return nil, err
	}
	if isGone {
		return &rest.Written{Status: http.StatusNoContent}, nil
	}
	return machineWritten(nil, left, false, http.StatusAccepted), nil
}

func (in *deleteMachineInput) Asked() string {
	if in.Force {
		return "forced: neither fenced nor wiped"
	}
	return ""
}

// signMachine writes down who has changed what a machine is to become. Hooks and the way its node is emptied are no part of
// that.
func signMachine(req *rest.Request, old inventory.Machine, m *inventory.Machine) {
	same := old
	same.Hooks, same.Drain = m.Hooks, m.Drain
	if s := rest.SavedBy(req); len(rest.Compare(same, *m)) > 0 || s.SavedByAdmin && !old.SavedByAdmin && old.Owner == "" && len(rest.Compare(old, *m)) == 0 {
		m.Saved = s
	}
}

// mayPlace refuses a machine in a pool, or on a host, where the caller's role is not enough.
func mayPlace(tx inventory.Tx, m *inventory.Machine) error {
	t, isScoped := tx.(*scoped.Tx)
	if !isScoped {
		return nil
	}
	return t.MayPlace(m)
}

// mayPlace is the same outside of a transaction.
func (s *Server) mayPlace(req *rest.Request, m *inventory.Machine) error {
	return s.rest.Store.Read(req, func(tx inventory.Tx) error { return mayPlace(tx, m) })
}

// undoMachine takes an edit of a machine back.
func (s *Server) undoMachine(req *rest.Request, a inventory.Audit, isDryRun bool) (*rest.Written, error) {
	m, err := s.readMachine(req, a.Name)
	if err != nil {
		return nil, err
	}
	body, err := audit.Reverted(a, m, s.cfg.Moving)
	if err != nil {
		return nil, err
	}
	return s.putMachine(req, &rest.PutInput[inventory.Machine]{
		WriteOptions: rest.WriteOptions{DryRun: isDryRun, IfMatch: rest.ETag(m.Version)}, NameRef: rest.PlainRef(m.Name), Body: body,
	})
}
