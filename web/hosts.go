package web

import (
	"maps"
	"net/http"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision"
	"slipway.dev/slipway/web/scoped"
)

// hostQuery narrows the list of hosts.
type hostQuery struct {
	Page
	State    inventory.State `query:"state" enum:"discovered,inspecting,available,installing,active,releasing,cleaning,failed"`
	Rack     string          `query:"rack" maxLength:"256"`
	Label    string          `query:"label" doc:"key or key=value" maxLength:"512"`
	Search   string          `query:"search" doc:"Part of a name, MAC, serial, UUID, manufacturer or product" maxLength:"256"`
	Pool     string          `query:"pool" doc:"Claimed by a machine of that pool" maxLength:"63"`
	Selector string          `query:"selector" doc:"Terms that must all hold, such as rack=r1,product=~R6.*" maxLength:"1024"`
}

// addHosts registers the operations on hosts as things; addHostVerbs adds what is done to them.
func (s *Server) addHosts() {
	register(s.rest, operation{
		method: http.MethodGet, path: "/hosts", id: "list-hosts", scope: ofPools, tag: "hosts", summary: "List hosts",
		about: "In order of their names. The machines that nobody has accepted yet are among them, in state discovered.",
	},
		func(req *Request, in *hostQuery) (out *listed[inventory.Host], err error) {
			err = s.rest.store.Read(req, func(tx inventory.Tx) error {
				rows, err := selectHosts(tx, *in)
				out = pageOf(rows, in.Limit, hostName)
				return err
			})
			return out, err
		})
	register(s.rest, operation{method: http.MethodGet, path: "/hosts/{host}", id: "get-host", scope: ofPools, tag: "hosts", summary: "Show a host", errors: []int{http.StatusNotFound}},
		func(req *Request, in *HostRef) (*one[inventory.Host], error) {
			h, err := s.readHost(req, in.Host)
			return &one[inventory.Host]{ETag: etag(h.Version), Body: h}, err
		})
	register(s.rest, operation{
		method: http.MethodGet, path: "/hosts/{host}/role", id: "get-host-role", scope: ofPools, tag: "hosts", summary: "Say which role I have on a host",
		about: "The highest in the pools that hold it; where a machine has it, that in the machine's pool.", errors: []int{http.StatusNotFound},
	}, s.roleOnHost)
	register(s.rest, operation{
		method: http.MethodPost, path: "/hosts", id: "create-host", scope: ofPools, tag: "hosts", summary: "Add a host", dry: true,
		result: inventory.Host{}, status: http.StatusCreated, errors: []int{http.StatusConflict, http.StatusNotFound},
		about: "A host that a person adds counts as accepted.",
	},
		s.createHost)
	register(s.rest, operation{
		method: http.MethodPut, path: "/hosts/{host}", id: "put-host", scope: ofPools, tag: "hosts", summary: "Make a host as given, whether it exists or not",
		dry: true, result: inventory.Host{}, errors: []int{http.StatusConflict, http.StatusNotFound, http.StatusPreconditionFailed},
		about: "Replaces what an admin says of a host; what the machine says of itself, its state and its flags stay.",
	},
		s.putHost)
	register(s.rest, operation{
		method: http.MethodPatch, path: "/hosts/{host}", id: "patch-host", scope: ofPools, tag: "hosts", summary: "Change some fields of a host",
		dry: true, result: inventory.Host{}, errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed},
	},
		s.patchHost)
	register(s.rest, operation{
		method: http.MethodDelete, path: "/hosts/{host}", id: "delete-host", scope: ofPools, tag: "hosts", summary: "Forget a host", dry: true,
		status: http.StatusNoContent, errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed},
		about: "If the machine boots again, it is discovered again.",
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
		return tx.ListHosts(f, in.more())
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

func (s *Server) readHost(req *Request, ref string) (h inventory.Host, err error) {
	err = s.rest.store.Read(req, func(tx inventory.Tx) error {
		h, err = findHost(tx, ref)
		return err
	})
	return h, err
}

// HostRole is what the caller may do with a host.
type HostRole struct {
	Role inventory.UserRole `json:"role"`
}

func (s *Server) roleOnHost(req *Request, in *HostRef) (*one[HostRole], error) {
	out := &one[HostRole]{}
	err := s.rest.store.Read(req, func(tx inventory.Tx) error {
		h, err := findHost(tx, in.Host)
		if err != nil {
			return err
		}
		out.Body.Role, err = scoped.RoleOnHost(tx, req.within(), &h)
		return err
	})
	return out, err
}

type putHostInput struct {
	WriteOptions
	HostRef
	Body inventory.Host
}

func (s *Server) createHost(req *Request, in *createInput[inventory.Host]) (*written, error) {
	var h inventory.Host
	err := s.rest.write(req, in.DryRun, func(tx inventory.Tx) (err error) {
		h, err = s.insertHost(req, tx, in.Body)
		return err
	})
	return hostWritten(nil, h, in.DryRun, http.StatusCreated), s.unnamed(req, err)
}

func (s *Server) putHost(req *Request, in *putHostInput) (*written, error) {
	var (
		h   inventory.Host
		old *inventory.Host
	)
	err := s.rest.write(req, in.DryRun, func(tx inventory.Tx) error {
		stored, err := findHost(tx, in.Host)
		switch {
		case err == nil:
			old = &stored
			if in.Body.Name == "" {
				in.Body.Name = stored.Name
			}
			h, err = s.updateHost(req, tx, in.WriteOptions, stored, func(h *inventory.Host) error { return s.replace(h, in.Body) })
			return err
		case !inventory.IsKind(err, inventory.NotFound):
			return err
		case in.IfMatch != "":
			return &statusError{status: http.StatusPreconditionFailed, err: inventory.Errorf(inventory.Conflict, "host %s does not exist", inventory.Clean(in.Host, 80)).
				WithHint("leave out If-Match to create it")}
		}
		old = nil
		if err := sameName("host", &in.Body.Name, in.Host); err != nil {
			return err
		}
		h, err = s.insertHost(req, tx, in.Body)
		return err
	})
	return hostWritten(old, h, in.DryRun, http.StatusOK), s.unnamed(req, err)
}

type patchHostInput struct {
	WriteOptions
	HostRef
	Body HostPatch
}

func (s *Server) patchHost(req *Request, in *patchHostInput) (*written, error) {
	var old, h inventory.Host
	err := s.rest.write(req, in.DryRun, func(tx inventory.Tx) (err error) {
		if old, err = findHost(tx, in.Host); err != nil {
			return err
		}
		h, err = s.updateHost(req, tx, in.WriteOptions, old, func(h *inventory.Host) error { return s.apply(h, in.Body) })
		return err
	})
	return hostWritten(&old, h, in.DryRun, http.StatusOK), s.unnamed(req, err)
}

func (s *Server) deleteHost(req *Request, in *deleteHostInput) (*written, error) {
	if err := s.endOperation(req, in); err != nil {
		return nil, err
	}
	var h inventory.Host
	err := s.rest.write(req, in.DryRun, func(tx inventory.Tx) (err error) {
		if h, err = findHost(tx, in.Host); err != nil {
			return err
		}
		if err := in.check("host", h.Name, h.Version); err != nil && !in.Force {
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
			At: s.cfg.Now(), Kind: inventory.EventHostDeleted, HostID: h.ID, Subject: "host/" + h.Name,
			Detail: "host " + h.Name + " deleted by " + req.by(),
		})
	})
	switch {
	case err != nil:
		return nil, err
	case in.DryRun:
		return &written{Status: http.StatusOK, Body: Diff{IsDryRun: true, Changes: compare(h, nil)}}, nil
	}
	s.lines.forget(h.ID)
	return &written{Status: http.StatusNoContent}, nil
}

type deleteHostInput struct {
	WriteOptions
	HostRef
	Force bool `query:"force" doc:"Also a host that something is under way with: that is cancelled. A host that is protected, or that a machine has, stays"`
}

// endOperation cancels what is under way with a host that is to be forgotten by force.
func (s *Server) endOperation(req *Request, in *deleteHostInput) error {
	if !in.Force || in.DryRun {
		return nil
	}
	var id string
	err := s.rest.store.Read(req, func(tx inventory.Tx) error {
		h, err := findHost(tx, in.Host)
		if err != nil || h.IsProtected || h.ClaimID != "" {
			return err
		}
		if err := in.check("host", h.Name, h.Version); err != nil {
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
	_, err = s.cfg.Lifecycle.CancelOperation(req, id, provision.By(req.by())) // the entry stands with the edit
	return err
}

// hostWritten makes the response to a write of a host.
func hostWritten(old *inventory.Host, h inventory.Host, isDryRun bool, status int) *written {
	if isDryRun {
		return &written{Status: http.StatusOK, Body: Diff{IsDryRun: true, Changes: compare(deref(old), h), Result: h}}
	}
	return &written{Status: status, ETag: etag(h.Version), Body: h}
}

// insertHost stores a host that a person adds.
func (s *Server) insertHost(req *Request, tx inventory.Tx, in inventory.Host) (inventory.Host, error) {
	now := s.cfg.Now()
	h := inventory.Host{ID: s.cfg.NewHostID(), State: inventory.Available, StateSinceAt: now, StateReason: "added by " + req.by(), Arch: in.Arch}
	if err := s.replace(&h, in); err != nil {
		return h, err
	}
	if err := s.cfg.Lifecycle.AddHost(tx, &h, req.by()); err != nil {
		return h, err
	}
	hostEdited(req, inventory.AuditCreate, nil, h)
	return h, nil
}

// updateHost changes a host with edit and stores it, if that changed anything.
func (s *Server) updateHost(req *Request, tx inventory.Tx, o WriteOptions, old inventory.Host, edit func(*inventory.Host) error) (inventory.Host, error) {
	if err := o.check("host", old.Name, old.Version); err != nil {
		return old, err
	}
	h := old
	h.NICs, h.Labels = slices.Clone(old.NICs), maps.Clone(old.Labels)
	if err := edit(&h); err != nil {
		return old, err
	}
	err := s.cfg.Lifecycle.EditHost(tx, old, &h, req.by())
	if h.Version != old.Version {
		hostEdited(req, inventory.AuditUpdate, old, h)
	}
	return h, err
}
