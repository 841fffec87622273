package inspect

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const mib = 1 << 20

// disk is an empty one of 8 MiB.
func emptyDisk() []byte { return make([]byte, 8*mib) }

func put(b []byte, at int, s string) []byte { copy(b[at:], s); return b }

// withGPT writes a table with partitions of one MiB each from 1 MiB on.
func withGPT(b []byte, sector, n int) []byte {
	h := b[sector:]
	copy(h, "EFI PART")
	le := binary.LittleEndian
	le.PutUint64(h[72:], 2)
	le.PutUint32(h[80:], 128)
	le.PutUint32(h[84:], 128)
	for i := range n {
		e := b[2*sector+128*i:]
		e[0] = 1
		le.PutUint64(e[32:], uint64((i+1)*mib/sector))
		le.PutUint64(e[40:], uint64((i+2)*mib/sector-1))
	}
	return b
}

func TestContentsOfADiskInWords(t *testing.T) {
	ext4 := func(b []byte, at int) []byte {
		put(b, at+0x438, "\x53\xef")
		b[at+0x460] = 0x42
		return b
	}
	withMBR := func(b []byte) []byte {
		put(b, 510, "\x55\xaa")
		put(b, 446, "\x80\x00\x00\x00\x83\x00\x00\x00\x00\x08\x00\x00\x00\x08\x00\x00")
		return b
	}
	for _, c := range []struct {
		name   string
		disk   []byte
		sector int
		want   string
	}{
		{"nothing", emptyDisk(), 512, "empty"},
		{"noise", put(emptyDisk(), 7, "noise"), 512, "unknown data"},
		{"a table without partitions", withGPT(emptyDisk(), 512, 0), 512, "gpt, no partitions"},
		{"an installed system", ext4(put(withGPT(emptyDisk(), 512, 3), mib+0x52, "FAT32   "), 2*mib), 512, "gpt, 3 partitions: vfat, ext4, empty"},
		{"partitions of large sectors", ext4(withGPT(emptyDisk(), 4096, 1), mib), 4096, "gpt, 1 partition: ext4"},
		{"a DOS table", ext4(withMBR(emptyDisk()), mib), 512, "mbr, 1 partition: ext4"},
		{"a whole disk for LVM", put(emptyDisk(), 0x218, "LVM2 001"), 512, "LVM member"},
		{"a RAID member with its superblock at the end", put(emptyDisk(), 8*mib-64<<10, "\xfc\x4e\x2b\xa9"), 512, "RAID member"},
		{"firmware RAID over a table", put(withGPT(emptyDisk(), 512, 1), 8*mib-512, "\xde\x11\xde\x11"), 512, "firmware RAID member (DDF)"},
		{"a table that lies about its size", func() []byte {
			b := withGPT(emptyDisk(), 512, 1)
			binary.LittleEndian.PutUint32(b[512+80:], 1<<31)
			return b
		}(), 512, "gpt, no partitions"},
		{"partitions beyond the end", func() []byte {
			b := withGPT(emptyDisk(), 512, 1)
			binary.LittleEndian.PutUint64(b[1024+40:], 1<<62)
			return b
		}(), 512, "gpt, no partitions"},
		{"a disk of one sector", make([]byte, 512), 512, "empty"},
		{"a disk that cannot be read", nil, 512, "cannot be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Contents(bytes.NewReader(c.disk), max(int64(len(c.disk)), 512), c.sector); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestContentsOfRealFileSystems asks the programs that make them, where they are installed.
func TestContentsOfRealFileSystems(t *testing.T) {
	for _, c := range []struct {
		program string
		args    []string
		want    string
	}{
		{"mkfs.ext4", []string{"-q", "-F"}, "ext4"},
		{"mkfs.ext2", []string{"-q", "-F"}, "ext2"},
		{"mkfs.ext3", []string{"-q", "-F"}, "ext3"},
		{"mkfs.vfat", []string{"-F", "32"}, "vfat"},
		{"mkfs.vfat", nil, "vfat"},
		{"mkfs.xfs", []string{"-q"}, "xfs"},
		{"mkfs.btrfs", []string{"-q"}, "btrfs"},
		{"mkswap", nil, "swap"},
	} {
		t.Run(c.program+strings.Join(c.args, " "), func(t *testing.T) {
			program, err := exec.LookPath(c.program)
			if err != nil {
				program, err = exec.LookPath("/sbin/" + c.program)
			}
			if err != nil {
				t.Skipf("%s is not installed: apt-get install e2fsprogs dosfstools xfsprogs btrfs-progs util-linux", c.program)
			}
			file := filepath.Join(t.TempDir(), "disk")
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			const size = 320 * mib
			if err := os.Truncate(file, size); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(program, append(c.args, file)...).CombinedOutput(); err != nil {
				t.Skipf("%s does not work here: %s", c.program, out)
			}
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if got := Contents(f, size, 512); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestLLDPOfRealSwitches(t *testing.T) {
	tlv := func(kind int, value string) string {
		return string([]byte{byte(kind<<1 | len(value)>>8), byte(len(value))}) + value
	}
	head := tlv(1, "\x04\x00\x1c\x73\x00\x00\x01") + tlv(2, "\x05Ethernet7") + tlv(3, "\x00\x78")
	for _, c := range []struct{ name, frame, want string }{
		{
			"an Arista", head + tlv(4, "web-1 eth0") + tlv(5, "tor-1.rack7") + tlv(8, "\x05\x01\x0a\x00\x00\x02\x02\x00\x00\x00\x01\x00") + tlv(127, "\x00\x80\xc2\x01\x00\x2a") + tlv(0, ""),
			"{00:1c:73:00:00:01 tor-1.rack7 Ethernet7 web-1 eth0 10.0.0.2 42} true",
		},
		{"a host that says MAC twice", tlv(1, "\x04\x00\x1c\x73\x00\x00\x01") + tlv(2, "\x03\x00\x1c\x73\x00\x00\x02") + tlv(3, "\x00\x78") + tlv(0, ""), "{00:1c:73:00:00:01  00:1c:73:00:00:02   0} true"},
		{"an address as chassis", tlv(1, "\x05\x01\x0a\x01\x02\x03") + tlv(2, "\x07uplink\x1b[2J") + tlv(3, "\x00\x78"), "{10.1.2.3  uplink [2J   0} true"},
		{"the port before the chassis", tlv(2, "\x05Ethernet7") + tlv(1, "\x04\x00\x1c\x73\x00\x00\x01") + tlv(3, "\x00\x78"), "{     0} false"},
		{"a frame that was cut", head + "\x09\xff", "{00:1c:73:00:00:01  Ethernet7   0} true"},
		{"no LLDP", "\x88\xcc", "{     0} false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, ok := parseLLDP([]byte(c.frame))
			if got := fmt.Sprintf("%v %v", n, ok); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestSMARTStatus(t *testing.T) {
	sense := func(mid, high byte) []byte {
		b := make([]byte, 32)
		b[0], b[8], b[17], b[19] = 0x72, 0x09, mid, high
		return b
	}
	for _, c := range []struct {
		name  string
		sense []byte
		want  string
	}{
		{"a well disk", sense(0x4f, 0xc2), "true <nil>"},
		{"a failing disk", sense(0xf4, 0x2c), "false <nil>"},
		{"a disk that says nothing of it", sense(0, 0), "false the disk does not tell its health"},
		{"a controller that does not pass it on", make([]byte, 32), "false the disk does not tell its health"},
	} {
		isWell, err := smartStatus(c.sense)
		if got := fmt.Sprint(isWell, " ", err); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func FuzzDMI(f *testing.F) {
	f.Add([]byte("_SM3_\x00\x18\x03\x03"), table())
	f.Fuzz(func(t *testing.T, entryPoint, b []byte) {
		d := parseDMI(entryPoint, b)
		for _, m := range d.dimms {
			if m.SizeBytes <= 0 {
				t.Errorf("a module of %d bytes", m.SizeBytes)
			}
		}
	})
}

func FuzzLLDP(f *testing.F) {
	f.Add([]byte("\x02\x07\x04\x00\x1c\x73\x00\x00\x01\x04\x0a\x05Ethernet7\x06\x02\x00\x78\x10\x0c\x05\x01\x0a\x00\x00\x02\x02\x00\x00\x00\x01\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if n, ok := parseLLDP(b); ok && (n.Chassis == "" || n.Port == "") {
			t.Errorf("%+v", n)
		}
	})
}

func FuzzLoadOption(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x0c\x00P\x00\x00\x00\x02\x01\x0c\x00\xd0\x41\x03\x0a\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if e := parseLoadOption(b); len(e.Path) > 512 || len(e.Description) > maxText {
			t.Errorf("%+v", e)
		}
	})
}

func FuzzContents(f *testing.F) {
	f.Add(withGPT(make([]byte, 64<<10), 512, 2), 512)
	f.Add(put(make([]byte, 2048), 0x438, "\x53\xef"), 4096)
	f.Fuzz(func(t *testing.T, b []byte, sector int) {
		if got := Contents(bytes.NewReader(b), int64(len(b)), sector); got == "" || len(got) > 500 {
			t.Errorf("%q", got)
		}
	})
}

func TestAnATADiskErasesItselfUnlessItIsLockedOrFrozen(t *testing.T) {
	for _, c := range []struct {
		name     string
		security byte
		want     string
	}{
		{"as it should be", 0x21, "[ata-secure-erase]"},
		{"without the feature", 0x00, "[]"},
		{"locked by a password", 0x25, "[]"},
		{"frozen by firmware", 0x29, "[]"},
	} {
		page := make([]byte, 572)
		page[60+256] = c.security
		if got := fmt.Sprint(ataErases(page)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
