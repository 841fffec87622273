package inventory

// State is where a host is in its life. There are few, they are explicit, and only package provision moves a host
// from one to the next.
type State string

// The states of a host.
const (
	Discovered State = "discovered" // heard, not accepted; never touched
	Available  State = "available"  // accepted, nothing runs on it for us
	Installing State = "installing" // a profile's image is on its way
	Active     State = "active"     // what we booted has reported up
	Failed     State = "failed"     // quarantined with the reason; a person decides
)

// Trigger is what moves a host between states.
type Trigger string

// The triggers, named after what happened.
const (
	Accept  Trigger = "accept"  // a person or a rule accepted the host
	Boot    Trigger = "boot"    // a boot of the profile's image was armed and its script handed out
	Arrive  Trigger = "arrive"  // the booted system reported up
	Fault   Trigger = "fault"   // the loop breaker or a failure report stopped the host
	Release Trigger = "release" // a person took the host back, or cleared its failure
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
	Available: {
		{Boot, Installing, "a profile's image was handed to the machine"},
		{Fault, Failed, "the machine reports a failure"},
	},
	Installing: {
		{Boot, Installing, "the machine asks again before it has reported up"},
		{Arrive, Active, "the booted system reports up"},
		{Fault, Failed, "too many boots without an arrival, or a failure report"},
		{Release, Available, "a person releases it"},
	},
	Active: {
		{Boot, Installing, "a live profile boots again, or a person asked for an install"},
		{Arrive, Active, "the system reports up again"},
		{Fault, Failed, "the machine reports a failure"},
		{Release, Available, "a person releases it"},
	},
	Failed: {
		{Release, Available, "a person clears the failure"},
	},
}

// States returns all states in the order of a host's life.
func States() []State { return []State{Discovered, Available, Installing, Active, Failed} }

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
