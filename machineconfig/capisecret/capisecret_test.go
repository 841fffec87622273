package capisecret

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Error(d)
	}
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var (
	flatcar = machineconfig.Target{OS: "flatcar", Release: "stable", Tool: "3.4.0"}
	debian  = machineconfig.Target{OS: "debian", Release: "12", Tool: "22.4.2"}
)

// input asks for a secret on Flatcar.
func input(value, format string) machineconfig.BootstrapInput {
	return machineconfig.BootstrapInput{
		Config: &machineconfig.Config{Host: machineconfig.HostIdentity{Hostname: "node-1", InstanceID: "i-1", MachineID: strings.Repeat("a", 32)}},
		Spec: machineconfig.BootstrapSpec{
			Kind: Kind, Secret: "boot", SecretFormat: format, ProviderID: "slipway://lab/node-1", Labels: map[string]string{zoneLabel: "zone-a"},
		},
		OS: flatcar, Format: "ignition", Secret: []byte(value),
	}
}

// on asks for another format.
func on(format, value string) machineconfig.BootstrapInput {
	in := input(value, "")
	in.OS, in.Format = debian, format
	return in
}

func TestACloudConfigGoesUnchangedToCloudInit(t *testing.T) {
	for _, format := range []string{"cloud-init", "autoinstall", "kickstart", "preseed"} {
		for value, jinja := range map[string]bool{
			"#cloud-config\nruncmd: [ls]\nswap: {size: 1}\n":                                          false,
			"## template: jinja\n#cloud-config\nruncmd: ['{{ ds.meta_data.instance_id }}']\n":         true,
			"\n##template:jinja\n#cloud-config\nhostname: '{{ v1.local_hostname }}{{ v1.region }}'\n": true,
			"## template: jinja\n#cloud-config\n{% if true %}\nx: '{{ any | thing }}'\n{% endif %}\n": true,
			"## template: jinja\n#cloud-config\nx: '{{ \"a\" | upper }}{{ v1.distro }}'\n":            true,
			"## template: jinja\n#cloud-config\nx: '{{ ds.meta_data[\"local-hostname\"] }}'\n":        true,
			"## template: jinja\n#cloud-config\nx: '{{ local_hostname }}{{ ds.meta_data.hostname }}'": true,
		} {
			a, req, err := New().Emit(on(format, value))
			if err != nil {
				t.Errorf("%s: %q: %v", format, value, err)
				continue
			}
			want := &machineconfig.Activation{Kind: Kind, Sentinel: sentinel, Prelude: &machineconfig.Passthrough{
				Format: "cloud-config", Data: []byte(late.Marker("secret://boot")), Jinja: jinja,
			}}
			if d := cmp.Diff(want, a); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(machineconfig.Requirements{}, req); d != "" {
				t.Error(d)
			}
		}
	}
}

func TestForIgnitionARenderingHoldsAReferenceThatSaysAll(t *testing.T) {
	value := string(read(t, "full.yaml"))
	a, _, err := New().Emit(input(value, "cloud-config"))
	if err != nil {
		t.Fatal(err)
	}
	refs := late.References(a.Prelude.Data)
	if len(refs) != 1 || a.Prelude.Format != "ignition" || string(a.Prelude.Data) != late.Marker(refs[0]) {
		t.Fatalf("%s: %q", a.Prelude.Format, a.Prelude.Data)
	}
	golden(t, "reference.golden", []byte(refs[0]+"\n"))
	part := func() []byte {
		b, err := New().Part([]byte(value), strings.TrimPrefix(refs[0], "secret://boot#capi-secret:"))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if d := cmp.Diff(part(), part()); d != "" {
		t.Error(d)
	}
	again, _, err := New().Emit(input(value, "cloud-config"))
	if err != nil || string(again.Prelude.Data) != string(a.Prelude.Data) {
		t.Errorf("another reference the second time: %v", err)
	}
}

func TestAllOfACloudConfigIsTakenOver(t *testing.T) {
	text, err := resolve(read(t, "full.yaml"), metaOf(input("", "")))
	if err != nil {
		t.Fatal(err)
	}
	c, err := parseCloudConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Activation.Files { // for people to read
		f := &c.Activation.Files[i]
		b, err := json.Marshal(f.Base64)
		if err != nil {
			t.Fatal(err)
		}
		var raw []byte
		if err := json.Unmarshal(b, &raw); err != nil {
			t.Fatal(err)
		}
		f.Content = machineconfig.Content{Text: string(raw)}
	}
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "full.golden", append(b, '\n'))
}

func TestWithAVersionKubeadmIsInstalled(t *testing.T) {
	in := on("cloud-init", "#cloud-config\nruncmd: [ls]\n")
	in.Spec.Version = "1.35.0"
	_, req, err := New().Emit(in)
	if err != nil || req.Version != "1.35.0" || !strings.Contains(fmt.Sprint(req.Binaries), "kubeadm") || !req.NoSwap {
		t.Errorf("%+v %v", req, err)
	}
}

func TestSettingsWithoutEffectAreWarnedOf(t *testing.T) {
	in := input("", "")
	if found := New().Findings(in); len(found) > 0 {
		t.Error(found)
	}
	in.Spec.Target, in.Spec.Role, in.Spec.NodeName, in.Spec.NodeIP, in.Spec.CRISocket = "a", "worker", "b", "::1", "unix:///x"
	in.Spec.Labels = map[string]string{zoneLabel: "a", "other": "b"}
	in.Spec.Taints, in.Spec.KubeletArgs, in.Spec.Options = []machineconfig.Taint{{}}, map[string]string{"a": "b"}, map[string]string{"a": "b"}
	var paths []string
	for _, f := range New().Findings(in) {
		if f.Severity != machineconfig.SeverityWarning || f.Hint == "" {
			t.Errorf("%+v", f)
		}
		paths = append(paths, strings.TrimPrefix(f.Path, "/bootstrap/"))
	}
	if d := cmp.Diff([]string{"target", "role", "nodeName", "labels", "taints", "kubeletArgs", "nodeIP", "criSocket", "options"}, paths); d != "" {
		t.Error(d)
	}
}

// canaries are what values of a secret look like; none may stand in an error.
var canaries = []string{"canary-token", "CanaryHash", "canaryword"}

// said checks an error: it is one for users, with a hint, and quotes nothing.
func said(t *testing.T, err error, want string) {
	t.Helper()
	var e *inventory.Error
	if !errors.As(err, &e) {
		t.Fatalf("%T: %v", err, err)
	}
	if e.Kind != inventory.Invalid || e.Hint == "" || !strings.Contains(e.Msg, want) {
		t.Errorf("%v: %q (%q), want %q", e.Kind, e.Msg, e.Hint, want)
	}
	all := fmt.Sprintf("%s %s %v %+v", e.Msg, e.Hint, e.Err, err)
	for _, c := range canaries {
		if strings.Contains(all, c) {
			t.Errorf("the error quotes the secret: %s", all)
		}
	}
}

const head, jinjaHead = "#cloud-config\n", "## template: jinja\n#cloud-config\n"

func TestWhatCannotBootIsRefusedWithAReason(t *testing.T) {
	ign := func(s string) machineconfig.BootstrapInput { return input(s, "ignition") }
	cc := func(s string) machineconfig.BootstrapInput { return input(head+s, "") }
	edit := func(in machineconfig.BootstrapInput, f func(*machineconfig.BootstrapInput)) machineconfig.BootstrapInput {
		f(&in)
		return in
	}
	for _, c := range []struct {
		name string
		in   machineconfig.BootstrapInput
		want string
	}{
		{"no name", edit(cc(""), func(in *machineconfig.BootstrapInput) { in.Spec.Secret = "" }), "names no secret"},
		{"no name in a reference", edit(cc(""), func(in *machineconfig.BootstrapInput) { in.Spec.Secret = "secret://" }), "names no secret"},
		{"a missing secret", edit(cc(""), func(in *machineconfig.BootstrapInput) { in.Secret = nil }), `there is no secret "boot"`},
		{"an unknown format", edit(cc(""), func(in *machineconfig.BootstrapInput) { in.Spec.SecretFormat = "bash" }), `"bash" is not a format`},
		{"a tool that takes none", edit(cc(""), func(in *machineconfig.BootstrapInput) { in.Format = "talos" }), "cannot be given"},
		{"ignition for cloud-init", edit(ign(`{"ignition":{"version":"3.0.0"}}`), func(in *machineconfig.BootstrapInput) { in.Format = "cloud-init" }), "holds Ignition"},
		{"an empty secret", input("", ""), "is empty"},
		{"a blank secret", input(" \n\t\n", "ignition"), "is empty"},
		{"a compressed secret", input("\x1f\x8b\x08canary-token", ""), "is compressed"},
		{"a secret that is too large", input(head+strings.Repeat("#canary-token\n", 1<<17), ""), "larger than"},
		{"ignition called cloud-config", input(`{"ignition":{"version":"3.0.0","x":"canary-token"}}`, ""), "is JSON"},
		{"cloud-config called ignition", input(head+"x: canary-token", "ignition"), "is no JSON"},
		{"still in base64", input("I2Nsb3VkLWNvbmZpZwo=canary-token", ""), "no line #cloud-config"},
		{"a script", input("#!/bin/sh\necho canary-token", ""), "no line #cloud-config"},
		{"a template without the line", input("## template: jinja\nruncmd: [canary-token]", ""), "no line #cloud-config"},

		{"an unknown key", cc("x: 1\nswap: {canary-token: 1}"), `the key "x" in line 2`},
		{"an unknown key of a file", cc("write_files:\n- path: /a\n  source: canary-token"), `the key "source" in line 4`},
		{"an unknown key of a user", cc("users:\n- name: a\n  plain_text_passwd: canary-token"), `the key "plain_text_passwd" in line 4`},
		{"an unknown key of ntp", cc("ntp: {pools: [canary-token]}"), `the key "pools"`},
		{"a text for a list", cc("runcmd: canary-token"), "wrong type in line 2"},
		{"a map for a command", cc("runcmd:\n- echo: canary-token"), "wrong type in line 3"},
		{"a map for a word", cc("runcmd:\n- [a, {b: canary-token}]"), "wrong type in line 3"},
		{"a text for a truth", cc("users: [{name: a, lock_passwd: canary-token}]"), "wrong type in line 2"},
		{"a map for groups", cc("users: [{name: a, groups: {canary-token: x}}]"), "wrong type in line 2"},
		{"a key twice", cc("runcmd: [canary-token]\nruncmd: [canary-token]"), "line 3"},
		{"broken YAML", cc("runcmd: [canary-token"), "YAML is broken"},
		{"an unknown anchor", cc("runcmd: *canary-token"), "YAML is broken"},
		{"no map", cc("- canary-token"), "wrong type"},
		{"two documents", cc("runcmd: [a]\n---\nruncmd: [canary-token]"), "more than one document"},

		{"a relative path", cc("write_files: [{path: etc/x, content: canary-token}]"), `"etc/x"`},
		{"a path with dots", cc("write_files: [{path: /etc/../x, content: canary-token}]"), "no absolute path"},
		{"no path", cc("write_files: [{content: canary-token}]"), "no absolute path"},
		{"the root", cc("write_files: [{path: /, content: canary-token}]"), "no absolute path"},
		{"a mode in letters", cc("write_files: [{path: /a, permissions: canary-token}]"), "writes /a with permissions"},
		{"an unknown encoding", cc("write_files: [{path: /a, encoding: canary-token}]"), "writes /a in an encoding"},
		{"broken base64", cc("write_files: [{path: /a, encoding: b64, content: canary-token}]"), "writes /a in base64"},
		{"broken gzip", cc("write_files: [{path: /a, encoding: gzip, content: canary-token}]"), "writes /a compressed"},
		{"cut gzip", cc("write_files: [{path: /a, encoding: gz+b64, content: H4sIAAAAAAAC/8tI}]"), "writes /a compressed"},
		{"a bomb", cc("write_files: [{path: /a, encoding: gz+b64, content: " + bomb(maxExpanded+1) + "}]"), "too large"},
		{"a bomb in pieces", cc("write_files:" + strings.Repeat("\n- {path: /a, append: true, encoding: gz+b64, content: "+bomb(maxExpanded/2)+"}", 3)), "too"},
		{"a bomb in many files", cc("write_files:\n- &f {path: /a, encoding: gz+b64, content: " + bomb(maxExpanded/2) + "}\n- *f\n- *f"), "too large"},
		{"text that grows", cc("write_files:" + strings.Repeat("\n- {path: /a, append: true, content: "+strings.Repeat("x", 2000)+"}", 400)), "too many pieces"},
		{"a file in /proc", cc("write_files: [{path: /proc/sys/a, content: canary-token}]"), "~1proc~1sys~1a"},

		{"a user without a name", cc("users: [{passwd: CanaryHash}]"), "without a name"},
		{"an inactive user", cc("users: [{name: a, inactive: true, passwd: CanaryHash}]"), "user a inactive"},
		{"days until a user is inactive", cc("users: [{name: a, inactive: '7'}]"), "user a inactive"},
		{"two lines of sudo", cc(`users: [{name: a, sudo: "ALL=(ALL) ALL\ncanaryword"}]`), "sudo of user a"},
		{"two lines of a name of a person", cc(`users: [{name: a, gecos: "x\ncanaryword"}]`), "has no equivalent in Ignition"},

		{"several partitions", cc("disk_setup: {/dev/vdb: {layout: [50, 50]}}"), "/dev/vdb in other partitions"},
		{"a part of the disk", cc("disk_setup: {/dev/vdb: {layout: [[50, 82]]}}"), "/dev/vdb in other partitions"},
		{"a word for a layout", cc("disk_setup: {/dev/vdb: {layout: remove}}"), "/dev/vdb in other partitions"},
		{"a table of another kind", cc("disk_setup: {/dev/vdb: {table_type: canary-token}}"), "partition table on /dev/vdb"},
		{"replace_fs", cc("fs_setup: [{device: /dev/vdb, replace_fs: ntfs}]"), "replace_fs for /dev/vdb"},
		{"a mount of nothing", cc("mounts: [[LABEL=x, /x]]"), "mounts LABEL=x, which it does not make"},
		{"a mount without a path", cc("mounts: [[/dev/vdb]]"), "without a path"},
		{"swap", cc("mounts: [[/dev/vdb, none, swap]]"), "without a path"},
		{"a mount of an empty label", cc("fs_setup: [{device: /dev/vdb}]\nmounts: [[LABEL=, /x]]"), "does not make"},
		{"two mounts of one", cc("fs_setup: [{device: /dev/vdb}]\nmounts: [[/dev/vdb, /x], [/dev/vdb, /y]]"), "mounts /dev/vdb twice"},
		{"an unknown file system", cc("fs_setup: [{device: /dev/vdb, filesystem: canaryword}]"), "has no equivalent in Ignition"},

		{"an unknown expression", input(jinjaHead+"runcmd: ['canary-token {{ ds.meta_data.uuid }}']", ""), "{{ ds.meta_data.uuid }}"},
		{"a filter", input(jinjaHead+"runcmd: ['canary-token {{ v1.local_hostname | upper }}']", ""), "{{ v1.local_hostname | upper }}"},
		{"an expression of two lines", input(jinjaHead+"runcmd: ['{{\n x }}canary-token']", ""), "{{  x }}"},
		{"a block", input(jinjaHead+"{% if canaryword %}", ""), "{% in line 3"},
		{"a comment", input(jinjaHead+"x: '{# canaryword #}'", ""), "{# in line 3"},
		{"no end", input(jinjaHead+"x: '{{ canaryword'", ""), "does not end"},
		{"no provider id", edit(input(jinjaHead+"runcmd: ['{{ ds.meta_data.provider_id }}']", ""), func(in *machineconfig.BootstrapInput) { in.Spec.ProviderID = "" }), "this host has not"},
		{"no zone", edit(input(jinjaHead+"runcmd: ['{{ ds.meta_data.failure_domain }}']", ""), func(in *machineconfig.BootstrapInput) { in.Spec.Labels = nil }), "this host has not"},

		{"broken JSON", ign("{\"a\":\n\"canary-token\","), "JSON is broken in line 2"},
		{"JSON without a version", ign(`{"a":"canary-token"}`), "no ignition.version"},
		{"a version that is none", ign(`{"ignition":{"version":"canary-token"}}`), "no ignition.version"},
		{"a version of another type", ign(`{"ignition":{"version":123456}}`), "no ignition.version"},
		{"newer than the image", ign(`{"ignition":{"version":"3.5.0"},"x":"canary-token"}`), "is Ignition 3.5.0, and this image reads 3.4.0"},
		{"version 1", ign(`{"ignition":{"version":"1.0.0"}}`), "is Ignition 1.0.0"},
		{"a file that is wrong", ign(`{"ignition":{"version":"3.0.0"},"storage":{"files":[{"path":"relative","contents":{"source":"data:,canary-token"}}]}}`), "has no equivalent in Ignition"},
		{"a URL that is wrong", ign(`{"ignition":{"version":"3.0.0"},"storage":{"files":[{"path":"/a","contents":{"source":"canary-token:%zz"}}]}}`), "has no equivalent in Ignition"},
		{"a type that is wrong", ign(`{"ignition":{"version":"3.0.0"},"storage":{"files":"canary-token"}}`), "has no equivalent in Ignition"},
		{"an old file that is wrong", ign(`{"ignition":{"version":"2.3.0"},"storage":{"files":[{"filesystem":"root","path":"canary-token"}]}}`), "has no equivalent in Ignition"},
		{"an old file in a file system that is none", ign(`{"ignition":{"version":"2.3.0"},"storage":{"files":[{"filesystem":"canary-token","path":"/a"}]}}`), "has no equivalent in Ignition"},
		{"an old type that is wrong", ign(`{"ignition":{"version":"2.3.0"},"storage":{"files":"canary-token"}}`), "has no equivalent in Ignition"},
		{"an unknown expression in a file", ign(`{"ignition":{"version":"3.0.0"},"storage":{"files":[{"path":"/a","contents":{"source":"data:,canary-token%7B%7B%20ds.meta_data.uuid%20%7D%7D"}}]}}`), "{{ ds.meta_data.uuid }}"},
		{"an unknown expression in a unit", ign(`{"ignition":{"version":"3.0.0"},"systemd":{"units":[{"name":"a.service","contents":"[Service]\nExecStart=/canary-token {{ v1.x }}"}]}}`), "{{ v1.x }}"},
		{"a compressed file that is damaged", ign(`{"ignition":{"version":"3.0.0"},"storage":{"files":[{"path":"/a","contents":{"compression":"gzip","source":"data:,canary-token"}}]}}`), "compressed file"},
		{"a bomb in a file", ign(`{"ignition":{"version":"3.0.0"},"storage":{"files":[{"path":"/a","contents":{"compression":"gzip","source":"data:;base64,` + bomb(maxExpanded+1) + `"}}]}}`), "too large"},

		{"broken YAML for cloud-init", on("cloud-init", head+"runcmd: [canary-token"), "YAML is broken"},
		{"no keys for cloud-init", on("cloud-init", head), "has no keys"},
		{"a list for cloud-init", on("cloud-init", head+"[canary-token]"), "has no keys"},
		{"metadata that cloud-init is not given", on("cloud-init", jinjaHead+"a: '{{ ds.meta_data.uuid }}canary-token'"), "{{ ds.meta_data.uuid }}"},
		{"a filter of metadata that is not given", on("cloud-init", jinjaHead+"a: '{{ ds.meta_data.uuid | lower }}'"), "{{ ds.meta_data.uuid | lower }}"},
		{"a bare name that cloud-init has not", on("cloud-init", jinjaHead+"a: '{{ provider_id }}'"), "does not know by that name"},
		{"a v1 name that cloud-init has not", on("cloud-init", jinjaHead+"a: '{{ v1.hostname }}'"), "does not know by that name"},
		{"a bare name that nobody has", on("cloud-init", jinjaHead+"a: '{{ uuid }}'"), "{{ uuid }}"},
		{"no end for cloud-init", on("cloud-init", jinjaHead+"a: '{{ x canary-token'"), "does not end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, _, err := New().Emit(c.in)
			if a != nil || err == nil {
				t.Fatal("it was taken")
			}
			said(t, err, c.want)
		})
	}
}

func TestPartRefusesAsEmitDoes(t *testing.T) {
	if _, err := New().Part([]byte(head), "no reference"); err == nil {
		t.Error("anything is a reference")
	}
	ref := `{"from":"cloud-config","target":{"OS":"flatcar","Tool":"3.4.0"},"meta":{}}`
	_, err := New().Part([]byte("#!/bin/sh\ncanary-token"), ref)
	said(t, err, "no line #cloud-config")
	_, err = New().Part([]byte(head+"runcmd: canary-token"), ref)
	said(t, err, "wrong type in line 2")
}

// TestFreeNamesOfMetadataAreFilledIn holds names that an admin chose, as those of Metal3's data templates.
func TestFreeNamesOfMetadataAreFilledIn(t *testing.T) {
	in := input("", "")
	in.Config.Host.MetaData = map[string]string{"bmh_name": "rack1-07", "zone2": "b", "with-dash": "c"}
	text := "## template: jinja\n#cloud-config\nruncmd: ['a {{ ds.meta_data.bmh_name }} {{ ds.meta_data[\"zone2\"] }} {{ ds.meta_data[\"with-dash\"] }}']\n"
	got, err := resolve([]byte(text), metaOf(in))
	if err != nil || !strings.Contains(string(got), "['a rack1-07 b c']") {
		t.Errorf("it says %q, %v", got, err)
	}
	if _, err := resolve([]byte(text), metaOf(input("", ""))); err == nil {
		t.Error("a name that nobody gave is filled in")
	}
}
