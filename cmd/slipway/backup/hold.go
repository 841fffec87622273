package backup

import (
	"maps"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/inventory/sqlstore/moving"
)

// hold puts hosts into maintenance with which something would go on by itself: nobody knows here what became of them after
// the backup was made. A host that was free then may run somebody's system now. It returns how many.
func hold(tx inventory.Tx, madeAt, now time.Time) (n int, err error) {
	hosts, err := tx.ListHosts(inventory.HostFilter{}, inventory.Page{})
	if err != nil {
		return 0, err
	}
	for i := range hosts {
		h := &hosts[i]
		is, err := isLoose(tx, h)
		if err != nil {
			return n, err
		}
		if !is {
			continue
		}
		// The state stays as it was in the backup. A person who ends the maintenance decides what the host really is.
		h.InMaintenance = true
		if err := tx.UpdateHost(h, now); err != nil {
			return n, err
		}
		if err := tx.AddEvent(&inventory.Event{
			At: now, Kind: inventory.EventHostChanged, HostID: h.ID,
			Detail: "maintenance switched on: the database is from a backup of " + madeAt.UTC().Format(time.RFC3339) + ", and what became of the host since is not known",
		}); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// isLoose reports whether something may be done with a host without anybody asking for it again: it can be claimed, is being
// worked on, or is armed. A host that runs boots its own disk, and one that nobody accepted is left alone anyway.
func isLoose(tx inventory.Tx, h *inventory.Host) (bool, error) {
	if h.InMaintenance || h.IsAdopted || h.State == inventory.Discovered {
		return false, nil
	}
	if h.State != inventory.Active || h.IsArmed {
		return true, nil
	}
	_, err := tx.FindOpenOperation(h.ID)
	if e, ok := err.(*inventory.Error); ok && e.Kind == inventory.NotFound {
		return false, nil
	}
	return err == nil, err
}

// epochStep is by how much a restore raises the epochs of duties. Since the backup was made they may have grown by less, even if nobody can
// read by how much.
const epochStep = 1000

// epochs are those of the duties in the database that the backup replaces, as far as it can be read.
func epochs(server moving.Database) map[string]int64 {
	all := map[string]int64{}
	if server.URL == "" { // in a file of SQLite nobody compares epochs
		return all
	}
	// A database that is empty, or older than this version, tells none. The step has to do then.
	_ = sqlstore.Peek(server.URL, server.Password, func(tx inventory.Tx) error {
		duties, err := tx.ListDuties()
		for _, d := range duties {
			all[d.Name] = d.Epoch
		}
		return err
	})
	return all
}

// free takes all duties from the instances in a backup, raises their epochs above those before the restore, marks the instances as stopped,
// and ends the invitations of new instances. An instance that was cut off during the restore still runs, with an epoch of before. If the same
// epoch came back with the backup, that instance could write again. Now it finds that another epoch counts, and ends.
func free(tx inventory.Tx, before map[string]int64, now time.Time) error {
	instances, err := tx.ListInstances()
	if err != nil {
		return err
	}
	names := map[string]string{}
	for _, i := range instances {
		names[i.ID] = i.Name
		i.Run, i.CutOff, i.CutOffAt = "", "", time.Time{}
		if err := tx.SaveInstance(i); err != nil {
			return err
		}
	}
	// In a backup, a code may be good that a machine has used since.
	if err := tx.DeleteSiteKey("invitations"); err != nil && !inventory.IsKind(err, inventory.NotFound) {
		return err
	}
	duties, err := tx.ListDuties()
	if err != nil {
		return err
	}
	for _, d := range duties {
		before[d.Name] = max(before[d.Name], d.Epoch)
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		d, err := tx.FindDuty(name)
		if err != nil && !inventory.IsKind(err, inventory.NotFound) {
			return err
		}
		if d.Holder != "" {
			d.Former = names[d.Holder]
		}
		d.Name, d.Holder, d.Epoch, d.SinceAt, d.Reason = name, "", before[name]+epochStep, now, "the database was restored from a backup"
		if err := tx.SaveDuty(d); err != nil {
			return err
		}
	}
	return nil
}
