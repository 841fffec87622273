package ignition

import (
	"strconv"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/pointer"
)

func (r *rendering) units() {
	for _, u := range r.c.Units {
		from := pointer.Of("units", u.Name)
		out := unit{Name: u.Name, Enabled: u.Enabled, Mask: isTrue(u.Masked)}
		if u.Contents != "" {
			out.Contents = &u.Contents
		}
		for _, d := range u.DropIns {
			out.DropIns = append(out.DropIns, dropIn(d))
		}
		if u.Enabled != nil && *u.Enabled && u.Contents != "" && !strings.Contains(u.Contents, "[Install]") {
			r.report.Errorf(from, "invalid", "is enabled, but has no section [Install]").Hint = "add one with WantedBy=multi-user.target"
		}
		r.unitFrom(out, from)
	}
}

func (r *rendering) unitFrom(u unit, from string) {
	if other, ok := r.unit[u.Name]; ok {
		r.report.Errorf(other, "duplicate", "the unit %s is also written for %s", u.Name, from).Hint = "give one of them another name"
		return
	}
	r.unit[u.Name] = from
	r.from["systemd.units."+strconv.Itoa(len(r.b.Systemd.Units))] = from
	r.b.Systemd.Units = append(r.b.Systemd.Units, u)
}

// osUnit turns a unit that the OS has on or off, unless the admin says something about it.
func (r *rendering) osUnit(name string, on bool, from string) {
	for _, u := range r.c.Units {
		if u.Name == name {
			return
		}
	}
	if _, ok := r.unit[name]; !ok {
		r.unitFrom(unit{Name: name, Enabled: &on}, from)
	}
}

// service writes one of our units, enabled.
func (r *rendering) service(name, contents, from string) {
	r.unitFrom(unit{Name: name, Enabled: ref(true), Contents: &contents}, from)
}

// script starts a shell script of ours.
func script(about string) string { return "#!/bin/bash\n# " + about + "\nset -e\n" }

// commandLines says commands as lines of a script, which goes on after them: each runs in a shell of its own.
func (r *rendering) commandLines(phase machineconfig.Phase) string {
	var b strings.Builder
	for _, c := range r.c.Commands {
		if c.Phase != phase && (c.Phase != "" || phase != machineconfig.FirstBoot) {
			continue
		}
		if c.Name != "" {
			b.WriteString("# " + strings.Map(noBreak, c.Name) + "\n")
		}
		if len(c.Argv) > 0 {
			b.WriteString(shellLine(c.Argv) + "\n")
			continue
		}
		b.WriteString(machineconfig.ShellBlock(c.Shell))
	}
	return b.String()
}

func noBreak(c rune) rune {
	if c < ' ' {
		return ' '
	}
	return c
}

// shellLine quotes every argument.
func shellLine(argv []string) string {
	words := make([]string, len(argv))
	for i, a := range argv {
		words[i] = late.ShellWord(a)
	}
	return strings.Join(words, " ")
}
