package rest

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/foresight"
)

// Noun describes a noun that is named by one text and written as a whole. All nouns that work like this share their
// operations; functions that are nil leave an operation out.
type Noun[T any] struct {
	Singular, Plural string
	Article          string // a or an
	// Needs and ReadNeeds are the roles for writes and reads, as in Operation. Scope limits what reads show. A write needs
	// its role everywhere, not only in a pool.
	Needs, ReadNeeds inventory.UserRole
	Scope            Scope
	AtLeader         bool // part of it is in the memory of the leader, which alone answers reads
	Name             func(T) string
	Version          func(T) int64
	// Prepare makes an input ready: it takes the name from the path ("" in a create), fills in defaults, and checks it. old
	// is the stored one, nil for a create. It runs twice where Vet is set: once to look ahead, once in the write.
	Prepare func(tx inventory.Tx, in *T, name string, old *T) error
	Find    func(tx inventory.Tx, name string) (T, error)
	List    func(tx inventory.Tx, p Page) (*Listed[T], error)
	Create  func(tx inventory.Tx, in *T) error
	Update  func(tx inventory.Tx, in *T) error
	Remove  func(tx inventory.Tx, name string) error
	// Vet says what a write would do to hosts. It runs before the write and outside of its transaction: it may render
	// configurations, and the store's only writer must not wait for that.
	Vet func(req *Request, item *T) (*configuration.Impact, error)
	// VetGone does the same for a delete.
	VetGone func(req *Request, item *T) (*configuration.Impact, error)
	// Burden says what a delete would lose besides the item, and no undo brings back; "" for nothing.
	Burden func(tx inventory.Tx, item T) (string, error)
	// Counts counts what depends on an item, by the words of foresight. How names a kind of change, and "" needs no words.
	// after is nil for a deletion.
	Counts func(tx inventory.Tx, item T) (map[string]int, error)
	How    func(before, after *T) string
	// Body and Within limit the size and time of a write, where the usual limits do not fit.
	Body   int64
	Within time.Duration
}

// Input types that all plain nouns share.
type (
	NameInput struct {
		NameRef
	}
	CreateInput[T any] struct {
		DryRun bool `query:"dryRun" doc:"Check everything and show what would change, but change nothing"`
		Body   T
	}
	PutInput[T any] struct {
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

// PlainRef is the reference to a thing by its name as it is.
func PlainRef(name string) NameRef { return NameRef{Name: name, isPlain: true} }

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

func (n Noun[T]) createOne(req *Request, f *Frame, in T, isDryRun bool) (*Written, error) {
	impact, err := n.vetted(req, f, in, "", WriteOptions{})
	if err != nil {
		return nil, err
	}
	var item T
	err = f.Write(req, isDryRun, func(tx inventory.Tx) error {
		item = in
		if err := n.Prepare(tx, &item, "", nil); err != nil {
			return err
		}
		if err := n.Create(tx, &item); err != nil {
			return err
		}
		Edited(req, n.Singular, n.Name(item), inventory.AuditCreate, nil, item, n.Version(item))
		return f.Changed(req, tx, n.Singular+"/"+n.Name(item), n.Singular+" "+n.Name(item)+" created")
	})
	if err != nil {
		return nil, err
	}
	return n.Respond(nil, &item, isDryRun, http.StatusCreated).with(impact), nil
}

// vetted has vet look at an input as it would be stored. What the write itself will refuse or leave alone is not looked
// at. The name is that of a put, "" for a create.
func (n Noun[T]) vetted(req *Request, f *Frame, in T, name string, o WriteOptions) (*configuration.Impact, error) {
	if n.Vet == nil || !f.vets {
		return nil, nil
	}
	isIdle := false
	item := in
	err := f.Store.Read(req, func(tx inventory.Tx) error {
		var old *T
		key := cmp.Or(name, n.Name(in))
		stored, err := n.Find(tx, key)
		switch {
		case err == nil && (name == "" || o.Check(n.Singular, name, n.Version(stored)) != nil):
			isIdle = true
			return nil
		case err == nil:
			old = &stored
		case !inventory.IsKind(err, inventory.NotFound):
			return err
		}
		if err := n.Prepare(tx, &item, name, old); err != nil {
			return err
		}
		isIdle = old != nil && len(Compare(stored, item)) == 0 && !isTakenOver(req, stored)
		return nil
	})
	if err != nil || isIdle {
		return nil, err
	}
	Signed(req, &item)
	return n.Vet(req, &item)
}

// PutOne makes a thing as given; done says in the event what was done to one that was there.
func (n Noun[T]) PutOne(req *Request, f *Frame, in *PutInput[T], done string) (*Written, error) {
	impact, err := n.vetted(req, f, in.Body, in.Name, in.WriteOptions)
	if err != nil {
		return nil, err
	}
	var (
		item T
		old  *T
		does string
	)
	err = f.Write(req, in.DryRun, func(tx inventory.Tx) error {
		item, old = in.Body, nil
		stored, err := n.Find(tx, in.Name)
		switch {
		case err == nil:
			old = &stored
			// Inside the transaction, so that nobody can write between the check of If-Match and the update.
			if err := in.Check(n.Singular, in.Name, n.Version(stored)); err != nil {
				return err
			}
		case !inventory.IsKind(err, inventory.NotFound):
			return err
		case in.IfMatch != "":
			return &StatusError{Status: http.StatusPreconditionFailed, Err: inventory.Errorf(inventory.Conflict, "%s %s does not exist", n.Singular, in.Name).
				WithHint("leave out If-Match to create it")}
		}
		if err := n.Prepare(tx, &item, in.Name, old); err != nil {
			return err
		}
		if old == nil {
			if err := n.Create(tx, &item); err != nil {
				return err
			}
			Edited(req, n.Singular, n.Name(item), inventory.AuditCreate, nil, item, n.Version(item))
			return f.Changed(req, tx, n.Singular+"/"+n.Name(item), n.Singular+" "+n.Name(item)+" created")
		}
		changes := Compare(stored, item)
		// A PUT that changes nothing writes nothing: no version and no event.
		if len(changes) == 0 && !isTakenOver(req, stored) {
			item = stored
			return nil
		}
		if in.DryRun {
			if does, err = n.foreseen(tx, old, &item); err != nil {
				return err
			}
		}
		if err := n.Update(tx, &item); err != nil {
			return err
		}
		Edited(req, n.Singular, n.Name(item), inventory.AuditUpdate, stored, item, n.Version(item))
		return f.Changed(req, tx, n.Singular+"/"+n.Name(item), n.Singular+" "+n.Name(item)+" "+done+" ("+FieldNames(changes)+")")
	})
	if err != nil {
		return nil, err
	}
	return n.Respond(old, &item, in.DryRun, http.StatusOK).with(impact).Does(does), nil
}

func (n Noun[T]) deleteOne(req *Request, f *Frame, in *deleteInput) (*Written, error) {
	var (
		item   T
		impact *configuration.Impact
		does   string
	)
	if n.VetGone != nil && f.vets {
		err := f.Store.Read(req, func(tx inventory.Tx) (err error) {
			item, err = n.Find(tx, in.Name)
			return err
		})
		if err != nil {
			return nil, err
		}
		if impact, err = n.VetGone(req, &item); err != nil {
			return nil, err
		}
	}
	err := f.Write(req, in.DryRun, func(tx inventory.Tx) (err error) {
		if item, err = n.Find(tx, in.Name); err != nil {
			return err
		}
		if err := in.Check(n.Singular, in.Name, n.Version(item)); err != nil {
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
		if err := n.Remove(tx, in.Name); err != nil {
			return err
		}
		Edited(req, n.Singular, n.Name(item), inventory.AuditDelete, item, nil, 0)
		return f.Changed(req, tx, n.Singular+"/"+n.Name(item), n.Singular+" "+n.Name(item)+" deleted")
	})
	if err != nil {
		return nil, err
	}
	return n.Respond(&item, nil, in.DryRun, http.StatusNoContent).with(impact).Does(does), nil
}

// foreseen says what a deletion or a change would do besides what it writes, "" for nothing worth a word. after is nil for a deletion.
func (n Noun[T]) foreseen(tx inventory.Tx, before, after *T) (string, error) {
	if before == nil || after != nil && n.How == nil {
		return "", nil
	}
	t := foresight.Thing{Noun: n.Singular, Name: n.Name(*before)}
	if n.How != nil {
		if t.How = n.How(before, after); t.How == "" && after != nil {
			return "", nil
		}
	}
	if n.Counts != nil {
		var err error
		if t.N, err = n.Counts(tx, *before); err != nil {
			return "", err
		}
	}
	return foresight.Delete(t), nil
}

// fix notes why the deletion of an item could not be undone.
func (n Noun[T]) fix(req *Request, tx inventory.Tx, item T) error {
	if n.Burden == nil {
		return nil
	}
	why, err := n.Burden(tx, item)
	if err == nil && why != "" {
		req.Trail.Fix(strings.Replace(why, " go ", " went ", 1))
	}
	return err
}

// Respond makes the response to a write that left item in place of old; nil is none.
func (n Noun[T]) Respond(old, item *T, isDryRun bool, status int) *Written {
	if isDryRun {
		d := Diff{IsDryRun: true, Changes: Compare(Deref(old), Deref(item)), Result: Deref(item)}
		return &Written{Status: http.StatusOK, Body: d}
	}
	if item == nil {
		return &Written{Status: status}
	}
	return &Written{Status: status, ETag: ETag(n.Version(*item)), Body: *item}
}

// with adds to a dry run what it would do to hosts.
func (w *Written) with(i *configuration.Impact) *Written {
	if d, ok := w.Body.(Diff); ok {
		d.Impact = i
		w.Body = d
	}
	return w
}

// Does adds to a dry run what it would do.
func (w *Written) Does(text string) *Written {
	if d, ok := w.Body.(Diff); ok && text != "" {
		d.Does = strings.TrimSuffix(text, ".")
		w.Body = d
	}
	return w
}

// Deref turns a nil pointer into a nil interface.
func Deref[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// SameName takes the name from the path; a body may repeat it, but not say another.
func SameName(noun string, in *string, path string) error {
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

// Signed notes in a profile or layer who saves it, before the server judges it.
func Signed(req *Request, item any) {
	switch x := item.(type) {
	case *inventory.Profile:
		x.Saved = SavedBy(req)
	case *inventory.Layer:
		x.Saved = SavedBy(req)
	}
}

// isTakenOver reports whether an admin saves, as it is, what no admin has saved: it then counts as an admin's word.
func isTakenOver(req *Request, stored any) bool {
	if !SavedBy(req).SavedByAdmin {
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
