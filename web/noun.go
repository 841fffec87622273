package web

import (
	"net/http"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision"
)

// noun describes a noun that is named by one text and written as a whole. All nouns that work like this share their
// operations; functions that are nil leave an operation out.
type noun[T any] struct {
	singular, plural string
	article          string // a or an
	// needs and readNeeds are the roles for writes and reads, as in operation, and scope says of what reads speak. Writes need
	// the role everywhere.
	needs, readNeeds inventory.UserRole
	scope            scope
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
	// vet looks at what a write would store, before it and outside of its transaction, and says what that does to hosts.
	vet func(req *Request, item *T) (*provision.Impact, error)
	// vetGone looks in the same way at what a delete would take away.
	vetGone func(req *Request, item *T) (*provision.Impact, error)
	// burden says what would be lost with an item besides itself, which no undo brings back; "" when nothing is.
	burden func(tx inventory.Tx, item T) (string, error)
	// counts says how much of what hangs on an item, by the words of foresight; how tells apart what is done to it, "" for what
	// needs no word but the deletion, whose after is nil.
	counts func(tx inventory.Tx, item T) (map[string]int, error)
	how    func(before, after *T) string
	// body and within are the limits of a write, where they are not the usual ones.
	body   int64
	within time.Duration
}

// Input types that all these nouns share.
type (
	nameInput struct {
		NameRef
	}
	createInput[T any] struct {
		DryRun bool `query:"dryRun" doc:"Check everything and show what would change, but change nothing"`
		Body   T
	}
	putInput[T any] struct {
		WriteOptions
		NameRef
		Body T
	}
	deleteInput struct {
		WriteOptions
		NameRef
	}
)

// NameRef is the name in an address. The router leaves names escaped in an address with an escaped slash.
type NameRef struct {
	Name    string `path:"name" maxLength:"255"`
	isPlain bool
}

// NamedThing is how a request names what it is about.
func (n *NameRef) NamedThing() string { return n.Name }

// plainRef is the reference to a thing by its name as it is.
func plainRef(name string) NameRef { return NameRef{Name: name, isPlain: true} }

// Resolve implements huma.Resolver. It may be called more than once.
func (n *NameRef) Resolve(ctx huma.Context) []error {
	if u := ctx.URL(); u.RawPath != "" && !n.isPlain {
		if plain, err := url.PathUnescape(n.Name); err == nil {
			n.Name = plain
		}
	}
	n.isPlain = true
	return nil
}

// addNoun registers the operations of a noun.
func addNoun[T any](f *Frame, n noun[T]) {
	if n.list != nil {
		register(f, operation{method: http.MethodGet, path: "/" + n.plural, id: "list-" + n.plural, tag: n.plural, summary: "List " + n.plural, needs: n.readNeeds, scope: n.scope},
			func(req *Request, in *Page) (out *listed[T], err error) {
				err = f.store.Read(req, func(tx inventory.Tx) error {
					out, err = n.list(tx, *in)
					return err
				})
				return out, err
			})
	}
	register(f, operation{
		method: http.MethodGet, path: "/" + n.plural + "/{name}", id: "get-" + n.singular, tag: n.plural,
		summary: "Show " + n.article + " " + n.singular, errors: []int{http.StatusNotFound}, needs: n.readNeeds, scope: n.scope,
	},
		func(req *Request, in *nameInput) (*one[T], error) {
			var item T
			err := f.store.Read(req, func(tx inventory.Tx) (err error) {
				item, err = n.find(tx, in.Name)
				return err
			})
			return &one[T]{ETag: etag(n.version(item)), Body: item}, err
		})
	if n.create != nil {
		addNounWrites(f, n)
		f.undoers[n.singular] = n.undoer(f)
	}
	if n.remove != nil {
		register(f, operation{
			method: http.MethodDelete, path: "/" + n.plural + "/{name}", id: "delete-" + n.singular, tag: n.plural,
			summary: "Delete " + n.article + " " + n.singular, dry: true, status: http.StatusNoContent, needs: n.needs,
			errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed},
		},
			func(req *Request, in *deleteInput) (*written, error) { return n.deleteOne(req, f, in) })
	}
}

func addNounWrites[T any](f *Frame, n noun[T]) {
	var zero T
	register(f, operation{
		method: http.MethodPost, path: "/" + n.plural, id: "create-" + n.singular, tag: n.plural,
		summary: "Create " + n.article + " " + n.singular, dry: true, result: zero, status: http.StatusCreated, needs: n.needs,
		errors: []int{http.StatusConflict, http.StatusNotFound}, body: n.body, within: n.within,
	},
		func(req *Request, in *createInput[T]) (*written, error) {
			return n.createOne(req, f, in.Body, in.DryRun)
		})
	register(f, operation{
		method: http.MethodPut, path: "/" + n.plural + "/{name}", id: "put-" + n.singular, tag: n.plural,
		summary: "Make " + n.article + " " + n.singular + " as given, whether it exists or not", dry: true, result: zero, needs: n.needs,
		errors: []int{http.StatusConflict, http.StatusNotFound, http.StatusPreconditionFailed}, body: n.body, within: n.within,
	},
		func(req *Request, in *putInput[T]) (*written, error) { return n.putOne(req, f, in, "changed") })
}

func (n noun[T]) createOne(req *Request, f *Frame, in T, isDryRun bool) (*written, error) {
	impact, err := n.vetted(req, f, in, "", WriteOptions{})
	if err != nil {
		return nil, err
	}
	var item T
	err = f.write(req, isDryRun, func(tx inventory.Tx) error {
		item = in
		if err := n.prepare(tx, &item, "", nil); err != nil {
			return err
		}
		if err := n.create(tx, &item); err != nil {
			return err
		}
		edited(req, n.singular, n.name(item), inventory.AuditCreate, nil, item, n.version(item))
		return f.changed(req, tx, n.singular+"/"+n.name(item), n.singular+" "+n.name(item)+" created")
	})
	if err != nil {
		return nil, err
	}
	return n.respond(nil, &item, isDryRun, http.StatusCreated).with(impact), nil
}

// vetted has vet look at an input as it would be stored. What the write itself will refuse or leave alone is not looked
// at. The name is that of a put, "" for a create.
func (n noun[T]) vetted(req *Request, f *Frame, in T, name string, o WriteOptions) (*provision.Impact, error) {
	if n.vet == nil || !f.vets {
		return nil, nil
	}
	isIdle := false
	item := in
	err := f.store.Read(req, func(tx inventory.Tx) error {
		var old *T
		key := name
		if key == "" {
			key = n.name(in)
		}
		stored, err := n.find(tx, key)
		switch {
		case err == nil && (name == "" || o.check(n.singular, name, n.version(stored)) != nil):
			isIdle = true
			return nil
		case err == nil:
			old = &stored
		case !inventory.IsKind(err, inventory.NotFound):
			return err
		}
		if err := n.prepare(tx, &item, name, old); err != nil {
			return err
		}
		isIdle = old != nil && len(compare(stored, item)) == 0 && !isTakenOver(req, stored)
		return nil
	})
	if err != nil || isIdle {
		return nil, err
	}
	signed(req, &item)
	return n.vet(req, &item)
}

// putOne makes a thing as given; done says in the event what was done to one that was there.
func (n noun[T]) putOne(req *Request, f *Frame, in *putInput[T], done string) (*written, error) {
	impact, err := n.vetted(req, f, in.Body, in.Name, in.WriteOptions)
	if err != nil {
		return nil, err
	}
	var (
		item T
		old  *T
		does string
	)
	err = f.write(req, in.DryRun, func(tx inventory.Tx) error {
		item, old = in.Body, nil
		stored, err := n.find(tx, in.Name)
		switch {
		case err == nil:
			old = &stored
			if err := in.check(n.singular, in.Name, n.version(stored)); err != nil {
				return err
			}
		case !inventory.IsKind(err, inventory.NotFound):
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
			edited(req, n.singular, n.name(item), inventory.AuditCreate, nil, item, n.version(item))
			return f.changed(req, tx, n.singular+"/"+n.name(item), n.singular+" "+n.name(item)+" created")
		}
		changes := compare(stored, item)
		if len(changes) == 0 && !isTakenOver(req, stored) {
			item = stored
			return nil
		}
		if in.DryRun {
			if does, err = n.foreseen(tx, old, &item); err != nil {
				return err
			}
		}
		if err := n.update(tx, &item); err != nil {
			return err
		}
		edited(req, n.singular, n.name(item), inventory.AuditUpdate, stored, item, n.version(item))
		return f.changed(req, tx, n.singular+"/"+n.name(item), n.singular+" "+n.name(item)+" "+done+" ("+fieldNames(changes)+")")
	})
	if err != nil {
		return nil, err
	}
	return n.respond(old, &item, in.DryRun, http.StatusOK).with(impact).does(does), nil
}

func (n noun[T]) deleteOne(req *Request, f *Frame, in *deleteInput) (*written, error) {
	var (
		item   T
		impact *provision.Impact
		does   string
	)
	if n.vetGone != nil && f.vets {
		err := f.store.Read(req, func(tx inventory.Tx) (err error) {
			item, err = n.find(tx, in.Name)
			return err
		})
		if err != nil {
			return nil, err
		}
		if impact, err = n.vetGone(req, &item); err != nil {
			return nil, err
		}
	}
	err := f.write(req, in.DryRun, func(tx inventory.Tx) (err error) {
		if item, err = n.find(tx, in.Name); err != nil {
			return err
		}
		if err := in.check(n.singular, in.Name, n.version(item)); err != nil {
			return err
		}
		if err := n.fix(req, tx, item); err != nil {
			return err
		}
		if in.DryRun {
			if does, err = n.foreseen(tx, &item, nil); err != nil {
				return err
			}
		}
		if err := n.remove(tx, in.Name); err != nil {
			return err
		}
		edited(req, n.singular, n.name(item), inventory.AuditDelete, item, nil, 0)
		return f.changed(req, tx, n.singular+"/"+n.name(item), n.singular+" "+n.name(item)+" deleted")
	})
	if err != nil {
		return nil, err
	}
	return n.respond(&item, nil, in.DryRun, http.StatusNoContent).with(impact).does(does), nil
}

// respond makes the response to a write that left item in place of old; nil is none.
func (n noun[T]) respond(old, item *T, isDryRun bool, status int) *written {
	if isDryRun {
		d := Diff{IsDryRun: true, Changes: compare(deref(old), deref(item)), Result: deref(item)}
		return &written{Status: http.StatusOK, Body: d}
	}
	if item == nil {
		return &written{Status: status}
	}
	return &written{Status: status, ETag: etag(n.version(*item)), Body: *item}
}

// with adds to a dry run what it would do to hosts.
func (w *written) with(i *provision.Impact) *written {
	if d, ok := w.Body.(Diff); ok {
		d.Impact = i
		w.Body = d
	}
	return w
}

// deref turns a nil pointer into a nil interface.
func deref[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
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

// signed writes into a profile or layer who saves it, before it is looked at.
func signed(req *Request, item any) {
	switch x := item.(type) {
	case *inventory.Profile:
		x.Saved = savedBy(req)
	case *inventory.Layer:
		x.Saved = savedBy(req)
	}
}

// isTakenOver reports whether an admin saves, as it is, what no admin has saved: it then counts as an admin's word.
func isTakenOver(req *Request, stored any) bool {
	if !savedBy(req).SavedByAdmin {
		return false
	}
	switch x := stored.(type) {
	case inventory.Profile:
		return !x.SavedByAdmin
	case inventory.Layer:
		return !x.SavedByAdmin
	}
	return false
}
