// Package preseed says a machine configuration as answers to Debian's installer, and as a NoCloud seed for what the
// installer has no question for. It never runs anything, and never asks a question that stops an installation.
package preseed

import (
	"cmp"
	"fmt"
	"strings"

	"slipway.dev/slipway/installer"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// Provisioner renders preseed files.
type Provisioner struct{}

// New returns the provisioner.
func New() *Provisioner { return &Provisioner{} }

// Kind is the format's name.
func (*Provisioner) Kind() string { return "preseed" }

// Documents are the formats that a profile's own document may have.
func (*Provisioner) Documents() []inventory.DocumentFormat {
	return []inventory.DocumentFormat{inventory.DocPreseed}
}

// writer collects the answers, and the commands that run at the end of an installation.
type writer struct {
	t      machineconfig.Target
	c      *machineconfig.Config
	report machineconfig.Report

	lines     []string
	packages  []string
	late      []string // commands of the installer's shell; the first that fails ends them
	documents []machineconfig.Document
}

// Render says c as preseed.cfg and the documents of the seed.
func (p *Provisioner) Render(t machineconfig.Target, c *machineconfig.Config) (*machineconfig.Rendered, machineconfig.Report) {
	w := &writer{t: t, c: c}
	if d := c.Document; d != nil && d.Format == string(inventory.DocPreseed) {
		w.document(string(d.Data))
	} else {
		w.localization()
		w.network()
		w.mirror()
		w.accounts()
		w.clock()
		w.storage()
		w.seed()
		w.software()
		w.boot()
		w.earlyScripts()
		w.finish()
	}
	if w.report.HasErrors() {
		return nil, w.report
	}
	doc := machineconfig.Document{
		Name: "preseed.cfg", ContentType: "text/plain; charset=utf-8", Path: t.InitrdPath,
		Data: []byte(strings.Join(w.lines, "\n") + "\n"),
	}
	return &machineconfig.Rendered{Documents: append([]machineconfig.Document{doc}, w.documents...)}, w.report
}

// answer adds the answer to a question of the installer.
func (w *writer) answer(path, question, kind, value string) {
	w.answerOf("d-i", path, question, kind, value)
}

func (w *writer) answerOf(owner, path, question, kind, value string) {
	if isBroken(value) || strings.HasSuffix(value, `\`) {
		w.report.Errorf(path, "not-expressible", `holds a line break, a control character or \n, or ends in a backslash, which a line of a preseed file cannot carry`).
			Hint = "take it out"
		return
	}
	w.lines = append(w.lines, strings.TrimRight(fmt.Sprintf("%s %s %s %s", owner, question, kind, value), " "))
}

// isBroken reports whether the installer's debconf would keep something else than text: it makes a line break of every
// \n, and then hands out the first line only.
func isBroken(text string) bool { return installer.HasControl(text) || strings.Contains(text, `\n`) }

// script adds a command of the installer, which runs it with its own shell. Lines are joined by blanks when they are
// read, so each has to end in what a shell accepts there.
func (w *writer) script(question string, lines []string) {
	for _, l := range lines {
		if isBroken(l) {
			w.report.Errorf("", "not-expressible", `%s would hold a line break, a control character or \n`, question).Hint = "take it out"
			return
		}
	}
	w.lines = append(w.lines, "d-i "+question+" string "+strings.Join(lines, " \\\n  "))
}

func (w *writer) comment(text string) { w.lines = append(w.lines, "", "# "+text) }

func (w *writer) localization() {
	h := w.c.Host
	w.lines = append(w.lines, "# Written by Slipway.")
	locale := cmp.Or(h.Locale, "en_US.UTF-8")
	w.answer("/host/locale", "debian-installer/locale", "string", locale)
	keymap := cmp.Or(h.Keymap, "us")
	w.answer("/host/keymap", "keyboard-configuration/xkb-keymap", "select", keymap)
}

func (w *writer) clock() {
	w.comment("Clock")
	zone := cmp.Or(w.c.Host.Timezone, "Etc/UTC")
	w.answer("", "clock-setup/utc", "boolean", "true")
	w.answer("/host/timezone", "time/zone", "string", zone)
	if e := w.c.Time.Enabled; e != nil && !*e {
		w.answer("/time", "clock-setup/ntp", "boolean", "false")
		return
	}
	w.answer("/time", "clock-setup/ntp", "boolean", "true")
	if n := w.c.Time.NTPServers; len(n) > 0 {
		w.answer("/time", "clock-setup/ntp-server", "string", n[0])
	}
}

// boot says the arguments of the installed kernel. Those to remove are taken out by a file that update-grub reads.
func (w *writer) boot() {
	w.comment("Boot loader")
	w.answer("", "grub-installer/only_debian", "boolean", "true")
	w.answer("", "grub-installer/with_other_os", "boolean", "false")
	w.answer("", "grub-installer/force-efi-extra-removable", "boolean", "false")
	if d := w.c.Boot.RootDevice; installer.IsPath(d) {
		w.answer("/boot/rootDevice/path", "grub-installer/bootdev", "string", d.Path)
	}
	if a := w.c.Kernel.Args; len(a) > 0 {
		w.answer("/kernel/args", "debian-installer/add-kernel-opts", "string", strings.Join(a, " "))
	}
}

func (w *writer) finish() {
	w.comment("The end")
	if remove := w.c.Kernel.RemoveArgs; len(remove) > 0 {
		w.late = append(w.late,
			"mkdir -p /target/etc/default/grub.d",
			"echo "+late.ShellWord(installer.GrubWithout(remove))+" > /target/etc/default/grub.d/99-slipway.cfg",
			"in-target update-grub")
	}
	w.late = append(w.late, w.scripts(machineconfig.Chroot)...)
	w.late = append(w.late, w.scripts(machineconfig.LateStage)...)
	if report := installer.Wget.Report(w.c, "installed", installer.Tries); report != "" {
		// A report that is lost fails nothing.
		w.late = append(w.late, "{ "+report+" || true; }")
	}
	w.lateCommand()
	w.answer("", "cdrom-detect/eject", "boolean", "false")
	w.answer("", "finish-install/reboot_in_progress", "note", "")
	if w.c.Boot.PowerAfter == machineconfig.PowerOff {
		w.answer("/boot/powerAfter", "debian-installer/exit/poweroff", "boolean", "true")
	}
}

func (w *writer) lateCommand() {
	if len(w.late) == 0 {
		return
	}
	lines := make([]string, len(w.late))
	for i, l := range w.late {
		if lines[i] = l; i < len(w.late)-1 {
			lines[i] += " &&"
		}
	}
	w.script("preseed/late_command", lines)
}
