package net_test

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/option"
)

// optionList reads options as the command line does, and checks them.
func optionList(t *testing.T, owner option.Owner, is6 bool, texts ...string) (all []option.Option) {
	t.Helper()
	for _, s := range texts {
		o, err := inventory.ParseOption(s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	if err := inventory.CheckOptions(owner, "test", "options", all, is6); err != nil {
		t.Fatal(err)
	}
	return all
}

// optionsScript prints what busybox's client was told of the options of the tests below.
const optionsScript = `case "$1" in
bound|renew) echo "bound ip=$ip tftp=$tftp bootfile=$bootfile boot=$boot_file siaddr=$siaddr dns=$dns opt43=$opt43 opt66=$opt66 opt114=$opt114 opt125=$opt125 opt150=$opt150 opt252=$opt252 wpad=$wpad.";;
esac
`

// TestSwitchesAndPhonesAreGivenTheirOptions lets a real client ask as an ONIE switch, as a phone, as a machine with a
// reservation, and as PXE firmware.
func TestSwitchesAndPhonesAreGivenTheirOptions(t *testing.T) {
	r := newRack(t, "udhcpc")
	setup := r.setup()
	setup.Subnets[0].Options = optionList(t, option.OfSubnet, false, "252=http://rack/wpad", "66=subnet.lab", "67=subnet.file", "150=10.77.1.9")
	setup.Classes = []inventory.Class{
		{Name: "switches", VendorClasses: []string{"onie_vendor:*"}, Options: optionList(t, option.OfClass, false,
			"default-url=http://10.77.1.1/onie", "vendor:1=http://10.77.1.1/nos", "vendor:2/uint8=7", "vendor-42623:1=http://10.77.1.1/nos")},
		{Name: "phones", MACPrefixes: []string{mac(2)[:17]}, Options: optionList(t, option.OfClass, false,
			"66=phones.lab", "150=10.77.1.20,10.77.1.21", "6=10.77.1.53", "always:vendor:3=secret")},
	}
	setup.Reservations = []inventory.Reservation{{
		Address: netip.MustParseAddr("10.77.1.50"), Subnet: setup.Subnets[0].Name, MAC: inventory.MAC(mac(3)),
		Options: optionList(t, option.OfReservation, false, "66=mine.lab"),
	}}
	r.serve(r.server, setup)
	ask := func(n int, args ...string) *process {
		c := r.Start(r.machine(n), nil, nil, append([]string{"udhcpc", "-i", "eth0", "-f", "-q", "-n", "-t", "5", "-T", "2", "-s", r.script(optionsScript)}, args...)...)
		c.WaitFor("bound ip=", 1)
		return c
	}
	text := func(s string) string { return hex.EncodeToString([]byte(s)) }
	wants := func(c *process, what ...string) {
		t.Helper()
		for _, w := range what {
			if !strings.Contains(c.Text(), w) {
				t.Errorf("it was not told %q: %s", w, c.Text())
			}
		}
	}
	url := text("http://10.77.1.1/nos")
	wants(ask(1, "-V", "onie_vendor:x86_64-lab_switch-r0", "-O", "43", "-O", "66", "-O", "114", "-O", "125"),
		"opt114="+text("http://10.77.1.1/onie"), "opt43="+"0114"+url+"020107", "opt125="+"0000a67f"+"16"+"0114"+url, "tftp=subnet.lab")
	wants(ask(2, "-O", "66", "-O", "150", "-O", "6"), "tftp=phones.lab", "opt150=0a4d01140a4d0115", "dns=10.77.1.53 ", "opt43=0306"+text("secret"))
	wants(ask(3, "-O", "66", "-O", "252"), "ip=10.77.1.50", "tftp=mine.lab", "wpad=http://rack/wpad")

	// Firmware asks for all that decides what it boots, and gets our answer and nothing of the lists.
	firmware := ask(4, "-V", "PXEClient:Arch:00007:UNDI:003016", "-x", "0x5d:0007", "-x", "0x5e:010300", "-O", "43", "-O", "66", "-O", "67", "-O", "150")
	wants(firmware, "bootfile=snponly.efi", "siaddr=10.77.1.1 ", "opt43= ", "opt150= ")
	if strings.Contains(firmware.Text(), "subnet.") {
		t.Errorf("the list of the subnet changed the boot: %s", firmware.Text())
	}
}
