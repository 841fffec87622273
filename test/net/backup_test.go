package net_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/cmd/slipway/backup"
	"slipway.dev/slipway/cmd/slipway/serve"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// TestARestoredServerWorks takes a backup from a running appliance, loses the data directory, and starts another on what was
// restored: hosts, users and tokens are there, machines are given their secrets, and nothing goes on by itself.
func TestARestoredServerWorks(t *testing.T) {
	a := newAppliance(t)
	ctx := t.Context()
	value, hash, password := canary, "$6$"+canary+"$x", "correct horse anna"
	for name, v := range map[string]*string{"token": &value, "admin-hash": &hash} {
		if _, err := a.API.SetSecret(ctx, name, wire.SecretInput{Value: v}); err != nil {
			t.Fatal(err)
		}
	}
	a.ImportLive()
	if _, err := a.API.Profiles.Create(ctx, inventory.Profile{Name: "live", Image: "live", Selector: "mac", Config: secretConfig, Isolated: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.API.AcceptRules.Create(ctx, inventory.AcceptRule{Name: "all", Selector: "manufacturer"}); err != nil {
		t.Fatal(err)
	}
	rack := simulate.Config{Hosts: 3, Seed: 8, Expect: simulate.StageBooted}
	a.Good(a.Boot(ctx, rack))
	// A person is waited for: an operation that is open in the backup.
	if _, err := a.API.Hosts.Create(ctx, inventory.Host{Name: "spare", NICs: []inventory.NIC{{MAC: "52:54:00:99:00:01"}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.API.Hosts.SetBMC(ctx, "spare", client.SetBMC{Driver: inventory.Manual}); err != nil {
		t.Fatal(err)
	}
	op, err := a.API.Hosts.Power(ctx, "spare", "off")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.API.Users.Create(ctx, inventory.User{Name: "anna", Grants: inventory.AdminEverywhere()}); err != nil {
		t.Fatal(err)
	}
	if err := a.API.SetPassword(ctx, "anna", password); err != nil {
		t.Fatal(err)
	}
	was := a.Hosts()
	token := a.firstToken()

	var file bytes.Buffer
	if err := a.API.Backup(ctx, &file); err != nil {
		t.Fatal(err)
	}
	if _, err := serve.Restore(ctx, bytes.NewReader(file.Bytes()), backup.Options{DataDir: a.Data, Force: true}); err == nil || !strings.Contains(err.Error(), "uses the data directory") {
		t.Errorf("under a running server: %v", err)
	}
	a.Process.Kill(syscall.SIGKILL)

	lost := a.Data
	a.Data = filepath.Join(a.lab.Dir, "restored")
	if _, err := serve.Restore(ctx, bytes.NewReader(file.Bytes()[:file.Len()/2]), backup.Options{DataDir: a.Data}); err == nil || !strings.Contains(err.Error(), "no whole backup") {
		t.Errorf("half a backup: %v", err)
	}
	for _, name := range []string{"secret.key", "artefacts"} { // what is in no backup
		a.lab.Must("cp", "-a", filepath.Join(lost, name), filepath.Join(a.Data, name))
	}
	out, err := serve.Restore(ctx, bytes.NewReader(file.Bytes()), backup.Options{DataDir: a.Data})
	if err != nil || !out.HasKey || out.IsOtherKey || len(out.Missing) != 0 || out.HeldN != 1 || out.Manifest.SecretN != 2 {
		t.Fatalf("restored %+v: %v", out, err)
	}
	if err := os.RemoveAll(lost); err != nil {
		t.Fatal(err)
	}
	a.Connect()
	a.Start()
	a.Good(a.Boot(ctx, rack)) // their documents have the secrets: without them a machine is not booted
	now := a.Hosts()
	if len(now) != len(was) {
		t.Fatalf("%d hosts, want %d", len(now), len(was))
	}
	for i, h := range now {
		if h.ID != was[i].ID || h.Name != was[i].Name || h.InMaintenance != (h.Name == "spare") {
			t.Errorf("host %+v was %+v", h, was[i])
		}
	}
	if o, err := a.API.Operations.Get(ctx, op.ID); err != nil || !o.IsOpen() || !strings.Contains(o.Reason, "maintenance") && o.Step != op.Step {
		t.Errorf("the operation is %+v, %v", o, err)
	}
	code := func(args ...string) string {
		return a.lab.In(a.Net.Server, append([]string{"curl", "-s", "-o", "/dev/null", "-w", "%{http_code}"}, args...)...)
	}
	const base = "http://127.0.0.1:8067/api/v1/"
	if got := code("-H", "Authorization: Bearer "+token, base+"hosts"); got != "200" {
		t.Errorf("the token of before is answered %s", got)
	}
	for want, pass := range map[string]string{"201": password, "401": password + "x"} {
		if got := code("-H", "Content-Type: application/json", "-d", `{"user":"anna","password":"`+pass+`"}`, base+"logins"); got != want {
			t.Errorf("a login is answered %s, want %s", got, want)
		}
	}
	if strings.Contains(a.Process.Text(), "admin token") {
		t.Error("a restored server takes itself for a new one")
	}
	if time.Since(out.Manifest.At) > time.Hour {
		t.Errorf("made %s", out.Manifest.At)
	}
}
