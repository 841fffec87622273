// Command testsum runs "go test -json" and says at the end how many tests passed, failed and were skipped; it prints
// what failed in full, for every skip why, and which tests took longest.
//
//	testsum [-tally FILE] go test -json ./...     run, print, and add the counts to FILE
//	testsum -again ...                            run the few tests that failed once more, each by itself
//	testsum -part -tally FILE ...                 a run of several that are one target: it may have no test, all together not
//	testsum -total -tally FILE                    print the sum of all counts in FILE, and all that failed
//
// A run in which no test passed or failed counts as failed: a target that tests nothing must not look green.
//
// -again is for tests on emulated machines, which share two cores with all else: what passes by itself was starved, and
// is counted and named as unsteady. What fails again has failed.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// event is a line of test2json; see "go doc test2json".
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// counts are the results of a run. Only tests without subtests of their own count, so that a table counts its rows.
type counts struct {
	Passed, Failed, Skipped int
	Why                     []string // what the failed tests said, a line each
	Unsteady                []string // tests that failed once, and passed by themselves

	failed  []test // without a test above them
	broken  []test // packages that failed, and not by a test that failed: by a time limit, or after their tests; they have no name
	slow    []test // the slowest, slowest first
	isSound bool   // every package ran to its end, and where one failed, a test of it failed
}

// mostSlow is how many of the slowest tests are named.
const mostSlow = 8

// test is a test function, with its subtests.
type test struct {
	pkg, name string
	seconds   float64
}

func (c counts) String() string {
	text := fmt.Sprintf("%d passed, %d failed, %d skipped", c.Passed, c.Failed, c.Skipped)
	if len(c.Unsteady) > 0 {
		text += fmt.Sprintf(", %d of those that passed at the second try only", len(c.Unsteady))
	}
	return text
}

func main() {
	tally := flag.String("tally", "", "file that collects the counts of several runs")
	total := flag.Bool("total", false, "print the sum of the tally and exit")
	again := flag.Bool("again", false, "run what failed once more, by itself")
	part := flag.Bool("part", false, "let this run have no test; -total tells when none of all had one")
	flag.Parse()
	var err error
	if *total {
		err = printTotal(*tally)
	} else {
		err = run(*tally, *again, *part, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(1)
	}
}

func run(tally string, again, isPart bool, command []string) error {
	if len(command) == 0 {
		return fmt.Errorf("no command given")
	}
	c, err := count(command)
	if err != nil {
		return err
	}
	if again {
		if err := c.runAgain(command); err != nil {
			return err
		}
	}
	if tally != "" {
		if err := c.addTo(tally); err != nil {
			return err
		}
	}
	c.print()
	if c.Failed > 0 {
		return fmt.Errorf("%s: %d failed", strings.Join(command, " "), c.Failed)
	}
	if c.Passed == 0 && c.Skipped == 0 && !isPart {
		return fmt.Errorf("%s: no test ran", strings.Join(command, " "))
	}
	return nil
}

// count runs a command and counts its tests.
func count(command []string) (counts, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return counts{}, err
	}
	if err := cmd.Start(); err != nil {
		return counts{}, err
	}
	c := sum(out, os.Stdout)
	if exit := cmd.Wait(); exit != nil && c.Failed == 0 {
		c.Failed++ // it did not compile, or a package failed outside its tests
		c.Why = append(c.Why, fmt.Sprintf("failed: %s: %v", strings.Join(command, " "), exit))
	}
	return c, nil
}

// mostAgain bounds how many tests are run once more: where more have failed, something is broken.
const mostAgain = 5

// longestAgain is how many seconds a broken package may have taken to be run once more.
const longestAgain = 30 * 60 // above the time limit of the network stage, 25 minutes

// runAgain runs each test that failed by itself, and takes those that pass out of the failures. One package that broke off is run
// as a whole.
func (c *counts) runAgain(command []string) error {
	again := c.failed
	if !c.isSound && len(c.broken) == 1 && len(c.failed) == 0 && c.broken[0].seconds <= longestAgain {
		again = c.broken
	} else if c.Failed == 0 || !c.isSound || len(c.failed) > mostAgain {
		return nil
	}
	first := *c
	c.Failed, c.Why = 0, nil
	for _, t := range again {
		subject := strings.TrimSpace(t.pkg + " " + t.name)
		text := subject
		fmt.Println("AGAIN", text)
		second, err := count(only(command, t))
		if err != nil {
			return err
		}
		c.Failed += second.Failed
		c.Why = append(c.Why, second.Why...)
		switch {
		case second.Failed == 0 && second.Passed > 0:
			c.Passed++
			for _, line := range first.Why {
				if strings.Contains(line, subject) {
					text += "\n  " + line
				}
			}
			c.Unsteady = append(c.Unsteady, text)
		case second.Failed == 0:
			c.Failed++
			c.Why = append(c.Why, "failed: "+text+": it did not run the second time")
		}
	}
	return nil
}

// only is the command for one test: its flags with another -run, and its package instead of all.
func only(command []string, t test) []string {
	var one []string
	for i := 0; i < len(command); i++ {
		switch arg := command[i]; {
		case arg == "-run" && t.name != "":
			i++
		case i < 2 || strings.HasPrefix(arg, "-") || i > 0 && slices.Contains([]string{"-p", "-timeout", "-run"}, command[i-1]):
			one = append(one, arg)
		}
	}
	if t.name != "" {
		one = append(one, "-run", "^"+t.name+"$")
	}
	return append(one, t.pkg)
}

// print shows the counts, and once more at the end, where a cut log still shows it, what went wrong.
func (c *counts) print() {
	for _, t := range c.slow {
		fmt.Printf("slow: %.0f s %s %s\n", t.seconds, t.pkg, t.name)
	}
	for _, line := range c.Why {
		fmt.Println(line)
	}
	for _, line := range c.Unsteady {
		fmt.Println("unsteady:", line)
	}
	fmt.Println(c)
}

func (c *counts) addTo(tally string) error {
	f, err := os.OpenFile(tally, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	return json.NewEncoder(f).Encode(c)
}

// crashed is what Go writes when a test ends its whole package.
var crashed = regexp.MustCompile(`^(panic: |fatal error: )`)

// said is a line of a test that names its place in the source.
var said = regexp.MustCompile(`^\s*\w+\.go:\d+: `)

var skipNoise = regexp.MustCompile(`^\s*(=== |--- )`)

// sum reads test2json events and prints what a person wants to see of them.
func sum(in io.Reader, out io.Writer) counts {
	c := counts{isSound: true}
	bad := map[string]bool{} // packages with a test that failed
	text := map[string][]string{}
	isParent := map[string]bool{}
	results := map[string]string{}
	scan := bufio.NewScanner(in)
	scan.Buffer(nil, 16<<20)
	for scan.Scan() {
		var e event
		if json.Unmarshal(scan.Bytes(), &e) != nil {
			fmt.Fprintln(out, scan.Text())
			continue
		}
		key := e.Package + " " + e.Test
		switch e.Action {
		case "output", "build-output":
			text[key] = append(text[key], e.Output)
			if crashed.MatchString(e.Output) {
				c.isSound = false // the tests behind it did not run
			}
			if e.Action == "build-output" {
				fmt.Fprint(out, e.Output)
			}
		case "run":
			for name := e.Test; ; {
				i := strings.LastIndexByte(name, '/')
				if i < 0 {
					break
				}
				name = name[:i]
				isParent[e.Package+" "+name] = true
			}
		case "pass", "fail", "skip":
			if e.Test == "" {
				if e.Action != "skip" {
					fmt.Fprintf(out, "%-5s %s (%.1fs)\n", e.Action, e.Package, e.Elapsed)
				}
				if e.Action == "fail" {
					fmt.Fprint(out, strings.Join(text[key], ""))
					for _, name := range slices.Sorted(maps.Keys(text)) { // a test that ended took its text away
						if strings.HasPrefix(name, e.Package+" ") && name != key {
							if !bad[e.Package] {
								c.broken = append(c.broken, test{pkg: e.Package, seconds: e.Elapsed})
							}
							bad[e.Package] = true
							fmt.Fprintf(out, "FAIL  %s, which did not end\n%s", name, strings.Join(text[name], ""))
							c.Why = append(c.Why, "failed: "+name+", which did not end")
							c.addWhy(name, text[name])
						}
					}
					if c.isSound = c.isSound && bad[e.Package]; !bad[e.Package] {
						c.broken = append(c.broken, test{pkg: e.Package, seconds: e.Elapsed})
						c.Why = append(c.Why, "failed: "+e.Package+" outside of its tests")
						c.addWhy(e.Package, text[key])
						for _, line := range text[key][max(0, len(text[key])-mostHung):] {
							c.Why = append(c.Why, fmt.Sprintf("failed: %s: %.300s", e.Package, strings.TrimSpace(line)))
						}
					}
				}
				continue
			}
			results[key] = e.Action
			if !strings.Contains(e.Test, "/") && e.Elapsed >= 1 {
				c.slow = append(c.slow, test{e.Package, e.Test, e.Elapsed})
			}
			switch e.Action {
			case "fail":
				bad[e.Package] = true
				if !strings.Contains(e.Test, "/") {
					c.failed = append(c.failed, test{e.Package, e.Test, e.Elapsed})
				}
				fmt.Fprintf(out, "FAIL  %s\n%s", key, strings.Join(text[key], ""))
				c.Why = append(c.Why, "failed: "+key)
				c.addWhy(key, text[key])
			case "skip":
				var why []string
				for _, line := range text[key] {
					if !skipNoise.MatchString(line) {
						why = append(why, strings.TrimSpace(line))
					}
				}
				fmt.Fprintf(out, "SKIP  %s: %s\n", key, strings.Join(why, " "))
			}
			delete(text, key)
		}
	}
	slices.SortFunc(c.slow, func(a, b test) int { return cmp.Compare(b.seconds, a.seconds) })
	c.slow = c.slow[:min(len(c.slow), mostSlow)]
	for key, result := range results {
		switch {
		case isParent[key]:
		case result == "pass":
			c.Passed++
		case result == "fail":
			c.Failed++
		default:
			c.Skipped++
		}
	}
	for key, result := range results {
		if result == "fail" && isParent[key] && c.Failed == 0 {
			c.Failed++ // a parent failed by itself
		}
	}
	return c
}

// hung is a line of a stack, in the code of a test.
var hung = regexp.MustCompile(`_test\.go:\d+ \+0x`)

// mostHung is how many lines of stacks are kept of a package that broke off.
const mostHung = 10

// addWhy keeps what a test or package said about its failure.
func (c *counts) addWhy(key string, text []string) {
	stackN := 0
	for _, line := range text {
		isStack := hung.MatchString(line) && stackN < mostHung
		if isStack {
			stackN++
		}
		if isStack || said.MatchString(line) || crashed.MatchString(line) {
			c.Why = append(c.Why, fmt.Sprintf("failed: %s: %.300s", key, strings.TrimSpace(line)))
		}
	}
}

func printTotal(tally string) error {
	f, err := os.Open(tally)
	if err != nil {
		return err
	}
	defer f.Close()
	var all counts
	for in := json.NewDecoder(f); ; {
		var c counts
		if err := in.Decode(&c); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		all.Passed += c.Passed
		all.Failed += c.Failed
		all.Skipped += c.Skipped
		all.Why = append(all.Why, c.Why...)
		all.Unsteady = append(all.Unsteady, c.Unsteady...)
	}
	all.print()
	if all.Failed > 0 || all.Passed == 0 {
		return fmt.Errorf("not all passed")
	}
	return nil
}
