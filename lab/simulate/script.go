package simulate

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

const (
	maxSteps = 20000
	maxDepth = 16
)

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

// command runs one verb.
func (in *interpreter) command(ctx context.Context, f *file, verb string, args []string) error {
	switch verb {
	case "echo":
		_, rest := flags(args)
		in.verbs.say(strings.Join(rest, " "))
		return nil
	case "set", "clear", "isset", "iseq", "inc":
		return in.variable(verb, args)
	case "goto":
		if len(args) != 1 {
			return errUsage
		}
		for i, l := range f.lines {
			if l.label != "" && l.label == args[0] {
				return &jump{to: i}
			}
		}
		return fmt.Errorf("no label :%s", args[0])
	case "exit":
		if len(args) == 0 {
			args = []string{"0"}
		}
		return &exitScript{status: args[0]}
	case "sleep":
		return in.sleep(ctx, args)
	case "reboot":
		return &ended{ending{how: endReboot}}
	case "sanboot":
		return sanboot(args)
	case "dhcp", "ifconf":
		opts, _ := flags(args, "configurator", "c", "timeout", "t")
		only := opts["configurator"] + opts["c"]
		return in.verbs.network(ctx, verb == "dhcp" || only != "dhcp")
	case "ifopen", "ifclose", "ifstat", "sync", "route", "imgstat", "show", "login", "prompt":
		return nil
	}
	return in.imageCommand(ctx, f, verb, args)
}

// imageCommand runs the verbs that fetch files and start them.
func (in *interpreter) imageCommand(ctx context.Context, f *file, verb string, args []string) error {
	opts, rest := flags(args, "name", "n", "timeout", "t")
	switch verb {
	case "imgfetch", "module", "initrd", "kernel", "imgselect", "imgload":
		isKernel := verb == "kernel" || verb == "imgselect" || verb == "imgload"
		_, err := in.acquire(ctx, rest, opts, isKernel)
		return err
	case "chain", "imgexec", "boot":
		var at int
		var err error
		if len(rest) > 0 {
			at, err = in.acquire(ctx, rest, opts, true)
		} else if at = in.selected(); at < 0 {
			err = errors.New("no image is selected")
		}
		if err != nil {
			return err
		}
		return in.execute(ctx, f, at, opts)
	case "imgargs":
		at := -1
		if len(rest) > 0 {
			at = in.find(rest[0])
		}
		if at < 0 {
			return errors.New("no such image")
		}
		in.images[at].args = strings.Join(rest[1:], " ")
		return nil
	case "imgfree":
		if len(rest) == 0 {
			in.images = nil
			return nil
		}
		at := in.find(rest[0])
		if at < 0 {
			return errors.New("no such image")
		}
		in.images = append(in.images[:at:at], in.images[at+1:]...)
		return nil
	}
	return fmt.Errorf("%s: command not found", clip(verb))
}

// execute runs an image: a script in this interpreter, anything else as a kernel with all other images as initrds.
func (in *interpreter) execute(ctx context.Context, f *file, at int, opts map[string]string) error {
	img := in.images[at]
	if isScript(img.head) {
		if img.body == nil {
			return fmt.Errorf("%s: a script of %d bytes", img.name, img.size)
		}
		in.images = append(in.images[:at:at], in.images[at+1:]...)
		_, replace := opts["replace"]
		if _, r := opts["r"]; r || replace {
			return &replaced{img.body}
		}
		err := in.script(ctx, img.body, f.depth+1)
		if left, ok := errors.AsType[*exitScript](err); ok {
			return errors.New(left.Error()) // the script that chained here goes on and may catch it
		}
		return err
	}
	if img.size == 0 {
		return fmt.Errorf("%s: exec format error", img.name)
	}
	e := ending{how: endBoot, args: img.args, files: []download{img.download}}
	for i := range in.images {
		if i != at && !isScript(in.images[i].head) {
			e.files = append(e.files, in.images[i].download)
		}
	}
	return &ended{e}
}

// errArrived ends a machine that was to wait, and does.
var errArrived = errors.New("waits as expected")
