package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/lease"
	"slipway.dev/slipway/pxe/trace"
)

// Trouble returns what is late or has failed at a host; "" means that nobody has to look for causes. A host that is
// switched off, that waits for a person or that boots its own disk is well. A machine that is not listed is no host: its
// user wants to know why Slipway has not seen it.
func (c *Case) Trouble() string {
	switch {
	case c.Host == nil:
		return "it is not listed"
	case c.IsLate:
		return "what should come next is late"
	case c.Host.State == inventory.Failed:
		return "it is in quarantine"
	case c.hasFailedBoot():
		return "its latest boot said that it failed"
	case c.hasFailedAttempt():
		return "an attempt failed: " + c.Operation.Reason
	}
	if i := slices.IndexFunc(c.Issues, func(i inventory.Issue) bool { return slices.Contains(bootIssues, i.Type) }); i >= 0 {
		return "issue " + c.Issues[i].Type + " is open"
	}
	s := newStory(c)
	switch {
	case s.isRefusedAddress():
		return "it asked for an address and got none"
	case s.isBrokenOff():
		return "what it was sent broke off, or was refused"
	case s.isLeftStanding():
		return "it got the name of a boot file and did not fetch it"
	case diskExitFails(s).weight > 0:
		return "it comes back from its own disk"
	}
	return ""
}

// bootIssues are the types of issues that are about boots. Others, such as a controller that does not answer, stop none.
var bootIssues = []string{
	inventory.IssueStalled, inventory.IssueBootRefused, inventory.IssueBootLoop, inventory.IssueBootOrder, inventory.IssueOverdue,
	inventory.IssueInstall, inventory.IssueInspection, inventory.IssueWipe, inventory.IssueBurnIn, inventory.IssueIdentityConflict,
	inventory.IssueSecretRefused,
}

// hasFailedBoot reports whether the latest boot said that it failed, and nobody has released the host since.
func (c *Case) hasFailedBoot() bool {
	return c.Session.Outcome == inventory.OutcomeFailed && !c.Session.LastAt.Before(c.Host.StateSinceAt)
}

// hasFailedAttempt reports whether the operation begins again because an attempt of it failed.
func (c *Case) hasFailedAttempt() bool {
	o := &c.Operation
	return o.State == inventory.OpRunning && o.AttemptN > 1 && o.Reason != ""
}

// isRefusedAddress reports whether we left its questions for an address unanswered in this boot, and did not answer later.
// What is left to another server counts for a host only that is to boot from here, and what an operating system asks is no boot.
func (s *story) isRefusedAddress() bool {
	isOurs := s.Decision.Boot == pxe.BootImage || s.Decision.Boot == pxe.BootAgent
	system := slices.IndexFunc(s.boot, isOfSystem)
	for _, n := range s.Notes {
		if system >= 0 && !n.At.Before(s.boot[system].At) {
			continue
		}
		r := lease.Reason(n.Reason)
		isMeant := !isOurs && (r == lease.IsOff || r == lease.NoReservation)
		isMeant = isMeant || r == lease.Elsewhere
		isShared := strings.HasPrefix(n.Reason, trace.SameXid)
		if isMeant || isShared || len(s.boot) > 0 && n.At.Before(s.boot[0].At.Add(-time.Second)) {
			continue
		}
		answered := slices.Concat(since(s.acks, n.At), since(s.otherAcks, n.At), since(s.offers, n.At), since(s.foreign, n.At))
		hasSix := slices.ContainsFunc(since(s.sixAnswers, n.At), func(p trace.Packet) bool { return p.Six.HasAddress })
		if len(answered) == 0 && !hasSix && s.comesNoFurther(n.At) {
			return true
		}
	}
	return false
}

// comesNoFurther reports whether nothing of the boot is recorded after a time.
func (s *story) comesNoFurther(t time.Time) bool {
	return !slices.ContainsFunc(s.Events, func(e inventory.Event) bool {
		return e.At.After(t) && e.Kind != inventory.EventDHCPDiscover && e.Kind != inventory.EventDHCPUnanswered && e.Kind != inventory.EventSessionStarted
	})
}

// standsFor is how long a boot may be silent that only the wire knows of.
const standsFor = time.Minute

// isLeftStanding reports whether the record has a boot that we gave a boot file, and that did not fetch it, of which the session
// knows nothing: its deadlines are those of an earlier one.
func (s *story) isLeftStanding() bool {
	isGivenFile := slices.ContainsFunc(slices.Concat(s.offers, s.acks, s.told4011), func(p trace.Packet) bool { return p.DHCP.File != "" })
	isUnknown := len(s.discovers) > 0 && s.boot[0].At.After(s.Session.LastAt) && len(s.Events) == 0
	return isGivenFile && isUnknown && len(s.reads)+len(s.syns)+len(s.gets) == 0 && s.quiet(standsFor)
}

// isBrokenOff reports whether the latest that was sent to it in this boot stopped half way, or was refused.
func (s *story) isBrokenOff() bool {
	if !s.Session.EndedAt.IsZero() {
		return false
	}
	for _, kinds := range [][2]string{
		{inventory.EventLoaderFailed, inventory.EventLoaderSent},
		{inventory.EventArtefactFailed, inventory.EventArtefactSent},
		{inventory.EventConfigRefused, inventory.EventConfigSent},
	} {
		if e, ok := s.event(kinds[0], kinds[1]); ok && e.Kind == kinds[0] && !isNotReady(e) {
			return true
		}
	}
	return false
}

// isNotReady reports whether a refusal said only that what was asked for is not there yet, such as a cluster's bootstrap data.
func isNotReady(e inventory.Event) bool {
	fields, _ := e.Data.(map[string]any)
	return e.Kind == inventory.EventConfigRefused && fmt.Sprint(fields["kind"]) == string(inventory.Unavailable)
}

// End removes the evidence from after the end of the boot: after the power-off, or the end of the operation. The packets
// from before stay; the rules judge a later boot by itself. Repeated answers of ours to a machine that is off, and acts of
// a machine after its work, are no evidence.
func (c *Case) End(at time.Time) {
	if at.IsZero() {
		return
	}
	keep := func(t time.Time) bool { return !t.After(at) }
	if i := slices.IndexFunc(c.Packets, func(p trace.Packet) bool { return p.At.After(at) && isBootStart(p) }); i >= 0 {
		c.Packets = c.Packets[i:]
		keep = func(t time.Time) bool { return t.After(at) }
	} else {
		c.Packets = slices.DeleteFunc(slices.Clone(c.Packets), func(p trace.Packet) bool { return p.At.After(at) })
	}
	c.Notes = slices.DeleteFunc(slices.Clone(c.Notes), func(n trace.Note) bool { return !keep(n.At) })
}
