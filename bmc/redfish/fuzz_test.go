package redfish

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// parrot answers every request with the same status and bytes.
type parrot struct {
	status int
	body   []byte
}

func (p parrot) RoundTrip(r *http.Request) (*http.Response, error) {
	h := http.Header{"X-Auth-Token": {"t"}, "Location": {"/redfish/v1/s/1"}}
	return &http.Response{StatusCode: p.status, Header: h, Body: io.NopCloser(bytes.NewReader(p.body)), Request: r}, nil
}

// FuzzDriver has every call meet a controller that answers everything with the same bytes: no panic, no loop, errors of
// the right type only, and texts that are clean.
func FuzzDriver(f *testing.F) {
	root := `{"RedfishVersion":"1.1","Systems":{"@odata.id":"/redfish/v1/x"},"Managers":{"@odata.id":"/redfish/v1/x"},"AccountService":{"@odata.id":"/redfish/v1/x"},` +
		`"Accounts":{"@odata.id":"/redfish/v1/x"},"LogServices":{"@odata.id":"/redfish/v1/x"},"Entries":{"@odata.id":"/redfish/v1/x"},"VirtualMedia":{"@odata.id":"/redfish/v1/x"},`
	f.Add(200, []byte(root+`"Members":[{"@odata.id":"/redfish/v1/x"}],"PowerState":"On","Boot":{"BootSourceOverrideTarget":"Pxe","BootSourceOverrideEnabled":"Once"}}`))
	f.Add(200, []byte(root+`"Members":[{"@odata.id":"/redfish/v1/x","Id":"\u0001","MediaTypes":["CD"],"UserName":"u","CapacityMiB":1e300,"Drives":[{"@odata.id":"/redfish/v1/x"}]}],"IndicatorLED":"Off"}`))
	f.Add(200, []byte(root+`"Members@odata.nextLink":"/redfish/v1/x","Members":[{}],"Links":{"Chassis":[{"@odata.id":"//h/redfish"}]},"Boot":[],"Oem":{"Dell":1}}`))
	f.Add(400, []byte(`{"error":{"code":"x","message":"\u0000canary-Pa55word","@Message.ExtendedInfo":[{"MessageId":"a.b.InternalError"}]}}`))
	f.Add(503, []byte(`[`))
	f.Fuzz(func(t *testing.T, code int, body []byte) {
		if code < 200 || code > 599 || code >= 300 && code < 400 {
			code = 200
		}
		d, err := open(target("http://192.0.2.1"))
		if err != nil {
			t.Fatal(err)
		}
		d.http = &http.Client{Transport: parrot{code, body}}
		d.looks, d.sleep = 2, func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		check := func(what string, err error) {
			t.Helper()
			if err == nil {
				return
			}
			var e *inventory.Error
			if !errors.As(err, &e) || e.Msg == "" || e.Kind == inventory.Internal {
				t.Errorf("%s: %T %v", what, err, err)
				return
			}
			if text := e.Msg + e.Hint + err.Error(); strings.Contains(text, canary) || text != inventory.CleanLines(text, 1<<20) || len(e.Msg) > 2000 {
				t.Errorf("%s: %q", what, text)
			}
		}
		power, err := d.Power(ctx)
		check("power", err)
		if power != inventory.PowerOn && power != inventory.PowerOff && power != inventory.PowerUnknown {
			t.Errorf("power is %q", power)
		}
		for _, a := range []bmc.Action{bmc.On, bmc.Off, bmc.Cycle} {
			check(string(a), d.SetPower(ctx, a))
		}
		for _, b := range []bmc.Boot{{Device: bmc.PXE}, {Device: bmc.HTTP, URI: "http://h/x"}, {Device: bmc.None}} {
			check("set boot", d.SetBoot(ctx, b))
		}
		_, err = d.Boot(ctx)
		check("boot", err)
		check("insert", d.InsertMedia(ctx, "http://h/x.iso"))
		check("eject", d.EjectMedia(ctx))
		check("locate", d.Locate(ctx, true))
		_, err = d.Sensors(ctx)
		check("sensors", err)
		log, err := d.Log(ctx, 5)
		check("log", err)
		for _, l := range log {
			if l.Message != inventory.Clean(l.Message, 500) {
				t.Errorf("log entry %q", l.Message)
			}
		}
		inv, err := d.Inventory(ctx)
		check("inventory", err)
		for _, m := range inv.Hardware.DIMMs {
			if m.SizeBytes < 0 {
				t.Errorf("DIMM of %d bytes", m.SizeBytes)
			}
		}
		_, err = d.Users(ctx)
		check("users", err)
		check("create", d.CreateUser(ctx, "x", canary))
		check("close", d.Close())
		if ctx.Err() != nil {
			t.Error("it takes more than 10 s")
		}
	})
}

// FuzzDocument has each parser meet a document of its own.
func FuzzDocument(f *testing.F) {
	f.Add([]byte(`{"RedfishVersion":"1.15.0","Vendor":"Dell","Oem":{"Dell":{}},"Boot":{"HttpBootUri":null,"BootSourceOverrideTarget":7}}`))
	f.Add([]byte(`{"error":{"@Message.ExtendedInfo":[{"MessageId":"IDRAC.2.1.PSU501","Message":"on"}]}}`))
	f.Add([]byte(`{"Id":1,"Created":"9999-12-31T23:59:59-23:59","CapacityBytes":1e308,"ReadingCelsius":-0.0,"MACAddress":"::"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var root serviceRoot
		_ = decode(raw, &root)
		if v := vendorOf(&root, "x"); v != clean(v) {
			t.Errorf("vendor %q", v)
		}
		var s system
		_ = decode(raw, &s)
		if b := bootOf(&s.Boot); b.Device == "" || b.URI != inventory.Clean(b.URI, 2048) {
			t.Errorf("boot %+v", b)
		}
		for _, a := range []bmc.Action{bmc.On, bmc.Off, bmc.Shutdown, bmc.Cycle, bmc.Reset} {
			_ = isDone(a, s.PowerState)
			if got := chooseReset(a, s.PowerState, s.Actions.Reset.ResetTypes); got == "PushPowerButton" && powerOf(s.PowerState) == inventory.PowerUnknown {
				t.Error("the button is pressed in an unknown state")
			}
		}
		_ = says(messages(raw), notNow...)
		for _, e := range newest([]timed{entryOf(raw)}, 3) {
			if _, err := time.Parse(time.RFC3339, e.At); e.At != "" && err != nil {
				t.Errorf("time %q", e.At)
			}
		}
		var v disk
		_ = decode(raw, &v)
		if facts := v.facts(); facts.SizeBytes < 0 || facts.SectorBytes < 0 {
			t.Errorf("disk %+v", facts)
		}
		var r reading
		_ = decode(raw, &r)
		if got := r.sensor("fan"); got.Name != clean(got.Name) {
			t.Errorf("sensor %+v", got)
		}
	})
}
