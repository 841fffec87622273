package installer

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// shellScripts collects the different scripts of all cases: most cases share most of theirs.
type shellScripts struct {
	first   string // line
	parsers [][]string
	dir     string
	seen    map[string]bool
	files   []string
}

func newShellScripts(t *testing.T, first string, parsers ...[]string) *shellScripts {
	t.Helper()
	return &shellScripts{first: first, parsers: parsers, dir: t.TempDir(), seen: map[string]bool{}}
}

// add has the shells parse a script, unless they have parsed it for another case.
func (s *shellScripts) add(t *testing.T, text string) {
	t.Helper()
	if s.seen[text] {
		return
	}
	s.seen[text] = true
	for _, p := range s.parsers {
		run(t, text, p[0], p[1:]...)
	}
	name := strings.NewReplacer("/", "-", " ", "-").Replace(t.Name())
	file := filepath.Join(s.dir, fmt.Sprintf("%03d-%s", len(s.files), name))
	if err := os.WriteFile(file, []byte(s.first+"\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.files = append(s.files, file)
}

// judge has shellcheck judge them in a few calls: each takes a second to start. What it says names file and line.
func (s *shellScripts) judge(t *testing.T) {
	t.Helper()
	const each = 16
	t.Logf("%d different scripts", len(s.files))
	if len(s.files) < 10 {
		t.Error("that is too few")
	}
	for left := s.files; len(left) > 0; left = left[min(each, len(left)):] {
		args := append([]string{"--severity=warning", "--exclude=SC2016"}, left[:min(each, len(left))]...)
		if out, err := exec.Command("shellcheck", args...).CombinedOutput(); err != nil {
			t.Errorf("shellcheck: %v\n%s", err, out)
		}
	}
}
