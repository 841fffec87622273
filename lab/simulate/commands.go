package simulate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// flags splits options from a verb's arguments; withValue lists the options that take one.
func flags(args []string, withValue ...string) (opts map[string]string, rest []string) {
	opts = map[string]string{}
	for i := 0; i < len(args); i++ {
		if !strings.HasPrefix(args[i], "-") || args[i] == "-" {
			return opts, args[i:]
		}
		name, value, hasValue := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		for _, w := range withValue {
			if w == name && !hasValue && i+1 < len(args) {
				i++
				value = args[i]
			}
		}
		opts[name] = value
	}
	return opts, nil
}

var errUsage = errors.New("wrong number of arguments")

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

func (in *interpreter) variable(verb string, args []string) error {
	switch verb {
	case "isset":
		if len(args) != 1 {
			return errUsage
		}
		if args[0] == "" {
			return errors.New("not set")
		}
		return nil
	case "iseq":
		if len(args) != 2 {
			return errUsage
		}
		if args[0] != args[1] {
			return fmt.Errorf("%s is not %s", args[0], args[1])
		}
		return nil
	}
	if len(args) == 0 {
		return errUsage
	}
	name, _, _ := strings.Cut(args[0], ":")
	switch verb {
	case "set":
		in.settings[name] = strings.Join(args[1:], " ")
	case "clear":
		delete(in.settings, name)
	case "inc":
		n, _ := strconv.Atoi(in.settings[name])
		by := 1
		if len(args) > 1 {
			by, _ = strconv.Atoi(args[1])
		}
		in.settings[name] = strconv.Itoa(n + by)
	}
	return nil
}

func (in *interpreter) sleep(ctx context.Context, args []string) error {
	_, rest := flags(args, "timeout")
	if len(rest) != 1 {
		return errUsage
	}
	n, err := strconv.Atoi(rest[0])
	if err != nil || n < 0 {
		return fmt.Errorf("%q is no number of seconds", rest[0])
	}
	in.steps = 0 // a script that waits may go on for as long as it likes
	in.pauses++
	return in.verbs.pause(ctx, time.Duration(n)*time.Second)
}

// sanboot of a drive number is the local disk; of a URL it would be a network disk, which we never use.
func sanboot(args []string) error {
	_, rest := flags(args, "drive", "d", "filename", "f", "extra", "e")
	if len(rest) != 0 {
		return fmt.Errorf("sanboot of %s is not simulated", rest[0])
	}
	return &ended{ending{how: endDisk}}
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

// acquire fetches a URL, or finds an image that is already there, and takes the words after it as its arguments.
func (in *interpreter) acquire(ctx context.Context, rest []string, opts map[string]string, isSelected bool) (int, error) {
	if len(rest) == 0 {
		return 0, errUsage
	}
	at := in.find(rest[0])
	if at < 0 {
		if !strings.Contains(rest[0], "://") {
			return 0, fmt.Errorf("%s: no such image", clip(rest[0]))
		}
		d, err := in.verbs.fetch(ctx, rest[0])
		if err != nil {
			return 0, err
		}
		for _, o := range []string{"name", "n"} {
			if opts[o] != "" {
				d.name = opts[o]
			}
		}
		in.images = append(in.images, image{download: d})
		at = len(in.images) - 1
	}
	if len(rest) > 1 {
		in.images[at].args = strings.Join(rest[1:], " ")
	}
	if isSelected {
		for i := range in.images {
			in.images[i].isSelected = i == at
		}
	}
	return at, nil
}

func (in *interpreter) find(name string) int {
	for i := range in.images {
		if in.images[i].name == name {
			return i
		}
	}
	return -1
}

func (in *interpreter) selected() int {
	for i := range in.images {
		if in.images[i].isSelected {
			return i
		}
	}
	return -1
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
