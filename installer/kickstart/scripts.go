package kickstart

import (
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/pointer"
)

// target is where Anaconda has the installed system.
const target = "/mnt/sysroot"

// headers are the sections of the stages.
var headers = map[machineconfig.Stage]string{
	machineconfig.Early: "%pre", machineconfig.Partitioning: "%pre", machineconfig.Chroot: "%post", machineconfig.LateStage: "%post --nochroot",
	machineconfig.OnError: "%onerror",
}

// scripts writes the scripts of a stage, each in a section of its own. One that Anaconda might cut, or that holds a late
// value, or that needs to know where the system is, is put into a file and run from there.
func (w *writer) scripts(b *strings.Builder, stage machineconfig.Stage) {
	for _, s := range w.c.Scripts {
		if s.Stage != stage {
			continue
		}
		failure := " --erroronfail"
		if s.IgnoreErrors || stage == machineconfig.OnError {
			failure = ""
		}
		if stage != machineconfig.LateStage && isShowable(s.Text) && !late.HasMarker(s.Text) {
			section(b, headers[stage]+" --interpreter="+s.Shell()+failure, []string{strings.TrimSuffix(s.Text, "\n")})
			continue
		}
		file := "/tmp/slipway-" + s.Name
		run := &writer{t: w.t, c: w.c}
		run.postLine("set -e", "umask 077")
		run.content(file, s.Text, ">", pointer.Of("scripts", s.Name, "text"))
		environment := ""
		if stage == machineconfig.LateStage {
			environment = "SLIPWAY_TARGET=" + target + " "
		}
		run.postLine(environment+s.Shell()+" "+file, "rm -f "+file)
		w.report = append(w.report, run.report...)
		section(b, headers[stage]+" --interpreter=/bin/bash"+failure, run.post)
	}
}

// protection says the firewall and SELinux, as far as somebody asked for them.
func (w *writer) protection() {
	if s := w.c.SELinux; s != "" {
		w.command("selinux --" + string(s))
	}
	f := w.c.Firewall
	if f.Enabled == nil {
		return
	}
	if !*f.Enabled {
		w.command("firewall --disabled")
		return
	}
	line := "firewall --enabled"
	if len(f.Services) > 0 {
		line += w.option("/firewall/services", "service", strings.Join(f.Services, ","))
	}
	if !strings.Contains(","+strings.Join(f.Services, ",")+",", ",ssh,") {
		line += " --remove-service=ssh" // Anaconda opens it by itself
	}
	if len(f.Ports) > 0 {
		line += w.option("/firewall/ports", "port", strings.ReplaceAll(strings.Join(f.Ports, ","), "/", ":"))
	}
	w.command(line)
}
