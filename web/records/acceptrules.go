package records

import (
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

// addAcceptRules registers the operations on accept rules.
func (s *Server) addAcceptRules() {
	now := s.cfg.Now
	rest.AddNoun(s.rest, rest.Noun[inventory.AcceptRule]{
		Singular: "acceptrule", Plural: "acceptrules", Article: "an", Needs: inventory.Admin,
		Name:    func(r inventory.AcceptRule) string { return r.Name },
		Version: func(r inventory.AcceptRule) int64 { return r.Version },
		Prepare: func(_ inventory.Tx, in *inventory.AcceptRule, name string, old *inventory.AcceptRule) error {
			if err := rest.SameName("acceptrule", &in.Name, name); err != nil {
				return err
			}
			if old != nil {
				in.CreatedAt, in.UpdatedAt, in.Version = old.CreatedAt, old.UpdatedAt, old.Version
			}
			return in.Validate()
		},
		Find: func(tx inventory.Tx, name string) (inventory.AcceptRule, error) { return tx.AcceptRules().Find(name) },
		List: func(tx inventory.Tx, p rest.Page) (*rest.Listed[inventory.AcceptRule], error) {
			all, err := tx.AcceptRules().List(inventory.Page{})
			return rest.Cut(all, p, func(r inventory.AcceptRule) string { return r.Name }), err
		},
		Create: func(tx inventory.Tx, in *inventory.AcceptRule) error { return tx.AcceptRules().Create(in, now()) },
		Update: func(tx inventory.Tx, in *inventory.AcceptRule) error { return tx.AcceptRules().Update(in, now()) },
		Remove: func(tx inventory.Tx, name string) error { return tx.AcceptRules().Delete(name) },
	})
}
