package rest

import (
	"encoding/json"
	"fmt"

	"slipway.dev/slipway/inventory"
)

// ChangedSince refuses to take back an edit of what has changed since.
func ChangedSince(a inventory.Audit, by string) error {
	return inventory.Errorf(inventory.Conflict, "%s %s has changed since entry %d%s", a.Noun, a.Name, a.ID, by).
		WithHint("undo the later change first, or change it by hand; slipway audit list --noun %s --name %s shows what was done", a.Noun, a.Name)
}

// undoer is how edits of a noun are undone.
func (n Noun[T]) undoer(f *Frame) Undoer {
	return func(req *Request, a inventory.Audit, isDryRun bool) (*Written, error) {
		// The edit left this version. With any other, somebody has changed the item since, and the undo fails.
		o := WriteOptions{DryRun: isDryRun, IfMatch: ETag(a.Version)}
		ref := PlainRef(a.Name)
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
		return n.PutOne(req, f, &PutInput[T]{WriteOptions: o, NameRef: ref, Body: item}, fmt.Sprintf("brought back to before entry %d of the audit", a.ID))
	}
}

// undoCreate deletes what was created, unless it carries by now what no undo brings back.
func (n Noun[T]) undoCreate(req *Request, f *Frame, a inventory.Audit, in *deleteInput) (*Written, error) {
	if n.Remove == nil {
		return nil, inventory.Errorf(inventory.Conflict, "entry %d cannot be undone: a %s is not simply deleted", a.ID, n.Singular).
			WithHint("slipway %s -h shows how it ends", n.Singular)
	}
	// Nothing depends on such a noun, so that a delete loses nothing more.
	if n.Burden == nil {
		return n.deleteOne(req, f, in)
	}
	err := f.Store.Read(req, func(tx inventory.Tx) error {
		item, err := n.Find(tx, a.Name)
		if err != nil {
			return err
		}
		why, err := n.Burden(tx, item)
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
