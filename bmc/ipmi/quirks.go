package ipmi

import (
	"context"
	"slices"
)

// Numbers of vendors, as IANA gave them (Get Device ID, bytes 7 to 9).
const (
	ianaHP         = 11
	ianaIntel      = 343
	ianaDell       = 674
	ianaOpenIPMI   = 4753 // FORCE Computers; what OpenIPMI's ipmi_sim calls itself in its examples and in package ipmitest
	ianaCisco      = 5771
	ianaSupermicro = 10876
	ianaLenovo     = 19046
	ianaHPE        = 47196
)

// vendors names those that are common in racks.
var vendors = map[uint32]string{
	2: "IBM", ianaHP: "HP", ianaIntel: "Intel", ianaDell: "Dell", 2011: "Huawei", 2623: "ASUS", ianaOpenIPMI: "OpenIPMI", ianaCisco: "Cisco",
	7244: "Quanta", 10368: "Fujitsu", ianaSupermicro: "Supermicro", 15370: "GIGABYTE", ianaLenovo: "Lenovo", 20301: "Lenovo",
	37945: "Inspur", ianaHPE: "HPE", 47488: "Supermicro", 49622: "ASRock Rack",
}

// traits change what the driver does for a vendor.
type traits struct {
	// needsUEFIBit sets the UEFI bit unless the caller wants BIOS.
	needsUEFIBit bool
	// hidesValidBit takes boot flags without their valid bit as in force.
	hidesValidBit bool
}

// quirk is one way in which hardware differs from what one would think. Those without vendors are met by everyone, and
// the driver does the same for all; they are listed because the code would look odd without them.
type quirk struct {
	name    string
	vendors []uint32
	symptom string
	source  string
	traits  traits
}

var quirks = []quirk{
	{
		name:    "boot-flags-expire",
		symptom: "the controller forgets the boot device after 60 s, or at a reset. A slow start of the machine then boots its disk; parameter 3 prevents it",
		source:  "IPMI 2.0 table 28-14; kinvolk/racker#36, xcat2/xcat-core#7460 (Dell), RackHD/on-tasks#460",
	},
	{
		name:    "order-in-wrong-state",
		symptom: "power off for a machine that is off is refused with 0xD5 by Dell, and taken by HP and Supermicro; OpenBMC refuses with 0xFF",
		source:  "bmc-toolbox/bmclib#382 and #417, openbmc/openbmc#3253",
	},
	{
		name:    "cycle-while-off",
		symptom: "a power cycle of a machine that is off is refused with 0xD5, or does nothing",
		source:  "IPMI 2.0 table 28-4; siderolabs/sidero#145, redhat-performance/jetpack#443 (Supermicro)",
	},
	{
		name:    "reset-while-off",
		symptom: "a reset of a machine that is off succeeds, and does nothing",
		source:  "bmc-toolbox/bmclib#211 (Supermicro)",
	},
	{
		name:    "only-one-cipher",
		symptom: "old firmware has cipher suite 3 only, OpenBMC 17 only; it refuses a missing suite with status 0x04 or 0x11",
		source:  "ipmitool/ipmitool#29 (Dell R710), #350 and #363",
	},
	{
		name:    "short-refusal",
		symptom: "a refusal to open a session has two bytes, not eight: it does not say which session it means",
		source:  "measured on ipmi_sim 2.0.33 (Debian 12): 0600ff07 0611 00000000 00000000 0200 0004",
	},
	{
		name:    "none-is-an-override",
		symptom: "the device 'no override' with the valid bit set still overrides the mode of the firmware",
		source:  "ipmitool/ipmitool#304",
	},
	{
		name:    "slots-locked",
		symptom: "some places for users have fixed names and refuse another with 0xCC",
		source:  "xcat2/xcat-core#6380 (Intel)",
	},
	{
		name:    "password-rules",
		symptom: "a password that breaks the controller's own rules is refused when it is set, or silently",
		source:  "RackHD/RackHD#631 (HP CloudLine)",
	},
	{
		name: "uefi-bit", vendors: []uint32{ianaSupermicro, 47488},
		symptom: "a machine in UEFI mode ignores a PXE order without the UEFI bit and boots its disk",
		source:  "bmc-toolbox/bmclib#209, redhat-performance/JetSki#100, ironcore-dev/metal-operator#607",
		traits:  traits{needsUEFIBit: true},
	},
	{
		name: "valid-bit-hidden", vendors: []uint32{ianaOpenIPMI},
		symptom: "ipmi_sim returns the boot device, but never the valid bit nor the mode",
		source:  "cminyard/openipmi lanserv/bmc_chassis.c, get_system_boot_options",
		traits:  traits{hidesValidBit: true},
	},
}

// quirks returns what is special about the controller. One that does not say who it is has nothing special.
func (d *driver) quirks(ctx context.Context) traits {
	// Two goroutines may both ask; they store the same answer.
	if d.vendor.Load() == 0 {
		if id, err := d.deviceID(ctx); err == nil {
			d.vendor.Store(id.vendor)
		}
	}
	return traitsOf(d.vendor.Load())
}

func traitsOf(vendor uint32) (t traits) {
	for _, q := range quirks {
		if slices.Contains(q.vendors, vendor) {
			t.needsUEFIBit = t.needsUEFIBit || q.traits.needsUEFIBit
			t.hidesValidBit = t.hidesValidBit || q.traits.hidesValidBit
		}
	}
	return t
}
