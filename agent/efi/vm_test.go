package efi

import (
	"os"
	"slices"
	"testing"

	"slipway.dev/slipway/agent/disk"
	"slipway.dev/slipway/agent/wire"
)

// TestRealFirmwareTakesEntries changes the variables of the machine it runs on, which must be a throw-away one.
func TestRealFirmwareTakesEntries(t *testing.T) {
	if os.Getenv("SLIPWAY_EFI") != "1" {
		t.Skip("changes the firmware's boot order: boot a virtual machine with OVMF and run this test there with SLIPWAY_EFI=1")
	}
	v := Vars{}
	if !v.Present() {
		t.Fatal("this machine was not started by UEFI, or its kernel lacks efivarfs")
	}
	before, err := v.Read()
	if err != nil || len(before.Entries) == 0 {
		t.Fatalf("%+v, %v", before, err)
	}
	id, _ := disk.ParseGUID("11112222-3333-4444-5555-666677778888")
	w := Want{Partition: disk.Partition{Number: 1, First: 2048, Sectors: 4096, ID: id}, File: `\EFI\BOOT\BOOTX64.EFI`, Description: "test (Slipway)", MAC: "52:54:00:12:34:56"}
	name, err := v.Install(w)
	if err != nil {
		t.Fatal(err)
	}
	after, err := v.Read()
	if err != nil || len(after.Entries) != len(before.Entries)+1 || !slices.Equal(after.Order[1:], before.Order) {
		t.Errorf("%v, then %v, %v", before.Order, after.Order, err)
	}
	w.Mode = wire.NetworkFirst
	if again, err := v.Install(w); err != nil || again != name {
		t.Errorf("%s, then %s, %v", name, again, err)
	}
	if b, err := v.Read(); err != nil || slices.ContainsFunc(b.Entries, Entry.IsNetwork) && b.Order[0] == after.Order[0] {
		t.Errorf("%v, %v", b.Order, err)
	}
	names, err := v.Forget(func(g disk.GUID) bool { return g == id })
	if err != nil || !slices.Equal(names, []string{name}) {
		t.Errorf("%v, %v", names, err)
	}
	end, err := v.Read()
	if err != nil || len(end.Entries) != len(before.Entries) {
		t.Errorf("%+v, %v", end, err)
	}
	for _, e := range end.Entries {
		t.Log(e.ID(), e.Description, e.Words())
	}
}
