package identity

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// Evidence is what is known when a machine boots under the MAC of a host.
type Evidence struct {
	IsConfirmed bool // a person says that this machine is the host
	IsSettled   bool // the host has a system or a machine: it does not wander to other switch ports
	IsRunning   bool // its system reported up, or was given its secrets, and nobody has ended it since
	IsOrdered   bool // an operation or a person has the host boot

	Learned   string               // switch port of this MAC, "" when none was learned
	Neighbour *inventory.Neighbour // that the port of this MAC heard by LLDP when the host was inspected
	Heard     string               // switch port that the relay names in this boot, "" for none
	IsShared  bool                 // other hosts boot at that port: it is no port of one machine

	Known, Said Machine

	HasController bool
	Power         inventory.PowerState // what the controller says since this boot began: "" not asked yet, unknown no answer
	WasOff        bool                 // since its system reported up, it was seen off
	IsRestarted   bool                 // its controller says that it restarted just before this boot
}

// Machine is what a machine says of itself. It proves nothing, because a thief says the same; another word is a reason to
// doubt.
type Machine struct{ UUID, Serial string }

// Verdict is whether a boot counts as that of the host.
type Verdict struct {
	Proof  inventory.Proof // "" when there is nothing to prove: no system of the host runs
	Doubt  string          // what speaks against it; such a boot is given nothing
	IsOpen bool            // Slipway waits for the answer of its controller, which may prove it
}

// Judge says whether a machine that boots under a host's MAC counts as that host. A person's word goes first. Then what
// speaks against it counts more than what speaks for it, and what is not known counts for neither.
func Judge(e Evidence) Verdict {
	none := func(doubt string) Verdict { return Verdict{Proof: inventory.ProofNone, Doubt: doubt} }
	switch {
	case e.IsConfirmed:
		return Verdict{Proof: inventory.ProofPerson}
	case e.IsSettled && HasMoved(e.Learned, e.Heard):
		return none(fmt.Sprintf("its MAC belongs to switch port %s, and boots on port %s", e.Learned, e.Heard))
	case !e.IsRunning:
		return Verdict{}
	case e.IsOrdered:
		return Verdict{Proof: inventory.ProofOrder}
	case isOther(e.Known, e.Said):
		return none(fmt.Sprintf("the machine says that it is %s, and the host is %s", e.Said, e.Known))
	case e.HasController && e.Power == inventory.PowerOff:
		return none("its controller says that the host is off")
	case !e.IsShared && isSamePort(e):
		return Verdict{Proof: inventory.ProofPort}
	case (e.WasOff || e.IsRestarted) && (!e.HasController || e.Power == inventory.PowerOn):
		return Verdict{Proof: inventory.ProofPower}
	}
	return Verdict{Proof: inventory.ProofNone, IsOpen: e.HasController && e.Power == ""}
}

const (
	// startsWithin is how long firmware may take from a restart to its first question on the network: big servers count their
	// memory for a quarter of an hour.
	startsWithin = 20 * time.Minute
	// clockSlack is how inexact the time of a restart is.
	clockSlack = 5 * time.Second
)

// IsRestartOf reports whether a restart is the one that a boot followed. A restart long ago, or after the boot began, is
// another one: a second machine that boots under the MAC does not restart the host.
func IsRestartOf(began, restarted time.Time) bool {
	return !restarted.IsZero() && restarted.Before(began.Add(clockSlack)) && began.Sub(restarted) < startsWithin
}

// HasMoved reports whether a MAC appears on another port than its own. An unknown port, and a VLAN that a relay names
// instead of a port, prove nothing.
func HasMoved(learned, heard string) bool {
	return IsAccess(learned) && IsAccess(heard) && learned != heard
}

func isSamePort(e Evidence) bool {
	return IsAccess(e.Heard) && (e.Heard == e.Learned || e.Learned == "" && IsAt(e.Heard, e.Neighbour))
}

// logical are how the interfaces begin that a whole network shares. A relay that names one of them names no port.
var logical = []string{"vlan", "vl", "irb", "bvi", "svi", "ve", "vbdif", "bdi", "br", "lo", "loopback", "tunnel", "vxlan", "vni"}

// IsAccess reports whether a relay's words name one port of a switch, and not a network that many machines share.
func IsAccess(port string) bool {
	circuit := strings.ToLower(inventory.PortCircuit(port))
	rest := strings.TrimLeft(circuit, "abcdefghijklmnopqrstuvwxyz")
	for _, name := range logical {
		if rest != circuit && circuit[:len(circuit)-len(rest)] == name {
			return false
		}
	}
	return strings.Trim(circuit, "0123456789") != "" // a number alone is that of a VLAN
}

// IsAt reports whether a relay names the switch port that LLDP has shown. The device matches by id, name or management
// address. The circuit matches by the port's id or description, with or without unit or VLAN.
func IsAt(port string, n *inventory.Neighbour) bool {
	if n == nil {
		return false
	}
	circuit, device, _ := strings.Cut(strings.ToLower(port), "@")
	isDevice := false
	for _, name := range []string{n.Chassis, n.System, n.Management} {
		isDevice = isDevice || name != "" && (device == strings.ToLower(name) || device == "0x"+strings.ReplaceAll(strings.ToLower(name), ":", ""))
	}
	if !isDevice {
		return false
	}
	for _, name := range []string{n.Port, n.PortDescription} {
		rest, ok := strings.CutPrefix(circuit, strings.ToLower(name))
		if name != "" && ok && (rest == "" || rest[0] == '.' || rest[0] == ':') {
			return true
		}
	}
	return false
}

// isOther reports whether a machine says that it is another one. The UUID counts, in either order of its bytes; where one of
// the two has none, the serial number does.
func isOther(known, said Machine) bool {
	a, b := strings.ToLower(known.UUID), strings.ToLower(said.UUID)
	if a != "" && b != "" {
		return a != b && a != swapped(b)
	}
	return known.Serial != "" && said.Serial != "" && known.Serial != said.Serial
}

// swapped returns a UUID with the bytes of its first three fields reversed: firmware differs in how it reads them.
func swapped(uuid string) string {
	b, err := hex.DecodeString(strings.ReplaceAll(uuid, "-", ""))
	if err != nil || len(b) != 16 {
		return ""
	}
	for _, f := range [][2]int{{0, 3}, {1, 2}, {4, 5}, {6, 7}} {
		b[f[0]], b[f[1]] = b[f[1]], b[f[0]]
	}
	h := hex.EncodeToString(b)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func (m Machine) String() string {
	switch {
	case m.UUID != "" && m.Serial != "":
		return fmt.Sprintf("%s (serial %s)", m.UUID, m.Serial)
	case m.UUID != "":
		return m.UUID
	}
	return "serial " + m.Serial
}
