package rest

import (
	"net/http"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
)

// AddNoun registers the operations of a noun.
func AddNoun[T any](f *Frame, n Noun[T]) {
	if n.List != nil {
		Register(f, Operation{
			Method: http.MethodGet, Path: "/" + n.Plural, ID: "list-" + n.Plural, Tag: n.Plural, Summary: "List " + n.Plural,
			Needs: n.ReadNeeds, Scope: n.Scope, AtAny: !n.AtLeader,
		},
			func(req *Request, in *Page) (out *Listed[T], err error) {
				return Read(req, f.Store, func(tx inventory.Tx) (*Listed[T], error) { return n.List(tx, *in) })
			})
	}
	Register(f, Operation{
		Method: http.MethodGet, Path: "/" + n.Plural + "/{name}", ID: "get-" + n.Singular, Tag: n.Plural,
		Summary: "Show " + n.Article + " " + n.Singular, Errors: []int{http.StatusNotFound}, Needs: n.ReadNeeds, Scope: n.Scope,
		AtAny: !n.AtLeader,
	},
		func(req *Request, in *NameInput) (*One[T], error) {
			item, err := Read(req, f.Store, func(tx inventory.Tx) (T, error) { return n.Find(tx, in.Name) })
			return &One[T]{ETag: ETag(n.Version(item)), Body: item}, err
		})
	if n.Create != nil {
		addNounWrites(f, n)
		f.AddUndoer(n.Singular, n.undoer(f))
	}
	if n.Remove != nil {
		Register(f, Operation{
			Method: http.MethodDelete, Path: "/" + n.Plural + "/{name}", ID: "delete-" + n.Singular, Tag: n.Plural,
			Summary: "Delete " + n.Article + " " + n.Singular, Dry: true, Status: http.StatusNoContent, Needs: n.Needs,
			Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed},
		},
			func(req *Request, in *deleteInput) (*Written, error) { return n.deleteOne(req, f, in) })
	}
}

func addNounWrites[T any](f *Frame, n Noun[T]) {
	var zero T
	Register(f, Operation{
		Method: http.MethodPost, Path: "/" + n.Plural, ID: "create-" + n.Singular, Tag: n.Plural,
		Summary: "Create " + n.Article + " " + n.Singular, Dry: true, Result: zero, Status: http.StatusCreated, Needs: n.Needs,
		Errors: []int{http.StatusConflict, http.StatusNotFound}, Body: n.Body, Within: n.Within,
	},
		func(req *Request, in *CreateInput[T]) (*Written, error) {
			return n.createOne(req, f, in.Body, in.DryRun)
		})
	Register(f, Operation{
		Method: http.MethodPut, Path: "/" + n.Plural + "/{name}", ID: "put-" + n.Singular, Tag: n.Plural,
		Summary: "Make " + n.Article + " " + n.Singular + " as given, whether it exists or not", Dry: true, Result: zero, Needs: n.Needs,
		Errors: []int{http.StatusConflict, http.StatusNotFound, http.StatusPreconditionFailed}, Body: n.Body, Within: n.Within,
	},
		func(req *Request, in *PutInput[T]) (*Written, error) { return n.PutOne(req, f, in, "changed") })
}

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
