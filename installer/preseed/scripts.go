package preseed

import (
	"strings"

	"slipway.dev/slipway/installer"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/pointer"
)

// scripts returns the commands that run the scripts of a stage. Each script is a document of its own, since an answer is
// one line: it comes with the initrd, or the installer fetches it.
func (w *writer) scripts(stage machineconfig.Stage) []string {
	var out []string
	for _, s := range w.c.Scripts {
		if s.Stage != stage {
			continue
		}
		if stage != machineconfig.Chroot && s.Shell() != "/bin/sh" {
			w.report.Errorf(pointer.Of("scripts", s.Name, "interpreter"), "not-expressible", "is not in Debian's installer, which has /bin/sh only").
				Hint = "write the script for /bin/sh, or run it in the stage chroot"
		}
		doc := machineconfig.Document{Name: "script-" + s.Name, ContentType: "text/plain; charset=utf-8", Data: []byte(s.Text)}
		name := "/tmp/slipway-" + s.Name
		file, run := name, s.Shell()+" "+name
		if stage == machineconfig.LateStage {
			run = "SLIPWAY_TARGET=/target " + run
		}
		if stage == machineconfig.Chroot {
			file, run = "/target"+name, "in-target "+s.Shell()+" "+name
		}
		put := installer.Wget.Fetch(doc.Name, file)
		if w.t.InitrdPath != "" {
			doc.Path = seedFolder + doc.Name
			put = "cp " + doc.Path + " " + file
		}
		w.documents = append(w.documents, doc)
		command := put + " && chmod 0700 " + file + " && " + run + " && rm -f " + file
		if s.IgnoreErrors {
			command = "{ " + command + " || true; }"
		}
		out = append(out, command)
	}
	return out
}

// earlyScripts run as soon as the installer has read its answers.
func (w *writer) earlyScripts() {
	if lines := w.scripts(machineconfig.Early); len(lines) > 0 {
		w.comment("Scripts")
		w.script("preseed/early_command", []string{strings.Join(lines, " && ")})
	}
}
