package vm

import (
	"os"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// pxelinuxPC is a PC with BIOS that starts our pxelinux.0: QEMU's network cards have iPXE in their ROM, which would boot by
// itself, so that an iPXE that is told to take the place of a plain ROM hands over, and with it the boot file that such a
// ROM is offered: PXELINUX looks for all its files beside that.
func pxelinuxPC(t *testing.T) []string {
	t.Helper()
	const ipxe = "/usr/lib/ipxe/ipxe.lkrn"
	for _, path := range []string{"/usr/lib/PXELINUX/pxelinux.0", "/usr/lib/syslinux/modules/bios/ldlinux.c32", ipxe} {
		if _, err := os.Stat(path); err != nil {
			t.Skip("needs packages pxelinux, syslinux-common and ipxe; run: tools/deps.sh install test-vm")
		}
	}
	return append([]string{
		"-machine", "pc,accel=tcg,graphics=off", "-m", "512", "-smbios", "type=1,manufacturer=QEMU,product=Stand,serial=STAND-1",
		"-kernel", ipxe, "-append", "dhcp && set net0.dhcp/filename pxelinux.0 && chain tftp://10.77.0.1/pxelinux.0",
	}, nic()...)
}

// TestPXELINUX boots a BIOS machine by Debian's PXELINUX: it waits while nobody has accepted the machine and asks again, and
// then starts the kernel with RAM disks that are joined to one.
func TestPXELINUX(t *testing.T) {
	needLong(t)
	s := newStand(t)
	s.image("old", inventory.X8664, []string{"console=ttyS0", "rdinit=/slipway-init", "slipway.report=${report}", "slipway.name=${hostname}"},
		installer+"/linux", installer+"/initrd.gz", s.labInit())
	began := time.Now()
	_, console := s.qemu("qemu-system-x86_64", pxelinuxPC(t)...)
	s.says(console, "PXELINUX", time.Minute)
	s.says(console, "not accepted", time.Minute)
	t.Logf("PXELINUX waits after %.1f s", time.Since(began).Seconds())
	if _, err := s.api.Hosts.Accept(t.Context(), string(standMAC)); err != nil {
		t.Fatal(explain(err))
	}
	s.says(console, "no profile matches this host", time.Minute) // it asked again by itself
	s.pin("old")
	s.event(inventory.EventBootDecided, "gives it image old", time.Minute)
	s.event(inventory.EventReported, "up: Linux", 4*time.Minute)
	t.Logf("up after %.1f s", time.Since(began).Seconds())
}

// TestPXELINUXGoesToDisk sends a BIOS machine with PXELINUX to its own disk.
func TestPXELINUXGoesToDisk(t *testing.T) {
	needLong(t)
	s := newStand(t)
	if _, err := s.api.Hosts.Create(t.Context(), inventory.Host{
		Name: "stand", State: inventory.Available, IsAdopted: true, DiskBoot: inventory.DiskExit, NICs: []inventory.NIC{{MAC: standMAC}},
	}); err != nil {
		t.Fatal(explain(err))
	}
	_, console := s.qemu("qemu-system-x86_64", append(pxelinuxPC(t), drive(writeDisk(t, s.dir, "bios.raw", biosDisk()))...)...)
	s.says(console, "boots from its own disk", time.Minute)
	s.says(console, marker, time.Minute)
}
