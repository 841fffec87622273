package redfish

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/redfish/redfishtest"
	"slipway.dev/slipway/inventory"
)

func TestAnOverrideBootsTheMachineFromItOnce(t *testing.T) {
	m := &redfishtest.Memory{}
	_, d := drives(t, redfishtest.Standard, m)
	ok(t, d.SetBoot(t.Context(), bmc.Boot{Device: bmc.HTTP, URI: "http://192.0.2.1/boot.efi"}))
	ok(t, d.SetPower(t.Context(), bmc.On))
	ok(t, d.SetPower(t.Context(), bmc.Cycle))
	want := []redfishtest.Boot{{Target: "UefiHttp", Mode: "UEFI", URI: "http://192.0.2.1/boot.efi"}, {}}
	if diff := cmp.Diff(want, m.Boots()); diff != "" {
		t.Errorf("boots (-want +got):\n%s", diff)
	}
}

func TestAnOverrideThatIsForgottenIsNoSuccess(t *testing.T) {
	s, to := start(t, redfishtest.Options{ForgetsBoot: true})
	d := drive(t, to)
	err := d.SetBoot(t.Context(), bmc.Boot{Device: bmc.PXE})
	is(t, err, inventory.Unavailable)
	if !strings.Contains(err.Error(), `"Disabled"`) {
		t.Errorf("%v does not say what the override is", err)
	}
	looks := 0
	for _, r := range s.Requests() {
		if r.Method == "GET" && strings.HasPrefix(r.Path, "/redfish/v1/Systems/") {
			looks++
		}
	}
	if looks != 2+d.looks { // before, for the tag, and while it is waited for
		t.Errorf("%d looks, want %d", looks, 2+d.looks)
	}
}

func TestAnOverrideThatIsInForceIsNotOrderedAgain(t *testing.T) {
	s, d := drives(t, redfishtest.IDRAC, &redfishtest.Memory{})
	for range 3 {
		ok(t, d.SetBoot(t.Context(), bmc.Boot{Device: bmc.PXE, Mode: inventory.UEFI}))
	}
	patches := 0
	for _, r := range s.Requests() {
		if r.Method == "PATCH" {
			patches++
			if strings.Contains(r.Body, "Mode") {
				t.Errorf("the mode was sent although it is so already: %s", r.Body)
			}
		}
	}
	if patches != 1 {
		t.Errorf("%d PATCHes, want 1: each is a configuration job", patches)
	}
}

func TestHTTPWithoutUefiHttpTakesTheBootOptionOfIPv4(t *testing.T) {
	_, d := drives(t, redfishtest.IDRAC8, &redfishtest.Memory{})
	ok(t, d.SetBoot(t.Context(), bmc.Boot{Device: bmc.HTTP}))
	s, err := d.system(t.Context())
	ok(t, err)
	if s.Boot.Target != "UefiTarget" || !strings.Contains(s.Boot.UefiTarget, "IPv4(") {
		t.Errorf("the override is %s %s", s.Boot.Target, s.Boot.UefiTarget)
	}
}

func TestTheOverrideIsReadInOurWords(t *testing.T) {
	uefi, legacy, uri := "UEFI", "Legacy", "http://192.0.2.1/x.efi"
	for _, tc := range []struct {
		name string
		in   bootSettings
		want bmc.Boot
	}{
		{"nothing at all", bootSettings{}, bmc.Boot{Device: bmc.None}},
		{"disabled with a target left over", bootSettings{Target: "Pxe", Enabled: "Disabled"}, bmc.Boot{Device: bmc.None}},
		{"once", bootSettings{Target: "Pxe", Enabled: "Once", Mode: &legacy}, bmc.Boot{Device: bmc.PXE, Mode: inventory.BIOS}},
		{"for ever", bootSettings{Target: "Hdd", Enabled: "Continuous", Mode: &uefi}, bmc.Boot{Device: bmc.Disk, Mode: inventory.UEFI, IsPersistent: true}},
		{"by HTTP", bootSettings{Target: "UefiHttp", Enabled: "Once", Mode: &uefi, HTTPBootURI: &uri}, bmc.Boot{Device: bmc.HTTP, Mode: inventory.UEFI, URI: uri}},
		{"a device of no name here", bootSettings{Target: "SDCard", Enabled: "Once"}, bmc.Boot{Device: "sdcard"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, bootOf(&tc.in)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
