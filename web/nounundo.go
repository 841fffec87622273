package web

import (
	"encoding/json"
	"fmt"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/foresight"
)

// undoer takes back an edit of one noun, through the same checks that the edit itself went through.
type undoer func(req *Request, a inventory.Audit, isDryRun bool) (*written, error)

func changedSince(a inventory.Audit, by string) error {
	return inventory.Errorf(inventory.Conflict, "%s %s has changed since entry %d%s", a.Noun, a.Name, a.ID, by).
		WithHint("undo the later change first, or change it by hand; slipway audit list --noun %s --name %s shows what was done", a.Noun, a.Name)
}

// undoer is how edits of a noun are undone.
func (n noun[T]) undoer(f *Frame) undoer {
	return func(req *Request, a inventory.Audit, isDryRun bool) (*written, error) {
		o := WriteOptions{DryRun: isDryRun, IfMatch: etag(a.Version)}
		ref := plainRef(a.Name)
		if a.Change == inventory.AuditCreate {
			return n.undoCreate(req, f, a, &deleteInput{WriteOptions: o, NameRef: ref})
		}
		var item T
		if err := json.Unmarshal(a.Before, &item); err != nil {
			return nil, fmt.Errorf("decode entry %d of the audit: %w", a.ID, err)
		}
		if a.Change == inventory.AuditDelete {
			return n.createOne(req, f, item, isDryRun)
		}
		return n.putOne(req, f, &putInput[T]{WriteOptions: o, NameRef: ref, Body: item}, fmt.Sprintf("brought back to before entry %d of the audit", a.ID))
	}
}

// undoCreate deletes what was created, unless it carries by now what no undo brings back.
func (n noun[T]) undoCreate(req *Request, f *Frame, a inventory.Audit, in *deleteInput) (*written, error) {
	if n.remove == nil {
		return nil, inventory.Errorf(inventory.Conflict, "entry %d cannot be undone: a %s is not simply deleted", a.ID, n.singular).
			WithHint("slipway %s -h shows how it ends", n.singular)
	}
	if n.burden == nil {
		return n.deleteOne(req, f, in)
	}
	err := f.store.Read(req, func(tx inventory.Tx) error {
		item, err := n.find(tx, a.Name)
		if err != nil {
			return err
		}
		why, err := n.burden(tx, item)
		if err == nil && why != "" {
			err = inventory.Errorf(inventory.Conflict, "%s %s is in use since entry %d: %s", a.Noun, a.Name, a.ID, why).
				WithHint("to delete it by hand: slipway %s delete %s", a.Noun, a.Name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return n.deleteOne(req, f, in)
}

// foreseen says what a deletion or a change would do besides what it writes, "" for nothing worth a word. after is nil for a deletion.
func (n noun[T]) foreseen(tx inventory.Tx, before, after *T) (string, error) {
	if before == nil || after != nil && n.how == nil {
		return "", nil
	}
	t := foresight.Thing{Noun: n.singular, Name: n.name(*before)}
	if n.how != nil {
		if t.How = n.how(before, after); t.How == "" && after != nil {
			return "", nil
		}
	}
	if n.counts != nil {
		var err error
		if t.N, err = n.counts(tx, *before); err != nil {
			return "", err
		}
	}
	return foresight.Delete(t), nil
}

// does adds to a dry run what it would do.
func (w *written) does(text string) *written {
	if d, ok := w.Body.(Diff); ok && text != "" {
		d.Does = strings.TrimSuffix(text, ".")
		w.Body = d
	}
	return w
}

// fix notes why the deletion of an item could not be undone.
func (n noun[T]) fix(req *Request, tx inventory.Tx, item T) error {
	if n.burden == nil {
		return nil
	}
	why, err := n.burden(tx, item)
	if err == nil && why != "" {
		req.trail.fix(strings.Replace(why, " go ", " went ", 1))
	}
	return err
}
