package rest

import (
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
)

// AddPlain registers the operations of a plain noun, as the table of nouns says. The checks come after the noun's own; they are for
// what package inventory cannot look at.
func AddPlain[R any](f *Frame, n noun.Noun[R], checks ...func(*R) error) {
	AddNoun(f, Plain(n, f.Now, func(_ inventory.Tx, in, _ *R) error {
		err := n.Validate(in)
		for _, check := range checks {
			if err == nil {
				err = check(in)
			}
		}
		return err
	}))
}

// Plain describes a plain noun to the frame, as the table of nouns says. The caller changes what differs. prepare checks an input
// that has its name, and the stamps of old; old is nil for a create.
func Plain[R any](n noun.Noun[R], now func() time.Time, prepare func(tx inventory.Tx, in, old *R) error) Noun[R] {
	return Noun[R]{
		Singular: n.One, Plural: n.Many, Article: n.Article, Needs: n.Needs, ReadNeeds: n.ReadNeeds, Scope: n.Scope,
		Name:    func(r R) string { return n.Key(&r) },
		Version: func(r R) int64 { return *n.Stamps(&r).Version },
		Prepare: func(tx inventory.Tx, in *R, name string, old *R) error {
			if err := SameName(n.One, n.Name(in), name); err != nil {
				return err
			}
			if old != nil {
				n.Keep(in, old)
			}
			return prepare(tx, in, old)
		},
		Find: func(tx inventory.Tx, name string) (R, error) { return n.Records(tx).Find(name) },
		List: func(tx inventory.Tx, p Page) (*Listed[R], error) {
			all, err := n.Records(tx).List(inventory.Page{})
			return Cut(all, p, func(r R) string { return n.Key(&r) }), err
		},
		Create: func(tx inventory.Tx, in *R) error { return n.Records(tx).Create(in, now()) },
		Update: func(tx inventory.Tx, in *R) error { return n.Records(tx).Update(in, now()) },
		Remove: func(tx inventory.Tx, name string) error { return n.Records(tx).Delete(name) },
	}
}
