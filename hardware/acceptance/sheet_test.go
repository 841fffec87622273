package acceptance

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var at = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func body(t *testing.T, v any) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// good is a server with nothing against it.
func good(t *testing.T) Input {
	hw := inventory.Hardware{
		CollectedAt: at.Add(-3 * time.Hour), Source: "agent",
		System:   inventory.System{Manufacturer: "Dell Inc.", Product: "PowerEdge R750", Serial: "7XK2P53", UUID: "4c4c4544-0058-4b10-8032-b7c04f503533", BoardSerial: "CNIVC002"},
		Firmware: inventory.FirmwareInfo{Kind: inventory.UEFI, Vendor: "Dell Inc.", Version: "1.14.1", ReleasedAt: "04/02/2024", IsSecureBoot: true},
		CPU:      inventory.CPU{Arch: inventory.X8664, Vendor: "GenuineIntel", Model: "Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz", Sockets: 2, Cores: 64, Threads: 128, Microcode: "0xd0003d1"},
		TPM:      &inventory.TPM{Version: "2.0", Vendor: "NTC"},
		BMC:      &inventory.BMCFacts{Address: "10.9.0.7", MAC: "52:54:00:bb:00:01", Firmware: "7.10.50.00"},
		Ports: []inventory.Port{
			{Name: "eno1", MAC: "52:54:00:aa:00:01", Driver: "ice", SpeedMbps: 25000, HasLink: true, Neighbour: &inventory.Neighbour{System: "leaf-1", Port: "Eth1/7", VLAN: 10}},
			{Name: "eno2", MAC: "52:54:00:aa:00:02", Driver: "ice"},
		},
		Accelerators: []inventory.PCIDevice{{Address: "0000:ca:00.0", ID: "10de:20b5", Class: "030200", Vendor: "NVIDIA", Model: "A100 PCIe 80GB"}},
	}
	for i := range 16 {
		hw.DIMMs = append(hw.DIMMs, inventory.DIMM{Slot: string(rune('A'+i%2)) + string(rune('1'+i/2)), SizeBytes: 32 << 30, Type: "DDR4", SpeedMTs: 3200, Manufacturer: "Hynix", Part: "HMA84GR7DJR4N-XN"})
	}
	var certificates []inventory.WipeCertificate
	for i, serial := range []string{"S64GNE0R700111", "S64GNE0R700112", "S64GNE0R700113", "S64GNE0R700114"} {
		d := inventory.Disk{
			Name: "nvme" + string(rune('0'+i)) + "n1", Model: "SAMSUNG MZQL23T8HCLS-00A07", Serial: serial, Firmware: "GDC5602Q", Transport: "nvme",
			SizeBytes: 3_840_755_982_336, Health: "ok", Contents: "empty",
		}
		hw.Disks = append(hw.Disks, d)
		certificates = append(certificates, inventory.WipeCertificate{
			Disk: d, Mode: inventory.CleanSecure, Method: "nvme-sanitize", Bytes: d.SizeBytes, VerifiedN: 1024, StartedAt: "2026-11-21T08:00:00Z", Seconds: 42.5,
		})
	}
	return Input{
		At: at, Site: "ams1",
		Host: inventory.Host{
			ID: "0193a7c0-0000-7000-8000-000000000007", Name: "r1-07", State: inventory.Available, AssetTag: "DC-004711",
			Place: inventory.Place{Site: "ams1", Row: "a", Rack: "r1", Unit: 7}, Labels: map[string]string{"zone": "a"},
			NICs: []inventory.NIC{{MAC: "52:54:00:aa:00:01"}},
		},
		Inspection: &inventory.Inspection{N: 2, At: at.Add(-3 * time.Hour), Hardware: hw, Golden: "r750-storage"},
		BMC:        &inventory.BMC{Driver: inventory.Redfish, Address: "https://10.9.0.7", Username: "admin", Sealed: []byte("sealed"), IsReachable: true, Vendor: "Dell", Model: "iDRAC9", Power: inventory.PowerOff, CheckedAt: at.Add(-time.Minute)},
		Reports: []inventory.Report{
			{ID: "01A/wipe", Kind: "wipe", CreatedAt: at.Add(-2 * time.Hour), Body: body(t, certificates)},
			{ID: "01B/burn-in", Kind: "burn-in", CreatedAt: at.Add(-time.Hour), Body: body(t, inventory.BurnIn{ForSeconds: 14400, Tests: []inventory.BurnInTest{
				{Name: "cpu", Passed: true, Detail: "128 threads, no error", Seconds: 3600},
				{Name: "memory", Passed: true, Detail: "512 GiB in 3 passes", Seconds: 7200, Rate: 88.4, Unit: "GB/s"},
				{Name: "disk nvme0n1", Passed: true, Detail: "read end to end", Seconds: 600, Rate: 6400, Unit: "MB/s"},
			}})},
			{ID: "00Z/install", Kind: "install", Machine: "web-3", CreatedAt: at.Add(-90 * 24 * time.Hour), Body: json.RawMessage(`{"image":"debian-12","bytes":2147483648,"disk":"S64GNE0R700111"}`)},
		},
	}
}

// bad is a server with about everything against it.
func bad(t *testing.T) Input {
	in := good(t)
	in.Host.State, in.Host.StateReason, in.Host.InMaintenance = inventory.Failed, "three installations in a row failed", true
	i := in.Inspection
	i.Faults = []string{"has less than 1 TiB of memory: 512 GiB"}
	i.Changes = []inventory.HardwareChange{{Kind: "removed", What: "dimm B8", Old: "32 GiB"}}
	i.Hardware.Disks[3].Health = "failing: 12 reallocated sectors"
	i.Hardware.Disks = append(i.Hardware.Disks,
		inventory.Disk{Name: "sda", Serial: "Z1", SizeBytes: 960e9}, inventory.Disk{Name: "sdb", Serial: "USB1", SizeBytes: 16e9, IsRemovable: true})
	i.Hardware.PCI = []inventory.PCIDevice{{Address: "0000:17:00.0", ID: "1000:00e5", Vendor: "Broadcom", IsMissingDriver: true}}
	var certificates []inventory.WipeCertificate
	if err := json.Unmarshal(in.Reports[0].Body, &certificates); err != nil {
		t.Fatal(err)
	}
	certificates[0].Error, certificates[1].IsKept, certificates[1].Method, certificates[2].VerifiedN = "sanitize stopped at 40 %", true, "kept", 0
	gone := certificates[3]
	gone.Disk.Serial, gone.Disk.Name = "S64GNE0R700099", "nvme4n1"
	in.Reports[0].Body = body(t, append(certificates, gone))
	in.Reports[1].Body = body(t, inventory.BurnIn{ForSeconds: 600, Tests: []inventory.BurnInTest{{Name: "memory", Detail: "wrong bit at 0x7f00", Seconds: 71}}})
	in.BMC.IsReachable, in.BMC.Reason = false, "no answer from 10.9.0.7"
	in.Issues = []inventory.Issue{
		{ID: 2, Type: inventory.IssueGolden, Severity: inventory.SeverityError, HostIDs: []inventory.HostID{in.Host.ID}, Cause: "it is not r750-storage", Hint: "add memory", OpenedAt: at},
		{ID: 1, Type: inventory.IssueInstall, Severity: inventory.SeverityError, HostIDs: []inventory.HostID{in.Host.ID}, Cause: "the installation failed", Hint: "see its log", OpenedAt: at},
		{ID: 3, Type: inventory.IssueIdentityConflict, Severity: inventory.SeverityWarning, HostIDs: []inventory.HostID{in.Host.ID}, Cause: "r1-08 has the same UUID", Hint: "nothing: hosts are told apart by MAC", OpenedAt: at},
		{ID: 4, Severity: inventory.SeverityError, HostIDs: []inventory.HostID{"another"}, Cause: "not about it", OpenedAt: at},
		{ID: 5, Severity: inventory.SeverityError, HostIDs: []inventory.HostID{in.Host.ID}, Cause: "closed", OpenedAt: at, ClosedAt: at},
	}
	return in
}

func TestTheSheetIsAsItWas(t *testing.T) {
	for name, in := range map[string]Input{"accepted": good(t), "refused": bad(t), "unknown": {At: at, Host: inventory.Host{ID: "x", Name: "new-1", State: inventory.Discovered}}} {
		t.Run(name, func(t *testing.T) {
			sheet := New(in)
			page, err := sheet.HTML()
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.MarshalIndent(sheet, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".golden.html", page)
			golden(t, name+".golden.json", append(text, '\n'))
		})
	}
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	name := filepath.Join("testdata", file)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s changed (-want +got); if that is right, run with -update:\n%s", name, d)
	}
}

func TestTheVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		change func(in *Input)
		want   []string
	}{
		"a good host is accepted":                                   {func(*Input) {}, nil},
		"it was never accepted":                                     {func(in *Input) { in.Host.State = inventory.Discovered }, []string{"nobody has accepted the host"}},
		"it is in quarantine":                                       {func(in *Input) { in.Host.State, in.Host.StateReason = inventory.Failed, "a disk died" }, []string{"it is in quarantine: a disk died"}},
		"it was used since it was wiped":                            {func(in *Input) { in.Host.IsDirty = true }, []string{"something was installed on it since it was last wiped"}},
		"a machine that is meant to be on it is nothing against it": {func(in *Input) { in.Host.IsDirty, in.Host.Machine = true, "web-1" }, nil},
		"it was never inspected":                                    {func(in *Input) { in.Inspection = nil }, []string{"it was never inspected"}},
		"faults against golden hardware":                            {func(in *Input) { in.Inspection.Faults = []string{"has 3 disks and not 4"} }, []string{"it has 3 disks and not 4"}},
		"a disk without a certificate": {
			func(in *Input) { in.Inspection.Hardware.Disks[1].Serial = "NEW" },
			[]string{"disk NEW (nvme1n1) has no certificate of a wipe"},
		},
		"a disk that only swapped its name keeps its certificate": {
			func(in *Input) {
				d := in.Inspection.Hardware.Disks
				d[0].Name, d[1].Name = d[1].Name, d[0].Name
			}, nil,
		},
		"no burn-in":                    {func(in *Input) { in.Reports = slices.Delete(in.Reports, 1, 2) }, []string{"there is no burn-in"}},
		"an empty burn-in":              {func(in *Input) { in.Reports[1].Body = json.RawMessage(`{"forSeconds":1}`) }, []string{"the burn-in has tested nothing"}},
		"a burn-in that cannot be read": {func(in *Input) { in.Reports[1].Body = json.RawMessage(`{`) }, []string{"burn-in report 01B/burn-in cannot be read"}},
		"only the newest burn-in counts": {
			func(in *Input) {
				in.Reports = append(in.Reports, inventory.Report{ID: "0", Kind: "burn-in", CreatedAt: at.Add(-99 * time.Hour), Body: json.RawMessage(`{"tests":[{"name":"cpu"}]}`)})
			}, nil,
		},
		"a wipe that failed after one that did not": {
			func(in *Input) {
				c := inventory.WipeCertificate{Disk: in.Inspection.Hardware.Disks[0], Mode: inventory.CleanQuick, Error: "I/O error"}
				text, _ := json.Marshal([]inventory.WipeCertificate{c})
				in.Reports = append(in.Reports, inventory.Report{ID: "02", Kind: "wipe", CreatedAt: at, Body: text})
			},
			[]string{"disk S64GNE0R700111 (nvme0n1) is not clean: I/O error"},
		},
		"a BMC that does not answer":   {func(in *Input) { in.BMC.IsReachable, in.BMC.Reason = false, "timeout" }, []string{"its BMC is not reachable: timeout"}},
		"no BMC is nothing against it": {func(in *Input) { in.BMC = nil }, nil},
		"an open error": {func(in *Input) {
			in.Issues = []inventory.Issue{{Severity: inventory.SeverityError, Cause: "boot loop"}}
		}, []string{"open issue: boot loop"}},
		"an open warning is only told": {func(in *Input) {
			in.Issues = []inventory.Issue{{Severity: inventory.SeverityWarning, Cause: "same UUID"}}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := good(t)
			c.change(&in)
			s := New(in)
			if d := cmp.Diff(c.want, s.Reasons); d != "" || s.IsAccepted != (c.want == nil) {
				t.Errorf("accepted %v, -want +got:\n%s", s.IsAccepted, d)
			}
		})
	}
}

func TestTwinDisksEachNeedTheirCertificate(t *testing.T) {
	in := good(t)
	twin := inventory.Disk{Name: "sda", Serial: "0001", SizeBytes: 1e12}
	other := twin
	other.Name = "sdb"
	in.Inspection.Hardware.Disks = []inventory.Disk{twin, other}
	cert := inventory.WipeCertificate{Disk: twin, Mode: inventory.CleanFull, Method: "overwrite", VerifiedN: 9}
	in.Reports[0].Body = body(t, []inventory.WipeCertificate{cert})
	if s := New(in); s.IsAccepted || !slices.Contains(s.Reasons, "disk 0001 (sdb) has no certificate of a wipe") {
		t.Errorf("one certificate served two disks: %v", s.Reasons)
	}
	in.Reports = append(in.Reports, inventory.Report{ID: "00/wipe", Kind: "wipe", CreatedAt: at.Add(-99 * time.Hour), Body: in.Reports[0].Body})
	if s := New(in); s.IsAccepted {
		t.Error("an older certificate of the one served the other")
	}
	in.Reports[0].Body = body(t, []inventory.WipeCertificate{cert, cert})
	if s := New(in); !s.IsAccepted {
		t.Errorf("two certificates did not: %v", s.Reasons)
	}
}

// hostile sets every text that can be reached to markup.
func hostile(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Pointer:
		if !v.IsNil() {
			hostile(v.Elem(), text)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			for i := range v.Len() {
				hostile(v.Index(i), text)
			}
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			v.SetMapIndex(k, reflect.Value{})
		}
		v.SetMapIndex(reflect.ValueOf(text), reflect.ValueOf(text))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				hostile(v.Field(i), text)
			}
		}
	}
}

var tags = regexp.MustCompile(`<[^>]*>`)

func TestNothingThatAMachineSaysBecomesMarkup(t *testing.T) {
	clean, err := New(bad(t)).HTML()
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{`<span class="tag warn">`: true, `<span class="tag no">`: true, `<br>`: true}
	for _, tag := range tags.FindAllString(string(clean), -1) {
		allowed[tag] = true
	}
	for _, text := range []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `</style><script>x</script>`, `</title><svg onload=x>`,
		`{{.Host.ID}}<b>`, "' onmouseover='x", `javascript:alert(1)<a href="x">`, "<!--", "]]><x>",
	} {
		s := New(bad(t))
		hostile(reflect.ValueOf(&s).Elem(), text)
		for i := range s.Installs {
			s.Installs[i].Body = body(t, map[string]string{text: text})
		}
		page, err := s.HTML()
		if err != nil {
			t.Fatal(err)
		}
		for _, tag := range tags.FindAllString(string(page), -1) {
			if !allowed[tag] {
				t.Errorf("%q became the tag %s", text, tag)
			}
		}
		if strings.Contains(string(page), text) && strings.ContainsAny(text, "<>\"'") {
			t.Errorf("%q stands in the page as it is", text)
		}
	}
}

func TestThePageNeedsNothingElse(t *testing.T) {
	page, err := New(good(t)).HTML()
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for _, banned := range []string{"<script", "<link", "<img", "<iframe", "url(", "@import", "http://", "onclick", "style="} {
		if strings.Contains(text, banned) {
			t.Errorf("the page has %q", banned)
		}
	}
	if !strings.Contains(text, "<style>"+styleText+"</style>") {
		t.Error("the style is not as its hash in the policy says")
	}
	for _, need := range []string{"prefers-color-scheme: dark", "@page { size: A4", "<!doctype html>"} {
		if !strings.Contains(text, need) {
			t.Errorf("the page lacks %q", need)
		}
	}
	if !strings.HasPrefix(text, "<!doctype html>") {
		t.Errorf("the page begins with %.40q", text)
	}
}

func TestNoSecretIsOnTheSheet(t *testing.T) {
	s := New(good(t))
	page, err := s.HTML()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(page), string(body(t, s))} {
		for _, secret := range []string{"admin", "sealed", "c2VhbGVk"} {
			if strings.Contains(text, secret) {
				t.Errorf("the sheet has %q", secret)
			}
		}
	}
}

func TestTheDigestChangesWithTheContent(t *testing.T) {
	a, b := New(good(t)), New(good(t))
	if a.Digest() != b.Digest() || a.Digest() == "" {
		t.Errorf("the same sheet has digests %q and %q", a.Digest(), b.Digest())
	}
	b.Disks[0].Wipe.VerifiedN++
	if a.Digest() == b.Digest() {
		t.Error("another sheet has the same digest")
	}
}
