package ipmi

import (
	"errors"
	"fmt"

	"slipway.dev/slipway/inventory"
)

// Network functions and commands that the driver uses (IPMI 2.0, appendix G).
const (
	netChassis = 0x00
	netSensor  = 0x04
	netApp     = 0x06
	netStorage = 0x0a
	netLAN     = 0x0c

	cmdChassisStatus  = 0x01
	cmdChassisControl = 0x02
	cmdIdentify       = 0x04
	cmdSetBoot        = 0x08
	cmdGetBoot        = 0x09

	cmdSensorReading = 0x2d

	cmdDeviceID          = 0x01
	cmdColdReset         = 0x02 // of the controller, not of the machine
	cmdSystemGUID        = 0x37
	cmdSetLevel          = 0x3b
	cmdCloseSession      = 0x3c // a controller has few sessions, and keeps one that is not closed for a minute
	cmdSetUserAccess     = 0x43
	cmdGetUserAccess     = 0x44
	cmdSetUserName       = 0x45
	cmdGetUserName       = 0x46
	cmdSetPassword       = 0x47
	cmdActivatePayload   = 0x48
	cmdDeactivatePayload = 0x49
	cmdSetPayloadAccess  = 0x4c
	cmdPayloadSupport    = 0x4e

	cmdFRUInfo    = 0x10
	cmdReadFRU    = 0x11
	cmdReserveSDR = 0x22
	cmdGetSDR     = 0x23
	cmdSELInfo    = 0x40
	cmdReserveSEL = 0x42
	cmdGetSEL     = 0x43
	cmdClearSEL   = 0x47

	cmdGetLAN = 0x02
)

// Completion codes that the driver treats in their own way (IPMI 2.0, table 5-2).
const (
	codeBusy         = 0xc0 // the caller asks again
	codeUnknown      = 0xc1 // command
	codeUnknownHere  = 0xc2
	codeReservation  = 0xc5 // another session has changed the records
	codeTooMuch      = 0xca // bytes asked for
	codeLength       = 0xc7
	codeFieldRange   = 0xc8
	codeNotPresent   = 0xcb
	codeField        = 0xcc // among others: the fixed name of a user
	codeTimeout      = 0xc3
	codeNoAnswer     = 0xce
	codeUpdating     = 0xd0
	codeInit         = 0xd2 // its firmware is starting
	codeNotPermitted = 0xd4 // the privilege level of the session is too low
	codeState        = 0xd5 // such as power off for a machine that is off: see the quirks
	codeUnspecified  = 0xff
)

// codeError is a completion code other than 0.
type codeError byte

func (e codeError) Error() string {
	if a, ok := answers[byte(e)]; ok {
		return fmt.Sprintf("%s (0x%02X)", a.text, byte(e))
	}
	return fmt.Sprintf("completion code 0x%02X", byte(e))
}

// isBusy reports whether a controller that is busy or starting refuses for now.
func isBusy(err error) bool {
	c := codeOf(err)
	return c == codeBusy || c == codeInit || c == codeTimeout || c == codeNoAnswer || c == codeUpdating
}

// codeOf returns the completion code behind an error, 0 for none.
func codeOf(err error) byte {
	if c, ok := errors.AsType[codeError](err); ok {
		return byte(c)
	}
	return 0
}

type answer struct {
	kind inventory.Kind
	text string
	hint string
}

// answers says what the generic completion codes mean, and whether trying again is of use.
var answers = map[byte]answer{
	0xc0: {inventory.Unavailable, "busy", "try again in a moment"},
	0xc1: {inventory.Invalid, "it does not know the command", ""},
	0xc2: {inventory.Invalid, "it does not know the command here", ""},
	0xc3: {inventory.Unavailable, "timeout inside the controller", "try again in a moment"},
	0xc4: {inventory.Unavailable, "out of space", ""},
	0xc5: {inventory.Unavailable, "another session changed the records", "try again"},
	0xc6: {inventory.Invalid, "data too long", ""},
	0xc7: {inventory.Invalid, "wrong length of data", ""},
	0xc8: {inventory.Invalid, "data out of range", ""},
	0xc9: {inventory.Invalid, "parameter out of range", ""},
	0xca: {inventory.Invalid, "it cannot return that many bytes", ""},
	0xcb: {inventory.NotFound, "not present", ""},
	0xcc: {inventory.Invalid, "it refuses the value", ""},
	0xcd: {inventory.Invalid, "command illegal for this record", ""},
	0xce: {inventory.Unavailable, "no answer could be made", "try again in a moment"},
	0xcf: {inventory.Unavailable, "duplicate request", "try again in a moment"},
	0xd0: {inventory.Unavailable, "its sensor records are being updated", "try again in a moment"},
	0xd1: {inventory.Unavailable, "its firmware is being updated", "wait until the update is done"},
	0xd2: {inventory.Unavailable, "it is starting", "wait a minute"},
	0xd3: {inventory.Unavailable, "the part behind it does not answer", ""},
	0xd4: {inventory.Unauthorized, "the user may not do this", "give the user the privilege level administrator on the LAN channel"},
	0xd5: {inventory.Unavailable, "not possible in the present state", ""},
	0xd6: {inventory.Invalid, "turned off in the controller's settings", "turn it on in the controller's settings"},
	0xff: {inventory.Unavailable, "unspecified error", "look at the controller's own pages and log"},
}

// reason puts a completion code into words. doing is what was tried, such as "read the power state".
func reason(address, doing string, c codeError) *inventory.Error {
	a, ok := answers[byte(c)]
	if !ok {
		// Codes below 0xC0 belong to the command and mean that it will not do it; 0x01 to 0x7E are the vendor's.
		a = answer{kind: inventory.Invalid, hint: "look at the controller's own pages and log"}
	}
	return &inventory.Error{
		Kind: a.kind, Msg: fmt.Sprintf("%s: the IPMI controller at %s refuses: %v", doing, address, c), Hint: a.hint, Err: c,
	}
}

// statuses are those of RMCP+ and RAKP messages (IPMI 2.0, table 13-15).
var statuses = map[byte]string{
	0x01: "no resources for another session",
	0x02: "unknown session",
	0x03: "unknown payload",
	0x04: "no such authentication algorithm",
	0x05: "no such integrity algorithm",
	0x06: "no matching authentication",
	0x07: "no matching integrity",
	0x08: "the session is not active",
	0x09: "unknown role",
	0x0a: "the user may not have the privilege level",
	0x0b: "no resources for another session of this role",
	0x0c: "wrong length of the name",
	0x0d: "unknown user name",
	0x0e: "unknown GUID",
	0x0f: "wrong integrity code",
	0x10: "no such encryption",
	0x11: "no such cipher suite",
	0x12: "illegal parameter",
}

func statusReason(l login, s statusError) *inventory.Error {
	e := &inventory.Error{Kind: inventory.Unavailable, Err: s, Msg: fmt.Sprintf("the IPMI controller at %s opens no session: %v", l.address, s)}
	switch {
	case s == 0x09 || s == 0x0a:
		e.Kind = inventory.Unauthorized
		e.Hint = "give the user the privilege level administrator on the LAN channel, or set the option privilege=operator, which can only switch power"
	// Controllers answer a wrong name and a wrong password with any of these, so that the hint names both.
	case s >= 0x0c && s <= 0x0f:
		e.Kind = inventory.Unauthorized
		e.Hint = "check user name and password, and that the user is enabled for IPMI on the LAN channel"
	case isCipherRefusal(s):
		e.Kind = inventory.Invalid
		e.Hint = "turn on cipher suite 17 or 3 in the controller's settings"
	case s == 0x01 || s == 0x0b:
		e.Hint = "other sessions are open; they end after a minute without use"
	}
	return e
}
