package cloudinit

import (
	"cmp"
	"slices"
	"strconv"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// commands says the commands, the activation, and the report at the end.
func (w *render) commands() {
	a := w.c.Activation
	for i, c := range w.c.Commands {
		args := commandArgs(c)
		if len(args) == 0 {
			continue
		}
		name := "command " + cmp.Or(c.Name, strconv.Itoa(i))
		switch c.Phase {
		case machineconfig.EveryBoot:
			w.bootcmd = append(w.bootcmd, argv(args))
		case machineconfig.PostBootstrap:
			w.after = append(w.after, stepArgv(name, "run", args...))
		default:
			w.step(name, "run", args...)
		}
	}
	if a != nil {
		w.activation(a)
	}
	report := w.c.PhoneHome.URL != "" && (w.c.PhoneHome.Enabled == nil || *w.c.PhoneHome.Enabled)
	if report {
		w.files = append(w.files, object{{"path", runDir + "/report-url"}, {"permissions", quoted("0600")}, {"content", quoted(w.c.PhoneHome.URL)}})
	}
	if report || len(w.steps)+len(w.after) > 0 {
		w.file(runDir+"/first-boot.sh", "0755", firstBootScript)
		w.after = append(w.after, stepArgv("report", "finish"))
	}
}

func (w *render) activation(a *machineconfig.Activation) {
	if a.Native != nil {
		w.r.Errorf("/bootstrap/native", "not-expressible", "is a whole document of %s, which cloud-init cannot read", a.Native.Format).
			Hint = "boot an image that reads it"
		return
	}
	var sentinel, after list
	for _, f := range a.Files {
		w.writeFile(f)
	}
	for _, u := range a.After {
		w.step("start of "+u, "run", "systemctl", "start", "--", u)
	}
	if len(a.Exec) > 0 {
		w.step("bootstrap "+a.Kind, "activate", append([]string{a.ReadyPath}, a.Exec...)...)
	}
	if a.Sentinel != "" {
		sentinel = list{stepArgv("bootstrap "+a.Kind, "sentinel", a.Sentinel)}
	}
	if a.Prelude != nil {
		// The prelude writes its own sentinel; ours only looks whether it did.
		sentinel = nil
		if a.Sentinel != "" {
			sentinel = list{stepArgv("bootstrap "+a.Kind, "run", "test", "-e", a.Sentinel)}
		}
	}
	if len(a.Cleanup) > 0 {
		after = list{stepArgv("cleanup", "run", append([]string{"rm", "-rf", "--"}, a.Cleanup...)...)}
	}
	w.after = append(append(sentinel, w.after...), after...)
}

// everyBootPath is read by cloud-init at every boot, after user-data.
const everyBootPath = "/etc/cloud/cloud.cfg.d/90-slipway.cfg"

// scrub makes the first boot end with the removal of cloud-init's copies of the documents. The commands of every boot
// go with them, so the system's own configuration gets them as well.
func (w *render) scrub() {
	var every list
	for _, c := range w.c.Commands {
		if c.Phase == machineconfig.EveryBoot {
			every = append(every, argv(commandArgs(c)))
		}
	}
	if len(every) > 0 {
		text := string(block(object{{"bootcmd", every}}))
		if late.HasMarker(text) {
			return // what runs at every boot has to stay
		}
		w.file(everyBootPath, "0644", text)
	}
	scrub := stepArgv("scrub", "scrub")
	if n := len(w.after); n > 0 {
		w.after = append(w.after[:n-1:n-1], scrub, w.after[n-1]) // the report is the last step
		return
	}
	w.file(runDir+"/first-boot.sh", "0755", firstBootScript)
	w.after = list{scrub}
}

func commandArgs(c machineconfig.Command) []string {
	if c.Shell != "" {
		return []string{"sh", "-c", c.Shell}
	}
	return c.Argv
}

// holdsSecrets reports whether a document holds something that must not stay on the machine.
func holdsSecrets(doc []byte) bool {
	return slices.ContainsFunc(late.References(doc), late.IsSecret)
}
