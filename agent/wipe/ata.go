package wipe

import (
	"encoding/binary"
	"runtime"
	"time"
	"unsafe"

	"slipway.dev/slipway/agent/disk"
	"slipway.dev/slipway/inventory"
)

// sgHeader is struct sg_io_hdr of scsi/sg.h.
type sgHeader struct {
	InterfaceID           int32
	Direction             int32
	CommandLen, MaxSense  uint8
	IovecCount            uint16
	DataLen               uint32
	Data, Command, Sense  uintptr
	TimeoutMS, Flags      uint32
	PackID                int32
	UserPtr               uintptr
	Status, MaskedStatus  uint8
	MsgStatus, SenseWrote uint8
	HostStatus            uint16
	DriverStatus          uint16
	Resid                 int32
	Duration, Info        uint32
}

const (
	sgIO         = 0x2285
	sgNone       = -1
	sgToDevice   = -2
	sgFromDevice = -3
)

// Commands of ATA/ATAPI Command Set 4: section 7.
const (
	ataIdentify        = 0xec
	ataSetPassword     = 0xf1
	ataErasePrepare    = 0xf3
	ataEraseUnit       = 0xf4
	ataDisablePassword = 0xf6
)

// ataPassword is set on a disk for the time of the erase. It is no secret: a disk that loses power meanwhile stays
// locked, and its finder must be able to open it.
const ataPassword = "slipway"

// ataCommand makes the 16 bytes of ATA PASS-THROUGH (16), SAT-4 section 12.2.2. Byte 1 is the protocol, byte 13 the
// device, and byte 14 the ATA command. Byte 2 says where the length is and in which direction the data go.
func ataCommand(command byte, direction int32) [16]byte {
	c := [16]byte{0: 0x85, 13: 0x40, 14: command}
	switch direction {
	case sgFromDevice:
		c[1], c[2], c[6] = 4<<1, 0x0e, 1 // PIO in; length in the sector count, in blocks, from the device
	case sgToDevice:
		c[1], c[2], c[6] = 5<<1, 0x06, 1 // PIO out
	default:
		c[1], c[2] = 3<<1, 0x20 // no data; the registers come back as sense data
	}
	return c
}

// ataSecurity is what IDENTIFY DEVICE says of the security feature set: words 128, 89 and 90.
type ataSecurity struct {
	isSupported, isEnabled, isLocked, isFrozen, canEnhanced bool
	erase, enhanced                                         time.Duration // as the disk estimates; 0 when it does not
}

func parseIdentify(b []byte) ataSecurity {
	word := func(n int) uint16 { return binary.LittleEndian.Uint16(b[2*n:]) }
	w := word(128)
	return ataSecurity{
		isSupported: w&1 != 0, isEnabled: w&2 != 0, isLocked: w&4 != 0, isFrozen: w&8 != 0, canEnhanced: w&0x20 != 0,
		erase: eraseTime(word(89)), enhanced: eraseTime(word(90)),
	}
}

// eraseTime reads an estimate: units of two minutes in eight bits, or in fifteen when bit 15 says so. The highest value
// means longer than that.
func eraseTime(w uint16) time.Duration {
	n := w & 0xff
	if w&0x8000 != 0 {
		n = w & 0x7fff
	}
	return time.Duration(n) * 2 * time.Minute
}

// securityData makes the block that the security commands take: which password, whether the erase is enhanced, and the
// password itself. Bit 1 of word 0 is only known to ERASE UNIT.
func securityData(isEnhanced bool) []byte {
	b := make([]byte, 512)
	if isEnhanced {
		b[0] = 2
	}
	copy(b[2:34], ataPassword)
	return b
}

// check says why a disk's own erase cannot be used; nil when it can.
func (s ataSecurity) check(name string) error {
	switch {
	case s.isFrozen:
		return inventory.Errorf(inventory.Unavailable, "the firmware has frozen the security settings of %s, so it cannot erase itself. A power cycle of the disk, or suspending the machine once, lifts that", name)
	case s.isLocked:
		return inventory.Errorf(inventory.Unavailable, "%s is locked with a password that is not known; if an erase by Slipway was cut off, it is %q", name, ataPassword)
	case s.isEnabled:
		return inventory.Errorf(inventory.Unavailable, "%s has a password that is not known", name)
	}
	return nil
}

func (o *work) ata(command byte, direction int32, data []byte, timeout time.Duration) error {
	cdb, sense, block := disk.Buffer(16), disk.Buffer(64), disk.Buffer(len(data))
	c := ataCommand(command, direction)
	copy(cdb, c[:])
	copy(block, data)
	h := sgHeader{
		InterfaceID: 'S', Direction: direction, CommandLen: 16, MaxSense: uint8(len(sense)), TimeoutMS: uint32(timeout.Milliseconds()),
		Command: uintptr(unsafe.Pointer(&cdb[0])), Sense: uintptr(unsafe.Pointer(&sense[0])), DataLen: uint32(len(data)),
	}
	if len(data) > 0 {
		h.Data = uintptr(unsafe.Pointer(&block[0]))
	}
	// The kernel gets addresses as numbers, which the garbage collector does not see. disk.Buffer lies where nothing
	// moves it, and KeepAlive below keeps the slices until the call has ended.
	err := o.dev.Ioctl(sgIO, unsafe.Pointer(&h))
	copy(data, block)
	runtime.KeepAlive(sense)
	runtime.KeepAlive(cdb)
	if err != nil {
		return err
	}
	return ataResult(h.Status, h.HostStatus, h.DriverStatus, sense)
}

// ataResult reads the outcome. The command asks for the registers, so that a success ends with CHECK CONDITION, too.
// The status register in the descriptor then tells (SAT-4 section 12.2.7).
func ataResult(status uint8, host, driver uint16, sense []byte) error {
	const checkCondition, driverSense = 2, 8
	if host != 0 || driver&^driverSense != 0 || status != 0 && status != checkCondition {
		return inventory.Errorf(inventory.Unavailable, "the command was not taken (status %d, host %d, driver %d)", status, host, driver)
	}
	if sense[0]&0x7f == 0x72 && sense[8] == 0x09 {
		if st := sense[21]; st&0x21 != 0 { // ERR or DF
			return inventory.Errorf(inventory.Unavailable, "the disk refused the command (status %02x, error %02x)", st, sense[11])
		}
		return nil
	}
	key := sense[1] & 0xf
	if sense[0]&0x7f == 0x70 { // the older form
		key = sense[2] & 0xf
		if sense[12] == 0 && sense[13] == 0x1d { // "ATA pass-through information available"
			if sense[4]&0x21 != 0 {
				return inventory.Errorf(inventory.Unavailable, "the disk refused the command (status %02x, error %02x)", sense[4], sense[3])
			}
			return nil
		}
	}
	if status == checkCondition && key > 1 { // neither no sense nor recovered
		return inventory.Errorf(inventory.Unavailable, "the disk refused the command (sense key %x)", key)
	}
	return nil
}

// eraseATA lets the disk erase itself with the security feature set. An empty method means that it cannot; why then
// says the reason, for the certificate.
//
// ERASE UNIT needs a password, and PREPARE directly before it. The disk removes the password when it has finished. If
// power fails in between, the disk stays locked with ataPassword until somebody runs the erase again.
func (o *work) eraseATA() (method string, why error) {
	id := make([]byte, 512)
	if o.ata(ataIdentify, sgFromDevice, id, 15*time.Second) != nil {
		return "", nil
	}
	s := parseIdentify(id)
	if !s.isSupported {
		return "", nil
	}
	if err := s.check(o.disk.Name); err != nil {
		return "", err
	}
	estimate := s.erase
	if s.canEnhanced {
		estimate = s.enhanced
	}
	if err := o.ata(ataSetPassword, sgToDevice, securityData(false), 15*time.Second); err != nil {
		return "", err
	}
	err := o.ata(ataErasePrepare, sgNone, nil, 15*time.Second)
	if err == nil {
		// One command for the whole disk: a large one takes most of a day, and reports no progress.
		err = o.ata(ataEraseUnit, sgToDevice, securityData(s.canEnhanced), max(2*estimate, 12*time.Hour))
	}
	if err != nil { // the erase takes the password away; without it that is up to us
		_ = o.ata(ataDisablePassword, sgToDevice, securityData(false), 15*time.Second)
		return "", inventory.Errorf(inventory.Unavailable, "%s did not erase itself: %w", o.disk.Name, err)
	}
	return methodATA, nil
}
