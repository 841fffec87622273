package wire

import (
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/operation"
)

// BulkRequest says what to do, and with which hosts. The fields after selector are those of the verb.
type BulkRequest struct {
	Verb     string   `json:"verb" enum:"accept,inspect,install,power,maintain,protect,cordon,retain,adopt,confirm,clean,release,set,locate,delete"`
	Hosts    []string `json:"hosts,omitempty" doc:"Names, ids or MACs" maxItems:"10000"`
	Selector string   `json:"selector,omitempty" doc:"Those that it matches, instead of hosts" maxLength:"1024"`
	// Strangers are chosen by what they are.
	Strangers bool               `json:"strangers,omitempty" doc:"delete: the hosts that nobody has accepted or changed, instead of hosts"`
	SilentFor inventory.Duration `json:"silentFor,omitempty" doc:"strangers: only those that have been silent for so long"`

	On      *bool                    `json:"on,omitempty" doc:"maintain, protect, cordon, retain, adopt, locate: false ends it"`
	Force   bool                     `json:"force,omitempty" doc:"delete: also what something is under way with; that is cancelled"`
	Profile string                   `json:"profile,omitempty" doc:"install: profile to pin; empty keeps what decides now" maxLength:"63"`
	Action  bmc.Action               `json:"action,omitempty" doc:"power" enum:"on,off,shutdown,cycle,reset,"`
	Mode    inventory.CleanMode      `json:"mode,omitempty" doc:"clean: quick when absent" enum:"none,quick,full,secure,"`
	Inspect operation.InspectRequest `json:"inspect,omitempty" doc:"inspect"`
	Set     *HostPatch               `json:"set,omitempty" doc:"set: what to change, on each host alike"`
}

// BulkItem is what became of one host.
type BulkItem struct {
	Host string           `json:"host"`
	ID   inventory.HostID `json:"id,omitempty"`
	Acts bool             `json:"acts" doc:"It was done, or with dryRun would be; otherwise the host stays as it is"`
	Does string           `json:"does,omitempty" doc:"With dryRun: what would happen, as a sentence in which {hosts} stands for the host"`
	// Reason and Hint say why a host is skipped.
	Reason string `json:"reason,omitempty"`
	Hint   string `json:"hint,omitempty"`
}

// BulkResult is the result for each host, in the order of the request, or of their names.
type BulkResult struct {
	IsDryRun bool       `json:"isDryRun"`
	ActsN    int        `json:"actsN" doc:"How many hosts it acted on, or with dryRun would act on"`
	SkipsN   int        `json:"skipsN"`
	Items    []BulkItem `json:"items"`
}

// HostPatch changes some fields of a host; an absent field stays. It works like a JSON merge patch (RFC 7396).
type HostPatch struct {
	Name         *string             `json:"name,omitempty"`
	Profile      *string             `json:"profile,omitempty" doc:"Pins a profile; empty lets the selectors decide"`
	Revision     *int                `json:"profileRevision,omitempty" doc:"Pins a revision of the profile; 0 follows the newest. Another profile unpins it" minimum:"0"`
	DiskBoot     *inventory.DiskBoot `json:"diskBoot,omitempty" doc:"How it is sent to its own disk; empty asks the quirk table" enum:"no-offer,exit,sanboot,"`
	Port         *string             `json:"port,omitempty" doc:"Pins it to a switch port, CIRCUIT@SWITCH: the machine there is this host, and it boots nowhere else; empty unpins"`
	IsAdopted    *bool               `json:"isAdopted,omitempty" doc:"Its operating system is not ours"`
	UUID         *string             `json:"uuid,omitempty"`
	Serial       *string             `json:"serial,omitempty"`
	AssetTag     *string             `json:"assetTag,omitempty"`
	Manufacturer *string             `json:"manufacturer,omitempty"`
	Product      *string             `json:"product,omitempty"`
	MACs         []inventory.MAC     `json:"macs,omitempty" doc:"All MACs it has; those that it keeps keep what is known of them" maxItems:"64"`
	Place        *PlacePatch         `json:"place,omitempty"`
	Labels       map[string]*string  `json:"labels,omitempty" doc:"Labels to set; null removes one"`

	IsCordoned *bool `json:"isCordoned,omitempty" doc:"No machine claims it; all else goes on"`
	IsRetained *bool `json:"isRetained,omitempty" doc:"When its machine goes, its disks stay as they are, and it waits for a person"`

	Taints    []inventory.Taint    `json:"taints,omitzero" doc:"All of them: they keep away machines that do not tolerate them" maxItems:"16"`
	RootDisk  *inventory.DiskHint  `json:"rootDisk,omitempty" doc:"As a whole: the disk that operating systems are written to"`
	KeepDisks []inventory.DiskHint `json:"keepDisks,omitzero" doc:"All of them: they are never wiped and never chosen" maxItems:"32"`
}

// PlacePatch changes parts of a place.
type PlacePatch struct {
	Site *string `json:"site,omitempty"`
	Row  *string `json:"row,omitempty"`
	Rack *string `json:"rack,omitempty"`
	Unit *int    `json:"unit,omitempty" minimum:"0" maximum:"100"`

	Height *int            `json:"height,omitempty" doc:"How many units it fills; 0 is one" minimum:"0" maximum:"100"`
	Face   *inventory.Face `json:"face,omitempty" doc:"The side of the rack it is mounted on; empty fills the depth" enum:"front,rear,"`
}

// BMCLog is the event log of a controller, newest first.
type BMCLog struct {
	Items   []bmc.LogEntry `json:"items"`
	LeftOut []string       `json:"leftOut,omitempty" doc:"How many entries are not shown, and what could not be read"`
}

// BMCBoot is an override of the boot order, for the next boot unless IsPersistent.
type BMCBoot struct {
	Device       bmc.Device         `json:"device" enum:"none,pxe,http,disk,virtual-media,setup"`
	URI          string             `json:"uri,omitempty" doc:"For http, where the controller can set it" maxLength:"1024"`
	Mode         inventory.Firmware `json:"mode,omitempty" doc:"When empty, what is set stays" enum:"bios,uefi,"`
	IsPersistent bool               `json:"isPersistent,omitempty"`
}

// BMCMedia is what is in the virtual drive.
type BMCMedia struct {
	URL string `json:"url" doc:"http(s) address of an image; empty for none" maxLength:"1024"`
}

// BMCSensors are the readings of a controller.
type BMCSensors struct {
	Health  string       `json:"health,omitempty" doc:"As the controller sums it up: ok, warning or critical"`
	Items   []bmc.Sensor `json:"items"`
	LeftOut []string     `json:"leftOut,omitempty" doc:"What could not be read, and why"`
}

// FoundBMC is a controller that a scan found. All texts are the controller's own.
type FoundBMC struct {
	IP          string              `json:"ip"`
	Driver      inventory.BMCDriver `json:"driver"`
	Address     string              `json:"address" doc:"As a BMC's address is written"`
	Vendor      string              `json:"vendor,omitempty"`
	Product     string              `json:"product,omitempty"`
	Name        string              `json:"name,omitempty"`
	UUID        string              `json:"uuid,omitempty"`
	Version     string              `json:"version,omitempty" doc:"Of the protocol"`
	Fingerprint string              `json:"fingerprint,omitempty"`
	MAC         inventory.MAC       `json:"mac,omitempty"`
	Warning     string              `json:"warning,omitempty" doc:"What an admin should know about it"`
	Host        string              `json:"host,omitempty" doc:"Name of the host that is powered by it already"`
}

// HostBMC is how a host is powered. Passwords never come back, and neither do options that may hold one.
type HostBMC struct {
	Host string `json:"host" doc:"Name of the host" readOnly:"true"`
	inventory.BMC
}

// BMCCheck says whether a host's controller does what we need.
type BMCCheck struct {
	Host         string               `json:"host"`
	IsGood       bool                 `json:"isGood" doc:"All results are"`
	Power        inventory.PowerState `json:"power"`
	Capabilities []string             `json:"capabilities"`
	Results      []TargetCheckResult  `json:"results" doc:"In the order of the checks"`
}

// ConsoleLine is a line that a console said.
type ConsoleLine struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// ConsoleLog is what was recorded of a serial console. It is the machine's own text, escape codes and all.
type ConsoleLog struct {
	Text   string    `json:"text"`
	Begin  int64     `json:"begin" doc:"Offset of the text's first byte, counted from the first that was recorded; more than 0 when older text was dropped"`
	End    int64     `json:"end"`
	At     time.Time `json:"at,omitzero" doc:"When it last said something"`
	IsOpen bool      `json:"isOpen" doc:"The console is open now, so that it is recorded"`
	// Lines stand instead of the text where lines are asked for.
	Lines []ConsoleLine `json:"lines,omitempty" doc:"With lines: each line without escape codes, and with its time, to the second"`
}
