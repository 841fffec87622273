package disk

import (
	"bytes"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/agent/disk/disktest"
)

const mib = 1 << 20

func open(t *testing.T, path string, mode Mode) *Device {
	t.Helper()
	d, err := OpenPath(path, mode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func TestAnyOffsetAndLengthCanBeReadAndWritten(t *testing.T) {
	d := open(t, disktest.File(t, 64<<10+512), Write)
	model := make([]byte, d.Bytes)
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		off := r.Int64N(d.Bytes)
		n := 1 + r.Int64N(min(d.Bytes-off, 9000))
		p := make([]byte, n)
		for i := range p {
			p[i] = byte(r.Uint32())
		}
		if _, err := d.WriteAt(p, off); err != nil {
			t.Fatal(err)
		}
		copy(model[off:], p)
		off = r.Int64N(d.Bytes)
		got := make([]byte, 1+r.Int64N(d.Bytes-off))
		if n, err := d.ReadAt(got, off); err != nil || n != len(got) || !bytes.Equal(got, model[off:off+int64(len(got))]) {
			t.Fatalf("read of %d bytes at %d: %d, %v", len(got), off, n, err)
		}
	}
	if _, err := d.WriteAt(make([]byte, 2), d.Bytes-1); err == nil {
		t.Error("a write over the end was taken")
	}
}

func TestTablesOfOtherProgramsAreRead(t *testing.T) {
	gpt := disktest.File(t, 64*mib)
	disktest.Run(t, "sgdisk", "-n1:2048:+8M", "-t1:ef00", "-c1:EFI system", "-n3:0:+16M", "-u3:11112222-3333-4444-5555-666677778888", gpt)
	d := open(t, gpt, Write)
	table, err := ReadTable(d, d.Bytes, 512)
	if err != nil || table == nil || !table.IsGPT || len(table.Partitions) != 2 {
		t.Fatalf("%+v, %v", table, err)
	}
	id, _ := ParseGUID("11112222-3333-4444-5555-666677778888")
	p1, p3 := table.Partitions[0], table.Partitions[1]
	if p1.Type != TypeESP || p1.Name != "EFI system" || p1.First != 2048 || p1.Sectors != 16384 || p3.Number != 3 || p3.ID != id || id.String() != "11112222-3333-4444-5555-666677778888" {
		t.Errorf("%+v\n%+v", p1, p3)
	}
	if _, err := d.WriteAt(make([]byte, 4096), 0); err != nil {
		t.Fatal(err)
	}
	if table, err = ReadTable(d, d.Bytes, 512); err != nil || table == nil || !table.IsBackup || len(table.Partitions) != 2 {
		t.Errorf("the backup was not read: %+v, %v", table, err)
	}

	mbr := disktest.File(t, 64*mib)
	script := t.TempDir() + "/s"
	if err := os.WriteFile(script, []byte("label: dos\n2048,8M,L\n,,E\n,4M,L\n,4M,L\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	disktest.Run(t, "sh", "-c", "sfdisk -q "+mbr+" <"+script)
	m := open(t, mbr, Read)
	table, err = ReadTable(m, m.Bytes, 512)
	if err != nil || table == nil || table.IsGPT {
		t.Fatalf("%+v, %v", table, err)
	}
	var numbers []int
	for _, p := range table.Partitions {
		numbers = append(numbers, p.Number)
	}
	if diff := cmp.Diff([]int{1, 2, 5, 6}, numbers); diff != "" {
		t.Error(diff)
	}
}

func TestAGPTIsMovedToALargerDiskAndGetsAPartitionAtTheEnd(t *testing.T) {
	path := disktest.File(t, 32*mib)
	disktest.Run(t, "sgdisk", "-n1:2048:+8M", path)
	if err := os.Truncate(path, 100*mib); err != nil {
		t.Fatal(err)
	}
	d := open(t, path, Write)
	table, err := ReadTable(d, d.Bytes, 512)
	if err != nil {
		t.Fatal(err)
	}
	id, _ := ParseGUID("aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee")
	p, err := table.Add(d.Bytes, 8*mib, TypeBasicData, id, "CIDATA")
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Write(d, d.Bytes); err != nil {
		t.Fatal(err)
	}
	out := disktest.Run(t, "sgdisk", "-v", "-p", path)
	if !bytes.Contains([]byte(out), []byte("No problems found")) || !bytes.Contains([]byte(out), []byte("CIDATA")) || p.Number != 2 || p.Sectors < 16384 {
		t.Errorf("%+v\n%s", p, out)
	}
	again, err := ReadTable(d, d.Bytes, 512)
	if err != nil || again == nil || len(again.Partitions) != 2 || again.Partitions[1].Name != "CIDATA" {
		t.Errorf("%+v, %v", again, err)
	}
	if err := table.Write(d, 8*mib); err == nil {
		t.Error("a table was written whose partition is behind the end of the disk")
	}
}

func TestContentsAreFoundByTheirSignatures(t *testing.T) {
	cases := map[string]struct {
		make []string
		want Content
	}{
		"ext4":  {[]string{"mkfs.ext4", "-q", "-F", "-L", "root-of-it"}, Content{"ext4", "root-of-it", 1080}},
		"ext2":  {[]string{"mkfs.ext2", "-q", "-F", "-L", "boot"}, Content{"ext2", "boot", 1080}},
		"xfs":   {[]string{"mkfs.xfs", "-q", "-L", "data"}, Content{"xfs", "data", 0}},
		"btrfs": {[]string{"mkfs.btrfs", "-q", "-L", "OEM"}, Content{"btrfs", "OEM", 0x10040}},
		"vfat":  {[]string{"mkfs.vfat", "-n", "CIDATA"}, Content{"vfat", "CIDATA", 54}},
		"swap":  {[]string{"mkswap"}, Content{"swap", "", 4086}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			size := int64(16 * mib)
			if name == "xfs" || name == "btrfs" {
				size = 400 * mib
			}
			path := disktest.File(t, size)
			disktest.Run(t, c.make[0], append(c.make[1:], path)...)
			d := open(t, path, Read)
			got := Contents(d, d.Bytes)
			if len(got) == 0 || got[0] != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
	empty := open(t, disktest.File(t, mib), Read)
	if got := Contents(empty, empty.Bytes); got != nil {
		t.Errorf("an empty disk has %+v", got)
	}
}

func FuzzReadTable(f *testing.F) {
	f.Add(make([]byte, 4096))
	seed := make([]byte, 64<<10)
	copy(seed[512:], gptMagic)
	seed[510], seed[511], seed[450] = 0x55, 0xaa, 0x0f
	f.Add(seed)
	f.Fuzz(func(t *testing.T, b []byte) {
		table, _ := ReadTable(bytes.NewReader(b), int64(len(b)), 512)
		for _, e := range table.Extents("sda", int64(len(b))) {
			if e.Off < 0 || e.Off+e.Bytes > int64(len(b)) {
				t.Fatalf("%+v is outside of %d bytes", e, len(b))
			}
		}
		Contents(bytes.NewReader(b), int64(len(b)))
	})
}

func BenchmarkIsZero(b *testing.B) {
	p := Buffer(4 * mib)
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		if !IsZero(p) {
			b.Fatal("not zero")
		}
	}
}
