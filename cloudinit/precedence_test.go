package cloudinit_test

import (
	"slices"
	"strings"
	"testing"

	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/machineconfig"
)

// withDocument is a host whose profile has a document of its own.
func withDocument(text string) *machineconfig.Config {
	return &machineconfig.Config{
		Host:     machineconfig.HostIdentity{InstanceID: "i-1", Hostname: "node-1", Timezone: "UTC"},
		Document: &machineconfig.Passthrough{Format: "cloud-config", Data: []byte(text)},
	}
}

func TestADocumentThatSaysOtherwiseThanTheHostIsWarnedOf(t *testing.T) {
	for name, test := range map[string]struct {
		text, source, message string
		change                func(*machineconfig.Config)
	}{
		"a host name":        {"#cloud-config\nhostname: doc-name\n", "document:2:11", `says hostname, and "node-1" of the host's record wins`, nil},
		"after a blank line": {"\n#cloud-config\nhostname: doc-name\n", "document:3:11", "hostname", nil},
		"in a template":      {"## template: jinja\n#cloud-config\nhostname: doc-name\n", "document:3:11", "hostname", nil},
		"a time zone":        {"#cloud-config\ntimezone: Europe/Berlin\n", "document:2:11", `"UTC" of layer site berlin wins`, nil},
		"a shell of a user": {"#cloud-config\nusers:\n- name: ops\n  shell: /bin/sh\n", "document:4:10", "says shell of user ops", func(c *machineconfig.Config) {
			c.Users = []machineconfig.User{{Name: "ops", Shell: "/bin/bash"}}
		}},
		"a switch in a mapping": {"#cloud-config\nntp:\n  enabled: false\n", "document:3:12", "says ntp.enabled", func(c *machineconfig.Config) {
			c.Time.NTPServers = []string{"192.0.2.1"}
		}},
		"the same host name": {"#cloud-config\nhostname: node-1\n", "", "", nil},
		"a default of ours":  {"#cloud-config\nmanage_etc_hosts: true\n", "", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := withDocument(test.text)
			c.Provenance = map[string]string{"/host/hostname": "inventory", "/host/timezone": "layer site berlin"}
			if test.change != nil {
				test.change(c)
			}
			r, report := cloudinit.New().Render(targets[0], c)
			if r == nil {
				t.Fatal(report)
			}
			if test.source == "" {
				if len(report) > 0 {
					t.Error(report)
				}
				return
			}
			if len(report) != 1 {
				t.Fatalf("%d findings: %v", len(report), report)
			}
			if f := report[0]; f.Source != test.source || f.Code != "overridden" || f.Severity != machineconfig.SeverityWarning || !strings.Contains(f.Message, test.message) {
				t.Errorf("found %+v", f)
			}
		})
	}
}

func TestADocumentThatCannotBeMergedIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"a mapping of users":    "#cloud-config\nusers: {ops: {}}\n",
		"a word for users":      "#cloud-config\nusers: ops\n",
		"nothing under runcmd":  "#cloud-config\nruncmd:\n",
		"a mapping of commands": "#cloud-config\nruncmd: {a: b}\n",
		"a list under ntp":      "#cloud-config\nntp: []\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := withDocument(text)
			c.Users = []machineconfig.User{{Name: "ops"}}
			c.Commands = []machineconfig.Command{{Shell: "true"}}
			c.Time.NTPServers = []string{"192.0.2.1"}
			r, report := cloudinit.New().Render(targets[0], c)
			isError := func(f machineconfig.Finding) bool {
				return f.Severity == machineconfig.SeverityError && (f.Code == "mixed" || f.Code == "bad-type") && f.Hint != "" && strings.HasPrefix(f.Source, "document:2:")
			}
			if r != nil || !slices.ContainsFunc(report, isError) {
				t.Errorf("it is rendered, or refused without its place: %+v", report)
			}
		})
	}
}

func TestSilenceAboutUsersStaysSilence(t *testing.T) {
	r, report := cloudinit.New().Render(targets[0], &machineconfig.Config{Host: machineconfig.HostIdentity{Hostname: "node-1"}})
	if r == nil || strings.Contains(string(r.Documents[0].Data), "users:") {
		t.Errorf("users are spoken of: %v", report)
	}
}
