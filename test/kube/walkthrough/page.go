// Package walkthrough runs pages of the documentation as they stand: every block of shell in a Markdown file, in order, in
// one shell, against the real programs. It never changes a page to make it run; what only a test needs stands in comments
// of the page, where readers do not see it.
package walkthrough

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Block is one fenced block of shell in a page.
type Block struct {
	Line  int    // of the page, where the block begins
	Shell string // what it runs
	Want  string // what it has to print; "" for anything. "..." stands for any text
	// Wait is how long the block may fail, or print something else, and is tried again. It runs in a shell of its own then.
	Wait time.Duration
	Skip string // why it is not run; "" for a block that is
	On   string // the machines that it runs on, of a page with several; "" for those of the block before
	// IsHidden says that only a test needs it: it stands in a comment.
	IsHidden bool
}

var (
	waitRE = regexp.MustCompile(`^<!-- wait (\S+) -->$`)
	skipRE = regexp.MustCompile(`^<!-- skip: (.+) -->$`)
	onRE   = regexp.MustCompile(`^<!-- on ([a-z0-9 ]+) -->$`)
)

// Parse finds the blocks of a page. In front of a block may stand <!-- wait 60s -->, which tries it until it succeeds, or
// <!-- skip: reason -->, or <!-- on node1 node2 --> on a page about several machines. A block of text behind it is what it prints. <!-- run and --> on lines of their own hold what is
// run and not shown. Blocks of other languages mean nothing. What looks like one of these and is not is an error, so that
// nothing is left out silently.
func Parse(page string) (out []Block, err error) {
	var wait time.Duration
	var skip, on string
	var follows bool // the last thing was a block that may be followed by what it prints
	lines := strings.Split(page, "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimRight(lines[i], " \t")
		at := i + 1
		body := func(end string) (string, error) {
			for from := i + 1; i < len(lines)-1; {
				if i++; strings.TrimRight(lines[i], " \t") == end {
					return strings.Join(lines[from:i], "\n"), nil
				}
			}
			return "", fmt.Errorf("line %d: %s does not end", at, line)
		}
		switch {
		case line == "":
		case waitRE.MatchString(line):
			if wait, err = time.ParseDuration(waitRE.FindStringSubmatch(line)[1]); err != nil || wait <= 0 {
				return nil, fmt.Errorf("line %d: %s: not a time, such as 60s", at, line)
			}
			follows = false
		case skipRE.MatchString(line):
			skip, follows = skipRE.FindStringSubmatch(line)[1], false
		case onRE.MatchString(line):
			on, follows = onRE.FindStringSubmatch(line)[1], false
		case line == "```sh" || line == "<!-- run":
			b := Block{Line: at, Wait: wait, Skip: skip, On: on, IsHidden: line == "<!-- run"}
			end := "```"
			if b.IsHidden {
				end = "-->"
			}
			if b.Shell, err = body(end); err != nil {
				return nil, err
			}
			out = append(out, b)
			wait, skip, on, follows = 0, "", "", true
		case line == "```text":
			text, err := body("```")
			if err != nil {
				return nil, err
			}
			if follows {
				out[len(out)-1].Want = text
			}
			follows = false
		case strings.HasPrefix(line, "```"):
			if _, err := body("```"); err != nil {
				return nil, err
			}
			follows = false
		case strings.HasPrefix(line, "<!--"):
			return nil, fmt.Errorf("line %d: %s: use <!-- wait 60s -->, <!-- skip: reason -->, <!-- on node1 --> or <!-- run", at, line)
		case wait != 0 || skip != "" || on != "":
			return nil, fmt.Errorf("line %d: a comment for a block of shell stands before something else", at)
		default:
			follows = false
		}
	}
	if wait != 0 || skip != "" || on != "" {
		return nil, fmt.Errorf("a comment for a block of shell stands at the end")
	}
	return out, nil
}

// Matches reports whether a block has printed what it has to. Any white space is as good as any other, for columns are as
// wide as what is in them; "..." stands for any text, also for none.
func Matches(want, got string) bool {
	if strings.TrimSpace(want) == "" {
		return true
	}
	parts := strings.Split(" "+strings.Join(strings.Fields(want), " ")+" ", "...")
	for i, p := range parts {
		p = regexp.QuoteMeta(p)
		if i > 0 {
			p = strings.TrimPrefix(p, " ")
		}
		if i < len(parts)-1 {
			p = strings.TrimSuffix(p, " ")
		}
		parts[i] = p
	}
	whole := regexp.MustCompile(`^` + strings.Join(parts, `.*`) + `$`)
	return whole.MatchString(" " + strings.Join(strings.Fields(got), " ") + " ")
}
