package vm

import (
	"bytes"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

// newStandBeside is a stand whose addresses come from a dnsmasq at 10.77.0.2; the server only says what to boot.
func newStandBeside(t *testing.T) *stand {
	t.Helper()
	s := unplugged(t, "port")
	other := s.ns + "d"
	s.run("ip", "netns", "add", other)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", other).Run() })
	s.in("ip", "link", "add", standWire, "address", "52:54:00:f1:00:f0", "type", "bridge", "mcast_snooping", "0")
	s.in("ip", "link", "set", "port", "master", standWire, "up")
	s.in("ip", "link", "add", "far", "type", "veth", "peer", "name", "eth0", "netns", other)
	s.in("ip", "link", "set", "far", "master", standWire, "up")
	s.run("ip", "-n", other, "addr", "add", "10.77.0.2/24", "dev", "eth0")
	s.run("ip", "-n", other, "link", "set", "eth0", "up")
	s.begin()
	page, err := s.api.Subnets.List(t.Context(), client.Query{})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("subnets of a first start: %+v, %v", page.Items, err)
	}
	wire := page.Items[0]
	wire.Mode, wire.Ranges = inventory.ModeProxy, nil
	if _, err := s.api.Subnets.Put(t.Context(), wire.Name, wire); err != nil {
		t.Fatal(explain(err))
	}
	s.dnsmasq(other)
	return s
}

// dnsmasq runs the network's own DHCP server; it knows nothing of booting.
func (s *stand) dnsmasq(ns string) {
	s.t.Helper()
	conf := filepath.Join(s.t.TempDir(), "dnsmasq.conf")
	text := "port=0\nno-ping\nlog-dhcp\nuser=root\npid-file=\nlog-facility=-\ndhcp-range=10.77.0.100,10.77.0.120,255.255.255.0,1h\ndhcp-leasefile=" + conf + ".leases\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	var words bytes.Buffer
	cmd := exec.Command("ip", "netns", "exec", ns, "dnsmasq", "-k", "--conf-file="+conf)
	cmd.Stdout, cmd.Stderr = &words, &words
	s.t.Cleanup(func() { // after it has ended
		if s.t.Failed() {
			s.t.Logf("dnsmasq:\n%s", words.String())
		}
	})
	s.start(cmd)
}

// bios is a PC with SeaBIOS and the iPXE that is in QEMU's network cards.
func bios() []string {
	return []string{
		"-machine", "pc,accel=tcg", "-m", "512", "-smbios", "type=1,manufacturer=QEMU,product=Stand,serial=STAND-1",
		"-device", "virtio-net-pci,netdev=n,bootindex=1,mac=" + string(standMAC),
	}
}

// TestFirmwareBesideAnotherServer boots a machine on a network whose addresses come from dnsmasq, as far as the kernel.
func TestFirmwareBesideAnotherServer(t *testing.T) {
	for _, c := range []struct {
		name   string
		loader string // "" if the card brings iPXE along
		args   func(s *stand) []string
	}{
		{"BIOS", "", func(*stand) []string { return bios() }},
		{"UEFI", "snponly.efi over tftp", func(s *stand) []string {
			return s.ovmf("/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.fd")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStandBeside(t)
			s.image("beside", inventory.X8664, []string{"console=ttyS0", "rdinit=/slipway-init"}, filepath.Join(installer, "linux"), s.labInit())
			s.host("beside")
			began := time.Now()
			_, console := s.qemu("qemu-system-x86_64", c.args(s)...)
			if c.loader != "" {
				s.event(inventory.EventLoaderSent, c.loader, 2*time.Minute)
			}
			s.event(inventory.EventBootDecided, "image", 2*time.Minute)
			s.event(inventory.EventArtefactSent, "linux", time.Minute)
			s.says(console, "Linux version", 2*time.Minute)
			t.Logf("kernel up after %.1f s", time.Since(began).Seconds())
			s.leasedByTheOther()
		})
	}
}

// leasedByTheOther holds that we gave no address, and know the one that dnsmasq gave.
func (s *stand) leasedByTheOther() {
	s.t.Helper()
	leases, err := s.api.Leases.List(s.t.Context(), client.Query{})
	if err != nil || len(leases.Items) != 0 {
		s.t.Errorf("leases of ours: %+v, %v", leases.Items, err)
	}
	page, err := s.api.Sessions.List(s.t.Context(), client.Query{Host: string(standMAC), Limit: 1})
	if err != nil || len(page.Items) != 1 {
		s.t.Fatalf("sessions: %+v, %v", page.Items, err)
	}
	first, last := netip.MustParseAddr("10.77.0.100"), netip.MustParseAddr("10.77.0.120")
	if at := page.Items[0].Address; at.Less(first) || last.Less(at) {
		s.t.Errorf("the boot's address is %s, want one of %s to %s", at, first, last)
	}
}
