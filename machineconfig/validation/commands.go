package validation

import (
	"cmp"
	"strconv"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/pointer"
)

// commands checks commands and the scripts of an installer.
type commands struct{ *checker }

func (v commands) check() {
	var names []string
	for i := range v.c.Commands {
		c := &v.c.Commands[i]
		key := cmp.Or(c.Name, strconv.Itoa(i))
		at := pointer.Add("/commands", key)
		if c.Name != "" {
			names = append(names, c.Name)
			v.match(pointer.Add(at, "name"), c.Name, commandRE, "a name of a command", "use letters, digits, -, _ and .")
		}
		if c.Phase != "" {
			v.oneOf(pointer.Add(at, "phase"), string(c.Phase),
				string(machineconfig.FirstBoot), string(machineconfig.PostBootstrap), string(machineconfig.EveryBoot))
		}
		v.command(at, c)
	}
	v.duplicates("/commands", names)
}

func (v commands) command(at string, c *machineconfig.Command) {
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
		v.invalid(pointer.Add(at, "shell"), "", "holds a NUL character")
	}
	v.atMost(pointer.Add(at, "argv"), len(c.Argv), 1024)
	for i, a := range c.Argv {
		if strings.ContainsRune(a, 0) {
			v.invalid(at+"/argv/"+strconv.Itoa(i), "", "holds a NUL character")
		}
	}
}

// scripts checks what runs in an installer.
func (v commands) scripts() {
	var names []string
	for i := range v.c.Scripts {
		s := &v.c.Scripts[i]
		at := pointer.Add("/scripts", s.Name)
		names = append(names, s.Name)
		v.match(pointer.Add(at, "name"), s.Name, commandRE, "a name of a script", "use letters, digits, -, _ and .")
		var stages []string
		for _, stage := range machineconfig.Stages {
			stages = append(stages, string(stage))
		}
		if s.Stage == "" {
			v.r.Errorf(pointer.Add(at, "stage"), "missing", "is needed").Hint = "use one of " + strings.Join(stages, ", ")
		} else {
			v.oneOf(pointer.Add(at, "stage"), string(s.Stage), stages...)
		}
		v.form(pointer.Add(at, "interpreter"), s.Interpreter, pathRE, "the path of a program", "write it as /bin/bash, without arguments")
		switch {
		case strings.TrimSpace(s.Text) == "":
			v.r.Errorf(pointer.Add(at, "text"), "missing", "says nothing to run")
		case strings.ContainsRune(s.Text, 0):
			v.invalid(pointer.Add(at, "text"), "", "holds a NUL character")
		case len(s.Text) > 1<<18:
			v.invalid(pointer.Add(at, "text"), "let it fetch what is large", "is %d bytes long; at most 262144 are allowed", len(s.Text))
		}
	}
	v.duplicates("/scripts", names)
}
