package vm

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// secureDisk is a disk as Debian installs it for Secure Boot: signed shim, signed GRUB, whose configuration says the marker.
func secureDisk(t *testing.T) string {
	t.Helper()
	files := map[string][]byte{}
	for name, path := range map[string]string{"shim": "/usr/lib/shim/shimx64.efi.signed", "grub": grubPath} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = b
	}
	disk, err := efiDisk(dir{"DEBIAN": dir{"SHIMX64.EFI": files["shim"], "GRUBX64.EFI": files["grub"], "GRUB.CFG": markerConfig()}})
	if err != nil {
		t.Fatal(err)
	}
	return writeDisk(t, t.TempDir(), "secure.raw", disk)
}

// plainOVMF is a PC with UEFI that checks no signatures.
func (s *stand) plainOVMF() []string {
	return s.ovmf("/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.fd")
}

// serialBIOS is bios with its screen on the serial port.
func serialBIOS() []string {
	args := bios()
	args[1] += ",graphics=off"
	return args
}

// TestMenu chooses at the consoles of real machines: with iPXE under BIOS and UEFI, and with GRUB under Secure Boot, where
// the machine's own disk is reached by its own signed loader.
func TestMenu(t *testing.T) {
	needLong(t)
	for _, c := range []struct {
		name    string   // without a comma, at which an option of QEMU ends: folders are named by it
		quirks  string   // of the configuration file
		menu    string   // what is waited for before a key is pressed
		keys    []string // of its keyboard
		machine func(s *stand) []string
		booted  func(s *stand, console string)
	}{
		{
			name: "BIOS to its own disk", menu: "Boot from its own disk", keys: []string{"down", "ret"},
			machine: func(s *stand) []string {
				return append(serialBIOS(), drive(writeDisk(s.t, s.dir, "bios.raw", biosDisk()))...)
			},
			booted: func(s *stand, console string) {
				s.event(inventory.EventBootDecided, "its own disk, chosen in the boot menu", time.Minute)
				s.says(console, marker, time.Minute)
			},
		},
		{
			name: "BIOS to the memory test", menu: "Test the memory", keys: []string{"down", "down", "down", "ret"},
			machine: func(*stand) []string { return append(serialBIOS(), "-device", "VGA") },
			booted: func(s *stand, _ string) {
				s.until("the memory test is on the screen", 2*time.Minute, func(context.Context) bool { return strings.Contains(s.screen(), "Memtest86+") })
			},
		},
		{
			name: "BIOS and nobody chooses", menu: "Boot from its own disk",
			machine: func(*stand) []string { return serialBIOS() },
			booted: func(s *stand, console string) {
				s.event(inventory.EventBootDecided, "gives it image usual", 2*time.Minute)
				s.says(console, "slipway.usual", 2*time.Minute)
			},
		},
		{
			name: "UEFI to rescue", menu: "Rescue system: agent-x86-64", keys: []string{"down", "down", "ret"},
			machine: func(s *stand) []string { return s.plainOVMF() },
			booted: func(s *stand, console string) {
				s.event(inventory.EventBootDecided, "the rescue system, chosen in the boot menu", time.Minute)
				s.says(console, "slipway.rescue slipway.debug=shell", 2*time.Minute)
			},
		},
		{
			name: "UEFI to the memory test", menu: "Test the memory", keys: []string{"down", "down", "down", "ret"},
			machine: func(s *stand) []string { return append(s.plainOVMF(), "-device", "VGA") },
			booted: func(s *stand, _ string) {
				s.until("the memory test is on the screen", 2*time.Minute, func(context.Context) bool { return s.blue() > 50 })
			},
		},
		{
			name: "Secure Boot and GRUB to its own disk", quirks: "quirks: [{firmware: uefi, loader: shimx64.efi, why: test}]\n",
			menu: "Boot from its own disk", keys: []string{"down", "ret"},
			machine: func(s *stand) []string {
				return append(s.ovmf(secureCode, secureVars), drive(secureDisk(s.t))...)
			},
			booted: func(s *stand, console string) {
				s.event(inventory.EventBootDecided, "its own disk, chosen in the boot menu", time.Minute)
				s.says(console, marker, 2*time.Minute)
			},
		},
		{
			name: "Secure Boot and GRUB and nobody chooses", quirks: "quirks: [{firmware: uefi, loader: shimx64.efi, why: test}]\n",
			menu:    "Boot from its own disk",
			machine: func(s *stand) []string { return s.ovmf(secureCode, secureVars) },
			booted: func(s *stand, console string) {
				s.event(inventory.EventBootDecided, "gives it image usual", 2*time.Minute)
				s.says(console, "slipway.usual", 3*time.Minute)
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			patience := "2m"
			if c.keys == nil {
				patience = "4s"
			}
			flags := []string{"--boot-menu", patience}
			if c.quirks != "" {
				flags = append(flags, "--config", config(t, c.quirks))
			}
			s := newStand(t, flags...)
			kernel := filepath.Join(installer, "linux")
			s.image("usual", inventory.X8664, []string{"console=ttyS0", "rdinit=/slipway-init", "slipway.usual"}, kernel, s.labInit())
			s.image(inventory.AgentImage(inventory.X8664), inventory.X8664, []string{"console=ttyS0", "rdinit=/slipway-init", "slipway.rescue"}, kernel, s.labInit())
			s.host("usual")
			began := time.Now()
			_, console := s.qemu("qemu-system-x86_64", c.machine(s)...)
			s.says(console, c.menu, 3*time.Minute)
			t.Logf("menu after %.1f s", time.Since(began).Seconds())
			if c.keys != nil {
				for _, k := range c.keys {
					s.order("sendkey " + k)
					time.Sleep(time.Second) // SeaBIOS takes what a serial terminal sends slowly for single keys, the first of which leaves the menu
				}
			}
			c.booted(s, console)
			t.Logf("booted after %.1f s", time.Since(began).Seconds())
		})
	}
}
