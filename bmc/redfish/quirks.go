package redfish

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// identity is what a controller says of itself.
type identity struct {
	vendor   string // as vendorOf names it
	product  string // of the service
	model    string // of the controller
	firmware string // of the controller
	system   string // model of the machine
}

// behaviour is what the driver does differently. The zero value is how the standard has it.
type behaviour struct {
	modeAlways      bool   // BootSourceOverrideMode goes with every override, changed or not
	modeFixed       bool   // BootSourceOverrideMode cannot be written
	clearTarget     string // target to send with Disabled, instead of None
	omitsOnceInUEFI bool   // BootSourceOverrideEnabled is not sent for one boot in UEFI mode
	bootInSettings  bool   // the override is written to the system's settings object
	keepsImageName  bool   // an ejected drive still names its image; ConnectedVia says that it is empty
	mediaSlot       string // only drives whose id begins so take a URL
	firstFreeSlot   int    // accounts are fixed slots; those below this number are not to be used
}

// quirk is one oddity of real controllers: whom it concerns, what is seen without it, who says so, and what is done.
type quirk struct {
	name     string
	vendor   string // as vendorOf names it
	model    string // pattern over the product, the controller's and the machine's model; "" for all
	firmware string // pattern over the controller's firmware version; "" for all
	symptom  string
	source   string
	apply    func(*behaviour)
}

// quirks is the table. Messages that mean "not now" or "no session is free" are in fault.go, because fault.go tells them apart by
// themselves. A new entry needs a source that others can read, and a test: a quirk from memory stays for years
// after the firmware has changed.
var quirks = []quirk{
	{
		name: "supermicro-mode", vendor: "Supermicro",
		symptom: "an override without BootSourceOverrideMode puts the mode back to its default, or is refused with 400 as lacking a required property",
		source:  "https://github.com/DMTF/Redfishtool/pull/106 https://github.com/ansible-collections/community.general/issues/11542",
		apply:   func(b *behaviour) { b.modeAlways = true },
	},
	{
		name: "supermicro-ejected", vendor: "Supermicro",
		symptom: "an ejected drive still shows its image; only ConnectedVia says NotConnected",
		source:  "https://github.com/ansible-collections/community.general/pull/12537",
		apply:   func(b *behaviour) { b.keepsImageName = true },
	},
	{
		name: "ilo-mode", vendor: "HPE",
		symptom: "a PATCH with BootSourceOverrideMode answers 400, even with the value that is set",
		source:  "https://github.com/ansible-collections/community.general/issues/3509 https://github.com/metal3-io/metal3-docs/pull/581",
		apply:   func(b *behaviour) { b.modeFixed = true },
	},
	{
		name: "ilo-clear", vendor: "HPE",
		symptom: "Disabled with target None is refused: BootSourceOverrideEnabled cannot be set while the target is None",
		source:  "https://github.com/ironcore-dev/metal-operator/pull/998",
		apply:   func(b *behaviour) { b.clearTarget = "Pxe" },
	},
	{
		name: "idrac8-once", vendor: "Dell", firmware: `^2\.`,
		symptom: "in UEFI mode, BootSourceOverrideEnabled Once answers 400 SYS444 although the override is for one boot anyway (13th generation)",
		source:  "https://github.com/ansible-collections/community.general/issues/5091",
		apply:   func(b *behaviour) { b.omitsOnceInUEFI = true },
	},
	{
		name: "idrac-slots", vendor: "Dell",
		symptom: "accounts are 16 slots that exist already: POST answers 405, and slots 1 and 2 are reserved and root",
		source:  "https://github.com/ironcore-dev/metal-operator/pull/913 https://github.com/dell/iDRAC-Redfish-Scripting/issues/16",
		apply:   func(b *behaviour) { b.firstFreeSlot = 3 },
	},
	{
		name: "xcc-media", vendor: "Lenovo",
		symptom: "of ten drives only EXT1 to EXT4 take a URL; RDOC and Remote refuse",
		source:  "https://github.com/lenovo/python-redfish-lenovo/issues/21 https://github.com/stmcginnis/gofish/issues/529",
		apply:   func(b *behaviour) { b.mediaSlot = "EXT" },
	},
	{
		name: "ami-settings", vendor: "AMI",
		symptom: "a PATCH of Boot answers 400 OperationSupportedInFutureStateURI: it belongs to /redfish/v1/Systems/Self/SD (MegaRAC of ASRock Rack, Gigabyte and others)",
		source:  "https://github.com/DMTF/Redfish-Tacklebox/issues/111 https://github.com/DMTF/Redfish-Tacklebox/issues/144",
		apply:   func(b *behaviour) { b.bootInSettings = true },
	},
}

// concerns reports whether a quirk is about a controller.
func (q *quirk) concerns(id identity) bool {
	if q.vendor != id.vendor {
		return false
	}
	return match(q.model, id.product, id.model, id.system) && match(q.firmware, id.firmware)
}

func match(pattern string, texts ...string) bool {
	return pattern == "" || slices.ContainsFunc(texts, regexp.MustCompile(pattern).MatchString)
}

// behaviourOf puts together what all quirks of a controller ask for.
func behaviourOf(id identity) behaviour {
	var b behaviour
	for i := range quirks {
		if quirks[i].concerns(id) {
			quirks[i].apply(&b)
		}
	}
	return b
}

// vendors are the names that controllers go by. The first match counts: iLO's root also names Hewlett, and OpenBMC runs on
// boards of all the others, whose own names come first.
var vendors = []struct {
	name    string
	pattern *regexp.Regexp
}{
	{"Dell", regexp.MustCompile(`(?i)\bdell\b|idrac`)},
	{"HPE", regexp.MustCompile(`(?i)\bhpe?\b|hewlett|\bilo\b`)},
	{"Supermicro", regexp.MustCompile(`(?i)super ?micro|^smci?$`)},
	{"Lenovo", regexp.MustCompile(`(?i)lenovo|xclarity|\bxcc\b`)},
	{"AMI", regexp.MustCompile(`(?i)^ami\b|megarac|american megatrends`)},
	{"OpenBMC", regexp.MustCompile(`(?i)openbmc`)},
	{"Huawei", regexp.MustCompile(`(?i)huawei|xfusion|ibmc`)},
	{"Cisco", regexp.MustCompile(`(?i)cisco|cimc`)},
	{"Fujitsu", regexp.MustCompile(`(?i)fujitsu|irmc`)},
}

// vendorOf names who made the controller: from the service root, from whose extensions it has, and from the machine's
// maker last, because boards of many makers carry controllers of few.
func vendorOf(root *serviceRoot, maker string) string {
	texts := []string{root.Vendor, root.Product}
	oem := slices.Sorted(maps.Keys(root.Oem))
	texts = append(texts, oem[:min(len(oem), 8)]...)
	for _, text := range append(texts, root.Name, maker) {
		for _, v := range vendors {
			if v.pattern.MatchString(text) {
				return v.name
			}
		}
	}
	return strings.TrimSpace(clean(root.Vendor))
}
