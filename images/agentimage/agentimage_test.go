package agentimage

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway.dev/slipway/images/ramdisk"
	"slipway.dev/slipway/inventory"
)

const version = "6.1.0-9-amd64"

// machine is a folder like the root of a machine with a small kernel installed, and an agent.
func machine(t *testing.T) (root, agent string) {
	t.Helper()
	root = t.TempDir()
	kernel := make([]byte, 0x400)
	copy(kernel[0x202:], "HdrS")
	binary.LittleEndian.PutUint16(kernel[0x20e:], 0x100)
	copy(kernel[0x300:], version+" #1")
	var program bytes.Buffer
	h := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Ehsize: 64}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	if err := binary.Write(&program, binary.LittleEndian, h); err != nil {
		t.Fatal(err)
	}
	agent = filepath.Join(root, "slipway-agent")
	for name, b := range map[string][]byte{
		"boot/vmlinuz-" + version:                     kernel,
		"lib/modules/" + version + "/modules.builtin": []byte("kernel/drivers/nvme/host/nvme.ko\n"),
		"lib/modules/" + version + "/kernel/README":   nil,
		"slipway-agent":                               program.Bytes(),
		"pack/etc/motd":                               []byte("hello\n"),
		"pack/etc/issue":                              []byte("hi\n"),
	} {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root, agent
}

// files reads a RAM disk.
func files(t *testing.T, name string) map[string]string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := ramdisk.ReadArchives(f, name)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, one := range all {
		got[one.Name] = string(one.Data)
	}
	return got
}

func TestAnImageIsBuiltFromTheInstalledKernel(t *testing.T) {
	root, agent := machine(t)
	out := filepath.Join(t.TempDir(), "new")
	var progress bytes.Buffer
	r, err := Build(t.Context(), Options{root: root, Agent: agent, Out: out}, &progress)
	if err != nil {
		t.Fatal(err)
	}
	if r.KernelVersion != version || r.Arch != inventory.X8664 || r.KernelBytes != 0x400 || r.HasShell {
		t.Errorf("%+v", r)
	}
	b, err := os.ReadFile(r.InitrdPath)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	if r.InitrdDigest != inventory.Digest("sha256:"+hex.EncodeToString(sum[:])) || r.InitrdBytes != int64(len(b)) {
		t.Errorf("digest %s, %d bytes", r.InitrdDigest, r.InitrdBytes)
	}
	if got := files(t, r.InitrdPath); !strings.HasPrefix(got["init"], "\x7fELF") {
		t.Error("the agent is not its first program")
	}
	if want := "kernel " + version + " for x86_64\n"; !strings.HasPrefix(progress.String(), want) {
		t.Errorf("it says\n%s", progress.String())
	}
	if left, _ := os.ReadDir(out); len(left) != 2 {
		t.Errorf("in the folder: %v", left)
	}
	again, err := Build(t.Context(), Options{root: root, Agent: agent, Out: t.TempDir()}, &progress)
	if err != nil || again.InitrdDigest != r.InitrdDigest {
		t.Errorf("the second time: %v, %s", err, again.InitrdDigest)
	}
}

func TestFilesFoldersAndRAMDisksAreAdded(t *testing.T) {
	root, agent := machine(t)
	if _, err := exec.LookPath("cpio"); err != nil {
		t.Skip("makes a RAM disk with cpio, of Debian's package cpio")
	}
	initrd := filepath.Join(root, "pack.img")
	cmd := exec.Command("sh", "-c", "cd pack && find . | cpio --quiet -o -H newc | gzip >../pack.img")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r, err := Build(t.Context(), Options{root: root, Agent: agent, Out: t.TempDir(), Extra: []string{
		initrd, filepath.Join(root, "pack") + "=/opt/pack", filepath.Join(root, "pack/etc/issue") + "=/etc/motd",
	}}, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	got := files(t, r.InitrdPath)
	for name, want := range map[string]string{"etc/issue": "hi\n", "opt/pack/etc/motd": "hello\n", "etc/motd": "hi\n"} {
		if got[name] != want {
			t.Errorf("%s holds %q", name, got[name])
		}
	}
}

func TestWhatIsMissingIsSaidWithWhatToDo(t *testing.T) {
	root, agent := machine(t)
	for _, c := range []struct {
		name, msg, hint string
		o               Options
	}{
		{"no agent", "the agent is not there", "make build makes both", Options{Agent: "/nowhere/slipway-agent"}},
		{"no agent beside this program", "the agent is not there", "--agent FILE", Options{}},
		{"no kernel installed", "there is no kernel in", "apt-get install linux-image-amd64", Options{Agent: agent, root: t.TempDir()}},
		{"a kernel that is not there", "the kernel is not there", "", Options{Agent: agent, Kernel: "/nowhere/vmlinuz-1"}},
		{"modules without a kernel", "modules are given without their kernel", "--kernel", Options{Agent: agent, Modules: root}},
		{"a package and files", "both as a package and as files", "--deb", Options{Agent: agent, Kernel: "x", Debs: []string{"y"}}},
		{"a package that is not there", "package linux.deb is not there", "", Options{Agent: agent, Debs: []string{"/nowhere/linux.deb"}}},
		{"another architecture", "the kernel is for x86_64, not for arm64", "--deb", Options{Agent: agent, Arch: inventory.ARM64}},
		{"no firmware", "there is no folder of firmware", "firmware-bnx2x", Options{Agent: agent, Firmware: "/nowhere"}},
		{"no shell", "the shell is not there", "", Options{Agent: agent, Shell: "/nowhere/busybox"}},
		{"a RAM disk that is none", "slipway-agent is no RAM disk", "cpio", Options{Agent: agent, Extra: []string{agent}}},
		{"an added file that is not there", "the added file is not there", "", Options{Agent: agent, Extra: []string{"/nowhere=/x"}}},
		{"an added file without a place", "is no place in the RAM disk", "FILE=/PATH", Options{Agent: agent, Extra: []string{agent + "=x"}}},
		{"a folder that cannot be made", "the folder for the image cannot be made", "", Options{Agent: agent, Out: agent + "/x"}},
		{"a pattern that fits nothing", "has no module ixgbe", "patterns are", Options{Agent: agent, Include: []string{"ixgbe"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.o.root == "" {
				c.o.root = root
			}
			if c.o.Out == "" {
				c.o.Out = t.TempDir()
			}
			_, err := Build(t.Context(), c.o, &bytes.Buffer{})
			var e *inventory.Error
			if !errors.As(err, &e) || !strings.Contains(e.Msg, c.msg) || !strings.Contains(e.Hint, c.hint) {
				t.Errorf("got %v (%+v)", err, e)
			}
			if left, _ := os.ReadDir(c.o.Out); len(left) > 0 {
				t.Errorf("it left %v", left)
			}
		})
	}
}

func TestAFailedBuildLeavesTheOldImage(t *testing.T) {
	root, agent := machine(t)
	out := t.TempDir()
	if _, err := Build(t.Context(), Options{root: root, Agent: agent, Out: out}, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(out, "initrd"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Build(t.Context(), Options{root: root, Agent: agent, Out: out, Compression: "no"}, &bytes.Buffer{}); err == nil {
		t.Fatal("it was built")
	}
	after, err := os.ReadFile(filepath.Join(out, "initrd"))
	left, _ := os.ReadDir(out)
	if err != nil || !slices.Equal(before, after) || len(left) != 2 {
		t.Errorf("%v, %v", err, left)
	}
}
