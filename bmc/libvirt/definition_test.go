package libvirt

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

const head = `<domain type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <name>web-1</name>
  <uuid>98f16aa9-55f1-4861-863d-985ebe4c5b9f</uuid>
`

const devices = `  <devices>
    <disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='/d.img'/><target dev='vda' bus='virtio'/>%vda%</disk>
    <disk type='file' device='disk'><source file='/e.img'/><target dev='vdb' bus='virtio'/>%vdb%</disk>
    <disk type="file" device='cdrom'><target dev='sda' bus='sata'/><readonly/>%sda%</disk>
    <interface type='user'><mac address='52:54:00:aa:00:01'/><model type='virtio'/>%nic0%</interface>
    <interface type='user'><mac address='52:54:00:aa:00:02'/>%nic1%</interface>
  </devices>
  <qemu:commandline><qemu:arg value='-boot'/></qemu:commandline>
</domain>`

// xmlOf writes a domain; boots are the boot elements of os and of the devices by name.
func xmlOf(metadata, os string, boots map[string]string) string {
	var pairs []string
	for _, name := range []string{"vda", "vdb", "sda", "nic0", "nic1"} {
		pairs = append(pairs, "%"+name+"%", boots[name])
	}
	return head + metadata + "  <os>\n    <type arch='x86_64' machine='q35'>hvm</type>\n" + os + "  </os>\n" + strings.NewReplacer(pairs...).Replace(devices)
}

func order(d *definition) (keys []string) {
	for _, dev := range d.effective() {
		keys = append(keys, dev.key())
	}
	return keys
}

func mustParse(t *testing.T, text string) *definition {
	t.Helper()
	d, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const (
	vda, vdb, sda = "disk vda", "disk vdb", "disk sda"
	nic0, nic1    = "interface 52:54:00:aa:00:01", "interface 52:54:00:aa:00:02"
)

func TestOverridesChangeTheOrderAndLeaveEverythingElse(t *testing.T) {
	perDevice := map[string]string{"vdb": "<boot order='2'/>", "nic1": "<boot order='5'/>"}
	for _, c := range []struct {
		name           string
		metadata, os   string
		boots          map[string]string
		device         bmc.Device
		macs           []inventory.MAC
		before, within []string
	}{
		{"a list in os means the first of each kind", "", "<boot dev='hd'/>\n<boot dev='network'/>\n", nil, bmc.PXE, nil, []string{vda, nic0}, []string{nic0, vda}},
		{"no order at all", "", "", nil, bmc.Disk, nil, nil, []string{vda}},
		{"no order at all, and a NIC we know", "", "", nil, bmc.PXE, []inventory.MAC{"52:54:00:aa:00:02"}, nil, []string{nic1}},
		{"orders of devices, the NIC in it goes first", "", "", perDevice, bmc.PXE, []inventory.MAC{"52:54:00:aa:00:01"}, []string{vdb, nic1}, []string{nic1, vdb}},
		{"orders of devices, the disk stays first", "", "", perDevice, bmc.Disk, nil, []string{vdb, nic1}, []string{vdb, nic1}},
		{"a CD-ROM drive that was not in the order", "", "", perDevice, bmc.Virtual, nil, []string{vdb, nic1}, []string{sda, vdb, nic1}},
		{"metadata of others stays", "<metadata><x:y xmlns:x='urn:x'><x:z/></x:y></metadata>\n", "<boot dev='hd'/>\n", nil, bmc.PXE, nil, []string{vda}, []string{nic0, vda}},
		{"empty metadata", "<metadata/>\n", "<boot dev='hd'/>\n", nil, bmc.PXE, nil, []string{vda}, []string{nic0, vda}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := mustParse(t, xmlOf(c.metadata, c.os, c.boots))
			if diff := cmp.Diff(c.before, order(before)); diff != "" {
				t.Fatalf("before:\n%s", diff)
			}
			text, err := before.set(bmc.Boot{Device: c.device}, c.macs)
			if err != nil {
				t.Fatal(err)
			}
			within := mustParse(t, text)
			if diff := cmp.Diff(c.within, order(within)); diff != "" {
				t.Errorf("with the override:\n%s\n%s", diff, text)
			}
			if !strings.Contains(text, `<qemu:arg value="-boot"/>`) || strings.Contains(c.metadata, "x:z") && !strings.Contains(text, "<x:z/>") {
				t.Errorf("something else changed:\n%s", text)
			}
			after := mustParse(t, within.restored())
			if diff := cmp.Diff(before.former(), after.former()); diff != "" {
				t.Errorf("after:\n%s", diff)
			}
			if after.override != nil || strings.Contains(after.text(), "slipway") {
				t.Errorf("our note is still there:\n%s", after.text())
			}
		})
	}
}

func TestASecondOverrideKeepsTheFirstFormerOrder(t *testing.T) {
	d := mustParse(t, xmlOf("", "<boot dev='hd'/>", nil))
	before := d.former()
	for _, dev := range []bmc.Device{bmc.PXE, bmc.Virtual, bmc.Disk} {
		text, err := d.set(bmc.Boot{Device: dev, IsPersistent: dev == bmc.Disk}, nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := mustParse(t, text).set(bmc.Boot{Device: dev, IsPersistent: dev == bmc.Disk}, nil)
		if err != nil || again != "" {
			t.Errorf("%s: the same override changes the definition again (%v)", dev, err)
		}
		d = mustParse(t, text)
		if diff := cmp.Diff(before, d.override.Former); diff != "" {
			t.Errorf("%s:\n%s", dev, diff)
		}
	}
}

func TestADeviceThatWentMeanwhileIsNotMissed(t *testing.T) {
	d := mustParse(t, xmlOf("", "", map[string]string{"vdb": "<boot order='1'/>", "nic0": "<boot order='2'/>"}))
	text, err := d.set(bmc.Boot{Device: bmc.PXE}, nil)
	if err != nil {
		t.Fatal(err)
	}
	gone := mustParse(t, strings.Replace(text, `dev="vdb"`, `dev="vdz"`, 1))
	if diff := cmp.Diff([]string{nic0}, order(mustParse(t, gone.restored()))); diff != "" {
		t.Error(diff)
	}
}

func TestOverridesThatAreRefused(t *testing.T) {
	bios := mustParse(t, xmlOf("", "", nil))
	uefi := mustParse(t, xmlOf("", "<loader readonly='yes' type='pflash'>/OVMF.fd</loader>", nil))
	if uefi.firmware() != inventory.UEFI || bios.firmware() != inventory.BIOS {
		t.Errorf("firmware is read as %s and %s", uefi.firmware(), bios.firmware())
	}
	if _, err := bios.set(bmc.Boot{Device: bmc.PXE, Mode: inventory.UEFI}, nil); bmc.KindOf(err) != inventory.Invalid {
		t.Errorf("UEFI on a BIOS machine: %v", err)
	}
	bare := mustParse(t, "<domain><name>x</name><os></os><devices></devices></domain>")
	for _, dev := range []bmc.Device{bmc.PXE, bmc.Disk, bmc.Virtual} {
		if _, err := bare.set(bmc.Boot{Device: dev}, nil); bmc.KindOf(err) != inventory.Invalid {
			t.Errorf("%s without such a device: %v", dev, err)
		}
	}
}

func TestMediaAreWrittenAndReadBack(t *testing.T) {
	d := mustParse(t, xmlOf("", "", nil))
	drive, err := d.drive()
	if err != nil {
		t.Fatal(err)
	}
	source := newDocument()
	if err := source.ReadFromString("<source protocol='http' name='a.iso' query='x=1'><host name='192.0.2.1' port='80'/></source>"); err != nil {
		t.Fatal(err)
	}
	got := drive.refill("network", source.Root())
	full := mustParse(t, strings.Replace(d.text(), textOf(drive.Element), got, 1))
	drive, _ = full.drive()
	if link := drive.link(); link != "http://192.0.2.1/a.iso?x=1" {
		t.Errorf("the drive holds %q after\n%s", link, got)
	}
	if !strings.Contains(got, `<disk type="network" device="cdrom">`) || !strings.Contains(got, "<readonly/>") {
		t.Errorf("the drive is now\n%s", got)
	}
	if empty := drive.refill("file", nil); strings.Contains(empty, "source") || strings.Contains(empty, "192.0.2.1") {
		t.Errorf("the empty drive is\n%s", empty)
	}
}

func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"":                                   "unix " + strings.Join(sockets, ",") + " qemu:///system",
		"qemu:///system":                     "unix " + strings.Join(sockets, ",") + " qemu:///system",
		"qemu+unix:///system?socket=/run/x":  "unix /run/x qemu:///system",
		"qemu+unix:///session?socket=/run/x": "unix /run/x qemu:///session",
		"unix:///run/x":                      "unix /run/x qemu:///system",
		"qemu+tcp://10.0.0.5/system":         "tcp 10.0.0.5:16509 qemu:///system",
		"qemu+tcp://[2001:db8::1]:99/system": "tcp [2001:db8::1]:99 qemu:///system",
		"qemu+ssh://host/system":             "invalid",
		"qemu+tls://host/system":             "invalid",
		"qemu://host/system":                 "invalid",
		"qemu+tcp://me:pw@host/system":       "invalid",
		"qemu:///session":                    "invalid",
		"qemu+tcp:///system":                 "invalid",
		"qemu:///system?no_verify=1":         "invalid",
		"xen:///system":                      "invalid",
		"unix:relative":                      "invalid",
		"\x7f":                               "invalid",
	} {
		e, err := parseAddress(address)
		got := e.network + " " + strings.Join(e.addresses, ",") + " " + string(e.uri)
		if err != nil {
			got = string(bmc.KindOf(err))
			if strings.Contains(err.Error(), "pw") {
				t.Errorf("%q: the error tells the password", address)
			}
		}
		if got != want {
			t.Errorf("%q: %s; want %s", address, got, want)
		}
	}
}

func TestOptionsAreStrict(t *testing.T) {
	for name, b := range map[string]inventory.BMC{
		"no system": {Address: "qemu:///system"},
		"an option": {Address: "qemu:///system", System: "x", Options: map[string]string{"a": "b"}},
		"ssh":       {Address: "qemu+ssh://h/system", System: "x"},
	} {
		if _, err := Open(bmc.Target{BMC: b}); bmc.KindOf(err) != inventory.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func frame(size uint32, payload string) string {
	b := make([]byte, headSize)
	binary.BigEndian.PutUint32(b, size)
	return string(b) + payload
}

func TestPacketsOfImpossibleSizesEndTheConnection(t *testing.T) {
	for name, c := range map[string]struct {
		wire string
		ok   bool
	}{
		"two packets":            {frame(headSize+3, "abc") + frame(headSize, ""), true},
		"shorter than a header":  {frame(headSize-1, ""), false},
		"no length":              {frame(0, ""), false},
		"4 GiB":                  {frame(1<<32-1, ""), false},
		"the second is too long": {frame(headSize+3, "abc") + frame(frameLimit+1, ""), false},
	} {
		for _, step := range []int{1, 7, 1000} {
			near, far := net.Pipe()
			go func() {
				for b := c.wire; b != ""; {
					n := min(step, len(b))
					if _, err := far.Write([]byte(b[:n])); err != nil {
						break
					}
					b = b[n:]
				}
				_ = far.Close()
			}()
			_, err := io.Copy(io.Discard, &framed{Conn: near})
			if (err == nil) != c.ok {
				t.Errorf("%s in steps of %d: %v", name, step, err)
			}
		}
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte(frame(headSize+3, "abc")), 5)
	f.Fuzz(func(t *testing.T, b []byte, step int) {
		var whole, pieces framed
		a := whole.follow(b)
		var e error
		step = max(1, step%64)
		for p := b; len(p) > 0 && e == nil; p = p[min(step, len(p)):] {
			e = pieces.follow(p[:min(step, len(p))])
		}
		if (a == nil) != (e == nil) {
			t.Errorf("in one piece: %v, in pieces: %v", a, e)
		}
	})
}

func FuzzDefinitions(f *testing.F) {
	f.Add(xmlOf("", "<boot dev='hd'/>", map[string]string{"nic0": "<boot order='2'/>"}))
	f.Add(xmlOf("<metadata><a/></metadata>", "", nil))
	f.Add("<domain><os/><devices><disk/></devices></domain>")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parse(text)
		if err != nil {
			return
		}
		_ = d.inventory(time.Time{})
		for _, dev := range []bmc.Device{bmc.PXE, bmc.Disk, bmc.Virtual, bmc.None} {
			changed, err := d.set(bmc.Boot{Device: dev}, nil)
			if err != nil || changed == "" {
				continue
			}
			if again, err := parse(changed); err == nil && again.override != nil {
				_ = again.restored()
			}
		}
		if drive, err := d.drive(); err == nil {
			_ = drive.refill("file", nil)
		}
	})
}
