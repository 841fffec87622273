package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// furnish adds to seed what the life of a server needs: a machine, a pool, golden hardware, a controller, an inspection,
// reports, and an operation.
func (r *rig) furnish() {
	r.t.Helper()
	var h inventory.Host
	r.must(200, &h, "GET", "/api/v1/hosts/r1-u01", "")
	r.must(201, nil, "POST", "/api/v1/pools", `{"name":"big","selector":"rack=r1","burnInFor":"1h","budget":{"destroyInterval":"1m"}}`)
	r.must(201, nil, "POST", "/api/v1/goldens", `{"name":"dell","selector":"mac","requirements":{"memoryBytes":1},"firmware":{"bios":"1.2"}}`)
	r.must(201, nil, "POST", "/api/v1/machines", `{"name":"web-1","profile":"worker","pool":"big","hooks":[{"step":"pre-boot","owner":"storage"}]}`)
	r.must(200, nil, "PUT", "/api/v1/hosts/r1-u01/bmc", `{"driver":"fake","system":"r1-u01","options":{"power":"off"}}`)
	err := r.store.Write(r.t.Context(), func(tx inventory.Tx) error {
		i := inventory.Inspection{HostID: h.ID, At: testStart, Hardware: inventory.Hardware{
			CollectedAt: testStart, Source: "agent", MemoryBytes: 8 << 30, CPU: inventory.CPU{Threads: 8, Model: "Xeon"},
			Disks: []inventory.Disk{{Name: "sda", Serial: "S1", SizeBytes: 1 << 30}},
		}}
		burn, err := json.Marshal(inventory.BurnIn{ForSeconds: 60, Tests: []inventory.BurnInTest{{Name: "cpu", Passed: true}}})
		return errors.Join(err, tx.SaveInspection(&i),
			tx.SaveReport(inventory.Report{ID: "01X/burn-in", HostID: h.ID, Kind: inventory.ReportBurnIn, Body: burn, CreatedAt: testStart}))
	})
	if err != nil {
		r.t.Fatal(err)
	}
	var op inventory.Operation
	r.must(202, &op, "POST", "/api/v1/hosts/r1-u01/power", `{"action":"on"}`)
	r.operation = op.ID
}

// adopted makes machine old-1 of host r2-u01, which runs already: a claim without an engine that works.
func (r *rig) adopted() (m inventory.Machine) {
	r.t.Helper()
	r.must(200, nil, "POST", "/api/v1/hosts/r2-u01/adopt", `{"on":true}`)
	r.must(201, &m, "POST", "/api/v1/machines/adopt", `{"name":"old-1","profile":"worker","host":"r2-u01"}`)
	return m
}

// serveEngine lets the engine do its work until the test ends.
func (r *rig) serveEngine() {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = r.engine.Serve(ctx) })
	r.t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
}

// until asks again until is is true.
func (r *rig) until(what string, is func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); {
		if time.Now().After(deadline) {
			r.t.Fatalf("%s: not within 30 s; log:\n%s", what, r.logged())
		}
		<-time.After(5 * time.Millisecond)
	}
}

func TestAMachineIsWantedOnceAndEnds(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	const path = "/api/v1/machines/web-1"
	want := `{"name":"web-1","owner":"c/ns/Machine/web-1","profile":"worker","keepDisks":[{"serial":"S1"}]}`
	var d rest.Diff
	r.must(200, &d, "POST", "/api/v1/machines?dryRun=true", want)
	r.must(404, nil, "GET", path, "")
	if !d.IsDryRun || len(d.Changes) == 0 {
		t.Errorf("dry run: %+v", d)
	}
	var m, again inventory.Machine
	r.must(201, &m, "POST", "/api/v1/machines", want)
	r.must(200, &again, "POST", "/api/v1/machines", want)
	if m.UID == "" || m.UID != again.UID || m.Phase != inventory.MachinePending || m.Reason == "" {
		t.Errorf("created %+v, then %+v", m, again)
	}
	tag := r.must(200, nil, "GET", path, "").header.Get("ETag")
	if got := r.must(200, nil, "PUT", path, want).header.Get("ETag"); got != tag {
		t.Errorf("the same PUT again made version %s of %s", got, tag)
	}
	r.must(200, &m, "PUT", path, strings.Replace(want, "S1", "S2", 1), "If-Match", tag)
	r.must(412, nil, "PATCH", path, `{"clean":"full"}`, "If-Match", tag)
	r.must(200, &m, "PATCH", path, `{"clean":"full","parameters":{"a":"b"},"placement":{"host":"r1-u01"}}`)
	if m.KeepDisks[0].Serial != "S2" || m.Clean != inventory.CleanFull || m.Parameters["a"] != "b" || m.Placement.Host != "r1-u01" {
		t.Errorf("after the changes: %+v", m)
	}
	r.must(412, nil, "PUT", "/api/v1/machines/web-9", `{"profile":"worker"}`, "If-Match", `"1"`)
	r.must(200, nil, "PUT", "/api/v1/machines/web-2", `{"profile":"worker"}`)
	var page rest.List[inventory.Machine]
	r.must(200, &page, "GET", "/api/v1/machines?phase=pending&profile=worker&limit=1", "")
	if len(page.Items) != 1 || page.Next != "web-1" {
		t.Errorf("first page: %+v", page)
	}
	r.must(200, &d, "DELETE", path+"?dryRun=true", "")
	r.must(412, nil, "DELETE", path, "", "If-Match", tag)
	r.must(204, nil, "DELETE", path, "")
	r.must(404, nil, "DELETE", path, "")
}

func TestAMachineWithAHostKeepsItsPlace(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	m := r.adopted()
	if m.HostID == "" || m.ClaimID == "" || m.Phase != inventory.MachineRunning {
		t.Fatalf("adopted: %+v", m)
	}
	for _, tc := range []struct{ name, method, path, body string }{
		{"its placement changes", "PATCH", "/machines/old-1", `{"placement":{"selector":"rack=r9"}}`},
		{"its pool changes", "PUT", "/machines/old-1", `{"profile":"worker","pool":"default"}`},
		{"its owner changes", "PUT", "/machines/old-1", `{"profile":"worker","owner":"me"}`},
		{"its host is forgotten", "DELETE", "/hosts/r2-u01", ""},
		{"its host is said not to be adopted", "PATCH", "/hosts/r2-u01", `{"isAdopted":false}`},
		{"its host is said not to be adopted, by the verb", "POST", "/hosts/r2-u01/adopt", `{"on":false}`},
		{"it is tried again", "POST", "/machines/old-1/retry", ""},
	} {
		a := r.ask(tc.method, "/api/v1"+tc.path, tc.body)
		if p := a.problem(t); a.status != 409 || p.Hint == "" {
			t.Errorf("%s: status %d, hint %q: %s", tc.name, a.status, p.Hint, a.body)
		}
	}
	r.must(403, nil, "POST", "/api/v1/machines/old-1/reinstall", "")
	r.must(200, &m, "PATCH", "/api/v1/machines/old-1", `{"releaseAfter":"cleaned","rootDisk":{"serial":"S1"}}`)
	var hosts rest.List[inventory.Host]
	r.must(200, nil, "PATCH", "/api/v1/hosts/r2-u01", `{"taints":[{"key":"gpu"}],"keepDisks":[{"serial":"S1"}],"rootDisk":{"wwn":"0x1"}}`)
	r.must(200, &hosts, "GET", "/api/v1/hosts?state=active", "")
	if len(hosts.Items) != 1 || hosts.Items[0].Machine != "old-1" || hosts.Items[0].Taints[0].Key != "gpu" || hosts.Items[0].RootDisk.WWN != "0x1" {
		t.Errorf("hosts: %+v", hosts)
	}
	r.must(204, nil, "DELETE", "/api/v1/machines/old-1", "")
}

func TestOnlyItsOwnerAcknowledgesAHook(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	const path = "/api/v1/machines/web-1"
	var m inventory.Machine
	r.must(201, &m, "POST", "/api/v1/machines", `{"name":"web-1","profile":"worker","hooks":[{"step":"pre-boot","owner":"storage","ackedAt":"2026-01-01T00:00:00Z"}]}`)
	if !m.Hooks[0].AckedAt.IsZero() {
		t.Error("a hook came acknowledged")
	}
	r.must(404, nil, "POST", path+"/ack", `{"step":"pre-boot","owner":"network"}`)
	r.must(200, &m, "POST", path+"/ack", `{"step":"pre-boot","owner":"storage"}`)
	r.must(200, &m, "PUT", path, `{"profile":"worker","hooks":[{"step":"pre-boot","owner":"storage"},{"step":"pre-clean","owner":"storage","ackedAt":"2026-01-01T00:00:00Z"}]}`)
	if m.Hooks[0].AckedAt.IsZero() || !m.Hooks[1].AckedAt.IsZero() {
		t.Errorf("hooks after a put: %+v", m.Hooks)
	}
	m = inventory.Machine{}
	r.must(200, &m, "PATCH", path, `{"hooks":[]}`)
	if len(m.Hooks) != 0 {
		t.Errorf("hooks after they were taken away: %+v", m.Hooks)
	}
}

func TestAPoolCountsItsHosts(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.adopted()
	r.must(201, nil, "POST", "/api/v1/pools", `{"name":"all"}`)
	r.must(201, nil, "POST", "/api/v1/pools", `{"name":"r1","selector":"rack=r1"}`)
	var all rest.List[wire.Pool]
	r.must(200, &all, "GET", "/api/v1/pools", "")
	got := map[string]wire.PoolHosts{}
	for _, p := range all.Items {
		got[p.Name] = p.Hosts
	}
	want := map[string]wire.PoolHosts{"all": {Total: 2, Available: 1, Claimed: 1}, "r1": {Total: 1, Available: 1}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("hosts (-want +got):\n%s", d)
	}
	var one wire.Pool
	r.must(200, &one, "GET", "/api/v1/pools/all", "")
	if one.Hosts != want["all"] {
		t.Errorf("one pool: %+v", one.Hosts)
	}
	r.must(204, nil, "DELETE", "/api/v1/pools/r1", "")
}

func TestOfTheLifeWhatWasReadCanBeSentBack(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.furnish()
	for _, path := range []string{"/api/v1/machines/web-1", "/api/v1/pools/big", "/api/v1/goldens/dell", "/api/v1/hosts/r1-u01/bmc"} {
		before := r.must(200, nil, "GET", path, "")
		after := r.must(200, nil, "PUT", path, before.body, "If-Match", before.header.Get("ETag"))
		if diff := cmp.Diff(before.body, after.body); diff != "" {
			t.Errorf("PUT of what GET %s gave changed it (-before +after):\n%s", path, diff)
		}
		r.must(412, nil, "PUT", path, before.body, "If-Match", `"99"`)
	}
}

func TestPowerIsAnOperation(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.furnish()
	r.serveEngine()
	var op inventory.Operation
	r.until("the power operation ends", func() bool {
		r.must(200, &op, "GET", "/api/v1/operations/"+r.operation, "")
		return !op.IsOpen()
	})
	if op.State != inventory.OpDone || r.bank.Power("r1-u01") != inventory.PowerOn {
		t.Errorf("operation %s (%s), power %s", op.State, op.Reason, r.bank.Power("r1-u01"))
	}
	r.must(409, nil, "POST", "/api/v1/operations/"+op.ID+"/cancel", "")
	var page rest.List[inventory.Operation]
	r.must(200, &page, "GET", "/api/v1/operations?host=r1-u01&kind=power", "")
	if len(page.Items) != 1 {
		t.Errorf("operations: %+v", page)
	}
	r.must(200, &page, "GET", "/api/v1/operations?open=true&machine=none", "")
	r.must(200, nil, "POST", "/api/v1/hosts/r1-u01/power/confirm", `{"state":"on"}`)
	r.must(409, nil, "POST", "/api/v1/hosts/r1-u01/power/confirm", `{"state":"off"}`) // its controller denies it
}

func TestAnOperationIsCancelled(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.furnish()
	var op inventory.Operation
	r.must(409, nil, "POST", "/api/v1/hosts/r1-u01/power", `{"action":"off"}`)
	busy := r.ask("DELETE", "/api/v1/hosts/r1-u01", "").problem(t)
	if !strings.Contains(busy.Hint, r.operation) {
		t.Errorf("a busy host was forgotten: %+v", busy)
	}
	r.must(200, &op, "POST", "/api/v1/operations/"+r.operation+"/cancel", "")
	if op.State != inventory.OpCancelled {
		t.Errorf("state %s", op.State)
	}
	var h inventory.Host
	r.must(200, &h, "POST", "/api/v1/hosts/r1-u01/inspect", `{"mayRestart":true,"burnInFor":"10m"}`)
	if h.State != inventory.Inspecting {
		t.Errorf("state %s", h.State)
	}
}

func TestOfTheLifeWrongRequestsSayWhatToDo(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.furnish()
	for _, tc := range []struct {
		name, method, path, body string
		status                   int
		want                     string // in detail, hint or a field's error
	}{
		{"a machine of no profile", "POST", "/machines", `{"name":"a","profile":"nope"}`, 422, "slipway profile list"},
		{"a machine of no profile, dry", "POST", "/machines?dryRun=true", `{"name":"a","profile":"nope"}`, 422, "slipway profile list"},
		{"a machine of no pool", "POST", "/machines", `{"name":"a","profile":"worker","pool":"nope"}`, 422, "slipway pool list"},
		{"a machine with a taken name", "POST", "/machines", `{"name":"web-1","profile":"worker"}`, 409, "web-1"},
		{"a machine with a bad name", "POST", "/machines", `{"name":"A_b","profile":"worker"}`, 422, "is not a name"},
		{"a machine with nonsense for an expression", "POST", "/machines", `{"name":"a","profile":"worker","placement":{"requirements":{"expression":"host.("}}}`, 422, "expression"},
		{"a change to nonsense for an expression", "PATCH", "/machines/web-1", `{"placement":{"requirements":{"expression":"1 + 1"}}}`, 422, "expression"},
		{"a change to no profile", "PATCH", "/machines/web-1", `{"profile":"nope"}`, 422, "slipway profile list"},
		{"another name in the body than in the address", "PUT", "/machines/web-1", `{"name":"b","profile":"worker"}`, 422, "names machine b"},
		{"an unknown way to clean", "PATCH", "/machines/web-1", `{"clean":"burn"}`, 422, "body.clean"},
		{"an unknown phase", "GET", "/machines?phase=happy", "", 422, "query.phase"},
		{"a machine that is not there", "POST", "/machines/nope/reinstall", "", 404, "nope"},
		{"a machine without host", "POST", "/machines/web-1/reinstall", "", 409, "no host"},
		{"an unknown rung", "POST", "/machines/web-1/remediate", `{"steps":["pray"]}`, 422, "body.steps"},
		{"an unknown hook", "POST", "/machines/web-1/ack", `{"step":"pre-lunch","owner":"a"}`, 422, "body.step"},
		{"a machine of a host that is not adopted", "POST", "/machines/adopt", `{"name":"a","profile":"worker","host":"r1-u01"}`, 409, "slipway host adopt"},
		{"a pool with a bad selector", "POST", "/pools", `{"name":"a","selector":"=="}`, 422, "is not a term"},
		{"a pool with a bad expression", "PUT", "/pools/big", `{"requirements":{"expression":"host.nothing.at.all"}}`, 422, "expression"},
		{"a pool with a bad burn-in", "POST", "/pools", `{"name":"a","burnInFor":"long"}`, 422, "not a duration"},
		{"a pool with an endless burn-in", "POST", "/pools", `{"name":"a","burnInFor":"999h"}`, 422, "longer than a week"},
		{"a pool in use", "DELETE", "/pools/big", "", 409, "web-1"},
		{"golden hardware for no host", "POST", "/goldens", `{"name":"a","selector":""}`, 422, "for every host"},
		{"golden hardware with a bad expression", "POST", "/goldens", `{"name":"a","selector":"mac","requirements":{"expression":"("}}`, 422, "expression"},
		{"an unknown kind of operation", "GET", "/operations?kind=dance", "", 422, "query.kind"},
		{"an operation that is not there", "POST", "/operations/nope/cancel", "", 404, "nope"},
		{"an unknown change of power", "POST", "/hosts/r1-u01/power", `{"action":"explode"}`, 422, "body.action"},
		{"an unknown state of power", "POST", "/hosts/r1-u01/power/confirm", `{"state":"unknown"}`, 422, "body.state"},
		{"a burn-in of years", "POST", "/hosts/r2-u01/inspect", `{"burnInFor":"9999h"}`, 422, "not between"},
		{"a wipe without an agent", "POST", "/hosts/r2-u01/clean", `{"mode":"quick"}`, 409, "slipway agent-image build"},
		{"an unknown way to wipe", "POST", "/hosts/r2-u01/clean", `{"mode":"fire"}`, 422, "body.mode"},
		{"a host without controller", "GET", "/hosts/r2-u01/bmc", "", 404, "slipway host bmc r2-u01"},
		{"sensors without controller", "GET", "/hosts/r2-u01/bmc/sensors", "", 404, "slipway host bmc r2-u01"},
		{"a new password without controller", "POST", "/hosts/r2-u01/bmc/rotate", "", 404, "slipway host bmc r2-u01"},
		{"an unknown driver", "PUT", "/hosts/r2-u01/bmc", `{"driver":"telepathy"}`, 422, "body.driver"},
		{"an address that is none", "PUT", "/hosts/r2-u01/bmc", `{"driver":"redfish","address":"10.0.0.5"}`, 422, "https://10.0.0.5"},
		{"an option that the driver does not know", "PUT", "/hosts/r2-u01/bmc", `{"driver":"fake","options":{"colour":"red"}}`, 422, "colour"},
		{"an address with a password in it", "PUT", "/hosts/r2-u01/bmc", `{"driver":"redfish","address":"https://a:b@10.0.0.5"}`, 422, "fields of their own"},
		{"a hidden option that is not stored", "PUT", "/hosts/r2-u01/bmc", `{"driver":"wol","options":{"secureon":"(hidden)"}}`, 422, "no value"},
		{"a controller that is taken", "PUT", "/hosts/r2-u01/bmc", `{"driver":"fake","system":"r1-u01"}`, 409, "r1-u01"},
		{"an image that is no address", "POST", "/hosts/r1-u01/bmc/media", `{"url":"file:///etc/passwd"}`, 422, "http(s)"},
		{"an unknown boot device", "POST", "/hosts/r1-u01/bmc/boot", `{"device":"floppy"}`, 422, "body.device"},
		{"an address for a disk", "POST", "/hosts/r1-u01/bmc/boot", `{"device":"disk","uri":"http://x/y"}`, 422, "uri"},
		{"an account with neither password nor end", "POST", "/hosts/r1-u01/bmc/user", `{"user":"ann"}`, 422, "either a password or remove"},
		{"no range", "POST", "/scans", `{"range":""}`, 422, "body.range"},
		{"a driver that is not looked for", "POST", "/scans", `{"range":"10.0.0.1","drivers":["wol"]}`, 422, "body.drivers"},
		{"no search here", "POST", "/scans", `{"range":"10.0.0.1"}`, 503, "looks for no controllers"},
		{"an inspection that was never made", "GET", "/hosts/r2-u01/hardware", "", 404, "slipway host inspect"},
		{"the ninth inspection", "GET", "/hosts/r1-u01/hardware?n=9", "", 404, ""},
		{"an unknown kind of report", "GET", "/hosts/r1-u01/reports?kind=gossip", "", 422, "query.kind"},
		{"a taint that is none", "PATCH", "/hosts/r1-u01", `{"taints":[{"key":"a b"}]}`, 422, "not allowed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := r.ask(tc.method, "/api/v1"+tc.path, tc.body)
			if a.status != tc.status {
				t.Fatalf("status %d, want %d: %s", a.status, tc.status, a.body)
			}
			p := a.problem(t)
			if all := fmt.Sprint(p.Detail, p.Hint, p.Errors); !strings.Contains(all, tc.want) {
				t.Errorf("%q is not in %s", tc.want, all)
			}
		})
	}
}

// fading is a store whose database goes away for readers as soon as something is so.
type fading struct {
	inventory.Store
	isSo func(inventory.Tx) bool
}

// Read implements inventory.Store.
func (f fading) Read(ctx context.Context, fn func(inventory.Tx) error) error {
	return f.Store.Read(ctx, func(tx inventory.Tx) error {
		if f.isSo(tx) {
			return inventory.Errorf(inventory.Unavailable, "the database cannot be reached")
		}
		return fn(tx)
	})
}

// A history of whole servers found this: a machine was deleted, the database went away, and the answer said that it cannot be reached.
func TestADeletionIsToldAlsoWhenTheDatabaseGoesAwayAfterIt(t *testing.T) {
	wasThere := false
	r := newRig(t, func(c *Config) {
		c.Store = fading{c.Store, func(tx inventory.Tx) bool {
			_, err := tx.FindMachine("old-1")
			wasThere = wasThere || err == nil
			return wasThere && err != nil
		}}
	})
	r.seed()
	r.adopted()
	r.must(204, nil, "DELETE", "/api/v1/machines/old-1", "")
}
