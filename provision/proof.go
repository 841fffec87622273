package provision

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/proof"
	"slipway.dev/slipway/pxe"
)

// knownHardware is the newest inspection of the job's host; nil when it was never inspected.
func (j *job) knownHardware() (*inventory.Hardware, error) {
	last, err := j.tx.FindInspection(j.host.ID, 0)
	if inventory.IsKind(err, inventory.NotFound) || err == nil && last.Hardware.Source == sourceReplaced {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read inspection of %s: %w", j.host.Name, err)
	}
	return &last.Hardware, nil
}

// wiped takes the certificates of a wipe. The host is clean when they prove it, and is quarantined otherwise.
func (j *job) wiped(r wire.Report) (stop bool, err error) {
	if len(r.Certificates) > hardware.MaxDisks {
		return true, j.fail(failure{reason: fmt.Sprintf("the agent reports certificates of more than %d disks", hardware.MaxDisks), isLasting: true})
	}
	if err := j.keepCertificates(r); err != nil {
		return true, err
	}
	hw, err := j.knownHardware()
	if err != nil {
		return true, err
	}
	if hw == nil {
		return true, j.fail(failure{
			reason: "nobody knows which disks the host has, so nothing proves that all of them are wiped: it was never inspected", isLasting: true,
			hint: "slipway host inspect " + j.host.Name + " --restart, then slipway host clean " + j.host.Name,
		})
	}
	faults, isFinal := proof.Unclean(proof.Owed(*hw, j.keep()), j.p.Clean, j.keep(), r.Certificates)
	if len(faults) == 0 {
		return false, nil
	}
	return true, j.fail(failure{
		reason: joinFew(faults), isLasting: isFinal,
		hint: "replace the disk, or keep it out of the way, also one that was taken out: slipway host set " + j.host.Name + " --keep-disk serial=SERIAL",
	})
}

// written takes the result of a write; what it does not prove was not written.
func (j *job) written(r wire.Report) (stop bool, err error) {
	if r.Write == nil || !r.Write.IsWritten {
		return true, j.fail(failure{reason: "the agent says done, and not that the image is written"})
	}
	hw, err := j.knownHardware()
	if err != nil {
		return true, err
	}
	w := *r.Write
	cleanDisk(&w.Disk)
	w.Digest, w.BootEntry = inventory.Clean(w.Digest, 100), inventory.Clean(w.BootEntry, 40)
	chain := w.Chain
	w.Chain = nil // it proves the digest, and is not kept
	why := proof.Unwritten(proof.Written{Disk: w.Disk, Digest: w.Digest, IsSeeded: w.IsSeeded}, j.p.Digest, j.p.HasSeed, hw, j.keep())
	if why == "" && j.p.Manifest != "" {
		why = proof.Unchained(j.p.Manifest, w.Digest, chain)
	}
	if why != "" {
		return true, j.fail(failure{reason: why, hint: "if its disks were changed: slipway host inspect " + j.host.Name})
	}
	return false, j.keepReport(inventory.ReportInstall, installed{Write: w, Image: j.p.Image, Profile: j.p.Profile, Revision: j.p.Revision, IsSilent: j.p.IsSilent})
}

// untested says what a burn-in lacks that is said to have passed.
func (j *job) untested(b *inventory.BurnIn) ([]string, error) {
	hw, err := j.knownHardware()
	if err != nil {
		return nil, err
	}
	if hw == nil {
		hw = &inventory.Hardware{}
	}
	return proof.Untested(*b, time.Duration(j.p.BurnInFor), j.e.cfg.Now().Sub(j.op.StepAt), *hw), nil
}

// otherMachine says why the machine in a boot is not the one that was inspected, "" when it is: what our agent said of
// itself when it started must agree with the newest inspection.
func (j *job) otherMachine(s *inventory.BootSession) (string, error) {
	hw, err := j.knownHardware()
	if err != nil || hw == nil || hw.System.UUID == "" {
		return "", err
	}
	return proof.OtherMachine(inventory.System{UUID: hw.System.UUID}, inventory.System{UUID: s.MachineUUID}), nil
}

// isReplaced notes that another machine answers for the host, and ends the attempt for good: a person looks first.
func (j *job) isReplaced(why string) error {
	issue := replaced(&j.host, why)
	if err := j.e.ledger.OpenIssue(j.tx, issue); err != nil {
		return err
	}
	return j.giveUp(failure{reason: issue.Cause, hint: issue.Hint, isLasting: true})
}

// takesReport reports whether what a boot was decided as may tell of a step, and says why not.
func takesReport(tx inventory.Tx, h *inventory.Host, s *inventory.BootSession, step pxe.ReportStep) error {
	if step == pxe.ReportProgress || step == pxe.ReportDisk {
		return nil
	}
	boot := pxe.Boot(s.Boot)
	if boot == pxe.BootImage && step == pxe.ReportInstalled {
		if i, err := tx.FindImage(s.Image); err == nil && !i.IsInstaller {
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

// sayMissing names disks that an earlier inspection had.
func sayMissing(disks []inventory.Disk) string {
	var names []string
	for _, d := range disks {
		names = append(names, proof.NameOf(d))
	}
	return strings.TrimSpace(fmt.Sprintf("%d disks of earlier inspections are gone: %s", len(disks), joinFew(names)))
}
