package boot

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ahead"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/provision/strangers"
	"slipway.dev/slipway/pxe"
)

// Scripts answers machines that ask for their boot scripts.
type Scripts struct {
	Frame
	decider   *Decider
	decisions *Decisions
	registry  *Registry
	judge     *Judge
	timeline  *Timeline
	gate      *strangers.Gate
	admission *delivery.Admission
	signs     *operation.Signs
}

// Ask returns the small script that makes iPXE report what the machine is and fetch its decision. The session may be
// "": a machine that found the script by itself is known by the MAC that it reports.
func (s *Scripts) Ask(ctx context.Context, id inventory.SessionID, source netip.Addr, base string) ([]byte, error) {
	running, isRunning := s.timeline.SessionAt(source)
	// The address shows which boot it is. An id in the request would prove nothing more.
	isShown := id == "" || id == running.ID
	if isShown {
		id = running.ID
	}
	if isShown && !(isRunning && s.decider.hasOthers()) {
		return pxe.AskScript(base, id), nil
	}
	var others []netip.Addr
	err := s.Store.Read(ctx, func(tx inventory.Tx) (err error) {
		if !isShown {
			running, err = s.admission.Admitted(tx, id, source, "", "ask")
			if err = ledger.IgnoreNotFound(err); err != nil { // of a boot that was lost the script begins another
				return err
			}
		}
		others, err = delivery.OnNetwork(tx, s.decider.others, running.Subnet)
		return err
	})
	return pxe.AskScript(base, id, others...), err
}

// Script decides what the machine boots and returns it as a script. Everything that follows from the decision is on disk
// before the script is returned: the host's facts and state, the session, events and issues. A killed server therefore
// knows what it has started.
func (s *Scripts) Script(ctx context.Context, id inventory.SessionID, c pxe.Client, base string) ([]byte, error) {
	// A loader without a MAC in its request is known by its address alone.
	if c.MAC == "" {
		running, _ := s.timeline.SessionAt(c.Address)
		c.MAC = running.MAC
	}
	q := question{id: id, c: c, base: base}
	// A machine that waits asks every few seconds. While nothing changes, it does not wait for those who write.
	if before, ok := s.Sessions.Of(c.MAC); ok && before.ID == id && before.Boot != "" {
		if a, isRepeat := s.repeat(ctx, q); isRepeat {
			s.Sessions.Put(a.session)
			return a.script, nil
		}
	}
	// Only unaccepted machines pay. A host of ours must boot however often it asks.
	if s.gate.IsStranger(c.MAC) && !s.gate.Pays(id, c.MAC, c.Port, 2, 0) {
		return nil, strangers.OverBudget()
	}
	a, err := s.answer(ctx, q, false)
	if err == nil && a.isUnrendered {
		// Rendering takes up to seconds, and nobody else can write during a transaction that writes. So it is done between
		// two of them. What changes meanwhile is rendered in the second.
		if err = s.render(ctx, q); err == nil {
			a, err = s.answer(ctx, q, true)
		}
	}
	if err != nil {
		return nil, err
	}
	// After the commit: the machine gets its script only when the store has all that follows from it.
	s.Sessions.Put(a.session)
	if a.operation.ID != "" {
		s.signs.Poke()
	}
	return a.script, nil
}

// repeat answers a machine as before. isRepeat is false when that is not the whole answer: then something has to be written.
func (s *Scripts) repeat(ctx context.Context, q question) (a answer, isRepeat bool) {
	err := s.Store.Read(ctx, func(tx inventory.Tx) error {
		err := s.find(tx, &q)
		if err != nil || q.news.isAny() || q.plan.Work != nil { // an operation may go on by what is asked
			return err
		}
		a, err = s.decider.decide(tx, &q, false)
		isRepeat = a.isRepeatOf(q.before)
		return err
	})
	return a, isRepeat && err == nil
}

// answer decides in one transaction, and stores the decision with what the machine says. If the decision needs a rendering
// that may not be made here, the answer says so; what the machine says is stored even then.
func (s *Scripts) answer(ctx context.Context, q question, mayRender bool) (a answer, err error) {
	err = ahead.Write(ctx, s.Store, s.expecting(&q), func(tx inventory.Tx) error {
		q := q
		if err := s.find(tx, &q); err != nil {
			return err
		}
		if err := s.takeIn(tx, &q); err != nil {
			return err
		}
		a, err = s.decider.decide(tx, &q, mayRender)
		if err == nil && a.objection != nil {
			if err = s.decisions.object(tx, &q, a.objection); err == nil { // it changes the host
				a, err = s.decider.decide(tx, &q, mayRender)
			}
			if err == nil && a.objection != nil { // then the answer is not made, and the machine would get an empty script
				err = fmt.Errorf("decide for %s: the same objection again", q.host.Name)
			}
		}
		if err != nil || a.isUnrendered {
			return err
		}
		return s.decisions.store(tx, &q, &a)
	})
	return a, err
}

// expecting calls what the transaction of an answer reads, see package ahead. A test in test/instances counts the ways that this saves.
func (s *Scripts) expecting(q *question) func(inventory.Tx) {
	c, h := &q.c, s.Sessions.HostOf(q.c.MAC)
	port := c.Port
	if running, ok := s.Sessions.Of(c.MAC); ok {
		port = running.Port
	}
	return func(tx inventory.Tx) {
		_, _ = tx.FindHostByMAC(c.MAC)
		if h == "" {
			said := pxe.Identity{UUID: c.UUID}
			if c.Identity != nil {
				said = *c.Identity
			}
			for _, m := range said.MACs {
				_, _ = tx.FindHostByMAC(m)
			}
			_ = tx.CreateHost(&inventory.Host{Name: strangers.NameOf(c.MAC)}, s.Now())
			_, _ = tx.FindHostsByHint(said.UUID, said.Serial)
			q.newID = s.registry.newID()
			_, _ = tx.CloseIssue(operation.BootRefused(q.newID, "", pxe.Decision{}).Key, s.Now())
			return
		}
		_, _ = tx.FindHost(h)
		s.judge.expect(tx, h, port)
		s.decider.configurer.Expect(tx, h)
		for _, issue := range []inventory.Issue{operation.BootRefused(h, "", pxe.Decision{}), unconfirmed(&inventory.Host{ID: h})} {
			_, _ = tx.CloseIssue(issue.Key, s.Now())
		}
	}
}

// render makes the rendering that a decision needs. An address that it asks for is kept first.
func (s *Scripts) render(ctx context.Context, q question) error {
	lacking, err := s.rendered(ctx, q)
	if err != nil || lacking == "" {
		return err
	}
	if err := s.decider.configurer.KeepAddress(ctx, lacking); err != nil {
		return nil //nolint:nilerr // what is wrong stands in its rendering
	}
	_, err = s.rendered(ctx, q)
	return err
}

// rendered is one try of render. lacking is the host when an address is asked for of which none is kept yet.
func (s *Scripts) rendered(ctx context.Context, q question) (lacking inventory.HostID, err error) {
	err = s.Store.Read(ctx, func(tx inventory.Tx) error {
		if err := s.find(tx, &q); err != nil || q.news.isUnknown {
			return err
		}
		r, err := s.decider.configurer.ConfigOf(tx, &q.host, q.plan, q.c.MAC)
		if err == nil && r != nil && r.LacksAddress {
			// An address is kept by a transaction that writes, which a read cannot do. The caller does it and renders again.
			lacking = q.host.ID
		}
		return err
	})
	return lacking, err
}

// find reads what an answer depends on. What the machine says of itself stands in q.host, and q.news says what of it is new.
// Of a machine that may be another one than the host nothing is taken over.
func (s *Scripts) find(tx inventory.Tx, q *question) (err error) {
	if q.before, err = s.sessionFor(tx, q.id, q.c); err != nil {
		return err
	}
	// The boot as this request makes it, next to the one before: both are needed to see what is new.
	q.session = s.asked(q.before, q.c)
	c, h := &q.c, &q.host
	c.MAC = q.session.MAC // what DHCP saw counts; a machine may report another card first
	if c.Subnet = cmp.Or(c.Subnet, q.session.Subnet); c.Subnet == "" {
		if c.Subnet, err = subnetOf(tx, c.Address); err != nil {
			return err
		}
	}
	c.Firmware, c.Arch = cmp.Or(q.session.Firmware, c.Firmware), cmp.Or(q.session.Arch, c.Arch)
	*h, err = tx.FindHostByMAC(c.MAC)
	if inventory.IsKind(err, inventory.NotFound) {
		q.news.isUnknown = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("read host of %s: %w", c.MAC, err)
	}
	if q.verdict, err = s.judge.judge(tx, h, &q.session, *c); err != nil {
		return err
	}
	// Nothing that an unproven machine says of itself may change the host. That somebody was there is all that is noted.
	if q.verdict.Proof == inventory.ProofNone {
		s.registry.seen(h)
	} else if q.news.learnt, err = s.registry.identify(tx, h, *c); err != nil {
		return err
	} else if learnPort(h, c.MAC, q.session.Port) {
		q.news.isNew = true
	}
	if q.news.rule, err = ruleFor(tx, h); err != nil {
		return err
	}
	q.news.isSecureBoot = isSecureBootNew(h, c.SecureBoot)
	return s.planFor(tx, q)
}

// planFor finds what the host of a question would boot.
func (s *Scripts) planFor(tx inventory.Tx, q *question) (err error) {
	s.Sessions.SetHost(q.host.ID, q.host.MACs()...)
	q.session.HostID, q.session.Proof = q.host.ID, q.verdict.Proof
	q.plan, err = s.decider.planner.Plan(tx, &q.host, q.c.Subnet)
	return err
}

// takeIn stores what a request tells: a new host, or what is new of one. An operation on the host goes on by it.
func (s *Scripts) takeIn(tx inventory.Tx, q *question) (err error) {
	if q.news.isUnknown {
		err = s.add(tx, q)
	} else if err = s.registry.learn(tx, &q.host, q.news.learnt); err == nil && q.news.rule != "" {
		err = s.registry.acceptBy(tx, &q.host, q.news.rule)
	}
	if err == nil && (q.news.isUnknown || q.news.rule != "") {
		err = s.planFor(tx, q)
	}
	if err == nil {
		err = s.registry.learnSecureBoot(tx, &q.host, q.c.SecureBoot)
	}
	if err == nil && q.plan.Work != nil && q.verdict.Proof != inventory.ProofNone { // what somebody else boots moves no operation
		q.plan, err = s.signs.BootsAgain(tx, &q.host, q.plan, &q.session)
	}
	return err
}

// add adds the host of a machine that nobody has heard of.
func (s *Scripts) add(tx inventory.Tx, q *question) error {
	// A flood of invented MACs must not fill the table of hosts.
	if s.Sessions.HostOf(q.c.MAC) == "" && !s.gate.MayAdd(q.c) {
		return inventory.Errorf(inventory.Unavailable, "too many unknown machines asked at once: this one is not listed yet").
			WithHint("it is listed when it asks again in some minutes; or add it: slipway host create --mac %s", q.c.MAC)
	}
	if q.newID == "" {
		q.newID = s.registry.newID()
	}
	q.host = s.registry.newHost(q.c, q.newID)
	l, err := s.registry.identify(tx, &q.host, q.c)
	if err == nil {
		err = s.registry.openAll(tx, l.conflicts)
	}
	if err != nil {
		return err
	}
	return s.registry.discoverHost(tx, &q.host, q.c)
}

// sessionFor finds the session a script is asked for: by its id, else by MAC, else a new one. A server that was
// killed may have lost the session of a boot it had not decided yet; the machine must not notice.
func (s *Scripts) sessionFor(tx inventory.Tx, id inventory.SessionID, c pxe.Client) (inventory.BootSession, error) {
	// Memory is the quick way for a machine that waits. The address has to fit, because others on the network hear the id.
	if x, ok := s.Sessions.Of(c.MAC); ok && x.ID == id && x.Address == c.Address {
		return x, nil
	}
	if id != "" {
		x, err := s.admission.Admitted(tx, id, c.Address, "", "script")
		if err != nil && !inventory.IsKind(err, inventory.NotFound) {
			return x, err
		}
		if live, ok := s.Sessions.Of(x.MAC); err == nil && ok && live.ID == id {
			return live, nil // it is further than what is on disk
		}
		if err == nil && x.EndedAt.IsZero() {
			return x, nil
		}
		if err == nil && c.MAC == "" {
			c.MAC = x.MAC
		}
	}
	if c.MAC == "" {
		return inventory.BootSession{}, inventory.Errorf(inventory.Invalid, "the request names no machine").
			WithHint("a request for a script needs ?mac=<address>")
	}
	// Without a session the MAC is only a claim. The address must show that it is true.
	if err := s.admission.CheckSource(tx, c); err != nil {
		return inventory.BootSession{}, err
	}
	x, replaced, _ := s.Sessions.Heard(c, inventory.EventScriptAsked)
	if replaced.ID != "" {
		s.Ledger.End(replaced, inventory.OutcomeAbandoned, "the machine started over after "+replaced.Step)
	}
	return x, nil
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
func (s *Scripts) asked(x inventory.BootSession, c pxe.Client) inventory.BootSession {
	x.LastAt = s.Now()
	// A machine that asks again while it waits does not go back a step.
	if session.StepIndex(inventory.EventScriptAsked) > session.StepIndex(x.Step) {
		x.Step = inventory.EventScriptAsked
	}
	if c.Address.IsValid() {
		x.Address = c.Address
	}
	return x
}
