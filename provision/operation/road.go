package operation

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/watch"
	"slipway.dev/slipway/pxe"
)

// Road is how an operating system comes onto a host.
type Road string

// The roads.
const (
	RoadDisk      Road = "disk"      // our agent writes a disk image
	RoadInstaller Road = "installer" // the distribution's own installer
	RoadLive      Road = "live"      // it runs from the network
)

// RoadOf returns the way of installation that an image takes.
func RoadOf(i *inventory.Image) Road {
	switch {
	case i.IsDisk():
		return RoadDisk
	case i.IsInstaller:
		return RoadInstaller
	}
	return RoadLive
}

// Params is the order for an operation. It is stored with it, so that nothing that changes meanwhile changes the way it
// takes.
type Params struct {
	Road     Road               `json:"road,omitempty"`
	Profile  string             `json:"profile,omitempty"`
	Revision int                `json:"revision,omitempty"`
	Image    string             `json:"image,omitempty"`
	Root     inventory.DiskHint `json:"root,omitzero"`
	// Clean and Keep are how disks are wiped.
	Clean inventory.CleanMode  `json:"clean,omitempty"`
	Keep  []inventory.DiskHint `json:"keep,omitempty"`
	// StaysDirty says that nothing is wiped because the machine said so, not its pool: no other machine takes the host before it
	// is wiped.
	StaysDirty bool `json:"staysDirty,omitempty"`
	// MayRestart allows a running machine to be restarted; else the operation waits for its next boot.
	MayRestart bool               `json:"mayRestart,omitempty"`
	BurnInFor  inventory.Duration `json:"burnInFor,omitempty"`
	MayWrite   bool               `json:"mayWrite,omitempty"` // the burn-in may overwrite disks
	// OffAt is when the power of the host was seen off last in this operation, by its controller or a person. An agent whose boot
	// began before that may be played by the old system.
	OffAt time.Time `json:"offAt,omitzero"`
	// MustInspect says that nobody knows the disks of the machine: it is inspected before it is wiped.
	MustInspect bool `json:"mustInspect,omitempty"`
	// Boot is the boot whose agent was told to do the current task; no other may report on it. Digest and HasSeed are what it
	// was told to write.
	Boot    inventory.SessionID `json:"boot,omitempty"`
	Digest  string              `json:"digest,omitempty"`
	HasSeed bool                `json:"hasSeed,omitempty"`
	// At is the address of the instance that the machine booted from in this attempt; invalid before that.
	At netip.Addr `json:"at,omitzero"`
	// Manifest is the digest of the image in a registry: the agent shows how that leads to what it wrote.
	Manifest string `json:"manifest,omitempty"`
	BMCUser  string `json:"bmcUser,omitempty"` // the agent makes that account on the controller
	// BMCNetwork is where an admin says that the controller is; invalid when nobody said it.
	BMCNetwork netip.Prefix `json:"bmcNetwork,omitzero"`
	Action     bmc.Action   `json:"action,omitempty"` // of OpPower
	// WasSo says that the host's power was as wanted already: nothing was changed.
	WasSo bool `json:"wasSo,omitempty"`
	// IsSilent says that the installed system does not report up: nothing is waited for after it was written.
	IsSilent bool `json:"isSilent,omitempty"`
	// JoinFailure is why the latest try did not become a node of its cluster, "" while none has failed so.
	JoinFailure string `json:"joinFailure,omitempty"`
	// Ladder are the rungs of a remediation that are left, the one under way first.
	Ladder []Rung `json:"ladder,omitempty"`
	// OldClaimID is the claim that a reinstallation ended; HasNode says that its node is emptied first.
	OldClaimID inventory.ClaimID `json:"oldClaimID,omitempty"`
	HasNode    bool              `json:"hasNode,omitempty"`
	// IsGone says that the machine goes with this release.
	IsGone       bool                   `json:"isGone,omitempty"`
	ReleaseAfter inventory.ReleaseAfter `json:"releaseAfter,omitempty"`
}

// Rung is one step of the remediation ladder.
type Rung string

// The rungs, the mildest first.
const (
	RungPowerCycle Rung = "power-cycle"
	RungReinstall  Rung = "reinstall"
	RungReplace    Rung = "replace"
)

// Rungs returns the whole ladder.
func Rungs() []Rung { return []Rung{RungPowerCycle, RungReinstall, RungReplace} }

// ParamsOf returns the order for an operation.
func ParamsOf(o *inventory.Operation) (p Params) {
	_ = json.Unmarshal(o.Params, &p) // we wrote it
	return p
}

// ImageOf returns the image that an operation installs, "" if it installs none.
func ImageOf(o *inventory.Operation) string { return ParamsOf(o).Image }

// cameTo keeps from which instance the machine has booted.
func (p *Params) cameTo(base string) {
	if u, err := url.Parse(base); err == nil {
		p.At, _ = netip.ParseAddr(u.Hostname()) // invalid for a name, which no machine is given
	}
}

// Encode returns the parameters as an operation stores them.
func (p Params) Encode() json.RawMessage {
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // plain data
	}
	return b
}

// Steps returns the way of an operation: its steps in order.
func Steps(kind inventory.OperationKind, p Params) []inventory.Step {
	way := wayOf(kind, p.Road)
	if i := slices.Index(way, inventory.StepWipe); i >= 0 && p.MustInspect {
		way = slices.Insert(way, i, inventory.StepInspect)
	}
	if p.Clean == inventory.CleanNone { // nothing to boot our agent for
		way = slices.DeleteFunc(way, func(s inventory.Step) bool {
			return s == inventory.StepPower || s == inventory.StepNetboot || s == inventory.StepInspect || s == inventory.StepWipe
		})
	}
	if kind == inventory.OpReinstall && !p.HasNode {
		way = slices.DeleteFunc(way, func(s inventory.Step) bool {
			return s == inventory.StepPreDrain || s == inventory.StepDrain || s == inventory.StepPreFence || s == inventory.StepForget
		})
	}
	if p.BMCUser == "" {
		way = slices.DeleteFunc(way, func(s inventory.Step) bool { return s == inventory.StepBMCUser })
	}
	return way
}

// Way returns the steps of an operation in order, those that it has passed included.
func Way(o *inventory.Operation) []inventory.Step { return Steps(o.Kind, ParamsOf(o)) }

func wayOf(kind inventory.OperationKind, road Road) []inventory.Step {
	switch kind {
	case inventory.OpInspect:
		return []inventory.Step{inventory.StepPower, inventory.StepNetboot, inventory.StepInspect, inventory.StepBMCUser, inventory.StepBurnIn, inventory.StepRest}
	case inventory.OpInstall, inventory.OpReinstall:
		way := []inventory.Step{inventory.StepBudget, inventory.StepPreBoot}
		if kind == inventory.OpReinstall {
			way = append(way, inventory.StepPreDrain, inventory.StepDrain, inventory.StepPreFence, inventory.StepFence, inventory.StepForget)
		}
		way = append(way, inventory.StepPower, inventory.StepNetboot)
		switch road {
		case RoadDisk:
			way = append(way, inventory.StepWrite, inventory.StepReboot)
		case RoadInstaller:
			way = append(way, inventory.StepWrite)
		}
		return append(way, inventory.StepFirstBoot, inventory.StepPostJoin)
	case inventory.OpRelease:
		return []inventory.Step{
			inventory.StepPreDrain, inventory.StepDrain, inventory.StepPreFence, inventory.StepFence, inventory.StepForget, inventory.StepPreClean,
			inventory.StepBudget, inventory.StepPower, inventory.StepNetboot, inventory.StepWipe, inventory.StepPreRelease, inventory.StepRest,
		}
	case inventory.OpClean:
		return []inventory.Step{inventory.StepFence, inventory.StepBudget, inventory.StepPower, inventory.StepNetboot, inventory.StepWipe, inventory.StepRest}
	case inventory.OpRemediate:
		return []inventory.Step{inventory.StepFence, inventory.StepPower, inventory.StepFirstBoot}
	}
	return []inventory.Step{inventory.StepSet} // OpPower, OpRotate
}

// after returns the step that follows, "" at the end of the way. An operation that has not begun has no step.
func after(o *inventory.Operation) inventory.Step {
	way := Steps(o.Kind, ParamsOf(o))
	if i := slices.Index(way, o.Step); i+1 < len(way) {
		return way[i+1]
	}
	return ""
}

// limit is how long one attempt of a step may take, and what comes next when all is well.
type limit struct {
	Within time.Duration // 0: it waits for people, and only an issue says that it is long
	Expect string
	// first is when the first sign is due, where that is sooner; 0 for within. An agent says at once that it has begun.
	first time.Duration
}

// Begin is how long a step may take until its first sign.
func (l limit) Begin() time.Duration {
	if l.first > 0 {
		return l.first
	}
	return l.Within
}

// limits are the deadlines of the steps: section 9 of the design's machines page. Progress moves that of a write, a wipe
// and a burn-in on.
var limits = map[inventory.Step]limit{
	inventory.StepPower:     {Within: 10 * time.Minute, Expect: "the machine is switched on to boot from the network"},
	inventory.StepNetboot:   {Within: 10 * time.Minute, Expect: "the machine boots from the network"},
	inventory.StepInspect:   {Within: 10 * time.Minute, Expect: "the agent reports the hardware"},
	inventory.StepBMCUser:   {Within: 5 * time.Minute, Expect: "the agent makes an account on the controller"},
	inventory.StepBurnIn:    {Within: 10 * time.Minute, Expect: "the agent reports the burn-in"},
	inventory.StepWrite:     {Within: 30 * time.Minute, Expect: "the operating system is written"},
	inventory.StepReboot:    {Within: 5 * time.Minute, Expect: "the machine restarts into what was written"},
	inventory.StepFirstBoot: {Within: 15 * time.Minute, Expect: "the operating system reports up"},
	inventory.StepFence:     {Within: 10 * time.Minute, Expect: "the machine is off, or our agent runs on it"},
	inventory.StepWipe:      {Within: 30 * time.Minute, Expect: "the agent reports every disk as wiped", first: 10 * time.Minute},
	inventory.StepRest:      {Within: 10 * time.Minute, Expect: "the machine is switched off"},
	inventory.StepSet:       {Within: 5 * time.Minute, Expect: "the controller confirms"},
}

// StepNames lists the names that Config.Deadlines may have.
func StepNames() []string {
	var names []string
	for s := range limits {
		names = append(names, string(s))
	}
	return slices.Sorted(slices.Values(slices.AppendSeq(names, slices.Values(watch.Steps()))))
}

// Limits are how long steps may take, and how often a host may be installed, as an admin has set them.
type Limits struct {
	Deadlines       map[string]time.Duration // replace those of steps, by their names
	InstallsPerHour int
	// UnheardAfter is how long a controller may take to obey before the operation says that it waits for it; 3 s when zero.
	UnheardAfter time.Duration
}

// Of returns the deadline of a step.
func (ls Limits) Of(s inventory.Step) limit {
	l := limits[s]
	if d := ls.Deadlines[string(s)]; d > 0 && l.Within > 0 {
		l.Within = d
		l.first = min(l.first, d)
	}
	return l
}

// lateHint says what to look at.
func lateHint(op *inventory.Operation, h *inventory.Host) string {
	switch op.Step {
	case inventory.StepNetboot:
		return "see that the network stands before the disk in its boot order, and that it is in a subnet that Slipway serves: slipway host events " + h.Name
	case inventory.StepFirstBoot:
		return "look at its console; a system that reports nothing needs phoneHome.enabled: false in its profile"
	case inventory.StepWrite:
		return "look at its console; the network or the disk may be slow: slipway host events " + h.Name
	}
	return ""
}

// Attempts is how often an operation is tried on a host before it has failed.
const Attempts = 3

// backoff is the pause before attempt n+1.
func backoff(n int) time.Duration { return 5 * time.Second << min(n, 6) }

// HookOf is the step that hooks block, for the steps of an operation that have some.
var HookOf = map[inventory.Step]inventory.HookStep{
	inventory.StepPreBoot: inventory.PreBoot, inventory.StepPostJoin: inventory.PostJoin, inventory.StepPreDrain: inventory.PreDrain,
	inventory.StepPreFence: inventory.PreFence, inventory.StepPreClean: inventory.PreClean, inventory.StepPreRelease: inventory.PreRelease,
}

// needsAgent reports whether a step is done by our agent.
func needsAgent(s inventory.Step) bool {
	switch s {
	case inventory.StepInspect, inventory.StepBMCUser, inventory.StepBurnIn, inventory.StepWipe:
		return true
	}
	return false
}

// headingFor is what the next step of an operation that the machine itself takes part in needs to run: our agent, the
// profile's image, or its own disk.
func headingFor(o *inventory.Operation) inventory.Step {
	way := Steps(o.Kind, ParamsOf(o))
	i := max(slices.Index(way, o.Step), 0)
	for _, s := range way[i:] {
		if needsAgent(s) || s == inventory.StepWrite || s == inventory.StepFirstBoot {
			return s
		}
	}
	return ""
}

// Describe names an operation for people.
func Describe(o *inventory.Operation) string {
	if o.Machine != "" {
		return fmt.Sprintf("%s for machine %s", o.Kind, o.Machine)
	}
	return string(o.Kind)
}

// WorkOf says what an open operation wants of the host's next boot, nil for nothing in particular. It is pure.
func WorkOf(o *inventory.Operation, h *inventory.Host) *pxe.Work {
	w := workOf(o, h)
	if w != nil {
		w.Refs = o.Refs
	}
	return w
}

func workOf(o *inventory.Operation, h *inventory.Host) *pxe.Work {
	what := Describe(o)
	agent := &pxe.Work{Boot: pxe.BootAgent, Reason: what + ": " + string(o.Step)}
	disk := &pxe.Work{Boot: pxe.BootDisk, Reason: what + ": " + string(o.Step) + "; it boots from its own disk"}
	road := ParamsOf(o).Road
	image := &pxe.Work{Boot: pxe.BootImage, Reason: what}
	switch o.Step {
	case inventory.StepPreDrain, inventory.StepDrain, inventory.StepPreFence: // its system runs on until it is fenced
		if road == RoadLive {
			return image
		}
		return disk
	case inventory.StepFence, inventory.StepForget: // any boot of a host that is to be fenced ends in our agent: that is a fence as well
		if o.Kind == inventory.OpRemediate {
			return disk
		}
		return agent
	case inventory.StepReboot, inventory.StepFirstBoot, inventory.StepPostJoin:
		if road == RoadLive {
			return image
		}
		disk.Reason = "installed: it boots from its own disk; its report to Slipway is due"
		if o.Kind == inventory.OpRemediate {
			disk.Reason = what + ": it boots from its own disk; its report to Slipway is due"
		}
		return disk
	case inventory.StepSet:
		return nil
	case inventory.StepBudget, inventory.StepPreBoot, inventory.StepPreClean, inventory.StepPreRelease:
		if o.State == inventory.OpWaiting {
			return &pxe.Work{Boot: pxe.BootWait, Reason: fmt.Sprintf("%s: %s", what, o.Reason), Hint: o.Hint}
		}
	case inventory.StepRest:
		return &pxe.Work{Boot: pxe.BootWait, Reason: what + " is done", Hint: "it is switched off, or waits for a machine that claims it"}
	}
	switch {
	case o.Kind == inventory.OpRemediate:
		return disk
	case headingFor(o) == inventory.StepWrite && road == RoadDisk, needsAgent(headingFor(o)):
		return agent
	}
	return image
}
