package web

import (
	"net/http"

	"slipway.dev/slipway/inventory"
)

// operationQuery narrows the list of operations.
type operationQuery struct {
	Page
	ByHost
	Machine string                  `query:"machine" doc:"Only those for this machine" maxLength:"63"`
	Kind    inventory.OperationKind `query:"kind" enum:"inspect,install,reinstall,release,clean,power,remediate,rotate"`
	Open    bool                    `query:"open" doc:"Only those under way"`
}

// addOperations registers the operations on what is being done with hosts.
func (s *Server) addOperations() {
	addNoun(s.rest, noun[inventory.Operation]{
		singular: "operation", plural: "operations", scope: ofPools, article: "an",
		name:    operationID,
		version: func(o inventory.Operation) int64 { return o.Version },
		find: func(tx inventory.Tx, name string) (inventory.Operation, error) {
			o, err := tx.FindOperation(name)
			return told(o), err
		},
	})
	register(s.rest, operation{
		method: http.MethodGet, path: "/operations", id: "list-operations", scope: ofPools, tag: "operations",
		summary: "List what is being done with hosts and what was, latest first", errors: []int{http.StatusNotFound},
	},
		func(req *Request, in *operationQuery) (out *listed[inventory.Operation], err error) {
			err = s.rest.store.Read(req, func(tx inventory.Tx) error {
				id, err := in.hostID(tx)
				if err != nil {
					return err
				}
				rows, err := tx.ListOperations(inventory.OperationFilter{HostID: id, Machine: in.Machine, Kind: in.Kind, IsOpen: in.Open}, in.more())
				for i := range rows {
					rows[i] = told(rows[i])
				}
				out = pageOf(rows, in.Limit, operationID)
				return err
			})
			return out, err
		})
	register(s.rest, operation{
		method: http.MethodPost, path: "/operations/{name}/cancel", id: "cancel-operation", scope: ofPools, tag: "operations",
		summary: "End what is being done with a host", errors: []int{http.StatusNotFound, http.StatusConflict},
		about: "The host is quarantined where it would not be safe to go on from there.",
	},
		func(req *Request, in *nameInput) (*one[inventory.Operation], error) {
			err := s.rest.store.Read(req, func(tx inventory.Tx) error {
				_, err := tx.FindOperation(in.Name)
				return err
			})
			if err != nil {
				return nil, err
			}
			o, err := s.cfg.Lifecycle.CancelOperation(req, in.Name, s.rest.asker(req))
			return &one[inventory.Operation]{ETag: etag(o.Version), Body: told(o)}, err
		})
}

func operationID(o inventory.Operation) string { return o.ID }

// told returns an operation as it may be told: the result of a rotation is a password, if a sealed one.
func told(o inventory.Operation) inventory.Operation {
	if o.Kind == inventory.OpRotate || o.Step == inventory.StepBMCUser {
		o.Result = nil
	}
	return o
}
