package net_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// canary is a secret that must stand nowhere but in the one document that its machine is given.
const canary = "canary-7f3a91-do-not-tell"

const secretConfig = `
users: [{name: admin, passwordHash: secret://admin-hash}]
files:
- {path: /etc/token, mode: "0600", secret: secret://token}
- {path: /etc/app.conf, mode: "0600", text: "token = {{ secret \"token\" }}\n"}
commands: [{shell: "echo '{{ secret \"token\" }}' > /root/copy"}]
`

// TestASecretStandsNowhereButInTheDeliveredDocument boots machines whose configuration holds secrets, in the initrd and
// by URL, and then searches everything that was written, said or shown.
func TestASecretStandsNowhereButInTheDeliveredDocument(t *testing.T) {
	a := newAppliance(t)
	ctx := t.Context()
	value, hash := canary, "$6$"+canary+"$x"
	for name, v := range map[string]*string{"token": &value, "admin-hash": &hash} {
		if _, err := a.API.SetSecret(ctx, name, wire.SecretInput{Value: v}); err != nil {
			t.Fatal(err)
		}
	}
	a.ImportLive()
	image, err := a.API.Images.Get(ctx, "live")
	if err != nil || len(image.Configs) != 2 {
		t.Fatalf("image %+v: %v", image, err)
	}
	// All simulated machines are behind one network card, which level L1 takes for theft: see the next test.
	profile := inventory.Profile{Name: "live", Image: "live", Selector: "mac", Config: secretConfig, Isolated: true}
	if _, err := a.API.Profiles.Create(ctx, profile); err != nil {
		t.Fatal(err)
	}
	if _, err := a.API.AcceptRules.Create(ctx, inventory.AcceptRule{Name: "all", Selector: "manufacturer"}); err != nil {
		t.Fatal(err)
	}
	r := a.Boot(ctx, simulate.Config{Hosts: 4, Seed: 8, Expect: simulate.StageBooted})
	a.Good(r)

	shown := map[string]string{"the server's log": a.Process.Text()}
	for _, path := range []string{
		"/hosts", "/events?limit=1000", "/issues", "/sessions", "/profiles", "/secrets", "/images", "/profiles/live/revisions",
		"/hosts/" + a.Hosts()[0].Name + "/render", "/hosts/" + a.Hosts()[0].Name + "/renderings", "/export", "/openapi.json",
	} {
		shown[path] = a.lab.In(a.Net.Server, "curl", "-s", "--unix-socket", filepath.Join(a.Data, "slipway.sock"), "http://slipway/api/v1"+path)
	}
	if !strings.Contains(shown["/hosts/"+a.Hosts()[0].Name+"/render"], "secret://token") {
		t.Errorf("the preview does not show what is needed: %.300s", shown["/hosts/"+a.Hosts()[0].Name+"/render"])
	}
	if !strings.Contains(shown["/events?limit=1000"], inventory.EventConfigSent) {
		t.Error("no configuration was sent: this test has nothing to find")
	}
	processes, err := exec.Command("sh", "-c", "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -v CANARY").Output()
	if err != nil {
		t.Fatal(err)
	}
	shown["command lines and environments"] = string(processes)
	a.Process.Kill(15)
	err = filepath.WalkDir(a.Data, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			b, err := os.ReadFile(path)
			shown["file "+path] = string(b)
			return err
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range shown {
		if text == "" {
			t.Logf("%s is empty", where)
		}
		for _, form := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary)), strings.ToUpper(canary)} {
			if i := strings.Index(text, form); i >= 0 {
				t.Errorf("%s holds the secret: ...%.120q", where, text[max(0, i-60):])
			}
		}
	}
	if len(shown) < 16 || !bytes.HasPrefix([]byte(shown["file "+filepath.Join(a.Data, "slipway.db")]), []byte("SQLite format 3")) {
		t.Errorf("only %d places were searched", len(shown))
	}
}

func TestTheNetworkTellsWhoAsksForSecrets(t *testing.T) {
	a := newAppliance(t)
	ctx, cancel := context.WithCancel(t.Context())
	value := canary
	if _, err := a.API.SetSecret(ctx, "token", wire.SecretInput{Value: &value}); err != nil {
		t.Fatal(err)
	}
	a.ImportLive()
	profile := inventory.Profile{Name: "live", Image: "live", Selector: "mac", Config: "files: [{path: /etc/token, secret: secret://token}]"}
	if _, err := a.API.Profiles.Create(ctx, profile); err != nil {
		t.Fatal(err)
	}
	if _, err := a.API.AcceptRules.Create(ctx, inventory.AcceptRule{Name: "all", Selector: "manufacturer"}); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		// What becomes of them does not matter: they ask from addresses of theirs with a network card that is none of theirs.
		_, _ = simulate.Run(ctx, simulate.Config{
			Interface: a.Net.ClientIf, Namespace: a.Net.Client, Hosts: 1, Seed: 9, Expect: simulate.StageBooted, Firmware: simulate.Firmwares(), Timeout: time.Minute,
		})
	}()
	defer func() { cancel(); <-done }()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		issues, err := a.API.Issues.List(ctx, client.Query{})
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range issues.Items {
			if i.Type == inventory.IssueSecretRefused && strings.Contains(i.Cause, "which is no port of") {
				return
			}
		}
	}
	t.Errorf("no issue; the server said:\n%s", a.Process.Text())
}

// ignitionEngine is Debian's, from its package ignition.
const ignitionEngine = "/usr/lib/dracut/modules.d/30ignition/ignition"

// TestIgnitionFetchesItsSecrets runs Ignition itself on a machine that has its address from our DHCP: over HTTP, and
// with a site that sends secrets over TLS only.
func TestIgnitionFetchesItsSecrets(t *testing.T) {
	for name, env := range map[string][]string{"over HTTP": nil, "over TLS, behind a first stage": {tlsEnv + "=1"}} {
		t.Run(name, func(t *testing.T) {
			a := newAppliance(t, env...)
			if _, err := os.Stat(ignitionEngine); err != nil {
				t.Fatal("needs Debian package ignition: ", err)
			}
			ctx := t.Context()
			value := canary
			if _, err := a.API.SetSecret(ctx, "token", wire.SecretInput{Value: &value}); err != nil {
				t.Fatal(err)
			}
			a.ImportLive(inventory.ImageConfig{Format: "ignition", Version: "3.3.0"})
			profile := inventory.Profile{Name: "live", Image: "live", Selector: "mac", Config: "files: [{path: /etc/token, mode: '0600', secret: secret://token}]"}
			if _, err := a.API.Profiles.Create(ctx, profile); err != nil {
				t.Fatal(err)
			}
			if _, err := a.API.AcceptRules.Create(ctx, inventory.AcceptRule{Name: "all", Selector: "manufacturer"}); err != nil {
				t.Fatal(err)
			}
			m := a.Net.Client
			a.lab.In(m, "udhcpc", "-i", a.Net.ClientIf, "-f", "-q", "-n", "-t", "5", "-T", "2", "-s", a.lab.script(udhcpcScript))
			mac := strings.TrimSpace(a.lab.In(m, "cat", "/sys/class/net/"+a.Net.ClientIf+"/address"))
			script := a.lab.In(m, "curl", "-s", "http://10.77.0.1/boot/script?manufacturer=ACME&mac="+strings.ReplaceAll(mac, ":", "-"))
			_, rest, ok := strings.Cut(script, "config=")
			if !ok {
				t.Fatalf("script:\n%s", script)
			}
			url := strings.Fields(rest)[0]
			plain := a.lab.In(m, "curl", "-s", url)
			if isTold := strings.Contains(plain, canary); isTold != (env == nil) {
				t.Errorf("over HTTP comes: %s", plain)
			}
			cache := filepath.Join(a.lab.Dir, "ignition.cache")
			first := filepath.Join(a.lab.Dir, "first.ign")
			err := os.WriteFile(first, []byte(`{"ignition":{"version":"3.3.0","config":{"replace":{"source":"`+url+`"}}}}`), 0o600)
			if err != nil {
				t.Fatal(err)
			}
			out, err := a.lab.Try(60*time.Second, "ip", "netns", "exec", m, "env", "IGNITION_CONFIG_FILE="+first, ignitionEngine,
				"-platform", "file", "-root", filepath.Join(a.lab.Dir, "root"), "-log-to-stdout", "-config-cache", cache,
				"-neednet", filepath.Join(a.lab.Dir, "neednet"), "-stage", "fetch")
			if err != nil {
				t.Fatalf("%v\n%s\nthe server said:\n%s", err, out, a.Process.Text())
			}
			got, err := os.ReadFile(cache)
			if err != nil || !strings.Contains(string(got), canary) {
				t.Errorf("Ignition has %s, %v\n%s", got, err, out)
			}
		})
	}
}
