package redfish

import (
	"strings"
	"testing"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/redfish/redfishtest"
	"slipway.dev/slipway/inventory"
)

// Every quirk has a controller that needs it: what is tried works with it, and does not without it.
func TestEveryQuirkIsNeededByAController(t *testing.T) {
	pxe := func(d *driver) error { return d.SetBoot(t.Context(), bmc.Boot{Device: bmc.PXE}) }
	clear := func(d *driver) error {
		if err := pxe(d); err != nil {
			return err
		}
		return d.SetBoot(t.Context(), bmc.Boot{Device: bmc.None})
	}
	insert := func(d *driver) error { return d.InsertMedia(t.Context(), "http://192.0.2.1/a.iso") }
	eject := func(d *driver) error {
		if err := insert(d); err != nil {
			return err
		}
		return d.EjectMedia(t.Context())
	}
	reserved := redfishtest.IDRAC
	ejected := redfishtest.Supermicro
	ejected.ImageOnly = false
	for name, tc := range map[string]struct {
		dialect redfishtest.Dialect
		try     func(*driver) error
		// lax is how it goes wrong without the quirk, when that is not an error.
		lax func(*driver) bool
	}{
		"supermicro-mode":    {dialect: redfishtest.Supermicro, try: pxe},
		"supermicro-ejected": {dialect: ejected, try: eject},
		"ilo-mode": {dialect: redfishtest.ILO, try: func(d *driver) error {
			err := d.SetBoot(t.Context(), bmc.Boot{Device: bmc.PXE, Mode: inventory.BIOS})
			if bmc.KindOf(err) == inventory.Invalid && strings.Contains(err.Error(), "cannot change that") {
				return nil // says why, before anything is ordered
			}
			return err
		}},
		"ilo-clear":    {dialect: redfishtest.ILO, try: clear},
		"idrac8-once":  {dialect: redfishtest.IDRAC8, try: pxe},
		"idrac-slots":  {dialect: reserved, try: func(d *driver) error { return d.CreateUser(t.Context(), "new", "Abc-123-xyz-9") }, lax: usedSlot1},
		"xcc-media":    {dialect: redfishtest.XCC, try: insert},
		"ami-settings": {dialect: redfishtest.AMI, try: pxe},
	} {
		t.Run(name, func(t *testing.T) {
			var q *quirk
			for i := range quirks {
				if quirks[i].name == name {
					q = &quirks[i]
				}
			}
			if q == nil {
				t.Fatal("there is no such quirk")
			}
			if q.symptom == "" || !strings.HasPrefix(q.source, "https://") {
				t.Errorf("symptom %q and source %q do not explain it", q.symptom, q.source)
			}
			s, d := drives(t, tc.dialect, &redfishtest.Memory{})
			servers[d] = s
			t.Cleanup(func() { delete(servers, d) })
			ok(t, tc.try(d))
			if tc.lax != nil && tc.lax(d) {
				t.Error("it goes wrong with the quirk")
			}
			s, without := drives(t, tc.dialect, &redfishtest.Memory{})
			servers[without] = s
			t.Cleanup(func() { delete(servers, without) })
			apply := q.apply
			q.apply = func(*behaviour) {}
			err := tc.try(without)
			q.apply = apply
			if err == nil && (tc.lax == nil || !tc.lax(without)) {
				t.Error("it goes well without the quirk: nothing shows that it is needed")
			}
		})
		delete(remaining, name)
	}
	for name := range remaining {
		t.Errorf("quirk %s has no test", name)
	}
}

var (
	servers   = map[*driver]*redfishtest.Server{}
	remaining = func() map[string]bool {
		all := map[string]bool{}
		for _, q := range quirks {
			all[q.name] = true
		}
		return all
	}()
)

// usedSlot1 reports whether an account was made in a slot that is reserved.
func usedSlot1(d *driver) bool {
	for _, r := range servers[d].Requests() {
		if r.String() == "PATCH /redfish/v1/AccountService/Accounts/1" {
			return true
		}
	}
	return false
}

func TestOrdersWhileTheFirmwareStartsAreUnavailable(t *testing.T) {
	_, d := drives(t, redfishtest.ILO, &redfishtest.Memory{})
	ok(t, d.SetPower(t.Context(), bmc.On))
	is(t, d.SetBoot(t.Context(), bmc.Boot{Device: bmc.PXE}), inventory.Unavailable)
	ok(t, d.SetBoot(t.Context(), bmc.Boot{Device: bmc.PXE})) // the firmware is through
}

func TestControllersAreKnownByWhatTheySay(t *testing.T) {
	for _, tc := range []struct {
		name  string
		root  string
		maker string
		want  string
	}{
		{"by vendor", `{"Vendor":"Dell"}`, "", "Dell"},
		{"by extension", `{"Oem":{"Hpe":{}}}`, "", "HPE"},
		{"iLO 4 by extension", `{"Oem":{"Hp":{}}}`, "", "HPE"},
		{"MegaRAC under another maker's name", `{"Vendor":"ASRockRack","Product":"AMI Redfish Server"}`, "ASRockRack", "AMI"},
		{"by the machine's maker", `{}`, "Super Micro Computer, Inc.", "Supermicro"},
		{"XClarity", `{"Vendor":"Lenovo"}`, "", "Lenovo"},
		{"as it calls itself", `{"Vendor":"Contoso"}`, "", "Contoso"},
		{"nobody", `{}`, "", ""},
		{"not by a part of a word", `{"Vendor":"Amir Ltd"}`, "", "Amir Ltd"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var root serviceRoot
			ok(t, decode([]byte(tc.root), &root))
			if got := vendorOf(&root, tc.maker); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTheModeStaysWithAControllerThatPutsItBack(t *testing.T) {
	dialect := redfishtest.Supermicro
	dialect.RequiresMode, dialect.ForgetsMode = false, true
	m := &redfishtest.Memory{}
	_, d := drives(t, dialect, m)
	ok(t, d.SetBoot(t.Context(), bmc.Boot{Device: bmc.PXE}))
	ok(t, d.SetBoot(t.Context(), bmc.Boot{Device: bmc.None}))
	ok(t, d.SetBoot(t.Context(), bmc.Boot{Device: bmc.Disk}))
	ok(t, d.SetPower(t.Context(), bmc.On))
	if got := m.Boots(); len(got) != 1 || got[0].Mode != "UEFI" {
		t.Errorf("the machine booted %+v, want UEFI", got)
	}
}
