package identity

import (
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	port  = "ge-0/0/5@rack7"
	port2 = "ge-0/0/6@rack7"
	uuid  = "4c4c4544-0051-4d10-8052-b4c04f4a3132"
)

func TestABootOfARunningHostNeedsAProof(t *testing.T) {
	neighbour := &inventory.Neighbour{Chassis: "00:11:22:33:44:55", System: "rack7", Port: "ge-0/0/5"}
	said := Machine{UUID: uuid}
	for name, c := range map[string]struct {
		e     Evidence
		proof inventory.Proof
		doubt string
		open  bool
	}{
		"a host that runs nothing":                       {Evidence{}, "", "", false},
		"a host that runs nothing, on another port":      {Evidence{Learned: port, Heard: port2}, "", "", false},
		"a host with a machine, on another port":         {Evidence{IsSettled: true, Learned: port, Heard: port2}, "none", port2, false},
		"ordered, on another port":                       {Evidence{IsSettled: true, IsRunning: true, IsOrdered: true, Learned: port, Heard: port2}, "none", port2, false},
		"a person says so, on another port":              {Evidence{IsConfirmed: true, IsSettled: true, IsRunning: true, Learned: port, Heard: port2}, "person", "", false},
		"ordered":                                        {Evidence{IsRunning: true, IsOrdered: true}, "order", "", false},
		"nothing is known":                               {Evidence{IsRunning: true}, "none", "", false},
		"the same port":                                  {Evidence{IsRunning: true, Learned: port, Heard: port}, "port", "", false},
		"a port that others boot at":                     {Evidence{IsRunning: true, Learned: port, Heard: port, IsShared: true}, "none", "", false},
		"the same VLAN":                                  {Evidence{IsRunning: true, Learned: "Vlan100@r1", Heard: "Vlan100@r1"}, "none", "", false},
		"another router of the VLAN":                     {Evidence{IsSettled: true, IsRunning: true, Learned: "Vlan100@r1", Heard: "Vlan100@r2"}, "none", "", false},
		"a port, and it was never learned":               {Evidence{IsRunning: true, Heard: port}, "none", "", false},
		"the port that LLDP named":                       {Evidence{IsRunning: true, Heard: port, Neighbour: neighbour}, "port", "", false},
		"another port than LLDP named":                   {Evidence{IsRunning: true, Heard: port2, Neighbour: neighbour}, "none", "", false},
		"no port named in this boot":                     {Evidence{IsSettled: true, IsRunning: true, Learned: port}, "none", "", false},
		"the same port, another machine":                 {Evidence{IsRunning: true, Learned: port, Heard: port, Known: said, Said: Machine{UUID: strings.Replace(uuid, "4c", "5c", 1)}}, "none", "says that it is", false},
		"the same UUID in the other order of its bytes":  {Evidence{IsRunning: true, Learned: port, Heard: port, Known: said, Said: Machine{UUID: "44454c4c-5100-104d-8052-b4c04f4a3132"}}, "port", "", false},
		"another serial number, no UUID":                 {Evidence{IsRunning: true, WasOff: true, Known: Machine{UUID: uuid, Serial: "A"}, Said: Machine{Serial: "B"}}, "none", "serial B", false},
		"the same words prove nothing":                   {Evidence{IsRunning: true, Known: Machine{UUID: uuid, Serial: "A"}, Said: Machine{UUID: uuid, Serial: "A"}}, "none", "", false},
		"its controller was not asked yet":               {Evidence{IsRunning: true, HasController: true}, "none", "", true},
		"its controller does not answer":                 {Evidence{IsRunning: true, HasController: true, WasOff: true, Power: inventory.PowerUnknown}, "none", "", false},
		"its controller says on, as always":              {Evidence{IsRunning: true, HasController: true, Power: inventory.PowerOn}, "none", "", false},
		"it was off, and is on":                          {Evidence{IsRunning: true, HasController: true, WasOff: true, Power: inventory.PowerOn}, "power", "", false},
		"it was off, and was not asked since":            {Evidence{IsRunning: true, HasController: true, WasOff: true}, "none", "", true},
		"it is off":                                      {Evidence{IsRunning: true, HasController: true, WasOff: true, Power: inventory.PowerOff}, "none", "is off", false},
		"it is off, on the right port":                   {Evidence{IsRunning: true, HasController: true, Power: inventory.PowerOff, Learned: port, Heard: port}, "none", "is off", false},
		"its controller says that it restarted just now": {Evidence{IsRunning: true, HasController: true, IsRestarted: true, Power: inventory.PowerOn}, "power", "", false},
		"it restarted, and says that it is another one":  {Evidence{IsRunning: true, HasController: true, IsRestarted: true, Power: inventory.PowerOn, Known: said, Said: Machine{UUID: "5c5c4544-0051-4d10-8052-b4c04f4a3132"}}, "none", "says that it is", false},
		"a person said that it was off":                  {Evidence{IsRunning: true, WasOff: true}, "power", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			v := Judge(c.e)
			if v.Proof != c.proof || !strings.Contains(v.Doubt, c.doubt) || (v.Doubt == "") != (c.doubt == "") || v.IsOpen != c.open {
				t.Errorf("%+v, want proof %q, doubt %q, open %v", v, c.proof, c.doubt, c.open)
			}
		})
	}
}

func TestAVLANIsNoSwitchPort(t *testing.T) {
	for name, want := range map[string]bool{
		"ge-0/0/5@rack7": true, "Gi1/0/12@sw": true, "eth5@leaf1": true, "swp3@leaf": true, "0x000400640105@0x0006001122334455": true,
		"Ethernet1/7@nexus": true, "5/1/3@bb": true, "": false, "Vlan100@r1": false, "vlan.100@r1": false, "irb.100@qfx": false, "BVI7@asr": false, "100@r1": false, "br0@linux": false,
	} {
		if got := IsAccess(name); got != want {
			t.Errorf("%q is a port: %v", name, got)
		}
	}
}

func TestARelayAndLLDPNameOnePort(t *testing.T) {
	n := &inventory.Neighbour{Chassis: "00:11:22:33:44:55", System: "rack7.example", Management: "10.1.0.7", Port: "ge-0/0/5", PortDescription: "uplink"}
	for heard, want := range map[string]bool{
		"ge-0/0/5@rack7.example": true, "GE-0/0/5.0@RACK7.example": true, "ge-0/0/5:vlan10@10.1.0.7": true, "ge-0/0/5@0x001122334455": true,
		"ge-0/0/55@rack7.example": false, "ge-0/0/5@rack8.example": false, "ge-0/0/5": false, "": false,
	} {
		if got := IsAt(heard, n); got != want {
			t.Errorf("%q is at the port: %v", heard, got)
		}
	}
	if IsAt("@", &inventory.Neighbour{}) || IsAt("@rack7.example", n) {
		t.Error("a port without a name is one")
	}
}

func TestARestartLongAgoIsNotTheOneOfABoot(t *testing.T) {
	began := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		restarted time.Time
		want      bool
	}{
		"two minutes before":       {began.Add(-2 * time.Minute), true},
		"a long memory test":       {began.Add(-15 * time.Minute), true},
		"an hour before":           {began.Add(-time.Hour), false},
		"within the clock's error": {began.Add(2 * time.Second), true},
		"after the boot began":     {began.Add(time.Minute), false},
		"never":                    {time.Time{}, false},
	} {
		if got := IsRestartOf(began, c.restarted); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
