package vm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// arm64Dir is where tools/arm64.sh puts Debian's GRUB and kernel for arm64.
func arm64Dir(t *testing.T) string {
	t.Helper()
	needVM(t)
	dir := os.Getenv("SLIPWAY_ARM64")
	if dir == "" {
		dir, _ = filepath.Abs("../../build/arm64")
	}
	if _, err := os.Stat(filepath.Join(dir, "linux")); err != nil {
		t.Skip("needs Debian's kernel and GRUB for arm64; get them with: tools/arm64.sh")
	}
	return dir
}

// armInit is a first process that says it runs, as a RAM disk.
func (s *stand) armInit() string {
	s.t.Helper()
	folder := s.t.TempDir()
	source := filepath.Join(folder, "main.go")
	text := `package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	line, _ := os.ReadFile("/proc/cmdline")
	fmt.Printf("SLIPWAY ARM64 is up %s\n", line)
	time.Sleep(time.Hour)
}
`
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	program := filepath.Join(folder, "init")
	cmd := exec.Command("go", "build", "-o", program, source)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0", "GOFLAGS=-trimpath -gcflags=all=-dwarf=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("build the first process: %v\n%s", err, out)
	}
	b, err := os.ReadFile(program)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.pack("arm.cpio", "init", b)
}

// loaders is a folder with files under the names that they are served by.
func loaders(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, from := range files {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// armBoard is an emulated board with 64 bits; no firmware is in it yet.
func armBoard() []string {
	return append([]string{"-machine", "virt,accel=tcg", "-cpu", "cortex-a57", "-m", "1024"}, nic()...)
}

// TestARM64UEFI boots a board with UEFI: GRUB by TFTP, which fetches kernel and RAM disk. The tests of pxe hold what boards are sent.
func TestARM64UEFI(t *testing.T) {
	needLong(t)
	dir := arm64Dir(t)
	const code, vars = "/usr/share/AAVMF/AAVMF_CODE.fd", "/usr/share/AAVMF/AAVMF_VARS.fd"
	s := newStand(t, "--loaders", loaders(t, map[string]string{"grubaa64.efi": filepath.Join(dir, "grubaa64.efi")}))
	s.image("arm", inventory.ARM64, []string{"console=ttyAMA0", "slipway.test=${mac}"}, filepath.Join(dir, "linux"), s.armInit())
	s.host("arm")
	text, err := os.ReadFile(vars)
	if err != nil {
		t.Skip("needs package qemu-efi-aarch64")
	}
	own := filepath.Join(s.dir, "vars.fd")
	if err := os.WriteFile(own, text, 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, console := s.qemu("qemu-system-aarch64", append(armBoard(),
		"-drive", "if=pflash,unit=0,format=raw,readonly=on,file="+code, "-drive", "if=pflash,unit=1,format=raw,file="+own)...)
	s.event(inventory.EventLoaderSent, "grubaa64.efi over tftp", 2*time.Minute)
	t.Logf("GRUB sent after %.1f s", time.Since(began).Seconds())
	s.event(inventory.EventBootDecided, "gives it image arm", time.Minute)
	s.says(console, "SLIPWAY ARM64 is up", 4*time.Minute)
	t.Logf("up after %.1f s", time.Since(began).Seconds())
	h, err := s.api.Hosts.Get(t.Context(), string(standMAC))
	if err != nil || h.Arch != inventory.ARM64 || h.Firmware != inventory.UEFI || h.Facts[inventory.FactSecureBoot] != "off" {
		t.Errorf("host %s %s %v, %v", h.Arch, h.Firmware, h.Facts, err)
	}
	b, _ := os.ReadFile(console)
	if want := fmt.Sprintf("slipway.test=%s", standMAC); !strings.Contains(string(b), want) {
		t.Errorf("no %s among the kernel's arguments", want)
	}
}
