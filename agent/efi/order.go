package efi

import (
	"slices"

	"slipway.dev/slipway/agent/disk"
	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

// Want is what the boot order should become.
type Want struct {
	Mode        string // wire.DiskFirst when empty
	MAC         inventory.MAC
	Partition   disk.Partition // the EFI system partition of the system
	File        string         // \EFI\BOOT\BOOTX64.EFI
	Description string
}

// Install creates the entry that starts a system, unless the firmware has it already, and puts it into its place in
// the boot order. It returns the entry's name, such as Boot0004. Calling it again changes nothing.
//
// The entry comes first and the order second: an order that names a missing entry confuses some firmware.
func (v Vars) Install(w Want) (string, error) {
	b, err := v.Read()
	if err != nil {
		return "", err
	}
	e, isNew := b.find(w)
	if isNew {
		if err := v.write(e.ID(), e.encode()); err != nil {
			return "", err
		}
	}
	return e.ID(), v.setOrder(b.order(e.Number, w))
}

// find returns the entry that starts the same file of the same partition, or a new one with the lowest free number.
func (b Boot) find(w Want) (e Entry, isNew bool) {
	want := Entry{Attributes: isActiveFlag, Description: w.Description, Path: []Node{hardDrive(w.Partition), file(w.File)}}
	taken := make(map[uint16]bool)
	for _, e := range b.Entries {
		taken[e.Number] = true
		// The path decides and not the description, which firmware and people change.
		if string(encodePath(e.Path)) == string(encodePath(want.Path)) && e.IsActive() {
			return e, false
		}
	}
	for _, n := range b.Order { // an entry that cannot be read has its number still
		taken[n] = true
	}
	for taken[want.Number] {
		want.Number++
	}
	return want, true
}

// order returns the new boot order: the system first, or behind the network. Of the network entries, that of the
// wanted port comes first. All others keep their order.
func (b Boot) order(system uint16, w Want) []uint16 {
	var port, network, rest []uint16
	for _, n := range b.Order {
		i := slices.IndexFunc(b.Entries, func(e Entry) bool { return e.Number == n })
		switch {
		case n == system:
		case i >= 0 && w.Mode == wire.NetworkFirst && b.Entries[i].IsNetwork():
			if mac, ok := b.Entries[i].MAC(); ok && mac == w.MAC {
				port = append(port, n)
			} else {
				network = append(network, n)
			}
		default:
			rest = append(rest, n)
		}
	}
	return slices.Concat(port, network, []uint16{system}, rest)
}

// Forget removes the entries that start from a GPT partition for which isGone returns true, and returns their names.
// After an error it returns those that it has removed.
func (v Vars) Forget(isGone func(partition disk.GUID) bool) ([]string, error) {
	b, err := v.Read()
	if err != nil {
		return nil, err
	}
	var names []string
	order := b.Order
	for _, e := range b.Entries {
		id, ok := e.Partition()
		if !ok || !isGone(id) {
			continue
		}
		// The order first: an order that names what is gone confuses some firmware more than an unused entry.
		order = slices.DeleteFunc(slices.Clone(order), func(n uint16) bool { return n == e.Number })
		if err := v.setOrder(order); err != nil {
			return names, err
		}
		if err := v.remove(e.ID()); err != nil {
			return names, err
		}
		names = append(names, e.ID())
	}
	return names, nil
}
