package net_test

import (
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/web/client"
)

// programOfTheNextLink builds the program as a release will be that changes the link between instances.
func programOfTheNextLink(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(root, "cmd", "slipway", "serve", "peer", "version.go")
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	const is = "\nconst Version = 1\n"
	if !strings.Contains(string(text), is) {
		t.Fatalf("%s has another version than this test expects", source)
	}
	next, overlay, out := filepath.Join(dir, "version.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "slipway")
	if err := os.WriteFile(next, []byte(strings.Replace(string(text), is, "\nconst Version = 2\n", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{source: next}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, replace, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-overlay", overlay, "-tags", "netgo osusergo sqlite_omit_load_extension", "-ldflags", "-w",
		"-o", out, "slipway.dev/slipway/cmd/slipway")
	cmd.Dir = root
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the next program: %v\n%s", err, b)
	}
	return out
}

// TestPostgreSQLTwoVersionsOfTheLinkRefuseEachOther updates one of two instances to a program whose link is another one, and then the
// other. Meanwhile each gives addresses. People and machines at the one that does not lead read why they get no answer.
func TestPostgreSQLTwoVersionsOfTheLinkRefuseEachOther(t *testing.T) {
	needsLong(t, "a minute, and builds the program")
	program := programOfTheNextLink(t)
	both := newInstances(t, "a", "b")
	a, b := both[0], both[1]
	ctx := t.Context()
	l := a.Lab
	l.Wire(a.Net.Server, "x0", b.Net.Server, "x0")
	l.In(a.Net.Server, "ip", "addr", "add", "10.99.0.1/24", "dev", "x0")
	l.In(b.Net.Server, "ip", "addr", "add", "10.99.0.2/24", "dev", "x0")
	database, err := url.Parse(strings.TrimPrefix(a.Env[0], databaseEnv+"="))
	if err != nil {
		t.Fatal(err)
	}
	secret, _ := database.User.Password()
	password := filepath.Join(l.Dir, "password")
	if err := os.WriteFile(password, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	database.User = url.User(database.User.Username())
	next := func(at *appliance, name string) {
		at.Process = l.Start(at.Net.Server, nil, nil, program, "serve", "--interface", "vs", "--data-dir", at.Data, "--instance", name,
			"--unknown", "wait", "--database", database.String(), "--database-password-file", password)
	}
	wire := func(state string) { l.In(l.Prefix+"hub", "ip", "link", "set", "server0", state) }
	a.Start()
	l.Must("mkdir", "-p", b.Data)
	l.Must("cp", a.Data+"/secret.key", b.Data)
	next(b, "b")
	b.Process.WaitFor("this one serves on its behalf", 1)
	a.awaits(t, 10*time.Second, "a alive leads, b alive")

	// refused is what people and machines read at an instance that does not lead.
	refused := func(at *appliance, address, reason string) {
		t.Helper()
		if _, err := at.API.Hosts.List(ctx, client.Query{Limit: 1}); err != nil {
			t.Errorf("what an instance answers by itself: %v", err)
		}
		_, err := at.API.AcceptRules.Create(ctx, inventory.AcceptRule{Name: "one", Selector: "mac"})
		if !inventory.IsKind(err, inventory.Unavailable) || !strings.Contains(err.Error(), reason) ||
			!strings.Contains(inventory.HintOf(err), "install the same one on all instances") {
			t.Errorf("a person reads: %v (%s)", err, inventory.HintOf(err))
		}
		said := l.In(at.Net.Server, "curl", "-s", "-m", "20", "http://"+address+"/boot/script?mac=52:54:00:00:00:01")
		if !strings.Contains(said, reason) {
			t.Errorf("a machine reads: %s", said)
		}
	}
	newAsksOld := "this instance speaks version 1 of the link between instances, and the one that asks version 2"
	refused(b, "10.77.0.2", newAsksOld)
	within(t, 20*time.Second, "the leader has the issue", func() (bool, string) {
		said := ""
		for i, err := range a.API.Issues.All(ctx, client.Query{}) {
			if err != nil {
				return false, err.Error()
			}
			if i.Type == inventory.IssueCutOff {
				said = i.Cause
			}
		}
		return strings.Contains(said, newAsksOld), said
	})
	wire("down")
	b.Boot(ctx, simulate.Config{Hosts: 3, Seed: 1, Expect: simulate.StageWaiting, Timeout: 15 * time.Second}) // they wait for their scripts
	leases, err := b.API.Leases.List(ctx, client.Query{Limit: 100})
	if err != nil || len(leases.Items) != 3 {
		t.Errorf("the new instance gave %d of 3 addresses: %v", len(leases.Items), err)
	}
	wire("up")

	a.Process.Kill(syscall.SIGTERM)
	b.awaits(t, 15*time.Second, "a stopped, b alive leads")
	b.Good(b.Boot(ctx, simulate.Config{Hosts: 3, Seed: 2, Expect: simulate.StageWaiting}))
	a.Launch() // the old program again, by mistake
	a.Process.WaitFor("this one serves on its behalf", 1)
	refused(a, "10.77.0.1", "this instance speaks version 2 of the link between instances, and the one that asks version 1")
	a.Process.Kill(syscall.SIGTERM)
	next(a, "a")
	a.Process.WaitFor("this one serves on its behalf", 1)
	within(t, 10*time.Second, "both understand each other", func() (bool, string) {
		_, err := a.API.AcceptRules.Create(ctx, inventory.AcceptRule{Name: "one", Selector: "mac"})
		return err == nil, errText(err)
	})
}
