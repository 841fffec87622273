package backup

import (
	"time"

	"slipway.dev/slipway/inventory"
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
