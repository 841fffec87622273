package net_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/web/client"
)

// TestPostgreSQLAFullDiskHarmsItsInstanceOnly fills the disk of an instance that does not lead. Machines still boot there from the files
// that it has. It says what is wrong, fetches what it lacks when there is room again, and can start and lead with a full disk.
func TestPostgreSQLAFullDiskHarmsItsInstanceOnly(t *testing.T) {
	needsLong(t, "a minute")
	both := newInstances(t, "a", "b")
	a, b := both[0], &sufferer{appliance: both[1]}
	ctx := t.Context()
	mountDisk(t, b.Data)
	l := a.Lab
	l.Wire(a.Net.Server, "x0", b.Net.Server, "x0")
	l.In(a.Net.Server, "ip", "addr", "add", "10.99.0.1/24", "dev", "x0")
	l.In(b.Net.Server, "ip", "addr", "add", "10.99.0.2/24", "dev", "x0")
	a.Start()
	a.ImportLive()
	profile, err := a.API.Profiles.Create(ctx, inventory.Profile{Name: "live", Image: "live", Selector: "mac"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.API.AcceptRules.Create(ctx, inventory.AcceptRule{Name: "all", Selector: "mac"}); err != nil {
		t.Fatal(err)
	}
	b.follow(a)
	if _, err := os.Stat(filepath.Join(b.Data, "reserve")); err == nil {
		t.Error("an instance reserves room for leases, which are in PostgreSQL")
	}
	b.Process.WaitFor("file of an image fetched from another instance", 2)
	boots := simulate.Config{Hosts: 3, Seed: 7, Expect: simulate.StageBooted}
	at := func(who *appliance) {
		t.Helper()
		boots.Seed++
		who.Good(who.Boot(ctx, boots))
	}
	says := func(what, kind, cause string) {
		t.Helper()
		within(t, 90*time.Second, what, func() (bool, string) {
			said := a.issueOf(t, kind, "b")
			return said == "" && cause == "" || cause != "" && strings.Contains(said, cause), said
		})
	}
	free := b.fillDisk()
	says("the leader says that the disk of b is full", inventory.IssueDisk, " MiB free")
	a.lab.In(l.Prefix+"hub", "ip", "link", "set", "server0", "down") // from now on b answers
	at(b.appliance)

	// Two more files, for which b has no room. The image is there, and the leader goes on.
	for _, name := range []string{"linux2", "initrd2"} {
		if err := os.WriteFile(filepath.Join(l.Dir, name), []byte(strings.Repeat(name, 500_000)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	job, err := a.API.Import(ctx, client.ImportRequest{
		Name: "second", KernelArgs: []string{"slipway.report=${report}"}, Files: []client.ImportFile{
			{Role: inventory.RoleKernel, Name: "linux2", Source: filepath.Join(l.Dir, "linux2")},
			{Role: inventory.RoleInitrd, Name: "initrd2", Source: filepath.Join(l.Dir, "initrd2")},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for j, err := range a.API.WatchJob(ctx, job.ID) {
		if err != nil {
			t.Fatal(err)
		}
		job = j
	}
	if job.State != "done" {
		t.Fatalf("import: %+v", job)
	}
	says("b lacks a file", inventory.IssueArtefact, "is missing; images that need it: second")
	for i, err := range a.API.Issues.All(ctx, client.Query{}) {
		isClear := strings.Contains(i.Hint, "are needed, and the disk of the artefact folder has") &&
			!strings.Contains(i.Hint, "import the image again")
		if err != nil || i.Type == inventory.IssueArtefact && !isClear {
			t.Errorf("the hint is %q, %v", i.Hint, err)
		}
	}
	b.Process.Kill(syscall.SIGTERM)
	b.Launch()
	b.Process.WaitFor("this one serves on its behalf", 1)
	at(b.appliance)

	free()
	says("the disk of b has room", inventory.IssueDisk, "")
	says("b has fetched all files", inventory.IssueArtefact, "")
	profile.Image = "second"
	if _, err := a.API.Profiles.Put(ctx, "live", profile); err != nil {
		t.Fatal(err)
	}
	at(b.appliance)

	free = b.fillDisk()
	defer free()
	a.Process.Kill(syscall.SIGTERM)
	b.Process.WaitFor("API on", 1)
	at(b.appliance)
	within(t, 10*time.Second, "what a person changes is stored", func() (bool, string) {
		_, err := b.API.AcceptRules.Create(ctx, inventory.AcceptRule{Name: "more", Selector: "mac"})
		return err == nil, errText(err)
	})
	_, err = b.API.Upload(ctx, "disk.img", strings.NewReader(strings.Repeat("disk", 1_000_000)))
	if !inventory.IsKind(err, inventory.Unavailable) || !strings.Contains(err.Error(), "disk of the artefact folder") {
		t.Errorf("an upload that finds no room: %v", err)
	}
}
