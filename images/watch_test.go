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
	write(disk[:100], info.ModTime())
	look("cut off without another time", "damaged")
	write(disk, info.ModTime())
	look("it is whole again", "")
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

// TestWhichFilesAreHashed looks at files that rotted while neither their size nor their time changed, before the first look.
func TestWhichFilesAreHashed(t *testing.T) {
	f := newFixture(t)
	path := func(name string, used bool) string {
		t.Helper()
		b := bytesOf(uint64(len(name)), 9000)
		a, err := f.Take(t.Context(), bytes.NewReader(b), name, int64(len(b)))
		if err == nil && used {
			_, err = f.Import(t.Context(), ImportRequest{Name: name, Files: []ImportFile{{Role: inventory.RoleDisk, Name: name, Source: string(a.Digest)}}}, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		return f.path(a.Digest)
	}
	for p, rot := range map[string]func(b []byte) []byte{
		path("a", true):       func(b []byte) []byte { b[7] ^= 1; return b },
		path("bb", true):      func(b []byte) []byte { b[7] ^= 1; return b },
		path("cut", true):     func(b []byte) []byte { return b[:4000] },
		path("gone", true):    nil,
		path("unused", false): nil,
	} {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(p); err != nil {
			t.Fatal(err)
		}
		if rot == nil {
			continue
		}
		if err := os.WriteFile(p, rot(b), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(p, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
	n, size, faults, err := f.Glance(t.Context())
	if n != 4 || size != 9000+9000+4000 || len(faults) != 2 || err != nil {
		t.Errorf("at a glance: %d files, %d bytes, %+v, %v", n, size, faults, err)
	}
	w := f.Watch()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for i, want := range []int{3, 4, 4} { // one of those that look right each time
		now = now.Add(time.Minute)
		if faults, err = w.Look(t.Context(), now, now.Add(-time.Hour)); len(faults) != want || err != nil {
			t.Errorf("look %d finds %+v, %v, want %d", i+1, faults, err, want)
		}
	}
}
