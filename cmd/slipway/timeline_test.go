package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"slipway.dev/slipway/cmd/slipway/cli"
)

// parserOf returns a parser that neither exits nor prints.
func parserOf(t *testing.T) *kong.Kong {
	t.Helper()
	var c commandLine
	var out strings.Builder
	p, err := newParser(&c, &out, &out)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCompletionScriptsAreGoodForTheirShells(t *testing.T) {
	words := cli.WordsOf(parserOf(t).Model.Node)
	dir := t.TempDir()
	for shell, write := range map[string]func(f *os.File) error{
		"bash": func(f *os.File) error { return cli.BashCompletion(f, words) },
		"zsh":  func(f *os.File) error { return cli.ZshCompletion(f, words) },
		"fish": func(f *os.File) error { return cli.FishCompletion(f, words) },
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
	for _, c := range cli.WordsOf(parserOf(t).Model.Node) {
		known[c.Path] = true
		noun, _, _ := strings.Cut(c.Path, " ")
		nouns[noun] = true
		for _, w := range c.Words {
			flags[c.Path] += " " + w.Text + " "
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
	for _, c := range cli.WordsOf(parserOf(t).Model.Node) {
		for _, w := range c.Words {
			if w.Help == "" && (strings.HasPrefix(w.Text, "--") || c.Path == "") {
				t.Errorf("slipway %s: %s has no help", c.Path, w.Text)
			}
		}
	}
}
