package redfish

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/redfish/redfishtest"
	"slipway.dev/slipway/inventory"
)

func TestTheInventoryIsToldInOurWords(t *testing.T) {
	_, d := drives(t, redfishtest.Standard, &redfishtest.Memory{})
	got, err := d.Inventory(t.Context())
	ok(t, err)
	want := bmc.Inventory{
		Vendor: "Contoso", Model: "Joo Janta 200", Firmware: "4.4.6521",
		Hardware: inventory.Hardware{
			Source: "bmc",
			System: inventory.System{
				Manufacturer: "Contoso", Product: "3500RX", Version: "8675309", Serial: "SN-437XR1138R2", UUID: "38947555-7742-3448-3784-823347823834",
			},
			Firmware: inventory.FirmwareInfo{Kind: inventory.UEFI, Version: "P79 v1.45", IsSecureBoot: true, SecureBootDB: []inventory.Certificate{
				{Name: "Microsoft Corporation UEFI CA 2011", EndsAt: time.Date(2026, 6, 27, 21, 32, 45, 0, time.UTC)},
				{Name: "Microsoft UEFI CA 2023", EndsAt: time.Date(2038, 6, 13, 19, 31, 47, 0, time.UTC)},
			}},
			CPU:         inventory.CPU{Arch: inventory.X8664, Vendor: "Intel(R) Corporation", Model: "Xeon Gold 6338", Sockets: 2, Cores: 64, Threads: 128, MHz: 3200},
			MemoryBytes: 96 << 30,
			DIMMs: []inventory.DIMM{
				{Slot: "DIMM A1", SizeBytes: 48 << 30, Type: "DDR5", SpeedMTs: 4800, Manufacturer: "Hynix", Part: "HMCG78", Serial: "D0000"},
				{Slot: "DIMM A2", SizeBytes: 48 << 30, Type: "DDR5", SpeedMTs: 4800, Manufacturer: "Hynix", Part: "HMCG78", Serial: "D0001"},
			},
			Disks: []inventory.Disk{
				{Name: "Disk 0", Vendor: "Samsung", Model: "PM9A3", Serial: "S64G0001", Firmware: "GDC5", WWN: "36344730", Transport: "nvme", SizeBytes: 1920383410176, SectorBytes: 512, Health: "ok"},
				{Name: "Disk 1", Model: "ST8000", Transport: "sata", IsRotational: true, SizeBytes: 8001563222016, Health: "warning"},
			},
			Ports: []inventory.Port{{Name: "NIC.1", MAC: "52:54:00:aa:00:01", SpeedMbps: 25000, HasLink: true, MTU: 1500}},
			TPM:   &inventory.TPM{Version: "2.0"},
			BMC:   &inventory.BMCFacts{Address: "192.0.2.10", MAC: "12:44:6a:3b:04:11", Firmware: "4.4.6521", Vendor: "Contoso", IsStatic: true, VLAN: 101},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnInventoryLeavesOutWhatCannotBeRead(t *testing.T) {
	s, d := drives(t, redfishtest.Standard, &redfishtest.Memory{})
	s.Script(redfishtest.Fault{Path: "/Memory", Do: redfishtest.Status(500)}, redfishtest.Fault{Path: "/Processors", Do: redfishtest.Body("]")})
	got, err := d.Inventory(t.Context())
	ok(t, err)
	if len(got.Hardware.DIMMs) > 0 || len(got.Hardware.Disks) != 2 || got.Hardware.CPU.Sockets != 2 {
		t.Errorf("DIMMs %v, disks %v, CPU %+v", got.Hardware.DIMMs, got.Hardware.Disks, got.Hardware.CPU)
	}
}

func TestSensorsAreReadTheOldWayAndTheNew(t *testing.T) {
	common := []bmc.Sensor{
		{Name: "CPU1 Temp", Kind: "temperature", Value: 41.5, Unit: "Cel", Status: "ok"},
		{Name: "Fan 1", Kind: "fan", Value: 8200, Unit: "RPM", Status: "warning"},
		{Name: "Fan 2", Kind: "fan", Status: "absent"},
	}
	for _, tc := range []struct {
		dialect redfishtest.Dialect
		want    []bmc.Sensor
	}{
		{redfishtest.IDRAC, append(common[:3:3], bmc.Sensor{Name: "VRM1", Kind: "voltage", Value: 12.1, Unit: "V", Status: "ok"}, bmc.Sensor{Name: "System Power", Kind: "power", Value: 344, Unit: "W", Status: "ok"})},
		{redfishtest.OpenBMC, []bmc.Sensor{common[0], {Name: "Fan 1", Kind: "rotational", Value: 8200, Unit: "RPM", Status: "warning"}, {Name: "Fan 2", Kind: "rotational", Unit: "RPM", Status: "absent"}}},
	} {
		_, d := drives(t, tc.dialect, &redfishtest.Memory{})
		got, err := d.Sensors(t.Context())
		ok(t, err)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.dialect.Name, diff)
		}
		if health, err := d.Health(t.Context()); err != nil || health != "warning" {
			t.Errorf("health is %q, %v", health, err)
		}
	}
}

func TestTheLogIsOfHardwareEventsNewestFirst(t *testing.T) {
	for _, dialect := range redfishtest.Dialects() {
		_, d := drives(t, dialect, &redfishtest.Memory{})
		got, err := d.Log(t.Context(), 10)
		ok(t, err)
		want := []bmc.LogEntry{
			{ID: "2", At: "2026-11-03T10:00:00Z", Severity: "critical", Message: "Fan 1 failed."},
			{ID: "3", At: "2026-11-02T10:00:00Z", Severity: "warning", Message: "Fan 1 is slow."},
			{ID: "1", At: "2026-11-01T09:00:00Z", Severity: "ok", Message: "Power supply 1 is back."},
			{ID: "4", Severity: "ok", Message: "The clock was lost."},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", dialect.Name, diff)
		}
		ok(t, d.ClearLog(t.Context()))
		if got, err = d.Log(t.Context(), 10); err != nil || len(got) > 0 {
			t.Errorf("%s: after it was cleared the log has %v, %v", dialect.Name, got, err)
		}
	}
}

func TestTheLEDIsLit(t *testing.T) {
	for _, dialect := range redfishtest.Dialects() {
		_, d := drives(t, dialect, &redfishtest.Memory{})
		for _, on := range []bool{true, false} {
			ok(t, d.Locate(t.Context(), on))
			var l led
			ok(t, d.read(t.Context(), d.path, &l))
			isLit := l.LocationIndicatorActive != nil && *l.LocationIndicatorActive || l.IndicatorLED != nil && *l.IndicatorLED == "Blinking"
			if isLit != on {
				t.Errorf("%s: the LED is %v, want %v", dialect.Name, isLit, on)
			}
		}
	}
}

func TestAnImageThatTheControllerDropsIsNoSuccess(t *testing.T) {
	s, d := drives(t, redfishtest.Standard, &redfishtest.Memory{})
	s.Script(redfishtest.Fault{Path: "InsertMedia", Do: redfishtest.Pretend()})
	is(t, d.InsertMedia(t.Context(), "http://192.0.2.1/a.iso"), inventory.Unavailable)
}

func TestAnotherImageIsTakenOutFirst(t *testing.T) {
	for _, dialect := range redfishtest.Dialects() {
		m := &redfishtest.Memory{}
		_, d := drives(t, dialect, m)
		ok(t, d.InsertMedia(t.Context(), "http://192.0.2.1/a.iso"))
		ok(t, d.InsertMedia(t.Context(), "http://192.0.2.1/b.iso"))
		if m.Image() != "http://192.0.2.1/b.iso" {
			t.Errorf("%s: the drive holds %q", dialect.Name, m.Image())
		}
	}
}

func TestOnlyAnAdministratorPassesTheCheck(t *testing.T) {
	for _, tc := range []struct {
		name, accounts string
		kind           inventory.Kind
	}{
		{"an administrator", `{"Members":[{"@odata.id":"/redfish/v1/A/1","UserName":"slipway","RoleId":"Administrator"}]}`, ""},
		{"an operator", `{"Members":[{"@odata.id":"/redfish/v1/A/1","UserName":"slipway","RoleId":"Operator"}]}`, inventory.Unauthorized},
		{"someone of a directory who sees others", `{"Members":[{"@odata.id":"/redfish/v1/A/1","UserName":"root","RoleId":"Administrator"}]}`, ""},
		{"someone who sees nobody", `{"Members":[]}`, inventory.Unauthorized},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, d := drives(t, redfishtest.Standard, &redfishtest.Memory{})
			s.Script(redfishtest.Fault{Path: "/AccountService/Accounts", Do: redfishtest.Body(tc.accounts)})
			if err := d.CheckCredentials(t.Context()); tc.kind != "" {
				is(t, err, tc.kind)
			} else {
				ok(t, err)
			}
		})
	}
}

func TestADriverGoesOnWithThePasswordItSet(t *testing.T) {
	s, d := drives(t, redfishtest.IDRAC, &redfishtest.Memory{})
	ok(t, d.SetPassword(t.Context(), "slipway", "Abc-123-xyz-9"))
	s.EndSessions()
	ok(t, d.CheckCredentials(t.Context()))
	is(t, d.DeleteUser(t.Context(), "slipway"), inventory.Invalid)
}

func TestACollectionIsBounded(t *testing.T) {
	s, d := drives(t, redfishtest.IDRAC8, &redfishtest.Memory{})
	page := `{"Members":[` + strings.TrimSuffix(strings.Repeat(`{"@odata.id":"/redfish/v1/x","Message":"m"},`, 100), ",") + `],"Members@odata.nextLink":"/redfish/v1/Managers/iDRAC.Embedded.1/LogServices/Sel/Entries"}`
	s.Script(redfishtest.Fault{Path: "/Entries", Do: redfishtest.Body(page)})
	got, err := d.Log(t.Context(), 1<<20)
	ok(t, err)
	if len(got) != 100 { // the page that leads to itself is read once
		t.Errorf("%d entries, want 100", len(got))
	}
	empty := `{"Members":[],"Members@odata.nextLink":"/redfish/v1/Managers/iDRAC.Embedded.1/LogServices/Sel/Entries"}`
	s.Script(redfishtest.Fault{Path: "/Entries", Do: redfishtest.Body(empty)})
	before := len(s.Requests())
	_, err = d.Log(t.Context(), 10)
	ok(t, err)
	if n := len(s.Requests()) - before; n > 10 {
		t.Errorf("%d requests for pages in a circle", n)
	}
}

func TestNewestTakesWhatItIsGiven(t *testing.T) {
	docs := []timed{entryOf([]byte(`{"Id":5,"Message":"\u0007bell","Created":"tomorrow"}`)), entryOf([]byte(`{"Created":"2026-01-01T00:00:00Z","Name":"n"}`))}
	want := []bmc.LogEntry{{At: "2026-01-01T00:00:00Z", Message: "n"}}
	if diff := cmp.Diff(want, newest(docs, 1)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
