package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

// Reverted returns the thing as it is with the fields that an entry changed as they were before it. A field that has changed
// since is a Conflict that names it. Without a before nothing is reverted, and only that question answered. Moving are fields
// that nobody edits: they say how the thing is.
func Reverted[T any](a inventory.Audit, is T, moving []string) (back T, err error) {
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
