package boot

import (
	"context"
	"net/netip"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/pxe"
)

// Files says which files of an image a boot may fetch.
type Files struct {
	store     inventory.Store
	admission *delivery.Admission
}

// imageOf returns the boot that a request under its URL belongs to, with its image.
func (f *Files) imageOf(tx inventory.Tx, id inventory.SessionID, source netip.Addr) (s inventory.BootSession, i inventory.Image, err error) {
	if s, err = f.admission.Admitted(tx, id, source, "", "artefact"); err != nil {
		return s, i, err
	}
	// A machine that was sent to its disk, or that waits, has no business with the files of an image.
	if s.Boot != string(pxe.BootImage) && s.Boot != string(pxe.BootAgent) {
		return s, i, inventory.Errorf(inventory.Forbidden, "this boot was decided as %s: %s", s.Boot, s.Reason).Naming(s.Refs...)
	}
	i, err = tx.Images().Find(s.Image)
	return s, i, err
}

// Artefact returns the digest of what a machine fetches as d/name in that session; its decision must be an image that has
// it. A name of the image comes before the digest. Some installers (kiwi's) make up the addresses of other files by
// changing the name at the end of its URL.
func (f *Files) Artefact(ctx context.Context, id inventory.SessionID, source netip.Addr, d inventory.Digest, name string) (inventory.Digest, error) {
	err := f.store.Read(ctx, func(tx inventory.Tx) error {
		s, i, err := f.imageOf(tx, id, source)
		if err != nil {
			return err
		}
		// Our agent also fetches the disk image that it writes, which is no file of its own image.
		if s.Boot == string(pxe.BootAgent) && !slices.ContainsFunc(i.Files, func(f inventory.ImageArtefact) bool { return f.Digest == d }) {
			return mayWrite(tx, s, d)
		}
		if !slices.ContainsFunc(i.Files, func(f inventory.ImageArtefact) bool { return f.Digest == d }) {
			return inventory.Errorf(inventory.Forbidden, "image %s has no artefact %s", i.Name, d).
				WithHint("the image changed during the boot: boot the machine again")
		}
		for _, f := range i.Files {
			if f.Name == name {
				d = f.Digest
			}
		}
		return nil
	})
	return d, err
}

// mayWrite lets an agent fetch the disk image that it was told to write.
func mayWrite(tx inventory.Tx, s inventory.BootSession, d inventory.Digest) error {
	op, err := tx.FindOpenOperation(s.HostID)
	if err != nil {
		return inventory.Errorf(inventory.Forbidden, "nothing is being installed on this host")
	}
	// The image of the operation, and not of the profile: an admin may have changed that since the installation began.
	i, err := tx.Images().Find(operation.ParamsOf(&op).Image)
	if err != nil {
		return err
	}
	// Only during the step that writes. Before and after it the agent needs no disk image.
	if f, ok := i.DiskFile(); !ok || f.Digest != d || op.Step != inventory.StepWrite {
		return inventory.Errorf(inventory.Forbidden, "image %s has no artefact %s", i.Name, d).WithHint("the image changed during the boot: boot the machine again")
	}
	return nil
}

// Initrds returns the RAM disks of a boot in order, and whether its configuration follows them as one more.
func (f *Files) Initrds(ctx context.Context, id inventory.SessionID, source netip.Addr) (files []inventory.ImageArtefact, hasConfig bool, err error) {
	err = f.store.Read(ctx, func(tx inventory.Tx) error {
		s, i, err := f.imageOf(tx, id, source)
		if err != nil {
			return err
		}
		for _, f := range i.Files {
			if f.Role == inventory.RoleInitrd {
				files = append(files, f)
			}
		}
		hasConfig = s.Boot == string(pxe.BootImage) && len(i.Configs) > 0 && i.Configs[0].InitrdPath != "" && s.Config != ""
		return nil
	})
	return files, hasConfig, err
}
