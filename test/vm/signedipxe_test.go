package vm

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
	"unicode/utf16"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// Firmware that trusts one key alone, whose secret half comes with it in package ovmf.
const (
	ownCode = "/usr/share/OVMF/OVMF_CODE_4M.secboot.fd"
	ownVars = "/usr/share/OVMF/OVMF_VARS_4M.snakeoil.fd"
	ownKey  = "/usr/share/ovmf/PkKek-1-snakeoil.key"
	ownCert = "/usr/share/ovmf/PkKek-1-snakeoil.pem"
)

// signer signs PE files with the key that the firmware trusts.
func signer(t *testing.T) func(from, to string) {
	t.Helper()
	if _, err := exec.LookPath("sbsign"); err != nil {
		t.Skip("needs package sbsigntool; run: tools/deps.sh install test-vm")
	}
	key := filepath.Join(t.TempDir(), "key")
	if out, err := exec.Command("openssl", "rsa", "-in", ownKey, "-passin", "pass:snakeoil", "-out", key).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return func(from, to string) {
		t.Helper()
		if out, err := exec.Command("sbsign", "--key", key, "--cert", ownCert, "--output", to, from).CombinedOutput(); err != nil {
			t.Fatalf("sign %s: %v: %s", from, err, out)
		}
	}
}

// shimFor writes a copy of Debian's shim, unsigned, that asks for another second stage, as iPXE's own shim does.
func shimFor(t *testing.T, second, to string) {
	t.Helper()
	shim, err := os.ReadFile("/usr/lib/shim/shimx64.efi")
	if err != nil {
		t.Skip("needs package shim-signed")
	}
	wide := func(s string) (b []byte) {
		for _, c := range utf16.Encode([]rune(s)) {
			b = binary.LittleEndian.AppendUint16(b, c)
		}
		return b
	}
	was, is := wide("grubx64.efi"), wide(second)
	if bytes.Count(shim, was) != 1 || len(is) > len(was) {
		t.Fatalf("Debian's shim names its second stage %d times", bytes.Count(shim, was))
	}
	shim = bytes.Replace(shim, was, append(is, make([]byte, len(was)-len(is))...), 1)
	if err := os.WriteFile(to, shim, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestSignedIPXE boots with Secure Boot on by signed iPXE, which an admin supplies: the firmware checks the shim, the shim
// iPXE, which finds its autoexec.ipxe here; and the distribution's shim checks the kernel, which comes over HTTP. Debian has
// no iPXE that Microsoft signed, so the firmware trusts another key, and everything is signed with that.
func TestSignedIPXE(t *testing.T) {
	needLong(t)
	ipxe, _ := filepath.Abs("../../build/ipxe/ipxe.efi")
	if _, err := os.Stat(ipxe); err != nil {
		t.Skip("needs iPXE 2.0; get it with: tools/ipxe.sh")
	}
	sign, dir := signer(t), t.TempDir()
	bare := filepath.Join(t.TempDir(), "shim.efi")
	shimFor(t, "ipxe.efi", bare)
	sign(bare, filepath.Join(dir, "ipxe-shimx64.efi"))
	sign(ipxe, filepath.Join(dir, "ipxe.efi"))
	sign("/usr/lib/shim/shimx64.efi", filepath.Join(dir, "shimx64.efi"))

	s := newStand(t, "--loaders", dir, "--config", config(t, "quirks: [{firmware: uefi, loader: ipxe-shimx64.efi, why: test}]\n"))
	kernel := filepath.Join(installer, "linux")
	args := []string{"console=ttyS0", "rdinit=/slipway-init", "slipway.report=${report}", "slipway.name=${hostname}"}
	s.image("signed", inventory.X8664, args, kernel, filepath.Join(installer, "initrd.gz"), s.labInit())
	s.image("unsigned", inventory.X8664, args, s.unsigned(kernel), s.labInit())
	s.host("unsigned")
	began := time.Now()
	_, console := s.qemu("qemu-system-x86_64", s.ovmf(ownCode, ownVars)...)
	s.event(inventory.EventLoaderSent, "ipxe-shimx64.efi over tftp", 2*time.Minute)
	s.event(inventory.EventLoaderSent, "ipxe.efi over tftp", time.Minute)
	s.event(inventory.EventLoaderSent, "autoexec.ipxe over tftp", time.Minute)
	t.Logf("iPXE found its script after %.1f s", time.Since(began).Seconds())
	s.event(inventory.EventBootDecided, "Secure Boot is on, and nobody signed the kernel of image unsigned", time.Minute) // iPXE says that it is on
	if h, err := s.api.Hosts.Get(t.Context(), string(standMAC)); err != nil || h.Facts[inventory.FactSecureBoot] != pxe.SecureBootOn {
		t.Errorf("what iPXE said: facts %v, %v", h.Facts, err)
	}
	s.pin("signed")
	s.event(inventory.EventReported, "up: Linux", 4*time.Minute)
	s.says(console, "Secure boot enabled", 10*time.Second)
	t.Logf("signed kernel up after %.1f s", time.Since(began).Seconds())
}
