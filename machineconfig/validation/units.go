package validation

import (
	"regexp"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/pointer"
)

var (
	unitRE    = regexp.MustCompile(`^[A-Za-z0-9:_.\\@-]{1,240}\.(service|socket|device|mount|automount|swap|target|path|timer|slice|scope)$`)
	dropInRE  = regexp.MustCompile(`^[A-Za-z0-9_@:-][A-Za-z0-9_.@:-]{0,240}\.conf$`)
	installRE = regexp.MustCompile(`(?m)^\[Install\][ \t]*\r?$`)
	commandRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)
)

// units checks units of systemd.
type units struct{ *checker }

func (v units) check() {
	var names []string
	for i := range v.c.Units {
		u := &v.c.Units[i]
		at := pointer.Add("/units", u.Name)
		names = append(names, u.Name)
		v.match(at, u.Name, unitRE, "the name of a unit", "end it in .service, .timer, .mount, .socket or the like")
		v.unit(at, u)
		v.atMost(pointer.Add(at, "dropIns"), len(u.DropIns), 64)
		var dropIns []string
		for _, d := range u.DropIns {
			p := pointer.Add(pointer.Add(at, "dropIns"), d.Name)
			dropIns = append(dropIns, d.Name)
			v.match(p, d.Name, dropInRE, "the name of a drop-in", "end it in .conf, such as 10-limits.conf")
			v.sections(pointer.Add(p, "contents"), d.Contents)
			if strings.TrimSpace(d.Contents) == "" {
				v.r.Errorf(pointer.Add(p, "contents"), "missing", "is empty")
			}
		}
		v.duplicates(pointer.Add(at, "dropIns"), dropIns)
	}
	v.duplicates("/units", names)
}

func (v units) unit(at string, u *machineconfig.Unit) {
	isEnabled := u.Enabled != nil && *u.Enabled
	v.sections(pointer.Add(at, "contents"), u.Contents)
	switch {
	case u.Masked && u.Contents != "":
		v.r.Errorf(pointer.Add(at, "masked"), "conflict", "hides a unit that has contents here").Hint = "remove one of them"
	case u.Masked && isEnabled:
		v.r.Errorf(pointer.Add(at, "masked"), "conflict", "hides a unit that is enabled here").Hint = "remove one of them"
	case u.Masked && len(u.DropIns) > 0:
		v.r.Warnf(pointer.Add(at, "masked"), "conflict", "hides the unit, so that its drop-ins have no effect")
	case isEnabled && u.Contents != "" && !installRE.MatchString(u.Contents):
		v.r.Errorf(pointer.Add(at, "enabled"), "no-install", "has no effect: its contents have no section [Install]").
			Hint = "add [Install] with WantedBy=multi-user.target"
	}
}

// sections checks that text begins with a section, as systemd wants it.
func (v units) sections(at, text string) {
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
