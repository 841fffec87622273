package provision

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/fake"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
)

// world is everything that the promises are about, as the store has it.
type world struct {
	hosts    []inventory.Host
	machines []inventory.Machine
	ops      []inventory.Operation // open ones
	now      time.Time
}

func (w *walk) world() (v world) {
	v.now = w.clock
	v.ops = w.ops()
	w.must(w.store.Read(context.Background(), func(tx inventory.Tx) (err error) {
		if v.hosts, err = tx.ListHosts(inventory.HostFilter{}, inventory.Page{}); err != nil {
			return err
		}
		v.machines, err = tx.ListMachines(inventory.MachineFilter{}, inventory.Page{})
		return err
	}))
	return v
}

func (w *walk) hostOf(b *body) (h inventory.Host, ok bool) {
	err := w.store.Read(context.Background(), func(tx inventory.Tx) (err error) {
		h, err = tx.FindHostByMAC(b.mac())
		return err
	})
	return h, err == nil
}

func (w *walk) machineNamed(name string) (m inventory.Machine, ok bool) {
	err := w.store.Read(context.Background(), func(tx inventory.Tx) (err error) {
		m, err = tx.FindMachine(name)
		return err
	})
	return m, err == nil
}

// promises are what must be true at any time.
func (w *walk) promises() {
	v := w.world()
	owners, busy := map[inventory.HostID]inventory.Machine{}, map[inventory.HostID]inventory.Operation{}
	for _, m := range v.machines {
		if m.HostID != "" {
			if other, ok := owners[m.HostID]; ok {
				w.broken("machines %s and %s both have host %s", m.Name, other.Name, m.HostID)
			}
			owners[m.HostID] = m
		}
		if (m.HostID == "") != (m.ClaimID == "") {
			w.broken("machine %s has host %q and claim %q", m.Name, m.HostID, m.ClaimID)
		}
		if m.Phase != inventory.MachineRunning && m.Reason == "" {
			w.broken("machine %s is %s without a reason", m.Name, m.Phase)
		}
		if m.Phase == inventory.MachineRunning && m.HostID == "" {
			w.broken("machine %s is running without a host", m.Name)
		}
		if m.Phase == inventory.MachinePending && m.NextAt.IsZero() && m.HostID == "" {
			w.broken("machine %s is pending, and nobody will look at it again", m.Name)
		}
	}
	for _, op := range v.ops {
		if other, ok := busy[op.HostID]; ok {
			w.broken("host %s has two open operations: %s and %s", op.HostID, other.Kind, op.Kind)
		}
		busy[op.HostID] = op
		if op.State == inventory.OpWaiting && op.Reason == "" {
			w.broken("operation %s at %s waits without a reason", op.Kind, op.Step)
		}
		if op.State == inventory.OpRunning && op.NextAt.IsZero() && operation.HookOf[op.Step] == "" {
			w.broken("operation %s at %s runs, and nobody will look at it again", op.Kind, op.Step)
		}
	}
	for _, h := range v.hosts {
		w.promisesOf(h, owners, busy)
	}
	for _, m := range v.machines {
		if _, isBusy := busy[m.HostID]; m.Phase == inventory.MachineRunning && !isBusy {
			delete(w.asked, m.UID)
		}
	}
}

// promisesOf are those about one host.
func (w *walk) promisesOf(h inventory.Host, owners map[inventory.HostID]inventory.Machine, busy map[inventory.HostID]inventory.Operation) {
	m, isOwned := owners[h.ID]
	op, isBusy := busy[h.ID]
	switch {
	case (h.ClaimID != "") != isOwned, isOwned && (m.ClaimID != h.ClaimID || m.Name != h.Machine):
		w.broken("host %s has claim %q of %q, and machine %q has claim %q", h.Name, h.ClaimID, h.Machine, m.Name, m.ClaimID)
	case h.ClaimID != "" && (h.State == inventory.Available || h.State == inventory.Discovered || h.State == inventory.Inspecting):
		w.broken("host %s is claimed by %s and %s", h.Name, h.Machine, h.State)
	case h.State == inventory.Failed && h.StateReason == "":
		w.broken("host %s has failed without a reason", h.Name)
	case !isBusy && slices.Contains([]inventory.State{inventory.Inspecting, inventory.Installing, inventory.Releasing, inventory.Cleaning}, h.State):
		w.broken("host %s is %s, and nothing is being done with it", h.Name, h.State)
	case isBusy && h.IsAdopted && op.Kind != inventory.OpPower:
		w.broken("host %s is adopted, and there is an operation %s", h.Name, op.Kind)
	case isOwned && m.Phase == inventory.MachineProvisioning && !isBusy:
		w.broken("machine %s is provisioning, and nothing is being done with its host", m.Name)
	case isOwned && m.Phase == inventory.MachineDeleting && !isBusy:
		w.broken("machine %s is deleting, and nothing is being done with its host", m.Name)
	}
}

// mayDestroy looks at a task that destroys data at the moment when the agent is given it.
func (w *walk) mayDestroy(b *body, t wire.Task) {
	h, ok := w.hostOf(b)
	op := inventory.Operation{}
	for _, o := range w.ops() {
		if o.HostID == h.ID {
			op = o
		}
	}
	m, _ := w.machineNamed(h.Machine)
	switch {
	case !ok || op.ID == "" || !strings.HasPrefix(t.ID, op.ID+"."):
		w.broken("%s is told to %s for no operation of its own", b.name, t.Kind)
	case h.IsProtected:
		w.broken("%s is told to %s, and is protected", b.name, t.Kind)
	case h.IsAdopted || h.State == inventory.Discovered:
		w.broken("%s is told to %s, and is adopted or %s", b.name, t.Kind, h.State)
	case h.ClaimID != "" && h.ClaimID != op.ClaimID:
		w.broken("%s is told to %s, and its claim is another's", b.name, t.Kind)
	case t.Kind == wire.Write && h.ClaimID == "" && op.MachineUID != "":
		w.broken("%s is told to write for machine %s, which has no claim on it", b.name, op.Machine)
	case m.Phase == inventory.MachineRunning && op.Kind != inventory.OpReinstall:
		w.broken("%s is told to %s while machine %s runs on it", b.name, t.Kind, m.Name)
	case b.owner != "" && h.ClaimID != "" && m.UID == b.owner && op.Kind != inventory.OpInstall && !w.asked[m.UID]:
		w.broken("%s is told to %s, and nobody asked for an end of %s", b.name, t.Kind, m.Name)
	}
	if t.Kind == wire.Wipe && t.Wipe.Mode == inventory.CleanNone {
		w.broken("%s is told to wipe in no way at all", b.name)
	}
}

// peopleSteps are what people ask for.
func (w *walk) peopleSteps() map[string]func() {
	ctx := context.Background()
	onHost := func(what string, fn func(inventory.HostID) error) func() {
		return func() {
			b := w.anyBody()
			w.either(func() {
				if h, ok := w.hostOf(b); ok {
					w.asked[b.name] = true
					w.told(what+" "+b.name, fn(h.ID))
					delete(w.asked, b.name)
				}
			})
		}
	}
	onMachine := func(what string, fn func(string) error) func() {
		return func() {
			name := w.anyName()
			w.either(func() {
				m, ok := w.machineNamed(name)
				was := w.asked[m.UID]
				w.asked[m.UID] = true
				err := fn(name)
				if err != nil && ok {
					w.asked[m.UID] = was
				}
				w.told(what+" "+name, err)
			})
		}
	}
	return map[string]func(){
		"create": w.createStep, "create again": w.createStep,
		"delete": onMachine("delete", func(name string) error {
			_, err := w.engine.DeleteMachine(ctx, name, false, ledger.By("walk"))
			return err
		}),
		"force": onMachine("delete by force", func(name string) error {
			_, err := w.engine.DeleteMachine(ctx, name, true, ledger.By("walk"))
			return err
		}),
		"reinstall": onMachine("reinstall", func(name string) error { _, err := w.engine.Reinstall(ctx, name, ledger.By("walk")); return err }),
		"remediate": func() {
			ladder := pick(w, "ladder", [][]operation.Rung{nil, {operation.RungPowerCycle}, {operation.RungReinstall, operation.RungReplace}, {operation.RungReplace}})
			onMachine(fmt.Sprintf("remediate %v", ladder), func(name string) error {
				_, err := w.engine.Remediate(ctx, name, ladder, ledger.By("walk"))
				return err
			})()
		},
		"retry": onMachine("retry", func(name string) error { _, err := w.engine.RetryMachine(ctx, name, ledger.By("walk")); return err }),
		"acknowledge": func() {
			step := pick(w, "step", inventory.HookSteps())
			onMachine("acknowledge "+string(step)+" of", func(name string) error {
				_, err := w.engine.AckHook(ctx, name, step, "walk", ledger.By("walk"))
				return err
			})()
		},
		"protect": func() {
			on := rapid.Bool().Draw(w.rt, "on")
			onHost(fmt.Sprint("protect ", on), func(id inventory.HostID) error {
				_, err := w.engine.Protect(ctx, id, on, ledger.By("walk"))
				return err
			})()
		},
		"maintain": func() {
			on := rapid.Bool().Draw(w.rt, "on")
			onHost(fmt.Sprint("maintain ", on), func(id inventory.HostID) error {
				_, err := w.engine.Maintain(ctx, id, on, ledger.By("walk"))
				return err
			})()
		},
		"adopt": func() {
			on := rapid.Bool().Draw(w.rt, "on")
			onHost(fmt.Sprint("adopt ", on), func(id inventory.HostID) error { _, err := w.engine.Adopt(ctx, id, on, ledger.By("walk")); return err })()
		},
		"release": onHost("release", func(id inventory.HostID) error { _, err := w.engine.Release(ctx, id, ledger.By("walk")); return err }),
		"wipe": onHost("wipe", func(id inventory.HostID) error {
			_, err := w.engine.CleanHost(ctx, id, "", ledger.By("walk"))
			return err
		}),
		"inspect": onHost("inspect", func(id inventory.HostID) error {
			_, err := w.engine.Inspect(ctx, id, operation.InspectRequest{MayRestart: true}, ledger.By("walk"))
			return err
		}),
		"install": onHost("install", func(id inventory.HostID) error {
			_, err := w.engine.Install(ctx, id, "debian12", ledger.By("walk"))
			return err
		}),
		"power": func() {
			a := pick(w, "action", []bmc.Action{bmc.On, bmc.Off, bmc.Cycle})
			b := w.anyBody()
			if h, ok := w.hostOf(b); ok {
				if m, ok := w.machineNamed(h.Machine); ok {
					w.asked[m.UID] = true
				}
				_, err := w.engine.Power(ctx, h.ID, a, ledger.By("walk"))
				w.told(fmt.Sprintf("power %s %s", b.name, a), err)
			}
		},
		"cancel": func() {
			if ops := w.ops(); len(ops) > 0 {
				op := pick(w, "operation", ops)
				_, err := w.engine.CancelOperation(ctx, op.ID, ledger.By("walk"))
				w.told(fmt.Sprintf("cancel %s at %s", op.Kind, op.Step), err)
			}
		},
		"walk there": w.byHand,
	}
}

func (w *walk) createStep() {
	m := inventory.Machine{Name: w.anyName(), Profile: "debian12"}
	for _, step := range inventory.HookSteps() {
		if rapid.IntRange(0, 9).Draw(w.rt, "hook") == 9 {
			m.Hooks = append(m.Hooks, inventory.Hook{Step: step, Owner: "walk"})
		}
	}
	m.Placement.Host = pick(w, "on", []string{"", "", "", "a", "d"})
	m.Placement.Reuse = pick(w, "reuse", []inventory.Reuse{"", "", inventory.ReusePrefer, inventory.ReuseRequire})
	m.Clean = pick(w, "clean", []inventory.CleanMode{"", inventory.CleanQuick, inventory.CleanFull, inventory.CleanNone})
	m.ReleaseAfter = pick(w, "gone", []inventory.ReleaseAfter{"", inventory.ReleaseCleaned})
	_, err := w.engine.CreateMachine(context.Background(), m, ledger.By("walk"))
	w.told(fmt.Sprintf("create %s on %q with %d hooks, clean %q, gone when %q", m.Name, m.Placement.Host, len(m.Hooks), m.Clean, m.ReleaseAfter), err)
}

// byHand does what the open tasks ask a person to do.
func (w *walk) byHand() {
	for _, op := range w.ops() {
		if op.State != inventory.OpWaiting {
			continue
		}
		for _, b := range w.bodies {
			h, ok := w.hostOf(b)
			if !ok || h.ID != op.HostID {
				continue
			}
			switch op.Step {
			case inventory.StepFence, inventory.StepSet:
				is := inventory.PowerOff
				if op.Step == inventory.StepSet && operation.ParamsOf(&op).Action != bmc.Off {
					is = inventory.PowerOn
				}
				b.isOn, b.runs, b.session, b.isHung, b.next = is == inventory.PowerOn, "", "", false, nil
				_, err := w.engine.ConfirmPower(context.Background(), h.ID, is, ledger.By("walk"))
				w.told(fmt.Sprintf("%s is %s, by hand", b.name, is), err)
			case inventory.StepNetboot, inventory.StepFirstBoot:
				w.note("%s is restarted by hand", b.name)
				b.isOn, b.runs, b.session, b.isHung, b.next = true, "", "", false, nil
			}
		}
	}
}

// calm ends all faults and waits until nothing is under way any more: every machine runs, is gone, or says why not.
func (w *walk) calm() {
	w.note("all faults end")
	ctx := context.Background()
	w.meanwhile = nil
	for _, name := range w.order {
		b := w.bodies[name]
		w.bank.Break(name, fake.Fine)
		b.faults, b.isMute, b.isHung, b.twice, b.isSilent = nil, false, false, false, false
		h, ok := w.hostOf(b)
		if !ok {
			w.broken("host %s is lost", name)
			continue
		}
		if h.InMaintenance {
			_, err := w.engine.Maintain(ctx, h.ID, false, ledger.By("walk"))
			w.told("maintain off "+name, err)
		}
		if h.IsProtected {
			_, err := w.engine.Protect(ctx, h.ID, false, ledger.By("walk"))
			w.told("protect off "+name, err)
		}
	}
	for _, m := range w.world().machines {
		for _, h := range m.Hooks {
			_, err := w.engine.AckHook(ctx, m.Name, h.Step, h.Owner, ledger.By("walk"))
			w.told("acknowledge "+string(h.Step)+" of "+m.Name, err)
		}
	}
	for n := range 1200 {
		if len(w.ops()) == 0 && !w.isPlacing() {
			break
		}
		w.pass(10 * time.Second)
		if w.verify(); n%20 == 19 {
			w.byHand()
		}
		if n == 1199 {
			w.broken("not settled after %d rounds", n)
		}
	}
	w.verify()
}

// isPlacing reports whether a machine waits for a host though one could be claimed.
func (w *walk) isPlacing() bool {
	v := w.world()
	isFree := slices.ContainsFunc(v.hosts, func(h inventory.Host) bool {
		return h.State == inventory.Available && h.ClaimID == "" && !h.IsDirty && !h.IsAdopted && h.ReuseKey == ""
	})
	return isFree && slices.ContainsFunc(v.machines, func(m inventory.Machine) bool {
		return m.Phase == inventory.MachinePending && m.Placement.Host == "" && m.Placement.Reuse != inventory.ReuseRequire && len(m.Avoid) == 0
	})
}

// state is the world in words.
func (w *walk) state() string {
	v, text := w.world(), ""
	for _, h := range v.hosts {
		text += fmt.Sprintf("host %s: %s (%s) claim %q machine %q dirty %v protected %v maintenance %v adopted %v\n", h.Name, h.State, h.StateReason, h.ClaimID, h.Machine, h.IsDirty, h.IsProtected, h.InMaintenance, h.IsAdopted)
	}
	for _, m := range v.machines {
		text += fmt.Sprintf("machine %s: %s (%s) host %q claim %q next %v avoid %v\n", m.Name, m.Phase, m.Reason, m.HostID, m.ClaimID, m.NextAt, m.Avoid)
	}
	for _, o := range v.ops {
		text += fmt.Sprintf("operation %s %s on %s: %s at %s (%s), attempt %d, next %v, deadline %v\n", o.ID, o.Kind, o.HostID, o.State, o.Step, o.Reason, o.AttemptN, o.NextAt, o.DeadlineAt)
	}
	for name, b := range w.bodies {
		text += fmt.Sprintf("body %s: on %v runs %q disk %q hung %v mute %v\n", name, b.isOn, b.runs, b.disk, b.isHung, b.isMute)
	}
	return text
}
