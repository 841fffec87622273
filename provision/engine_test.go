package provision

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/boot"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/pxe"
)

func TestAnUnknownMachineIsListedAndLeftAlone(t *testing.T) {
	r := newRack(t)
	m := r.machine(1)
	script, s := m.boot()
	if strings.Contains(script, "kernel ") || !strings.Contains(script, "not accepted") {
		t.Errorf("script of a stranger:\n%s", script)
	}
	h := m.host()
	if h.State != inventory.Discovered || h.Serial != "SN1" || h.Product != "R640" || h.NICs[0].Vendor != "ACME" || h.MemoryMiB != 4096 {
		t.Errorf("host %+v", h)
	}
	if got := r.session(s); got.Boot != string(pxe.BootWait) || got.HostID != h.ID || got.Firmware != inventory.UEFI || got.Address != m.address() {
		t.Errorf("session %+v", got)
	}
}

func TestALiveBootFromFirstPacketToArrival(t *testing.T) {
	r := newRack(t)
	r.image("live", false, "product=R640", 0)
	m := r.machine(1)
	m.boot()
	m.accept()
	script, s := m.boot()
	if !strings.Contains(script, "kernel ") || !strings.Contains(script, string(s)) {
		t.Fatalf("script:\n%s", script)
	}
	if h := m.host(); h.State != inventory.Installing {
		t.Errorf("host is %s while it boots", h.State)
	}
	r.must(m.report(s, pxe.ReportUp))
	if h := m.host(); h.State != inventory.Active {
		t.Errorf("host is %s after it reported up", h.State)
	}
	if got := r.session(s); got.Outcome != inventory.OutcomeArrived || got.Profile != "live" {
		t.Errorf("session %+v", got)
	}
	want := []string{
		"session.started", "dhcp.discover", "dhcp.offer", "dhcp.ack", "loader.started", "loader.sent", "dhcp.discover",
		"dhcp.offer", "dhcp.ack", "script.asked", "boot.decided", "state.changed", "boot.reported", "state.changed", "session.ended",
	}
	got := r.kinds(s)
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestABootContinuesAfterTheServerWasKilled(t *testing.T) {
	r := newRack(t)
	m := r.accepted()
	_, s := m.boot()
	r.restart()
	digest := inventory.Digest("sha256:" + strings.Repeat("04", 32))
	if got, err := r.engine.Artefact(context.Background(), s, m.address(), digest, "linux"); err != nil || got != digest {
		t.Errorf("kernel after the restart: %s, %v", got, err)
	}
	if script := m.script(base + "/boot/" + string(s) + "/ask"); !strings.Contains(script, string(s)) {
		t.Errorf("the script moved to another session:\n%s", script)
	}
	r.must(m.report(s, pxe.ReportUp))
	if got := r.session(s); got.Outcome != inventory.OutcomeArrived {
		t.Errorf("session %+v", got)
	}
}

func TestABootWhoseSessionWasLostGetsANewOne(t *testing.T) {
	r := newRack(t)
	m := r.machine(1)
	script := m.script(base + "/boot/" + strings.Repeat("ab", 16) + "/ask")
	if !strings.Contains(script, "not accepted") || strings.Contains(script, strings.Repeat("ab", 16)) {
		t.Errorf("script:\n%s", script)
	}
	if m.host().State != inventory.Discovered {
		t.Error("the machine was not listed")
	}
}

func TestTheLoopBreakerQuarantinesAndAReleaseStartsAfresh(t *testing.T) {
	r := newRack(t)
	m := r.accepted()
	for i := range boot.DefaultBreaker.Boots {
		if script, _ := m.boot(); !strings.Contains(script, "kernel ") {
			t.Fatalf("boot %d got no image:\n%s", i+1, script)
		}
	}
	script, _ := m.boot()
	if strings.Contains(script, "kernel ") || !strings.Contains(script, "quarantined") || !strings.Contains(script, "reboot") {
		t.Fatalf("the sixth fruitless boot:\n%s", script)
	}
	if h := m.host(); h.State != inventory.Failed || !strings.Contains(h.StateReason, "5 times") {
		t.Errorf("host %s: %s", h.State, h.StateReason)
	}
	if open := r.openIssues(); len(open) != 1 || open[0].Type != inventory.IssueBootLoop || open[0].Hint == "" {
		t.Errorf("issues %+v", open)
	}
	_, err := r.engine.Release(context.Background(), m.host().ID, ledger.By("a test"))
	r.must(err)
	script, s := m.boot()
	if !strings.Contains(script, "kernel ") {
		t.Fatalf("after the release:\n%s", script)
	}
	r.must(m.report(s, pxe.ReportUp))
	if open := r.openIssues(); len(open) != 0 {
		t.Errorf("issues still open: %+v", open)
	}
}

func TestBootsThatArriveAreNoLoop(t *testing.T) {
	r := newRack(t)
	m := r.accepted()
	for range 3 * boot.DefaultBreaker.Boots {
		script, s := m.boot()
		if !strings.Contains(script, "kernel ") {
			t.Fatalf("script:\n%s", script)
		}
		r.must(m.report(s, pxe.ReportUp))
	}
}

func TestTwoHostsWithOneUUIDAreAnIssueThatNamesBothAndBootTheirOwn(t *testing.T) {
	r := newRack(t)
	r.image("one", false, "mac=52:54:00:aa:00:01", 0)
	r.image("second", false, "mac=52:54:00:aa:00:02", 0)
	a, b := r.machine(1), r.machine(2)
	b.uuid = a.uuid
	a.boot()
	b.boot()
	open := r.openIssues()
	if len(open) != 1 || open[0].Type != inventory.IssueIdentityConflict || !strings.Contains(open[0].Cause, a.host().Name) ||
		!strings.Contains(open[0].Cause, b.host().Name) || len(open[0].HostIDs) != 2 {
		t.Fatalf("issues %+v", open)
	}
	a.accept()
	b.accept()
	for m, want := range map[*machine]string{a: "image-one", b: "image-second"} {
		if _, s := m.boot(); r.session(s).Image != want {
			t.Errorf("%s boots %s, want %s", m.mac(), r.session(s).Image, want)
		}
	}
}

func TestATieIsRefusedWithBothNames(t *testing.T) {
	r := newRack(t)
	r.image("blue", false, "mac", 5)
	r.image("green", false, "product=R640", 5)
	m := r.machine(1)
	m.boot()
	m.accept()
	script, _ := m.boot()
	if !strings.Contains(script, "blue") || !strings.Contains(script, "green") || strings.Contains(script, "kernel ") {
		t.Errorf("script:\n%s", script)
	}
	open := r.openIssues()
	if len(open) != 1 || !strings.Contains(open[0].Cause, "blue and green") {
		t.Fatalf("issues %+v", open)
	}
	r.write(func(tx inventory.Tx) error {
		p, err := tx.Profiles().Find("green")
		if err != nil {
			return err
		}
		p.Priority = 6
		return tx.Profiles().Update(&p, r.clock)
	})
	if script, _ = m.boot(); !strings.Contains(script, "kernel ") {
		t.Errorf("after the tie was broken:\n%s", script)
	}
	if open := r.openIssues(); len(open) != 0 {
		t.Errorf("issues still open: %+v", open)
	}
}

func TestReportsCountOnlyFromTheMachineItself(t *testing.T) {
	r := newRack(t)
	r.image("live", false, "mac", 0)
	m, other := r.machine(1), r.machine(2)
	m.boot()
	m.accept()
	_, s := m.boot()
	err := r.engine.Report(context.Background(), s, other.address(), "", pxe.Report{Step: pxe.ReportUp})
	if !inventory.IsKind(err, inventory.Forbidden) {
		t.Errorf("a stranger's report: %v", err)
	}
	if h := m.host(); h.State != inventory.Installing {
		t.Errorf("host is %s", h.State)
	}
	if _, err := r.engine.Artefact(context.Background(), s, other.address(), "sha256:", ""); !inventory.IsKind(err, inventory.Forbidden) {
		t.Errorf("a stranger's fetch: %v", err)
	}
	if err := m.report(s, "dance"); !inventory.IsKind(err, inventory.Invalid) {
		t.Errorf("an unknown step: %v", err)
	}
	if err := m.report(inventory.SessionID(strings.Repeat("00", 16)), pxe.ReportUp); !inventory.IsKind(err, inventory.NotFound) {
		t.Errorf("an unknown session: %v", err)
	}
}

func TestAnAcceptRuleAcceptsWhatItMatches(t *testing.T) {
	r := newRack(t)
	r.image("live", false, "mac", 0)
	r.write(func(tx inventory.Tx) error {
		return tx.AcceptRules().Create(&inventory.AcceptRule{Name: "acme", Selector: "manufacturer=ACME"}, r.clock)
	})
	m := r.machine(1)
	if script, _ := m.boot(); !strings.Contains(script, "kernel ") {
		t.Errorf("script:\n%s", script)
	}
	if h := m.host(); h.State != inventory.Installing {
		t.Errorf("host is %s", h.State)
	}
}

func TestAnInstallerRunsOnceAndOnlyWhereItWasAskedFor(t *testing.T) {
	r := newRack(t)
	r.image("installer", true, "mac", 0)
	m, ctx := r.machine(1), context.Background()
	m.boot()
	m.accept()
	id := m.host().ID
	if script, _ := m.boot(); strings.Contains(script, "kernel ") {
		t.Fatalf("an installer ran unasked:\n%s", script)
	}
	_, err := r.engine.Protect(ctx, id, true, ledger.By("a test"))
	r.must(err)
	if _, err := r.engine.Install(ctx, id, "", ledger.By("a test")); !inventory.IsKind(err, inventory.Forbidden) {
		t.Errorf("install of a protected host: %v", err)
	}
	_, err = r.engine.Protect(ctx, id, false, ledger.By("a test"))
	r.must(err)
	_, err = r.engine.Install(ctx, id, "", ledger.By("a test"))
	r.must(err)
	script, s := m.boot()
	if !strings.Contains(script, "kernel ") {
		t.Fatalf("script of an armed host:\n%s", script)
	}
	r.must(m.report(s, pxe.ReportInstalled))
	if h := m.host(); h.IsArmed || h.State != inventory.Active {
		t.Errorf("host %s, armed %v after the installation", h.State, h.IsArmed)
	}
	if script, _ := m.boot(); strings.Contains(script, "kernel ") {
		t.Errorf("the installer ran again:\n%s", script)
	}
}

func TestAskingForAnInstallationAcceptsTheHost(t *testing.T) {
	r := newRack(t)
	r.image("installer", true, "", 0)
	m := r.machine(1)
	m.boot()
	_, err := r.engine.Install(context.Background(), m.host().ID, "installer", ledger.By("a test"))
	r.must(err)
	if h := m.host(); h.State != inventory.Available || !h.IsArmed || h.Profile != "installer" {
		t.Fatalf("host %+v", h)
	}
	script, s := m.boot()
	if !strings.Contains(script, "kernel ") {
		t.Errorf("script:\n%s", script)
	}
	r.must(m.report(s, pxe.ReportFailed))
	if _, err := r.engine.Install(context.Background(), m.host().ID, "", ledger.By("a test")); !inventory.IsKind(err, inventory.Conflict) {
		t.Errorf("install of a failed host: %v", err)
	}
}

func TestAnInstallerThatDoesNotReportRunsOnce(t *testing.T) {
	r := newRack(t)
	r.image("installer", true, "mac", 0)
	m, ctx := r.machine(1), context.Background()
	m.boot()
	_, err := r.engine.Install(ctx, m.host().ID, "", ledger.By("a test"))
	r.must(err)
	if script, _ := m.boot(); !strings.Contains(script, "kernel ") {
		t.Fatalf("script of an armed host:\n%s", script)
	}
	if script, _ := m.boot(); !strings.Contains(script, "kernel ") {
		t.Fatalf("a boot that loaded nothing used up the word:\n%s", script)
	}
	r.engine.Transferred(pxe.Transfer{Source: m.address(), Proto: "http", Name: "linux", Bytes: 5, Size: 5})
	r.settle()
	if script, _ := m.boot(); strings.Contains(script, "kernel ") || m.host().IsArmed {
		t.Errorf("the installer ran twice:\n%s", script)
	}
	_, err = r.engine.Install(ctx, m.host().ID, "", ledger.By("a test"))
	r.must(err)
	if script, _ := m.boot(); !strings.Contains(script, "kernel ") {
		t.Errorf("asked for again:\n%s", script)
	}
}

func TestAFailureReportQuarantines(t *testing.T) {
	r := newRack(t)
	m := r.accepted()
	_, s := m.boot()
	r.must(m.report(s, pxe.ReportFailed))
	if h := m.host(); h.State != inventory.Failed || !strings.Contains(h.StateReason, "Linux 6.1") {
		t.Errorf("host %s: %s", h.State, h.StateReason)
	}
	if script, _ := m.boot(); strings.Contains(script, "kernel ") || !strings.Contains(script, "Linux 6.1") {
		t.Errorf("script:\n%s", script)
	}
}

func TestSilentSessionsEnd(t *testing.T) {
	r := newRack(t)
	m := r.machine(1)
	_, s := m.boot()
	_, lost := r.machine(2).boot()
	r.restart() // the second session is known to the store only
	m.dhcp(pxe.StageOS)
	r.clock = r.clock.Add(session.SilentFor + time.Second)
	r.must(sweep(r.engine))
	r.settle()
	for _, id := range []inventory.SessionID{s, lost} {
		if got := r.session(id); got.Outcome == "" || got.EndedAt.IsZero() {
			t.Errorf("session %+v", got)
		}
	}
}

func TestOldHistoryIsForgotten(t *testing.T) {
	r := newRack(t)
	_, old := r.machine(1).boot()
	r.clock = r.clock.Add(24 * time.Hour)
	r.must(sweep(r.engine))
	r.settle()
	_, recent := r.machine(2).boot()
	r.engine.cfg.KeepHistory = 12 * time.Hour
	r.engine.outfit()
	r.must(r.engine.Ledger.Forget(context.Background()))
	if got := r.kinds(recent); len(got) == 0 {
		t.Error("the recent boot has no events any more")
	}
	err := r.store.Read(context.Background(), func(tx inventory.Tx) error {
		_, err := tx.FindSession(old)
		return err
	})
	if !inventory.IsKind(err, inventory.NotFound) {
		t.Errorf("the old boot is still there: %v", err)
	}
}

func TestSelectProfile(t *testing.T) {
	host := inventory.Host{Name: "web-1", Labels: map[string]string{"tier": "web"}, Product: "R640"}
	p := func(name, selector string, priority int) inventory.Profile {
		return inventory.Profile{Name: name, Selector: selector, Priority: priority}
	}
	for _, tc := range []struct {
		name, pinned string
		profiles     []inventory.Profile
		want, err    string
	}{
		{"the only one that matches", "", []inventory.Profile{p("a", "tier=db", 0), p("b", "tier=web", 0)}, "b", ""},
		{"the higher priority", "", []inventory.Profile{p("a", "tier=web", 1), p("b", "product=R640", 2)}, "b", ""},
		{"a tie below the highest does not matter", "", []inventory.Profile{p("a", "tier", 1), p("b", "tier", 1), p("c", "tier", 2)}, "c", ""},
		{"a tie names both", "", []inventory.Profile{p("a", "tier", 1), p("b", "tier", 1)}, "", "profiles a and b both match"},
		{"the pinned one wins over any selector", "a", []inventory.Profile{p("a", "", 0), p("b", "tier=web", 9)}, "a", ""},
		{"a pinned one that is gone", "z", []inventory.Profile{p("b", "tier=web", 9)}, "", "profile z, pinned to this host, does not exist"},
		{"an empty selector matches nothing", "", []inventory.Profile{p("a", "", 0)}, "", "no profile matches"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := host
			h.Profile = tc.pinned
			got, err := configuration.SelectProfile(&h, tc.profiles)
			switch {
			case tc.err == "" && (err != nil || got.Name != tc.want):
				t.Errorf("got %s, %v", got.Name, err)
			case tc.err != "" && (err == nil || !strings.Contains(err.Msg, tc.err) || err.Hint == ""):
				t.Errorf("error %v, want %s and a hint", err, tc.err)
			}
		})
	}
}

func TestFilesBesideAnImageAreFoundByName(t *testing.T) {
	r := newRack(t)
	r.image("live", false, "mac", 0)
	first, second := inventory.Digest("sha256:"+strings.Repeat("04", 32)), inventory.Digest("sha256:"+strings.Repeat("ab", 32))
	r.write(func(tx inventory.Tx) error {
		if err := tx.SaveArtefact(inventory.Artefact{Digest: second, SizeBytes: 1, CreatedAt: r.clock}); err != nil {
			return err
		}
		i, err := tx.Images().Find("image-live")
		if err != nil {
			return err
		}
		i.Files = append(i.Files, inventory.ImageArtefact{Role: inventory.RoleRootfs, Name: "linux.md5", Digest: second})
		return tx.Images().Update(&i, r.clock)
	})
	m := r.machine(1)
	m.boot()
	m.accept()
	_, s := m.boot()
	for name, want := range map[string]inventory.Digest{"linux": first, "linux.md5": second, "other": first} {
		if got, err := r.engine.Artefact(context.Background(), s, m.address(), first, name); err != nil || got != want {
			t.Errorf("%s is %s, %v; want %s", name, got, err, want)
		}
	}
	if _, err := r.engine.Artefact(context.Background(), s, m.address(), inventory.Digest("sha256:"+strings.Repeat("cd", 32)), "linux"); !inventory.IsKind(err, inventory.Forbidden) {
		t.Errorf("a digest that is not the image's: %v", err)
	}
}

func TestADeletedHostIsDiscoveredAgain(t *testing.T) {
	r := newRack(t)
	m := r.machine(1)
	m.dhcp(pxe.StageFirmware)
	old := m.host().ID
	r.write(func(tx inventory.Tx) error { return tx.DeleteHost(old) })
	r.clock = r.clock.Add(time.Minute)
	m.dhcp(pxe.StageFirmware)
	if h := m.host(); h.ID == old || h.State != inventory.Discovered {
		t.Errorf("host %+v", h)
	}
}

func TestAFloodOfStrangersIsBoundedAndARealMachineInItStillBoots(t *testing.T) {
	r := newRack(t)
	for i := range 3000 {
		mac := inventory.MAC(fmt.Sprintf("02:00:00:00:%02x:%02x", i>>8, i&0xff))
		reply := r.engine.Offer(context.Background(), pxe.Client{Stage: pxe.StageFirmware, MAC: mac, Firmware: inventory.BIOS, Arch: inventory.X8664}, base)
		if reply.File == "" {
			t.Fatalf("machine %d got no loader", i)
		}
	}
	r.settle()
	if n := r.hostN(); n < 500 || n > 1500 {
		t.Errorf("%d hosts listed of a flood of 3,000", n)
	}
	m := r.machine(1)
	reply := m.dhcp(pxe.StageIPXE)
	if script := m.script(reply.File); !strings.Contains(script, "not accepted") {
		t.Errorf("script after %q:\n%s", reply.File, script)
	}
	if m.host().Serial != "SN1" {
		t.Error("the real machine is not listed")
	}
}

func (r *rack) hostN() (n int) {
	r.t.Helper()
	r.must(r.store.Read(context.Background(), func(tx inventory.Tx) (err error) {
		n, err = tx.CountHosts(inventory.HostFilter{})
		return err
	}))
	return n
}

// counted counts the transactions that write.
type counted struct {
	inventory.Store
	writeN int
}

func (s *counted) Write(ctx context.Context, fn func(inventory.Tx) error) error {
	s.writeN++
	return s.Store.Write(ctx, fn)
}

func TestAMachineThatAsksTheSameAgainCostsNoWrite(t *testing.T) {
	r := newRack(t)
	r.image("live", false, "mac", 0)
	m := r.machine(1)
	_, s := m.boot()
	store := &counted{Store: r.engine.cfg.Store}
	r.engine.cfg.Store = store
	r.engine.outfit()
	ask := func() string { return m.script(base + "/boot/" + string(s) + "/ask") }
	for range 3 {
		r.clock = r.clock.Add(10 * time.Second)
		if script := ask(); !strings.Contains(script, "not accepted") || store.writeN != 0 {
			t.Fatalf("%d writes for:\n%s", store.writeN, script)
		}
	}
	if got, ok := r.engine.sessions.Of(m.mac()); !ok || !got.LastAt.Equal(r.clock) || got.Step != inventory.EventBootDecided {
		t.Errorf("the boot in memory is %+v", got)
	}
	r.clock = r.clock.Add(boot.SeenEvery)
	if ask(); store.writeN != 1 {
		t.Errorf("%d writes when it was last seen a minute ago", store.writeN)
	}
	if got := r.session(s); !got.LastAt.Equal(r.clock) {
		t.Errorf("the boot on disk is %+v", got)
	}
	m.accept()
	before := store.writeN
	if script := ask(); !strings.Contains(script, "kernel ") || store.writeN <= before {
		t.Errorf("after it was accepted, %d writes for:\n%s", store.writeN-before, script)
	}
	if got := r.session(s); got.Boot != string(pxe.BootImage) {
		t.Errorf("the boot on disk is %+v", got)
	}
	before = store.writeN
	if script := ask(); !strings.Contains(script, "kernel ") || store.writeN != before {
		t.Errorf("%d writes for the same image again:\n%s", store.writeN-before, script)
	}
}
