package images

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/inventory"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestBuiltinCatalogueKnowsEveryPromisedSystem(t *testing.T) {
	c, err := BuiltinCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		os, release, line string
		isInstaller       bool
	}{
		{"debian", "12", "12", true},
		{"debian", "12.5", "12", true},
		{"debian", "13", "13", true},
		{"ubuntu", "22.04", "22.04", true},
		{"ubuntu", "24.04.3", "24.04", true},
		{"fedora-coreos", "44.20260607.3.1", "*", false},
		{"fedora-coreos-install", "44.20260607.3.1", "*", true},
		{"flatcar", "stable", "stable", false},
		{"rocky", "9", "9", true},
		{"almalinux", "9.6", "9", true},
		{"leap-micro", "6.2", "6", true},
		{"talos", "1.13.0", "1", false},
		{"custom", "whatever", "*", false},
	} {
		e, line, err := c.Find(want.os, want.release)
		if err != nil {
			t.Errorf("%s %s: %v", want.os, want.release, err)
			continue
		}
		if line != want.line || e.IsInstaller != want.isInstaller {
			t.Errorf("%s %s: found by %s with isInstaller=%v", want.os, want.release, line, e.IsInstaller)
		}
	}
}

// TestPlansOfTheCatalogue keeps, for every entry, the addresses and arguments that an import makes of it.
func TestPlansOfTheCatalogue(t *testing.T) {
	c, err := BuiltinCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	type golden struct {
		Title   string              `yaml:"title"`
		Sums    string              `yaml:"sums,omitempty"`
		Sources map[string][]string `yaml:"sources,omitempty"`
		Args    []string            `yaml:"args"`
		Config  []string            `yaml:"configArgs,omitempty"`
		Error   string              `yaml:"error,omitempty"`
	}
	releases := map[string]string{"fedora-coreos": "44.20260607.3.1", "fedora-coreos-install": "44.20260607.3.1", "talos": "1.13.0", "leap-micro": "6.2", "leap": "16.0", "custom": "1"}
	all := map[string]golden{}
	for _, e := range c.Entries() {
		release := e.Releases[0]
		if r := releases[e.OS]; r != "" {
			release = r
		}
		for arch := range e.Arch {
			g := golden{Title: e.Title}
			p, err := c.plan(ImportRequest{Name: "x", OS: e.OS, Release: release, Arch: arch})
			if err != nil {
				var ie *inventory.Error
				errors.As(err, &ie)
				g.Error = ie.Msg + ": " + ie.Hint
			} else {
				vars, err := e.vars(release, e.Releases[0], arch, nil)
				if err != nil {
					t.Fatal(err)
				}
				x, err := e.expanded(vars)
				if err != nil {
					t.Fatal(err)
				}
				g.Sums, g.Args, g.Config, g.Sources = p.sums, p.image.KernelArgs, x.configArgs, map[string][]string{}
				for _, f := range p.files {
					for _, s := range f.sources {
						g.Sources[string(f.role)+" "+f.name] = append(g.Sources[string(f.role)+" "+f.name], s.at)
					}
				}
			}
			all[e.OS+" "+release+" "+string(arch)] = g
		}
	}
	got, err := yaml.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	compareGolden(t, "plans.golden.yaml", got)
}

// compareGolden compares text with a file of testdata, or writes it there with -update.
func compareGolden(t *testing.T, file string, got []byte) {
	t.Helper()
	name := filepath.Join("testdata", file)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s changed (-want +got); if that is right, run with -update:\n%s", name, d)
	}
}

func TestBootWithoutConfigNeverAsksForOne(t *testing.T) {
	c, err := BuiltinCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range c.Entries() {
		for _, a := range e.KernelArgs {
			if strings.Contains(a, "${config}") {
				t.Errorf("%s %v: %s belongs into configArgs", e.OS, e.Releases, a)
			}
		}
	}
}

const goodEntry = `version: 1
entries:
  - os: mine
    releases: ["1"]
    title: Mine
    arch: {x86_64: amd64}
    base: https://example.org/{release}/{arch}
    files:
      - {role: kernel, name: vmlinuz, paths: [vmlinuz]}
    kernelArgs: ["a=${file:vmlinuz}"]
`

func TestWrongCatalogueFilesAreRefusedWithPlaceAndHint(t *testing.T) {
	swap := func(old, new string) string {
		if !strings.Contains(goodEntry, old) {
			t.Fatalf("the good entry has no %q", old)
		}
		return strings.Replace(goodEntry, old, new, 1)
	}
	for name, c := range map[string]struct{ text, part string }{
		"an unknown key names its line":              {swap("title: Mine", "title: Mine\n    ramm: 3"), "f.yaml: line 6: field ramm not found"},
		"a wrong type names its line":                {swap("title: Mine", "title: Mine\n    memoryMiB: lots"), "f.yaml: line 6"},
		"an empty file":                              {"", "f.yaml is empty"},
		"another version":                            {swap("version: 1", "version: 7"), "f.yaml has version 7"},
		"two documents":                              {goodEntry + "---\nversion: 1\n", "more than one YAML document"},
		"no title":                                   {swap("title: Mine", "title: ''"), "f.yaml:3: mine lacks releases, title or arch"},
		"an unknown architecture":                    {swap("x86_64:", "sparc:"), "arch sparc"},
		"an unknown role":                            {swap("role: kernel", "role: boot"), `"boot" is not a role`},
		"no kernel":                                  {swap("role: kernel", "role: initrd"), "0 kernels"},
		"an unknown import variable":                 {swap("{release}", "{relaese}"), "{relaese}, which nothing fills in"},
		"an unknown machine variable":                {swap("${file:vmlinuz}", "${uuid}"), "${uuid}, which nothing fills in"},
		"a file that the image has not":              {swap("${file:vmlinuz}", "${file:initrd}"), "${file:initrd}, which nothing fills in"},
		"config outside configArgs":                  {swap("${file:vmlinuz}", "${config}"), "${config}, which nothing fills in"},
		"an argument with a space":                   {swap("a=${file:vmlinuz}", "a=1 b=2"), "is not one word"},
		"a base that is no web address":              {swap("https://example.org", "file:///etc"), "is not an http address"},
		"a path out of the base":                     {swap("paths: [vmlinuz]", "paths: [../../etc/shadow]"), "is not a path below base"},
		"an absolute path":                           {swap("paths: [vmlinuz]", "paths: [/etc/shadow]"), "is not a path below base"},
		"a config format nobody renders":             {swap("title: Mine", "title: Mine\n    configs: [{format: autoyast, version: '1'}]"), "autoyast"},
		"a config format without version":            {swap("title: Mine", "title: Mine\n    configs: [{format: ignition}]"), "has no version"},
		"a relative place in the initrd":             {swap("title: Mine", "title: Mine\n    configs: [{format: ignition, version: '3', initrdPath: x}]"), "is not an absolute path"},
		"configArgs that no config uses":             {swap("title: Mine", "title: Mine\n    configArgs: ['x=${config}']"), "configArgs but no configs"},
		"a var that hides a built-in one":            {swap("title: Mine", "title: Mine\n    vars: {release: '2'}"), `"release" cannot be a var`},
		"a release described twice in one file":      {goodEntry + strings.Replace(strings.SplitAfterN(goodEntry, "entries:\n", 2)[1], "Mine", "Again", 1), "described twice, also at f.yaml:3"},
		"a parameter without explanation":            {swap("title: Mine", "title: Mine\n    parameters: [{name: disk}]"), "needs a name of its own and an about"},
		"a negative amount of memory":                {swap("title: Mine", "title: Mine\n    memoryMiB: -1"), "memoryMiB is -1"},
		"a name that could not be in an URL":         {swap("os: mine", "os: My OS"), `"My OS" is not a name`},
		"an unknown key at the top names no Go type": {"a: 1\n", "f.yaml: line 1: field a not found"},
		"an alias bomb is refused, not unfolded":     {"a: &a [x,x]\nversion: 1\nentries: []\n", "field a not found"},
		"text that is not YAML":                      {"\tversion", "f.yaml: "},
		"a file without paths":                       {swap("paths: [vmlinuz]", "paths: []"), "has no paths"},
		"more than one word as operating system":     {swap("releases: [\"1\"]", "releases: [\"1 2\"]"), "is not a release"},
		"a folder that is not absolute":              {swap("title: Mine", "title: Mine\n    folder: usr/lib"), "is not absolute"},
		"too many arguments for a kernel to read":    {swap("a=${file:vmlinuz}", strings.Repeat("a", 1900)), "1901 bytes long"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadCatalogue(strings.NewReader(c.text), "f.yaml")
			var e *inventory.Error
			if !errors.As(err, &e) || !strings.Contains(e.Msg, c.part) || e.Kind != inventory.Invalid || strings.Contains(e.Msg, " in type ") {
				t.Fatalf("got %v, want an error with %q", err, c.part)
			}
		})
	}
	if _, err := ReadCatalogue(strings.NewReader(goodEntry), "f.yaml"); err != nil {
		t.Errorf("the good entry: %v", err)
	}
}

func TestAnAdminsCatalogueFileExtendsAndOverrides(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one.yaml"), filepath.Join(dir, "two.yaml")
	debian := strings.NewReplacer("mine", "debian", "Mine", "Our Debian", `"1"`, `"12"`).Replace(goodEntry)
	for name, text := range map[string]string{one: goodEntry, two: debian} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c, err := LoadCatalogue([]string{one, two})
	if err != nil {
		t.Fatal(err)
	}
	for os, want := range map[string]string{"mine": "Mine", "debian": "Our Debian"} {
		e, _, err := c.Find(os, map[string]string{"mine": "1", "debian": "12"}[os])
		if err != nil || e.Title != want {
			t.Errorf("%s is %q, %v; want %q", os, e.Title, err, want)
		}
	}
	if e, _, err := c.Find("debian", "13"); err != nil || !strings.Contains(e.Title, "trixie") {
		t.Errorf("debian 13 is %q, %v; want the built-in one", e.Title, err)
	}
	_, err = LoadCatalogue([]string{filepath.Join(dir, "absent.yaml")})
	wantError(t, err, inventory.Invalid, "absent.yaml cannot be read")
}

func TestWhatTheCatalogueDoesNotKnowIsNamed(t *testing.T) {
	c, err := BuiltinCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = c.Find("debian", "11")
	if e := wantError(t, err, inventory.NotFound, `no release "11" of debian`); !strings.Contains(e.Hint, "12, 13") {
		t.Errorf("hint %q does not name the releases it knows", e.Hint)
	}
	_, _, err = c.Find("plan9", "4")
	wantError(t, err, inventory.NotFound, `no operating system "plan9"`)
	_, _, err = c.Find("debian", "120")
	wantError(t, err, inventory.NotFound, `no release "120"`)
}

func FuzzReadCatalogue(f *testing.F) {
	f.Add(builtinCatalogue)
	f.Add([]byte(goodEntry))
	f.Add([]byte("version: 1\nentries: [{os: a, vars: {x: '{x}'}}]"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		entries, err := ReadCatalogue(bytes.NewReader(text), "f.yaml")
		var e *inventory.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("error %v is not for people", err)
		}
		c := Catalogue{entries: entries}
		for _, e := range entries {
			for arch := range e.Arch {
				release := strings.ReplaceAll(e.Releases[0], "*", "1")
				// What has been accepted can be planned, or says why it cannot.
				if _, err := c.plan(ImportRequest{Name: "x", OS: e.OS, Release: release, Arch: arch}); err != nil && !errors.As(err, new(*inventory.Error)) {
					t.Fatalf("plan of %s: %v", e.OS, err)
				}
			}
		}
	})
}

func TestTheExampleInTheDocsIsACatalogue(t *testing.T) {
	page, err := os.ReadFile("../docs/images.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, found := strings.Cut(string(page), "```yaml\n")
	example, _, closed := strings.Cut(example, "```\n")
	if !found || !closed {
		t.Fatal("docs/images.md has no example")
	}
	if _, err := ReadCatalogue(strings.NewReader(example), "docs/images.md"); err != nil {
		t.Error(err)
	}
	c, err := BuiltinCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range c.names() {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/images.md does not name %s", name)
		}
	}
}
