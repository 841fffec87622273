package simulate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
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

// exitScript leaves the innermost script with a status.
type exitScript struct{ status string }

func (e *exitScript) Error() string { return "exit " + e.status }

// jump is a goto under way: the index of the line to go on with.
type jump struct{ to int }

func (j *jump) Error() string { return "goto" }

// replaced ends a script in favour of another.
type replaced struct{ body []byte }

func (r *replaced) Error() string { return "replaced" }

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

func isScript(b []byte) bool {
	return strings.HasPrefix(string(b), "#!ipxe") && (len(b) == 6 || b[6] == '\n' || b[6] == '\r' || b[6] == ' ')
}

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

// clip keeps messages short.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}
