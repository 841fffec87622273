package diagnosis

import (
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/lease"
	"slipway.dev/slipway/pxe/trace"
)

// story is what rules read: the case, and its latest attempt on the wire. It has what several rules ask of the timeline.
type story struct {
	*Case
	*attempt
}

func newStory(c *Case) *story { return &story{c, newAttempt(c)} }

func (s *story) mode() inventory.SubnetMode {
	if s.Subnet == nil {
		return ""
	}
	return s.Subnet.Mode
}

// event returns the latest event of one of the kinds; ok is false when there is none.
func (s *story) event(kinds ...string) (e inventory.Event, ok bool) {
	for _, x := range slices.Backward(s.Events) {
		if slices.Contains(kinds, x.Kind) {
			return x, true
		}
	}
	return inventory.Event{}, false
}

// firstEvent returns the earliest event of one of the kinds; ok is false when there is none.
func (s *story) firstEvent(kinds ...string) (e inventory.Event, ok bool) {
	for _, x := range s.Events {
		if slices.Contains(kinds, x.Kind) {
			return x, true
		}
	}
	return inventory.Event{}, false
}

// eventsOf returns the events of a kind.
func (s *story) eventsOf(kind string) []inventory.Event {
	return slices.DeleteFunc(slices.Clone(s.Events), func(e inventory.Event) bool { return e.Kind != kind })
}

// loaderSent returns when a boot loader came whole.
func (s *story) loaderSent() (inventory.Event, bool) { return s.event(inventory.EventLoaderSent) }

// hasAskedScript reports whether the boot loader has asked for its script.
func (s *story) hasAskedScript() bool {
	if _, ok := s.event(inventory.EventScriptAsked); ok {
		return true
	}
	return slices.ContainsFunc(s.gets, func(p trace.Packet) bool { return isScriptPath(p.TCP.Path) })
}

func (s *story) subnetName() string {
	if s.Subnet == nil {
		return "SUBNET"
	}
	return s.Subnet.Name
}

// beforeSystem is the boot up to the first sign of an operating system, which fetches from wherever it likes.
func (s *story) beforeSystem() []trace.Packet {
	at := s.Now
	if e, ok := s.firstEvent(inventory.EventArtefactSent, inventory.EventConfigSent, inventory.EventAgentStarted); ok {
		at = e.At
	}
	i := slices.IndexFunc(s.boot, func(p trace.Packet) bool { return isOfSystem(p) || p.At.After(at) })
	if i < 0 {
		return s.boot
	}
	return s.boot[:i]
}

// why returns the latest note of this boot with one of the reasons.
func (s *story) why(reasons ...lease.Reason) (trace.Note, bool) {
	for _, n := range slices.Backward(s.Notes) {
		isOld := len(s.boot) > 0 && n.At.Before(s.boot[0].At.Add(-time.Second))
		if !isOld && slices.Contains(reasons, lease.Reason(n.Reason)) {
			return n, true
		}
	}
	return trace.Note{}, false
}
