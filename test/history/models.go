package history

import (
	"cmp"
	"strconv"
)

// The models, by the names that requests have.
const (
	Leases     = "leases"     // a key is an address, and its holders are MACs
	Hosts      = "hosts"      // a key is a host, and its holders are machines
	Machines   = "machines"   // a key is a machine, and its holders are hosts: the same claims, seen from the other side
	Operations = "operations" // a key is a host, and its holders are open operations
	Tokens     = "tokens"     // a key is a code that works once, and its holder is who has used it
	Duties     = "duties"     // a key is a duty, and its register is what instances write under it
	Access     = "access"     // a key is a token of the API, and its holder is the token itself while it lets somebody in
	Versions   = "versions"   // a key is a record that people edit; each edit names the version that it has read
	Flags      = "flags"      // a key is a switch of a host, and the last writer wins
)

// Somebody is the holder that took a thing without a name of its own, and without an answer that gives it one. Another is the holder in a
// refusal that says only that it is not the one who asked.
const (
	somebody = "somebody"
	Another  = "another"
)

// state is what the program would remember of one key. Its zero value is the beginning.
type state struct {
	holder string // who has the thing; for a register, the instance that wrote last
	epoch  int64
	value  string
	isOver bool // all answers were given
}

// model is what one program alone would do: pure, one request after the other, for one key. It returns the next state, and whether the
// answer can be true in this one.
type model func(s state, r Request, a Answer) (next state, isTrue bool)

// models has the rules of each model.
var models = map[string]model{
	Leases:     holding(true),
	Hosts:      holding(false),
	Machines:   holding(false),
	Operations: holding(false),
	Tokens:     once,
	Duties:     register,
	Access:     holding(false),
	Versions:   versioned,
	Flags:      switched,
}

// holding is a thing that one has at a time. Somebody takes it when it is free, and may give it back. Again says that the holder may take it
// once more, as a machine renews its lease. Who takes a thing without a name gets one with the answer: an operation has its id so.
func holding(again bool) model {
	return func(s state, r Request, a Answer) (state, bool) {
		who := cmp.Or(r.Who, a.Holder, somebody)
		if s.holder == somebody { // the first answer that tells the name is believed
			s.holder = cmp.Or(named(r, a), somebody)
		}
		can, next := s.holder == who, state{}
		if r.Do == Take {
			can, next = s.holder == "" || can && again, state{holder: who}
		}
		switch {
		case r.Do == Read:
			return s, a.Holder == s.holder || a.Is == Unknown
		case a.Is == Done:
			return next, can
		case a.Is == Refused && a.Holder == Another:
			return s, s.holder != r.Who
		case a.Is == Refused: // it names who has the thing at that moment
			return s, a.Holder == s.holder
		case can: // nobody knows
			return next, true
		}
		return s, true
	}
}

// named is the holder that a request and its answer name, "" for none.
func named(r Request, a Answer) string {
	switch {
	case a.Is == Done && r.Do == Give:
		return r.Who
	case a.Holder == Another || a.Is == Done && r.Do == Take:
		return ""
	}
	return a.Holder
}

// once is a code that works once. A refusal says that somebody has used it.
func once(s state, r Request, a Answer) (state, bool) {
	isLeft, used := s.holder == "", state{holder: r.Who}
	switch {
	case a.Is == Done:
		return used, isLeft
	case a.Is == Refused:
		return s, !isLeft
	case isLeft:
		return used, true
	}
	return s, true
}

// register is a value that instances write under a duty. Each write brings the epoch in which its instance has the duty, and hears who wrote
// before it, when, and what. An epoch belongs to one instance, and never comes again after a later one: that is what fences are for. A read
// by any instance says what was written last, and not what it remembers.
func register(s state, r Request, a Answer) (state, bool) {
	sawLast := state{holder: a.Holder, epoch: a.Epoch, value: a.Value} == s
	next := state{holder: r.Who, epoch: r.Epoch, value: r.Value}
	can := r.Epoch > s.epoch || r.Epoch == s.epoch && r.Who == s.holder
	switch {
	case r.Do == Read:
		return s, sawLast || a.Is == Unknown
	case a.Is == Done:
		return next, sawLast && can
	case a.Is == Unknown && can:
		return next, true
	}
	return s, true // also when the fence has refused it
}

// versioned is a record with a version. A write names the version that it changes, 0 for a record that is not there yet. It is refused if
// the record has another version by now. So no edit is lost, and none is made twice.
func versioned(s state, r Request, a Answer) (state, bool) {
	can, next := s.epoch == r.Epoch, state{epoch: r.Epoch + 1, value: r.Value}
	switch {
	case r.Do == Read:
		return s, state{epoch: a.Epoch, value: a.Value} == s || a.Is == Unknown
	case a.Is == Done:
		return next, can && a.Epoch == next.epoch
	case a.Is == Refused:
		return s, !can
	case can:
		return next, true
	}
	return s, true
}

// switched is a switch: each write sets it. Its zero value is off.
func switched(s state, r Request, a Answer) (state, bool) {
	if r.Do == Read {
		return s, a.Value == s.value || a.Is == Unknown
	}
	return state{value: r.Value}, true
}

// text says, for people, what a state is.
func (s state) text() string {
	switch {
	case s.value != "" && s.holder == "" && s.epoch > 0:
		return s.value + " in version " + strconv.FormatInt(s.epoch, 10)
	case s.value != "" && s.holder == "":
		return s.value
	case s.value != "":
		return s.value + " by " + s.holder + " in epoch " + strconv.FormatInt(s.epoch, 10)
	case s.holder == "":
		return "nobody has it"
	}
	return s.holder + " has it"
}

// text says, for people, what was asked and answered.
func text(r Request, a Answer) string {
	if r.Do == end {
		return "the end"
	}
	asked := r.Who + ": " + string(r.Do) + " " + r.Key
	switch {
	case r.Do == Write && r.Model == Versions:
		asked += " " + r.Value + " in place of version " + strconv.FormatInt(r.Epoch, 10)
	case r.Do == Write && r.Model == Flags:
		asked += " " + cmp.Or(r.Value, "off")
	case r.Do == Write:
		asked += " " + r.Value + " in epoch " + strconv.FormatInt(r.Epoch, 10)
	}
	heard := " -> " + string(a.Is)
	if r.Do == Read || a.Holder != "" || a.Value != "" {
		heard += ", " + state{holder: a.Holder, epoch: a.Epoch, value: a.Value}.text()
	}
	return asked + heard
}
