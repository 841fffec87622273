package net_test

import (
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// TestAVLANInterface serves machines on a VLAN by the interface that the kernel has for it, beside the untagged network on
// the same cable. Each wire gets its own answers.
func TestAVLANInterface(t *testing.T) {
	r := newRack(t, "udhcpc")
	if out, err := r.Try(10*time.Second, "ip", "netns", "exec", r.server, "ip", "link", "add", "link", "srv0", "name", "srv0.7", "type", "vlan", "id", "7"); err != nil {
		t.Skipf("this kernel has no VLAN interfaces: %s; Debian's has, and runs this test in a machine of its own: make test-vm RUN=TestVLANInterface", strings.TrimSpace(out))
	}
	r.In(r.server, "ip", "link", "set", "srv0.7", "up")
	r.In(r.server, "ip", "addr", "add", "10.77.7.1/24", "dev", "srv0.7")
	setup := r.setup()
	setup.Interfaces = append(setup.Interfaces, "srv0.7")
	setup.Subnets = append(setup.Subnets, rackNet(7, "srv0.7"))
	setup.Ours = append(setup.Ours, addr("10.77.7.1"))
	s := r.serve(r.server, setup)
	plain, tagged := r.machine(1), r.machine(2)
	r.In(tagged, "ip", "link", "add", "link", "eth0", "name", "eth7", "type", "vlan", "id", "7")
	r.In(tagged, "ip", "link", "set", "eth0", "down") // older kernels rename none that is up
	r.In(tagged, "ip", "link", "set", "eth0", "name", "trunk")
	r.In(tagged, "ip", "link", "set", "eth7", "name", "eth0")
	r.In(tagged, "ip", "link", "set", "trunk", "up")
	r.In(tagged, "ip", "link", "set", "eth0", "up")
	r.udhcpc(plain).WaitFor("bound ip=10.77.1.", 1)
	r.udhcpc(tagged).WaitFor("bound ip=10.77.7.", 1)
	for n, want := range map[int]string{1: "rack1", 2: "rack7"} {
		if l := s.leaseOf(mac(n)); l.Subnet != want || l.State != inventory.LeaseBound {
			t.Errorf("machine %d: the store has %+v, want it of %s", n, l, want)
		}
	}
}
