package diagnosis

import (
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/lease"
	"slipway.dev/slipway/pxe/trace"
)

func TestOnlyWhatIsLateOrHasFailedIsExplained(t *testing.T) {
	refusal := func(kind inventory.Kind) func(*wire, *Case) {
		return both(normal, func(_ *wire, c *Case) {
			c.event(45, inventory.EventConfigRefused, "user-data: no", map[string]any{"kind": string(kind)})
		})
	}
	open := func(kind string) func(*wire, *Case) {
		return both(normal, func(_ *wire, c *Case) { c.Issues = []inventory.Issue{{Type: kind}} })
	}
	for _, x := range []struct {
		name   string
		story  func(*wire, *Case)
		isWell bool
	}{
		{"it boots", normal, true},
		{"it boots, and the next sign is late", both(normal, func(_ *wire, c *Case) { c.IsLate = true }), false},
		{"it is not accepted, and waits", both(normal, func(_ *wire, c *Case) {
			c.Host.State, c.Decision.Boot = inventory.Discovered, pxe.BootWait
		}), true},
		{"it was sent to its own disk", both(normal, func(_ *wire, c *Case) { c.Decision.Boot = pxe.BootDisk }), true},
		{"it is in quarantine", both(normal, func(_ *wire, c *Case) { c.Host.State = inventory.Failed }), false},
		{"nothing was ever heard of it", func(_ *wire, c *Case) {}, true},
		{"nobody knows it", func(_ *wire, c *Case) { c.Host = nil }, false},
		{"its boot said that it failed", both(normal, func(_ *wire, c *Case) {
			c.Session.Outcome, c.Session.LastAt = inventory.OutcomeFailed, at(50)
		}), false},
		{"its boot said that it failed, and somebody released it", both(normal, func(_ *wire, c *Case) {
			c.Session.Outcome, c.Session.LastAt, c.Host.StateSinceAt = inventory.OutcomeFailed, at(50), at(60)
		}), true},
		{"the operation is at its first attempt", both(normal, func(_ *wire, c *Case) {
			c.Operation = inventory.Operation{State: inventory.OpRunning, AttemptN: 1, Reason: "the budget of the pool"}
		}), true},
		{"an attempt of the operation failed", both(normal, func(_ *wire, c *Case) {
			c.Operation = inventory.Operation{State: inventory.OpRunning, AttemptN: 2, Reason: "not in time"}
		}), false},
		{"an attempt failed once, and the next goes well", both(normal, func(_ *wire, c *Case) {
			c.Operation = inventory.Operation{State: inventory.OpRunning, AttemptN: 2}
		}), true},
		{"the operation waits for a person", both(normal, func(_ *wire, c *Case) {
			c.Operation = inventory.Operation{State: inventory.OpWaiting, AttemptN: 2, Reason: "switch it on"}
		}), true},
		{"an issue says that it stands still", open(inventory.IssueStalled), false},
		{"an issue says that its controller does not answer", open(inventory.IssueBMC), true},
		{"an issue asks a person for something", open(inventory.IssueManual), true},
		{"an issue says that its hardware is not golden", open(inventory.IssueDiskMissing), true},
		{"it is given no address", because(lease.NoSubnet), false},
		{"it is given an address at its second question", both(because(lease.Exhausted), func(w *wire, _ *Case) { w.offer(8, us); w.ack(8.1, us) }), true},
		{"its operating system renews, and a packet is dropped", both(normal, func(w *wire, c *Case) {
			w.request(60, system, to(us))
			noted(60.1, c, "stale")
			c.Events = nil
		}), true},
		{"the subnet is left to another server", because(lease.IsOff), true},
		{"the subnet is left to another server, and it is to boot from here", both(because(lease.IsOff), func(_ *wire, c *Case) { c.Decision.Boot = pxe.BootImage }), false},
		{"another machine asks with the same transaction id", both(wasAsked(2, 4, uefi), func(_ *wire, c *Case) {
			noted(.1, c, lease.Reason(trace.SameXid+"52:54:00:01:02:04"))
		}), true},
		{"we answered, and it fetches nothing", func(w *wire, _ *Case) { w.address(0, uefi, file(loader)) }, false},
		{"we answered, and named no file", func(w *wire, c *Case) { w.address(0, uefi); c.Decision.Boot = pxe.BootDisk }, true},
		{"a file broke off", both(normal, func(_ *wire, c *Case) { c.event(9, inventory.EventArtefactFailed, "initrd stopped") }), false},
		{"a file broke off, and came later", both(normal, func(_ *wire, c *Case) {
			c.event(9, inventory.EventArtefactFailed, "initrd stopped")
			sent(12, c, "initrd")
		}), true},
		{"a file broke off when its power went", both(normal, func(_ *wire, c *Case) {
			c.event(9, inventory.EventArtefactFailed, "initrd stopped")
			c.Session.EndedAt = at(10)
		}), true},
		{"its configuration has an error", refusal(inventory.Invalid), false},
		{"its configuration waits for the cluster", refusal(inventory.Unavailable), true},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := tell(t, x.story)
			if got := c.Trouble(); (got == "") != x.isWell {
				t.Errorf("trouble: %q, well: %v; causes would be %s", got, x.isWell, codes(Explain(c)))
			}
		})
	}
}

func TestEvidenceEndsWithThePower(t *testing.T) {
	off := func(when float64, later func(w *wire, c *Case)) Case {
		c := tell(t, func(w *wire, c *Case) {
			normal(w, c)
			noted(2, c, lease.Exhausted)
			w.tcp(20, false, ackFlag, "HTTP/1.1 200 OK\r\n\r\n") // we repeat an answer
			later(w, c)
		})
		c.End(at(when))
		return c
	}
	c := off(10, func(*wire, *Case) {})
	if n := len(c.Packets); n == 0 || c.Packets[n-1].At.After(at(10)) || len(c.Notes) != 1 {
		t.Errorf("%d packets, the last at %s; notes %v", n, final(c.Packets).At, c.Notes)
	}
	c = off(10, func(w *wire, c *Case) { w.address(60, uefi, file(loader)); noted(61, c, lease.Exhausted) })
	if len(c.Packets) != 4 || c.Packets[0].At.Before(at(60)) || len(c.Notes) != 1 || c.Notes[0].At.Before(at(60)) {
		t.Errorf("a boot after that stands not for itself: %v, %v", c.Packets, c.Notes)
	}
	before := tell(t, normal)
	if n := len(before.Packets); n > 0 {
		before.End(time.Time{})
		if len(before.Packets) != n {
			t.Error("evidence that has not ended was cut")
		}
	}
}

// A host stands in quarantine for the reason that was recorded, whatever that was.
func TestAQuarantinedHostSaysTheRecordedReason(t *testing.T) {
	for _, reason := range []string{
		"install was cancelled by anna", "its controller does not answer: no route to host", "r1-u01 was given its image 6 times within 1h and never reported up",
	} {
		c := tell(t, both(normal, func(_ *wire, c *Case) {
			c.Host.State, c.Host.StateReason = inventory.Failed, reason
			c.Decision = pxe.Decision{Boot: pxe.BootPark, Reason: "quarantined: " + reason, Hint: "after the repair: slipway host release r1-u01"}
			c.Issues = []inventory.Issue{{Type: inventory.IssueInstall, Cause: "another", Hint: "not this"}, {Type: inventory.IssueInstall, Cause: reason, Hint: "look there"}}
		}))
		causes := Explain(c)
		if len(causes) == 0 || causes[0].Code != "parked" || causes[0].Sentence != "quarantined: "+reason || causes[0].Hint != "look there; then: slipway host release r1-u01" || causes[0].Certainty != RootCause {
			t.Errorf("%s: %+v", reason, causes)
		}
	}
}

func TestOneRootCauseIsToldFromGuesses(t *testing.T) {
	for _, x := range []struct {
		rank, weight int
		want         Certainty
	}{{1, certain, RootCause}, {1, strong, RootCause}, {1, likely, Guess}, {2, certain, Guess}, {2, possible, Guess}, {1, slow, SlowsDown}, {3, slow, SlowsDown}} {
		if got := certaintyOf(x.rank, x.weight); got != x.want {
			t.Errorf("rank %d, weight %d is %q, want %q", x.rank, x.weight, got, x.want)
		}
	}
	roots := 0
	for _, c := range Explain(tell(t, because(lease.NoSubnet))) {
		if c.Certainty == RootCause {
			roots++
		}
	}
	if roots != 1 {
		t.Errorf("%d root causes", roots)
	}
}
