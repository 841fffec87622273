package instance

import (
	"cmp"
	"context"
	"fmt"

	"slipway.dev/slipway/inventory"
)

// siteKey is the row with the name of the site.
const siteKey = "site"

// DefaultSite is what a site without a name is called.
const DefaultSite = "default"

// Site returns the name of the site of a database.
func Site(tx inventory.Tx) (string, error) {
	is, err := tx.FindSiteKey(siteKey)
	if inventory.IsKind(err, inventory.NotFound) {
		return DefaultSite, nil
	}
	return is.Public, err
}

// CheckSite refuses an instance of another site than that of the database: the same machine would have two provider ids, one by each
// instance. An admin may rename a site while no other instance runs and no machine has a host.
func CheckSite(ctx context.Context, store inventory.Store, dataDir, site string) error {
	id, err := readID(dataDir)
	if err != nil {
		return err
	}
	site = cmp.Or(site, DefaultSite)
	return store.Write(ctx, func(tx inventory.Tx) error {
		now, err := tx.DatabaseTime()
		if err != nil {
			return err
		}
		is, err := tx.FindSiteKey(siteKey)
		switch {
		case err == nil && is.Public == site:
			return nil
		case err == nil:
			if err := mayRename(tx, id, is.Public, site); err != nil {
				return err
			}
		case !inventory.IsKind(err, inventory.NotFound):
			return err
		}
		return tx.SaveSiteKey(inventory.SiteKey{Name: siteKey, Public: site, SinceAt: now})
	})
}

// mayRename refuses another name for the site while somebody goes by the old one.
func mayRename(tx inventory.Tx, id, from, to string) error {
	refused := func(why string) error {
		return inventory.Errorf(inventory.Conflict, "the database is of site %s, and this instance of site %s: %s", from, to, why).
			WithHint("write site: %s into its configuration; or is this the database of another site? "+
				"slipway instance delete forgets an instance that is gone", from)
	}
	all, err := tx.ListInstances()
	if err != nil {
		return err
	}
	for _, i := range all {
		if i.ID != id && i.Run != "" { // it runs, or was killed
			return refused(fmt.Sprintf("instance %s uses it as well", i.Name))
		}
	}
	machines, err := tx.ListMachines(inventory.MachineFilter{}, inventory.Page{})
	if err != nil {
		return err
	}
	n := 0
	for _, m := range machines {
		if m.HostID != "" {
			n++
		}
	}
	if n > 0 {
		return refused(fmt.Sprintf("%d machines have hosts, and their provider ids begin with slipway://%s", n, from))
	}
	return nil
}
