package web

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"slipway.dev/slipway/hardware/acceptance"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/scoped"
)

// The store shows a caller with roles in pools only what is in those (see package scoped). A text that such a caller may read can
// still name a thing of another pool: whose turn it is to join a cluster, who has a MAC already. What follows takes those
// names out of texts, at the last moment: everything that is stored keeps them.

// unnamed stands for a name that the caller may not know.
const unnamed = scoped.Unnamed

// texts are the fields whose values are written for people, wherever they are in an answer.
var texts = map[string]bool{
	"cause": true, "causes": true, "detail": true, "hint": true, "message": true, "note": true, "notes": true, "reason": true, "reasons": true, "sentence": true,
	"stateReason": true, "summary": true, "text": true, "why": true,
}

// wordRE matches what can be a name, a MAC or an id.
var wordRE = regexp.MustCompile(`[A-Za-z0-9][A-Za-z0-9._:-]*`)

// discretion takes names out of texts. It lives as long as one transaction.
type discretion struct {
	tx    *scoped.Tx
	known map[string]bool // by word: it is the name of something out of reach
}

// discreetly calls fn if the caller's roles are in pools only.
func (s *Server) discreetly(req *rest.Request, fn func(d *discretion) error) error {
	if c := req.Caller; len(c.Grants) == 0 || c.Grants.Everywhere().Allows(inventory.Viewer) {
		return nil
	}
	return s.rest.Store.Read(req, func(tx inventory.Tx) error {
		t, isScoped := tx.(*scoped.Tx)
		if !isScoped {
			return nil
		}
		return fn(&discretion{tx: t, known: map[string]bool{}})
	})
}

// text returns a text without the names that the caller may not know. open are words that stay: whoever reads the text knows
// them already.
func (d *discretion) text(text string, open map[string]bool) (out string, err error) {
	out = wordRE.ReplaceAllStringFunc(text, func(w string) string {
		name := strings.TrimRight(w, ".:-_")
		if err != nil || open[name] {
			return w
		}
		var is bool
		if is, err = d.isHidden(name); is {
			return unnamed + w[len(name):]
		}
		return w
	})
	return out, err
}

// isHidden reports whether a word names a host, machine or pool out of reach, and nothing within.
func (d *discretion) isHidden(word string) (bool, error) {
	is, ok := d.known[word]
	if ok {
		return is, nil
	}
	seen, missed := false, false
	note := func(role inventory.UserRole, err error) error {
		if inventory.IsKind(err, inventory.NotFound) || inventory.IsKind(err, inventory.Invalid) {
			return nil
		}
		seen, missed = seen || role.Allows(inventory.Viewer), missed || !role.Allows(inventory.Viewer)
		return err
	}
	for _, find := range []func(string) (inventory.UserRole, error){d.host, d.machine, d.pool} {
		if err := note(find(word)); err != nil {
			return false, err
		}
	}
	is = missed && !seen
	d.known[word] = is
	return is, nil
}

// host returns the caller's role on the host that a word names: by its name, its id, or a MAC.
func (d *discretion) host(word string) (inventory.UserRole, error) {
	h, err := d.tx.Whole().FindHostByName(word)
	if inventory.IsKind(err, inventory.NotFound) && len(word) == 36 {
		h, err = d.tx.Whole().FindHost(inventory.HostID(word))
	}
	if mac, bad := inventory.ParseMAC(word); bad == nil && inventory.IsKind(err, inventory.NotFound) {
		h, err = d.tx.Whole().FindHostByMAC(mac)
	}
	if err != nil {
		return "", err
	}
	return d.tx.RoleOnHost(&h)
}

func (d *discretion) machine(word string) (inventory.UserRole, error) {
	m, err := d.tx.Whole().FindMachine(word)
	return d.tx.RoleOnMachine(&m), err
}

// pool leaves the default pool alone: everybody knows that there is one.
func (d *discretion) pool(word string) (inventory.UserRole, error) {
	if word == inventory.DefaultPool {
		return inventory.Viewer, nil
	}
	_, err := d.tx.Whole().Pools().Find(word)
	return d.tx.RoleInPool(word), err
}

// walk does the same to all texts of a JSON value, and reports whether it changed any. What a row says outside of its texts
// stays in them: a refusal names what was asked for. With isText a string is one.
func (d *discretion) walk(v any, isText bool, open map[string]bool) (out any, changed bool, err error) {
	one := func(v any, isText bool, open map[string]bool) any {
		if err != nil {
			return v
		}
		w, is, bad := d.walk(v, isText, open)
		changed, err = changed || is, bad
		return w
	}
	switch v := v.(type) {
	case string:
		if !isText {
			return v, false, nil
		}
		text, err := d.text(v, open)
		return text, text != v, err
	case []any:
		for i := range v {
			v[i] = one(v[i], isText, open)
		}
	case map[string]any:
		own := map[string]bool{}
		for k, w := range v {
			if s, ok := w.(string); ok && !texts[k] && !isText {
				own[s] = true
			}
		}
		for k, w := range v {
			v[k] = one(w, isText || texts[k] || k == "data", own)
		}
	}
	return v, changed, err
}

// discreet implements huma.Transformer: it takes the names out of an answer. A refusal says by its references what it names besides
// what the caller has named; of those without, only a conflict does so.
func (s *Server) discreet(hc huma.Context, _ string, v any) (any, error) {
	req, out := rest.RequestOf(hc.Context()), v
	err := s.discreetly(req, func(d *discretion) error {
		if p, ok := v.(*rest.Problem); ok {
			clean, err := d.problem(p)
			out = clean
			return err
		}
		clean, changed, err := d.answer(v)
		if changed {
			out = clean
		}
		return err
	})
	if err != nil {
		s.cfg.Log.Warn("an answer cannot be checked", "op", req.ID, "err", err)
		return rest.ProblemOf(req, s.cfg.Log, inventory.Errorf(inventory.Unavailable, "the answer cannot be checked").WithHint("try it again")), nil
	}
	return out, nil
}

func (d *discretion) problem(p *rest.Problem) (*rest.Problem, error) {
	clean := *p
	clean.Errors = append([]rest.FieldError(nil), p.Errors...)
	of := []*string{&clean.Detail, &clean.Hint}
	for i := range clean.Errors {
		of = append(of, &clean.Errors[i].Message)
	}
	for _, text := range of {
		var err error
		if *text, err = d.tx.Tell(*text, p.Refs); err == nil && p.Kind == inventory.Conflict {
			*text, err = d.text(*text, nil)
		}
		if err != nil {
			return p, err
		}
	}
	return &clean, nil
}

// answer is walk on anything that can be JSON.
func (d *discretion) answer(v any) (out any, changed bool, err error) {
	b, err := json.Marshal(v)
	if err != nil {
		return v, false, err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(&out); err != nil {
		return v, false, err
	}
	return d.walk(out, false, nil)
}

// event takes the names out of an event: first those that it refers to.
func (d *discretion) event(e *inventory.Event) error {
	err := d.tx.TellEvent(e)
	if err != nil {
		return err
	}
	if e.Detail, err = d.text(e.Detail, nil); err != nil || e.Data == nil {
		return err
	}
	data, changed, err := d.answer(map[string]any{"data": e.Data})
	if err != nil || !changed {
		return err
	}
	e.Data = data.(map[string]any)["data"] // walk keeps the shape
	return nil
}

// sheet takes the names out of what an acceptance sheet is made of.
func (d *discretion) sheet(in *acceptance.Input) (err error) {
	of := []*string{&in.Host.StateReason}
	if in.BMC != nil {
		of = append(of, &in.BMC.Reason)
	}
	for i := range in.Issues {
		of = append(of, &in.Issues[i].Cause, &in.Issues[i].Hint)
	}
	for _, text := range of {
		if *text, err = d.text(*text, nil); err != nil {
			return err
		}
	}
	return nil
}

// discreetEvents takes the names out of events.
func (s *Server) discreetEvents(req *rest.Request, rows []inventory.Event) error {
	return s.discreetly(req, func(d *discretion) error {
		for i := range rows {
			if err := d.event(&rows[i]); err != nil {
				return err
			}
		}
		return nil
	})
}
