package web

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"slipway.dev/slipway/hardware/acceptance"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ref"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/scoped"
)

// The store shows a caller with roles in pools only what is in those (see package scoped). A text that such a caller may read can
// still name a thing of another pool: whose turn it is to join a cluster, who has a MAC already. Every text keeps references to what
// it names. What follows takes the names that the caller may not know out of an answer, at the last moment: everything that is
// stored keeps them.

// texts are the fields whose values are written for people, wherever they are in an answer.
var texts = map[string]bool{
	"cause": true, "causes": true, "data": true, "detail": true, "expects": true, "hint": true, "message": true, "note": true, "notes": true,
	"problem": true, "reason": true, "reasons": true, "script": true, "sentence": true, "stateReason": true, "summary": true, "text": true,
	"trouble": true, "what": true, "why": true,
}

// concealer takes the names that the caller may not know out of answers.
type concealer struct {
	store scopedStore
	log   *slog.Logger
}

// discreetly calls fn if the caller's roles are in pools only.
func (c concealer) discreetly(req *rest.Request, fn func(tx *scoped.Tx) error) error {
	if has := req.Caller.Grants; len(has) == 0 || has.Everywhere().Allows(inventory.Viewer) {
		return nil
	}
	return c.store.Read(req, func(tx inventory.Tx) error {
		t, isScoped := tx.(*scoped.Tx)
		if !isScoped {
			return nil
		}
		return fn(t)
	})
}

// hiddenFrom returns what the caller may not know of references, and of what the texts name that were read for the request.
func (c concealer) hiddenFrom(req *rest.Request, refs ...inventory.Ref) (h scoped.Hidden, err error) {
	err = c.discreetly(req, func(tx *scoped.Tx) error {
		h, err = tx.HiddenOf(append(refs, req.Named.All()...))
		return err
	})
	return h, err
}

// discreet implements huma.Transformer: it takes the names out of an answer.
func (c concealer) discreet(hc huma.Context, _ string, v any) (any, error) {
	req, out := rest.RequestOf(hc.Context()), v
	h, err := c.hiddenFrom(req, ref.Within(v)...)
	if err == nil && !h.IsNothing() {
		out, err = told(h, v)
	}
	if err != nil {
		c.log.Warn("an answer cannot be checked", "op", req.ID, "err", err)
		err = inventory.Errorf(inventory.Unavailable, "the answer cannot be checked").WithHint("try it again")
		return rest.ProblemOf(req, c.log, err), nil
	}
	return out, nil
}

// told returns an answer without the names.
func told(h scoped.Hidden, v any) (out any, err error) {
	if p, ok := v.(*rest.Problem); ok {
		clean := *p
		clean.Detail, clean.Hint = h.Tell(p.Detail), h.Tell(p.Hint)
		clean.Errors = slices.Clone(p.Errors)
		for i := range clean.Errors {
			clean.Errors[i].Message = h.Tell(p.Errors[i].Message)
		}
		clean.Findings = slices.Clone(p.Findings)
		for i, f := range p.Findings {
			clean.Findings[i].Message, clean.Findings[i].Hint = h.Tell(f.Message), h.Tell(f.Hint)
		}
		return &clean, nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return v, err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(&out); err != nil {
		return v, err
	}
	return tellTexts(h, out), nil
}

// tellTexts takes the names out of the texts of a JSON value.
func tellTexts(h scoped.Hidden, v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = tellTexts(h, v[i])
		}
	case map[string]any:
		isText := isOfText(v)
		for k, w := range v {
			if texts[k] || isText && (k == "from" || k == "to") {
				v[k] = h.TellAll(w)
			} else {
				v[k] = tellTexts(h, w)
			}
		}
	}
	return v
}

// isOfText reports whether a JSON object says how a text changes: see wire.Difference.
func isOfText(v map[string]any) bool {
	field, _ := v["field"].(string)
	return texts[field[strings.LastIndexByte(field, '.')+1:]]
}

// discreetEvents takes the names out of events.
func (c concealer) discreetEvents(req *rest.Request, rows []inventory.Event) error {
	return c.discreetly(req, func(tx *scoped.Tx) error {
		for i := range rows {
			if err := tx.TellEvent(&rows[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// Text takes them out of a text that names refs.
func (c concealer) Text(req *rest.Request, text string, refs ...inventory.Ref) (string, error) {
	h, err := c.hiddenFrom(req, refs...)
	return h.Tell(text), err
}

// Sheet takes them out of what an acceptance sheet is made of.
func (c concealer) Sheet(req *rest.Request, in *acceptance.Input) error {
	h, err := c.hiddenFrom(req)
	in.Host.StateReason = h.Tell(in.Host.StateReason)
	if in.BMC != nil {
		in.BMC.Reason = h.Tell(in.BMC.Reason)
	}
	return err
}
