package power

import (
	"encoding/json"
	"fmt"
	"net/http"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/audit"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// undoBMC takes an edit of a controller back.
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
	is := Shown(h.Name, b)
	if a.Change == inventory.AuditCreate {
		if _, err := audit.Reverted(a, is, s.cfg.Moving); err != nil {
			return nil, err
		}
		return s.deleteBMC(req, &deleteBMCInput{WriteOptions: rest.WriteOptions{DryRun: isDryRun, IfMatch: rest.ETag(b.Version)}, HostRef: ref})
	}
	var body wire.HostBMC
	if a.Change == inventory.AuditDelete {
		if err := json.Unmarshal(a.Before, &body); err != nil {
			return nil, fmt.Errorf("decode entry %d of the audit: %w", a.ID, err)
		}
	} else if body, err = audit.Reverted(a, is, s.cfg.Moving); err != nil {
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
