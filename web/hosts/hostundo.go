package hosts

import (
	"encoding/json"
	"fmt"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/audit"
	"slipway.dev/slipway/web/rest"
)

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
