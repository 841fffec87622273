package provision

import (
	"context"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
)

func TestARequestThatNoHostWillEverMeetSaysSo(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true) // 8 GiB, 8 threads
	big := inventory.HardwareRequirements{MemoryBytes: 64 << 30}
	l.create(inventory.Machine{Name: "free", Placement: inventory.Placement{Requirements: big}})
	l.turn()
	const want = "no host of the inventory meets it, free or in use: 1 host fails only memory: 64 GiB asked, 8 GiB there"
	if m, _ := l.find("free"); m.Reason != want || m.Hint != "add a host that meets it, or ask for less: slipway machine show free" {
		t.Errorf("while the host is free: %q (%s)", m.Reason, m.Hint)
	}
	l.create(inventory.Machine{Name: "first"})
	l.until("it runs", l.phase("first", inventory.MachineRunning))
	l.create(inventory.Machine{Name: "never", Placement: inventory.Placement{Requirements: big}})
	l.create(inventory.Machine{Name: "later", Placement: inventory.Placement{Requirements: inventory.HardwareRequirements{MemoryBytes: 4 << 30}}})
	l.turn()
	if m, _ := l.find("never"); m.Reason != want {
		t.Errorf("while the host is in use: %q", m.Reason)
	}
	if v := l.view("never"); v.Code != "NoMatchingHost" || v.Rejected != nil {
		t.Errorf("code %s, rejected %+v", v.Code, v.Rejected)
	}
	if m, _ := l.find("later"); m.Reason != "no host is free: 1 active" {
		t.Errorf("one that only waits: %q", m.Reason)
	}
	if v := l.view("later"); v.Code != "InsufficientResources" {
		t.Errorf("code %s", v.Code)
	}
	l.restart()
	if v := l.view("never"); v.Code != "NoMatchingHost" || v.Machine.Reason != want {
		t.Errorf("after a restart: code %s, %s", v.Code, v.Machine.Reason)
	}
	h := s.host()
	h.Taints = []inventory.Taint{{Key: "gpu"}}
	_, err := l.engine.UpdateHost(context.Background(), h, ledger.By("a test"))
	l.must(err)
	l.until("the new taint is seen", func() bool {
		m, _ := l.find("later")
		return strings.Contains(m.Reason, "1 host fails only the tolerations: it has the taint gpu")
	})
	h = s.host()
	h.Taints = nil
	_, err = l.engine.UpdateHost(context.Background(), h, ledger.By("a test"))
	l.must(err)
	l.until("and that it is gone", func() bool { m, _ := l.find("later"); return m.Reason == "no host is free: 1 active" })
}

func TestAMachineThatNamesAHostWhichWillNeverDoSaysSo(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	l.create(inventory.Machine{Name: "first"})
	l.until("it runs", l.phase("first", inventory.MachineRunning))
	h := s.host()
	h.Taints = []inventory.Taint{{Key: "gpu"}}
	_, err := l.engine.UpdateHost(context.Background(), h, ledger.By("a test"))
	l.must(err)
	l.create(inventory.Machine{Name: "pinned", Placement: inventory.Placement{Host: "a"}})
	l.until("it is told why", func() bool {
		m, _ := l.find("pinned")
		return m.Reason == "host a, which the machine names, never meets it: it fails only the tolerations: it has the taint gpu"
	})
	if v := l.view("pinned"); v.Code != "PinnedHostUnavailable" {
		t.Errorf("code %s", v.Code)
	}
}
