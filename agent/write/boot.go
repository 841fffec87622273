package write

import (
	"context"
	"errors"
	"io"
	"slices"

	"slipway.dev/slipway/agent/disk"
	"slipway.dev/slipway/agent/disk/fat"
	"slipway.dev/slipway/agent/efi"
	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

func asError(err error) (*inventory.Error, bool) {
	var e *inventory.Error
	return e, errors.As(err, &e)
}

// bootEntry makes the firmware start the disk, and returns the name of the entry. It returns "" where there is
// nothing to do. A BIOS starts disks by their boot sector. Without a loader that we know, the firmware searches for
// one by itself.
func (w *Writer) bootEntry(ctx context.Context, t wire.WriteTask, root inventory.Disk, say func(string, wire.Progress)) (string, error) {
	if t.BootEntry == wire.KeepOrder || !w.cfg.EFI.Present() {
		return "", nil
	}
	// The disk itself is searched: the description of an image does not say which loader its distribution installed.
	want, err := w.loader(root.Name)
	if err != nil {
		return "", err
	}
	if want.File == "" {
		say("the image has no boot loader for UEFI: the boot order stays as it is", wire.Progress{})
		return "", nil
	}
	want.Mode, want.MAC = t.BootEntry, t.BootMAC
	known, err := w.partitions(ctx)
	if err != nil {
		return "", err
	}
	// Firmware has room for few entries, and each installation adds one. Those of partitions that no longer exist go.
	if known != nil { // else a disk could not be read, and its entries may be good
		// Forget comes before Install, so that a full variable store has room for the new entry.
		if _, err := w.cfg.EFI.Forget(func(id disk.GUID) bool { return !slices.Contains(known, id) }); err != nil {
			return "", err
		}
	}
	return w.cfg.EFI.Install(want)
}

// loader finds the boot loader on a disk: in the first EFI system partition that has one.
func (w *Writer) loader(name string) (efi.Want, error) {
	dev, err := w.cfg.Tree.Open(name, disk.Read)
	if err != nil {
		return efi.Want{}, err
	}
	defer dev.Close()
	table, err := disk.ReadTable(dev, dev.Bytes, dev.Sector)
	if err != nil || table == nil || !table.IsGPT {
		return efi.Want{}, err
	}
	for _, p := range table.Partitions {
		if p.Type != disk.TypeESP {
			continue
		}
		files, err := fat.List(io.NewSectionReader(dev, p.First*int64(dev.Sector), p.Sectors*int64(dev.Sector)))
		if err != nil {
			continue
		}
		// The first partition with a loader counts. A disk from another system may have an empty ESP in front of it.
		if path, system := efi.Loader(files); path != "" {
			return efi.Want{Partition: p, File: path, Description: system + " (Slipway)"}, nil
		}
	}
	return efi.Want{}, nil
}

// partitions lists the GPT partitions of all disks. It returns nil when it cannot read one of them: unknown must not
// become "gone".
func (w *Writer) partitions(ctx context.Context) ([]disk.GUID, error) {
	disks, err := w.cfg.Disks(ctx)
	if err != nil {
		return nil, err
	}
	ids := []disk.GUID{} // not nil: an empty list is known to be complete
	for _, d := range disks {
		dev, err := w.cfg.Tree.Open(d.Name, disk.Read)
		if err != nil {
			return nil, nil //nolint:nilerr // said by nil
		}
		table, err := disk.ReadTable(dev, dev.Bytes, dev.Sector)
		// Not deferred: a server may have dozens of disks, and this loop opens them all.
		dev.Close()
		if err != nil {
			return nil, nil //nolint:nilerr // said by nil
		}
		if table != nil {
			for _, p := range table.Partitions {
				ids = append(ids, p.ID)
			}
		}
	}
	return ids, nil
}
