package cloudinit

import (
	"maps"
	"slices"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// systemd says units. Those that run have been started long before, so what changes them restarts them.
func (w *render) systemd() {
	units := w.c.Units
	if len(units) == 0 {
		return
	}
	for _, u := range units {
		base := "/etc/systemd/system/" + u.Name
		if u.Contents != "" && !u.Masked {
			w.files = append(w.files, object{{"path", base}, {"permissions", quoted("0644")}, {"content", u.Contents}})
		}
		for _, d := range u.DropIns {
			w.files = append(w.files, object{{"path", base + ".d/" + d.Name}, {"permissions", quoted("0644")}, {"content", d.Contents}})
		}
	}
	w.step("systemd units", "run", "systemctl", "daemon-reload")
	for _, u := range units {
		switch {
		case u.Masked:
			w.step("mask "+u.Name, "run", "systemctl", "mask", "--now", "--", u.Name)
			continue
		case u.Enabled != nil && !*u.Enabled:
			w.step("disable "+u.Name, "run", "systemctl", "disable", "--now", "--", u.Name)
			continue
		case len(u.DropIns) > 0:
			w.step("restart "+u.Name, "run", "systemctl", "try-restart", "--no-block", "--", u.Name)
		}
		if u.Enabled != nil {
			w.step("enable "+u.Name, "enable", u.Name)
		}
	}
}

const (
	modulesPath = "/etc/modules-load.d/slipway.conf"
	sysctlPath  = "/etc/sysctl.d/90-slipway.conf"
	grubPath    = "/etc/default/grub.d/90-slipway.cfg"
)

func (w *render) kernel() {
	k := w.c.Kernel
	if len(k.Modules) > 0 {
		w.file(modulesPath, "0644", strings.Join(k.Modules, "\n")+"\n")
		w.step("kernel modules", "run", append([]string{"modprobe", "--all", "--"}, k.Modules...)...)
	}
	if len(k.Sysctl) > 0 {
		var b strings.Builder
		for _, key := range slices.Sorted(maps.Keys(k.Sysctl)) {
			b.WriteString(key + " = " + k.Sysctl[key] + "\n")
		}
		w.file(sysctlPath, "0644", b.String())
		w.step("kernel settings", "run", "sysctl", "--load", sysctlPath)
	}
	if len(k.Args)+len(k.RemoveArgs) == 0 {
		return
	}
	if late.HasMarker(strings.Join(append(append([]string{}, k.Args...), k.RemoveArgs...), " ")) {
		w.r.Errorf("/kernel/args", "late-value", "hold a secret or another value that is known only at boot").
			Hint = "every user of the machine can read the kernel's arguments: write the value itself, or into a file"
		return
	}
	if familyOf(w.t.OS) == apt {
		w.file(grubPath, "0644", grubSnippet(k))
	}
	args := append([]string{}, k.Args...)
	w.step("kernel arguments", "kernel-args", append(append(args, "--"), k.RemoveArgs...)...)
}

// grubSnippet is read by update-grub with a shell.
func grubSnippet(k machineconfig.Kernel) string {
	var b strings.Builder
	if len(k.RemoveArgs) > 0 {
		b.WriteString("for slipway_remove in")
		for _, a := range k.RemoveArgs {
			b.WriteString(" " + late.ShellWord(a))
		}
		b.WriteString("; do\n\tslipway_keep=''\n\tfor slipway_arg in $GRUB_CMDLINE_LINUX; do\n" +
			"\t\tcase $slipway_arg in \"$slipway_remove\" | \"$slipway_remove\"=*) ;; *) slipway_keep=\"$slipway_keep $slipway_arg\" ;; esac\n\tdone\n" +
			"\tGRUB_CMDLINE_LINUX=${slipway_keep# }\n" +
			"\tslipway_keep=''\n\tfor slipway_arg in $GRUB_CMDLINE_LINUX_DEFAULT; do\n" +
			"\t\tcase $slipway_arg in \"$slipway_remove\" | \"$slipway_remove\"=*) ;; *) slipway_keep=\"$slipway_keep $slipway_arg\" ;; esac\n\tdone\n" +
			"\tGRUB_CMDLINE_LINUX_DEFAULT=${slipway_keep# }\ndone\n")
	}
	if len(k.Args) > 0 {
		b.WriteString("GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX \"" + late.ShellWord(strings.Join(k.Args, " ")) + "\n")
	}
	return b.String()
}
