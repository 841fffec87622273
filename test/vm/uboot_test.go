package vm

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// TestUBoot boots an emulated arm64 board by Debian's U-Boot, whose prompt is asked to boot from the network: nobody has
// accepted the board at first, which its console says; then it fetches kernel and RAM disk.
func TestUBoot(t *testing.T) {
	needLong(t)
	dir := arm64Dir(t)
	const uboot = "/usr/lib/u-boot/qemu_arm64/u-boot.bin"
	if _, err := os.Stat(uboot); err != nil {
		t.Skip("needs package u-boot-qemu; run: tools/deps.sh install test-vm")
	}
	s := newStand(t)
	s.image("board", inventory.ARM64, []string{"console=ttyAMA0"}, filepath.Join(dir, "linux"), s.armInit())
	began := time.Now()
	_, console := s.qemu("qemu-system-aarch64", append(armBoard(), "-bios", uboot)...)
	s.says(console, "Hit any key to stop autoboot", time.Minute)
	s.press(" ")
	s.says(console, "=> ", 10*time.Second)
	// A board without a stored environment has the MAC of U-Boot's own, whatever its card says.
	s.press("setenv -f ethaddr "+string(standMAC), keyEnter, "setenv autoload no", keyEnter, "dhcp; pxe get; pxe boot; echo TRIED ONCE", keyEnter)
	s.says(console, "waits: not accepted", time.Minute)
	s.says(console, "TRIED ONCE\r\n=>", time.Minute) // it goes on to whatever is next
	t.Logf("told to wait after %.1f s", time.Since(began).Seconds())
	if _, err := s.api.Hosts.Accept(t.Context(), string(standMAC)); err != nil {
		t.Fatal(explain(err))
	}
	s.pin("board")
	s.press("pxe get; pxe boot", keyEnter)
	s.event(inventory.EventBootDecided, "gives it image board", time.Minute)
	s.says(console, "SLIPWAY ARM64 is up", 4*time.Minute)
	t.Logf("up after %.1f s", time.Since(began).Seconds())
	h, err := s.api.Hosts.Get(t.Context(), string(standMAC))
	if err != nil || h.Arch != inventory.ARM64 {
		t.Errorf("host %+v, %v", h, err)
	}
}
