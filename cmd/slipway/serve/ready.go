package serve

import (
	"context"
	"slices"
	"strings"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/cmd/slipway/serve/trouble"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/web"
)

// ready reports for each part whether it can do its work now. Anyone can ask without a login, so that reasons name no
// paths.
func (a *appliance) ready() []web.ReadyPart {
	var found []doctor.Interface
	for _, name := range a.cfg.Interfaces {
		found = append(found, doctor.ReadInterface(name))
	}
	// Load balancers ask every few seconds. Nothing here writes, and the state of the store is the one that keepAlarms found
	// last.
	return readiness(a.alarms.Trouble(), doctor.DataDir(doctor.ReadDisk(a.cfg.DataDir)).Status == doctor.Failed, found)
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
	// One interface of several that is down does not take the server out of a load balancer: the others still boot.
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
		// TFTP and HTTP serve files from memory and disk. They go on while the database takes no writes.
		{Name: "tftp", Reason: links},
		{Name: "boot", Reason: links},
		{Name: "admin"},
	}
	for i := range parts {
		parts[i].Reason = inventory.Clean(parts[i].Reason, trouble.CauseAtMost)
		parts[i].IsReady = parts[i].Reason == ""
	}
	return parts
}

// checkSecureBoot counts the hosts whose firmware does not trust the loaders here, or will not trust the next ones.
func (a *appliance) checkSecureBoot(ctx context.Context) []Check {
	var hosts []doctor.SecureHost
	err := a.store.Read(ctx, func(tx inventory.Tx) error {
		all, err := tx.ListHosts(inventory.HostFilter{}, inventory.Page{})
		for _, h := range all {
			if h.Facts[inventory.FactSecureBoot] != pxe.SecureBootOn || h.State == inventory.Discovered {
				continue
			}
			s := doctor.SecureHost{Name: h.Name}
			if db := h.Facts[inventory.FactSecureBootDB]; db != "" {
				s.DB = strings.Split(db, "; ")
			}
			hosts = append(hosts, s)
		}
		return err
	})
	if err != nil {
		return []Check{{Name: "Secure Boot", Status: failed, Detail: "hosts cannot be read: " + err.Error()}}
	}
	loaders := map[string][]pxe.Signer{}
	for _, name := range pxe.SignedFirst() {
		if signers := a.loaders.Signers(name); len(signers) > 0 {
			loaders[name] = signers
		}
	}
	return doctor.JudgeSecureBoot(hosts, loaders)
}
