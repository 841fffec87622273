package audit

import (
	"net/http"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/auditchain"
	"slipway.dev/slipway/web/rest"
)

type chainInput struct {
	Noted string `query:"noted" doc:"A hash that the chain had at an earlier time" pattern:"^[0-9a-f]{64}$"`
}

type auditExportInput struct {
	After int64 `query:"after" doc:"Only entries after this id" minimum:"0"`
}

// exportStep is how many entries one request gets; each may hold megabytes.
const exportStep = 20

// addChain registers what keeps the audit honest: a look at the chain of its hashes, and an export.
func (l *Log) addChain() {
	rest.Register(l.frame, rest.Operation{
		Method: http.MethodGet, Path: "/audit/chain", ID: "check-audit", Tag: "audit", Needs: inventory.Admin, Within: checkFor,
		Summary: "Look whether an entry of the audit was changed, taken out or put in",
		About: "Every entry has the hash of itself and of the one before. Anyone who can write the database can also write the chain again: note " +
			"the head elsewhere now and then, and ask whether it is still in the chain.",
	}, func(req *rest.Request, in *chainInput) (*rest.One[auditchain.AuditChain], error) {
		c, err := auditchain.Check(in.Noted, func(after int64) ([]inventory.Audit, error) { return l.walkAudits(req, after) })
		return &rest.One[auditchain.AuditChain]{Body: c}, err
	})
	rest.Register(l.frame, rest.Operation{
		Method: http.MethodGet, Path: "/audit/export", ID: "export-audit", Tag: "audit", Needs: inventory.Admin,
		Summary: "List whole entries of the audit, oldest first, with what they changed and their hashes",
	}, func(req *rest.Request, in *auditExportInput) (*rest.Listed[inventory.Audit], error) {
		rows, err := l.walkAudits(req, in.After)
		return rest.PageOf(rows, exportStep-1, Key), err
	})
}

// walkAudits reads a few entries in a transaction of their own: nothing of them changes meanwhile.
func (l *Log) walkAudits(req *rest.Request, after int64) (rows []inventory.Audit, err error) {
	return rest.Read(req, l.frame.Store, func(tx inventory.Tx) ([]inventory.Audit, error) { return tx.WalkAudits(after, exportStep) })
}
