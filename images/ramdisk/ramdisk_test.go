package ramdisk

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
)

// build writes a RAM disk and reads it again.
func build(t *testing.T, r Recipe) (map[string]File, Summary, []byte) {
	t.Helper()
	var b bytes.Buffer
	s, err := Write(t.Context(), &b, r)
	if err != nil {
		t.Fatal(err)
	}
	files, err := ReadArchives(bytes.NewReader(b.Bytes()), "what was written")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]File{}
	for i, f := range files {
		if i > 0 && files[i-1].Name >= f.Name {
			t.Errorf("%s stands behind %s", f.Name, files[i-1].Name)
		}
		got[f.Name] = f
	}
	return got, s, b.Bytes()
}

func modulesOf(files map[string]File) (names []string) {
	for name := range files {
		if isModule(name) {
			names = append(names, moduleName(name))
		}
	}
	slices.Sort(names)
	return names
}

func TestARAMDiskHoldsTheAgentAndTheModulesOfItsClasses(t *testing.T) {
	files, s, _ := build(t, Recipe{Kernel: kernelOf(t, kernelFiles()), Agent: program()})
	want := []string{"bnx2", "crc32c_generic", "e1000e", "fat", "libcrc32c", "nls_cp437", "pps_core", "ptp", "sd_mod", "vfat", "xfs"}
	if d := cmp.Diff(want, modulesOf(files)); d != "" {
		t.Errorf("modules (-want +got)\n%s", d)
	}
	if s.ModuleN != len(want) || !slices.Equal(s.NoFirmware, []string{"bnx2"}) {
		t.Errorf("summary %+v", s)
	}
	if f := files["init"]; f.Mode != modeFile|0o755 || !bytes.Equal(f.Data, program()) {
		t.Error("the agent is not its first program")
	}
	if f := files["dev/console"]; f.Mode&modeType != modeChar || f.Major != 5 || f.Minor != 1 {
		t.Errorf("console %+v", f)
	}
	base := "lib/modules/" + testVersion + "/"
	for name, want := range map[string]string{
		"modules.dep": `kernel/crypto/crc32c_generic.ko:
kernel/drivers/net/ethernet/broadcom/bnx2.ko:
kernel/drivers/net/ethernet/intel/e1000e/e1000e.ko: kernel/drivers/ptp/ptp.ko kernel/drivers/pps/pps_core.ko
kernel/drivers/pps/pps_core.ko:
kernel/drivers/ptp/ptp.ko: kernel/drivers/pps/pps_core.ko
kernel/drivers/scsi/sd_mod.ko:
kernel/fs/fat/fat.ko:
kernel/fs/fat/vfat.ko: kernel/fs/fat/fat.ko kernel/fs/nls/nls_cp437.ko
kernel/fs/nls/nls_cp437.ko:
kernel/fs/xfs/xfs.ko: kernel/lib/libcrc32c.ko kernel/crypto/crc32c_generic.ko
kernel/lib/libcrc32c.ko: kernel/crypto/crc32c_generic.ko
`,
		"modules.softdep": "softdep libcrc32c pre: crc32c post: crc-late\n",
		"modules.builtin": "kernel/drivers/scsi/scsi_mod.ko\nkernel/drivers/nvme/host/nvme.ko\n",
		"modules.alias": `alias crypto-crc32c crc32c_generic
alias crc32c crc32c_generic
alias pci:v00008086d000010D3sv*sd*bc*sc*i* e1000e
alias scsi:t-0x00* sd_mod
alias fs-vfat vfat
alias nls_cp437 nls_cp437
alias fs-xfs xfs
`,
	} {
		if d := cmp.Diff(want, string(files[base+name].Data)); d != "" {
			t.Errorf("%s (-want +got)\n%s", name, d)
		}
	}
}

func TestThePatternsOfAnAdminChangeTheChoice(t *testing.T) {
	for _, c := range []struct {
		name             string
		include, exclude []string
		with, without    []string
	}{
		{"a module by name, with what it needs", []string{"nouveau"}, nil, []string{"nouveau", "drm"}, nil},
		{"a folder", []string{"kernel/drivers/net/wireless/"}, nil, []string{"iwlwifi"}, nil},
		{"a name with a dash", []string{"nls_koi8-r"}, nil, []string{"nls_koi8_r"}, nil},
		{"a module is left out", nil, []string{"e1000*"}, []string{"sd_mod"}, []string{"e1000e", "ptp", "pps_core"}},
		{"a folder is left out", nil, []string{"kernel/drivers/net/*/"}, []string{"sd_mod"}, []string{"e1000e", "bnx2"}},
		{"what another needs stays", nil, []string{"ptp"}, []string{"e1000e", "ptp"}, nil},
		{"an included module wins over an excluded folder", []string{"e1000e"}, []string{"kernel/drivers/net/ethernet/"}, []string{"e1000e"}, []string{"bnx2"}},
		{"one that is built in may be named", []string{"scsi_mod"}, nil, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			files, _, _ := build(t, Recipe{Kernel: kernelOf(t, kernelFiles()), Agent: program(), Include: c.include, Exclude: c.exclude})
			got := modulesOf(files)
			for _, name := range c.with {
				if !slices.Contains(got, name) {
					t.Errorf("no %s in %v", name, got)
				}
			}
			for _, name := range c.without {
				if slices.Contains(got, name) {
					t.Errorf("%s is still there", name)
				}
			}
		})
	}
}

func TestTheSameRecipeGivesTheSameBytes(t *testing.T) {
	for _, c := range []Compression{Zstd, Gzip, Plain} {
		var first []byte
		for range 3 {
			_, s, b := build(t, Recipe{Kernel: kernelOf(t, kernelFiles()), Agent: program(), Compression: c})
			if first == nil {
				first = b
			}
			if !bytes.Equal(first, b) {
				t.Errorf("%s: other bytes", c)
			}
			if len(b)%4 != 0 || s.PackedBytes != int64(len(b)) || c == Plain && s.PlainBytes != s.PackedBytes {
				t.Errorf("%s: %d bytes, said to be %+v", c, len(b), s)
			}
		}
	}
}

func TestPackedModulesAndFirmwareAreUnpacked(t *testing.T) {
	files := kernelFiles()
	base := "lib/modules/" + testVersion + "/kernel/"
	for name, pack := range map[string]func(*testing.T, []byte) []byte{"drivers/ptp/ptp.ko.xz": xzOf, "fs/fat/fat.ko.zst": zstdOf} {
		plain, _, _ := strings.Cut(name, ".ko")
		files[base+name] = pack(t, files[base+plain+".ko"])
		delete(files, base+plain+".ko")
	}
	firmware := fstest.MapFS{
		"bnx2/a.fw.xz": {Data: xzOf(t, []byte("A"))}, "bnx2/b1.fw": {Data: []byte("B1")}, "bnx2/b2.fw": {Data: []byte("B2")}, "other.fw": {Data: []byte("O")},
	}
	got, s, _ := build(t, Recipe{Kernel: kernelOf(t, files), Agent: program(), Firmware: firmware})
	for name, want := range map[string][]byte{
		"lib/modules/" + testVersion + "/kernel/drivers/ptp/ptp.ko": ko("depends=pps_core"),
		"lib/modules/" + testVersion + "/kernel/fs/fat/fat.ko":      ko("depends="),
		"lib/firmware/bnx2/a.fw":                                    []byte("A"),
		"lib/firmware/bnx2/b1.fw":                                   []byte("B1"),
		"lib/firmware/bnx2/b2.fw":                                   []byte("B2"),
	} {
		if !bytes.Equal(got[name].Data, want) {
			t.Errorf("%s: %q", name, got[name].Data)
		}
	}
	if _, ok := got["lib/firmware/other.fw"]; ok || s.FirmwareN != 3 || len(s.NoFirmware) != 0 {
		t.Errorf("%+v", s)
	}
}

func TestADriverPackIsIndexed(t *testing.T) {
	pack := []File{
		{Name: "lib/modules/" + testVersion + "/extra/newnic.ko", Mode: modeFile | 0o644, Data: ko("alias=pci:v0000CAFE*", "depends=ptp")},
		{Name: "lib/modules/" + testVersion + "/updates/e1000e.ko", Mode: modeFile | 0o644, Data: ko("alias=pci:v0000BEEF*")},
		{Name: "etc/ssl/ca.pem", Mode: modeFile | 0o644, Data: []byte("CA")},
	}
	got, _, _ := build(t, Recipe{Kernel: kernelOf(t, kernelFiles()), Agent: program(), Extra: pack})
	dep := string(got["lib/modules/"+testVersion+"/modules.dep"].Data)
	if !strings.Contains(dep, "\nextra/newnic.ko: kernel/drivers/ptp/ptp.ko kernel/drivers/pps/pps_core.ko\n") && !strings.HasPrefix(dep, "extra/newnic.ko: kernel/drivers/ptp/ptp.ko") {
		t.Errorf("modules.dep\n%s", dep)
	}
	if !strings.Contains(dep, "updates/e1000e.ko:\n") || strings.Contains(dep, "intel/e1000e") {
		t.Errorf("the newer module does not replace the kernel's\n%s", dep)
	}
	if string(got["etc/ssl/ca.pem"].Data) != "CA" || got["etc/ssl"].Mode&modeType != modeDir {
		t.Error("the other files are missing")
	}
}

func TestAShellIsThereOnlyWhenItIsGiven(t *testing.T) {
	k := kernelOf(t, kernelFiles())
	with, _, _ := build(t, Recipe{Kernel: k, Agent: program(), Shell: program()})
	if f := with["bin/sh"]; f.Mode&modeType != modeLink || string(f.Data) != "busybox" {
		t.Errorf("%+v", f)
	}
	without, _, _ := build(t, Recipe{Kernel: k, Agent: program()})
	if names := slices.Collect(maps.Keys(without)); slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "bin/") }) {
		t.Errorf("%v", names)
	}
}

func TestWhatCannotBootIsRefused(t *testing.T) {
	dynamic := object(2, 62, nil)
	dynamic[0x20], dynamic[0x38] = 64, 1 // one program header, behind the header
	copy(dynamic[64:], append([]byte{3}, make([]byte, 55)...))
	for _, c := range []struct {
		name   string
		change func(r *Recipe, files map[string][]byte)
		want   string
	}{
		{"a script as agent", func(r *Recipe, _ map[string][]byte) { r.Agent = []byte("#!/bin/sh\n") }, "the agent is no program for Linux"},
		{"an agent for arm64", func(r *Recipe, _ map[string][]byte) { r.Agent = object(2, 183, nil) }, "the agent is for EM_AARCH64, the kernel for x86_64"},
		{"an agent that needs libraries", func(r *Recipe, _ map[string][]byte) { r.Agent = dynamic }, "the agent needs libraries"},
		{"a shell that needs libraries", func(r *Recipe, _ map[string][]byte) { r.Shell = dynamic }, "the shell needs libraries"},
		{"a module for arm64", func(_ *Recipe, f map[string][]byte) {
			f["lib/modules/"+testVersion+"/kernel/drivers/ata/ahci.ko"] = object(1, 183, []string{"depends="})
		}, "module kernel/drivers/ata/ahci.ko is for EM_AARCH64"},
		{"a module that is cut off", func(_ *Recipe, f map[string][]byte) {
			f["lib/modules/"+testVersion+"/kernel/drivers/ata/ahci.ko"] = ko("depends=")[:80]
		}, "module kernel/drivers/ata/ahci.ko is damaged"},
		{"a module whose need is missing", func(_ *Recipe, f map[string][]byte) {
			f["lib/modules/"+testVersion+"/kernel/drivers/ata/ahci.ko"] = ko("depends=libahci")
		}, "module ahci needs module libahci"},
		{"no list of what is built in", func(_ *Recipe, f map[string][]byte) { delete(f, "lib/modules/"+testVersion+"/modules.builtin") }, "modules.builtin"},
		{"a pattern that fits nothing", func(r *Recipe, _ map[string][]byte) { r.Include = []string{"ixgb"} }, "has no module ixgb"},
		{"a pattern that is none", func(r *Recipe, _ map[string][]byte) { r.Exclude = []string{"a["} }, "a[ is no pattern"},
		{"a way out of the RAM disk", func(r *Recipe, _ map[string][]byte) { r.Extra = []File{{Name: "../etc/passwd", Mode: modeFile}} }, "leads out of its folder"},
		{"a file where a folder is", func(r *Recipe, _ map[string][]byte) { r.Extra = []File{{Name: "lib/modules", Mode: modeLink}} }, "is a folder in one part"},
		{"a folder where a file is", func(r *Recipe, _ map[string][]byte) { r.Extra = []File{{Name: "init/x", Mode: modeFile}} }, "init is a folder in one part"},
		{"a compression that is none", func(r *Recipe, _ map[string][]byte) { r.Compression = "lz77" }, `there is no compression "lz77"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := kernelFiles()
			r := Recipe{Agent: program()}
			c.change(&r, files)
			r.Kernel = kernelOf(t, files)
			_, err := Write(t.Context(), &bytes.Buffer{}, r)
			checkError(t, err, c.want)
		})
	}
}

// checkError wants an error for people, with that text in its message.
func checkError(t *testing.T, err error, want string) {
	t.Helper()
	var e *inventory.Error
	if !errors.As(err, &e) || !strings.Contains(e.Msg, want) {
		t.Fatalf("got %v, want %q", err, want)
	}
}
