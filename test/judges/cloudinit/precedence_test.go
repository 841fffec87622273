package cloudinit

import (
	"fmt"
	"testing"
)

// TestTheHostAndItsLayersWinOverTheDocument asks cloud-init's own merger who wins, which docs/profiles.md tells.
func TestTheHostAndItsLayersWinOverTheDocument(t *testing.T) {
	each(t, func(t *testing.T, r reader, cases []*seedCase) {
		c := find(t, cases, "own-precedence").result
		for key, want := range map[string]any{
			"hostname": "node-1", "fqdn": "node-1", "preserve_hostname": false, "timezone": "UTC", "locale": "en_US.UTF-8",
			"manage_etc_hosts": true, // a default of ours, not a word of a layer
			"ntp":              map[string]any{"enabled": true, "servers": []any{"ntp.theirs.example", "ntp.ours.example"}, "ntp_client": "chrony"},
		} {
			if got := c.Config[key]; fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s is %v, want %v", key, got, want)
			}
		}
		if commands, _ := c.Config["runcmd"].([]any); len(commands) < 2 || commands[0] != "echo theirs" {
			t.Errorf("the document's commands do not run first: %v", commands)
		}
		ops := c.Users.Users["ops"]
		for key, want := range map[string]any{
			"shell": "/bin/bash", "sudo": "ALL=(ALL) NOPASSWD:ALL", "lock_passwd": false, "ssh_authorized_keys": []any{"ssh-ed25519 AAAA doc"},
		} {
			if fmt.Sprint(ops[key]) != fmt.Sprint(want) {
				t.Errorf("user ops has %s %v, want %v", key, ops[key], want)
			}
		}
		if _, ok := c.Users.Users["other"]; !ok {
			t.Error("a user of the document is lost")
		}
		jinja := find(t, cases, "own-template").result.Config
		if jinja["hostname"] != "node-1" || jinja["final_message"] != "node-1" {
			t.Errorf("a template of the document is merged as %v, %v", jinja["hostname"], jinja["final_message"])
		}
	})
}

// TestTheImagesUserKeepsWhatTheDocumentGivesIt looks at what cc_ssh and cc_set_passwords read.
func TestTheImagesUserKeepsWhatTheDocumentGivesIt(t *testing.T) {
	each(t, func(t *testing.T, r reader, cases []*seedCase) {
		for _, name := range []string{"own-silence", "own-default-user"} {
			c := find(t, cases, name).result
			if u, ok := c.Users.Users["image-default"]; !ok || u["default"] != true {
				t.Errorf("%s: the image's default user is lost: %v", name, c.Users.Users)
			}
			if c.Config["password"] != "$6$a$b" {
				t.Errorf("%s: its password is lost: %v", name, c.Config["password"])
			}
		}
	})
}
