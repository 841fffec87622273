package operation

import (
	"fmt"
	"strings"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/proof"
)

// wiped takes the certificates of a wipe. The host is clean when they prove it, and is quarantined otherwise.
func (j agentStep) wiped(r wire.Report) (stop bool, err error) {
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
			hint: "slipway host inspect " + j.Host.Name + " --restart, then slipway host clean " + j.Host.Name,
		})
	}
	faults, isFinal := proof.Unclean(proof.Owed(*hw, j.keep()), j.P.Clean, j.keep(), r.Certificates)
	if len(faults) == 0 {
		return false, nil
	}
	return true, j.fail(failure{
		reason: joinFew(faults), isLasting: isFinal,
		hint: "replace the disk, or keep it out of the way, also one that was taken out: slipway host set " + j.Host.Name + " --keep-disk serial=SERIAL",
	})
}

// keepCertificates stores the certificates of a wipe, complete or not.
func (j agentStep) keepCertificates(r wire.Report) error {
	if len(r.Certificates) == 0 || j.op.Step != inventory.StepWipe {
		return nil
	}
	if len(r.Certificates) > hardware.MaxDisks {
		r.Certificates = r.Certificates[:hardware.MaxDisks]
	}
	for i := range r.Certificates {
		cleanCertificate(&r.Certificates[i])
	}
	if err := j.keepReport(inventory.ReportWipe, r.Certificates); err != nil {
		return err
	}
	return j.Tx.AddEvent(&inventory.Event{
		At: j.o.cfg.Now(), Kind: inventory.EventWiped, HostID: j.Host.ID, Detail: fmt.Sprintf("%d disks, %s", len(r.Certificates), j.P.Clean),
		Data: map[string]any{"operation": j.op.ID, "certificates": r.Certificates},
	})
}

// cleanCertificate makes what a machine wrote fit to store.
func cleanCertificate(c *inventory.WipeCertificate) {
	cleanDisk(&c.Disk)
	c.Method, c.StartedAt, c.Error = inventory.Clean(c.Method, 40), inventory.Clean(c.StartedAt, 40), inventory.Clean(c.Error, 300)
	c.Mode = inventory.CleanMode(inventory.Clean(string(c.Mode), 20))
}

func cleanDisk(d *inventory.Disk) {
	hw := inventory.Hardware{Disks: []inventory.Disk{*d}}
	hardware.Clean(&hw)
	*d = hw.Disks[0]
}

// written takes the result of a write; what it does not prove was not written.
func (j agentStep) written(r wire.Report) (stop bool, err error) {
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
	why := proof.Unwritten(proof.Written{Disk: w.Disk, Digest: w.Digest, IsSeeded: w.IsSeeded}, j.P.Digest, j.P.HasSeed, hw, j.keep())
	if why == "" && j.P.Manifest != "" {
		why = proof.Unchained(j.P.Manifest, w.Digest, chain)
	}
	if why != "" {
		return true, j.fail(failure{reason: why, hint: "if its disks were changed: slipway host inspect " + j.Host.Name})
	}
	return false, j.keepReport(inventory.ReportInstall, installed{Write: w, Image: j.P.Image, Profile: j.P.Profile, Revision: j.P.Revision, IsSilent: j.P.IsSilent})
}

// untested says what a burn-in lacks that is said to have passed.
func (j agentStep) untested(b *inventory.BurnIn) ([]string, error) {
	hw, err := j.knownHardware()
	if err != nil {
		return nil, err
	}
	if hw == nil {
		hw = &inventory.Hardware{}
	}
	return proof.Untested(*b, time.Duration(j.P.BurnInFor), j.o.cfg.Now().Sub(j.op.StepAt), *hw), nil
}

// isReplaced notes that another machine answers for the host, and ends the attempt for good: a person looks first.
func (j agentStep) isReplaced(why string) error {
	issue := replaced(&j.Host, why)
	if err := j.o.cfg.Ledger.OpenIssue(j.Tx, issue); err != nil {
		return err
	}
	return j.giveUp(failure{reason: issue.Cause, hint: issue.Hint, isLasting: true})
}

// sayMissing names disks that an earlier inspection had.
func sayMissing(disks []inventory.Disk) string {
	var names []string
	for _, d := range disks {
		names = append(names, proof.NameOf(d))
	}
	return strings.TrimSpace(fmt.Sprintf("%d disks of earlier inspections are gone: %s", len(disks), joinFew(names)))
}

func joinFew(words []string) string {
	text := ""
	for i, w := range words {
		if i == 3 {
			return text + fmt.Sprintf(" and %d more", len(words)-3)
		}
		if i > 0 {
			text += ", "
		}
		text += w
	}
	return text
}
