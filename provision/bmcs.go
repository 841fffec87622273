package provision

import (
	"context"
	"crypto/rand"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/address"
	"slipway.dev/slipway/provision/ledger"
)

// Sealer seals what may not be stored in clear.
type Sealer interface {
	Seal(name string, plain []byte) ([]byte, error)
}

// SaveBMC says how a host is powered. An empty password keeps the one that is stored, if user and address stay.
func (e *Engine) SaveBMC(ctx context.Context, b inventory.BMC, password string, who ledger.Asker) (inventory.BMC, error) {
	err := e.TryBMC(ctx, b, password, func(t bmc.Target, open bmc.Opener) error { // its options are the driver's to check
		d, err := open(t)
		if err != nil {
			return err
		}
		return d.Close()
	})
	if err != nil {
		return b, err
	}
	err = e.ledger.Write(ctx, who, func(tx inventory.Tx) error {
		h, err := tx.FindHost(b.HostID)
		if err != nil {
			return err
		}
		old, err := tx.FindBMC(b.HostID)
		switch {
		case inventory.IsKind(err, inventory.NotFound):
		case err != nil:
			return err
		case b.Version == 0:
			b.Version = old.Version
		}
		isSame := old.Address == b.Address && old.Driver == b.Driver && old.Username == b.Username
		switch {
		case password != "":
			if b.Sealed, err = e.cfg.Sealer.Seal(bmcSecret(b.HostID), []byte(password)); err != nil {
				return err
			}
		case isSame:
			b.Sealed = old.Sealed
		}
		b.Others = nil
		if isSame {
			b.Others = old.Others
		}
		if isSame && password != "" && len(old.Sealed) > 0 { // kept until the new one has let us in
			b.Others = keepOther(b.Others, inventory.OtherPassword{Sealed: old.Sealed, At: e.cfg.Now()})
		}
		if err := e.sealOptions(&b); err != nil {
			return err
		}
		b.Power, b.IsReachable, b.Reason = inventory.PowerUnknown, false, "not asked yet"
		if err := address.MaySaveBMC(tx, &b); err != nil {
			return err
		}
		e.NetworkSaved()
		if err := tx.SaveBMC(&b, e.cfg.Now()); err != nil {
			return err
		}
		if err := e.edit(tx, &h, fmt.Sprintf("powered by %s %s, says %s", b.Driver, b.Address, who.By)); err != nil {
			return err
		}
		return e.wakeOperation(tx, b.HostID) // it waits for a person to switch the host, who is not needed any more
	})
	if err == nil {
		e.logins.Forget(b.HostID)
		e.polls.soon(b.HostID)
		e.poke()
	}
	return b, err
}

// TryBMC runs fn with what is needed to connect to a controller that is not saved yet. An empty password stands for the one that is
// stored for the same driver, address and user. It changes nothing.
func (e *Engine) TryBMC(ctx context.Context, b inventory.BMC, password string, fn func(bmc.Target, bmc.Opener) error) error {
	if err := b.Validate(); err != nil {
		return err
	}
	if strings.ContainsFunc(password, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return inventory.Errorf(inventory.Invalid, "bmc: the password has a control character").WithHint("give one line, without its end")
	}
	if e.cfg.OpenBMC == nil {
		return nil
	}
	h, err := e.findHost(ctx, b.HostID)
	if err != nil {
		return err
	}
	if password == "" {
		if password, err = e.storedPassword(ctx, &b); err != nil {
			return err
		}
	}
	opened, err := e.openedOptions(b)
	if err != nil {
		return err
	}
	return fn(bmc.Target{BMC: opened, Password: password, HostName: h.Name, HostMACs: h.MACs()}, e.cfg.OpenBMC)
}

// storedPassword is the one that is stored for a controller and goes on to be used when b is saved without one; "" for none.
func (e *Engine) storedPassword(ctx context.Context, b *inventory.BMC) (string, error) {
	var old inventory.BMC
	err := e.cfg.Store.Read(ctx, func(tx inventory.Tx) (err error) {
		old, err = tx.FindBMC(b.HostID)
		return ledger.IgnoreNotFound(err)
	})
	isSame := old.Address == b.Address && old.Driver == b.Driver && old.Username == b.Username
	if err != nil || !isSame || len(old.Sealed) == 0 {
		return "", err
	}
	password, err := e.cfg.Secrets.Open(bmcSecret(b.HostID), old.Sealed)
	return string(password), err
}

// Power asks for a change of power. It is an operation: the change is confirmed, and tried again.
func (e *Engine) Power(ctx context.Context, id inventory.HostID, a bmc.Action, who ledger.Asker) (op inventory.Operation, err error) {
	switch a {
	case bmc.On, bmc.Off, bmc.Shutdown, bmc.Cycle, bmc.Reset:
	default:
		return op, inventory.Errorf(inventory.Invalid, "%q is no change of power", inventory.Clean(string(a), 40)).WithHint("use on, off, shutdown, cycle or reset")
	}
	_, err = e.changed(ctx, who, id, func(tx inventory.Tx, h *inventory.Host) error {
		if open, err := tx.FindOpenOperation(h.ID); err == nil {
			return inventory.Errorf(inventory.Conflict, "host %s is busy: %s", h.Name, describeOperation(&open)).
				WithHint("slipway operation cancel %s ends that", open.ID)
		}
		j, err := e.start(tx, h, inventory.Operation{Kind: inventory.OpPower, By: who.By}, Params{Action: a})
		if err == nil {
			op = j.op
		}
		return err
	})
	if err == nil && !who.DryRun {
		e.logins.Forget(id)
	}
	return op, err
}

// ConfirmPower takes a person's word for the power state of a host whose power cannot be read.
func (e *Engine) ConfirmPower(ctx context.Context, id inventory.HostID, is inventory.PowerState, who ledger.Asker) (inventory.Host, error) {
	if is != inventory.PowerOn && is != inventory.PowerOff {
		return inventory.Host{}, inventory.Errorf(inventory.Invalid, "a host is on or off, not %q", inventory.Clean(string(is), 20))
	}
	if err := e.contradicts(ctx, id, is); err != nil {
		return inventory.Host{}, err
	}
	return e.changed(ctx, who, id, func(tx inventory.Tx, h *inventory.Host) error {
		now := e.cfg.Now()
		b, err := tx.FindBMC(h.ID)
		if err == nil {
			b.Power, b.PowerAt = is, now
			err = tx.SaveBMC(&b, now)
		}
		if err = ledger.IgnoreNotFound(err); err != nil {
			return err
		}
		if err := tx.AddEvent(&inventory.Event{At: now, Kind: inventory.EventPower, HostID: h.ID, Detail: "power is " + string(is) + ", says " + who.By, Data: map[string]any{"to": is, "by": who.By}}); err != nil {
			return err
		}
		e.agents.forget(h.ID)
		if is == inventory.PowerOff && !who.DryRun {
			e.switchedOff(h.ID, now)
		}
		op, err := tx.FindOpenOperation(h.ID)
		if err != nil {
			return ledger.IgnoreNotFound(err)
		}
		j, err := e.jobOf(tx, op)
		if err != nil {
			return err
		}
		if is == inventory.PowerOff {
			j.p.OffAt = now
			j.op.Params = j.p.encode()
			if err := tx.UpdateOperation(&j.op, now); err != nil {
				return err
			}
		}
		isAnswer := op.Step == inventory.StepFence && is == inventory.PowerOff ||
			op.Kind == inventory.OpPower && is == stateAfter(paramsOf(&op).Action)
		if !isAnswer || h.InMaintenance {
			return nil
		}
		if err := e.ledger.CloseIssue(tx, j.issue(inventory.IssueManual, "", "", ""), "confirmed by "+who.By); err != nil {
			return err
		}
		if err := j.forward(); err != nil {
			return err
		}
		*h = j.host
		return nil
	})
}

// contradicts refuses a person's word that the host's own controller denies: a fence relies on it.
func (e *Engine) contradicts(ctx context.Context, id inventory.HostID, is inventory.PowerState) error {
	h, err := e.findHost(ctx, id)
	if err != nil {
		return err
	}
	p, err := e.openPower(ctx, &h)
	if err != nil {
		return err
	}
	defer p.close()
	if p.isHandy() {
		return nil
	}
	octx, cancel := context.WithTimeout(ctx, pollFor)
	defer cancel()
	said, err := p.driver.Power(octx)
	if err != nil || said == inventory.PowerUnknown || said == is {
		return nil // nobody else knows
	}
	return inventory.Errorf(inventory.Conflict, "the controller of %s says that it is %s", h.Name, said).
		WithHint("if the controller is wrong, take it away first: slipway host bmc %s --delete", h.Name)
}

// stateAfter is the power state that a change leads to.
func stateAfter(a bmc.Action) inventory.PowerState {
	if a == bmc.Off || a == bmc.Shutdown {
		return inventory.PowerOff
	}
	return inventory.PowerOn
}

// WithBMC runs fn with the driver of a host's controller. Nothing that fn does is part of an operation.
func (e *Engine) WithBMC(ctx context.Context, id inventory.HostID, fn func(d bmc.Driver, b inventory.BMC) error) error {
	h, err := e.findHost(ctx, id)
	if err != nil {
		return err
	}
	p, err := e.openPower(ctx, &h)
	if err != nil {
		return err
	}
	defer p.close()
	if p.err != nil {
		return p.err
	}
	if p.driver == nil {
		return inventory.Errorf(inventory.NotFound, "host %s has no controller", h.Name).WithHint("name it with: slipway host bmc %s --driver redfish --address https://...", h.Name)
	}
	return fn(p.driver, p.record)
}

// NoteCheck stores the result of a check of a host's controller that the engine did not start. It has the power, or the
// reason why that is unknown.
func (e *Engine) NoteCheck(ctx context.Context, h inventory.Host, is inventory.PowerState, problem error, can []string, all inventory.LastCheck) {
	all.At = e.cfg.Now()
	if can != nil {
		err := e.editBMC(ctx, h.ID, func(b *inventory.BMC) { b.Capabilities = can })
		if err != nil {
			e.cfg.Log.Warn("what a controller can do is not stored", "host", h.Name, "err", err)
		}
	}
	e.notePower(ctx, &h, powering{}, is, problem, &all)
}

// newPassword draws 16 characters, which is as long as IPMI 1.5 passwords may be; two of them meet the rules that
// some vendors have.
func newPassword() (string, error) {
	const letters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
	b := []byte("A7")
	for len(b) < 16 {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(letters))))
		if err != nil {
			return "", fmt.Errorf("draw a password: %w", err)
		}
		b = append(b, letters[n.Int64()])
	}
	return string(b), nil
}

// polls is when controllers are asked next for power state and reachability.
type polls struct {
	mu   sync.Mutex
	next map[inventory.HostID]time.Time
}

func (p *polls) soon(h inventory.HostID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.next, h)
}

// isDue reports whether a host's controller is to be asked, and sets the next time.
func (p *polls) isDue(h inventory.HostID, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		p.next = map[inventory.HostID]time.Time{}
	}
	if now.Before(p.next[h]) {
		return false
	}
	p.next[h] = now.Add(pollEvery)
	return true
}

const (
	pollEvery  = 2 * time.Minute
	pollAtOnce = 256
	pollFor    = 30 * time.Second // a controller that is slower counts as unreachable
	pollPage   = 500
)

// poll asks the controllers in turn until ctx is done; one that hangs holds up nothing but itself.
func (e *Engine) poll(ctx context.Context) error {
	slots := make(chan struct{}, pollAtOnce)
	var workers sync.WaitGroup
	defer workers.Wait()
	t := time.NewTicker(5 * time.Second)
	defer t.Stop()
	for {
		if err := e.pollOnce(ctx, slots, &workers); err != nil && ctx.Err() == nil {
			e.cfg.Log.Warn("controllers not asked", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

func (e *Engine) pollOnce(ctx context.Context, slots chan struct{}, workers *sync.WaitGroup) error {
	for after := ""; ; {
		var page []inventory.BMC
		err := e.cfg.Store.Read(ctx, func(tx inventory.Tx) (err error) {
			page, err = tx.ListBMCs(inventory.Page{After: after, Limit: pollPage})
			return err
		})
		if err != nil || len(page) == 0 {
			return err
		}
		for _, b := range page {
			after = string(b.HostID)
			if b.Driver == inventory.Manual || e.busy.has(b.HostID) || e.logins.Held(&b, e.cfg.Now()) != nil || !e.polls.isDue(b.HostID, e.cfg.Now()) {
				continue
			}
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return nil
			}
			workers.Go(func() {
				defer func() { <-slots }()
				octx, cancel := context.WithTimeout(ctx, pollFor)
				defer cancel()
				h, err := e.findHost(octx, b.HostID)
				if err != nil {
					return
				}
				p, err := e.openPower(octx, &h)
				if err != nil {
					return
				}
				e.readPower(octx, &h, &p)
				p.close()
			})
		}
	}
}

// CancelOperation ends what is being done with a host. The host stays in its state, quarantined where that would not be
// safe to go on from.
func (e *Engine) CancelOperation(ctx context.Context, id string, who ledger.Asker) (op inventory.Operation, err error) {
	err = e.ledger.Write(ctx, who, func(tx inventory.Tx) error {
		if op, err = tx.FindOperation(id); err != nil {
			return err
		}
		if !op.IsOpen() {
			return inventory.Errorf(inventory.Conflict, "operation %s is %s already", op.ID, op.State)
		}
		j, err := e.jobOf(tx, op)
		if err != nil {
			return err
		}
		if err := j.cancel("by " + who.By); err != nil {
			return err
		}
		op = j.op
		switch op.Kind {
		case inventory.OpPower, inventory.OpRotate:
			return nil
		case inventory.OpInspect:
			return j.moveIf(inventory.Release, "inspection cancelled by "+who.By)
		}
		if err := j.moveIf(inventory.Fault, describeOperation(&op)+" was cancelled by "+who.By); err != nil {
			return err
		}
		return j.tellMachine(inventory.MachineFailed, describeOperation(&op)+" was cancelled by "+who.By, "slipway machine delete "+op.Machine+", or: slipway machine reinstall "+op.Machine)
	})
	e.poke()
	return op, err
}
