package wipe

import (
	"context"
	"encoding/binary"
	"regexp"
	"slices"
	"strings"
	"time"
	"unsafe"

	"slipway.dev/slipway/agent/disk"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
)

// nvmeAdmin is struct nvme_admin_cmd of linux/nvme_ioctl.h.
type nvmeAdmin struct {
	Opcode, Flags        uint8
	_                    uint16
	NSID, CDW2, CDW3     uint32
	Metadata, Addr       uint64
	MetadataLen, DataLen uint32
	CDW10, CDW11, CDW12  uint32
	CDW13, CDW14, CDW15  uint32
	TimeoutMS, Result    uint32
}

const (
	nvmeIoctlAdmin = 0xc0484e41 // _IOWR('N', 0x41, 72 bytes)
	nvmeIoctlID    = 0x4e40     // returns the namespace's number
)

// Commands and fields of the NVM Express Base Specification 2.0: sections 5.14 Format NVM, 5.16 Get Log Page,
// 5.17 Identify, 5.24 Sanitize.
const (
	opLogPage  = 0x02
	opIdentify = 0x06
	opFormat   = 0x80
	opSanitize = 0x84

	cnsNamespace, cnsController = 0, 1
	logSanitize                 = 0x81
	allNamespaces               = 0xffffffff

	sanitizeBlock, sanitizeOverwrite, sanitizeCrypto = 2, 3, 4
	eraseData, eraseCrypto                           = 1, 2
)

// nvmeAbility is what a controller can do, from Identify Controller.
type nvmeAbility struct {
	canFormat, canCrypto          bool
	formatsAll                    bool // a format or its erase is for all namespaces
	sanitizeCrypto, sanitizeBlock bool
	sanitizeOverwrite             bool
	namespaces                    uint32
}

func parseController(b []byte) nvmeAbility {
	oacs, fna, sanicap := binary.LittleEndian.Uint16(b[256:]), b[524], binary.LittleEndian.Uint32(b[328:])
	return nvmeAbility{
		canFormat: oacs&2 != 0, canCrypto: fna&4 != 0, formatsAll: fna&3 != 0,
		sanitizeCrypto: sanicap&1 != 0, sanitizeBlock: sanicap&2 != 0, sanitizeOverwrite: sanicap&4 != 0,
		namespaces: binary.LittleEndian.Uint32(b[516:]),
	}
}

// sanitize returns the action to take, the quickest thorough one first; 0 for none. Sanitize also reaches cells
// without an address.
func (a nvmeAbility) sanitize() uint32 {
	switch {
	case a.sanitizeBlock:
		return sanitizeBlock
	case a.sanitizeCrypto:
		return sanitizeCrypto
	case a.sanitizeOverwrite:
		return sanitizeOverwrite
	}
	return 0
}

func sanitizeCommand(action uint32) nvmeAdmin {
	c := nvmeAdmin{Opcode: opSanitize, CDW10: action}
	if action == sanitizeOverwrite {
		c.CDW10 |= 1 << 4 // one pass, of the pattern in CDW11: zeroes
	}
	return c
}

// formatCommand keeps the namespace's format, which Identify Namespace tells, and erases its data.
func formatCommand(nsid uint32, namespace []byte, isCrypto bool) nvmeAdmin {
	flbas, dps := uint32(namespace[26]), uint32(namespace[29])
	erase := uint32(eraseData)
	if isCrypto {
		erase = eraseCrypto
	}
	return nvmeAdmin{
		Opcode: opFormat, NSID: nsid, TimeoutMS: uint32((4 * time.Hour).Milliseconds()),
		// LBAFL 3:0, MSET 4, PI 7:5, PIL 8, SES 11:9, LBAFU 13:12
		CDW10: flbas&0xf | flbas>>4&1<<4 | dps&7<<5 | dps>>3&1<<8 | erase<<9 | flbas>>5&3<<12,
	}
}

func identifyCommand(nsid, cns uint32, buf []byte) nvmeAdmin {
	return nvmeAdmin{Opcode: opIdentify, NSID: nsid, CDW10: cns, Addr: address(buf), DataLen: uint32(len(buf))}
}

func sanitizeLog(buf []byte) nvmeAdmin {
	return nvmeAdmin{
		Opcode: opLogPage, NSID: allNamespaces, CDW10: logSanitize | uint32(len(buf)/4-1)<<16,
		Addr: address(buf), DataLen: uint32(len(buf)),
	}
}

// address is for memory of disk.Buffer only.
func address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(&b[0]))) }

// sanitizeState is what the log says: how far, in 65536ths, and how it ended.
func sanitizeState(log []byte) (part float64, isRunning, isFailed bool) {
	status := binary.LittleEndian.Uint16(log[2:]) & 7
	return float64(binary.LittleEndian.Uint16(log)) / 65536, status == 2, status == 3
}

func (o *work) nvme(c nvmeAdmin) error { return o.dev.Ioctl(nvmeIoctlAdmin, unsafe.Pointer(&c)) }

var controllerRE = regexp.MustCompile(`^nvme(\d+)`)

// sharesController reports whether a disk that is to be kept is on the same controller: a command for all namespaces
// would erase it, too. In a subsystem with several controllers the names do not tell. So disks with the same serial
// number count as shared.
func (o *work) sharesController() bool {
	mine := controllerRE.FindString(o.disk.Name)
	return slices.ContainsFunc(o.mates, func(k inventory.Disk) bool {
		return controllerRE.FindString(k.Name) == mine || k.Serial != "" && strings.EqualFold(k.Serial, o.disk.Serial)
	})
}

// eraseNVMe lets the disk erase itself: by Sanitize, else by Format. An empty method means that it cannot.
func (o *work) eraseNVMe(ctx context.Context) (method string, err error) {
	controller, namespace := disk.Buffer(4096), disk.Buffer(4096)
	nsid, err := o.namespace()
	if err != nil {
		return "", nil //nolint:nilerr // it does not know NVMe's commands
	}
	if o.nvme(identifyCommand(0, cnsController, controller)) != nil || o.nvme(identifyCommand(nsid, cnsNamespace, namespace)) != nil {
		return "", nil
	}
	able := parseController(controller)
	if action := able.sanitize(); action != 0 && !o.sharesController() {
		// A controller may announce the action and refuse it. Format is next then.
		if o.nvme(sanitizeCommand(action)) == nil {
			return methodSanitize, o.waitSanitize(ctx)
		}
	}
	if able.canFormat && (!able.formatsAll || !o.sharesController()) {
		for _, isCrypto := range []bool{false, true} {
			// Erasing the data comes first: a new key leaves the old bytes, unreadable, in the cells.
			if isCrypto && !able.canCrypto {
				continue
			}
			if o.nvme(formatCommand(nsid, namespace, isCrypto)) == nil {
				return methodFormat, nil
			}
		}
	}
	return "", nil
}

func (o *work) namespace() (uint32, error) { return o.dev.IoctlValue(nvmeIoctlID) }

// waitSanitize waits for the end of a sanitize. The controller continues after a power cut and after the end of this
// program, and refuses reads until then.
func (o *work) waitSanitize(ctx context.Context) error {
	log := disk.Buffer(512)
	for {
		if err := o.nvme(sanitizeLog(log)); err != nil {
			return inventory.Errorf(inventory.Unavailable, "%s does not say how its sanitize goes: %w", o.disk.Name, err)
		}
		part, isRunning, isFailed := sanitizeState(log)
		switch {
		case isFailed:
			return inventory.Errorf(inventory.Unavailable, "the sanitize of %s failed: the disk may have to be replaced", o.disk.Name)
		case !isRunning:
			return nil
		}
		o.bytes.Store(int64(part * float64(o.dev.Bytes)))
		if sleep.For(ctx, 2*time.Second) != nil {
			return ctx.Err()
		}
	}
}
