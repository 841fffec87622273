package boot

import (
	"fmt"
	"net/netip"
	"reflect"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ref"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/pxe"
)

// Decider makes the decisions of boot scripts. It only reads the store: an answer says what has to be written.
type Decider struct {
	now        func() time.Time
	breaker    Breaker
	planner    *Planner
	configurer *configuration.Configurer
	admission  *delivery.Admission
	bootstraps *delivery.Bootstrapper
	deliverer  *delivery.Deliverer
	operator   *operation.Operator
	others     func() []netip.Addr // of other instances
}

// answer is a decision with its script, and what has to be in the store before the machine gets it.
type answer struct {
	pxe.Decision
	plan      pxe.Plan
	config    *configuration.Rendered // nil when none is given
	script    []byte
	session   inventory.BootSession // as the decision makes it
	operation inventory.Operation   // on the host of this boot; its zero value when there is none
	turns     []string              // that the host takes with this boot
	isAsking  bool                  // for the bootstrap data of its machine

	// Without these two nothing else is filled in. isUnrendered says that the configuration has to be rendered first.
	isUnrendered bool
	objection    *objection
}

// isRepeatOf reports whether a machine has this answer already, so that nothing has to be written. before is its boot as the
// store has it. The time of the last sign is written once a minute, with the host.
func (a *answer) isRepeatOf(before inventory.BootSession) bool {
	// These two change with each question, and alone are no reason to write.
	before.Step, before.LastAt = a.session.Step, a.session.LastAt
	return reflect.DeepEqual(before, a.session) && !a.IsTrap && !a.isAsking && len(a.turns) == 0 && a.operation.ID == ""
}

// decide decides what the machine of a question boots.
func (d *Decider) decide(tx inventory.Tx, q *question, mayRender bool) (a answer, err error) {
	// What a person chose in the menu of the boot loader comes with the client, and changes the plan.
	a.plan = pxe.Chosen(q.c, &q.host, q.plan)
	a.Decision = pxe.Decide(q.c, &q.host, a.plan, d.now())
	if a.Boot == pxe.BootImage {
		if err := d.image(tx, q, &a, mayRender); err != nil || a.isUnrendered || a.objection != nil {
			return a, err
		}
	}
	// The agent gets the host's work, which may erase disks. A machine in doubt waits instead.
	if a.Boot == pxe.BootAgent && q.verdict.Doubt != "" {
		a.Decision = held(&q.host, q.verdict)
	}
	in := pxe.ScriptInput{Client: q.c, Host: &q.host, Plan: a.plan, Decision: a.Decision, Session: q.session.ID, Base: q.base}
	if in.Others, err = delivery.OnNetwork(tx, d.others, q.session.Subnet); err != nil {
		return a, err
	}
	if a.script, err = d.script(in); err != nil {
		// A script that cannot be written must not leave the machine without an answer: it waits, and the issue says why.
		a.Decision = pxe.Decision{Boot: pxe.BootWait, IsTrap: true, Again: pxe.AskAgain, Reason: ledger.PublicMessage(err), Refs: inventory.RefsOf(err)}
		a.Hint = inventory.HintOf(err)
		in.Decision = a.Decision
		if a.script, err = d.script(in); err != nil {
			return a, err
		}
	}
	return a, d.conclude(tx, q, &a)
}

// hasOthers reports whether other instances serve machines.
func (d *Decider) hasOthers() bool { return d.others != nil && len(d.others()) > 0 }

// image looks at a host that is about to get its image, for its configuration and for what speaks against the boot, and
// decides again.
func (d *Decider) image(tx inventory.Tx, q *question, a *answer, mayRender bool) (err error) {
	h := &q.host
	// The rendering that is kept is enough in most cases. Without one the caller renders outside of the transaction that writes.
	a.config, a.isUnrendered, err = d.configurer.ConfigAtHand(tx, h, a.plan, q.c.MAC)
	if a.isUnrendered && mayRender {
		a.isUnrendered = false
		a.config, err = d.configurer.ConfigOf(tx, h, a.plan, q.c.MAC)
	}
	if err != nil || a.isUnrendered {
		return err
	}
	// After the rendering, because only that shows whether the boot would get secrets.
	if isHeld(q.verdict, a.config) {
		a.Decision = held(h, q.verdict)
		return nil
	}
	if a.plan, a.config, err = d.configurer.Given(tx, h, a.plan, a.config); err != nil {
		return err
	}
	// The way on which secrets can travel may be a reason against the boot. So the decision is made again after this.
	if a.config != nil {
		d.deliverer.Confide(&a.plan, a.config, q.c, q.base)
	}
	if a.Decision = pxe.Decide(q.c, h, a.plan, d.now()); a.Boot != pxe.BootImage {
		return nil
	}
	if q.verdict.Proof != inventory.ProofNone && a.plan.Work == nil { // an operation counts its attempts itself
		if a.objection, err = d.objectionTo(tx, q, a.plan); err != nil || a.objection != nil {
			return err
		}
	}
	if a.plan.Problem, err = d.bootstraps.Awaited(tx, h, a.config); err != nil {
		return err
	}
	// Turns are taken only when nothing else is missing: a host that waits for data must not keep others waiting.
	if a.isAsking = a.plan.Problem != nil; !a.isAsking {
		if a.turns, a.plan.Problem, err = d.operator.Turns(tx, h, a.config); err != nil {
			return err
		}
	}
	a.Decision = pxe.Decide(q.c, h, a.plan, d.now())
	// Waiting for data or for a turn ends by itself, and is nothing that an admin has to repair.
	a.IsTrap = a.IsTrap && !delivery.IsAwaitedProblem(a.plan)
	return nil
}

// conclude says what a decision makes of its boot.
func (d *Decider) conclude(tx inventory.Tx, q *question, a *answer) error {
	s := q.session
	s.Boot, s.Reason, s.Step, s.LastAt = string(a.Boot), a.Reason, inventory.EventBootDecided, d.now()
	if a.plan.Profile != nil {
		s.Profile, s.Image = a.plan.Profile.Name, a.plan.Image.Name
	}
	switch a.Boot {
	// The agent is no image of a profile. The profile of the host would only mislead the reader of the timeline.
	case pxe.BootAgent:
		s.Profile, s.Image = "", a.plan.Work.Agent.Name
	case pxe.BootImage:
		if a.config != nil {
			s.Config = a.config.Digest
		}
	}
	op, err := tx.FindOpenOperation(q.host.ID)
	if err != nil && !inventory.IsKind(err, inventory.NotFound) {
		return fmt.Errorf("read what is done with %s: %w", q.host.Name, err)
	}
	a.Refs = inventory.OfMachine(op.Machine, a.Refs...)
	s.Refs = ref.In(s.Reason, a.Refs...)
	// A boot that nothing proves moves no operation, so it does not get the id of one.
	if err == nil && s.Proof != inventory.ProofNone {
		a.operation, s.Operation = op, op.ID
	}
	a.session = s
	return nil
}

// script writes a decision as a script.
func (d *Decider) script(in pxe.ScriptInput) ([]byte, error) {
	// The key of the agent is only in its script: DHCP answers, which anybody hears, have the id of the boot but no key.
	if in.Decision.Boot == pxe.BootAgent {
		in.AgentKey = d.admission.AgentKey(in.Session)
	}
	return pxe.Script(in)
}

// Breaker is the loop breaker. It quarantines a host that has booted an image Boots times Within that time without ever
// reporting up.
type Breaker struct {
	Boots  int
	Within time.Duration
}

// DefaultBreaker stops the sixth fruitless boot within an hour.
var DefaultBreaker = Breaker{Boots: 5, Within: time.Hour}

// objection is what speaks against giving a host its image once more.
type objection struct {
	isLoaded bool   // its installer was loaded in an earlier boot: the host is disarmed
	loop     string // it boots without end: the host is quarantined, and this says why
}

// objectionTo returns the objection to giving a host its image once more, nil for none.
func (d *Decider) objectionTo(tx inventory.Tx, q *question, p pxe.Plan) (*objection, error) {
	h, s := &q.host, &q.session
	if h.State != inventory.Installing {
		return nil, nil
	}
	latest, err := tx.ListSessions(h.ID, inventory.Page{Limit: d.breaker.Boots + 1})
	if err != nil {
		return nil, fmt.Errorf("read boots of %s: %w", h.Name, err)
	}
	// Boots from before the host got its state belong to an earlier order.
	since := d.now().Add(-d.breaker.Within)
	if h.StateSinceAt.After(since) {
		since = h.StateSinceAt
	}
	var o objection
	n := 0
	for _, old := range latest {
		if old.ID == s.ID || old.Boot != string(pxe.BootImage) {
			continue
		}
		// Whether it reported or not: no host is installed twice for one word of a person.
		if p.Image.IsInstaller && !old.LastAt.Before(h.StateSinceAt) && session.StepIndex(old.Step) >= session.StepIndex(inventory.EventArtefactSent) {
			o.isLoaded = true
		}
		if !old.LastAt.Before(since) {
			n++
		}
	}
	if n >= d.breaker.Boots && s.Boot != string(pxe.BootImage) { // else this boot has been counted
		o.loop = fmt.Sprintf("%s was given its image %d times within %s and never reported up", h.Name, n, inventory.Duration(d.breaker.Within))
	}
	if o == (objection{}) {
		return nil, nil
	}
	return &o, nil
}
