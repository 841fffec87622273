package web

import "slipway.dev/slipway/inventory"

// addClasses registers the operations on classes of DHCP clients.
func (s *Server) addClasses() {
	now := s.cfg.Now
	addNoun(s.rest, noun[inventory.Class]{
		singular: "class", plural: "classes", needs: inventory.Admin, scope: ofNobody, article: "a",
		name:    func(c inventory.Class) string { return c.Name },
		version: func(c inventory.Class) int64 { return c.Version },
		prepare: func(_ inventory.Tx, in *inventory.Class, name string, old *inventory.Class) error {
			if err := sameName("class", &in.Name, name); err != nil {
				return err
			}
			if old != nil {
				in.CreatedAt, in.UpdatedAt, in.Version = old.CreatedAt, old.UpdatedAt, old.Version
			}
			return in.Validate()
		},
		find: func(tx inventory.Tx, name string) (inventory.Class, error) { return tx.Classes().Find(name) },
		list: func(tx inventory.Tx, p Page) (*listed[inventory.Class], error) {
			all, err := tx.Classes().List(inventory.Page{})
			return cut(all, p, func(c inventory.Class) string { return c.Name }), err
		},
		create: func(tx inventory.Tx, in *inventory.Class) error { return tx.Classes().Create(in, now()) },
		update: func(tx inventory.Tx, in *inventory.Class) error { return tx.Classes().Update(in, now()) },
		remove: func(tx inventory.Tx, name string) error { return tx.Classes().Delete(name) },
	})
}
