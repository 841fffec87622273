package ramdisk

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

const testVersion = "6.1.0-9-amd64"

// object writes the ELF file of a module with that .modinfo, or with none a program of that kind.
func object(kind elf.Type, machine elf.Machine, info []string) []byte {
	names := "\x00.modinfo\x00.shstrtab\x00"
	text := strings.Join(info, "\x00") + "\x00"
	var b bytes.Buffer
	h := elf.Header64{
		Type: uint16(kind), Machine: uint16(machine), Version: 1, Ehsize: 64, Shentsize: 64, Phentsize: 56,
		Shoff: uint64(64 + len(text) + len(names)), Shnum: 3, Shstrndx: 2,
	}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	put := func(v any) { _ = binary.Write(&b, binary.LittleEndian, v) }
	put(h)
	b.WriteString(text + names)
	put(elf.Section64{})
	put(elf.Section64{Name: 1, Type: uint32(elf.SHT_PROGBITS), Off: 64, Size: uint64(len(text))})
	put(elf.Section64{Name: 10, Type: uint32(elf.SHT_STRTAB), Off: uint64(64 + len(text)), Size: uint64(len(names))})
	return b.Bytes()
}

func ko(info ...string) []byte { return object(elf.ET_REL, elf.EM_X86_64, info) }

func program() []byte { return object(elf.ET_EXEC, elf.EM_X86_64, nil) }

// bzImage is the head of a kernel that says its version.
func bzImage(version string) []byte {
	b := make([]byte, 0x400)
	copy(b[0x202:], "HdrS")
	binary.LittleEndian.PutUint16(b[0x20e:], 0x100)
	copy(b[0x300:], version+" (debian-kernel@lists.debian.org) #1 SMP\x00")
	return b
}

// kernelFiles are a small kernel with modules of each class, as a package has them.
func kernelFiles() map[string][]byte {
	files := map[string][]byte{
		"drivers/net/ethernet/intel/e1000e/e1000e.ko": ko("alias=pci:v00008086d000010D3sv*sd*bc*sc*i*", "depends=ptp"),
		"drivers/ptp/ptp.ko":                          ko("depends=pps_core"),
		"drivers/pps/pps_core.ko":                     ko("depends="),
		"drivers/net/ethernet/broadcom/bnx2.ko":       ko("firmware=bnx2/a.fw", "firmware=bnx2/b*.fw"),
		"drivers/net/wireless/iwlwifi.ko":             ko("alias=pci:v00008086d00000082sv*sd*bc*sc*i*"),
		"drivers/scsi/pcmcia/qlogic_cs.ko":            ko(),
		"fs/fat/fat.ko":                               ko("depends="),
		"fs/fat/vfat.ko":                              ko("alias=fs-vfat", "depends=fat"),
		"fs/nls/nls_cp437.ko":                         ko("alias=nls_cp437"),
		"fs/nls/nls_koi8-r.ko":                        ko(),
		"fs/xfs/xfs.ko":                               ko("alias=fs-xfs", "depends=libcrc32c"),
		"lib/libcrc32c.ko":                            ko("softdep=pre: crc32c post: crc-late"),
		"crypto/crc32c_generic.ko":                    ko("alias=crypto-crc32c", "alias=crc32c"),
		"drivers/scsi/sd_mod.ko":                      ko("alias=scsi:t-0x00*", "depends=scsi_mod", "alias=bad one"),
		"drivers/gpu/drm/nouveau.ko":                  ko("depends=drm"),
		"drivers/gpu/drm/drm.ko":                      ko(),
	}
	all := map[string][]byte{"boot/vmlinuz-" + testVersion: bzImage(testVersion)}
	for name, b := range files {
		all["lib/modules/"+testVersion+"/kernel/"+name] = b
	}
	all["lib/modules/"+testVersion+"/modules.builtin"] = []byte("kernel/drivers/scsi/scsi_mod.ko\nkernel/drivers/nvme/host/nvme.ko\n")
	return all
}

// writeFiles writes files below a folder.
func writeFiles(t *testing.T, root string, files map[string][]byte) {
	t.Helper()
	for name, b := range files {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// kernelOf writes files of a kernel and reads them.
func kernelOf(t *testing.T, files map[string][]byte) *Kernel {
	t.Helper()
	root := t.TempDir()
	writeFiles(t, root, files)
	kernel, modules, err := Installed(root)
	if err != nil {
		t.Fatal(err)
	}
	k, err := FromFiles(kernel, modules)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// ar packs members, given as name and content in turn.
func ar(members ...string) []byte {
	b := []byte(arMagic)
	for i := 0; i < len(members); i += 2 {
		b = fmt.Appendf(b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n%s", members[i], 0, 0, 0, "100644", len(members[i+1]), members[i+1])
		if len(members[i+1])%2 == 1 {
			b = append(b, '\n')
		}
	}
	return b
}

// tarOf packs files as dpkg does, with ./ in front of names.
func tarOf(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, content := range files {
		if err := w.WriteHeader(&tar.Header{Name: "./" + name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func xzOf(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := xz.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zstdOf(t *testing.T, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(b, nil)
}
