package web

import (
	"context"
	"errors"
	"net/http"

	"slipway.dev/slipway/inventory"
)

// noun describes a noun that is named by one text and written as a whole. All nouns that work like this share their
// operations; functions that are nil leave an operation out.
type noun[T any] struct {
	singular, plural string
	article          string // a or an
	name             func(T) string
	version          func(T) int64
	// prepare makes an input ready: it takes over the name from the path ("" in a create), fills in what was left
	// out, and checks it. old is what is stored, nil for a create.
	prepare func(tx inventory.Tx, in *T, name string, old *T) error
	find    func(tx inventory.Tx, name string) (T, error)
	list    func(tx inventory.Tx, p Page) (*listed[T], error)
	create  func(tx inventory.Tx, in *T) error
	update  func(tx inventory.Tx, in *T) error
	remove  func(tx inventory.Tx, name string) error
}

// Input types that all these nouns share.
type (
	nameInput struct {
		Name string `path:"name" maxLength:"255"`
	}
	createInput[T any] struct {
		DryRun bool `query:"dryRun" doc:"Check everything and show what would change, but change nothing"`
		Body   T
	}
	putInput[T any] struct {
		WriteOptions
		Name string `path:"name" maxLength:"255"`
		Body T
	}
	deleteInput struct {
		WriteOptions
		Name string `path:"name" maxLength:"255"`
	}
)

// addNoun registers the operations of a noun.
func addNoun[T any](s *Server, n noun[T]) {
	if n.list != nil {
		register(s, operation{method: http.MethodGet, path: "/" + n.plural, id: "list-" + n.plural, tag: n.plural, summary: "List " + n.plural},
			func(ctx context.Context, in *Page) (out *listed[T], err error) {
				err = s.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
					out, err = n.list(tx, *in)
					return err
				})
				return out, err
			})
	}
	register(s, operation{
		method: http.MethodGet, path: "/" + n.plural + "/{name}", id: "get-" + n.singular, tag: n.plural,
		summary: "Show " + n.article + " " + n.singular, errors: []int{http.StatusNotFound},
	},
		func(ctx context.Context, in *nameInput) (*one[T], error) {
			var item T
			err := s.cfg.Store.Read(ctx, func(tx inventory.Tx) (err error) {
				item, err = n.find(tx, in.Name)
				return err
			})
			return &one[T]{ETag: etag(n.version(item)), Body: item}, err
		})
	if n.create != nil {
		addNounWrites(s, n)
	}
	if n.remove != nil {
		register(s, operation{
			method: http.MethodDelete, path: "/" + n.plural + "/{name}", id: "delete-" + n.singular, tag: n.plural,
			summary: "Delete " + n.article + " " + n.singular, dry: true, status: http.StatusNoContent,
			errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed},
		},
			func(ctx context.Context, in *deleteInput) (*written, error) { return n.deleteOne(ctx, s, in) })
	}
}

func addNounWrites[T any](s *Server, n noun[T]) {
	var zero T
	register(s, operation{
		method: http.MethodPost, path: "/" + n.plural, id: "create-" + n.singular, tag: n.plural,
		summary: "Create " + n.article + " " + n.singular, dry: true, result: zero, status: http.StatusCreated,
		errors: []int{http.StatusConflict, http.StatusNotFound},
	},
		func(ctx context.Context, in *createInput[T]) (*written, error) {
			return n.createOne(ctx, s, in.Body, in.DryRun)
		})
	register(s, operation{
		method: http.MethodPut, path: "/" + n.plural + "/{name}", id: "put-" + n.singular, tag: n.plural,
		summary: "Make " + n.article + " " + n.singular + " as given, whether it exists or not", dry: true, result: zero,
		errors: []int{http.StatusConflict, http.StatusNotFound, http.StatusPreconditionFailed},
	},
		func(ctx context.Context, in *putInput[T]) (*written, error) { return n.putOne(ctx, s, in) })
}

func (n noun[T]) createOne(ctx context.Context, s *Server, in T, isDryRun bool) (*written, error) {
	var item T
	err := s.write(ctx, isDryRun, func(tx inventory.Tx) error {
		item = in
		if err := n.prepare(tx, &item, "", nil); err != nil {
			return err
		}
		if err := n.create(tx, &item); err != nil {
			return err
		}
		return s.changed(ctx, tx, n.singular+"/"+n.name(item), n.singular+" "+n.name(item)+" created")
	})
	if err != nil {
		return nil, err
	}
	return n.respond(nil, &item, isDryRun, http.StatusCreated), nil
}

func (n noun[T]) putOne(ctx context.Context, s *Server, in *putInput[T]) (*written, error) {
	var (
		item T
		old  *T
	)
	err := s.write(ctx, in.DryRun, func(tx inventory.Tx) error {
		item, old = in.Body, nil
		stored, err := n.find(tx, in.Name)
		switch {
		case err == nil:
			old = &stored
			if err := in.check(n.singular, in.Name, n.version(stored)); err != nil {
				return err
			}
		case !isKind(err, inventory.NotFound):
			return err
		case in.IfMatch != "":
			return &statusError{status: http.StatusPreconditionFailed, err: inventory.Errorf(inventory.Conflict, "%s %s does not exist", n.singular, in.Name).
				WithHint("leave out If-Match to create it")}
		}
		if err := n.prepare(tx, &item, in.Name, old); err != nil {
			return err
		}
		if old == nil {
			if err := n.create(tx, &item); err != nil {
				return err
			}
			return s.changed(ctx, tx, n.singular+"/"+n.name(item), n.singular+" "+n.name(item)+" created")
		}
		changes := diff(stored, item)
		if len(changes) == 0 {
			item = stored
			return nil
		}
		if err := n.update(tx, &item); err != nil {
			return err
		}
		return s.changed(ctx, tx, n.singular+"/"+n.name(item), n.singular+" "+n.name(item)+" changed ("+fieldNames(changes)+")")
	})
	if err != nil {
		return nil, err
	}
	return n.respond(old, &item, in.DryRun, http.StatusOK), nil
}

func (n noun[T]) deleteOne(ctx context.Context, s *Server, in *deleteInput) (*written, error) {
	var item T
	err := s.write(ctx, in.DryRun, func(tx inventory.Tx) (err error) {
		if item, err = n.find(tx, in.Name); err != nil {
			return err
		}
		if err := in.check(n.singular, in.Name, n.version(item)); err != nil {
			return err
		}
		if err := n.remove(tx, in.Name); err != nil {
			return err
		}
		return s.changed(ctx, tx, n.singular+"/"+n.name(item), n.singular+" "+n.name(item)+" deleted")
	})
	if err != nil {
		return nil, err
	}
	return n.respond(&item, nil, in.DryRun, http.StatusNoContent), nil
}

// respond makes the response to a write that left item in place of old; nil is none.
func (n noun[T]) respond(old, item *T, isDryRun bool, status int) *written {
	if isDryRun {
		d := Diff{IsDryRun: true, Changes: diff(deref(old), deref(item)), Result: deref(item)}
		return &written{Status: http.StatusOK, Body: d}
	}
	if item == nil {
		return &written{Status: status}
	}
	return &written{Status: status, ETag: etag(n.version(*item)), Body: *item}
}

// deref turns a nil pointer into a nil interface.
func deref[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// isKind reports whether an error is of that kind.
func isKind(err error, k inventory.Kind) bool {
	var e *inventory.Error
	return errors.As(err, &e) && e.Kind == k
}

// sameName takes the name from the path; a body may repeat it, but not say another.
func sameName(noun string, in *string, path string) error {
	switch {
	case path == "" || *in == path:
		return nil
	case *in == "":
		*in = path
		return nil
	}
	return inventory.Errorf(inventory.Invalid, "the body names %s %s and the address %s", noun, inventory.Clean(*in, 80), inventory.Clean(path, 80)).
		WithHint("leave the name out of the body; a %s is renamed by deleting it and creating another", noun)
}
