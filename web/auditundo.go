package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

type undoInput struct {
	DryRun bool  `query:"dryRun" doc:"Check everything and show what would change, but change nothing"`
	ID     int64 `path:"id" minimum:"1"`
}

// undo takes back what an entry says was done.
func (s *Server) undo(req *rest.Request, in *undoInput) (*rest.Written, error) {
	a, err := s.findAudit(req, in.ID)
	if err != nil {
		return nil, err
	}
	t := req.Trail
	t.About(a.Noun, a.Name)
	t.Concern(a.HostID)
	t.Undoes(a.ID)
	if err := s.mayUndo(req, a); err != nil {
		return nil, err
	}
	w, err := s.rest.Undoers[a.Noun](req, a, in.DryRun)
	var with *rest.StatusError
	if errors.As(err, &with) && with.Status == http.StatusPreconditionFailed {
		return nil, rest.ChangedSince(a, "")
	}
	var said *inventory.Error
	if errors.As(err, &said) && said.Kind == inventory.NotFound { // it is gone, or what it needs is
		return nil, inventory.Errorf(inventory.Conflict, "entry %d cannot be undone: %s", a.ID, said.Msg)
	}
	if err != nil || in.DryRun {
		return w, err
	}
	s.rest.Finish(req, http.StatusOK, "")
	return &rest.Written{Status: http.StatusOK, Body: t.Entry()}, nil
}

// mayUndo says why an entry cannot be undone, as far as that shows without trying.
func (s *Server) mayUndo(req *rest.Request, a inventory.Audit) error {
	if why := s.whyFixed(a); why != "" {
		return inventory.Errorf(inventory.Conflict, "entry %d cannot be undone: %s", a.ID, why)
	}
	host := a.HostID
	if a.Noun == "host" { // it may be gone; the undo itself finds it, as far as the caller may
		host = ""
	}
	back := map[inventory.AuditChange]string{inventory.AuditCreate: "delete-", inventory.AuditDelete: "create-", inventory.AuditUpdate: "put-"}[a.Change] + a.Noun
	for _, id := range []string{a.Operation, back} {
		if o, ok := s.rest.Operations[id]; ok {
			if err := s.rest.Permits(req, o, host); err != nil {
				return err
			}
		}
	}
	if slices.Contains([]string{"host", "machine", "bmc"}, a.Noun) { // these change by themselves: their fields are compared
		return nil
	}
	return s.rest.Store.Read(req, func(tx inventory.Tx) error {
		rows, err := tx.ListAudits(inventory.AuditFilter{Noun: a.Noun, Name: a.Name, IsChange: true}, inventory.Page{Limit: 1})
		if err == nil && len(rows) > 0 && rows[0].ID != a.ID {
			err = rest.ChangedSince(a, fmt.Sprintf(" by %s (entry %d)", rows[0].Actor, rows[0].ID))
		}
		return err
	})
}

// whyFixed says why an entry can never be undone; "" when it may be.
func (s *Server) whyFixed(a inventory.Audit) string {
	switch {
	case a.IsRefused():
		return "it was refused, so that nothing changed"
	case a.Change == "":
		return "it is no edit, and what was done is done"
	case a.Fixed != "":
		return a.Fixed
	case s.rest.Undoers[a.Noun] == nil:
		return "the values that the API does not show are not kept"
	case a.Noun == "machine" && a.Change == inventory.AuditCreate:
		return "a machine ends by being deleted, which wipes its host"
	case a.Noun == "machine" && a.Change == inventory.AuditDelete:
		return "its host was let go of; create it again for another"
	}
	return ""
}

// addUndoers registers how hosts, machines and BMCs are undone. Those change by themselves all the time, so that what counts
// is whether the fields that the edit changed are still as it left them.
func (s *Server) addUndoers() {
	s.rest.Undoers["host"] = s.undoHost
	s.rest.Undoers["machine"] = func(req *rest.Request, a inventory.Audit, isDryRun bool) (*rest.Written, error) {
		m, err := s.readMachine(req, a.Name)
		if err != nil {
			return nil, err
		}
		body, err := reverted(a, m)
		if err != nil {
			return nil, err
		}
		return s.putMachine(req, &rest.PutInput[inventory.Machine]{
			WriteOptions: rest.WriteOptions{DryRun: isDryRun, IfMatch: rest.ETag(m.Version)}, NameRef: rest.PlainRef(m.Name), Body: body,
		})
	}
	s.rest.Undoers["bmc"] = s.undoBMC
}

func (s *Server) undoHost(req *rest.Request, a inventory.Audit, isDryRun bool) (*rest.Written, error) {
	o := rest.WriteOptions{DryRun: isDryRun, IfMatch: rest.ETag(a.Version)}
	switch a.Change {
	case inventory.AuditCreate:
		return s.deleteHost(req, &deleteHostInput{WriteOptions: o, HostRef: rest.HostRef{Host: string(a.HostID)}})
	case inventory.AuditDelete:
		in := &rest.CreateInput[inventory.Host]{DryRun: isDryRun}
		if err := json.Unmarshal(a.Before, &in.Body); err != nil {
			return nil, fmt.Errorf("decode entry %d of the audit: %w", a.ID, err)
		}
		return s.createHost(req, in)
	}
	h, err := s.readHost(req, string(a.HostID))
	if err != nil {
		return nil, err
	}
	body, err := reverted(a, h)
	if err != nil {
		return nil, err
	}
	o.IfMatch = rest.ETag(h.Version)
	return s.putHost(req, &putHostInput{WriteOptions: o, HostRef: rest.HostRef{Host: string(h.ID)}, Body: body})
}

func (s *Server) undoBMC(req *rest.Request, a inventory.Audit, isDryRun bool) (*rest.Written, error) {
	ref := rest.HostRef{Host: string(a.HostID)}
	h, b, err := s.readBMC(req, ref.Host)
	if a.Change == inventory.AuditDelete {
		if err == nil {
			return nil, rest.ChangedSince(a, "")
		}
		h, err = s.readHost(req, ref.Host)
	}
	if err != nil {
		return nil, err
	}
	is := hostBMC(h.Name, b)
	if a.Change == inventory.AuditCreate {
		if _, err := reverted(a, is); err != nil {
			return nil, err
		}
		return s.deleteBMC(req, &deleteBMCInput{WriteOptions: rest.WriteOptions{DryRun: isDryRun, IfMatch: rest.ETag(b.Version)}, HostRef: ref})
	}
	var body HostBMC
	if a.Change == inventory.AuditDelete {
		if err := json.Unmarshal(a.Before, &body); err != nil {
			return nil, fmt.Errorf("decode entry %d of the audit: %w", a.ID, err)
		}
	} else if body, err = reverted(a, is); err != nil {
		return nil, err
	}
	if isDryRun {
		return &rest.Written{Status: http.StatusOK, Body: rest.Diff{IsDryRun: true, Changes: rest.Compare(is, body), Result: body}}, nil
	}
	out, err := s.putBMC(req, &putBMCInput{IfMatch: rest.ETag(b.Version), HostRef: ref, Body: SetBMC{HostBMC: body}})
	if err != nil {
		return nil, err
	}
	return &rest.Written{Status: http.StatusOK, ETag: out.ETag, Body: out.Body}, nil
}

// moving are the fields of hosts, machines and BMCs that nobody edits: they say how things are.
var moving = append(slices.Clone(rest.Bookkeeping), slices.Concat(ownFields["Host"], machineOwn, ownFields["SetBMC"])...)

// reverted returns the thing as it is with the fields that an entry changed as they were before it. A field that has changed
// since is a Conflict that names it. Without a before nothing is reverted, and only that question answered.
func reverted[T any](a inventory.Audit, is T) (back T, err error) {
	text, _ := rest.AuditJSON(is)
	before, err1 := treeOf(a.Before)
	after, err2 := treeOf(a.After)
	now, err3 := treeOf(text)
	if err := errors.Join(err1, err2, err3); err != nil {
		return back, fmt.Errorf("decode entry %d of the audit: %w", a.ID, err)
	}
	for _, name := range moving {
		delete(before, name)
		delete(after, name)
	}
	if field := revert(before, after, now, ""); field != "" {
		return back, rest.ChangedSince(a, ": "+field+" is another now")
	}
	if text, err = json.Marshal(now); err != nil {
		return back, err
	}
	return back, json.Unmarshal(text, &back)
}

// treeOf reads a JSON object; none at all is an empty one.
func treeOf(text json.RawMessage) (map[string]any, error) {
	out := map[string]any{}
	if len(text) == 0 {
		return out, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return out, d.Decode(&out)
}

// revert sets in now what differs between before and after back to before. It returns the name of the first field that is no
// longer as after says; now is of no use then.
func revert(before, after, now map[string]any, prefix string) string {
	keys := map[string]any{}
	maps.Copy(keys, before)
	maps.Copy(keys, after)
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		b, a := before[k], after[k]
		if reflect.DeepEqual(b, a) {
			continue
		}
		bm, isB := b.(map[string]any)
		am, isA := a.(map[string]any)
		if (isB || b == nil) && (isA || a == nil) {
			nm, _ := now[k].(map[string]any)
			if nm = maps.Clone(nm); nm == nil {
				nm = map[string]any{}
			}
			if field := revert(bm, am, nm, prefix+k+"."); field != "" {
				return field
			}
			now[k] = nm
			continue
		}
		if !reflect.DeepEqual(now[k], a) {
			return prefix + k
		}
		if b == nil {
			delete(now, k)
		} else {
			now[k] = b
		}
	}
	return ""
}
