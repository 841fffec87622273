package operation

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/pxe"
)

// TasksConfig is what Tasks need besides their Operator.
type TasksConfig struct {
	*ledger.Ledger // with the store, the time and the log
	Configurer     *configuration.Configurer
	Bootstrapper   *delivery.Bootstrapper
	Keys           delivery.Keys
	// Plan is what a host in a subnet would boot.
	Plan func(tx inventory.Tx, h *inventory.Host, subnet string) (pxe.Plan, error)
	// Others returns the addresses of other instances that live; nil: there are none.
	Others func() []netip.Addr
}

// Tasks are what our agent is to do.
type Tasks struct {
	*Operator
	cfg TasksConfig
}

// NewTasks returns the Tasks of the operations of an Operator.
func NewTasks(o *Operator, cfg TasksConfig) *Tasks { return &Tasks{o, cfg} }

// taskStep is an operation at a step whose task is handed out.
type taskStep struct {
	agentStep
	t *Tasks
}

// isArrival reports whether an agent that asks is what the step waits for.
func isArrival(s inventory.Step) bool {
	return s == inventory.StepPower || s == inventory.StepNetboot || s == inventory.StepFence
}

// arrived moves an operation on whose machine runs our agent now.
func (j agentStep) arrived(s inventory.BootSession) error {
	if !isArrival(j.op.Step) || !j.isForAgent() || j.o.Busy.Has(j.Host.ID) {
		return nil
	}
	if is, err := j.Believes(s.StartedAt); err != nil || !is { // its power is cut first
		return err
	}
	if err := j.closeIssues("our agent runs on it", inventory.IssueManual, inventory.IssueFence); err != nil {
		return err
	}
	if j.op.Step == inventory.StepPower { // it came by itself
		j.op.Step = inventory.StepNetboot
	}
	return j.forward()
}

// handOut makes the task of the step that the operation is at.
func (o *Tasks) handOut(ctx context.Context, op inventory.Operation, s inventory.BootSession, base string) (t wire.Task, err error) {
	err = o.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		t = wire.Task{Kind: wire.Wait, Reason: "the operation has ended"}
		cur, err := tx.FindOperation(op.ID)
		if err != nil || !cur.IsOpen() {
			return ledger.IgnoreNotFound(err)
		}
		j, err := o.JobOf(tx, cur)
		if err != nil {
			return err
		}
		if t, err = (taskStep{agentStep{j}, o}).task(s, base); err != nil || t.Kind == wire.Wait || j.P.Boot == s.ID {
			return err
		}
		j.P.Boot = s.ID
		j.P.cameTo(base)
		j.op.Params = j.P.Encode()
		return tx.UpdateOperation(&j.op, o.cfg.Now())
	})
	return t, err
}

// task is what the agent is to do in this step. What would destroy data asks once more whether it may.
func (j taskStep) task(s inventory.BootSession, base string) (wire.Task, error) {
	t := wire.Task{ID: fmt.Sprintf("%s.%d", j.op.ID, j.op.TaskN), Reason: Describe(&j.op)}
	idle := wire.Task{Kind: wire.Wait, Reason: Describe(&j.op) + ": " + string(j.op.Step)}
	if is, err := j.Believes(s.StartedAt); err != nil || !is {
		idle.Reason = "this boot is not the one that began after the power of " + j.Host.Name + " was seen off"
		return idle, err
	}
	if j.o.cfg.Now().Before(j.op.StepAt) { // the pause after a failed attempt
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
		t.BMCUser = &wire.BMCUserTask{Name: j.P.BMCUser, Password: password}
	case inventory.StepBurnIn:
		if why := j.forbids(&s); why != "" && j.P.MayWrite {
			idle.Reason = why
			return idle, j.wait(why, "slipway host show "+j.Host.Name, 0)
		}
		t.Kind = wire.BurnIn
		t.BurnIn = &wire.BurnInTask{ForSeconds: int(time.Duration(j.P.BurnInFor).Seconds()), MayWrite: j.P.MayWrite}
	case inventory.StepWipe:
		if why := j.forbids(&s); why != "" {
			idle.Reason = why
			return idle, j.wait(why, "slipway host protect "+j.Host.Name+" --off", 0)
		}
		t.Kind = wire.Wipe
		t.Wipe = &wire.WipeTask{Mode: j.P.Clean, Keep: j.keep()} // whether all is clean the certificates say
	case inventory.StepWrite:
		if j.P.Road == RoadDisk {
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
func (j agentStep) forbids(s *inventory.BootSession) string {
	switch {
	case j.Host.InMaintenance:
		return "the host is in maintenance"
	case j.Host.IsProtected:
		return "the host is protected: nothing on it is destroyed"
	case j.Host.IsAdopted:
		return "the host is adopted: its system is not ours"
	case j.op.ClaimID != "" && j.op.ClaimID != j.Host.ClaimID && j.isInstall():
		return "the host is claimed by another machine"
	case j.isInstall() && j.op.Machine != "" && j.Host.ClaimID == "":
		return "the host is no longer claimed"
	case j.Host.State == inventory.Discovered:
		return "the host is not accepted"
	}
	issues, err := j.Tx.ListIssues(false, j.Host.ID)
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

// mayJoin takes the turns of a host for its configuration, or says what it has to wait for.
func (j taskStep) mayJoin(s inventory.SessionID, r *configuration.Rendered) (*inventory.Error, error) {
	problem, err := j.t.cfg.Bootstrapper.Awaited(j.Tx, &j.Host, r)
	if err != nil {
		return nil, err
	}
	if problem != nil {
		return problem, j.t.cfg.Bootstrapper.AskForBootstrap(j.Tx, &j.Host)
	}
	free, problem, err := j.o.Turns(j.Tx, &j.Host, r)
	if err != nil || problem != nil {
		return problem, err
	}
	return nil, j.o.TakeTurns(j.Tx, &j.Host, s, free)
}

// writeTask renders what the host is to become, and says what is written where.
func (j taskStep) writeTask(t, idle wire.Task, s inventory.BootSession, base string) (wire.Task, error) {
	if why := j.forbids(&s); why != "" {
		idle.Reason = why
		return idle, j.wait(why, "slipway host show "+j.Host.Name, 0)
	}
	plan, err := j.t.cfg.Plan(j.Tx, &j.Host, s.Subnet)
	if err != nil {
		return idle, err
	}
	plan, config, err := j.t.cfg.Configurer.WithConfig(j.Tx, &j.Host, plan, s.MAC)
	if err != nil {
		return idle, err
	}
	if plan.Problem == nil {
		if plan.Problem, err = j.mayJoin(s.ID, config); err != nil {
			return idle, err
		}
	}
	if no := plan.Image.TooOld(j.Host.Facts[inventory.FactCPULevel]); plan.Problem == nil && no != nil {
		plan.Problem = no
	}
	if plan.Problem == nil && !plan.Image.IsDisk() {
		plan.Problem = inventory.Errorf(inventory.Conflict, "image %s is no disk image any more", plan.Image.Name)
	}
	if p := plan.Problem; p != nil {
		idle.Reason = p.Msg
		j.names(p.Refs...)
		if delivery.IsAwaitedProblem(plan) {
			return idle, j.wait(p.Msg, p.Hint, problemAgain)
		}
		if err := j.o.cfg.Ledger.OpenIssue(j.Tx, BootRefused(j.Host.ID, s.Subnet, pxe.Decision{Reason: p.Msg, Hint: p.Hint, Refs: p.Refs})); err != nil {
			return idle, err
		}
		return idle, j.wait(p.Msg, p.Hint, problemAgain)
	}
	if err := j.o.cfg.Ledger.CloseIssue(j.Tx, BootRefused(j.Host.ID, s.Subnet, pxe.Decision{}), "what it is to become can be rendered"); err != nil {
		return idle, err
	}
	others, err := delivery.OnNetwork(j.Tx, j.t.cfg.Others, s.Subnet)
	if err != nil {
		return idle, err
	}
	file, err := imageFile(j.Tx, plan.Image, s.ID, pxe.Bases(string(j.Host.ID), base, others))
	if err != nil {
		return idle, err
	}
	t.Kind = wire.Write
	t.Write = &wire.WriteTask{
		Image: file, Root: j.root(), Keep: j.keep(), KernelArgs: plan.Profile.KernelArgs, BootEntry: wire.NetworkFirst, BootMAC: s.MAC,
	}
	j.P.IsSilent = config == nil || !config.ReportsUp
	j.P.Digest, j.P.Manifest, j.P.HasSeed = file.Digest, "", false
	if plan.Image.Remote != "" { // it names a manifest, and the agent tells the digest of a layer that the manifest names
		j.P.Digest, j.P.Manifest = "", file.Digest
	}
	if config != nil {
		t.Write.Seed = j.t.seedOf(config, plan.Image, &s, pxe.OwnFirst(string(j.Host.ID), base, others))
		j.P.HasSeed = len(t.Write.Seed.Documents) > 0
		if err := j.t.cfg.Configurer.NoteRendering(j.Tx, &j.Host, &s, config); err != nil {
			return idle, err
		}
	}
	s.Operation = j.op.ID // an agent may have stayed from an operation before; what it installs reports in this session
	if err := j.Tx.SaveSession(s); err != nil {
		return idle, fmt.Errorf("store boot session: %w", err)
	}
	j.o.cfg.Sessions.Put(s)
	if !j.Host.IsDirty {
		j.Host.IsDirty = true
		if err := j.storeHost(); err != nil {
			return idle, err
		}
	}
	j.P.Image, j.P.Profile, j.P.Revision = plan.Image.Name, plan.Profile.Name, plan.Profile.Revision
	j.op.Params = j.P.Encode()
	if j.op.State == inventory.OpWaiting {
		j.op.State, j.op.Reason, j.op.Hint = inventory.OpRunning, "", ""
		j.op.DeadlineAt = j.o.cfg.Now().Add(j.o.cfg.Limits.Of(j.op.Step).Within)
		j.op.NextAt = j.op.DeadlineAt
	}
	return t, j.save()
}

// problemAgain is how often it is tried again to render what cannot be rendered.
const problemAgain = 10 * time.Second

// imageFile says where the agent fetches an image: at the first of the boot servers, or else at the next.
func imageFile(tx inventory.Tx, i *inventory.Image, s inventory.SessionID, bases []string) (wire.ImageFile, error) {
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
	f.URL, f.Digest, f.SizeBytes = pxe.ArtefactURL(bases[0], s, file), string(file.Digest), a.SizeBytes
	f.Elsewhere = pxe.Elsewhere(bases, s, file)
	if f.Format == "raw" && f.DiskBytes == 0 {
		f.DiskBytes = f.SizeBytes
	}
	return f, nil
}

// noCloud are the documents that cloud-init looks for in a seed on a disk.
var noCloud = []string{"user-data", "meta-data", "network-config", "vendor-data"}

// seedOf says where the agent places the documents of a configuration.
func (o *Tasks) seedOf(r *configuration.Rendered, i *inventory.Image, s *inventory.BootSession, bases []string) wire.Seed {
	seed := wire.Seed{Kind: wire.SeedFiles, Label: i.SeedLabel, Documents: map[string]string{}, Elsewhere: map[string][]string{}}
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
		seed.Documents[name] = o.cfg.Keys.ConfigURL(bases[0], s, own)
		for _, base := range bases[1:] {
			seed.Elsewhere[name] = append(seed.Elsewhere[name], o.cfg.Keys.ConfigURL(base, s, own))
		}
	}
	return seed
}
