package kickstart

import (
	"fmt"
	"strings"

	"slipway.dev/slipway/installer"
	"slipway.dev/slipway/machineconfig"
)

// What runs on the first boot, one script as one unit. Its steps: update, first-boot commands, activation, sentinel,
// post-bootstrap commands, cleanup, report. Each is done once, but for the activation, which its ready path guards,
// and the sentinel, which a boot removes when it stands under /run.
const (
	bootScript = folder + "/first-boot.sh"
	bootUnit   = "slipway-bootstrap.service"
	stamps     = "/var/lib/slipway"
)

func (w *writer) firstBoot() {
	var b strings.Builder
	b.WriteString("#!/bin/bash\n# Slipway: what this machine does on its first boot. A step that is done has a file in " + stamps + ".\n")
	b.WriteString("set -euo pipefail\ncd /\nmkdir -p " + stamps + "\n")
	empty := b.Len()
	if w.c.Packages.Update {
		step(&b, "update", "dnf -y upgrade")
	}
	w.phase(&b, machineconfig.FirstBoot)
	if a := w.c.Activation; a != nil {
		w.activation(&b, a)
	}
	w.phase(&b, machineconfig.PostBootstrap)
	if a := w.c.Activation; a != nil && len(a.Cleanup)+len(a.Files) > 0 {
		paths := append([]string{bootstrapStage, bootstrapConf}, a.Cleanup...)
		step(&b, "cleanup", "rm -rf -- "+installer.Words(paths))
	}
	if report := installer.Curl.Report(w.c, "up", installer.TriesLater); report != "" {
		step(&b, "report", report)
	}
	if b.Len() == empty {
		return
	}
	w.file(bootScript, 0o700, "", "", b.String(), "/commands")
	on := true
	w.unit(&machineconfig.Unit{Name: bootUnit, Contents: w.bootUnitText(), Enabled: &on})
}

// step writes what is done once.
func step(b *strings.Builder, name, lines string) {
	fmt.Fprintf(b, "if [ ! -e %[1]s/%[2]s.done ]; then\n%[3]s\ntouch %[1]s/%[2]s.done\nfi\n", stamps, name, lines)
}

// phase writes the commands of a phase; each is a file of its own, so that what it says cannot end the script.
func (w *writer) phase(b *strings.Builder, p machineconfig.Phase) {
	n := 0
	for _, c := range w.c.Commands {
		if c.Phase != p && (c.Phase != "" || p != machineconfig.FirstBoot) {
			continue
		}
		n++
		name := fmt.Sprintf("%s-%02d", p, n)
		script := folder + "/" + name + ".sh"
		w.file(script, 0o700, "", "", installer.Script([]machineconfig.Command{c}), "/commands/"+string(p))
		step(b, name, "/bin/bash "+script)
	}
}

// activation writes the bootstrapper's files and runs its command.
func (w *writer) activation(b *strings.Builder, a *machineconfig.Activation) {
	for i := range a.Files {
		w.place(&a.Files[i], bootstrapStage)
	}
	w.flushTmpfiles(bootstrapConf)
	if len(a.Exec) > 0 {
		p := folder + "/bootstrap.sh"
		w.file(p, 0o700, "", "", "#!/bin/bash\nexec "+installer.Words(a.Exec)+"\n", "/bootstrap")
		run := "/bin/bash " + p
		if a.ReadyPath != "" {
			run = "if [ ! -e " + shWord(a.ReadyPath) + " ]; then\n" + run + "\nfi"
		}
		b.WriteString(run + "\n")
	}
	if a.Sentinel != "" {
		fmt.Fprintf(b, "mkdir -p -- %s\necho success > %s\n", shWord(parent(a.Sentinel)), shWord(a.Sentinel))
	}
}

func (w *writer) bootUnitText() string {
	after := []string{"network-online.target"}
	wants := "network-online.target"
	if a := w.c.Activation; a != nil {
		after = append(after, a.After...)
		wants = strings.Join(append([]string{wants}, a.After...), " ")
	}
	return `[Unit]
Description=Slipway: first boot and bootstrap
Wants=` + wants + `
After=` + strings.Join(after, " ") + `
StartLimitIntervalSec=0

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/bash ` + bootScript + `
Restart=on-failure
RestartSec=10

[Install]
WantedBy=multi-user.target
`
}

// reports writes the sections that tell Slipway how the installation went; they run in the installer itself.
func reports(b *strings.Builder, c *machineconfig.Config) {
	for _, r := range []struct{ header, query string }{{"%post --nochroot", "installed"}, {"%onerror", "failed&detail=anaconda"}} {
		if report := installer.Curl.Report(c, r.query, installer.Tries); report != "" {
			section(b, r.header+" --interpreter=/bin/bash", []string{report + " || :"}) // a report that is lost fails nothing
		}
	}
}
