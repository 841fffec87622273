package inventory

import (
	"encoding/hex"
	"strings"
)

// maxPortName is how long the name of a switch port may be: two suboptions of 255 bytes in hex, and what joins them.
const maxPortName = 1200

// PortName names a switch port by option 82 of relays (RFC 3046). circuit is suboption 1. device is suboption 2 or, where
// the relay sends none, its address. It is "CIRCUIT@DEVICE"; "" when no circuit was named. It writes bytes that are no
// plain text in hex after 0x.
func PortName(circuit []byte, device string) string {
	if len(circuit) == 0 {
		return ""
	}
	return PortText(circuit) + "@" + device
}

// PortText writes a suboption of option 82 for people: as it is when it is plain text, else in hex after 0x.
func PortText(b []byte) string {
	for i, c := range b {
		if c <= ' ' || c >= 0x7f || strings.ContainsRune(`@,="'`, rune(c)) || i == 1 && b[0] == '0' && c == 'x' {
			return "0x" + hex.EncodeToString(b)
		}
	}
	return string(b)
}

// PortCircuit returns the first part of a port's name.
func PortCircuit(name string) string {
	circuit, _, _ := strings.Cut(name, "@")
	return circuit
}

// CheckPort checks the port that a host is pinned to: it names the switch too, because circuits repeat between them.
func CheckPort(name string) error {
	if err := CheckText("port", name, maxPortName); err != nil || name == "" {
		return err
	}
	circuit, device, _ := strings.Cut(name, "@")
	if circuit == "" || device == "" || strings.ContainsAny(name, " ,") {
		return Errorf(Invalid, "%q is not a switch port", Clean(name, 80)).At("port").
			WithHint("write CIRCUIT@SWITCH as slipway lease list shows it, for example ge-0/0/5@rack7")
	}
	return nil
}
