package proof

import (
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

var (
	sda   = inventory.Disk{Name: "sda", Serial: "S1", WWN: "0x1", SizeBytes: 100}
	sdb   = inventory.Disk{Name: "sdb", Serial: "S2", SizeBytes: 100}
	plain = inventory.Disk{Name: "vda", ByPath: "pci-1", SizeBytes: 50}
	bare  = inventory.Disk{Name: "vdb", SizeBytes: 60}
)

func full(disks ...inventory.Disk) (all []inventory.WipeCertificate) {
	for _, d := range disks {
		all = append(all, inventory.WipeCertificate{Disk: d, Mode: inventory.CleanFull, Method: "overwrite", VerifiedN: 64})
	}
	return all
}

func changed(d inventory.Disk, change func(*inventory.Disk)) inventory.Disk { change(&d); return d }

func but(c []inventory.WipeCertificate, change func(*inventory.WipeCertificate)) []inventory.WipeCertificate {
	change(&c[0])
	return c
}

func TestADiskIsCleanByACertificateOfItsOwnOnly(t *testing.T) {
	all := []inventory.Disk{sda, sdb, plain, bare}
	twins := []inventory.Disk{{Name: "sda", Serial: "0"}, {Name: "sdb", Serial: "0"}}
	for name, c := range map[string]struct {
		owed    []inventory.Disk
		given   []inventory.WipeCertificate
		want    string // part of the faults; "" when it is clean
		isFinal bool
	}{
		"each has one":                     {owed: all, given: full(bare, plain, sdb, sda)},
		"names that changed between boots": {owed: all, given: full(changed(sdb, func(d *inventory.Disk) { d.Name = "sda" }), changed(sda, func(d *inventory.Disk) { d.Name = "sdb" }), plain, bare)},
		"a diskless host owes none":        {},
		"none at all":                      {owed: all, want: "disk sda (serial S1) has no certificate", isFinal: true},
		"one is missing":                   {owed: all, given: full(sda, plain, bare), want: "disk sdb (serial S2) has no certificate", isFinal: true},
		"one twice instead":                {owed: []inventory.Disk{sda, sdb}, given: full(sda, sda), want: "sdb", isFinal: true},
		"twins need one each":              {owed: twins, given: full(twins[0]), want: "no certificate", isFinal: true},
		"twins have one each":              {owed: twins, given: full(twins[1], twins[0])},
		"another serial":                   {owed: []inventory.Disk{sda}, given: full(changed(sda, func(d *inventory.Disk) { d.Serial = "S9" })), want: "S1", isFinal: true},
		"no serial":                        {owed: []inventory.Disk{sda}, given: full(changed(sda, func(d *inventory.Disk) { d.Serial = "" })), want: "S1", isFinal: true},
		"another WWN":                      {owed: []inventory.Disk{sda}, given: full(changed(sda, func(d *inventory.Disk) { d.WWN = "0x9" })), want: "S1", isFinal: true},
		"nothing printed, another place":   {owed: []inventory.Disk{plain}, given: full(changed(plain, func(d *inventory.Disk) { d.ByPath = "pci-2" })), want: "at pci-1", isFinal: true},
		"nothing printed, another size":    {owed: []inventory.Disk{bare}, given: full(changed(bare, func(d *inventory.Disk) { d.SizeBytes = 1 })), want: "disk vdb", isFinal: true},
		"another mode": {
			owed: []inventory.Disk{sda}, given: but(full(sda), func(c *inventory.WipeCertificate) { c.Mode = inventory.CleanQuick }),
			want: "mode quick, and the expected one is full", isFinal: true,
		},
		"no mode":     {owed: []inventory.Disk{sda}, given: but(full(sda), func(c *inventory.WipeCertificate) { c.Mode = "" }), want: "mode unknown", isFinal: true},
		"not wiped":   {owed: []inventory.Disk{sda}, given: but(full(sda), func(c *inventory.WipeCertificate) { c.Method = "none" }), want: "was not wiped", isFinal: true},
		"kept":        {owed: []inventory.Disk{sda}, given: but(full(sda), func(c *inventory.WipeCertificate) { c.IsKept = true }), want: "was kept", isFinal: true},
		"an error":    {owed: []inventory.Disk{sda}, given: but(full(sda), func(c *inventory.WipeCertificate) { c.Error = "EIO" }), want: "EIO"},
		"a new disk":  {owed: []inventory.Disk{sda}, given: full(sda, sdb)},
		"a bad new":   {owed: []inventory.Disk{sda}, given: but(full(sdb, sda), func(c *inventory.WipeCertificate) { c.Error = "EIO" }), want: "sdb (serial S2) is not clean"},
		"a bad drive": {owed: []inventory.Disk{sda}, given: but(full(changed(sdb, func(d *inventory.Disk) { d.IsReadOnly, d.Transport = true, "usb" }), sda), func(c *inventory.WipeCertificate) { c.Error = "EIO" })},
	} {
		faults, isFinal := Unclean(c.owed, inventory.CleanFull, nil, c.given)
		got := strings.Join(faults, "; ")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) || isFinal != c.isFinal {
			t.Errorf("%s: %q, final %v", name, got, isFinal)
		}
	}
}

func TestKeptAndVirtualDisksOweNoCertificate(t *testing.T) {
	hw := inventory.Hardware{
		Disks:        []inventory.Disk{sda, sdb, {Name: "sdc", IsReadOnly: true, IsRemovable: true}},
		MissingDisks: []inventory.Disk{plain, {Name: "sdz", Serial: "Z"}},
	}
	owed := Owed(hw, []inventory.DiskHint{{Serial: "S2"}, {Serial: "Z"}})
	if len(owed) != 2 || owed[0].Name != "sda" || owed[1].Name != "vda" {
		t.Errorf("owed %+v", owed)
	}
}

func TestADiskThatIsGoneStaysMissingUntilItIsBack(t *testing.T) {
	stick := inventory.Disk{Name: "sdx", Serial: "X", Transport: "usb", IsRemovable: true}
	last := inventory.Hardware{Disks: []inventory.Disk{sda, stick}, MissingDisks: []inventory.Disk{sdb}}
	if m := Missing(last, inventory.Hardware{}); len(m) != 2 {
		t.Errorf("of a machine that says it has none: %+v", m)
	}
	if m := Missing(last, inventory.Hardware{Disks: []inventory.Disk{changed(sdb, func(d *inventory.Disk) { d.Name = "sda" })}}); len(m) != 1 || m[0].Serial != "S1" {
		t.Errorf("when one is back: %+v", m)
	}
}

func TestABurnInHasPassedOnlyIfEverythingWasLoadedForAsLongAsAsked(t *testing.T) {
	hw := inventory.Hardware{Disks: []inventory.Disk{sda}, Ports: []inventory.Port{{MAC: "52:54:00:00:00:01", HasLink: true}, {MAC: "52:54:00:00:00:02"}}}
	good := func() inventory.BurnIn {
		b := inventory.BurnIn{ForSeconds: 100}
		for _, n := range []string{"cpu", "memory", "disk sda", "port 52:54:00:00:00:01"} {
			b.Tests = append(b.Tests, inventory.BurnInTest{Name: n, Passed: true, Seconds: 100})
		}
		return b
	}
	for want, c := range map[string]struct {
		passed time.Duration
		change func(*inventory.BurnIn)
	}{
		"":                             {100 * time.Second, func(*inventory.BurnIn) {}},
		"reported after 1s":            {time.Second, func(*inventory.BurnIn) {}},
		"lasted 3 s":                   {100 * time.Second, func(b *inventory.BurnIn) { b.ForSeconds = 3 }},
		"test cpu is missing":          {100 * time.Second, func(b *inventory.BurnIn) { b.Tests = b.Tests[1:] }},
		"test memory ran for 0 s":      {100 * time.Second, func(b *inventory.BurnIn) { b.Tests[1].Seconds = 0 }},
		"0 of 1 disks were tested":     {100 * time.Second, func(b *inventory.BurnIn) { b.Tests[2].Name = "cpu" }},
		"port 52:54:00:00:00:01 was n": {100 * time.Second, func(b *inventory.BurnIn) { b.Tests = b.Tests[:3] }},
	} {
		b := good()
		c.change(&b)
		if got := strings.Join(Untested(b, 100*time.Second, c.passed, hw), "; "); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("want %q, got %q", want, got)
		}
	}
}

func TestAnImageIsWrittenByItsDigestOnADiskOfTheHost(t *testing.T) {
	const digest = "sha256:aa"
	hw := &inventory.Hardware{Disks: []inventory.Disk{sda, sdb}}
	good := Written{Disk: sda, Digest: digest, IsSeeded: true}
	for _, c := range []struct {
		w      Written
		digest string
		hw     *inventory.Hardware
		want   string
	}{
		{good, digest, hw, ""},
		{good, digest, nil, ""},
		{good, "", hw, ""},
		{Written{Disk: sda, IsSeeded: true}, digest, hw, "digest unknown"},
		{Written{Disk: sda, IsSeeded: true}, "", hw, "does not say the digest"},
		{Written{Disk: sda, Digest: "sha256:bb", IsSeeded: true}, digest, hw, "sha256:bb"},
		{Written{Disk: sda, Digest: digest}, digest, hw, "its configuration is not"},
		{Written{Disk: sdb, Digest: digest, IsSeeded: true}, digest, hw, "is to be kept"},
		{Written{Disk: plain, Digest: digest, IsSeeded: true}, digest, hw, "no such disk"},
	} {
		if got := Unwritten(c.w, c.digest, true, c.hw, []inventory.DiskHint{{Serial: "S2"}}); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q", c.w, got)
		}
	}
}

func TestAMachineIsTheOneThatWasInspected(t *testing.T) {
	system := func(uuid, serial string) inventory.System { return inventory.System{UUID: uuid, Serial: serial} }
	for _, c := range []struct {
		known, said inventory.System
		want        string
	}{
		{system("", ""), system("u", "s"), ""},
		{system("U", "s"), system("u", "s"), ""},
		{system("u", "s"), system("u", ""), ""},
		{system("u", "s"), system("", "s"), "does not say its UUID"},
		{system("u", "s"), system("v", "s"), "has the UUID v"},
		{system("u", "s"), system("u", "t"), "serial number t"},
		{system("", "s"), system("u", "t"), "serial number t"},
		{system("", "s"), system("u", ""), "does not say its serial"},
	} {
		if got := OtherMachine(c.known, c.said); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("known %+v, said %+v: %q", c.known, c.said, got)
		}
	}
}
