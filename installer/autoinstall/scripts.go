package autoinstall

import (
	"slipway.dev/slipway/installer"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// scripts returns the commands that run the scripts of a stage. A script with a late value is a document of its own, which
// the installer fetches: a value cannot be encoded for YAML and for a shell at once.
func (w *writer) scripts(stage machineconfig.Stage) []string {
	var out []string
	for _, s := range w.c.Scripts {
		if s.Stage != stage {
			continue
		}
		name := "/tmp/slipway-" + s.Name
		file, run := name, s.Shell()+" "+name
		if stage == machineconfig.LateStage {
			run = "SLIPWAY_TARGET=/target " + run
		}
		if stage == machineconfig.Chroot {
			file, run = "/target"+name, "curtin in-target --target=/target -- "+s.Shell()+" "+name
		}
		put := "printf '%s' " + late.ShellWord(s.Text) + " > " + file
		if late.HasMarker(s.Text) {
			doc := machineconfig.Document{Name: "script-" + s.Name, ContentType: "text/plain; charset=utf-8", Data: []byte(s.Text)}
			w.documents = append(w.documents, doc)
			put = installer.Curl.Fetch(doc.Name, file)
		}
		command := "( umask 077; " + put + " ) && " + run + " && rm -f " + file
		if s.IgnoreErrors || stage == machineconfig.OnError {
			command = "{ " + command + "; } || true"
		}
		out = append(out, command)
	}
	return out
}
