package provision

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/pxe"
)

// waiters are agents that wait for a task; every change wakes them all, which costs each one read.
type waiters struct {
	mu sync.Mutex
	ch chan struct{}
}

func (w *waiters) wait() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ch == nil {
		w.ch = make(chan struct{})
	}
	return w.ch
}

func (w *waiters) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ch != nil {
		close(w.ch)
		w.ch = nil
	}
}

// AgentTask returns what the agent of a boot is to do, and holds the request while that is nothing, up to wire.TaskWait.
// base is our boot server as the machine reaches it.
func (e *Engine) AgentTask(ctx context.Context, id inventory.SessionID, source netip.Addr, key string, version int, base string) (wire.Task, error) {
	ctx, cancel := context.WithTimeout(ctx, wire.TaskWait)
	defer cancel()
	for {
		woken := e.tasks.wait()
		t, err := e.agentTask(ctx, id, source, key, version, base)
		if err != nil || t.Kind != wire.Wait {
			return t, err
		}
		select {
		case <-ctx.Done():
			t.AgainSeconds = 1
			return t, nil
		case <-woken:
			// Many changes in a row are looked at once.
			if (clock{e.cfg.Now}).Sleep(ctx, taskPause) != nil {
				return t, nil
			}
		}
	}
}

const taskPause = 200 * time.Millisecond

// agentTask looks once. What it hands out is on disk before the agent learns of it.
func (e *Engine) agentTask(ctx context.Context, id inventory.SessionID, source netip.Addr, key string, version int, base string) (wire.Task, error) {
	count := e.agents.count()
	s, h, err := e.agentOf(ctx, id, source, key)
	if err != nil {
		return wire.Task{}, err
	}
	if isOff, ok := e.agents.takeRest(h.ID); ok {
		e.ledger.End(s, inventory.OutcomeArrived, "our agent has nothing more to do")
		return restTask(s.ID, isOff), nil
	}
	if !e.agents.heard(h.ID, &s, e.cfg.Now(), count) {
		return wire.Task{Kind: wire.Wait, Reason: "this boot is over"}, nil
	}
	op, err := e.openOperation(ctx, h.ID)
	if err != nil {
		return wire.Task{}, err
	}
	if op.ID == "" {
		return wire.Task{Kind: wire.Wait, Reason: "nothing is to be done with " + h.Name}, nil
	}
	if version < wire.Version {
		return wire.Task{Kind: wire.Wait, Reason: fmt.Sprintf("this agent speaks version %d of the protocol, and the server %d: build the agent image again", version, wire.Version)}, nil
	}
	if !e.busy.has(h.ID) && isArrival(op.Step) {
		if err := e.withJob(ctx, op.ID, func(j *job) error { return j.arrived(s) }); err != nil {
			return wire.Task{}, err
		}
		if op, err = e.openOperation(ctx, h.ID); err != nil {
			return wire.Task{}, err
		}
	}
	return e.handOut(ctx, op, s, base)
}

func restTask(s inventory.SessionID, isOff bool) wire.Task {
	if isOff {
		return wire.Task{ID: string(s) + ".off", Kind: wire.PowerOff, Reason: "nothing more is to be done"}
	}
	return wire.Task{ID: string(s) + ".rest", Kind: wire.Reboot, Reason: "nothing more is to be done: it waits in its boot loader"}
}

// isArrival reports whether an agent that asks is what the step waits for.
func isArrival(s inventory.Step) bool {
	return s == inventory.StepPower || s == inventory.StepNetboot || s == inventory.StepFence
}

// agentOf finds the session and host of an agent's request, and checks that it comes from that machine and has the key of
// that boot.
func (e *Engine) agentOf(ctx context.Context, id inventory.SessionID, source netip.Addr, key string) (s inventory.BootSession, h inventory.Host, err error) {
	err = e.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		if s, err = e.Admitted(tx, id, source, "", "agent"); err != nil {
			return err
		}
		if s.Boot != string(pxe.BootAgent) {
			return inventory.Errorf(inventory.Forbidden, "this boot was decided as %s: %s", s.Boot, s.Reason).WithHint("boot the machine again")
		}
		if !e.IsAgentKey(s.ID, key) {
			return e.keyless(s, source, key)
		}
		h, err = tx.FindHost(s.HostID)
		return err
	})
	if err == nil && !s.EndedAt.IsZero() {
		err = inventory.Errorf(inventory.Forbidden, "this boot has ended: %s", s.Outcome).WithHint("boot the machine again")
	}
	return s, h, err
}

// keyless refuses a request of an agent without the key of its boot, and notes it once a minute for a boot: it comes from a
// program that knows no more than the boot's id.
func (e *Engine) keyless(s inventory.BootSession, source netip.Addr, key string) error {
	what := "without the key of this boot"
	if key != "" {
		what = "with a key that is not the key of this boot"
	}
	if e.refusals.First("agent "+string(s.ID), e.cfg.Now()) {
		e.cfg.Log.Warn("agent request refused: "+what, "boot", s.ID, "mac", s.MAC, "addr", source.String())
		e.recorder.Take(recorder.Note{Session: s, Event: inventory.Event{
			At: e.cfg.Now(), Kind: inventory.EventAgentRefused, HostID: s.HostID, SessionID: s.ID, MAC: s.MAC,
			Detail: "somebody at " + source.String() + " spoke as our agent " + what, Data: map[string]any{"source": source.String()},
		}})
	}
	return inventory.Errorf(inventory.Forbidden, "only the agent of this boot may ask and report here, and the request came %s", what).
		WithHint("the agent's kernel argument %s has the key; boot the machine again", wire.ArgServer)
}

func (e *Engine) openOperation(ctx context.Context, h inventory.HostID) (op inventory.Operation, err error) {
	err = e.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		op, err = tx.FindOpenOperation(h)
		return ledger.IgnoreNotFound(err)
	})
	return op, err
}

// arrived moves an operation on whose machine runs our agent now.
func (j *job) arrived(s inventory.BootSession) error {
	if !isArrival(j.op.Step) || !j.isForAgent() || j.e.busy.has(j.host.ID) {
		return nil
	}
	if is, err := j.believes(s.StartedAt); err != nil || !is { // its power is cut first
		return err
	}
	if err := j.e.ledger.CloseIssue(j.tx, j.issue(inventory.IssueManual, "", "", ""), "our agent runs on it"); err != nil {
		return err
	}
	if err := j.e.ledger.CloseIssue(j.tx, j.issue(inventory.IssueFence, "", "", ""), "our agent runs on it"); err != nil {
		return err
	}
	if j.op.Step == inventory.StepPower { // it came by itself
		j.op.Step = inventory.StepNetboot
	}
	return j.forward()
}

// handOut makes the task of the step that the operation is at.
func (e *Engine) handOut(ctx context.Context, op inventory.Operation, s inventory.BootSession, base string) (t wire.Task, err error) {
	err = e.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		t = wire.Task{Kind: wire.Wait, Reason: "the operation has ended"}
		cur, err := tx.FindOperation(op.ID)
		if err != nil || !cur.IsOpen() {
			return ledger.IgnoreNotFound(err)
		}
		j, err := e.jobOf(tx, cur)
		if err != nil {
			return err
		}
		if t, err = j.task(s, base); err != nil || t.Kind == wire.Wait || j.p.Boot == s.ID {
			return err
		}
		j.p.Boot = s.ID
		j.op.Params = j.p.encode()
		return tx.UpdateOperation(&j.op, e.cfg.Now())
	})
	return t, err
}

// task is what the agent is to do in this step. What would destroy data asks once more whether it may.
func (j *job) task(s inventory.BootSession, base string) (wire.Task, error) {
	t := wire.Task{ID: fmt.Sprintf("%s.%d", j.op.ID, j.op.TaskN), Reason: describeOperation(&j.op)}
	idle := wire.Task{Kind: wire.Wait, Reason: describeOperation(&j.op) + ": " + string(j.op.Step)}
	if is, err := j.believes(s.StartedAt); err != nil || !is {
		idle.Reason = "this boot is not the one that began after the power of " + j.host.Name + " was seen off"
		return idle, err
	}
	if j.e.cfg.Now().Before(j.op.StepAt) { // the pause after a failed attempt
		return idle, nil
	}
	switch j.op.Step {
	case inventory.StepInspect:
		t.Kind = wire.Inspect
	case inventory.StepBMCUser:
		password, err := j.bmcPassword()
		if err != nil {
			return idle, err
		}
		t.Kind = wire.BMCUser
		t.BMCUser = &wire.BMCUserTask{Name: j.p.BMCUser, Password: password}
	case inventory.StepBurnIn:
		if why := j.forbids(&s); why != "" && j.p.MayWrite {
			idle.Reason = why
			return idle, j.wait(why, "slipway host show "+j.host.Name, 0)
		}
		t.Kind = wire.BurnIn
		t.BurnIn = &wire.BurnInTask{ForSeconds: int(time.Duration(j.p.BurnInFor).Seconds()), MayWrite: j.p.MayWrite}
	case inventory.StepWipe:
		if why := j.forbids(&s); why != "" {
			idle.Reason = why
			return idle, j.wait(why, "slipway host protect "+j.host.Name+" --off", 0)
		}
		t.Kind = wire.Wipe
		t.Wipe = &wire.WipeTask{Mode: j.p.Clean, Keep: j.keep()} // whether all is clean the certificates say
	case inventory.StepWrite:
		if j.p.Road == RoadDisk {
			return j.writeTask(t, idle, s, base)
		}
		return idle, nil
	case inventory.StepReboot:
		t.Kind = wire.Reboot
	default:
		return idle, nil
	}
	return t, nil
}

// forbids says why nothing may be destroyed on this host now by the agent of a boot, "" when it may.
func (j *job) forbids(s *inventory.BootSession) string {
	switch {
	case j.host.InMaintenance:
		return "the host is in maintenance"
	case j.host.IsProtected:
		return "the host is protected: nothing on it is destroyed"
	case j.host.IsAdopted:
		return "the host is adopted: its system is not ours"
	case j.op.ClaimID != "" && j.op.ClaimID != j.host.ClaimID && j.isInstall():
		return "the host is claimed by another machine"
	case j.isInstall() && j.op.Machine != "" && j.host.ClaimID == "":
		return "the host is no longer claimed"
	case j.host.State == inventory.Discovered:
		return "the host is not accepted"
	}
	issues, err := j.tx.ListIssues(false, j.host.ID)
	if err != nil {
		return "the issues of the host cannot be read"
	}
	for _, i := range issues {
		if i.Type == inventory.IssueReplaced {
			return i.Cause
		}
	}
	why, err := j.otherMachine(s)
	if err != nil {
		return "the inspection of the host cannot be read"
	}
	return why
}

func (j *job) keep() []inventory.DiskHint {
	return append(append([]inventory.DiskHint(nil), j.host.KeepDisks...), j.p.Keep...)
}

// writeTask renders what the host is to become, and says what is written where.
func (j *job) writeTask(t, idle wire.Task, s inventory.BootSession, base string) (wire.Task, error) {
	if why := j.forbids(&s); why != "" {
		idle.Reason = why
		return idle, j.wait(why, "slipway host show "+j.host.Name, 0)
	}
	plan, err := j.e.planFor(j.tx, &j.host, s.Subnet)
	if err != nil {
		return idle, err
	}
	plan, config, err := j.e.WithConfig(j.tx, &j.host, plan, s.MAC)
	if err != nil {
		return idle, err
	}
	if plan.Problem == nil {
		if plan.Problem, err = j.e.Awaited(j.tx, &j.host, config); err != nil {
			return idle, err
		}
	}
	if plan.Problem == nil {
		if plan.Problem, err = j.e.takeTurn(j.tx, &j.host, s.ID, config); err != nil {
			return idle, err
		}
	}
	if no := plan.Image.TooOld(j.host.Facts[inventory.FactCPULevel]); plan.Problem == nil && no != nil {
		plan.Problem = no
	}
	if plan.Problem == nil && !plan.Image.IsDisk() {
		plan.Problem = inventory.Errorf(inventory.Conflict, "image %s is no disk image any more", plan.Image.Name)
	}
	if p := plan.Problem; p != nil {
		idle.Reason = p.Msg
		if delivery.IsAwaitedProblem(plan) {
			return idle, j.wait(p.Msg, p.Hint, problemAgain)
		}
		if err := j.e.ledger.OpenIssue(j.tx, refusal(j.host.ID, s.Subnet, pxe.Decision{Reason: p.Msg, Hint: p.Hint})); err != nil {
			return idle, err
		}
		return idle, j.wait(p.Msg, p.Hint, problemAgain)
	}
	if err := j.e.ledger.CloseIssue(j.tx, refusal(j.host.ID, s.Subnet, pxe.Decision{}), "what it is to become can be rendered"); err != nil {
		return idle, err
	}
	file, err := imageFile(j.tx, plan.Image, s.ID, base)
	if err != nil {
		return idle, err
	}
	t.Kind = wire.Write
	t.Write = &wire.WriteTask{
		Image: file, Root: j.root(), Keep: j.keep(), KernelArgs: plan.Profile.KernelArgs, BootEntry: wire.NetworkFirst, BootMAC: s.MAC,
	}
	j.p.IsSilent = config == nil || !config.ReportsUp
	j.p.Digest, j.p.Manifest, j.p.HasSeed = file.Digest, "", false
	if plan.Image.Remote != "" { // it names a manifest, and the agent tells the digest of a layer that the manifest names
		j.p.Digest, j.p.Manifest = "", file.Digest
	}
	if config != nil {
		t.Write.Seed = j.e.seedOf(config, plan.Image, &s, base)
		j.p.HasSeed = len(t.Write.Seed.Documents) > 0
		if err := j.e.NoteRendering(j.tx, &j.host, &s, config); err != nil {
			return idle, err
		}
	}
	s.Operation = j.op.ID // an agent may have stayed from an operation before; what it installs reports in this session
	if err := j.tx.SaveSession(s); err != nil {
		return idle, fmt.Errorf("store boot session: %w", err)
	}
	j.e.sessions.Put(s)
	if !j.host.IsDirty {
		j.host.IsDirty = true
		if err := j.storeHost(); err != nil {
			return idle, err
		}
	}
	j.p.Image, j.p.Profile, j.p.Revision = plan.Image.Name, plan.Profile.Name, plan.Profile.Revision
	j.op.Params = j.p.encode()
	if j.op.State == inventory.OpWaiting {
		j.op.State, j.op.Reason, j.op.Hint = inventory.OpRunning, "", ""
		j.op.DeadlineAt = j.e.cfg.Now().Add(j.e.limitOf(j.op.Step).within)
		j.op.NextAt = j.op.DeadlineAt
	}
	return t, j.save()
}

// problemAgain is how often it is tried again to render what cannot be rendered.
const problemAgain = 10 * time.Second

// root is the disk to write to: what was asked for, then the host's own choice.
func (j *job) root() inventory.DiskHint {
	if !j.p.Root.IsZero() {
		return j.p.Root
	}
	return j.host.RootDisk
}

func imageFile(tx inventory.Tx, i *inventory.Image, s inventory.SessionID, base string) (wire.ImageFile, error) {
	f := wire.ImageFile{Format: i.DiskFormat, DiskBytes: i.DiskBytes}
	if i.Remote != "" {
		f.URL = i.Remote
		_, digest, _ := strings.Cut(i.Remote, "@")
		f.Digest = digest
		return f, nil
	}
	file, _ := i.DiskFile()
	a, err := tx.FindArtefact(file.Digest)
	if err != nil {
		return f, fmt.Errorf("read artefact of image %s: %w", i.Name, err)
	}
	f.URL, f.Digest, f.SizeBytes = pxe.ArtefactURL(base, s, file), string(file.Digest), a.SizeBytes
	if f.Format == "raw" && f.DiskBytes == 0 {
		f.DiskBytes = f.SizeBytes
	}
	return f, nil
}

// noCloud are the documents that cloud-init looks for in a seed on a disk.
var noCloud = []string{"user-data", "meta-data", "network-config", "vendor-data"}

// seedOf says where the agent places the documents of a configuration.
func (e *Engine) seedOf(r *configuration.Rendered, i *inventory.Image, s *inventory.BootSession, base string) wire.Seed {
	seed := wire.Seed{Kind: wire.SeedFiles, Label: i.SeedLabel, Documents: map[string]string{}}
	switch r.Format {
	case "cloud-init":
		seed.Kind = wire.SeedNoCloud
	case "ignition":
		seed.Kind = wire.SeedIgnition
	}
	for _, own := range r.Names {
		name := own
		switch {
		case seed.Kind == wire.SeedIgnition:
			name = "config.ign"
		case seed.Kind == wire.SeedNoCloud && !slices.Contains(noCloud, name):
			continue // of EC2's tree, which is for those who fetch it
		}
		seed.Documents[name] = e.ConfigURL(base, s, own)
	}
	return seed
}
