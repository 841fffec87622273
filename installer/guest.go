// Package installer holds what the formats of installers share: the choice of a disk in shell, and the part for the
// installed system's cloud-init. It never writes a format.
package installer

import (
	"slices"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// tools are the versions of cloud-init that releases install.
var tools = map[string]string{
	"debian 12": "22.4.2", "debian 13": "25.1.4",
	"ubuntu 22.04": "24.4", "ubuntu 24.04": "24.4", "ubuntu 26.04": "25.3",
	"rocky 8": "23.4", "almalinux 8": "23.4", "rhel 8": "23.4", "centos 8": "23.4",
	"rocky 9": "24.4", "almalinux 9": "24.4", "rhel 9": "24.4", "centos 9": "24.4",
	"rocky 10": "24.4", "almalinux 10": "24.4", "rhel 10": "24.4", "centos 10": "24.4",
	"fedora 41": "24.2", "fedora 42": "24.2", "fedora 43": "25.2",
}

// oldest is what an unknown release is taken to have.
const oldest = "22.4.2"

// SeedFolder is where the cloud-init of the installed system finds its documents.
const SeedFolder = "/var/lib/cloud/seed/nocloud/"

// GuestTarget is the cloud-init of the installed system. It reads its documents from the disk, which InitrdPath says.
func GuestTarget(t machineconfig.Target) machineconfig.Target {
	major, _, _ := strings.Cut(t.Release, ".")
	tool := oldest
	for _, release := range []string{t.Release, major} {
		if v, ok := tools[t.OS+" "+release]; ok {
			tool = v
			break
		}
	}
	return machineconfig.Target{OS: t.OS, Release: t.Release, Arch: t.Arch, Tool: tool, InitrdPath: SeedFolder + "user-data"}
}

// Guest is the part of c that a cloud-init on the installed system does: all but the installer's part and the admin's own
// document.
func Guest(c *machineconfig.Config) *machineconfig.Config {
	g := *c
	g.Boot, g.Storage, g.Document = machineconfig.Boot{}, machineconfig.Storage{Mounts: c.Storage.Mounts}, nil
	g.Scripts = nil
	g.Kernel.Args, g.Kernel.RemoveArgs = nil, nil
	g.Host.Locale, g.Host.Keymap, g.Host.Timezone = "", "", ""
	return &g
}

// SplitMirror separates the repository that replaces the OS's own archive from the others. Its id is the OS's name. It
// returns nil if there is none.
func SplitMirror(os string, repos []machineconfig.Repo) (mirror *machineconfig.Repo, rest []machineconfig.Repo) {
	for _, r := range repos {
		if r.ID == os && mirror == nil {
			mirror = &r
			continue
		}
		rest = append(rest, r)
	}
	return mirror, rest
}

// EveryBootUnit is the unit that runs commands of the phase every-boot, for systems whose cloud-init runs only once.
const EveryBootUnit = "slipway-every-boot.service"

// EveryBootScript is what EveryBootUnit runs.
const EveryBootScript = "/etc/slipway/every-boot.sh"

// WithEveryBootUnit returns c with its commands of the phase every-boot said as a unit.
func WithEveryBootUnit(c *machineconfig.Config) *machineconfig.Config {
	var every []machineconfig.Command
	g := *c
	g.Commands = nil
	for _, cmd := range c.Commands {
		if cmd.Phase == machineconfig.EveryBoot {
			every = append(every, cmd)
		} else {
			g.Commands = append(g.Commands, cmd)
		}
	}
	if every == nil {
		return c
	}
	g.Files = append(slices.Clip(g.Files), machineconfig.File{
		Path: EveryBootScript, Mode: 0o700, Content: machineconfig.Content{Text: Script(every)},
	})
	on := true
	g.Units = append(slices.Clip(g.Units), machineconfig.Unit{Name: EveryBootUnit, Contents: everyBootUnit, Enabled: &on})
	return &g
}

const everyBootUnit = `[Unit]
Description=Slipway: commands of every boot
DefaultDependencies=no
Requires=local-fs.target
After=local-fs.target systemd-tmpfiles-setup.service
Before=basic.target shutdown.target
Conflicts=shutdown.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/bash ` + EveryBootScript + `

[Install]
WantedBy=basic.target
`

// Script says commands as a script of bash that ends at the first that fails. Of several, each runs in a shell of its own, so
// that what one says cannot end or swallow the next.
func Script(cmds []machineconfig.Command) string {
	var b strings.Builder
	b.WriteString("#!/bin/bash\nset -e\n")
	for _, c := range cmds {
		if len(cmds) > 1 && len(c.Argv) == 0 {
			b.WriteString(machineconfig.ShellBlock(c.Shell))
			continue
		}
		b.WriteString(CommandText(c))
	}
	return b.String()
}

// CommandText says a command as lines of a script.
func CommandText(c machineconfig.Command) string {
	if len(c.Argv) == 0 {
		return strings.TrimSuffix(c.Shell, "\n") + "\n"
	}
	return Words(c.Argv) + "\n"
}

// Words says an argument vector as words of a shell.
func Words(argv []string) string {
	words := make([]string, len(argv))
	for i, a := range argv {
		words[i] = late.ShellWord(a)
	}
	return strings.Join(words, " ")
}

// HasControl reports whether text holds a character that would end a line or confuse a parser of lines.
func HasControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 && r != '\t' || r == 0x7f })
}

// GrubWithout is the line of a file under /etc/default/grub.d that takes arguments out of the kernel's.
func GrubWithout(args []string) string {
	return "for a in " + Words(args) + `; do for v in GRUB_CMDLINE_LINUX GRUB_CMDLINE_LINUX_DEFAULT; do eval "c=\" \$$v \""; ` +
		`while test "${c#*" $a "}" != "$c"; do c="${c%%" $a "*} ${c#*" $a "}"; done; eval "$v=\$c"; done; done`
}

// GrubWith is the line of a file under /etc/default/grub.d that adds arguments to the kernel's.
func GrubWith(args []string) string {
	return `GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX "` + late.ShellWord(strings.Join(args, " "))
}
