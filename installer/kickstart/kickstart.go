// Package kickstart says a machine configuration as a kickstart file, for Anaconda: the installer of Fedora and of
// Enterprise Linux. It never runs anything, and leaves alone what nobody asked for, such as the firewall and SELinux.
package kickstart

import (
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/plain"
)

// Provisioner renders kickstart files.
type Provisioner struct{}

// New returns the provisioner.
func New() *Provisioner { return &Provisioner{} }

// Kind is the format's name.
func (*Provisioner) Kind() string { return "kickstart" }

// Documents are the formats that a profile's own document may have.
func (*Provisioner) Documents() []inventory.DocumentFormat {
	return []inventory.DocumentFormat{inventory.DocKickstart}
}

// writer collects the parts of one kickstart file.
type writer struct {
	t      machineconfig.Target
	c      *machineconfig.Config
	report machineconfig.Report

	commands []string // lines before the sections
	pre      []string // lines of %pre
	args     []string // of the installer's kernel
	packages []string
	post     []string // lines of %post, in the installed system
	tmpfiles []string // lines of tmpfiles.d that put staged files in their place
}

// Render says c as ks.cfg.
func (p *Provisioner) Render(t machineconfig.Target, c *machineconfig.Config) (*machineconfig.Rendered, machineconfig.Report) {
	w := &writer{t: t, c: c}
	var text string
	if d := c.Document; d != nil && d.Format == string(inventory.DocKickstart) {
		text = w.mergeDocument(string(d.Data))
	} else {
		w.c, w.report = plain.Say(t, c, "/packages/proxy", "/packages/pins", "/storage/mounts", "/sshd")
		w.base()
		w.network()
		w.accounts()
		w.protection()
		w.bootloader()
		w.storage()
		w.software()
		w.installed()
		text = w.String()
	}
	if w.report.HasErrors() {
		return nil, w.report
	}
	doc := machineconfig.Document{Name: "ks.cfg", ContentType: "text/plain; charset=utf-8", Data: []byte(text), Path: t.InitrdPath}
	return &machineconfig.Rendered{Documents: []machineconfig.Document{doc}, Args: w.args}, w.report
}

// command adds a line to the command section.
func (w *writer) command(words ...string) { w.commands = append(w.commands, strings.Join(words, " ")) }

// postLine adds lines to the script that runs in the installed system.
func (w *writer) postLine(lines ...string) { w.post = append(w.post, lines...) }

// String is the whole file.
func (w *writer) String() string {
	var b strings.Builder
	b.WriteString("# Written by Slipway.\n")
	for _, l := range w.commands {
		b.WriteString(l + "\n")
	}
	if len(w.packages) > 0 {
		section(&b, "%packages", w.packages)
	}
	w.scripts(&b, machineconfig.Early)
	if len(w.pre) > 0 {
		section(&b, "%pre --interpreter=/bin/bash --erroronfail", w.pre)
	}
	w.scripts(&b, machineconfig.Partitioning)
	w.sections(&b)
	return b.String()
}

// sections writes what runs in and after the installed system.
func (w *writer) sections(b *strings.Builder) {
	if len(w.post) > 0 {
		section(b, "%post --interpreter=/bin/bash --erroronfail", append([]string{"set -euo pipefail", "umask 022"}, w.post...))
	}
	w.scripts(b, machineconfig.Chroot)
	w.scripts(b, machineconfig.LateStage)
	w.scripts(b, machineconfig.OnError)
	reports(b, w.c)
}

func section(b *strings.Builder, header string, lines []string) {
	b.WriteString("\n" + header + "\n")
	for _, l := range lines {
		b.WriteString(l + "\n")
	}
	b.WriteString("%end\n")
}
