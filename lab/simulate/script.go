package simulate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// verbs are what a script can make a machine do; the interpreter itself only reads, decides and remembers.
type verbs interface {
	fetch(ctx context.Context, url string) (download, error)
	pause(ctx context.Context, d time.Duration) error // sleep
	say(line string)                                  // echo
	// network asks for an address; dhcp, unlike ifconf -c dhcp, waits for routers as well.
	network(ctx context.Context, withRouter bool) error
}

// ending is how a script gave up control.
type ending struct {
	how   endHow
	files []download // what boot handed over: the kernel first
	args  string     // the kernel's arguments
}

type endHow string

const (
	endBoot   endHow = "boot"   // a kernel runs
	endExit   endHow = "exit"   // back to the firmware, which takes the next boot entry
	endDisk   endHow = "disk"   // sanboot of a local drive
	endReboot endHow = "reboot" // power cycle
)

// ended carries an ending up through nested scripts.
type ended struct{ ending }

func (e *ended) Error() string { return "the script ended with " + string(e.how) }

// interpreter runs iPXE scripts: the verbs that stock 2019 builds know and our scripts may use. A verb outside the list
// fails as it does there.
type interpreter struct {
	verbs    verbs
	settings settings
	images   []image
	steps    int // lines run; a script without an end is a fault
	pauses   int
}

// image is a fetched file, as iPXE keeps it.
type image struct {
	download
	args       string
	isSelected bool
}

const (
	maxSteps = 20000
	maxDepth = 16
)

func isScript(b []byte) bool {
	return strings.HasPrefix(string(b), "#!ipxe") && (len(b) == 6 || b[6] == '\n' || b[6] == '\r' || b[6] == ' ')
}

// run executes a script and what it chains to. endExit means that iPXE ends and the firmware goes on with its next boot
// entry: by exit, whatever its status, or at the end of the script. The error is a command's that stopped the script.
func (in *interpreter) run(ctx context.Context, body []byte) (ending, error) {
	err := in.script(ctx, body, 0)
	var e *ended
	var left *exitScript
	switch {
	case errors.As(err, &e):
		return e.ending, nil
	case errors.As(err, &left):
		return ending{how: endExit}, nil
	}
	return ending{how: endExit}, err
}

// exitScript leaves the innermost script with a status.
type exitScript struct{ status string }

func (e *exitScript) Error() string { return "exit " + e.status }

// jump is a goto under way: the index of the line to go on with.
type jump struct{ to int }

func (j *jump) Error() string { return "goto" }

// replaced ends a script in favour of another.
type replaced struct{ body []byte }

func (r *replaced) Error() string { return "replaced" }

// file is one script under way.
type file struct {
	lines []scriptLine
	depth int
}

// scriptLine is a line with backslashes joined; a label may stand before its command.
type scriptLine struct {
	label   string
	command string
}

// script runs one file, and in its place the one that it is replaced with (chain --replace), which may go on without end:
// that is how a machine waits. It returns an exit with a status other than 0 as an exitScript.
func (in *interpreter) script(ctx context.Context, body []byte, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("scripts chain more than %d deep", maxDepth)
	}
	for {
		if !isScript(body) {
			return errors.New("not an iPXE script")
		}
		err := in.lines(ctx, &file{lines: splitLines(string(body)), depth: depth})
		var next *replaced
		if !errors.As(err, &next) {
			return err
		}
		body = next.body
	}
}

// lines runs a file to its end or, like iPXE, to the first line that fails.
func (in *interpreter) lines(ctx context.Context, f *file) error {
	for at := 0; at < len(f.lines); at++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if in.steps++; in.steps > maxSteps {
			return fmt.Errorf("the script still runs after %d lines", maxSteps)
		}
		err := in.line(ctx, f, f.lines[at].command)
		var to *jump
		var left *exitScript
		switch {
		case err == nil:
		case errors.As(err, &to):
			at = to.to - 1
		case errors.As(err, &left) && left.status == "0":
			return nil
		case isControl(err):
			return err
		default:
			return fmt.Errorf("%q: %w", clip(f.lines[at].command), err)
		}
	}
	return nil
}

// clip keeps messages short.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}

// splitLines reads the lines of a script.
func splitLines(body string) []scriptLine {
	var out []scriptLine
	joined := ""
	for _, l := range strings.Split(body, "\n") {
		joined += strings.TrimSuffix(l, "\r")
		if rest, ok := strings.CutSuffix(joined, "\\"); ok {
			joined = rest
			continue
		}
		one := scriptLine{command: strings.TrimLeft(joined, " \t")}
		if rest, ok := strings.CutPrefix(one.command, ":"); ok {
			at := strings.IndexAny(rest+" ", " \t")
			one = scriptLine{label: rest[:at], command: rest[at:]}
		}
		out = append(out, one)
		joined = ""
	}
	return out
}

// isControl tells errors that || must not catch.
func isControl(err error) bool {
	var e *ended
	var j *jump
	var x *exitScript
	var r *replaced
	return errors.As(err, &e) || errors.As(err, &j) || errors.As(err, &x) || errors.As(err, &r) || errors.Is(err, errPowerLost) ||
		errors.Is(err, errBrokenOff) || errors.Is(err, errArrived) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded)
}

// line splits a line at blanks and runs the commands between || && and ; in it. A command that is not to run is passed
// over and leaves the result as it was, so that "a && b ||" never fails. Variables are expanded word by word after the
// line was split: blanks and bars inside a value do not split it again.
func (in *interpreter) line(ctx context.Context, f *file, l string) error {
	words := strings.Fields(l)
	for i, w := range words {
		if strings.HasPrefix(w, "#") {
			words = words[:i]
			break
		}
	}
	var result error
	isWanted := true
	for start := 0; ; {
		end := start
		for end < len(words) && words[end] != "||" && words[end] != "&&" && words[end] != ";" {
			end++
		}
		if isWanted {
			result = in.expandAndRun(ctx, f, words[start:end])
			if result != nil && isControl(result) {
				return result
			}
		}
		if end == len(words) {
			return result
		}
		switch words[end] {
		case "||":
			isWanted = result != nil
		case "&&":
			isWanted = result == nil
		default:
			isWanted = true
		}
		start = end + 1
	}
}

func (in *interpreter) expandAndRun(ctx context.Context, f *file, words []string) error {
	if len(words) == 0 {
		return nil // an empty command succeeds
	}
	argv := make([]string, len(words))
	for i, w := range words {
		var err error
		if argv[i], err = in.settings.expand(w); err != nil {
			return err
		}
	}
	return in.command(ctx, f, argv[0], argv[1:])
}
