package serve

import (
	"context"
	"strings"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

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
