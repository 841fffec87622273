package hardware

import (
	"reflect"

	"slipway.dev/slipway/inventory"
)

// Bounds on what one machine may report. The largest servers in the field stay well below all of them.
const (
	textLimit     = 256
	contentsLimit = 512
	listLimit     = 64 // of lists that have no bound of their own
	// sizeLimit bounds sizes in bytes: 9 PB, which JSON readers can hold exactly and which 1024 disks cannot overflow.
	sizeLimit  = 1<<53 - 1
	countLimit = 1<<31 - 1
)

// MaxDisks bounds the disks of one host. A machine with more is refused and not cut: a disk that nobody knows is never
// wiped.
const MaxDisks = 1024

// lists bounds the lists by the name of their field.
var lists = map[string]int{
	"DIMMs": 256, "Disks": MaxDisks, "MissingDisks": MaxDisks, "Ports": 128, "Accelerators": 128, "PCI": 1024, "Flags": 256, "BootOrder": 128, "Erases": 16,
}

// Clean makes what a machine reported fit to store. It takes control characters out of texts and truncates them, shortens
// lists, replaces absurd numbers, and drops malformed MACs. It walks the type itself, so that a field that is added to it
// cannot be forgotten here.
func Clean(hw *inventory.Hardware) {
	clean("", reflect.ValueOf(hw).Elem())
	switch hw.Firmware.Kind {
	case inventory.BIOS, inventory.UEFI, inventory.UEFIHTTP, "":
	default:
		hw.Firmware.Kind = ""
	}
}

var (
	macType = reflect.TypeFor[inventory.MAC]()
	walked  = reflect.TypeFor[inventory.Hardware]().PkgPath()
)

// clean cleans one value; name is the field that holds it.
func clean(name string, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		cleanText(name, v)
	case reflect.Int:
		v.SetInt(min(max(v.Int(), 0), countLimit))
	case reflect.Int64:
		v.SetInt(min(max(v.Int(), 0), sizeLimit))
	case reflect.Pointer:
		if !v.IsNil() {
			clean(name, v.Elem())
		}
	case reflect.Slice:
		limit, ok := lists[name]
		if !ok {
			limit = listLimit
		}
		if v.Len() > limit {
			// A copy, so that the rest of what was reported can be freed.
			short := reflect.MakeSlice(v.Type(), limit, limit)
			reflect.Copy(short, v)
			v.Set(short)
		}
		for i := range v.Len() {
			clean(name, v.Index(i))
		}
	case reflect.Struct:
		if v.Type().PkgPath() != walked { // time.Time: JSON has bounded it
			return
		}
		for i := range v.NumField() {
			clean(v.Type().Field(i).Name, v.Field(i))
		}
	}
}

func cleanText(name string, v reflect.Value) {
	if v.Type() == macType {
		mac, err := inventory.ParseMAC(v.String())
		if err != nil {
			mac = ""
		}
		v.SetString(string(mac))
		return
	}
	limit := textLimit
	if name == "Contents" {
		limit = contentsLimit
	}
	v.SetString(inventory.Clean(v.String(), limit))
}
