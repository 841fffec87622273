// Package cloudinit owns the tests in which cloud-init itself reads what package cloudinit writes. It never looks into
// a document but through cloud-init's own code.
package cloudinit

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/test/corpus"
)

// reader is one cloud-init.
type reader struct {
	version string
	tree    string // folder of its Python modules, "" for the installed one
}

func (r reader) target() machineconfig.Target {
	return machineconfig.Target{OS: "debian", Release: "12", Tool: r.version}
}

// readers returns Debian's cloud-init and, when SLIPWAY_CLOUDINIT_NEWER names the folder of a newer one's Python
// modules, that one as well.
func readers(t *testing.T) []reader {
	t.Helper()
	if os.Getenv("SLIPWAY_JUDGES") == "" {
		t.Skip("cloud-init's own code is run by make test-judges")
	}
	for program, pkg := range map[string]string{
		"cloud-init": "cloud-init", "/usr/bin/python3": "python3", "shellcheck": "shellcheck", "netplan": "netplan.io",
	} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%s is missing: apt-get install %s", program, pkg)
		}
	}
	all := []reader{{}}
	if tree := os.Getenv("SLIPWAY_CLOUDINIT_NEWER"); tree != "" {
		all = append(all, reader{tree: tree})
	} else {
		t.Log("no newer cloud-init: set SLIPWAY_CLOUDINIT_NEWER to the folder of its Python modules")
	}
	for i := range all {
		var v string
		all[i].ask(t, nil, &v, "version")
		all[i].version, _, _ = strings.Cut(v, "-")
	}
	return all
}

func (r reader) env() []string {
	env := os.Environ()
	if r.tree != "" {
		env = append(env, "PYTHONPATH="+r.tree)
	}
	return append(env, "PYTHONDONTWRITEBYTECODE=1")
}

// ask runs a mode of the driver.
func (r reader) ask(t *testing.T, stdin []byte, answer any, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", append([]string{"testdata/driver.py"}, args...)...)
	cmd.Env, cmd.Stdin = r.env(), bytes.NewReader(stdin)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cloud-init %s %v: %v\n%s", r.version, args, err, stderr.String())
	}
	if err := json.Unmarshal(out, answer); err != nil {
		t.Fatalf("cloud-init %s %v answers %q: %v", r.version, args, out, err)
	}
	if s := stderr.String(); strings.Contains(s, "Traceback") {
		t.Errorf("cloud-init %s %v says:\n%s", r.version, args, s)
	}
}

// run runs cloud-init's command line.
func (r reader) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", append([]string{"-m", "cloudinit.cmd.main"}, args...)...)
	cmd.Env = r.env()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// seedCase is a configuration with what cloud-init makes of it.
type seedCase struct {
	name     string
	config   *machineconfig.Config
	rendered *machineconfig.Rendered
	root     string
	result   result
}

type result struct {
	Config map[string]any `json:"config"`
	Apply  struct {
		Owners map[string]string `json:"owners"`
		Late   []string          `json:"late"`
	} `json:"apply"`
	Users struct {
		Users  map[string]map[string]any `json:"users"`
		Groups []string                  `json:"groups"`
	} `json:"users"`
	Runcmd  string `json:"runcmd"`
	Bootcmd string `json:"bootcmd"`
}

func (c *seedCase) document(t *testing.T, name string) []byte {
	t.Helper()
	for _, d := range c.rendered.Documents {
		if d.Name == name {
			return d.Data
		}
	}
	t.Fatalf("%s: there is no document %s", c.name, name)
	return nil
}

// value is what the reference of a late value stands for in these tests: text that breaks every encoding that is
// forgotten.
func value(ref string) ([]byte, error) {
	switch {
	case strings.HasPrefix(ref, "session://"):
		return []byte("http://127.0.0.1:1/" + strings.ReplaceAll(ref, "/", "-")), nil
	case ref == "secret://bootstrap":
		return os.ReadFile("testdata/capi.yaml")
	case strings.Contains(ref, "hash"):
		return []byte("$6$salt$" + strings.Repeat("x", 86)), nil
	}
	return []byte("it's \"quoted\": \\ $HOME `id` {{ jinja }}\nüber # two lines"), nil
}

// asciiValue is value without what a message of several parts cannot carry in the open: see cloudinit.transfer.
func asciiValue(ref string) ([]byte, error) {
	b, err := value(ref)
	if ref == "secret://bootstrap" {
		return b, err // base64
	}
	return bytes.ReplaceAll(b, []byte("ü"), []byte("ue")), err
}

// render renders every case that a reader's target can express, and injects the late values.
func (r reader) render(t *testing.T) []*seedCase {
	t.Helper()
	golden, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	cases := ownCases(t)
	for _, g := range golden {
		cases = append(cases, &seedCase{name: g.Name, config: g.Config})
	}
	p := cloudinit.New()
	var out []*seedCase
	for _, c := range cases {
		if report := machineconfig.Check(p, r.target(), c.config, []string{"/boot/rootDevice", "/boot/powerAfter"}); report.HasErrors() {
			t.Logf("not expressible: %s: %s", c.name, report[0].Path)
			continue
		}
		rendered, report := p.Render(r.target(), c.config)
		if rendered == nil {
			t.Logf("not expressible: %s: %s", c.name, report[0].Path)
			continue
		}
		c.rendered, c.root = rendered, filepath.Join(roots, r.version, c.name)
		for i := range rendered.Documents {
			d := &rendered.Documents[i]
			lookup := value
			if strings.HasPrefix(string(d.Data), "MIME-Version") {
				lookup = asciiValue
			}
			if d.Data, err = late.Inject(d.Data, lookup); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, c)
	}
	if len(out) < len(cases)*2/3 {
		t.Fatalf("only %d of %d cases can be expressed", len(out), len(cases))
	}
	return out
}

// judge lets cloud-init read all cases in one process.
func (r reader) judge(t *testing.T, cases []*seedCase) {
	t.Helper()
	var in []map[string]string
	for _, c := range cases {
		in = append(in, map[string]string{
			"user": base64.StdEncoding.EncodeToString(c.document(t, "user-data")), "meta": string(c.document(t, "meta-data")), "root": c.root,
		})
	}
	stdin, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var results []result
	r.ask(t, stdin, &results, "all")
	for i, c := range cases {
		c.result = results[i]
	}
}

// judged keeps what each version made of the cases: reading them all takes seconds.
var judged = map[string][]*seedCase{}

// each runs a test for every reader with all its cases read. What the test changes below a case's root stays.
func each(t *testing.T, test func(t *testing.T, r reader, cases []*seedCase)) {
	t.Helper()
	for _, r := range readers(t) {
		t.Run(r.version, func(t *testing.T) {
			if judged[r.version] == nil {
				cases := r.render(t)
				r.judge(t, cases)
				judged[r.version] = cases
			}
			test(t, r, judged[r.version])
		})
	}
}

// roots holds the folders in which files are written.
var roots string

func TestMain(m *testing.M) {
	var err error
	if roots, err = os.MkdirTemp("", "slipway-cloudinit-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(roots)
	os.Exit(code)
}

func write(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func expand(text string) string {
	out, err := late.Inject([]byte(text), value)
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(out)
}
