package provision

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/pxe"
)

// bootstrap is what a bootstrap provider of Cluster API writes, in small.
const bootstrap = "## template: jinja\n#cloud-config\nwrite_files:\n- path: /run/kubeadm/kubeadm.yaml\n  content: |\n    token: " + canary +
	"\n    name: {{ ds.meta_data.local_hostname }}\n    provider-id: {{ ds.meta_data.provider_id }}\nruncmd:\n- kubeadm join\n"

// encoded is how it stands in a document.
var encoded = base64.StdEncoding.EncodeToString([]byte(bootstrap))

func (l *life) give(name, value, format string, check bool) error {
	return l.engine.GiveBootstrap(context.Background(), name, []byte(value), format, check)
}

// wanted counts how often the data of a machine were asked for.
func (l *life) wanted() (n int) {
	l.t.Helper()
	l.must(l.store.Read(context.Background(), func(tx inventory.Tx) error {
		all, err := tx.ListEvents(inventory.EventFilter{Kind: inventory.EventBootstrapWanted}, 0, 0)
		for _, ev := range all {
			data, _ := ev.Data.(map[string]any)
			if ev.Subject != "machine/web-1" || data["owner"] != "c/ns/K/web/u" {
				l.t.Errorf("event %+v", ev)
			}
		}
		n = len(all)
		return err
	}))
	return n
}

// foreign makes a machine whose bootstrap data come from somewhere else.
func (l *life) foreign(profile string) *server {
	l.t.Helper()
	s := l.add("a", true)
	s.lease(s.mac())
	l.create(inventory.Machine{Name: "web-1", Profile: profile, Owner: "c/ns/K/web/u", BootstrapFrom: "lab/ns/web-1-data"})
	return s
}

func TestABootWaitsForItsBootstrapDataAndKeepsThemInMemory(t *testing.T) {
	l := newLife(t)
	var logged bytes.Buffer
	s := l.foreign("debian12")
	l.engine.cfg.Log = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	l.engine.outfit()
	waits := func() bool {
		m, _ := l.find("web-1")
		return strings.Contains(m.Reason, "waits for its bootstrap data from lab/ns/web-1-data")
	}
	l.until("it waits for its data", waits)
	if s.writes != 0 || len(l.openIssues()) != 0 {
		t.Errorf("written %d times, issues %+v", s.writes, l.openIssues())
	}
	n, from := l.wanted(), l.clock
	for range 12 {
		l.turn()
	}
	if got := l.wanted() - n; got < 3 || got > int(l.clock.Sub(from)/delivery.WantedEvery)+1 {
		t.Errorf("asked %d times in %s", got, l.clock.Sub(from))
	}
	v := l.view("web-1")
	if v.Delivered || v.Operation == nil || v.Operation.Step != inventory.StepWrite || v.Operation.State != inventory.OpWaiting {
		t.Errorf("view %+v", v)
	}
	l.must(l.give("web-1", bootstrap, "", true))
	l.turn()
	if !waits() {
		t.Error("a check has given the data")
	}
	l.must(l.give("web-1", bootstrap, "cloud-config", false))
	l.until("it is written", func() bool { return s.writes == 1 })
	doc, err := s.askAs(pxe.ConfigRequest{Session: s.session, Source: s.address(), Name: "user-data", Base: base, Key: s.r.engine.DocumentKey(s.session)})
	if err != nil || !strings.Contains(doc, encoded) {
		t.Fatalf("user-data: %v\n%s", err, doc)
	}
	meta, err := s.askAs(pxe.ConfigRequest{Session: s.session, Source: s.address(), Name: "meta-data", Base: base, Key: s.r.engine.DocumentKey(s.session)})
	if err != nil || !strings.Contains(meta, v.ProviderID) || !strings.HasPrefix(v.ProviderID, "slipway://fra/"+string(s.host().ID)+"/") {
		t.Errorf("meta-data: %v\n%s\nprovider id %s", err, meta, v.ProviderID)
	}
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	if v := l.view("web-1"); !v.Delivered || !v.IsUp {
		t.Errorf("view %+v", v)
	}
	m, _ := l.find("web-1")
	if ok := l.engine.Bootstraps.Has(m.UID, l.clock.Add(delivery.AgainFor)); ok {
		t.Error("the data are kept after they were delivered")
	}
	p, err := l.engine.Preview(context.Background(), s.host().ID, nil)
	l.must(err)
	shown, _ := json.Marshal(p)
	for where, text := range map[string]string{"the log": logged.String(), "the preview": string(shown), "a machine": fmt.Sprint(m)} {
		if strings.Contains(text, canary) {
			t.Errorf("%s holds the data", where)
		}
	}
	l.nowhere(canary)
}

// nowhere looks for a secret in every file of the database.
func (l *life) nowhere(secret string) {
	l.t.Helper()
	path := filepath.Join(l.t.TempDir(), "copy.db")
	l.must(l.store.Backup(context.Background(), path))
	files, err := filepath.Glob(path + "*")
	l.must(err)
	for _, f := range files {
		b, err := os.ReadFile(f)
		l.must(err)
		if bytes.Contains(b, []byte(secret)) || bytes.Contains(b, []byte(encoded)) {
			l.t.Errorf("%s holds the data", filepath.Base(f))
		}
	}
	if len(files) == 0 {
		l.t.Error("no database to look into")
	}
}

func TestASystemThatBootsFromTheNetworkWaitsInItsScript(t *testing.T) {
	l := newLife(t)
	l.configured("live", inventory.ImageConfig{Format: "ignition", Version: "3.4.0"}, inventory.Profile{})
	s := l.foreign("live")
	s.isLive, s.isMute = true, true
	l.until("it is told to wait", func() bool { return s.runs == "wait" && l.wanted() > 0 })
	if i := l.openIssues(); len(i) != 0 {
		t.Errorf("issues %+v", i)
	}
	if v := l.view("web-1"); v.Session == nil || !strings.Contains(v.Session.Reason, "waits for its bootstrap data") || v.Delivered {
		t.Errorf("view %+v", v)
	}
	ign := strings.Replace(bootstrap, "## template: jinja\n", "", 1)
	l.must(l.give("web-1", strings.ReplaceAll(ign, "{{ ds.meta_data.local_hostname }}\n    provider-id: {{ ds.meta_data.provider_id }}", "x"), "", false))
	l.until("it boots its image", func() bool { return s.runs == "live" || s.runs == "image" })
	doc, err := s.askAs(pxe.ConfigRequest{Session: s.session, Source: s.address(), Name: "config.ign", Base: base, Key: s.r.engine.DocumentKey(s.session)})
	if err != nil || !strings.Contains(doc, strings.TrimRight(base64.StdEncoding.EncodeToString([]byte("token: "+canary)), "=")) {
		t.Fatalf("config.ign: %v\n%s", err, doc)
	}
	l.settle()
	if v := l.view("web-1"); !v.Delivered || v.IsUp {
		t.Errorf("view %+v", v)
	}
	l.must(s.report(s.session, pxe.ReportUp))
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	l.nowhere(canary)
}

func TestDataThatAreLostOnTheWayAreAskedForAgain(t *testing.T) {
	for _, c := range []struct {
		name string
		lose func(l *life)
	}{
		{"with the server", func(l *life) { l.restart() }},
		{"with time", func(l *life) { l.clock = l.clock.Add(delivery.BootstrapFor) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLife(t)
			s := l.foreign("debian12")
			l.must(l.give("web-1", bootstrap, "", false))
			l.until("it is written", func() bool { return s.writes == 1 })
			if l.wanted() != 0 {
				t.Error("data that were there were asked for")
			}
			s.lease(s.mac())
			ask := func() (string, error) {
				return s.askAs(pxe.ConfigRequest{Session: s.session, Source: s.address(), Name: "user-data", Base: base, Key: s.r.engine.DocumentKey(s.session)})
			}
			c.lose(l)
			if _, err := ask(); !inventory.IsKind(err, inventory.Unavailable) || l.wanted() != 1 {
				t.Fatalf("%v, asked %d times", err, l.wanted())
			}
			l.must(l.give("web-1", bootstrap, "", false))
			if doc, err := ask(); err != nil || !strings.Contains(doc, encoded) {
				t.Errorf("%v\n%s", err, doc)
			}
		})
	}
}

func TestBootstrapDataThatCannotBeUsedAreRefusedWithTheReason(t *testing.T) {
	l := newLife(t)
	l.configured("live", inventory.ImageConfig{Format: "ignition", Version: "3.4.0"}, inventory.Profile{})
	l.configured("talos", inventory.ImageConfig{Format: "talos", Version: "1.13"}, inventory.Profile{Config: "bootstrap: {kind: talos}\nphoneHome: {enabled: false}\n"})
	for n, profile := range []string{"debian12", "live", "talos"} { // none has a host: they are checked all the same
		l.create(inventory.Machine{Name: fmt.Sprintf("m%d", n), Profile: profile, BootstrapFrom: "lab/ns/x"})
	}
	for _, c := range []struct {
		name, machine, value, format, want string
	}{
		{"a format that nobody knows", "m0", "{}", "butane", "UnsupportedFormat"},
		{"an Ignition configuration for an image with cloud-init", "m0", `{"ignition":{"version":"3.4.0"}}`, "ignition", "UnsupportedFormat"},
		{"what is no cloud-config", "m0", "hello " + canary, "", "UnsupportedFormat"},
		{"nothing", "m0", "", "", "UnsupportedFormat"},
		{"a module that Ignition does not have", "m1", "#cloud-config\nchpasswd: {expire: false, list: [" + canary + "]}\n", "", "UnsupportedDirective"},
		{"a value of a machine that this has not", "m1", "## template: jinja\n#cloud-config\nruncmd:\n- echo {{ ds.meta_data.region }} " + canary + "\n", "", "UnsupportedDirective"},
		{"what is right", "m1", "#cloud-config\nruncmd:\n- echo " + canary + "\n", "", ""},
		{"what asks for the provider id", "m0", bootstrap, "", ""},
		{"a machine configuration of Talos", "m2", "version: v1alpha1\nmachine: {type: worker, token: " + canary + "}\ncluster: {controlPlane: {endpoint: \"https://10.0.0.1:6443\"}}\n", "", ""},
		{"a cloud-config for Talos", "m2", "#cloud-config\nruncmd:\n- echo " + canary + "\n", "", "InvalidBootstrapData"},
		{"a machine configuration of Talos for an image with cloud-init", "m0", "version: v1alpha1\nmachine: {type: worker, token: " + canary + "}\n", "", "UnsupportedFormat"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, check := range []bool{true, false} {
				err := l.give(c.machine, c.value, c.format, check)
				if got := contract.BootstrapReason(err); got != c.want || (err != nil) != (c.want != "") {
					t.Fatalf("check %v: %v, reason %q", check, err, got)
				}
				var e *inventory.Error
				if err != nil && (!errors.As(err, &e) || e.Kind != inventory.Invalid || strings.Contains(err.Error()+e.Hint, canary)) {
					t.Errorf("%v (%+v)", err, e)
				}
			}
			m, _ := l.find(c.machine)
			if ok := l.engine.Bootstraps.Has(m.UID, l.clock); ok != (c.want == "") {
				t.Errorf("kept: %v", ok)
			}
			l.engine.Bootstraps.Drop(m.UID)
		})
	}
	l.create(inventory.Machine{Name: "own"})
	if err := l.give("own", bootstrap, "", false); !inventory.IsKind(err, inventory.Conflict) {
		t.Errorf("a machine that takes none: %v", err)
	}
	if err := l.give("nobody", bootstrap, "", false); !inventory.IsKind(err, inventory.NotFound) {
		t.Errorf("no machine: %v", err)
	}
}

func TestAMachineThatLosesItsHostLosesTheDataThatWereGivenForIt(t *testing.T) {
	l := newLife(t)
	s := l.foreign("debian12")
	l.until("it waits", func() bool { return l.wanted() > 0 })
	m, _ := l.find("web-1")
	s.faults = []wire.Report{{State: wire.Failed, Error: "the disk is dead", IsLasting: true}}
	l.must(l.give("web-1", bootstrap, "", false))
	given := l.clock
	l.until("the host is quarantined", l.hostIs(s, inventory.Failed))
	if now, ok := l.find("web-1"); !ok || now.ClaimID != "" || l.clock.Sub(given) >= delivery.BootstrapFor {
		t.Fatalf("machine %+v, after %s", now, l.clock.Sub(given))
	}
	if ok := l.engine.Bootstraps.Has(m.UID, l.clock); ok {
		t.Error("they outlive the claim")
	}
}

func TestDataEndWithTheClaimAndWithTime(t *testing.T) {
	l := newLife(t)
	s := l.foreign("debian12")
	l.until("it waits", func() bool { return l.wanted() > 0 })
	m, _ := l.find("web-1")
	has := func(at time.Duration) bool {
		return l.engine.Bootstraps.Has(m.UID, l.clock.Add(at))
	}
	l.must(l.give("web-1", bootstrap, "", false))
	if !has(delivery.BootstrapFor-time.Second) || has(delivery.BootstrapFor) {
		t.Error("they last another time than ten minutes")
	}
	l.must(l.give("web-1", bootstrap, "", false))
	l.delete("web-1", true)
	if has(0) {
		t.Error("they outlive the claim")
	}
	_ = s
}
