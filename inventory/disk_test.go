package inventory

import (
	"strings"
	"testing"
)

func TestADiskHintMatchesWhatItSays(t *testing.T) {
	yes, no := true, false
	d := Disk{
		Name: "sda", ByPath: "pci-0000:00:1f.2-ata-1", Serial: "S4XY", WWN: "0x5000c500a0b1c2d3", Vendor: "ATA", Model: "Samsung SSD 970",
		Transport: "sata", SizeBytes: 500,
	}
	for _, c := range []struct {
		about string
		hint  DiskHint
		want  bool
	}{
		{"nothing asked for", DiskHint{}, true},
		{"its name", DiskHint{Name: "sda"}, true},
		{"its name with the folder", DiskHint{Name: "/dev/sda"}, true},
		{"another name", DiskHint{Name: "sdb"}, false},
		{"the beginning of its name", DiskHint{Name: "sd"}, false},
		{"its path with the folder", DiskHint{ByPath: "/dev/disk/by-path/pci-0000:00:1f.2-ata-1"}, true},
		{"its serial in another case, with spaces", DiskHint{Serial: " s4xy "}, true},
		{"part of its serial", DiskHint{Serial: "S4X"}, false},
		{"its WWN", DiskHint{WWN: "0x5000C500A0B1C2D3"}, true},
		{"another WWN", DiskHint{WWN: "0x5"}, false},
		{"its vendor", DiskHint{Vendor: "ata"}, true},
		{"another vendor", DiskHint{Vendor: "LSI"}, false},
		{"part of its model", DiskHint{Model: "ssd"}, true},
		{"another model", DiskHint{Model: "hdd"}, false},
		{"its transport", DiskHint{Transport: "SATA"}, true},
		{"another transport", DiskHint{Transport: "nvme"}, false},
		{"just as large", DiskHint{MinBytes: 500, MaxBytes: 500}, true},
		{"larger", DiskHint{MinBytes: 501}, false},
		{"smaller", DiskHint{MaxBytes: 499}, false},
		{"solid state", DiskHint{IsRotational: &no}, true},
		{"rotating", DiskHint{IsRotational: &yes}, false},
		{"one of two things", DiskHint{Serial: "S4XY", Model: "hdd"}, false},
	} {
		if got := c.hint.Matches(d); got != c.want {
			t.Errorf("%s: matches is %v", c.about, got)
		}
	}
}

func TestADiskHintIsSaidInWords(t *testing.T) {
	yes := true
	for want, h := range map[string]DiskHint{
		"any disk":            {},
		"serial S1, model X":  {Serial: "S1", Model: "X"},
		"at least 5 bytes":    {MinBytes: 5},
		"rotational true":     {IsRotational: &yes},
		"at most 7 bytes":     {MaxBytes: 7},
		"name sda, by-path p": {Name: "sda", ByPath: "p"},
		"wwn w, vendor v":     {WWN: "w", Vendor: "v"},
		"transport nvme":      {Transport: "nvme"},
	} {
		if got := h.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestCleanModesGrowStricter(t *testing.T) {
	if got := CleanModes(); got[0] != CleanNone || got[len(got)-1] != CleanSecure || len(got) != 4 {
		t.Errorf("modes are %v", got)
	}
	if (&Operation{State: OpDone}).IsOpen() || (&Operation{State: OpFailed}).IsOpen() || (&Operation{State: OpCancelled}).IsOpen() ||
		!(&Operation{State: OpRunning}).IsOpen() || !(&Operation{State: OpWaiting}).IsOpen() {
		t.Error("an operation is open while it runs or waits")
	}
}

func validBMC() *BMC {
	return &BMC{
		HostID: "h", Driver: Redfish, Address: "https://10.0.0.5", Username: "admin", MAC: "52:54:00:00:00:01",
		Fingerprint: strings.Repeat("ab:", 31) + "ab", Options: map[string]string{"a": "b"},
	}
}

func TestBMCValidate(t *testing.T) {
	testValidate(t, validBMC, (*BMC).Validate, []invalid[BMC]{
		{"a driver that is none", func(b *BMC) { b.Driver = "magic" }, `"magic" is not a way to power`},
		{"no URL", func(b *BMC) { b.Address = "10.0.0.5" }, "not the URL of a redfish"},
		{"another scheme", func(b *BMC) { b.Address = "ftp://10.0.0.5" }, "not the URL"},
		{"a password in the URL", func(b *BMC) { b.Address = "https://root:calvin@10.0.0.5" }, "not the URL"},
		{"IPMI without an address", func(b *BMC) { b.Driver, b.Address = IPMI, "" }, "IPMI"},
		{"IPMI with a URL", func(b *BMC) { b.Driver = IPMI }, "IPMI"},
		{"a domain that is not named", func(b *BMC) { b.Driver, b.Address = Libvirt, "qemu:///system" }, "domain"},
		{"a MAC in another spelling", func(b *BMC) { b.MAC = "52-54-00-00-00-01" }, "not a MAC"},
		{"a fingerprint of another hash", func(b *BMC) { b.Fingerprint = "abcd" }, "not a SHA-256"},
		{"a control character", func(b *BMC) { b.Username = "a\x1b" }, "username"},
		{"a long option", func(b *BMC) { b.Options["a"] = strings.Repeat("x", 4096) }, `option "a"`},
		{"too many options", func(b *BMC) {
			for i := range 33 {
				b.Options[strings.Repeat("x", i+1)] = ""
			}
		}, "options"},
	})
	for _, b := range []BMC{
		{Driver: IPMI, Address: "10.0.0.5:623"},
		{Driver: Libvirt, Address: "qemu:///system", System: "vm1"},
		{Driver: WoL},
		{Driver: Manual},
		{Driver: FakeBMC},
		{Driver: Webhook, Address: "http://pdu/1"},
	} {
		if err := b.Validate(); err != nil {
			t.Errorf("%s: %v", b.Driver, err)
		}
	}
}
