package images

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"slipway.dev/slipway/inventory"
)

func TestAFileThatIsSentIsImportedByItsDigest(t *testing.T) {
	f := newFixture(t)
	disk := bytesOf(7, 9000)
	a, err := f.Take(t.Context(), bytes.NewReader(disk), "my.qcow2", int64(len(disk)))
	if err != nil || a.Digest != sumOf(disk) || a.SizeBytes != 9000 || a.Source != "upload:my.qcow2" {
		t.Fatalf("%+v %v", a, err)
	}
	f.wantArtefact(t, disk)
	r := ImportRequest{Name: "mine", Files: []ImportFile{{Role: inventory.RoleDisk, Name: "my.qcow2", Source: string(a.Digest)}}}
	i, err := f.Import(t.Context(), r, nil)
	if err != nil || i.DiskFormat != "raw" || len(i.Files) != 1 || i.Files[0].Digest != a.Digest {
		t.Fatalf("%+v %v", i, err)
	}
	if i, err = f.Import(t.Context(), ImportRequest{Name: "nameless", Files: []ImportFile{{Role: inventory.RoleDisk, Source: string(a.Digest)}}}, nil); err != nil {
		t.Errorf("without a name: %+v %v", i, err)
	}
	r.Files[0].SHA256 = sumOf([]byte("another"))
	if _, err = f.Import(t.Context(), r, nil); err == nil || !strings.Contains(err.Error(), "not what was to come") {
		t.Errorf("one with another sum: %v", err)
	}
	r.Files[0].SHA256 = ""
	r.Files[0].Source = string(sumOf([]byte("another")))
	if _, err = f.Import(t.Context(), r, nil); err == nil || !strings.Contains(err.Error(), "is not here") {
		t.Errorf("one that is not here: %v", err)
	}
}

func TestAFileThatIsCutOffOrTooLargeLeavesNothing(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.MaxBytes = 1000 })
	for name, in := range map[string]io.Reader{
		"cut off":   io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF)),
		"too large": bytes.NewReader(bytesOf(1, 1001)),
		"empty":     strings.NewReader(""),
	} {
		if _, err := f.Take(t.Context(), in, "x", -1); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if _, err := f.Take(t.Context(), iotest.ErrReader(errors.New("must not be read")), "x", 1001); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("said to be too large: %v", err)
	}
	if _, err := f.Take(t.Context(), strings.NewReader("x"), "a\nb", -1); err == nil {
		t.Error("a hostile name is taken")
	}
	left, err := os.ReadDir(f.PartialDir())
	if err != nil || len(left) > 0 {
		t.Errorf("%v %v is left", left, err)
	}
	if found, err := f.onDisk(); err != nil || len(found) > 0 {
		t.Errorf("%v %v is kept", found, err)
	}
}

func TestADryRunOfPruneRemovesNothing(t *testing.T) {
	now := time.Now()
	f := newFixture(t, func(c *Config) { c.Now = func() time.Time { return now } })
	file := bytesOf(1, 5000)
	if _, err := f.Take(t.Context(), bytes.NewReader(file), "x", -1); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Hour)
	for range 2 {
		p, err := f.Prune(t.Context(), true)
		if err != nil || !p.IsDryRun || !slices.Equal(p.Removed, []inventory.Digest{sumOf(file)}) || p.FreedBytes != 5000 {
			t.Fatalf("%+v %v", p, err)
		}
		f.wantArtefact(t, file)
	}
}

func TestAnImportThatFailedIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newJobBench(t)
		defer b.serve(t)()
		j := b.start(t, "debian")
		b.wantState(t, j.ID, JobRunning)
		if _, err := b.Retry(j.ID, false, false); err == nil {
			t.Error("one that runs is started again")
		}
		b.release <- errors.New("no luck")
		b.wantState(t, j.ID, JobFailed)
		again, err := b.Retry(j.ID, false, false)
		if err != nil || again.ID == j.ID || again.Image != "debian" {
			t.Fatalf("%+v %v", again, err)
		}
		b.wantState(t, again.ID, JobRunning)
		b.release <- nil
		b.wantState(t, again.ID, JobDone)
		if _, err := b.Retry("nope", false, false); err == nil {
			t.Error("an unknown one is started")
		}
	})
}
