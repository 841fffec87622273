// Package release tests tools/release.sh: what a release is made of, and that two builds of it are the same bytes.
package release

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// root is the tree of this project, as seen from here.
const root = "../.."

// epoch is the time that the releases of these tests have: 2026-11-18T11:06:40Z.
const epoch = "1795000000"

// notInATree are folders that builds make, and that a fresh clone does not have.
var notInATree = []string{".git", "bin", "build", "node_modules", "dist"}

// clone copies the tree into a folder, without what was built. It is given a small web UI, so that no npm is needed.
func clone(t *testing.T, to string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains(notInATree, d.Name()) {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		if !d.Type().IsRegular() || d.Name() == ".git" { // a file in a worktree
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), b, info.Mode().Perm())
	})
	if err != nil {
		t.Fatal(err)
	}
	dist := filepath.Join(to, "ui/dist")
	if err := os.MkdirAll(dist, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"index.html":    "<!doctype html><title>Slipway</title>",
		"licences.json": `[{"kind":"npm","name":"@patternfly/react-core","version":"6.6.1","licence":"MIT","text":""}]`,
	} {
		if err := os.WriteFile(filepath.Join(dist, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// script runs tools/release.sh of a tree with the flags that make gives to Go.
func script(t *testing.T, tree string, env []string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), filepath.Join(tree, "tools/release.sh"), args...)
	c.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+epoch, "CGO_ENABLED=1", "GO_SLOT=1",
		"GOFLAGS=-trimpath -buildvcs=false -tags=netgo,osusergo,sqlite_omit_load_extension -gcflags=all=-dwarf=false")
	c.Env = append(c.Env, env...)
	var out, bad bytes.Buffer
	c.Stdout, c.Stderr = &out, &bad
	err = c.Run()
	return out.String(), bad.String(), err
}

// sums returns the SHA-256 of each file in a folder.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		s := sha256.Sum256(b)
		all[e.Name()] = hex.EncodeToString(s[:])
	}
	return all
}

// twice makes a release in two folders whose names differ in length, and compares the files. It returns one of them.
func twice(t *testing.T, env []string, more ...string) string {
	t.Helper()
	dirs := []string{filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "another-folder/with/a/longer/name")}
	for _, dir := range dirs { // both first: nobody edits a file between them
		clone(t, dir)
	}
	var made []map[string]string
	for i, dir := range dirs {
		run := env
		if i == 1 {
			run = append(slices.Clone(env), more...)
		}
		if _, bad, err := script(t, dir, run, "all", "0.1.0"); err != nil {
			t.Fatalf("release in %s: %v\n%s", dir, err, bad)
		}
		dirs[i] = filepath.Join(dir, "build/release/v0.1.0")
		made = append(made, sums(t, dirs[i]))
	}
	for name, sum := range made[0] {
		if made[1][name] != sum {
			t.Errorf("%s is %s in one folder and %q in another", name, sum, made[1][name])
		}
	}
	if len(made[0]) != len(made[1]) {
		t.Errorf("%d files in one folder, %d in another", len(made[0]), len(made[1]))
	}
	return dirs[0]
}

// TestTwoReleasesAreTheSameBytes makes all of a release but the server, for the machine that the test runs on.
func TestTwoReleasesAreTheSameBytes(t *testing.T) {
	arch := runtime.GOARCH
	dir := twice(t, []string{"NO_SERVER=1", "ARCHS=" + arch})
	agent := "slipway-agent-v0.1.0-linux-" + arch
	want := []string{
		"RELEASE_NOTES.md", "SHA256SUMS", agent, agent + ".cdx.json", "slipway-v0.1.0-crds.yaml", "slipway-v0.1.0-openapi.yaml",
	}
	names := sortedNames(t, dir)
	if !slices.Equal(names, want) {
		t.Errorf("the release has %q, want %q", names, want)
	}
	says(t, filepath.Join(dir, agent), "v0.1.0", "-version")
	checksums(t, dir)
	if got := components(t, filepath.Join(dir, agent+".cdx.json")); !slices.Contains(got, "golang.org/x/sys") {
		t.Errorf("the bill of materials of the agent has %q", got)
	}
	crds := read(t, filepath.Join(dir, "slipway-v0.1.0-crds.yaml"))
	files, err := filepath.Glob(filepath.Join(root, "kubernetes/manifests/crds/*.yaml"))
	if n := strings.Count(crds, "kind: CustomResourceDefinition"); err != nil || n != len(files) || n == 0 {
		t.Errorf("%d kinds in the release, %d in the tree, %v", n, len(files), err)
	}
}

// TestTwoWholeReleasesAreTheSameBytes compiles everything twice, for both kinds of processors, the second time without a cache.
// SLIPWAY_RELEASE_CACHE=1 keeps the cache: then only the programs are linked twice.
func TestTwoWholeReleasesAreTheSameBytes(t *testing.T) {
	if os.Getenv("SLIPWAY_LONG") == "" {
		t.Skip("make test-long compiles everything twice")
	}
	var more []string
	if os.Getenv("SLIPWAY_RELEASE_CACHE") == "" {
		more = append(more, "GOCACHE="+t.TempDir())
	}
	dir := twice(t, []string{"CGO_CFLAGS=-O2 -DHAVE_FDATASYNC=1 -DSQLITE_DEFAULT_MEMSTATUS=0"}, more...)
	checksums(t, dir)
	for _, arch := range []string{"amd64", "arm64"} {
		name := "slipway-v0.1.0-linux-" + arch
		got := components(t, filepath.Join(dir, name+".cdx.json"))
		for _, c := range []string{"github.com/mattn/go-sqlite3", "@patternfly/react-core", "glibc"} {
			if !slices.Contains(got, c) {
				t.Errorf("the bill of materials for %s lacks %s", arch, c)
			}
		}
		to := t.TempDir()
		if out, err := exec.CommandContext(t.Context(), "tar", "-xzf", filepath.Join(dir, name+".tar.gz"), "-C", to).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		want := []string{"CHANGELOG.md", "LICENSE", "README.md", "slipway", "slipway-agent"}
		if names := sortedNames(t, filepath.Join(to, name)); !slices.Equal(names, want) {
			t.Errorf("the archive for %s has %q, want %q", arch, names, want)
		}
		if arch == runtime.GOARCH {
			says(t, filepath.Join(to, name, "slipway"), "v0.1.0", "version", "--client")
		}
	}
}

// TestAReleaseNeedsAVersionWithASectionOfTheChangelog names what is refused, and what the notes are.
func TestAReleaseNeedsAVersionWithASectionOfTheChangelog(t *testing.T) {
	tree := t.TempDir()
	for name, text := range map[string]string{
		"CHANGELOG.md":     "# Changelog\n\n## Unreleased\n- later\n\n## 0.2.0\n\n### Added\n- a thing\n\n## 0.1.0\n- the first\n",
		"tools/release.sh": read(t, filepath.Join(root, "tools/release.sh")),
	} {
		path := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ version, notes, refusal string }{
		{"0.2.0", "### Added\n- a thing\n\n", ""},
		{"0.1.0", "- the first\n", ""},
		{"0.3.0", "", "has no section"},
		{"0.2", "", "is not a version"},
		{"v0.2.0", "", "is not a version"},
		{"00.2.0", "", "is not a version"},
		{"0.2.0; rm", "", "is not a version"},
		{"", "", "is not a version"},
	} {
		out, bad, err := script(t, tree, nil, "notes", c.version)
		if out != c.notes || (err != nil) != (c.refusal != "") || !strings.Contains(bad, c.refusal) {
			t.Errorf("notes of %q are %q, %v: %s", c.version, out, err, bad)
		}
	}
}

// TestTheNextReleaseHasItsNotes reads the version that builds without a tag lead to, and its section of the changelog.
func TestTheNextReleaseHasItsNotes(t *testing.T) {
	out, bad, err := script(t, root, nil, "notes", "0.1.0")
	if err != nil || !strings.Contains(out, "\n### ") {
		t.Errorf("the notes of 0.1.0: %v: %s\n%.200s", err, bad, out)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func sortedNames(t *testing.T, dir string) (names []string) {
	t.Helper()
	for name := range sums(t, dir) {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// checksums expects SHA256SUMS to hold every file but itself and the notes.
func checksums(t *testing.T, dir string) {
	t.Helper()
	var want strings.Builder
	all := sums(t, dir)
	for _, name := range sortedNames(t, dir) {
		if name != "SHA256SUMS" && name != "RELEASE_NOTES.md" {
			want.WriteString(all[name] + "  " + name + "\n")
		}
	}
	if got := read(t, filepath.Join(dir, "SHA256SUMS")); got != want.String() {
		t.Errorf("SHA256SUMS is\n%swant\n%s", got, want.String())
	}
}

// says expects a program to name the version.
func says(t *testing.T, program, version string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), version) {
		t.Errorf("%s %q says %q, %v, want %s", program, args, out, err, version)
	}
}

// components returns the names in a bill of materials, which must have the time of the release.
func components(t *testing.T, path string) (names []string) {
	t.Helper()
	var doc struct {
		BOMFormat  string
		Metadata   struct{ Timestamp string }
		Components []struct{ Name string }
	}
	if err := json.Unmarshal([]byte(read(t, path)), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.BOMFormat != "CycloneDX" || doc.Metadata.Timestamp != "2026-11-18T11:06:40Z" {
		t.Errorf("%s is %q of %q", path, doc.BOMFormat, doc.Metadata.Timestamp)
	}
	for _, c := range doc.Components {
		names = append(names, c.Name)
	}
	return names
}
