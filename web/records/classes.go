package records

import (
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

// addClasses registers the operations on classes of DHCP clients.
func (s *Server) addClasses() {
	now := s.cfg.Now
	rest.AddNoun(s.rest, rest.Noun[inventory.Class]{
		Singular: "class", Plural: "classes", Needs: inventory.Admin, Scope: rest.OfNobody, Article: "a",
		Name:    func(c inventory.Class) string { return c.Name },
		Version: func(c inventory.Class) int64 { return c.Version },
		Prepare: func(_ inventory.Tx, in *inventory.Class, name string, old *inventory.Class) error {
			if err := rest.SameName("class", &in.Name, name); err != nil {
				return err
			}
			if old != nil {
				in.CreatedAt, in.UpdatedAt, in.Version = old.CreatedAt, old.UpdatedAt, old.Version
			}
			return in.Validate()
		},
		Find: func(tx inventory.Tx, name string) (inventory.Class, error) { return tx.Classes().Find(name) },
		List: func(tx inventory.Tx, p rest.Page) (*rest.Listed[inventory.Class], error) {
			all, err := tx.Classes().List(inventory.Page{})
			return rest.Cut(all, p, func(c inventory.Class) string { return c.Name }), err
		},
		Create: func(tx inventory.Tx, in *inventory.Class) error { return tx.Classes().Create(in, now()) },
		Update: func(tx inventory.Tx, in *inventory.Class) error { return tx.Classes().Update(in, now()) },
		Remove: func(tx inventory.Tx, name string) error { return tx.Classes().Delete(name) },
	})
}
