package layer_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/machineconfig/layer"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/validation"
)

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ name, text, source, path, want, hint string }{
		{"a misspelt key", "host:\n  hostnme: x", "web:2:3", "/host/hostnme", "not a key", "did you mean hostname?"},
		{"a key in another style", "users:\n- {name: a, ssh_keys: []}", "web:2:13", "/users/a/ssh_keys", "not a key", "did you mean sshKeys?"},
		{"a key that resembles none", "host: {zzzzzzzzzz: 1}", "web:1:8", "/host/zzzzzzzzzz", "not a key", "the keys here are hostname, domain"},
		{"a key that layers cannot set", "provenance: {}", "web:1:1", "/provenance", "not a key", ""},
		{"a key twice", "host: {hostname: a}\nhost: {}", "web:2:1", "/host", "first is on line 1", "remove"},
		{"an item twice", "users:\n- name: a\n- name: a", "web:3:3", "/users/a", "first is on line 2", ""},
		{"a route twice", "network: {interfaces: [{name: a, routes: [{to: 10.0.0.0/8, via: 10.0.0.1}, {to: 10.0.0.0/8, via: 10.0.0.2}]}]}", "web:1:76", "/network/interfaces/a/routes/10.0.0.0~18", "twice", ""},
		{"a list for a text", "host: {hostname: [a]}", "web:1:18", "/host/hostname", "is a list; it must be a text", ""},
		{"a truth for a text", "host: {hostname: true}", "web:1:18", "/host/hostname", "true or false; it must be a text", "quotes"},
		{"a text for a list", "packages: {install: curl}", "web:1:21", "/packages/install", `"curl"; it must be a list`, "- "},
		{"a text for a number", "storage: {disks: [{name: a, partitions: [{label: b, sizeMiB: 10G}]}]}", "web:1:62", "/storage/disks/a/partitions/b/sizeMiB", "whole number", ""},
		{"a fraction for a number", "boot: {rootDevice: {minGiB: 1.5}}", "web:1:29", "/boot/rootDevice/minGiB", "whole number", ""},
		{"yes for true", "users: [{name: a, system: yes}]", "web:1:27", "/users/a/system", "must be true or false", "write true"},
		{"a map for a list of users", "users: {a: {uid: 1}}", "web:1:8", "/users", "must be a list", ""},
		{"a list for a map", "host: []", "web:1:7", "/host", "must be a map", ""},
		{"a whole text", "just words", "web:1:1", "", "must be a map", ""},
		{"a number in quotes", "users: [{name: a, uid: '5'}]", "web:1:24", "/users/a/uid", "must be a whole number", ""},
		{"a number beyond all numbers", "users: [{name: a, uid: 99999999999999999999}]", "web:1:24", "/users/a/uid", "whole number", ""},
		{"a text that is too long", "#" + strings.Repeat("x", inventory.MaxConfigBytes), "web", "", "at most 1048576", "remote"},
		{"a text that is not UTF-8", "host: {hostname: \xff}", "web", "", "not UTF-8", ""},
		{"deep nesting", "host: {hostname: " + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "}", "web:1:18", "/host/hostname", "must be a text", ""},
		{"a mode of nine", "files: [{path: /a, mode: 0999}]", "web:1:26", "/files/~1a/mode", "not a mode", ""},
		{"a mode in letters", "files: [{path: /a, mode: rwx}]", "web:1:26", "/files/~1a/mode", "octal digits", ""},
		{"a scalar without a value", "host: {hostname: }", "web:1:18", "/host/hostname", "no value", "$remove"},
		{"an anchor", "host: &a {hostname: x}", "web:1:7", "/host", "anchor", ""},
		{"an alias to nothing", "host: {hostname: *a}", "web", "", "not YAML", ""},
		{"a tag", "host: {hostname: !!str x}", "web:1:18", "/host/hostname", "tag", ""},
		{"a binary tag", "files: [{path: /a, text: !!binary aGk=}]", "web:1:26", "/files/~1a/text", "tag", "base64"},
		{"two documents", "host: {}\n---\nhost: {}", "web:2:1", "", "more than one", ""},
		{"an item without its key", "files: [{text: a}]", "web:1:9", "/files/0", "has no path", ""},
		{"a taint without effect", "bootstrap: {kind: none, taints: [{key: a}]}", "web:1:34", "/bootstrap/taints/a:", "has no effect", ""},
		{"an empty item", "files: [~]", "web:1:9", "/files/0", "empty item", ""},
		{"a tab", "host:\n\thostname: a", "web:2", "", "not YAML", "tabs"},
		{"a key that is a list", "host: {[a]: b}", "web:1:8", "/host", "no text", ""},
		{"a marker of late values", "files: [{path: /a, text: " + late.Marker("secret://x") + "}]", "web:1:26", "/files/~1a/text", "stands for late values", "secret"},
		{"an item that is removed and set", "files: [{path: /a, text: b, $remove: true}]", "web:1:9", "/files/~1a", "removed and has text", ""},
		{"remove false", "files: [{path: /a, $remove: false}]", "web:1:29", "/files/~1a/$remove", "must be true", ""},
		{"remove and replace at once", "host: {$remove: true, $replace: true}", "web:1:23", "/host/$replace", "both", ""},
		{"a list with remove and replace", "packages: {install: {$remove: [a], $replace: [b]}}", "web:1:21", "/packages/install", "mixes", ""},
		{"removal of a key that is none", "host: {$remove: [nothing]}", "web:1:8", "/host/$remove", "cannot be removed", ""},
		{"a nameless command to remove", "commands: [{$remove: true}]", "web:1:12", "/commands/0", "has no name", ""},
		{"a broken indentation", "host:\n hostname: a\n  domain: b", "web:3", "", "not YAML", "indentation"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, r := layer.Parse(c.text, "web")
			if l == nil || len(r) == 0 {
				t.Fatalf("layer %v, findings %v; want one", l, r)
			}
			f := r[0]
			if !strings.HasPrefix(f.Source, c.source) || c.path != "" && f.Path != c.path {
				t.Errorf("found at %s %s; want %s %s (%s)", f.Source, f.Path, c.source, c.path, f)
			}
			if !strings.Contains(f.Message, c.want) || !strings.Contains(f.Hint, c.hint) || f.Severity != machineconfig.SeverityError {
				t.Errorf("found %s; want %q (%q)", f, c.want, c.hint)
			}
			validation.Validate(must(layer.Merge(l)))
		})
	}
}

// mostFindings is how many findings a layer has at most: a hundred, and one that says that there are more.
const mostFindings = 101

func must(c *machineconfig.Config, _ machineconfig.Report) *machineconfig.Config { return c }

func TestParseTakesWhatPeopleWrite(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"nothing", ""},
		{"only comments", "# nothing\n"},
		{"an empty map", "{}"},
		{"empty sections", "users:\nfiles:\nnetwork:\n"},
		{"one document with its marks", "---\nhost: {hostname: a}\n...\n"},
		{"Windows line ends", "host:\r\n  hostname: a\r\n"},
		{"numbers for texts in maps", "kernel: {sysctl: {vm.swappiness: 10}}\nbootstrap: {kind: none, labels: {gpu: true}}"},
		{"a version like a number", "bootstrap: {kind: none, version: 1.30}"},
		{"modes with and without zero and quotes", "files: [{path: /a, text: x, mode: 644}, {path: /b, text: x, mode: '0644'}, {path: /c, text: x, mode: 0o644}]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, r := layer.Parse(c.text, "web")
			if len(r) > 0 {
				t.Fatal(r)
			}
			cfg, r := layer.Merge(l)
			if r = append(r, validation.Validate(cfg)...); len(r) > 0 {
				t.Fatal(r)
			}
			for _, f := range cfg.Files {
				if f.Mode != 0o644 {
					t.Errorf("%s has mode %s", f.Path, f.Mode)
				}
			}
			if b := cfg.Bootstrap; b != nil && b.Version != "" && b.Version != "1.30" {
				t.Errorf("version %s; want 1.30 as it was written", b.Version)
			}
		})
	}
}

// TestEvilTextsEndSoon gives YAML that is made to take long or to fill the memory.
func TestEvilTextsEndSoon(t *testing.T) {
	most := inventory.MaxConfigBytes
	bomb := "a: &a [x,x,x,x,x,x,x,x]\n"
	for i := range 20 {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", 'b'+i, 'b'+i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", 'a'+i), 8), ","))
	}
	var hosts strings.Builder
	hosts.WriteString("network:\n  bonds:\n")
	for i := range 60 {
		fmt.Fprintf(&hosts, "  - name: b%d\n    members: [%s]\n", i, strings.Repeat("x,", 4000))
	}
	rep := func(s string) string { return strings.Repeat(s, most/len(s)) }
	for name, text := range map[string]string{
		"a billion laughs":          bomb,
		"nested lists":              rep("["),
		"nested maps":               rep("{a: "),
		"nested sequences":          "users: " + rep("- "),
		"nested sequences in lines": "users:\n" + rep("- - - - - - - - - -\n"),
		"complex keys":              rep("? "),
		"deep indentation": func() string {
			var b strings.Builder
			for i := 0; b.Len() < most-2000 && i < 1400; i++ {
				b.WriteString(strings.Repeat(" ", i) + "a:\n")
			}
			return b.String()
		}(),
		"comments":          rep("# x\n"),
		"comments and keys": rep("#\na:\n"),
		"unknown keys": func() string {
			var b strings.Builder
			for i := range 60000 {
				fmt.Fprintf(&b, "hostnam%d: 1\n", i)
			}
			return b.String()
		}(),
		"empty items": "files:\n" + rep("-\n"),
		"many files": "files:\n" + func() string {
			var b strings.Builder
			for i := range 30000 {
				fmt.Fprintf(&b, "- {path: /a/%d, text: x}\n", i)
			}
			return b.String()
		}(),
		"a deep path":         "files:\n- {text: x, path: " + strings.Repeat("/a", 400000) + "}",
		"many unknown things": hosts.String(),
		"quotes":              rep(`"`),
		"aliases":             rep("*a "),
		"tags":                rep("!!a "),
		"document marks":      rep("---\n"),
		"directives":          rep("%YAML 1.1\n"),
		"plain multi-line":    "host: " + rep("a\n "),
		"block scalars":       rep("a: |\n\n"),
		"files in deep folders": "files:\n" + func() string {
			var b strings.Builder
			for i := range 1000 {
				fmt.Fprintf(&b, "- {text: x, path: %s/%d}\n", strings.Repeat("/a", 450), i)
			}
			return b.String()
		}(),
		"commas":           "a: [" + rep(", "),
		"colons":           rep(": "),
		"question marks":   rep("?\n"),
		"flow keys":        "a: {" + rep("a: b, "),
		"simple keys":      rep("a b c d e f "),
		"byte order marks": rep("\ufeff"),
		"too much":         rep("# x\n") + rep("# x\n"),
	} {
		t.Run(name, func(t *testing.T) {
			start := cpu(t)
			l, r := layer.Parse(text, "evil")
			validation.Validate(must(layer.Merge(l, l)))
			if d := cpu(t) - start; d > 5*time.Second {
				t.Errorf("took %s", d)
			} else {
				t.Logf("%s, %d findings", d, len(r))
			}
			if len(r) > mostFindings {
				t.Errorf("%d findings; at most %d are wanted", len(r), mostFindings)
			}
		})
	}
}

// cpu is the processor time that the tests have taken: what else the machine does is not in it.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
