package inventory

// State is where a host is in its life. There are few, they are explicit, and only package provision moves a host
// from one to the next.
type State string

// The states of a host.
const (
	Discovered State = "discovered" // heard, not accepted; never touched
	Inspecting State = "inspecting" // our agent looks at its hardware
	Available  State = "available"  // accepted, nothing runs on it for us
	Installing State = "installing" // an operating system is on its way
	Active     State = "active"     // what we booted or installed has reported up
	Releasing  State = "releasing"  // its machine goes: it is drained and fenced
	Cleaning   State = "cleaning"   // our agent wipes it
	Failed     State = "failed"     // quarantined with the reason; a person decides
)

// Trigger is what moves a host between states.
type Trigger string

// The triggers, named after what happened.
const (
	Accept    Trigger = "accept"    // a person or a rule accepted the host
	Inspect   Trigger = "inspect"   // somebody wants an inspection
	Inspected Trigger = "inspected" // the agent has reported the hardware
	Boot      Trigger = "boot"      // a boot of the profile's image was armed and its script handed out
	Install   Trigger = "install"   // a machine has claimed it, or wants it installed again
	Arrive    Trigger = "arrive"    // the booted system reported up
	Adopt     Trigger = "adopt"     // a person says that it runs already
	Retire    Trigger = "retire"    // its machine goes
	Fence     Trigger = "fence"     // its old operating system cannot run any more
	Wipe      Trigger = "wipe"      // somebody wants a wipe
	Cleaned   Trigger = "cleaned"   // every disk is wiped, as its certificates say
	Fault     Trigger = "fault"     // the loop breaker or a failure stopped the host
	Release   Trigger = "release"   // a person took the host back, or cleared its failure
)

// Edge is one allowed change of state. When says, for the picture in docs, what has to be true.
type Edge struct {
	On   Trigger
	To   State
	When string
}

// Edges is the whole life of a host: from each state, the triggers it knows and where they lead. The picture in
// docs/states.md is generated from it.
var edges = map[State][]Edge{
	Discovered: {
		{Accept, Available, "a person or an accept rule"},
	},
	Inspecting: {
		{Inspect, Inspecting, "asked for again"},
		{Inspected, Available, "the agent has reported the hardware"},
		{Fault, Failed, "the agent could not inspect the hardware, or the burn-in failed"},
		{Release, Available, "a person ends the inspection"},
	},
	Available: {
		{Inspect, Inspecting, "after acceptance, or when a person asks"},
		{Boot, Installing, "a profile's image was handed to the machine"},
		{Install, Installing, "a machine has claimed it"},
		{Adopt, Active, "a person says that it runs already"},
		{Wipe, Cleaning, "a person asks for a wipe"},
		{Fault, Failed, "the machine reports a failure"},
	},
	Installing: {
		{Boot, Installing, "the machine asks again before it has reported up"},
		{Install, Installing, "another attempt on the same claim"},
		{Arrive, Active, "the booted system reports up"},
		{Retire, Releasing, "its machine was deleted"},
		{Fault, Failed, "too many boots without an arrival, or a failure report"},
		{Release, Available, "a person releases it; not while it is claimed"},
	},
	Active: {
		{Boot, Installing, "a live profile boots again, or a person asked for an install"},
		{Install, Installing, "its machine is reinstalled"},
		{Arrive, Active, "the system reports up again"},
		{Retire, Releasing, "its machine was deleted"},
		{Wipe, Cleaning, "a person asks for a wipe; not while it is claimed"},
		{Fault, Failed, "the machine reports a failure"},
		{Release, Available, "a person releases it; not while it is claimed"},
	},
	Releasing: {
		{Fence, Cleaning, "its power is off, or our agent runs on it"},
		{Fault, Failed, "it was released by force, or its operation was cancelled"},
	},
	Cleaning: {
		{Cleaned, Available, "every disk has its certificate"},
		{Fault, Failed, "a disk cannot be wiped"},
	},
	Failed: {
		{Retire, Releasing, "its machine was deleted"},
		{Wipe, Cleaning, "a person asks for a wipe"},
		{Inspect, Inspecting, "a person asks for an inspection"},
		{Install, Installing, "a person asks its machine to be installed again"},
		{Release, Available, "a person clears the failure; not while it is claimed"},
	},
}

// States returns all states in the order of a host's life.
func States() []State {
	return []State{Discovered, Inspecting, Available, Installing, Active, Releasing, Cleaning, Failed}
}

// EdgesFrom returns the allowed changes out of a state; the slice is the caller's.
func EdgesFrom(s State) []Edge { return append([]Edge(nil), edges[s]...) }

// Next returns the state that a trigger leads to, or a Conflict error that names what is possible instead.
func (s State) Next(on Trigger) (State, error) {
	for _, e := range edges[s] {
		if e.On == on {
			return e.To, nil
		}
	}
	switch {
	case on == Accept && s == Failed:
		return s, Errorf(Conflict, "the host is accepted already, and %s", s).WithHint("clear the failure with: slipway host release NAME")
	case on == Accept:
		return s, Errorf(Conflict, "the host is accepted already: it is %s", s).WithHint("say what it boots with: slipway host set NAME --profile PROFILE")
	case on == Release:
		return s, Errorf(Conflict, "the host is %s: there is nothing to release it from", s).WithHint("slipway host show NAME says what it does")
	}
	return s, Errorf(Conflict, "a host that is %s cannot %s", s, on).WithHint("docs/states.md shows what it changes on")
}
