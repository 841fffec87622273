package vm

import (
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

// newStand6 is a stand whose wire speaks IPv6 only: its IPv4 subnet is switched off.
func newStand6(t *testing.T) *stand {
	t.Helper()
	s := newStand(t)
	s.in("ip", "addr", "add", "fd77:1::1/64", "dev", standWire, "nodad")
	page, err := s.api.Subnets.List(t.Context(), client.Query{})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("subnets of a first start: %+v, %v", page.Items, err)
	}
	four := page.Items[0]
	four.Mode = inventory.ModeOff
	if _, err := s.api.Subnets.Put(t.Context(), four.Name, four); err != nil {
		t.Fatal(explain(err))
	}
	at := netip.MustParseAddr
	six := inventory.Subnet{
		Name: "six", CIDR: netip.MustParsePrefix("fd77:1::/64"), Interface: standWire, Unknown: inventory.UnknownWait,
		Ranges: []inventory.Range{{First: at("fd77:1::1000"), Last: at("fd77:1::ffff")}},
	}
	six.FillDefaults()
	if _, err := s.api.Subnets.Create(t.Context(), six); err != nil {
		t.Fatal(explain(err))
	}
	return s
}

// ovmf6 is a PC whose firmware does not try PXE over these families of IP.
func (s *stand) ovmf6(without ...string) []string {
	args := s.ovmf("/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.fd")
	i := slices.IndexFunc(args, func(a string) bool { return strings.Contains(a, "PXESupport") })
	args = slices.Delete(args, i-1, i+1)
	for _, family := range without {
		args = append(args, "-fw_cfg", "name=opt/org.tianocore/"+family+"PXESupport,string=n")
	}
	return args
}

// TestUEFIOverIPv6 boots a machine with nothing but IPv6 from its firmware to the kernel: by PXE, whose loader comes over
// TFTP, and by HTTP Boot. iPXE, its script and the files of the image come over IPv6 too.
func TestUEFIOverIPv6(t *testing.T) {
	for _, c := range []struct {
		name, loader string
		without      []string
		isLong       bool
	}{
		{"PXE", "snponly.efi over tftp", []string{"IPv4"}, false},
		{"HTTP Boot", "snponly.efi over http", []string{"IPv4", "IPv6"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.isLong {
				needLong(t)
			}
			s := newStand6(t)
			s.image("six", inventory.X8664, []string{"console=ttyS0", "rdinit=/slipway-init"}, filepath.Join(installer, "linux"), s.labInit())
			s.host("six")
			began := time.Now()
			_, console := s.qemu("qemu-system-x86_64", s.ovmf6(c.without...)...)
			s.event(inventory.EventLoaderSent, c.loader, 10*time.Minute) // HTTP Boot comes after three minutes of IPv4
			t.Logf("loader sent after %.1f s", time.Since(began).Seconds())
			s.event(inventory.EventBootDecided, "image", 2*time.Minute)
			t.Logf("script sent after %.1f s", time.Since(began).Seconds())
			s.event(inventory.EventArtefactSent, "linux", 2*time.Minute)
			s.says(console, "Linux version", 3*time.Minute)
			t.Logf("kernel up after %.1f s", time.Since(began).Seconds())
			s.leases6()
		})
	}
}

// leases6 holds that the machine has one IPv6 address, known by its MAC, and no IPv4 address. Firmware that asks under more
// than one IAID has given the others back.
func (s *stand) leases6() {
	s.t.Helper()
	page, err := s.api.Leases.List(s.t.Context(), client.Query{})
	bound := 0
	for _, l := range page.Items {
		if l.State == inventory.LeaseBound {
			bound++
		}
		if l.MAC != standMAC || !l.Address.Is6() || l.Subnet != "six" {
			s.t.Errorf("lease of another machine or network: %+v", l)
		}
	}
	if err != nil || bound != 1 {
		s.t.Errorf("%d addresses bound, want 1: %+v, %v", bound, page.Items, err)
	}
}
