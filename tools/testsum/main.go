// Command testsum runs "go test -json" and says at the end how many tests passed, failed and were skipped; it prints
// what failed in full and, for every skip, why.
//
//	testsum [-tally FILE] go test -json ./...     run, print, and add the counts to FILE
//	testsum -total -tally FILE                    print the sum of all counts in FILE
//
// A run in which no test passed or failed counts as failed: a target that tests nothing must not look green.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// event is a line of test2json; see "go doc test2json".
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// counts are the results of a run. Only tests without subtests of their own count, so that a table counts its rows.
type counts struct {
	passed, failed, skipped int
	why                     []string // what the failed tests said, a line each
}

func (c counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped)
}

func main() {
	tally := flag.String("tally", "", "file that collects the counts of several runs")
	total := flag.Bool("total", false, "print the sum of the tally and exit")
	flag.Parse()
	var err error
	if *total {
		err = printTotal(*tally)
	} else {
		err = run(*tally, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(1)
	}
}

func run(tally string, command []string) error {
	if len(command) == 0 {
		return fmt.Errorf("no command given")
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c := sum(out, os.Stdout)
	exit := cmd.Wait()
	if exit != nil && c.failed == 0 {
		c.failed++ // it did not compile, or a package failed outside its tests
	}
	if tally != "" {
		f, err := os.OpenFile(tally, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		defer f.Close()
		fmt.Fprintf(f, "%d %d %d\n", c.passed, c.failed, c.skipped)
	}
	for _, line := range c.why {
		fmt.Println(line) // once more at the end, where a cut log still shows it
	}
	fmt.Println(c)
	if c.failed > 0 {
		return fmt.Errorf("%s: %d failed", strings.Join(command, " "), c.failed)
	}
	if c.passed == 0 && c.skipped == 0 {
		return fmt.Errorf("%s: no test ran", strings.Join(command, " "))
	}
	return nil
}

// said is a line of a test that names its place in the source.
var said = regexp.MustCompile(`^\s*\w+\.go:\d+: `)

var skipNoise = regexp.MustCompile(`^\s*(=== |--- )`)

// sum reads test2json events and prints what a person wants to see of them.
func sum(in io.Reader, out io.Writer) counts {
	var c counts
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
				}
				continue
			}
			results[key] = e.Action
			switch e.Action {
			case "fail":
				fmt.Fprintf(out, "FAIL  %s\n%s", key, strings.Join(text[key], ""))
				for _, line := range text[key] {
					if said.MatchString(line) {
						c.why = append(c.why, fmt.Sprintf("failed: %s: %.300s", key, strings.TrimSpace(line)))
					}
				}
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
	for key, result := range results {
		switch {
		case isParent[key]:
		case result == "pass":
			c.passed++
		case result == "fail":
			c.failed++
		default:
			c.skipped++
		}
	}
	for key, result := range results {
		if result == "fail" && isParent[key] && c.failed == 0 {
			c.failed++ // a parent failed by itself
		}
	}
	return c
}

func printTotal(tally string) error {
	f, err := os.Open(tally)
	if err != nil {
		return err
	}
	defer f.Close()
	var all counts
	for {
		var c counts
		if _, err := fmt.Fscan(f, &c.passed, &c.failed, &c.skipped); err != nil {
			break
		}
		all.passed += c.passed
		all.failed += c.failed
		all.skipped += c.skipped
	}
	fmt.Println(all)
	if all.failed > 0 || all.passed == 0 {
		return fmt.Errorf("not all passed")
	}
	return nil
}
