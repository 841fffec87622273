// Package ui runs the stories of the web UI: what a person does in a browser, each file of them as one test. They are
// written in JavaScript, for that is what drives Chromium; rack.mjs has the server, the machines and the browser.
package ui

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A function for each file, so that one that failed can be run again by itself.

func TestWatch(t *testing.T)     { stories(t, "watch.test.mjs") }
func TestHosts(t *testing.T)     { stories(long(t), "hosts.test.mjs") }
func TestLife(t *testing.T)      { stories(long(t), "life.test.mjs") }
func TestAccess(t *testing.T)    { stories(t, "access.test.mjs") }
func TestHost(t *testing.T)      { stories(long(t), "host.test.mjs") }
func TestShell(t *testing.T)     { stories(long(t), "shell.test.mjs") }
func TestSetup(t *testing.T)     { stories(long(t), "setup.test.mjs") }
func TestRacks(t *testing.T)     { stories(long(t), "racks.test.mjs") }
func TestNetworks(t *testing.T)  { stories(long(t), "networks.test.mjs") }
func TestCatalogue(t *testing.T) { stories(long(t), "catalogue.test.mjs") }
func TestAudit(t *testing.T)     { stories(long(t), "audit.test.mjs") }
func TestSSO(t *testing.T)       { stories(long(t), "sso.test.mjs") }
func TestTLS(t *testing.T)       { stories(long(t), "tls.test.mjs") }
func TestQuestions(t *testing.T) { stories(long(t), "questions.test.mjs") }
func TestPlaces(t *testing.T)    { stories(long(t), "places.test.mjs") }
func TestInstances(t *testing.T) { stories(long(t), "instances.test.mjs") }

// TestLab is one machine with real firmware: a few minutes of emulation.
func TestLab(t *testing.T) {
	if os.Getenv("SLIPWAY_VM") == "" {
		t.Skip("boots a virtual machine on libvirt: make test-ui")
	}
	stories(long(t), "lab.test.mjs")
}
func TestHostLife(t *testing.T) { stories(t, "hostlife.test.mjs") }
func TestFaults(t *testing.T)   { stories(long(t), "faults.test.mjs") }

// long skips stories in make test, which runs a few of them for its time; make test-ui runs all.
func long(t *testing.T) *testing.T {
	if os.Getenv("SLIPWAY_UI") == "short" {
		t.Skip("make test runs some of the stories only: make test-ui runs this")
	}
	return t
}

var (
	nodeLine = regexp.MustCompile(`^v(\d+)\.`)
	resultOf = regexp.MustCompile(`^(ok|not ok) \d+ - (.*?)(?: # (SKIP|TODO)\s*(.*))?$`)
	storyOf  = regexp.MustCompile(`stories\((?:long\(t\)|t), "([^"]+)"\)`)
)

// longest is how long the stories of a file may take on a busy machine.
const longest = 10 * time.Minute

// stories runs a file and reports each story in it as a subtest.
func stories(t *testing.T, file string) {
	ready(t)
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "--test-reporter=tap", file)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // its hooks take the namespaces down
	cmd.WaitDelay = 20 * time.Second
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ran := report(t, bufio.NewScanner(out))
	if err := cmd.Wait(); err != nil && !t.Failed() {
		t.Errorf("%s: %v", file, err)
	}
	if ran == 0 {
		t.Errorf("%s: no story ran", file)
	}
}

// report makes subtests of lines in the Test Anything Protocol, and returns how many there were. What is said of a story
// stands below its line.
func report(t *testing.T, lines *bufio.Scanner) (ran int) {
	lines.Buffer(nil, 1<<20)
	var result []string
	var said []string
	tell := func() {
		if result == nil {
			return
		}
		ran++
		state, name, directive, why := result[1], result[2], result[3], result[4]
		text := strings.Join(said, "\n")
		t.Run(name, func(t *testing.T) {
			switch {
			case directive != "":
				t.Skip(why)
			case state == "not ok":
				t.Error(text)
			}
		})
	}
	for lines.Scan() {
		line := lines.Text()
		if r := resultOf.FindStringSubmatch(line); r != nil {
			tell()
			result, said = r, nil
			continue
		}
		said = append(said, line)
	}
	tell()
	return ran
}

// ready skips where the stories cannot run.
func ready(t *testing.T) {
	if os.Getenv("SLIPWAY_UI") == "" {
		t.Skip("needs root, Node and Chromium: make test-ui")
	}
	version, err := exec.Command("node", "--version").Output()
	if m := nodeLine.FindStringSubmatch(string(version)); err != nil || m == nil || len(m[1]) < 2 || m[1] < "20" {
		t.Skipf("needs Node 20 or newer, which Debian 12 does not have (found %q): install it and run make test-ui", strings.TrimSpace(string(version)))
	}
	if _, err := os.Stat(filepath.Join("..", "..", "ui", "dist", "index.html")); err != nil {
		t.Skip("the web UI is not built, see above why; make ui builds it, make test-ui runs this")
	}
}

func TestEveryFileOfStoriesHasAFunction(t *testing.T) {
	source, err := os.ReadFile("stories_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, m := range storyOf.FindAllStringSubmatch(string(source), -1) {
		listed = append(listed, m[1])
	}
	files, err := filepath.Glob("*.test.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !slices.Contains(listed, f) {
			t.Errorf("%s is run by no function here", f)
		}
	}
}
