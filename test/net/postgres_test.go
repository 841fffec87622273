package net_test

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/test/netlab"
	"slipway.dev/slipway/test/postgres"
	"slipway.dev/slipway/web/client"
)

// newServed starts a server whose inventory is in PostgreSQL. The two speak over a Unix socket, because the server is in a namespace.
func newServed(t *testing.T) (*sufferer, *postgres.Server) {
	t.Helper()
	newLab(t) // skips
	pg := postgres.Start(t, postgres.Options{})
	u, err := url.Parse(pg.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	return &sufferer{appliance: newAppliance(t, databaseEnv+"="+pg.SocketURL(strings.TrimPrefix(u.Path, "/")))}, pg
}

// within waits until something is so, logs how long that took, and fails the test if it takes longer than limit.
func within(t *testing.T, limit time.Duration, what string, isSo func() (ok bool, seen string)) {
	t.Helper()
	began := time.Now()
	for {
		ok, seen := isSo()
		took := time.Since(began).Round(10 * time.Millisecond)
		if ok {
			t.Logf("%s after %s", what, took)
			return
		}
		if took > limit {
			t.Fatalf("not within %s: %s; last seen: %s", limit, what, seen)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestPostgreSQLGoesAwayAndComesBackUnderARunningServer cuts the power of the database. Everybody hears why nothing works, no machine gets an
// address, and everything works again when the database is back. The server is not restarted.
func TestPostgreSQLGoesAwayAndComesBackUnderARunningServer(t *testing.T) {
	s, pg := newServed(t)
	ctx := t.Context()
	s.ImportLive()
	if _, err := s.API.Profiles.Create(ctx, inventory.Profile{Name: "live", Image: "live", Selector: "mac"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.API.AcceptRules.Create(ctx, inventory.AcceptRule{Name: "all", Selector: "mac"}); err != nil {
		t.Fatal(err)
	}
	boots := simulate.Config{Hosts: 3, Seed: 7, Expect: simulate.StageBooted}
	s.Good(s.Boot(ctx, boots))
	get := func(url string, more ...string) string {
		return s.lab.In(s.Net.Server, append([]string{"curl", "-s", "-m", "20", "-w", " %{http_code}", url}, more...)...)
	}
	for round, mode := range []postgres.Mode{postgres.Immediate, postgres.Fast} {
		pg.Stop(t, mode)
		within(t, 5*time.Second, "an admin hears why", func() (bool, string) {
			var err error
			for _, err = range s.API.Hosts.All(ctx, client.Query{}) {
			}
			return inventory.IsKind(err, inventory.Unavailable) && strings.Contains(err.Error(), "the database cannot be reached"), errText(err)
		})
		within(t, 5*time.Second, "a program with a token is answered 503", func() (bool, string) {
			said := get("http://127.0.0.1:8067/api/v1/hosts", "-H", "Authorization: Bearer "+s.firstToken())
			return strings.Contains(said, "the database cannot be reached") && strings.HasSuffix(said, " 503"), said
		})
		within(t, 10*time.Second, "the state of the database says so", func() (bool, string) {
			d, err := client.Database(ctx, s.API)
			return err == nil && !d.IsReachable && strings.Contains(d.Reason, "cannot be reached") && d.Hint != "" && d.IsDurable == nil, d.Reason + errText(err)
		})
		within(t, 5*time.Second, "DHCP is not ready", func() (bool, string) {
			said := get("http://127.0.0.1:8067/readyz/dhcp")
			return strings.Contains(said, "no machine is given an address") && strings.HasSuffix(said, " 503"), said
		})
		within(t, 5*time.Second, "a machine that asks for its script reads why", func() (bool, string) {
			said := get("http://10.77.0.1/boot/script?mac=52:54:00:00:00:01")
			return strings.Contains(said, "echo Slipway: the database cannot be reached") && strings.HasSuffix(said, " 200"), said
		})
		s.hearNoAck(t)
		s.Process.WaitFor("issue opened ... "+inventory.IssueDatabase, round+1)

		pg.StartAgain(t)
		within(t, 10*time.Second, "the server is ready again", func() (bool, string) {
			said := get("http://127.0.0.1:8067/readyz")
			return strings.HasSuffix(said, " 200"), said
		})
		boots.Seed++
		began := time.Now()
		s.Good(s.Boot(ctx, boots))
		t.Logf("three new machines have booted %s later", time.Since(began).Round(10*time.Millisecond))
		s.Process.WaitFor("issue closed ... "+inventory.IssueDatabase, round+1)
	}
	within(t, 10*time.Second, "no issue about the database is open", func() (bool, string) {
		var seen string
		for i, err := range s.API.Issues.All(ctx, client.Query{}) {
			if err != nil || i.Type == inventory.IssueDatabase || i.Type == inventory.IssueStore {
				seen += i.Type + ": " + i.Cause + errText(err)
			}
		}
		return seen == "", seen
	})
	if n := len(s.Hosts()); n != 9 {
		t.Errorf("%d hosts are listed, want 9", n)
	}
}

// hearNoAck lets machines ask for addresses that they had, and fails the test if one gets an answer that says that it has one.
func (s *sufferer) hearNoAck(t *testing.T) {
	t.Helper()
	if _, err := simulate.Run(t.Context(), simulate.Config{
		Interface: s.Net.ClientIf, Namespace: s.Net.Client, Hosts: 3, Seed: 7, Firmware: simulate.Firmwares(), Expect: simulate.StageBooted,
		Timeout: 4 * time.Second, Acknowledged: func(l simulate.Lease) { t.Errorf("%s was told that it has %s", l.MAC, l.Address) },
	}); err != nil {
		t.Fatal(err)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// newInstances returns servers that share a database, by their names. None of them runs yet.
func newInstances(t *testing.T, names ...string) (all []*appliance) {
	t.Helper()
	l := newLab(t) // skips
	pg := postgres.Start(t, postgres.Options{})
	u, err := url.Parse(pg.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range netlab.NewAppliances(l.Lab, names...) {
		a.Env = []string{databaseEnv + "=" + pg.SocketURL(strings.TrimPrefix(u.Path, "/")), instanceEnv + "=" + names[i]}
		all = append(all, &appliance{a, l})
	}
	return all
}

// follow starts a server with the key of one that runs.
func (a *appliance) follow(first *appliance) {
	a.Lab.T.Helper()
	a.Lab.Must("mkdir", "-p", a.Data)
	a.Lab.Must("cp", first.Data+"/secret.key", a.Data)
	a.Launch()
	a.Process.WaitFor("this one serves on its behalf", 1)
}

// TestPostgreSQLHasServersThatServeBesideEachOther kills the server with the engine. The other one serves machines and people
// before and after.
func TestPostgreSQLHasServersThatServeBesideEachOther(t *testing.T) {
	both := newInstances(t, "a", "b")
	a, b := both[0], both[1]
	ctx := t.Context()
	a.Start()
	a.ImportLive()
	if _, err := a.API.Profiles.Create(ctx, inventory.Profile{Name: "live", Image: "live", Selector: "mac"}); err != nil {
		t.Fatal(err)
	}
	b.follow(a)
	// b fetches the files of the image. A new file is there before its upload counts as done.
	has := func(a *appliance, d inventory.Digest) bool {
		_, err := os.Stat(filepath.Join(a.Data, "artefacts", "sha256", d.Hex()[:2], d.Hex()))
		return err == nil
	}
	image, err := a.API.Images.Get(ctx, "live")
	if err != nil {
		t.Fatal(err)
	}
	within(t, 10*time.Second, "b has the image", func() (bool, string) {
		return !slices.ContainsFunc(image.Files, func(f inventory.ImageArtefact) bool { return !has(b, f.Digest) }), b.Process.Text()
	})
	a.awaits(t, 5*time.Second, "a alive leads, b alive") // an upload waits for the instances that the leader knows
	up, err := b.API.Upload(ctx, "disk.img", strings.NewReader(strings.Repeat("disk", 100_000)))
	if err != nil || !has(a, up.Digest) || !has(b, up.Digest) {
		t.Errorf("upload %+v: %v; a has it: %t, b: %t", up, err, has(a, up.Digest), has(b, up.Digest))
	}
	// Whatever a person does at one server happens.
	within(t, 5*time.Second, "b passes on what a person asks", func() (bool, string) {
		_, err := b.API.AcceptRules.Create(ctx, inventory.AcceptRule{Name: "all", Selector: "mac"})
		return err == nil, errText(err)
	})
	boots := simulate.Config{Hosts: 3, Seed: 7, Expect: simulate.StageBooted}
	a.Good(a.Boot(ctx, boots))
	if n := len(b.Hosts()); n != 3 {
		t.Errorf("b lists %d hosts, want 3", n)
	}

	a.Process.Kill(syscall.SIGKILL)
	killed := time.Now()
	if n := len(b.Hosts()); n != 3 { // nobody leads yet
		t.Errorf("b lists %d hosts while nobody has the engine, want 3", n)
	}
	boots.Seed++
	b.Good(b.Boot(ctx, boots))
	t.Logf("three machines that began to boot as a died had booted %s later", time.Since(killed).Round(10*time.Millisecond))
	within(t, 15*time.Second, "b has the engine", func() (bool, string) {
		said := b.Process.Text()
		return strings.Contains(said, "API on"), said
	})
	if n := len(b.Hosts()); n != 6 {
		t.Errorf("b lists %d hosts, want 6", n)
	}

	a.Launch()
	a.Process.WaitFor("instance b has the engine", 1)
	b.Process.Kill(syscall.SIGTERM)
	within(t, 8*time.Second, "a has the engine", func() (bool, string) {
		said := a.Process.Text()
		return strings.Contains(said, "API on"), said
	})
	boots.Seed++
	a.Good(a.Boot(ctx, boots))
	if n := len(a.Hosts()); n != 9 {
		t.Errorf("%d hosts are listed, want 9", n)
	}
}
