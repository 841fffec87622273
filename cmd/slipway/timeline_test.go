package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
)

var update = flag.Bool("update", false, "rewrite golden files")

// golden compares text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestTheTimelineShowsDurationsPerStep(t *testing.T) {
	const one, two = "11111111111111111111111111111111", "22222222222222222222222222222222"
	at := time.Date(2026, 11, 21, 23, 59, 50, 0, time.UTC)
	ev := func(after time.Duration, kind string, s inventory.SessionID, detail string) inventory.Event {
		e := inventory.Event{At: at.Add(after), Kind: kind, SessionID: s, Detail: detail}
		if s != "" {
			e.MAC = "52:54:00:aa:00:01"
		}
		return e
	}
	ms := time.Millisecond
	token := ev(19000*ms, inventory.EventChanged, "", "deleted by root (local)")
	token.Subject = "token/ci"
	subnet := ev(19100*ms, inventory.EventChanged, "", "subnet rack1 created by root (local)")
	subnet.Subject = "subnet/rack1"
	tl := newTimeline(time.UTC)
	var b strings.Builder
	for _, e := range []inventory.Event{
		ev(0, inventory.EventServer, "", "started"),
		ev(1*ms, inventory.EventSessionStarted, one, "uefi x86_64 on subnet rack1"),
		ev(2*ms, inventory.EventDHCPDiscover, one, ""),
		ev(1003*ms, inventory.EventDHCPAck, one, "10.0.0.100 for 10m"),
		ev(1002*ms, inventory.EventDHCPRequest, one, "noted late, happened before"),
		ev(1500*ms, inventory.EventLoaderStarted, one, "snponly.efi by tftp"),
		ev(1600*ms, inventory.EventSessionStarted, two, "another machine in between"),
		ev(6100*ms, inventory.EventBootDecided, one, "image debian-12 \x1b[31mwith\u202e tricks\n"),
		ev(15*time.Second, inventory.EventSessionEnded, one, "arrived"), // after midnight
		ev(18*time.Second, inventory.EventStateChanged, "", "available by root (local)"),
		token, subnet,
	} {
		host := ""
		if e.SessionID != "" || e.Kind == inventory.EventStateChanged {
			host = "web1"
		}
		b.WriteString(tl.Lines(e, host))
	}
	golden(t, "timeline.golden", b.String())
}

func TestTheTimelineForgets(t *testing.T) {
	tl := newTimeline(time.UTC)
	for i := range 3 * bootsMax {
		tl.Lines(inventory.Event{SessionID: inventory.SessionID(strings.Repeat("x", 1+i%100) + time.Duration(i).String())}, "")
	}
	if len(tl.boots) > bootsMax {
		t.Errorf("%d boots remembered", len(tl.boots))
	}
}

// parserOf returns a parser that neither exits nor prints.
func parserOf(t *testing.T) *kong.Kong {
	t.Helper()
	var c cli
	var out strings.Builder
	p, err := newParser(&c, &out, &out)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCompletionScriptsAreGoodForTheirShells(t *testing.T) {
	words := wordsOf(parserOf(t).Model.Node)
	dir := t.TempDir()
	for shell, write := range map[string]func(f *os.File) error{
		"bash": func(f *os.File) error { return bashCompletion(f, words) },
		"zsh":  func(f *os.File) error { return zshCompletion(f, words) },
		"fish": func(f *os.File) error { return fishCompletion(f, words) },
	} {
		t.Run(shell, func(t *testing.T) {
			f, err := os.Create(filepath.Join(dir, shell))
			if err != nil {
				t.Fatal(err)
			}
			if err := write(f); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("%s is not installed; apt install %s would run this", shell, shell)
			}
			if out, err := exec.Command(path, "-n", f.Name()).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
			ask := map[string]string{
				"bash": `. ` + f.Name() + `; COMP_WORDS=(slipway host --output json ac); COMP_CWORD=4; _slipway; echo "${COMPREPLY[@]}"; ` +
					`COMP_WORDS=(slipway export -o ""); COMP_CWORD=3; _slipway; echo "${COMPREPLY[@]}"; COMP_WORDS=(slipway export ""); COMP_CWORD=2; _slipway; echo "${COMPREPLY[@]}"`,
				"zsh":  `compdef() { :; }; _describe() { print -l -- ${offer%%:*}; }; words=(slipway host ac); CURRENT=3; . ` + f.Name(),
				"fish": `source ` + f.Name() + `; complete -C 'slipway host ac'; complete -C 'slipway export -o '; complete -C 'slipway export '`,
			}[shell]
			out, err := exec.Command(path, "-c", ask).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			want := []string{"accept", "table", "reservations"}
			if shell == "zsh" {
				want = []string{"accept", "events", "--selector"}[:2]
			}
			for _, w := range want {
				if !strings.Contains(string(out), w) {
					t.Errorf("%q is not offered: %s", w, out)
				}
			}
		})
	}
}

// TestHintsNameCommandsThatExist reads every text of the program and of the documentation that says what to type.
func TestHintsNameCommandsThatExist(t *testing.T) {
	known := map[string]bool{}
	nouns := map[string]bool{}
	flags := map[string]string{}
	for _, c := range wordsOf(parserOf(t).Model.Node) {
		known[c.path] = true
		noun, _, _ := strings.Cut(c.path, " ")
		nouns[noun] = true
		for _, w := range c.words {
			flags[c.path] += " " + w.text + " "
		}
	}
	said := regexp.MustCompile("slipway ([a-z]+) ([a-z][a-z0-9-]*)([^\"`';|\n]*)")
	flag := regexp.MustCompile(`(^| )(--[a-z][a-z0-9-]*)`)
	n := 0
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin" || name == "build" || name == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		if ext := filepath.Ext(path); ext != ".go" && ext != ".md" && ext != ".yaml" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range said.FindAllStringSubmatch(string(text), -1) {
			if !nouns[m[1]] || known[m[1]] && !hasVerbs(known, m[1]) {
				continue
			}
			n++
			command := m[1] + " " + m[2]
			if !known[command] {
				t.Errorf("%s says %q, and there is no such command", path, m[0])
				continue
			}
			if verb, _, _ := strings.Cut(strings.TrimLeft(m[3], " "), " "); known[command+" "+verb] {
				command += " " + verb
			}
			for _, f := range flag.FindAllStringSubmatch(m[3], -1) {
				if !strings.Contains(flags[command], " "+f[2]+" ") {
					t.Errorf("%s says %q, and %s has no flag %s", path, m[0], command, f[2])
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 20 {
		t.Errorf("only %d commands found in texts; the test looks in the wrong place", n)
	}
}

func hasVerbs(known map[string]bool, noun string) bool {
	for path := range known {
		if strings.HasPrefix(path, noun+" ") {
			return true
		}
	}
	return false
}

func TestEveryCommandAndFlagSaysWhatItDoes(t *testing.T) {
	for _, c := range wordsOf(parserOf(t).Model.Node) {
		for _, w := range c.words {
			if w.help == "" && (strings.HasPrefix(w.text, "--") || c.path == "") {
				t.Errorf("slipway %s: %s has no help", c.path, w.text)
			}
		}
	}
}
