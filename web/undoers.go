package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/audit"
	"slipway.dev/slipway/web/rest"
)

// moving are the fields of hosts, machines and BMCs that nobody edits: they say how things are.
var moving = append(slices.Clone(rest.Bookkeeping), slices.Concat(ownFields["Host"], machineOwn, ownFields["SetBMC"])...)

// addUndoers registers how hosts, machines and BMCs are undone. Those change by themselves all the time, so that what counts
// is whether the fields that the edit changed are still as it left them.
func (s *Server) addUndoers() {
	s.rest.AddUndoer("host", s.undoHost)
	s.rest.AddUndoer("machine", func(req *rest.Request, a inventory.Audit, isDryRun bool) (*rest.Written, error) {
		m, err := s.readMachine(req, a.Name)
		if err != nil {
			return nil, err
		}
		body, err := audit.Reverted(a, m, moving)
		if err != nil {
			return nil, err
		}
		return s.putMachine(req, &rest.PutInput[inventory.Machine]{
			WriteOptions: rest.WriteOptions{DryRun: isDryRun, IfMatch: rest.ETag(m.Version)}, NameRef: rest.PlainRef(m.Name), Body: body,
		})
	})
	s.rest.AddUndoer("bmc", s.undoBMC)
}

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
	body, err := audit.Reverted(a, h, moving)
	if err != nil {
		return nil, err
	}
	o.IfMatch = rest.ETag(h.Version)
	return s.putHost(req, &putHostInput{WriteOptions: o, HostRef: rest.HostRef{Host: string(h.ID)}, Body: body})
}

func (s *Server) undoBMC(req *rest.Request, a inventory.Audit, isDryRun bool) (*rest.Written, error) {
	ref := rest.HostRef{Host: string(a.HostID)}
	h, b, err := s.readBMC(req, ref.Host)
	if a.Change == inventory.AuditDelete {
		if err == nil {
			return nil, rest.ChangedSince(a, "")
		}
		h, err = s.rest.ReadHost(req, ref.Host)
	}
	if err != nil {
		return nil, err
	}
	is := hostBMC(h.Name, b)
	if a.Change == inventory.AuditCreate {
		if _, err := audit.Reverted(a, is, moving); err != nil {
			return nil, err
		}
		return s.deleteBMC(req, &deleteBMCInput{WriteOptions: rest.WriteOptions{DryRun: isDryRun, IfMatch: rest.ETag(b.Version)}, HostRef: ref})
	}
	var body HostBMC
	if a.Change == inventory.AuditDelete {
		if err := json.Unmarshal(a.Before, &body); err != nil {
			return nil, fmt.Errorf("decode entry %d of the audit: %w", a.ID, err)
		}
	} else if body, err = audit.Reverted(a, is, moving); err != nil {
		return nil, err
	}
	if isDryRun {
		return &rest.Written{Status: http.StatusOK, Body: rest.Diff{IsDryRun: true, Changes: rest.Compare(is, body), Result: body}}, nil
	}
	out, err := s.putBMC(req, &putBMCInput{IfMatch: rest.ETag(b.Version), HostRef: ref, Body: SetBMC{HostBMC: body}})
	if err != nil {
		return nil, err
	}
	return &rest.Written{Status: http.StatusOK, ETag: out.ETag, Body: out.Body}, nil
}
