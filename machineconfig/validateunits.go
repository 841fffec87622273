package machineconfig

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
)

var (
	unitRE    = regexp.MustCompile(`^[A-Za-z0-9:_.\\@-]{1,240}\.(service|socket|device|mount|automount|swap|target|path|timer|slice|scope)$`)
	dropInRE  = regexp.MustCompile(`^[A-Za-z0-9_@:-][A-Za-z0-9_.@:-]{0,240}\.conf$`)
	installRE = regexp.MustCompile(`(?m)^\[Install\][ \t]*\r?$`)
	commandRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)
)

func (v *checker) units() {
	var names []string
	for i := range v.c.Units {
		u := &v.c.Units[i]
		at := pointer("/units", u.Name)
		names = append(names, u.Name)
		v.match(at, u.Name, unitRE, "the name of a unit", "end it in .service, .timer, .mount, .socket or the like")
		v.unit(at, u)
		v.atMost(pointer(at, "dropIns"), len(u.DropIns), 64)
		var dropIns []string
		for _, d := range u.DropIns {
			p := pointer(pointer(at, "dropIns"), d.Name)
			dropIns = append(dropIns, d.Name)
			v.match(p, d.Name, dropInRE, "the name of a drop-in", "end it in .conf, such as 10-limits.conf")
			v.sections(pointer(p, "contents"), d.Contents)
			if strings.TrimSpace(d.Contents) == "" {
				v.r.Errorf(pointer(p, "contents"), "missing", "is empty")
			}
		}
		v.duplicates(pointer(at, "dropIns"), dropIns)
	}
	v.duplicates("/units", names)
}

func (v *checker) unit(at string, u *Unit) {
	isEnabled := u.Enabled != nil && *u.Enabled
	v.sections(pointer(at, "contents"), u.Contents)
	switch {
	case u.Masked && u.Contents != "":
		v.r.Errorf(pointer(at, "masked"), "conflict", "hides a unit that has contents here").Hint = "remove one of them"
	case u.Masked && isEnabled:
		v.r.Errorf(pointer(at, "masked"), "conflict", "hides a unit that is enabled here").Hint = "remove one of them"
	case u.Masked && len(u.DropIns) > 0:
		v.r.Warnf(pointer(at, "masked"), "conflict", "hides the unit, so that its drop-ins have no effect")
	case isEnabled && u.Contents != "" && !installRE.MatchString(u.Contents):
		v.r.Errorf(pointer(at, "enabled"), "no-install", "has no effect: its contents have no section [Install]").
			Hint = "add [Install] with WantedBy=multi-user.target"
	}
}

// sections checks that text begins with a section, as systemd wants it.
func (v *checker) sections(at, text string) {
	if strings.ContainsRune(text, 0) {
		v.invalid(at, "", "holds a NUL character")
	}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if line[0] != '[' || line[len(line)-1] != ']' {
			v.invalid(at, "begin with a section such as [Unit] or [Service]", "line %d, %s, stands before any section", i+1, shown(line))
		}
		return
	}
}

func (v *checker) commands() {
	var names []string
	for i := range v.c.Commands {
		c := &v.c.Commands[i]
		key := cmp.Or(c.Name, strconv.Itoa(i))
		at := pointer("/commands", key)
		if c.Name != "" {
			names = append(names, c.Name)
			v.match(pointer(at, "name"), c.Name, commandRE, "a name of a command", "use letters, digits, -, _ and .")
		}
		if c.Phase != "" {
			v.oneOf(pointer(at, "phase"), string(c.Phase), string(FirstBoot), string(PostBootstrap), string(EveryBoot))
		}
		v.command(at, c)
	}
	v.duplicates("/commands", names)
}

func (v *checker) command(at string, c *Command) {
	hasShell := strings.TrimSpace(c.Shell) != ""
	switch {
	case hasShell && len(c.Argv) > 0:
		v.r.Errorf(at, "conflict", "has shell and argv").Hint = "keep one of them"
	case !hasShell && len(c.Argv) == 0:
		v.r.Errorf(at, "missing", "says nothing to run").Hint = "give shell, a script, or argv, a program and its arguments"
	case len(c.Argv) > 0 && c.Argv[0] == "":
		v.r.Errorf(at+"/argv/0", "missing", "is empty: it names the program")
	}
	if strings.ContainsRune(c.Shell, 0) {
		v.invalid(pointer(at, "shell"), "", "holds a NUL character")
	}
	v.atMost(pointer(at, "argv"), len(c.Argv), 1024)
	for i, a := range c.Argv {
		if strings.ContainsRune(a, 0) {
			v.invalid(at+"/argv/"+strconv.Itoa(i), "", "holds a NUL character")
		}
	}
}
