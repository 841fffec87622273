// Package ignition_test lets other people's programs judge package ignition's renderings: Ignition's parser and engine,
// systemd and shellcheck. It never looks at a rendering's text where a program can say what it means.
package ignition_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"slipway.dev/slipway/ignition"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/test/corpus"
)

// module is the way to the module's root.
var module = filepath.Join("..", "..", "..")

func judges(t *testing.T) {
	t.Helper()
	if os.Getenv("SLIPWAY_JUDGES") == "" {
		t.Skip("other people's programs judge Ignition documents; run by make test-judges")
	}
}

// program finds a program that Debian's package brings, or a part that tools/parts.sh builds.
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

func part(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(module, "build", "parts", name))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%v: tools/parts.sh build %s", err, name)
	}
	return path
}

// targets are what each case is rendered for.
var targets = []machineconfig.Target{
	{OS: "fedora-coreos", Release: "40", Tool: "3.3.0"},
	{OS: "fedora-coreos", Release: "44", Tool: "3.6.0"},
	{OS: "flatcar", Release: "3510", Tool: "3.3.0"},
	{OS: "flatcar", Release: "stable", Tool: "3.4.0"},
	{OS: "debian", Release: "12", Tool: "3.3.0"},
}

// judged is a rendering with its late values.
type judged struct {
	name   string // of the case and the first target that it is the same for
	on     machineconfig.Target
	config *machineconfig.Config
	doc    []byte
	values map[string]string
	remote map[string]string // path of a request to what is answered
}

// valueOf are the values of references; everything else is its own name.
func valueOf(base, ref string) string {
	if strings.HasPrefix(ref, "session://base") {
		return base
	}
	if strings.HasPrefix(ref, "session://") {
		return base + "/late/" + strings.TrimPrefix(ref, "session://")
	}
	if strings.Contains(ref, "hash") || strings.Contains(ref, "password") {
		return "$6$rounds=5000$salt$LE2f/abc.def"
	}
	if strings.Contains(ref, "wg") { // keys of WireGuard are read
		return "RlBLZ0RZNNyXMTlGnRCo1Bnn0LhFcWCrCnHbUTJgQlE="
	}
	return "late 100% \"" + ref + "\" \\x"
}

// renderings is every case for every target that can express it, and the server that has what they fetch. Cases whose
// renderings are the same are judged once.
type renderings struct {
	cases  []judged
	server *httptest.Server
	*answers
	notes, faults []string
}

// rendered is made once: all tests judge the same, and only read it.
var rendered = sync.OnceValue(renderAll)

// all returns the renderings. What is wrong with them fails each test that judges them.
func all(t *testing.T) *renderings {
	t.Helper()
	r := rendered()
	for _, n := range r.notes {
		t.Log(n)
	}
	for _, f := range r.faults {
		t.Error(f)
	}
	return r
}

func renderAll() *renderings {
	all := &renderings{answers: &answers{body: map[string]string{}, asked: map[string]int{}}}
	all.server = httptest.NewServer(all.answers) // it ends with the process
	seen, why := map[string]bool{}, map[string]int{}
	count, skipped := 0, 0
	for _, on := range targets {
		// Each target has its own configs: their remote files are moved to our server.
		cases, err := corpus.All()
		if err != nil {
			all.faults = append(all.faults, err.Error())
			return all
		}
		for _, c := range append(cases, ownCases()...) {
			j, reason := all.render(on, c)
			if reason != "" {
				skipped++
				why[reason]++
				continue
			}
			if j == nil {
				continue // it is among the faults
			}
			count++
			key := on.OS + string(j.doc)
			if !seen[key] {
				seen[key] = true
				all.cases = append(all.cases, *j)
			}
			all.add(j.remote)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(why)) {
		all.notes = append(all.notes, fmt.Sprintf("not judged for %d of %d targets: %s", why[reason], len(targets), reason))
	}
	all.notes = append(all.notes, fmt.Sprintf("%d renderings (%d different) are judged, %d cannot be expressed", count, len(all.cases), skipped))
	if total := count + skipped; count*100 < total*60 {
		all.faults = append(all.faults, fmt.Sprintf("only %d of %d cases can be expressed", count, total))
	}
	return all
}

// render renders a case, or says why the target cannot have it.
func (r *renderings) render(on machineconfig.Target, c corpus.Case) (*judged, string) {
	p := ignition.New()
	if found := machineconfig.Check(p, on, c.Config, []string{"/boot/powerAfter"}); found.HasErrors() {
		return nil, c.Name + ": " + found[0].Path + " " + found[0].Hint
	}
	base := r.server.URL
	j := &judged{name: c.Name + " on " + on.OS, on: on, config: c.Config, values: map[string]string{}, remote: map[string]string{}}
	j.moveRemotes(base)
	got, found := p.Render(on, c.Config)
	if got == nil && !slices.ContainsFunc(found, func(f machineconfig.Finding) bool { return f.Code != "not-expressible" }) {
		return nil, c.Name + ": " + found[0].Path + " " + found[0].Hint // what the table's note says, such as clevis on Flatcar
	}
	if got == nil || found.HasErrors() {
		r.fault("%s: Check let it through, but Render says %v", j.name, found)
		return nil, ""
	}
	if found := ignition.Validate(got.Documents[0].Data); len(found) > 0 {
		r.fault("%s: our own validation says %v", j.name, found)
	}
	var err error
	j.doc, err = late.Inject(got.Documents[0].Data, func(ref string) ([]byte, error) {
		j.values[ref] = valueOf(base, ref)
		return []byte(j.values[ref]), nil
	})
	if err != nil {
		r.fault("%s: %v", j.name, err)
		return nil, ""
	}
	return j, ""
}

func (r *renderings) fault(format string, a ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, a...))
}

// moveRemotes lets the machine fetch remote content from our server, since it has to verify it.
func (j *judged) moveRemotes(base string) {
	move := func(r *machineconfig.Remote) {
		content := "content of " + r.URL + "\n"
		sum := sha256.Sum256([]byte(content))
		path := "/remote/" + hex.EncodeToString(sum[:8])
		j.remote[path] = content
		r.URL, r.SHA256 = base+path, hex.EncodeToString(sum[:])
	}
	for i := range j.config.Files {
		if j.config.Files[i].Remote != nil {
			move(j.config.Files[i].Remote)
		}
	}
	for i := range j.config.Extensions {
		if f := j.config.Extensions[i].Format; f == "" || f == machineconfig.Sysext {
			move(&j.config.Extensions[i].Remote)
		}
	}
}

// expand puts late values into text of the neutral config.
func (j *judged) expand(text string) string {
	out, err := late.Inject([]byte(late.Retag(text, late.Raw)), func(ref string) ([]byte, error) {
		return []byte(j.values[ref]), nil
	})
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// answers is what our server says, by path. A path that ends in .ign is refused once with 503, as for a host that is
// not ready yet.
type answers struct {
	sync.Mutex
	body     map[string]string
	asked    map[string]int
	requests []http.Header
}

func (a *answers) add(more map[string]string) {
	a.Lock()
	defer a.Unlock()
	for k, v := range more {
		a.body[k] = v
	}
}

func (a *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.Lock()
	defer a.Unlock()
	body, ok := a.body[r.URL.Path]
	isConfig := strings.HasSuffix(r.URL.Path, ".ign")
	a.asked[r.URL.Path]++
	if isConfig {
		a.requests = append(a.requests, r.Header)
		version, negotiated := ignition.Negotiate(r.Header.Get("Accept"))
		if a.asked[r.URL.Path] == 1 || !negotiated || !ignition.CanRead(version, ignition.SpecOf([]byte(body))) {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", ignition.ContentType)
	}
	if !ok {
		http.Error(w, "unknown", http.StatusNotFound)
		return
	}
	_, _ = w.Write([]byte(body)) // the client judges what it got
}

// run starts a program and returns what it said.
func run(dir string, env []string, argv ...string) (string, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w", filepath.Base(argv[0]), err)
	}
	return string(out), err
}
