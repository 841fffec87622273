package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"

	"slipway.dev/slipway/hardware/identity"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ref"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/provision/strangers"
	"slipway.dev/slipway/pxe"
)

// Ask returns the small script that makes iPXE report what the machine is and fetch its decision. The session may be
// "": a machine that found the script by itself is known by the MAC that it reports.
func (e *Engine) Ask(ctx context.Context, s inventory.SessionID, source netip.Addr, base string) ([]byte, error) {
	running, _ := e.sessionAt(source)
	if s == "" || s == running.ID {
		return pxe.AskScript(base, running.ID), nil
	}
	err := e.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		_, err := e.Admitted(tx, s, source, "", "ask")
		return ledger.IgnoreNotFound(err) // of a boot that was lost the script begins another
	})
	return pxe.AskScript(base, s), err
}

// Script decides what the machine boots and returns it as a script. Everything that follows from the decision is on disk
// before the script is returned: the host's facts and state, the session, events and issues. A killed server therefore
// knows what it has started. A machine that asks again and changes nothing is answered without a write.
func (e *Engine) Script(ctx context.Context, id inventory.SessionID, c pxe.Client, base string) ([]byte, error) {
	if c.MAC == "" {
		running, _ := e.sessionAt(c.Address)
		c.MAC = running.MAC
	}
	q := &question{Engine: e, id: id, c: c, base: base}
	if s, ok := e.sessions.Of(c.MAC); ok && s.ID == id && s.Boot != "" && e.cfg.Store.Read(ctx, q.answer) == nil {
		e.sessions.Put(q.after)
		return q.script, nil
	}
	q.mayWrite = true
	if e.IsStranger(c.MAC) && !e.Pays(id, c.MAC, c.Port, 2, 0) {
		return nil, strangers.OverBudget()
	}
	err := e.cfg.Store.Write(ctx, q.answer)
	if errors.Is(err, configuration.ErrUnrendered) {
		if err := e.prepare(ctx, q.c); err != nil {
			return nil, err
		}
		q.mayRender = true // what changes meanwhile is rendered at once
		err = e.cfg.Store.Write(ctx, q.answer)
	}
	if err != nil {
		return nil, err
	}
	e.sessions.Put(q.after)
	if q.hasWork {
		e.Poke()
	}
	return q.script, nil
}

// question is one request for a script.
type question struct {
	*Engine
	id   inventory.SessionID
	c    pxe.Client
	base string

	mayWrite  bool // the answer is decided in a transaction that writes
	mayRender bool // a configuration that is not at hand is rendered in the transaction

	script  []byte
	after   inventory.BootSession
	hasWork bool // something is being done with the host
}

var errWrites = errors.New("the answer changes something")

// answer decides in one transaction. A question that may not write fails when there is anything to write.
func (q *question) answer(tx inventory.Tx) error {
	s, err := q.sessionFor(tx, q.id, q.c)
	if err != nil {
		return err
	}
	before := s
	s = q.asked(s, q.c)
	c := &q.c
	c.MAC = s.MAC // what DHCP saw counts; a machine may report another card first
	if c.Subnet = cmp.Or(c.Subnet, s.Subnet); c.Subnet == "" {
		if c.Subnet, err = subnetOf(tx, c.Address); err != nil {
			return err
		}
	}
	if s.Firmware != "" {
		c.Firmware = s.Firmware
	}
	if s.Arch != "" {
		c.Arch = s.Arch
	}
	h, p, v, err := q.takeIn(tx, *c, &s)
	if err != nil {
		return err
	}
	s.HostID, s.Proof = h.ID, v.Proof
	if err := q.saidSecureBoot(tx, &h, c.SecureBoot); err != nil {
		return err
	}
	if p.Work != nil {
		if !q.mayWrite {
			return errWrites // an operation may go on by what is asked
		}
		if v.Proof != inventory.ProofNone { // what somebody else boots moves no operation
			if p, err = q.BootsAgain(tx, &h, p, &s); err != nil {
				return err
			}
		}
	}
	p = pxe.Chosen(*c, &h, p)
	d := pxe.Decide(*c, &h, p, q.cfg.Now())
	var config *configuration.Rendered
	if d.Boot == pxe.BootImage {
		if d, p, config, err = q.image(tx, &h, &s, p, v); err != nil {
			return err
		}
	}
	if d.Boot == pxe.BootAgent && v.Doubt != "" {
		d = held(&h, v)
	}
	if q.script, err = q.render(*c, &h, p, d, s.ID, q.base); err != nil {
		d = pxe.Decision{Boot: pxe.BootWait, IsTrap: true, Again: pxe.AskAgain, Reason: ledger.PublicMessage(err), Refs: inventory.RefsOf(err)}
		d.Hint = inventory.HintOf(err)
		if q.script, err = q.render(*c, &h, p, d, s.ID, q.base); err != nil {
			return err
		}
	}
	if d.Boot == pxe.BootImage {
		if err := q.NoteRendering(tx, &h, &s, config); err != nil {
			return err
		}
	}
	return q.decided(tx, &h, before, s, p, d)
}

// image looks at a host that is about to get its image, for its configuration and for what speaks against the boot, and
// decides again.
func (q *question) image(tx inventory.Tx, h *inventory.Host, s *inventory.BootSession, p pxe.Plan, v identity.Verdict) (d pxe.Decision, _ pxe.Plan, config *configuration.Rendered, err error) {
	if config, err = q.ConfigAtHand(tx, h, p, q.c.MAC, q.mayRender); err != nil {
		return d, p, nil, err
	}
	if isHeld(v, config) {
		return held(h, v), p, nil, nil
	}
	if p, config, err = q.Given(tx, h, p, config); err != nil {
		return d, p, nil, err
	}
	if config != nil {
		q.Confide(&p, config, q.c, q.base)
	}
	if d = pxe.Decide(q.c, h, p, q.cfg.Now()); d.Boot != pxe.BootImage {
		return d, p, config, nil
	}
	if v.Proof != inventory.ProofNone {
		if err := q.restrain(tx, h, s, p); err != nil {
			return d, p, config, err
		}
	}
	if !q.mayWrite && config != nil && config.WaitsFor != "" {
		return d, p, config, errWrites // its bootstrap data are asked for
	}
	if p.Problem, err = q.Awaited(tx, h, config); err != nil {
		return d, p, config, err
	}
	if p.Problem == nil {
		if p.Problem, err = q.TakeTurn(tx, h, s.ID, config); err != nil {
			return d, p, config, err
		}
	}
	d = pxe.Decide(q.c, h, p, q.cfg.Now())
	d.IsTrap = d.IsTrap && !delivery.IsAwaitedProblem(p)
	return d, p, config, nil
}

// sessionFor finds the session a script is asked for: by its id, else by MAC, else a new one. A server that was
// killed may have lost the session of a boot it had not decided yet; the machine must not notice.
func (e *Engine) sessionFor(tx inventory.Tx, id inventory.SessionID, c pxe.Client) (inventory.BootSession, error) {
	if s, ok := e.sessions.Of(c.MAC); ok && s.ID == id && s.Address == c.Address {
		return s, nil
	}
	if id != "" {
		s, err := e.Admitted(tx, id, c.Address, "", "script")
		if err != nil && !inventory.IsKind(err, inventory.NotFound) {
			return s, err
		}
		if live, ok := e.sessions.Of(s.MAC); err == nil && ok && live.ID == id {
			return live, nil // it is further than what is on disk
		}
		if err == nil && s.EndedAt.IsZero() {
			return s, nil
		}
		if err == nil && c.MAC == "" {
			c.MAC = s.MAC
		}
	}
	if c.MAC == "" {
		return inventory.BootSession{}, inventory.Errorf(inventory.Invalid, "the request names no machine").
			WithHint("a request for a script needs ?mac=<address>")
	}
	if err := e.CheckSource(tx, c); err != nil {
		return inventory.BootSession{}, err
	}
	s, replaced, _ := e.sessions.Heard(c, inventory.EventScriptAsked)
	if replaced.ID != "" {
		e.ledger.End(replaced, inventory.OutcomeAbandoned, "the machine started over after "+replaced.Step)
	}
	return s, nil
}

// subnetOf returns the name of the subnet that an address is in, "" for none: a machine that found us without our
// DHCP is treated as its subnet says.
func subnetOf(tx inventory.Tx, a netip.Addr) (string, error) {
	subnets, err := tx.Subnets().List(inventory.Page{})
	if err != nil {
		return "", fmt.Errorf("read subnets: %w", err)
	}
	for _, s := range subnets {
		if s.CIDR.Contains(a) {
			return s.Name, nil
		}
	}
	return "", nil
}

// asked moves a session to the step of asking for its script.
func (e *Engine) asked(s inventory.BootSession, c pxe.Client) inventory.BootSession {
	s.LastAt = e.cfg.Now()
	if session.StepIndex(inventory.EventScriptAsked) > session.StepIndex(s.Step) {
		s.Step = inventory.EventScriptAsked
	}
	if c.Address.IsValid() {
		s.Address = c.Address
	}
	return s
}

// takeIn finds or adds the host of a client, with what it says of itself, and returns it with its plan, and whether the
// client is that host. What a machine says that may be another one is not taken over.
func (e *Engine) takeIn(tx inventory.Tx, c pxe.Client, s *inventory.BootSession) (h inventory.Host, p pxe.Plan, v identity.Verdict, err error) {
	h, err = tx.FindHostByMAC(c.MAC)
	switch {
	case inventory.IsKind(err, inventory.NotFound):
		if e.sessions.HostOf(c.MAC) == "" && !e.MayAdd(c) {
			return h, p, v, inventory.Errorf(inventory.Unavailable, "too many unknown machines asked at once: this one is not listed yet").
				WithHint("it is listed when it asks again in some minutes; or add it: slipway host create --mac %s", c.MAC)
		}
		h = e.newHost(c)
		if _, err := e.identify(tx, &h, c); err != nil {
			return h, p, v, err
		}
		if err := e.discoverHost(tx, &h, c); err != nil {
			return h, p, v, err
		}
	case err != nil:
		return h, p, v, fmt.Errorf("read host of %s: %w", c.MAC, err)
	default:
		if v, err = e.judge(tx, &h, s, c); err != nil {
			return h, p, v, err
		}
		if err := e.recognise(tx, &h, s, c, v); err != nil {
			return h, p, v, err
		}
		if err := e.acceptByRule(tx, &h); err != nil {
			return h, p, v, err
		}
	}
	e.sessions.SetHost(h.ID, h.MACs()...)
	p, err = e.planFor(tx, &h, c.Subnet)
	return h, p, v, err
}

// recognise stores that a host was seen, and what it says of itself.
func (e *Engine) recognise(tx inventory.Tx, h *inventory.Host, s *inventory.BootSession, c pxe.Client, v identity.Verdict) error {
	if v.Proof == inventory.ProofNone {
		e.seen(h)
		return nil
	}
	changed, err := e.identify(tx, h, c)
	if err != nil {
		return err
	}
	if hasLearned := learnPort(h, c.MAC, s.Port); !changed && !hasLearned {
		return nil
	}
	if err := tx.UpdateHost(h, e.cfg.Now()); err != nil {
		return fmt.Errorf("store host %s: %w", h.Name, err)
	}
	return e.checkHints(tx, h)
}

// restrain looks at a host that is about to get its image for what speaks against one more boot of it, and changes the
// host accordingly: the decision has to be made again.
func (e *Engine) restrain(tx inventory.Tx, h *inventory.Host, s *inventory.BootSession, p pxe.Plan) error {
	if p.Work != nil {
		return nil // the operation counts its attempts itself
	}
	if err := e.installOnce(tx, h, p, *s); err != nil {
		return err
	}
	return e.breakLoop(tx, h, s)
}

// installOnce disarms a host whose installer was loaded in an earlier boot: whether it reported or not, no host is
// installed twice for one word of a person.
func (e *Engine) installOnce(tx inventory.Tx, h *inventory.Host, p pxe.Plan, s inventory.BootSession) error {
	if !p.Image.IsInstaller || h.State != inventory.Installing {
		return nil
	}
	latest, err := tx.ListSessions(h.ID, inventory.Page{Limit: e.cfg.Breaker.Boots + 1})
	if err != nil {
		return fmt.Errorf("read boots of %s: %w", h.Name, err)
	}
	for _, old := range latest {
		isThisInstall := old.ID != s.ID && old.Boot == string(pxe.BootImage) && !old.LastAt.Before(h.StateSinceAt)
		if isThisInstall && session.StepIndex(old.Step) >= session.StepIndex(inventory.EventArtefactSent) {
			h.IsArmed = false
			return e.ledger.Edit(tx, h, "disarmed: the installer was loaded in an earlier boot and has not reported; it does not run twice")
		}
	}
	return nil
}

// breakLoop quarantines a host that was given its image too often without ever reporting up.
func (e *Engine) breakLoop(tx inventory.Tx, h *inventory.Host, s *inventory.BootSession) error {
	if h.State != inventory.Installing || s.Boot == string(pxe.BootImage) {
		return nil // its last boot arrived, or this one has been counted
	}
	since := e.cfg.Now().Add(-e.cfg.Breaker.Within)
	if h.StateSinceAt.After(since) {
		since = h.StateSinceAt
	}
	latest, err := tx.ListSessions(h.ID, inventory.Page{Limit: e.cfg.Breaker.Boots + 1})
	if err != nil {
		return fmt.Errorf("read boots of %s: %w", h.Name, err)
	}
	n := 0
	for _, old := range latest {
		if old.ID != s.ID && old.Boot == string(pxe.BootImage) && !old.LastAt.Before(since) {
			n++
		}
	}
	if n < e.cfg.Breaker.Boots {
		return nil
	}
	cause := fmt.Sprintf("%s was given its image %d times within %s and never reported up", h.Name, n, inventory.Duration(e.cfg.Breaker.Within))
	hint := "look at its console and at: slipway host events " + h.Name + "; then: slipway host release " + h.Name
	if err := e.ledger.OpenIssue(tx, operation.BootLoop(h.ID, cause, hint)); err != nil {
		return err
	}
	return e.ledger.Move(tx, h, inventory.Fault, s.ID, cause)
}

// decided stores a decision: session, events, the host's new state, and the issues that open or close with it. before is
// the session as it was. A machine that waits asks every few seconds: the timeline says so once, and there is nothing to
// store while nothing changes; its host's row says every minute that it is there.
func (q *question) decided(tx inventory.Tx, h *inventory.Host, before, s inventory.BootSession, p pxe.Plan, d pxe.Decision) error {
	s.Boot, s.Reason, s.Step, s.LastAt = string(d.Boot), d.Reason, inventory.EventBootDecided, q.cfg.Now()
	if p.Profile != nil {
		s.Profile, s.Image = p.Profile.Name, p.Image.Name
	}
	if d.Boot == pxe.BootAgent {
		s.Profile, s.Image = "", p.Work.Agent.Name
	}
	isProven := s.Proof != inventory.ProofNone
	op, err := tx.FindOpenOperation(h.ID)
	if err != nil && !inventory.IsKind(err, inventory.NotFound) {
		return fmt.Errorf("read what is done with %s: %w", h.Name, err)
	}
	d.Refs = inventory.OfMachine(op.Machine, d.Refs...)
	if q.hasWork = err == nil && isProven; q.hasWork {
		s.Operation = op.ID
	}
	s.Refs = ref.In(s.Reason, d.Refs...)
	isRepeat := before.Boot == s.Boot && before.Reason == s.Reason
	q.after = s
	if !q.mayWrite {
		before.Step, before.LastAt = s.Step, s.LastAt
		if !reflect.DeepEqual(before, s) || d.IsTrap || q.hasWork {
			return errWrites
		}
		return nil
	}
	if err := tx.SaveSession(s); err != nil {
		return fmt.Errorf("store boot session: %w", err)
	}
	if !isRepeat {
		if err := q.noteDecision(tx, h, s, d); err != nil {
			return err
		}
	}
	if reason := "booting image " + s.Image + " of profile " + s.Profile; d.Boot == pxe.BootImage && isProven && !isOn(h, inventory.Boot, reason) {
		if err := q.ledger.Move(tx, h, inventory.Boot, s.ID, reason); err != nil {
			return err
		}
	}
	if isProven {
		q.begins(&s)
	}
	if err := q.noteProof(tx, h, &before, &s, d); err != nil {
		return err
	}
	refused := operation.BootRefused(h.ID, s.Subnet, d)
	if d.IsTrap {
		if err := q.ledger.OpenIssue(tx, refused); err != nil {
			return err
		}
	} else if err := q.ledger.CloseIssue(tx, refused, "the host boots again: "+d.Reason); err != nil {
		return err
	}
	if !q.hasWork {
		return nil
	}
	return q.BootGiven(tx, h, op, d)
}

// isOn reports whether a trigger leaves a host as it is.
func isOn(h *inventory.Host, on inventory.Trigger, reason string) bool {
	to, err := h.State.Next(on)
	return err == nil && to == h.State && h.StateReason == inventory.Clean(reason, 500)
}

// noteDecision adds a decision to the timeline and the log.
func (e *Engine) noteDecision(tx inventory.Tx, h *inventory.Host, s inventory.BootSession, d pxe.Decision) error {
	events := []*inventory.Event{
		{Kind: inventory.EventScriptAsked, Detail: fmt.Sprintf("%s %s, serial %s", h.Manufacturer, h.Product, h.Serial)},
		{Kind: inventory.EventBootDecided, Detail: decisionLine(d), Refs: inventory.OfMachine(h.Machine, d.Refs...), Data: map[string]any{
			"boot": d.Boot, "reason": d.Reason, "hint": d.Hint, "profile": s.Profile, "image": s.Image,
		}},
	}
	for _, ev := range events {
		ev.At, ev.HostID, ev.SessionID, ev.MAC = s.LastAt, h.ID, s.ID, s.MAC
	}
	if err := tx.AddEvent(events...); err != nil {
		return err
	}
	e.cfg.Log.Info("boot decided", "host", h.Name, "mac", s.MAC, "boot", s.ID, "decision", d.Boot, "reason", d.Reason)
	return nil
}

// render writes a decision as a script.
func (e *Engine) render(c pxe.Client, h *inventory.Host, p pxe.Plan, d pxe.Decision, s inventory.SessionID, base string) ([]byte, error) {
	in := pxe.ScriptInput{Client: c, Host: h, Plan: p, Decision: d, Session: s, Base: base}
	if d.Boot == pxe.BootAgent {
		in.AgentKey = e.AgentKey(s)
	}
	return pxe.Script(in)
}
