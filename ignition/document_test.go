package ignition

import (
	"fmt"
	"strings"
	"testing"

	v33 "github.com/coreos/ignition/v2/config/v3_3"
	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/machineconfig"
)

func TestDocumentFindingsNameTheLine(t *testing.T) {
	for _, tt := range []struct {
		name, format, text string
		on                 machineconfig.Target
		source, msg        string
	}{
		{"an unknown key in Butane", "butane", "variant: fcos\nversion: 1.4.0\nstorge: {}\n", onFCOS, "document:3:1", "storge"},
		{"a warning is an error", "butane", "variant: fcos\nversion: 1.4.0\nstorage:\n  files:\n    - path: /a\n      mode: 644\n", onFCOS, "document:6:13", "mode"},
		{"YAML that is none", "butane", "variant: [", onFCOS, "document:1:1", "yaml"},
		{"a variant nobody knows", "butane", "variant: x\nversion: 1.4.0\n", onFCOS, "document:1:1", "x"},
		{"a local file", "butane", "variant: fcos\nversion: 1.4.0\nstorage:\n  files:\n    - path: /a\n      contents:\n        local: etc/passwd\n", onFCOS, "document:7:16", "local file"},
		{"a newer spec than the image reads", "butane", "variant: fcos\nversion: 1.5.0\n", onDebian, "document:1:1", "needs 3.4, this image reads 3.3"},
		{"a newer Ignition spec", "ignition", `{"ignition":{"version":"3.6.0"}}`, onFlatcar, "document:1:1", "needs 3.6, this image reads 3.4"},
		{"an experimental spec", "butane", "variant: fcos\nversion: 1.8.0-experimental\n", onFCOS, "document:1:1", "needs 3.7.0-experimental, this image reads 3.6"},
		{"an unknown key in Ignition", "ignition", "{\"ignition\":{\"version\":\"3.3.0\"},\n \"storge\":{}}", onFCOS, "document:2:2", "storge"},
		{"a key twice in Ignition", "ignition", "{\"ignition\":{\"version\":\"3.3.0\"},\n \"passwd\":{},\"passwd\":{}}", onFCOS, "document:2:14", "passwd twice"},
		{"JSON that is none", "ignition", "{\"ignition\":\n}", onFCOS, "document:2:1", "invalid character"},
		{"no version", "ignition", "{}", onFCOS, "", "Ignition refuses it"},
		{"an unverified remote document", "ignition", `{"ignition":{"version":"3.3.0","config":{"merge":[{"source":"http://x.example/y"}]}}}`, onFCOS, "document:1:61", "without a checksum"},
		{"an unverified remote file", "ignition", `{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/etc/x","contents":{"source":"http://192.0.2.9/x"}}]}}`, onFlatcar, "document:1:91", "without a checksum"},
		{"an unverified remote file over TFTP", "butane", "variant: fcos\nversion: 1.4.0\nstorage:\n  files:\n    - path: /a\n      append:\n        - source: tftp://x/y\n", onFCOS, "document:7:19", "without a checksum"},
		{"an unverified key", "butane", "variant: fcos\nversion: 1.4.0\nstorage:\n  luks:\n    - name: l\n      device: /dev/x\n      key_file:\n        source: http://x/y\n", onFCOS, "document:8:17", "without a checksum"},
		{"an unverified authority", "ignition", `{"ignition":{"version":"3.3.0","security":{"tls":{"certificateAuthorities":[{"source":"HTTP://x/y"}]}}}}`, onFCOS, "document:1:87", "without a checksum"},
		{"two documents", "butane", "variant: fcos\nversion: 1.4.0\n---\nstorage: {}\n", onFCOS, "document:3:1", "second YAML document"},
		{"an unverified replacement", "ignition", `{"ignition":{"version":"3.3.0","config":{"replace":{"source":"http://x.example/y"}}}}`, onFCOS, "document:1:62", "without a checksum"},
		{"Ignition 2 that is wrong", "ignition", `{"ignition":{"version":"2.3.0"},"storage":{"files":[{"path":"/a","filesystem":"nowhere"}]}}`, onFCOS, "document:1:1", "2.x document"},
		{"another format", "cloud-config", "#cloud-config\n", onFCOS, "", "cannot be rendered as Ignition"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, report := New().Render(tt.on, &machineconfig.Config{Document: &machineconfig.Passthrough{Format: tt.format, Data: []byte(tt.text)}})
			if out != nil {
				t.Error("something was rendered")
			}
			for _, f := range report {
				if f.Source == tt.source && strings.Contains(f.String(), tt.msg) {
					return
				}
			}
			t.Errorf("no finding at %q about %q in %+v", tt.source, tt.msg, report)
		})
	}
}

func TestDocumentIsTheBase(t *testing.T) {
	const remote = `"config":{"merge":[{"source":"https://x.example/y","verification":{"hash":"sha512-00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"}}]}`
	for _, tt := range []struct {
		name, format, text, spec string
		want, not                []string
	}{
		{
			"Ignition 3", "ignition", `{"ignition":{"version":"3.1.0",` + remote + `},"storage":{"files":[{"path":"/theirs","contents":{"source":"data:,t"}}]}}`, "3.3.0",
			[]string{"/theirs", "https://x.example/y", "data:,node-1"},
			nil,
		},
		{
			"a newer spec raises ours", "ignition", `{"ignition":{"version":"3.4.0"},"storage":{"luks":[{"name":"l","device":"/dev/x","discard":true,"keyFile":{"source":"data:,k"}}]}}`,
			"3.4.0",
			[]string{`"discard":true`, "data:,node-1"},
			nil,
		},
		{
			"Ignition 2", "ignition", `{"ignition":{"version":"2.3.0"},"storage":{"files":[{"filesystem":"root","path":"/theirs","contents":{"source":"data:,t"}}]}}`, "3.3.0",
			[]string{"/theirs", "data:,node-1"},
			[]string{"filesystem"},
		},
		{
			"ours replaces what is in the same place, whole", "ignition",
			`{"ignition":{"version":"3.3.0"},"storage":{"links":[{"path":"/etc/hostname","target":"/x"}],"files":[{"path":"/etc/hosts","contents":{"compression":"gzip","source":"data:,t"}}]}}`,
			"3.3.0",
			[]string{"data:,node-1", "/etc/hosts"},
			[]string{"gzip", `"target"`},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := render(t, onFCOS, &machineconfig.Config{
				Host:     machineconfig.HostIdentity{Hostname: "node-1", Domain: "example.org"},
				Document: &machineconfig.Passthrough{Format: tt.format, Data: []byte(tt.text)},
			})
			doc := string(out.Documents[0].Data)
			if got := SpecOf([]byte(doc)); got != tt.spec {
				t.Errorf("spec %s, want %s", got, tt.spec)
			}
			for _, w := range tt.want {
				if !strings.Contains(doc, w) {
					t.Errorf("%q is not in %s", w, doc)
				}
			}
			for _, w := range tt.not {
				if strings.Contains(doc, w) {
					t.Errorf("%q is in %s", w, doc)
				}
			}
		})
	}
}

// TestOneRuleForWhatIsFetched: https says who answers, for files and for documents alike.
func TestOneRuleForWhatIsFetched(t *testing.T) {
	for _, doc := range []string{
		`{"ignition":{"version":"3.3.0","config":{"merge":[{"source":"https://x.example/y"}]}}}`,
		`{"ignition":{"version":"3.3.0"},"storage":{"files":[{"path":"/a","contents":{"source":"https://x.example/y"}}]}}`,
	} {
		if out, report := New().Render(onFCOS, &machineconfig.Config{Document: &machineconfig.Passthrough{Format: "ignition", Data: []byte(doc)}}); out == nil {
			t.Errorf("%s: %v", doc, report)
		}
	}
}

func TestNoAdviceAboutFlagsThatThereAreNot(t *testing.T) {
	for _, doc := range []string{
		"storage:\n  files:\n    - path: /a\n      contents: {local: x}\n", "storage:\n  trees:\n    - local: x\n",
		"systemd:\n  units:\n    - name: a.service\n      contents_local: x\n", "passwd:\n  users:\n    - name: core\n      ssh_authorized_keys_local: [x]\n",
	} {
		out, report := New().Render(onFCOS, &machineconfig.Config{Document: &machineconfig.Passthrough{Format: "butane", Data: []byte("variant: fcos\nversion: 1.5.0\n" + doc)}})
		if out != nil || !report.HasErrors() || strings.Contains(fmt.Sprint(report), "--files-dir") || report[0].Hint == "" {
			t.Errorf("%s: %v", doc, report)
		}
	}
}

// TestWhatADocumentLosesIsSaid names each part of a document that the host's own configuration takes the place of.
func TestWhatADocumentLosesIsSaid(t *testing.T) {
	on, off := true, false
	c := &machineconfig.Config{
		Host:       machineconfig.HostIdentity{Hostname: "node-1"},
		Files:      []machineconfig.File{{Path: "/etc/motd", Content: machineconfig.Content{Text: "ours"}}, {Path: "/etc/same", Content: machineconfig.Content{Text: "same"}}},
		Users:      []machineconfig.User{{Name: "core", Shell: "/bin/bash", SSHKeys: []string{"ssh-ed25519 AAAA ours"}}},
		Units:      []machineconfig.Unit{{Name: "a.service", Enabled: &on}, {Name: "b.service", Enabled: &off, DropIns: []machineconfig.DropIn{{Name: "10.conf", Contents: "[Unit]\n"}}}},
		Kernel:     machineconfig.Kernel{RemoveArgs: []string{"quiet"}},
		Provenance: map[string]string{"/host/hostname": "inventory", "/files/~1etc~1motd": "site/berlin:3:5", "/users/core": "global:1:1"},
		Document: &machineconfig.Passthrough{Format: "butane", Data: []byte(`variant: fcos
version: 1.4.0
storage:
  files:
    - path: /etc/hostname
      contents: {inline: doc}
    - path: /etc/motd
      contents: {inline: theirs}
    - path: /etc/same
      contents: {source: "data:,same"}
    - path: /etc/kept
      contents: {inline: kept}
passwd:
  users:
    - name: core
      shell: /bin/zsh
      ssh_authorized_keys: [ssh-ed25519 AAAA theirs]
systemd:
  units:
    - name: a.service
      enabled: false
    - name: b.service
      enabled: false
      dropins: [{name: 10.conf, contents: "[Service]\n"}]
kernel_arguments:
  should_exist: [quiet]
`)},
	}
	out, report := New().Render(onFCOS, c)
	if out == nil {
		t.Fatal(report)
	}
	var got []string
	for _, f := range report {
		if f.Code != "overridden" || f.Severity != machineconfig.SeverityWarning || f.Hint == "" {
			t.Errorf("found %+v", f)
		}
		got = append(got, strings.TrimPrefix(f.Source, "document:")+" "+f.Message)
	}
	want := []string{
		"5:13 says file /etc/hostname, and what the host's record says wins",
		"7:13 says file /etc/motd, and what site/berlin:3:5 says wins",
		"15:13 says shell of users core, and what global:1:1 says wins",
		"20:13 says enabled of units a.service, and what the host's configuration says wins",
		"24:24 says drop-in 10.conf of units b.service, and what the host's configuration says wins",
		"26:18 says the kernel argument quiet, and what the host's configuration says wins",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	doc := string(out.Documents[0].Data)
	for _, kept := range []string{"/etc/kept", "AAAA theirs", "AAAA ours"} {
		if !strings.Contains(doc, kept) {
			t.Errorf("%s is gone", kept)
		}
	}
}

// TestSilenceLeavesAnIgnitionDocumentAlone merges a rendering without words over documents, with Ignition's own merge.
func TestSilenceLeavesAnIgnitionDocumentAlone(t *testing.T) {
	for _, doc := range []string{
		`{"ignition":{"version":"3.3.0"}}`,
		`{"ignition":{"version":"3.3.0"},"passwd":{"users":[{"name":"core","passwordHash":"$6$a$b","sshAuthorizedKeys":["ssh-ed25519 AAAA x"]}]},"storage":{"files":[{"path":"/etc/hostname","contents":{"source":"data:,doc"}},{"path":"/etc/hosts","mode":384,"contents":{"source":"data:,127.0.0.1"}}],"links":[{"path":"/etc/localtime","target":"../usr/share/zoneinfo/Europe/Berlin"}]},"systemd":{"units":[{"name":"sshd.service","enabled":false},{"name":"update-engine.service","mask":true}]},"kernelArguments":{"shouldExist":["quiet"]}}`,
	} {
		out, report := New().Render(onFCOS, &machineconfig.Config{Document: &machineconfig.Passthrough{Format: "ignition", Data: []byte(doc)}})
		if out == nil || len(report) > 0 {
			t.Fatal(report)
		}
		want, _, err := v33.Parse([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := v33.Parse(out.Documents[0].Data)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(v33.Merge(want, got), v33.Merge(want, want)); d != "" {
			t.Errorf("silence changes %s", d)
		}
		if d := cmp.Diff(got.Passwd, want.Passwd); d != "" {
			t.Error(d)
		}
	}
}

// TestTheHostsFileOfALayerIsTheOneThatCounts: the domain of the record writes none beside it.
func TestTheHostsFileOfALayerIsTheOneThatCounts(t *testing.T) {
	out := render(t, onFCOS, &machineconfig.Config{
		Host:  machineconfig.HostIdentity{Hostname: "node-1", Domain: "example.org"},
		Files: []machineconfig.File{{Path: "/etc/hosts", Content: machineconfig.Content{Text: "own"}}},
	})
	if doc := string(out.Documents[0].Data); strings.Count(doc, "/etc/hosts") != 1 || !strings.Contains(doc, "data:,own") {
		t.Error(doc)
	}
}
