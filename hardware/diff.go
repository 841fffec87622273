package hardware

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/inventory"
)

// changeLimit bounds the changes between two inspections: a machine whose board was swapped has changed altogether.
const changeLimit = 256

// The kinds of a HardwareChange.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed"
)

// diff collects changes. isPartial says that the two looks come from different sources: what only one of them knows is
// no change.
type diff struct {
	changes   []inventory.HardwareChange
	isPartial bool
}

// Diff returns what an admin cares about of the differences between two inspections of a host, in a fixed order. The print
// on a part identifies it: the WWN or serial number of a disk, the MAC of a port. A module is identified by its
// slot. It leaves out what changes by itself: boot order, addresses, clock rates, contents of disks, and an LLDP neighbour
// that is merely absent.
func Diff(old, now inventory.Hardware) []inventory.HardwareChange {
	d := &diff{isPartial: old.Source != now.Source && old.Source != "" && now.Source != ""}
	d.system(&old, &now)
	d.dimms(old.DIMMs, now.DIMMs)
	d.disks(old.Disks, now.Disks)
	d.ports(old.Ports, now.Ports)
	d.accelerators(old.Accelerators, now.Accelerators)
	d.bmc(old.BMC, now.BMC)
	if n := len(d.changes) - changeLimit; n > 0 {
		d.changes = append(d.changes[:changeLimit:changeLimit],
			inventory.HardwareChange{Kind: Changed, What: fmt.Sprintf("and %d changes more", n)})
	}
	return d.changes
}

// value notes that one property differs.
func (d *diff) value(what, old, now string) {
	old, now = inventory.Clean(old, textLimit), inventory.Clean(now, textLimit)
	if old == now || d.isPartial && (old == "" || now == "") {
		return
	}
	d.changes = append(d.changes, inventory.HardwareChange{Kind: Changed, What: inventory.Clean(what, textLimit), Old: old, New: now})
}

func (d *diff) number(what string, old, now int64, write func(int64) string) {
	text := func(n int64) string {
		if n == 0 {
			return ""
		}
		return write(n)
	}
	if old != now {
		d.value(what, text(old), text(now))
	}
}

func plain(n int64) string { return strconv.FormatInt(n, 10) }

func (d *diff) system(old, now *inventory.Hardware) {
	a, b := old.System, now.System
	d.value("system manufacturer", a.Manufacturer, b.Manufacturer)
	d.value("system product", a.Product, b.Product)
	d.value("system serial", a.Serial, b.Serial)
	d.value("system uuid", strings.ToLower(a.UUID), strings.ToLower(b.UUID))
	d.value("system asset tag", a.AssetTag, b.AssetTag)
	d.value("board", a.BoardProduct, b.BoardProduct)
	d.value("board serial", a.BoardSerial, b.BoardSerial)
	d.value("firmware kind", string(old.Firmware.Kind), string(now.Firmware.Kind))
	d.value("firmware vendor", old.Firmware.Vendor, now.Firmware.Vendor)
	d.value("firmware version", old.Firmware.Version, now.Firmware.Version)
	if !d.isPartial { // a BMC does not always tell
		d.value("secure boot", onOff(old.Firmware.IsSecureBoot), onOff(now.Firmware.IsSecureBoot))
	}
	c, e := old.CPU, now.CPU
	d.value("cpu architecture", string(c.Arch), string(e.Arch))
	d.value("cpu model", c.Model, e.Model)
	d.number("cpu sockets", int64(c.Sockets), int64(e.Sockets), plain)
	d.number("cpu cores", int64(c.Cores), int64(e.Cores), plain)
	d.number("cpu threads", int64(c.Threads), int64(e.Threads), plain)
	d.value("cpu microcode", c.Microcode, e.Microcode)
	// A kernel keeps some memory for itself, and another one a little more: below 2 % nothing was pulled.
	if m, n := old.MemoryBytes, now.MemoryBytes; max(m, n)-min(m, n) > max(m, n)/50 {
		d.number("memory", m, n, Bytes)
	}
	d.value("tpm", tpm(old.TPM), tpm(now.TPM))
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

func tpm(t *inventory.TPM) string {
	if t == nil {
		return ""
	}
	return strings.TrimSpace(t.Version + " " + t.Vendor)
}

func (d *diff) bmc(old, now *inventory.BMCFacts) {
	var none inventory.BMCFacts
	switch {
	case old == nil && now == nil:
		return
	case old == nil:
		old = &none
	case now == nil:
		now = &none
	}
	d.value("bmc address", old.Address, now.Address)
	d.value("bmc mac", string(old.MAC), string(now.MAC))
	d.value("bmc firmware", old.Firmware, now.Firmware)
}

// part tells how the members of a list are recognised, named and compared.
type part[T any] struct {
	keys    []func(T) string // the best first; "" is no key
	name    func(T) string   // "disk S4XY (sdb)"
	about   func(T) string   // what is lost or gained
	compare func(d *diff, what string, old, now T)
}

// list notes what came, went and changed of a list. Two members that have the same key are taken in order.
func list[T any](d *diff, p part[T], old, now []T) {
	if d.isPartial && (len(old) == 0 || len(now) == 0) {
		return
	}
	pairs, taken := make([]int, len(old)), make([]bool, len(now))
	for i := range pairs {
		pairs[i] = -1
	}
	nameless := func(v T) string { // has nothing to be known by: taken in order
		for _, key := range p.keys {
			if key(v) != "" {
				return ""
			}
		}
		return "nameless"
	}
	for _, key := range append(slices.Clone(p.keys), nameless) {
		byKey := map[string][]int{}
		for j, n := range now {
			if k := key(n); k != "" && !taken[j] {
				byKey[k] = append(byKey[k], j)
			}
		}
		for i, o := range old {
			if free := byKey[key(o)]; pairs[i] < 0 && len(free) > 0 {
				pairs[i], taken[free[0]] = free[0], true
				byKey[key(o)] = free[1:]
			}
		}
	}
	own := diff{isPartial: d.isPartial}
	for i, o := range old {
		if pairs[i] < 0 {
			own.changes = append(own.changes, inventory.HardwareChange{Kind: Removed, What: inventory.Clean(p.name(o), textLimit), Old: inventory.Clean(p.about(o), textLimit)})
		} else {
			p.compare(&own, p.name(now[pairs[i]]), o, now[pairs[i]])
		}
	}
	for j, n := range now {
		if !taken[j] {
			own.changes = append(own.changes, inventory.HardwareChange{Kind: Added, What: inventory.Clean(p.name(n), textLimit), New: inventory.Clean(p.about(n), textLimit)})
		}
	}
	slices.SortStableFunc(own.changes, func(a, b inventory.HardwareChange) int {
		return strings.Compare(a.What+"\x00"+a.Kind+"\x00"+a.Old+"\x00"+a.New, b.What+"\x00"+b.Kind+"\x00"+b.Old+"\x00"+b.New)
	})
	d.changes = append(d.changes, own.changes...)
}
