package ignition

import (
	"strings"
	"testing"

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
		{"a local file", "butane", "variant: fcos\nversion: 1.4.0\nstorage:\n  files:\n    - path: /a\n      contents:\n        local: etc/passwd\n", onFCOS, "document:7:16", "local"},
		{"a newer spec than the image reads", "butane", "variant: fcos\nversion: 1.5.0\n", onDebian, "document:1:1", "needs 3.4, this image reads 3.3"},
		{"a newer Ignition spec", "ignition", `{"ignition":{"version":"3.6.0"}}`, onFlatcar, "document:1:1", "needs 3.6, this image reads 3.4"},
		{"an experimental spec", "butane", "variant: fcos\nversion: 1.8.0-experimental\n", onFCOS, "document:1:1", "needs 3.7.0-experimental, this image reads 3.6"},
		{"an unknown key in Ignition", "ignition", "{\"ignition\":{\"version\":\"3.3.0\"},\n \"storge\":{}}", onFCOS, "document:2:2", "storge"},
		{"JSON that is none", "ignition", "{\"ignition\":\n}", onFCOS, "document:2:1", "invalid character"},
		{"no version", "ignition", "{}", onFCOS, "", "Ignition refuses it"},
		{"an unverified remote document", "ignition", `{"ignition":{"version":"3.3.0","config":{"merge":[{"source":"https://x.example/y"}]}}}`, onFCOS, "document:1:1", "without a checksum"},
		{"an unverified replacement", "ignition", `{"ignition":{"version":"3.3.0","config":{"replace":{"source":"http://x.example/y"}}}}`, onFCOS, "document:1:1", "without a checksum"},
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
