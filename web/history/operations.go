package history

import (
	"net/http"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

// operationQuery narrows the list of operations.
type operationQuery struct {
	rest.Page
	rest.ByHost
	Machine string                  `query:"machine" doc:"Only those for this machine" maxLength:"63"`
	Kind    inventory.OperationKind `query:"kind" enum:"inspect,install,reinstall,release,clean,power,remediate,rotate"`
	Open    bool                    `query:"open" doc:"Only those under way"`
}

// addOperations registers the operations on what is being done with hosts.
func (s *Server) addOperations() {
	rest.AddNoun(s.rest, rest.Noun[inventory.Operation]{
		Singular: "operation", Plural: "operations", Scope: rest.OfPools, Article: "an",
		Name:    operationID,
		Version: func(o inventory.Operation) int64 { return o.Version },
		Find: func(tx inventory.Tx, name string) (inventory.Operation, error) {
			o, err := tx.FindOperation(name)
			return Told(o), err
		},
	})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/operations", ID: "list-operations", AtAny: true, Scope: rest.OfPools, Tag: "operations",
		Summary: "List what is being done with hosts and what was, latest first", Errors: []int{http.StatusNotFound},
	},
		func(req *rest.Request, in *operationQuery) (out *rest.Listed[inventory.Operation], err error) {
			err = s.rest.Store.Read(req, func(tx inventory.Tx) error {
				id, err := in.HostID(tx)
				if err != nil {
					return err
				}
				rows, err := tx.ListOperations(inventory.OperationFilter{HostID: id, Machine: in.Machine, Kind: in.Kind, IsOpen: in.Open}, in.More())
				for i := range rows {
					rows[i] = Told(rows[i])
				}
				out = rest.PageOf(rows, in.Limit, operationID)
				return err
			})
			return out, err
		})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: "/operations/{name}/cancel", ID: "cancel-operation", Scope: rest.OfPools, Tag: "operations",
		Summary: "End what is being done with a host", Errors: []int{http.StatusNotFound, http.StatusConflict},
		About: "The host is quarantined where it would not be safe to go on from there.",
	},
		func(req *rest.Request, in *rest.NameInput) (*rest.One[inventory.Operation], error) {
			err := s.rest.Store.Read(req, func(tx inventory.Tx) error {
				_, err := tx.FindOperation(in.Name)
				return err
			})
			if err != nil {
				return nil, err
			}
			o, err := s.cfg.Engine.CancelOperation(req, in.Name, s.rest.Asker(req))
			return &rest.One[inventory.Operation]{ETag: rest.ETag(o.Version), Body: Told(o)}, err
		})
}

func operationID(o inventory.Operation) string { return o.ID }

// Told returns an operation as its readers may see it. The result of a rotation is a password, if a sealed one.
func Told(o inventory.Operation) inventory.Operation {
	if o.Kind == inventory.OpRotate || o.Step == inventory.StepBMCUser {
		o.Result = nil
	}
	return o
}
