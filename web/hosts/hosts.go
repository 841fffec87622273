package hosts

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/web/audit"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/scoped"
	"slipway.dev/slipway/web/wire"
)

// hostQuery narrows the list of hosts.
type hostQuery struct {
	rest.Page
	State    inventory.State `query:"state" enum:"discovered,inspecting,available,installing,active,releasing,cleaning,failed"`
	Rack     string          `query:"rack" maxLength:"256"`
	Label    string          `query:"label" doc:"key or key=value" maxLength:"512"`
	Search   string          `query:"search" doc:"Part of a name, MAC, serial, UUID, manufacturer or product" maxLength:"256"`
	Pool     string          `query:"pool" doc:"Claimed by a machine of that pool" maxLength:"63"`
	Selector string          `query:"selector" doc:"Terms that must all hold, such as rack=r1,product=~R6.*" maxLength:"1024"`
}

// addHosts registers the operations on hosts as things; addHostVerbs adds what is done to them.
func (s *Server) addHosts() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/hosts", ID: "list-hosts", Scope: rest.OfPools, Tag: "hosts", Summary: "List hosts",
		AtAny: true,
		About: "In order of their names. The machines that nobody has accepted yet are among them, in state discovered.",
	},
		func(req *rest.Request, in *hostQuery) (out *rest.Listed[inventory.Host], err error) {
			err = s.rest.Store.Read(req, func(tx inventory.Tx) error {
				rows, err := selectHosts(tx, *in)
				out = rest.PageOf(rows, in.Limit, hostName)
				return err
			})
			return out, err
		})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/hosts/{host}", ID: "get-host",
		Scope: rest.OfPools, Tag: "hosts", Summary: "Show a host", Errors: []int{http.StatusNotFound}, AtAny: true,
	},
		func(req *rest.Request, in *rest.HostRef) (*rest.One[inventory.Host], error) {
			h, err := s.rest.ReadHost(req, in.Host)
			return &rest.One[inventory.Host]{ETag: rest.ETag(h.Version), Body: h}, err
		})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/hosts/{host}/role", ID: "get-host-role", AtAny: true, Scope: rest.OfPools, Tag: "hosts",
		Summary: "Say which role I have on a host",
		About:   "The highest in the pools that hold it; where a machine has it, that in the machine's pool.", Errors: []int{http.StatusNotFound},
	}, s.roleOnHost)
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: "/hosts", ID: "create-host", Scope: rest.OfPools, Tag: "hosts", Summary: "Add a host", Dry: true,
		Result: inventory.Host{}, Status: http.StatusCreated, Errors: []int{http.StatusConflict, http.StatusNotFound},
		About: "A host that a person adds counts as accepted.",
	},
		s.createHost)
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPut, Path: "/hosts/{host}", ID: "put-host", Scope: rest.OfPools, Tag: "hosts",
		Summary: "Make a host as given, whether it exists or not",
		Dry:     true, Result: inventory.Host{}, Errors: []int{http.StatusConflict, http.StatusNotFound, http.StatusPreconditionFailed},
		About: "Replaces what an admin says of a host; what the machine says of itself, its state and its flags stay.",
	},
		s.putHost)
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPatch, Path: "/hosts/{host}", ID: "patch-host", Scope: rest.OfPools, Tag: "hosts",
		Summary: "Change some fields of a host",
		Dry:     true, Result: inventory.Host{}, Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed},
	},
		s.patchHost)
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodDelete, Path: "/hosts/{host}", ID: "delete-host", Scope: rest.OfPools, Tag: "hosts",
		Summary: "Forget a host", Dry: true,
		Status: http.StatusNoContent, Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed},
		About: "If the machine boots again, it is discovered again.",
	}, s.deleteHost)
}

func hostName(h inventory.Host) string { return h.Name }

// selectHosts lists up to limit+1 hosts. The store knows nothing of selectors, so those are asked of page after page.
func selectHosts(tx inventory.Tx, in hostQuery) (rows []inventory.Host, err error) {
	sel, err := inventory.ParseSelector(in.Selector)
	if err != nil {
		return nil, err
	}
	f := inventory.HostFilter{State: in.State, Rack: in.Rack, Label: in.Label, Search: in.Search, Pool: in.Pool}
	if sel == nil {
		return tx.ListHosts(f, in.More())
	}
	page := inventory.Page{After: in.After, Limit: 1000}
	for {
		hosts, err := tx.ListHosts(f, page)
		if err != nil {
			return nil, err
		}
		for i := range hosts {
			if page.After = hosts[i].Name; sel.Matches(&hosts[i]) {
				if rows = append(rows, hosts[i]); len(rows) > in.Limit {
					return rows, nil
				}
			}
		}
		if len(hosts) < page.Limit {
			return rows, nil
		}
	}
}

// HostRole is what the caller may do with a host.
type HostRole struct {
	Role inventory.UserRole `json:"role"`
}

func (s *Server) roleOnHost(req *rest.Request, in *rest.HostRef) (*rest.One[HostRole], error) {
	out := &rest.One[HostRole]{}
	err := s.rest.Store.Read(req, func(tx inventory.Tx) error {
		h, err := rest.FindHost(tx, in.Host)
		if err != nil {
			return err
		}
		out.Body.Role, err = scoped.RoleOnHost(tx, req.Within(), &h)
		return err
	})
	return out, err
}

type putHostInput struct {
	rest.WriteOptions
	rest.HostRef
	Body inventory.Host
}

func (s *Server) createHost(req *rest.Request, in *rest.CreateInput[inventory.Host]) (*rest.Written, error) {
	var h inventory.Host
	err := s.rest.Write(req, in.DryRun, func(tx inventory.Tx) (err error) {
		h, err = s.insertHost(req, tx, in.Body)
		return err
	})
	return hostWritten(nil, h, in.DryRun, http.StatusCreated), err
}

func (s *Server) putHost(req *rest.Request, in *putHostInput) (*rest.Written, error) {
	var (
		h   inventory.Host
		old *inventory.Host
	)
	err := s.rest.Write(req, in.DryRun, func(tx inventory.Tx) error {
		stored, err := rest.FindHost(tx, in.Host)
		switch {
		case err == nil:
			old = &stored
			in.Body.Name = cmp.Or(in.Body.Name, stored.Name)
			h, err = s.updateHost(req, tx, in.WriteOptions, stored, func(h *inventory.Host) error { return s.replace(h, in.Body) })
			return err
		case !inventory.IsKind(err, inventory.NotFound):
			return err
		case in.IfMatch != "":
			return &rest.StatusError{Status: http.StatusPreconditionFailed, Err: inventory.Errorf(inventory.Conflict, "host %s does not exist", inventory.Clean(in.Host, 80)).
				WithHint("leave out If-Match to create it")}
		}
		old = nil
		if err := rest.SameName("host", &in.Body.Name, in.Host); err != nil {
			return err
		}
		h, err = s.insertHost(req, tx, in.Body)
		return err
	})
	return hostWritten(old, h, in.DryRun, http.StatusOK), err
}

type patchHostInput struct {
	rest.WriteOptions
	rest.HostRef
	Body wire.HostPatch
}

func (s *Server) patchHost(req *rest.Request, in *patchHostInput) (*rest.Written, error) {
	var old, h inventory.Host
	err := s.rest.Write(req, in.DryRun, func(tx inventory.Tx) (err error) {
		if old, err = rest.FindHost(tx, in.Host); err != nil {
			return err
		}
		h, err = s.updateHost(req, tx, in.WriteOptions, old, func(h *inventory.Host) error { return s.apply(h, in.Body) })
		return err
	})
	return hostWritten(&old, h, in.DryRun, http.StatusOK), err
}

func (s *Server) deleteHost(req *rest.Request, in *deleteHostInput) (*rest.Written, error) {
	if err := s.endOperation(req, in); err != nil {
		return nil, err
	}
	var h inventory.Host
	err := s.rest.Write(req, in.DryRun, func(tx inventory.Tx) (err error) {
		if h, err = rest.FindHost(tx, in.Host); err != nil {
			return err
		}
		if err := in.Check("host", h.Name, h.Version); err != nil && !in.Force {
			return err
		}
		if h.IsProtected {
			return inventory.Errorf(inventory.Forbidden, "host %s is protected", h.Name).WithHint("lift that first: slipway host protect %s --off", h.Name)
		}
		if op, err := tx.FindOpenOperation(h.ID); err == nil && h.ClaimID == "" && (!in.Force || !in.DryRun) {
			return inventory.Errorf(inventory.Conflict, "host %s is busy: %s", h.Name, op.Kind).
				WithHint("slipway operation cancel %s ends that; slipway host delete %s --force does both", op.ID, h.Name)
		}
		if err := tx.DeleteHost(h.ID); err != nil {
			return err
		}
		hostGone(req, h)
		return tx.AddEvent(&inventory.Event{
			At: s.rest.Now(), Kind: inventory.EventHostDeleted, HostID: h.ID, Subject: "host/" + h.Name,
			Detail: "host " + h.Name + " deleted by " + req.By(),
		})
	})
	switch {
	case err != nil:
		return nil, err
	case in.DryRun:
		return &rest.Written{Status: http.StatusOK, Body: rest.Diff{IsDryRun: true, Changes: rest.Compare(h, nil)}}, nil
	}
	s.cfg.Devices.Forget(h.ID)
	return &rest.Written{Status: http.StatusNoContent}, nil
}

type deleteHostInput struct {
	rest.WriteOptions
	rest.HostRef
	Force bool `query:"force" doc:"Also a host that something is under way with: that is cancelled. A host that is protected, or that a machine has, stays"`
}

// endOperation cancels what is under way with a host that is to be forgotten by force.
func (s *Server) endOperation(req *rest.Request, in *deleteHostInput) error {
	if !in.Force || in.DryRun {
		return nil
	}
	var id string
	err := s.rest.Store.Read(req, func(tx inventory.Tx) error {
		h, err := rest.FindHost(tx, in.Host)
		if err != nil || h.IsProtected || h.ClaimID != "" {
			return err
		}
		if err := in.Check("host", h.Name, h.Version); err != nil {
			return err
		}
		op, err := tx.FindOpenOperation(h.ID)
		if id = op.ID; inventory.IsKind(err, inventory.NotFound) {
			return nil
		}
		return err
	})
	if err != nil || id == "" {
		return err
	}
	_, err = s.cfg.Engine.CancelOperation(req, id, ledger.By(req.By())) // the entry stands with the edit
	return err
}

// hostWritten makes the response to a write of a host.
func hostWritten(old *inventory.Host, h inventory.Host, isDryRun bool, status int) *rest.Written {
	if isDryRun {
		return &rest.Written{Status: http.StatusOK, Body: rest.Diff{IsDryRun: true, Changes: rest.Compare(rest.Deref(old), h), Result: h}}
	}
	return &rest.Written{Status: status, ETag: rest.ETag(h.Version), Body: h}
}

// insertHost stores a host that a person adds.
func (s *Server) insertHost(req *rest.Request, tx inventory.Tx, in inventory.Host) (inventory.Host, error) {
	now := s.rest.Now()
	h := inventory.Host{ID: s.cfg.NewHostID(), State: inventory.Available, StateSinceAt: now, StateReason: "added by " + req.By(), Arch: in.Arch}
	if err := s.replace(&h, in); err != nil {
		return h, err
	}
	if err := s.cfg.Engine.AddHost(tx, &h, req.By()); err != nil {
		return h, err
	}
	hostEdited(req, inventory.AuditCreate, nil, h)
	return h, nil
}

// updateHost changes a host with edit and stores it, if that changed anything.
func (s *Server) updateHost(req *rest.Request, tx inventory.Tx, o rest.WriteOptions, old inventory.Host, edit func(*inventory.Host) error) (inventory.Host, error) {
	if err := o.Check("host", old.Name, old.Version); err != nil {
		return old, err
	}
	h := old
	h.NICs, h.Labels = slices.Clone(old.NICs), maps.Clone(old.Labels)
	if err := edit(&h); err != nil {
		return old, err
	}
	err := s.cfg.Engine.EditHost(tx, old, &h, req.By())
	if h.Version != old.Version {
		hostEdited(req, inventory.AuditUpdate, old, h)
	}
	return h, err
}

// hostEdited notes an edit of a host.
func hostEdited(req *rest.Request, change inventory.AuditChange, old any, h inventory.Host) {
	rest.Edited(req, "host", h.Name, change, old, h, h.Version)
	req.Trail.Concern(h.ID)
}

// hostGone notes that a host is forgotten.
func hostGone(req *rest.Request, h inventory.Host) {
	rest.Edited(req, "host", h.Name, inventory.AuditDelete, h, nil, 0)
	req.Trail.Concern(h.ID)
}

// undoHost takes an edit of a host back.
func (s *Server) undoHost(req *rest.Request, a inventory.Audit, isDryRun bool) (*rest.Written, error) {
	o := rest.WriteOptions{DryRun: isDryRun, IfMatch: rest.ETag(a.Version)}
	switch a.Change {
	case inventory.AuditCreate:
		return s.deleteHost(req, &deleteHostInput{WriteOptions: o, HostRef: rest.HostRef{Host: string(a.HostID)}})
	case inventory.AuditDelete:
		in := &rest.CreateInput[inventory.Host]{DryRun: isDryRun}
		if err := json.Unmarshal(a.Before, &in.Body); err != nil {
			return nil, fmt.Errorf("decode entry %d of the audit: %w", a.ID, err)
		}
		return s.createHost(req, in)
	}
	h, err := s.rest.ReadHost(req, string(a.HostID))
	if err != nil {
		return nil, err
	}
	body, err := audit.Reverted(a, h, s.cfg.Moving)
	if err != nil {
		return nil, err
	}
	o.IfMatch = rest.ETag(h.Version)
	return s.putHost(req, &putHostInput{WriteOptions: o, HostRef: rest.HostRef{Host: string(h.ID)}, Body: body})
}
