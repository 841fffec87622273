package pxe

import (
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/inventory"
)

// Architecture is a row of the table of client architectures: a code of option 93, and what that machine can boot.
type Architecture struct {
	Code     int    // option 93
	Name     string // for people
	Arch     inventory.Arch
	Firmware inventory.Firmware // "" when we have no way to boot it
	IsHTTP   bool               // boots a URL instead of a file name
}

// ArchCode is a code of option 93. Its zero value is no code at all, because 0 is a code, too.
type ArchCode struct {
	code   uint16
	isTold bool
}

// Arch93 is a code from a packet.
func Arch93(code uint16) ArchCode { return ArchCode{code, true} }

// Number returns the code, 0 for no code.
func (c ArchCode) Number() uint16 { return c.code }

// IsTold reports whether the packet had a code.
func (c ArchCode) IsTold() bool { return c.isTold }

// Is reports whether the code is one of the given ones.
func (c ArchCode) Is(codes ...uint16) bool { return c.isTold && slices.Contains(codes, c.code) }

// Equal reports whether both are the same.
func (c ArchCode) Equal(d ArchCode) bool { return c == d }

// String says the code, or that there is none.
func (c ArchCode) String() string {
	if !c.isTold {
		return "not told"
	}
	return strconv.Itoa(int(c.code))
}

// Architectures returns IANA's "Processor Architecture Types" as far as they exist. RFC 4578 and its erratum disagree
// on 7 and 9; in the field both are 64-bit x86.
func Architectures() []Architecture {
	const (
		arm, riscv32, riscv64, riscv128 = "arm", "riscv32", "riscv64", "riscv128"
		loong32, loong64                = "loongarch32", "loongarch64"
	)
	return []Architecture{
		{0, "x86 BIOS", inventory.X8664, inventory.BIOS, false},
		{1, "NEC PC-98", "", "", false},
		{2, "Itanium", "ia64", "", false},
		{3, "DEC Alpha", "alpha", "", false},
		{4, "Arc x86", "", "", false},
		{5, "Intel Lean Client", "", "", false},
		{6, "x86 UEFI, 32 bit", inventory.I386, inventory.UEFI, false},
		{7, "x86 UEFI, 64 bit", inventory.X8664, inventory.UEFI, false},
		{8, "Xscale UEFI", arm, "", false},
		{9, "x86 UEFI, 64 bit (EBC)", inventory.X8664, inventory.UEFI, false},
		{10, "ARM UEFI, 32 bit", arm, inventory.UEFI, false},
		{11, "ARM UEFI, 64 bit", inventory.ARM64, inventory.UEFI, false},
		{12, "PowerPC Open Firmware", "ppc", "", false},
		{13, "PowerPC ePAPR", "ppc", "", false},
		{14, "POWER OPAL v3", "ppc64le", "", false},
		{15, "x86 UEFI HTTP, 32 bit", inventory.I386, inventory.UEFI, true},
		{16, "x86 UEFI HTTP, 64 bit", inventory.X8664, inventory.UEFI, true},
		{17, "x86 UEFI HTTP, 64 bit (EBC)", inventory.X8664, inventory.UEFI, true},
		{18, "ARM UEFI HTTP, 32 bit", arm, inventory.UEFI, true},
		{19, "ARM UEFI HTTP, 64 bit", inventory.ARM64, inventory.UEFI, true},
		{20, "x86 BIOS HTTP", inventory.X8664, inventory.BIOS, true},
		{21, "ARM U-Boot, 32 bit", arm, "", false},
		{22, "ARM U-Boot, 64 bit", inventory.ARM64, "", false},
		{23, "ARM U-Boot HTTP, 32 bit", arm, "", true},
		{24, "ARM U-Boot HTTP, 64 bit", inventory.ARM64, "", true},
		{25, "RISC-V UEFI, 32 bit", riscv32, inventory.UEFI, false},
		{26, "RISC-V UEFI HTTP, 32 bit", riscv32, inventory.UEFI, true},
		{27, "RISC-V UEFI, 64 bit", riscv64, inventory.UEFI, false},
		{28, "RISC-V UEFI HTTP, 64 bit", riscv64, inventory.UEFI, true},
		{29, "RISC-V UEFI, 128 bit", riscv128, inventory.UEFI, false},
		{30, "RISC-V UEFI HTTP, 128 bit", riscv128, inventory.UEFI, true},
		{31, "s390 basic", "s390x", "", false},
		{32, "s390 extended", "s390x", "", false},
		{33, "MIPS UEFI, 32 bit", "mips", inventory.UEFI, false},
		{34, "MIPS UEFI, 64 bit", "mips64", inventory.UEFI, false},
		{35, "Sunway UEFI, 32 bit", "sw", inventory.UEFI, false},
		{36, "Sunway UEFI, 64 bit", "sw64", inventory.UEFI, false},
		{37, "LoongArch UEFI, 32 bit", loong32, inventory.UEFI, false},
		{38, "LoongArch UEFI HTTP, 32 bit", loong32, inventory.UEFI, true},
		{39, "LoongArch UEFI, 64 bit", loong64, inventory.UEFI, false},
		{40, "LoongArch UEFI HTTP, 64 bit", loong64, inventory.UEFI, true},
		{41, "Raspberry Pi", inventory.ARM64, "", false},
	}
}

// The table is ordered by code without gaps, so that a packet costs one index.
var architectures = Architectures()

func architectureOf(c ArchCode) (Architecture, bool) {
	if !c.isTold || int(c.code) >= len(architectures) {
		return Architecture{}, false
	}
	return architectures[c.code], true
}

// machineWords says in words what kind of machine it is, for reasons.
func (c Client) machineWords() string {
	if c.IsRaspberryPi {
		return "a Raspberry Pi"
	}
	if row, ok := architectureOf(c.ArchCode); ok {
		return row.Name
	}
	for _, row := range architectures { // from the inventory: the same words as from the packet
		if row.Firmware != "" && row.Arch == c.Arch && row.Firmware == plainFirmware(c.Firmware) && row.IsHTTP == (c.Firmware == inventory.UEFIHTTP) {
			return row.Name
		}
	}
	if c.Arch != "" || c.Firmware != "" {
		return strings.TrimSpace(string(c.Arch) + " " + string(c.Firmware))
	}
	return "this kind of machine"
}

// plainFirmware takes UEFI HTTP boot as UEFI.
func plainFirmware(f inventory.Firmware) inventory.Firmware {
	if f == inventory.UEFIHTTP {
		return inventory.UEFI
	}
	return f
}
