package serve

import (
	"slices"
	"strings"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web"
)

// ready says of each door whether it can do its work now. Whoever asks needs no login, so that reasons name no paths.
func (a *appliance) ready() []web.ReadyPart {
	var found []doctor.Interface
	for _, name := range a.cfg.Interfaces {
		found = append(found, doctor.ReadInterface(name))
	}
	return readiness(a.alarms.trouble(), doctor.DataDir(doctor.ReadDisk(a.cfg.DataDir)).Status == doctor.Failed, found)
}

// readiness judges what was found: why the store takes nothing, whether the disk is full, and the interfaces.
func readiness(store error, isFull bool, interfaces []doctor.Interface) []web.ReadyPart {
	stored, links := "", ""
	switch {
	case store != nil:
		stored = "the database cannot be written"
	case isFull:
		stored = "the disk of the data directory is full"
	}
	var off []string
	for _, i := range interfaces {
		switch {
		case !i.IsThere:
			off = append(off, "interface "+i.Name+" is missing")
		case !i.IsUp:
			off = append(off, "interface "+i.Name+" is down")
		}
	}
	if len(off) > 0 && len(off) == len(interfaces) {
		links = strings.Join(off, ", ")
	}
	dhcp := ""
	if stored != "" {
		dhcp = "leases cannot be stored, so no machine is given an address: " + stored
	}
	parts := []web.ReadyPart{
		{Name: "database", Reason: stored},
		{Name: "dhcp", Reason: strings.Join(slices.DeleteFunc([]string{dhcp, links}, func(s string) bool { return s == "" }), "; ")},
		{Name: "tftp", Reason: links},
		{Name: "boot", Reason: links},
		{Name: "admin"},
	}
	for i := range parts {
		parts[i].Reason = inventory.Clean(parts[i].Reason, causeAtMost)
		parts[i].IsReady = parts[i].Reason == ""
	}
	return parts
}
