package fat

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/agent/disk/disktest"
)

func TestOtherProgramsReadWhatIsMade(t *testing.T) {
	files := map[string][]byte{
		"user-data": bytes.Repeat([]byte("#cloud-config\n"), 5000), "meta-data": []byte("instance-id: i-1\n"), "network-config": []byte("version: 2\n"),
		"vendor-data": nil, "thirteenchars": []byte("a name that fills a whole part"),
	}
	for _, c := range []struct {
		name   string
		size   int64
		sector int
	}{{"sectors of 512 bytes", 8 << 20, 512}, {"sectors of 4096 bytes", 8 << 20, 4096}, {"a large one", 64 << 20, 512}} {
		t.Run(c.name, func(t *testing.T) {
			path := disktest.File(t, c.size)
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := Format(f, c.size, c.sector, "cidata", files); err != nil {
				t.Fatal(err)
			}
			out := disktest.Run(t, "fsck.vfat", "-n", "-v", path)
			if !strings.Contains(out, "FAT12") && !strings.Contains(out, "12 bit") {
				t.Error(out)
			}
			if out := disktest.Run(t, "blkid", "-p", "-o", "export", path); !strings.Contains(out, "LABEL=CIDATA") || !strings.Contains(out, "TYPE=vfat") {
				t.Error(out)
			}
			dir := t.TempDir()
			disktest.Run(t, "mcopy", "-i", path, "::*", dir)
			for name, want := range files {
				if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s: %d bytes, %v", name, len(got), err)
				}
			}
			list, err := List(f)
			slices.Sort(list)
			if diff := cmp.Diff(slices.Sorted(maps.Keys(files)), list); diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
	if err := Format(&none{}, 1<<20, 512, "x", map[string][]byte{"a": make([]byte, 2<<20)}); err == nil {
		t.Error("files larger than the file system were taken")
	}
}

type none struct{}

func (*none) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

func TestFoldersOfOtherProgramsAreListed(t *testing.T) {
	for _, c := range []struct {
		bits string
		size int64
	}{{"12", 4 << 20}, {"16", 32 << 20}, {"32", 64 << 20}} {
		t.Run("FAT"+c.bits, func(t *testing.T) {
			path := disktest.File(t, c.size)
			disktest.Run(t, "mkfs.vfat", "-F", c.bits, path)
			disktest.Run(t, "mmd", "-i", path, "::EFI", "::EFI/debian", "::EFI/BOOT")
			for _, name := range []string{"EFI/debian/shimx64.efi", "EFI/BOOT/BOOTX64.EFI", "EFI/debian/a rather long name with spaces.txt"} {
				disktest.Run(t, "mcopy", "-i", path, "/etc/hostname", "::"+name)
			}
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			got, err := List(f)
			slices.Sort(got)
			want := []string{"EFI/BOOT/BOOTX64.EFI", "EFI/debian/a rather long name with spaces.txt", "EFI/debian/shimx64.efi"}
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
}

type memory []byte

func (m memory) WriteAt(p []byte, off int64) (int, error) { return copy(m[off:], p), nil }

func FuzzList(f *testing.F) {
	b := make(memory, 64<<10)
	if err := Format(b, int64(len(b)), 512, "x", map[string][]byte{"user-data": []byte("a")}); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(b))
	f.Fuzz(func(t *testing.T, b []byte) { _, _ = List(bytes.NewReader(b)) })
}
