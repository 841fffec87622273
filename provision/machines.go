package provision

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"slipway.dev/slipway/hardware/placement"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
)

// CreateMachine notes that somebody wants a machine; a host is found for it at once or later. It is idempotent for
// machines that have an owner.
func (e *Engine) CreateMachine(ctx context.Context, m inventory.Machine, who ledger.Asker) (inventory.Machine, error) {
	m.UID, m.Phase, m.Reason, m.HostID, m.ClaimID = e.cfg.NewULID(), inventory.MachinePending, "waits for a host", "", ""
	for i := range m.Hooks {
		m.Hooks[i].AckedAt, m.Hooks[i].Reason = time.Time{}, ""
	}
	m.Hint, m.AttemptN, m.Avoid, m.DeletedAt, m.IsForced, m.NextAt = "", 0, nil, time.Time{}, false, e.cfg.Now()
	if err := m.Validate(); err != nil {
		return m, err
	}
	err := e.ledger.Write(ctx, who, func(tx inventory.Tx) error {
		if m.Owner != "" {
			if old, err := tx.FindMachineByOwner(m.Owner); err == nil {
				m = old
				return nil
			}
		}
		if err := e.preflight(tx, &m); err != nil {
			return err
		}
		if err := tx.CreateMachine(&m, e.cfg.Now()); err != nil {
			return err
		}
		if err := e.Hold(tx, &m, nil); err != nil {
			return err
		}
		return e.noteMachine(tx, &m, "wanted by "+who.By+" with profile "+m.Profile)
	})
	e.poke()
	return m, err
}

// preflight refuses a machine that could never be installed.
func (e *Engine) preflight(tx inventory.Tx, m *inventory.Machine) error {
	i, err := e.imageOf(tx, m)
	if err != nil {
		return err
	}
	if i.IsDisk() {
		if _, err := tx.FindImage(inventory.AgentImage(i.Arch)); inventory.IsKind(err, inventory.NotFound) {
			return inventory.Errorf(inventory.Conflict, "image %s is written by our agent, and there is no agent image for %s", i.Name, i.Arch).
				WithHint("make it with: slipway agent-image build")
		}
	}
	if m.Pool != "" && m.Pool != inventory.DefaultPool {
		if _, err := tx.Pools().Find(m.Pool); inventory.IsKind(err, inventory.NotFound) {
			return inventory.Errorf(inventory.Invalid, "there is no pool %q", inventory.Clean(m.Pool, 64)).WithHint("list them with: slipway pool list")
		}
	}
	if m.Placement.Host != "" {
		if _, err := tx.FindHostByName(m.Placement.Host); inventory.IsKind(err, inventory.NotFound) {
			return inventory.Errorf(inventory.Invalid, "there is no host %q", inventory.Clean(m.Placement.Host, 64)).WithHint("list them with: slipway host list")
		}
	}
	return e.checkWanted(tx, m)
}

// DeleteMachine asks for the end of a machine: its host is fenced, wiped and free again. With force nothing of that is
// waited for, and the host is quarantined. Asking again is harmless.
func (e *Engine) DeleteMachine(ctx context.Context, name string, force bool, who ledger.Asker) (m inventory.Machine, err error) {
	err = e.ledger.Write(ctx, who, func(tx inventory.Tx) error {
		if m, err = tx.FindMachine(name); err != nil {
			return err
		}
		return e.deleteMachine(tx, &m, force, who.By)
	})
	e.poke()
	return m, err
}

func (e *Engine) deleteMachine(tx inventory.Tx, m *inventory.Machine, force bool, by string) error {
	now := e.cfg.Now()
	if m.DeletedAt.IsZero() {
		m.DeletedAt = now
	}
	m.IsForced, m.Phase, m.NextAt = m.IsForced || force, inventory.MachineDeleting, time.Time{}
	m.Reason = "deleted by " + by
	if m.HostID == "" {
		return e.gone(tx, m, "it had no host")
	}
	h, err := tx.FindHost(m.HostID)
	if err != nil {
		return fmt.Errorf("read host of machine %s: %w", m.Name, err)
	}
	if h.IsProtected && !force && !h.IsAdopted {
		return inventory.Errorf(inventory.Forbidden, "host %s of machine %s is protected: it is not wiped", h.Name, m.Name).
			WithHint("lift it: slipway host protect %s --off; or --force leaves the host as it is, in quarantine", h.Name)
	}
	op, err := tx.FindOpenOperation(h.ID)
	switch {
	case err == nil && op.Kind == inventory.OpRelease && !force:
		return e.saveMachine(tx, m, m.Reason)
	case err == nil:
		j, err := e.jobOf(tx, op)
		if err != nil {
			return err
		}
		if err := j.cancel("machine " + m.Name + " was deleted"); err != nil {
			return err
		}
		h = j.host
	case !inventory.IsKind(err, inventory.NotFound):
		return err
	}
	if err := e.saveMachine(tx, m, m.Reason); err != nil {
		return err
	}
	if h.IsAdopted {
		return e.letGo(tx, m, &h, by)
	}
	if force {
		return e.releaseMachine(tx, m, &h, by)
	}
	if err := e.ledger.Move(tx, &h, inventory.Retire, "", "machine "+m.Name+" was deleted by "+by); err != nil {
		return err
	}
	clean, staysDirty, err := e.endOf(tx, m, &h)
	if err != nil {
		return err
	}
	_, err = e.start(tx, &h, inventory.Operation{Kind: inventory.OpRelease, Machine: m.Name, MachineUID: m.UID, ClaimID: m.ClaimID, Pool: poolName(m.Pool), By: by}, Params{
		Clean: clean, StaysDirty: staysDirty, Keep: m.KeepDisks, IsGone: true, ReleaseAfter: m.ReleaseAfter, MayRestart: true,
		Road: e.roadOfMachine(tx, m),
	})
	return err
}

func poolName(name string) string { return cmp.Or(name, inventory.DefaultPool) }

func (e *Engine) poolOf(tx inventory.Tx, name string) (inventory.Pool, error) {
	p, err := tx.Pools().Find(poolName(name))
	if inventory.IsKind(err, inventory.NotFound) {
		return inventory.Pool{Name: poolName(name)}, nil
	}
	return p, err
}

// roadOfMachine is the road that a machine's image takes now, disk when that cannot be known.
func (e *Engine) roadOfMachine(tx inventory.Tx, m *inventory.Machine) Road {
	i, err := e.imageOf(tx, m)
	if err != nil {
		return RoadDisk
	}
	return roadOf(&i)
}

// releaseMachine is a deletion by force: the host is nobody's, and in quarantine, because its old system may run on.
func (e *Engine) releaseMachine(tx inventory.Tx, m *inventory.Machine, h *inventory.Host, by string) error {
	j := &job{e: e, tx: tx, host: *h}
	if err := j.unclaim(m, "released by force by "+by); err != nil {
		return err
	}
	if err := e.Leave(tx, m, h); err != nil {
		return err
	}
	if err := j.moveIf(inventory.Fault, "released by force by "+by+": not fenced, not wiped"); err != nil {
		return err
	}
	return e.gone(tx, m, "its host "+h.Name+" is in quarantine: not fenced, not wiped")
}

// letGo ends the machine of an adopted host, whose system is not ours and runs on.
func (e *Engine) letGo(tx inventory.Tx, m *inventory.Machine, h *inventory.Host, by string) error {
	j := &job{e: e, tx: tx, host: *h}
	if err := j.unclaim(m, "let go by "+by); err != nil {
		return err
	}
	if err := e.Leave(tx, m, h); err != nil {
		return err
	}
	return e.gone(tx, m, "its host "+h.Name+" was adopted, and runs on")
}

// gone removes a machine that holds no host any more.
func (e *Engine) gone(tx inventory.Tx, m *inventory.Machine, detail string) error {
	if err := e.noteMachine(tx, m, "gone: "+detail); err != nil {
		return err
	}
	e.Bootstraps.Drop(m.UID)
	e.rejections.put(m.UID, placement.Choice{Host: &inventory.Host{}})
	return tx.DeleteMachine(m.Name)
}

// saveMachine stores a machine with the event that says what changed.
func (e *Engine) saveMachine(tx inventory.Tx, m *inventory.Machine, detail string) error {
	if err := tx.UpdateMachine(m, e.cfg.Now()); err != nil {
		return fmt.Errorf("store machine %s: %w", m.Name, err)
	}
	return e.noteMachine(tx, m, detail)
}

func (e *Engine) noteMachine(tx inventory.Tx, m *inventory.Machine, detail string) error {
	return tx.AddEvent(&inventory.Event{
		At: e.cfg.Now(), Kind: inventory.EventMachine, HostID: m.HostID, Subject: "machine/" + m.Name, Detail: inventory.Clean(detail, 500),
		Data: ledger.MachineData(m, map[string]any{"phase": m.Phase, "claim": m.ClaimID}),
	})
}

// machine returns the machine that the operation is for, nil for none.
func (j *job) machine() (*inventory.Machine, error) {
	if j.op.MachineUID == "" {
		return nil, nil
	}
	m, err := j.tx.FindMachineByUID(j.op.MachineUID)
	if inventory.IsKind(err, inventory.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read machine %s: %w", j.op.Machine, err)
	}
	return &m, nil
}

// tellMachine lets the machine say what is being done for it. It is written when it changes only.
func (j *job) tellMachine(phase inventory.MachinePhase, reason, hint string) error {
	m, err := j.machine()
	if err != nil || m == nil || m.HostID != j.host.ID { // it has gone on to another host
		return err
	}
	if reason == "" && j.op.IsOpen() {
		reason = fmt.Sprintf("%s on %s: %s", j.op.Kind, j.host.Name, j.op.Step)
	}
	if m.Phase == phase && m.Reason == reason && m.Hint == hint {
		return nil
	}
	isNews := m.Phase != phase
	m.Phase, m.Reason, m.Hint = phase, reason, hint
	if isNews {
		return j.e.saveMachine(j.tx, m, cmp.Or(reason, string(phase)))
	}
	return j.tx.UpdateMachine(m, j.e.cfg.Now())
}

// phase is what the operation means for its machine.
func (j *job) phase() inventory.MachinePhase {
	switch j.op.Kind {
	case inventory.OpRelease:
		return inventory.MachineDeleting
	case inventory.OpInstall, inventory.OpReinstall, inventory.OpRemediate:
		return inventory.MachineProvisioning
	}
	return inventory.MachineRunning
}

// AckHook acknowledges a hook, so that the step it blocks goes on. Every hook of the step by that owner counts.
func (e *Engine) AckHook(ctx context.Context, name string, step inventory.HookStep, owner string, who ledger.Asker) (m inventory.Machine, err error) {
	err = e.ledger.Write(ctx, who, func(tx inventory.Tx) error {
		if m, err = tx.FindMachine(name); err != nil {
			return err
		}
		i, err := findHook(&m, step, owner)
		if err != nil {
			return err
		}
		if m.Hooks[i].AckedAt.IsZero() {
			m.Hooks[i].AckedAt, m.Hooks[i].Reason = e.cfg.Now(), ""
		}
		if err := e.saveMachine(tx, &m, fmt.Sprintf("hook %s of %s acknowledged by %s", step, owner, who.By)); err != nil {
			return err
		}
		return e.wakeOperation(tx, m.HostID)
	})
	e.poke()
	return m, err
}

// HoldHook says why a hook is not acknowledged yet. People read it at the machine, its host or its operation. One that is
// acknowledged says no more.
func (e *Engine) HoldHook(ctx context.Context, name string, step inventory.HookStep, owner, reason string, who ledger.Asker) (m inventory.Machine, err error) {
	reason = inventory.Clean(reason, inventory.ReasonAtMost)
	err = e.ledger.Write(ctx, who, func(tx inventory.Tx) error {
		if m, err = tx.FindMachine(name); err != nil {
			return err
		}
		i, err := findHook(&m, step, owner)
		if err != nil || !m.Hooks[i].AckedAt.IsZero() || m.Hooks[i].Reason == reason {
			return err
		}
		m.Hooks[i].Reason = reason
		text, _ := hookWait(&m, m.Hooks[i])
		if err := e.saveMachine(tx, &m, text); err != nil {
			return err
		}
		return e.wakeOperation(tx, m.HostID)
	})
	e.poke()
	return m, err
}

func findHook(m *inventory.Machine, step inventory.HookStep, owner string) (int, error) {
	i := slices.IndexFunc(m.Hooks, func(h inventory.Hook) bool { return h.Step == step && h.Owner == owner })
	if i < 0 {
		return i, inventory.Errorf(inventory.NotFound, "machine %s has no hook %s of %s", m.Name, inventory.Clean(string(step), 40), inventory.Clean(owner, 64))
	}
	return i, nil
}

// hookWait says what a hook keeps a machine waiting for, and what to do.
func hookWait(m *inventory.Machine, h inventory.Hook) (reason, hint string) {
	hint = fmt.Sprintf("slipway machine ack %s %s %s", m.Name, h.Step, h.Owner)
	if h.Reason == "" {
		return fmt.Sprintf("hook %s of %s is not acknowledged", h.Step, h.Owner), hint
	}
	return h.Reason + " (hook " + string(h.Step) + " of " + h.Owner + ")", "it goes on when " + h.Owner + " acknowledges; not to wait for that: " + hint
}

// wakeOperation makes a waiting operation look again.
func (e *Engine) wakeOperation(tx inventory.Tx, h inventory.HostID) error {
	op, err := tx.FindOpenOperation(h)
	if h == "" || err != nil {
		return ledger.IgnoreNotFound(err)
	}
	if op.State != inventory.OpWaiting {
		return nil
	}
	op.NextAt = e.cfg.Now()
	return tx.UpdateOperation(&op, e.cfg.Now())
}

// RetryMachine lets a machine that has failed try again, on any host.
func (e *Engine) RetryMachine(ctx context.Context, name string, who ledger.Asker) (m inventory.Machine, err error) {
	err = e.ledger.Write(ctx, who, func(tx inventory.Tx) error {
		if m, err = tx.FindMachine(name); err != nil {
			return err
		}
		if m.Phase != inventory.MachineFailed || m.HostID != "" {
			return inventory.Errorf(inventory.Conflict, "machine %s is %s", m.Name, m.Phase).WithHint("only a machine that has failed and has no host is tried again")
		}
		m.Phase, m.Reason, m.Hint, m.Avoid, m.AttemptN, m.NextAt = inventory.MachinePending, "tried again by "+who.By, "", nil, 0, e.cfg.Now()
		return e.saveMachine(tx, &m, m.Reason)
	})
	e.poke()
	return m, err
}

// AdoptMachine makes a machine of a server that runs already: nothing is started on it, now or when the machine goes.
func (e *Engine) AdoptMachine(ctx context.Context, m inventory.Machine, host inventory.HostID, who ledger.Asker) (inventory.Machine, error) {
	m.UID, m.Phase, m.Reason, m.Placement = e.cfg.NewULID(), inventory.MachineRunning, "", inventory.Placement{}
	if err := m.Validate(); err != nil {
		return m, err
	}
	err := e.ledger.Write(ctx, who, func(tx inventory.Tx) error {
		h, err := tx.FindHost(host)
		if err != nil {
			return err
		}
		if !h.IsAdopted || h.State != inventory.Active {
			return inventory.Errorf(inventory.Conflict, "host %s is not adopted", h.Name).WithHint("say that it runs already: slipway host adopt %s", h.Name)
		}
		if err := tx.CreateMachine(&m, e.cfg.Now()); err != nil {
			return err
		}
		c := inventory.Claim{ID: inventory.ClaimID(e.cfg.NewULID()), MachineUID: m.UID, Machine: m.Name, HostID: h.ID}
		if err := tx.CreateClaim(&c, e.cfg.Now()); err != nil {
			return err
		}
		if m, err = tx.FindMachine(m.Name); err != nil {
			return err
		}
		if err := tx.SaveHoldings(inventory.Holder{HostID: h.ID}, nil); err != nil {
			return err
		}
		h.Machine = m.Name
		if err := e.Hold(tx, &m, &h); err != nil {
			return err
		}
		return e.noteMachine(tx, &m, "adopted by "+who.By+" with host "+h.Name)
	})
	return m, err
}
