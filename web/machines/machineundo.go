package machines

import (
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/audit"
	"slipway.dev/slipway/web/rest"
)

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
