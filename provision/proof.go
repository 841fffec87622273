package provision

import (
	"cmp"
	"fmt"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/pxe"
)

// takesReport reports whether what a boot was decided as may tell of a step, and says why not.
func takesReport(tx inventory.Tx, h *inventory.Host, s *inventory.BootSession, step pxe.ReportStep) error {
	if step == pxe.ReportProgress || step == pxe.ReportDisk {
		return nil
	}
	boot := pxe.Boot(s.Boot)
	if boot == pxe.BootImage && step == pxe.ReportInstalled {
		if i, err := tx.Images().Find(s.Image); err == nil && !i.IsInstaller {
			return inventory.Errorf(inventory.Forbidden, "image %s is no installer: this boot has no order to install", i.Name)
		}
	}
	isOfAgent := boot == pxe.BootAgent && s.Operation != "" && step != pxe.ReportInstalled // what our agent wrote reports in its boot
	if boot != pxe.BootImage && !isOfAgent {
		return inventory.Errorf(inventory.Forbidden, "this boot was decided as %s, and cannot report %s", cmp.Or(s.Boot, "nothing yet"), step)
	}
	old := inventory.Errorf(inventory.Forbidden, "this boot is older than what %s does now, and cannot report %s", h.Name, step)
	if s.Operation != "" {
		op, err := tx.FindOperation(s.Operation)
		if err != nil {
			return ledger.IgnoreNotFound(err)
		}
		if op.ClaimID != h.ClaimID || isOfAgent && op.Kind != inventory.OpInstall && op.Kind != inventory.OpReinstall {
			return old
		}
		if isOfAgent && op.IsOpen() && !ledger.IsAfterAgent(&op) {
			return inventory.Errorf(inventory.Forbidden, "our agent has not written the system yet, so none can report %s", step)
		}
		return nil
	}
	if h.ClaimID != "" {
		c, err := tx.FindClaim(h.ClaimID)
		if err != nil {
			return fmt.Errorf("read claim of %s: %w", h.Name, err)
		}
		if s.StartedAt.Before(c.CreatedAt) {
			return old
		}
	}
	latest, err := tx.ListSessions(h.ID, inventory.Page{Limit: bootsLooked})
	if err != nil {
		return fmt.Errorf("read boots of %s: %w", h.Name, err)
	}
	for _, o := range latest {
		if o.ID != s.ID && o.Boot == string(pxe.BootImage) && o.Proof != inventory.ProofNone && o.StartedAt.After(s.StartedAt) {
			return old
		}
	}
	return nil
}
