package images

import (
	"bytes"
	"os"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

func TestAFileThatChangesOnDiskIsFoundAndForgivenWhenItIsBack(t *testing.T) {
	f := newFixture(t)
	disk := bytesOf(7, 9000)
	a, err := f.Take(t.Context(), bytes.NewReader(disk), "my.qcow2", int64(len(disk)))
	if err != nil {
		t.Fatal(err)
	}
	r := ImportRequest{Name: "mine", Files: []ImportFile{{Role: inventory.RoleDisk, Name: "my.qcow2", Source: string(a.Digest)}}}
	if _, err := f.Import(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	w := f.Watch()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	look := func(what, want string) {
		t.Helper()
		now = now.Add(time.Minute)
		faults, err := w.Look(t.Context(), now, now.Add(-time.Hour))
		got := ""
		if len(faults) > 0 {
			got = faults[0].Problem
		}
		if err != nil || got != want || len(faults) > 1 {
			t.Errorf("%s: %+v %v, want %q", what, faults, err, want)
		}
	}
	path := f.path(a.Digest)
	write := func(b []byte, at time.Time) {
		t.Helper()
		if err := os.Chmod(path, 0o600); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	look("as it came", "")
	look("nothing is hashed twice", "")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	other := bytes.Clone(disk)
	other[4000] ^= 1
	write(other, info.ModTime().Add(time.Second))
	look("one bit is another", "damaged")
	look("it stays so", "damaged")
	write(disk, info.ModTime())
	look("it is back", "")
	write(other, info.ModTime())
	look("rotten without a trace, just hashed", "")
	now = now.Add(2 * time.Hour)
	look("rotten without a trace, its turn", "damaged")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	look("gone", "missing")
	write(disk[:100], info.ModTime())
	look("cut off", "damaged")
}
