package lab

import (
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// step is one stage in the boot or the life of a machine; the table has a column for it.
type step int

// The steps in the order in which a machine usually passes them.
const (
	stepHeard    step = iota // its first packet was heard
	stepAccepted             // the lab has accepted the host
	stepAddress              // DHCP acknowledged an address
	stepLoader               // the boot loader was sent; none for an iPXE in the network card
	stepScript               // it asked what to boot
	stepFiles                // kernel and RAM disks were sent
	stepBooted               // the booted system reported

	// Those of an installed machine follow heard and accepted.
	stepInspected // our agent has reported the hardware
	stepClaimed   // the machine has its host
	stepAgent     // our agent runs on it
	stepWritten   // the operating system is on its disk
	stepRunning   // that has started from the disk and reported up
	stepFenced    // the machine goes: its system cannot run any more
	stepWiped     // our agent has wiped every disk
	stepFree      // the host is available again
	stepCount
)

// The steps of both kinds of machines, in order.
var (
	bootSteps = []step{stepHeard, stepAccepted, stepAddress, stepLoader, stepScript, stepFiles, stepBooted}
	lifeSteps = []step{stepHeard, stepAccepted, stepInspected, stepClaimed, stepAgent, stepWritten, stepRunning, stepFenced, stepWiped, stepFree}
)

func (s step) String() string {
	return [stepCount]string{
		"heard", "accepted", "address", "loader", "script", "files", "booted",
		"inspected", "claimed", "agent", "written", "running", "fenced", "wiped", "free",
	}[s]
}

// row is the state of one machine.
type row struct {
	Spec
	HostID  inventory.HostID
	Host    string // its name in the inventory
	State   inventory.State
	Profile string
	At      [stepCount]time.Duration // since it was switched on; 0 while not reached
	FilesN  int                      // artefacts sent in this boot
	Message string                   // the latest thing that happened, for people
	Problem string                   // why it will not arrive by itself; "" while it may
	session inventory.SessionID
	events  []inventory.Event

	// Of an installed machine.
	Op        inventory.Operation    // what is being done with its host, if anything
	Phase     inventory.MachinePhase // of the machine, "" while there is none
	IsLeaving bool                   // the lab ends it once it runs
	isWanted  bool                   // the lab has asked for it
	isEnded   bool                   // the lab has asked for its end
}

// goal returns the last step to which the lab brings the machine.
func (r row) goal() step {
	switch {
	case !r.IsInstalled:
		return stepBooted
	case r.IsLeaving:
		return stepFree
	}
	return stepRunning
}

// hasArrived reports whether the machine has reached its goal.
func (r row) hasArrived() bool { return r.At[r.goal()] > 0 }

// steps returns the steps that the machine passes.
func (r row) steps() []step {
	if r.IsInstalled {
		return lifeSteps
	}
	return bootSteps
}

// newBoot clears the steps of an earlier boot: firmware may boot again before its machine arrives.
func (r *row) newBoot(id inventory.SessionID) {
	if r.session != "" {
		for s := stepAddress; s <= stepBooted; s++ {
			r.At[s] = 0
		}
		r.FilesN = 0
	}
	r.session = id
}

func (r *row) stepOf(ev inventory.Event, filesN int) step {
	if r.IsInstalled {
		return r.lifeStep(ev)
	}
	switch ev.Kind {
	case inventory.EventHostDiscovered, inventory.EventSessionStarted, inventory.EventDHCPDiscover:
		return stepHeard
	case inventory.EventStateChanged:
		if strings.HasPrefix(ev.Detail, string(inventory.Discovered)) {
			return stepAccepted
		}
	case inventory.EventDHCPAck:
		return stepAddress
	case inventory.EventLoaderSent:
		return stepLoader
	case inventory.EventScriptAsked:
		return stepScript
	case inventory.EventArtefactSent:
		if r.FilesN++; r.FilesN >= filesN {
			return stepFiles
		}
	case inventory.EventReported:
		if strings.HasPrefix(ev.Detail, "up:") {
			return stepBooted
		}
	}
	return -1
}

// reportLine is what the booted system said when it arrived.
func reportLine(r row) string {
	for _, ev := range r.events {
		if ev.Kind == inventory.EventReported && strings.HasPrefix(ev.Detail, "up:") {
			return ev.Detail
		}
	}
	return ""
}

// lifeStep returns the step of an installed machine that an event completes, or -1.
func (r *row) lifeStep(ev inventory.Event) step {
	switch ev.Kind {
	case inventory.EventHostDiscovered, inventory.EventSessionStarted, inventory.EventDHCPDiscover:
		return stepHeard
	case inventory.EventInspected:
		return stepInspected
	case inventory.EventClaimed:
		return stepClaimed
	case inventory.EventAgentStarted:
		if r.At[stepClaimed] > 0 {
			return stepAgent
		}
	case inventory.EventOperation:
		if s := inventory.Step(datum(ev, "step")); s == inventory.StepReboot || s == inventory.StepFirstBoot {
			return stepWritten
		}
	case inventory.EventWiped:
		return stepWiped
	case inventory.EventStateChanged:
		from, to := inventory.State(datum(ev, "from")), inventory.State(datum(ev, "to"))
		switch {
		case from == inventory.Discovered:
			return stepAccepted
		case to == inventory.Active:
			return stepRunning
		case to == inventory.Cleaning:
			return stepFenced
		case from == inventory.Cleaning && to == inventory.Available:
			return stepFree
		}
	}
	return -1
}

// datum returns a text in the data of an event, or "".
func datum(ev inventory.Event, key string) string {
	m, _ := ev.Data.(map[string]any)
	text, _ := m[key].(string)
	return text
}
