// Package capi_test lets other people's programs judge what becomes of Cluster API's bootstrap secrets: Cluster API's own
// renderers write them, the whole appliance renders for every OS, and Ignition, cloud-init, kubeadm and systemd say
// what a machine makes of it. It never judges by itself what a program can judge.
package capi_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"slipway.dev/slipway/cmd/slipway/serve"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/render"
)

func judges(t *testing.T) {
	t.Helper()
	if os.Getenv("SLIPWAY_JUDGES") == "" {
		t.Skip("other people's programs judge Cluster API's secrets; run by make test-judges")
	}
}

// program finds a program that a package of Debian brings.
func program(t *testing.T, name, pkg string) string {
	t.Helper()
	for _, p := range []string{name, "/usr/sbin/" + name, "/usr/lib/dracut/modules.d/30ignition/" + name} {
		if path, err := exec.LookPath(p); err == nil {
			return path
		}
	}
	t.Fatalf("%s is not installed: apt-get install %s", name, pkg)
	return ""
}

// part finds a program that tools/parts.sh builds.
func part(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "..", "build", "parts", name))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%v: tools/parts.sh build %s", err, name)
	}
	return path
}

// secret is one that Cluster API has written.
type secret struct{ Name, Format, Value string }

func (s secret) role() string {
	_, rest, _ := strings.Cut(s.Name, "-")
	return strings.TrimSuffix(rest, "-"+s.Format)
}

func (s secret) isRich() bool { return strings.HasPrefix(s.Name, "rich-") }

var generate = sync.OnceValues(func() ([]byte, error) {
	return exec.Command(filepath.Join("..", "..", "..", "build", "parts", "capi-secrets")).Output()
})

// secrets are what Cluster API's own renderers write: every role, both formats, plain and with all that can be said.
func secrets(t *testing.T) (out []secret) {
	t.Helper()
	part(t, "capi-secrets")
	b, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &out); err != nil || len(out) < 12 {
		t.Fatalf("%d secrets: %v", len(out), err)
	}
	return out
}

// image is an OS that a secret is to boot.
type image struct{ os, release, format, tool string }

func (i image) String() string { return i.os + " " + i.release + " " + i.format }

var images = []image{
	{"debian", "12", "cloud-init", "22.4.2"},
	{"ubuntu", "22.04", "cloud-init", "24.4"},
	{"ubuntu", "24.04", "cloud-init", "24.4"},
	{"rocky", "9", "cloud-init", "23.4"},
	{"flatcar", "stable", "ignition", "3.4.0"},
	{"fedora-coreos", "44", "ignition", "3.6.0"},
	{"rocky", "9", "kickstart", "9"},
	{"debian", "12", "preseed", "12"},
	{"ubuntu", "24.04", "autoinstall", "24.04"},
}

// What the profile says besides the secret.
const (
	hostname   = "node-1"
	providerID = "slipway://lab/node-1"
	ourFile    = "/etc/ours.conf"
	ourUnit    = "ours.service"
	reportURL  = "http://192.0.2.1/r/0123456789abcdef"
)

const profile = `
users:
  - name: ours
    sshKeys: [ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl ours@example]
files:
  - path: /etc/ours.conf
    mode: 0640
    text: "ours = 100%\n"
units:
  - name: ours.service
    enabled: true
    contents: |
      [Service]
      ExecStart=/bin/true
      [Install]
      WantedBy=multi-user.target
commands:
  - {name: first, shell: "echo ours-first >> /var/log/ours"}
  - {name: last, phase: post-bootstrap, shell: "echo ours-last >> /var/log/ours"}
bootstrap:
  kind: capi-secret
  secret: bootstrap
  providerID: slipway://lab/node-1
`

// seed is a rendering as the machine gets it.
type seed struct {
	result    render.Result
	documents map[string][]byte
	instance  string
}

var renderer = render.New(serve.Parts())

// deliver renders for an image and puts the late values in, as the appliance does when the machine asks.
func deliver(t *testing.T, s secret, on image) *seed {
	t.Helper()
	res := renderer.Host(render.Input{
		Host: &inventory.Host{
			ID: "0192-1", Name: hostname, NICs: []inventory.NIC{{MAC: "52:54:00:00:00:01"}},
		},
		BootMAC: "52:54:00:00:00:01",
		Image: &inventory.Image{
			Name: "image", OS: on.os, Release: on.release, Arch: inventory.X8664,
			Configs: []inventory.ImageConfig{{Format: on.format, Version: on.tool}},
		},
		Profiles:  []inventory.Profile{{Name: "capi", Config: profile + "  secretFormat: " + s.Format + "\n"}},
		Secret:    func(string) ([]byte, error) { return []byte(s.Value), nil },
		HasSecret: func(name string) bool { return name == "bootstrap" },
	})
	if err := res.Findings.Err(); err != nil {
		t.Fatalf("%s does not boot %s: %v", s.Name, on, res.Findings)
	}
	out := &seed{result: res, documents: map[string][]byte{}, instance: res.Config.Host.InstanceID}
	for _, d := range res.Documents {
		for line := range strings.Lines(s.Value) {
			if line = strings.TrimSpace(line); len(line) > 30 && strings.Contains(d.Text, line) {
				t.Fatalf("%s holds a line of the secret: %s", d.Name, line)
			}
		}
		data, err := late.Inject([]byte(d.Text), func(ref string) ([]byte, error) { return valueOf(s, ref) })
		if err != nil {
			t.Fatal(err)
		}
		out.documents[d.Name] = data
	}
	return out
}

func valueOf(s secret, ref string) ([]byte, error) {
	switch {
	case ref == "secret://bootstrap":
		return []byte(s.Value), nil
	case strings.HasPrefix(ref, "secret://bootstrap#"):
		return renderer.Part([]byte(s.Value), strings.TrimPrefix(ref, "secret://bootstrap#"))
	case ref == "session://report":
		return []byte(reportURL), nil
	case ref == "session://base":
		return []byte("http://192.0.2.1"), nil
	case strings.HasPrefix(ref, "session://config/"):
		return []byte("http://192.0.2.1/c/0123456789abcdef/" + strings.TrimPrefix(ref, "session://config/")), nil
	}
	return nil, fmt.Errorf("nobody gave a value for %s", ref)
}

func TestEverySecretBootsEveryOS(t *testing.T) {
	judges(t)
	n := 0
	for _, s := range secrets(t) {
		for _, on := range images {
			if s.Format == "ignition" && on.format != "ignition" {
				continue
			}
			t.Run(s.Name+" on "+on.String(), func(t *testing.T) {
				deliver(t, s, on)
				n++
			})
		}
	}
	t.Logf("%d renderings", n)
}
