package ipmi

import (
	"context"
	"fmt"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// Parameters of the boot options (IPMI 2.0, table 28-14).
const (
	paramValidClear = 3
	paramAck        = 4
	paramFlags      = 5

	codeNoParam = 0x80 // completion code of Get and Set System Boot Options: the parameter is not supported

	flagValid      = 0x80
	flagPersistent = 0x40
	flagUEFI       = 0x20
	deviceMask     = 0x3c
)

// devices are the boot devices in the second byte of the flags.
var devices = map[bmc.Device]byte{bmc.None: 0x00, bmc.PXE: 0x04, bmc.Disk: 0x08, bmc.Virtual: 0x14, bmc.Setup: 0x18}

// deviceNames is how other spellings are read back: disk in safe mode, remote CD, remote disk.
var deviceNames = map[byte]bmc.Device{
	0x00: bmc.None, 0x04: bmc.PXE, 0x08: bmc.Disk, 0x0c: bmc.Disk, 0x14: bmc.Virtual, 0x18: bmc.Setup, 0x20: bmc.Virtual, 0x2c: bmc.Disk,
}

// flags reads the boot flags: two bytes that matter, of five.
func (d *driver) flags(ctx context.Context) ([2]byte, error) {
	const doing = "read the boot device"
	got, err := d.do(ctx, doing, netChassis, cmdGetBoot, paramFlags, 0, 0)
	if err != nil {
		return [2]byte{}, err
	}
	if len(got) < 4 || got[1]&0x7f != paramFlags {
		return [2]byte{}, d.short(doing)
	}
	return [2]byte(got[2:4]), nil
}

// Boot implements bmc.Booter.
func (d *driver) Boot(ctx context.Context) (bmc.Boot, error) {
	f, err := d.flags(ctx)
	if codeOf(err) == codeNoParam {
		return bmc.Boot{Device: bmc.None}, nil // some have no flags until they are set for the first time
	}
	if err != nil {
		return bmc.Boot{}, err
	}
	if f[0]&flagValid == 0 && !d.quirks(ctx).hidesValidBit {
		return bmc.Boot{Device: bmc.None}, nil
	}
	b := bmc.Boot{Device: bmc.None, Mode: inventory.BIOS, IsPersistent: f[0]&flagPersistent != 0}
	if f[0]&flagUEFI != 0 {
		b.Mode = inventory.UEFI
	}
	if name, ok := deviceNames[f[1]&deviceMask]; ok {
		b.Device = name
	}
	// A device that is none of ours, such as a floppy, shows as no override.
	if b.Device == bmc.None {
		return bmc.Boot{Device: bmc.None}, nil
	}
	return b, nil
}

// SetBoot implements bmc.Booter, and reads back what it set. The override counts for the next boot only, unless it is
// persistent. A nil error means that the controller keeps it, not that the firmware will obey.
func (d *driver) SetBoot(ctx context.Context, b bmc.Boot) error {
	device, ok := devices[b.Device]
	if !ok {
		return inventory.Errorf(inventory.Invalid, "IPMI cannot boot from %s", inventory.Clean(string(b.Device), 20)).
			WithHint("use pxe: a machine that speaks UEFI HTTP Boot is offered it by DHCP, too")
	}
	f := [2]byte{flagValid, device}
	if b.IsPersistent {
		f[0] |= flagPersistent
	}
	isUEFI, err := d.wantsUEFI(ctx, b.Mode)
	if err != nil {
		return err
	}
	if isUEFI {
		f[0] |= flagUEFI
	}
	if b.Device == bmc.None {
		f = [2]byte{} // an override without its valid bit is none; see the quirk none-is-an-override
	}
	// Quirk boot-flags-expire: keep the flags when no order follows within 60 s. Optional, so that its refusal is no error,
	// as for the acknowledgement, which marks the flags as not yet read by the firmware.
	for _, p := range [][]byte{{paramValidClear, 0x08}, {paramAck, 0x01, 0x01}} {
		if _, err := d.do(ctx, "set the boot device", netChassis, cmdSetBoot, p...); err != nil && codeOf(err) == 0 {
			return err
		}
	}
	if _, err := d.do(ctx, "set the boot device", netChassis, cmdSetBoot, paramFlags, f[0], f[1], 0, 0, 0); err != nil {
		return err
	}
	return d.confirmBoot(ctx, b.Device, f)
}

// wantsUEFI decides on the UEFI bit: the mode that the caller names, else the vendor's quirk, else the present bit.
func (d *driver) wantsUEFI(ctx context.Context, m inventory.Firmware) (bool, error) {
	switch m {
	case inventory.UEFI, inventory.UEFIHTTP:
		return true, nil
	case inventory.BIOS:
		return false, nil
	}
	if d.quirks(ctx).needsUEFIBit {
		return true, nil
	}
	now, err := d.flags(ctx)
	if err != nil && codeOf(err) == 0 {
		return false, err
	}
	return now[0]&flagUEFI != 0, nil
}

// confirmBoot reads the flags back. Only a controller that cannot return them is believed without that. A busy one is
// not.
func (d *driver) confirmBoot(ctx context.Context, want bmc.Device, f [2]byte) error {
	got, err := d.flags(ctx)
	if err != nil {
		if c := codeOf(err); c == codeNoParam || c == codeUnknown || c == codeUnknownHere {
			return nil
		}
		return err
	}
	if got[1]&deviceMask == f[1]&deviceMask || f[0]&flagValid == 0 && got[0]&flagValid == 0 {
		return nil
	}
	return &inventory.Error{
		Kind: inventory.Unavailable, Msg: fmt.Sprintf("the IPMI controller at %s took the order to boot from %s, but did not keep it", d.address, want),
		Hint: "some controllers take it only while the machine is off, or need a reset of their own",
	}
}
