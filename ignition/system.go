package ignition

import (
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/pointer"
)

// identity writes who the machine is.
func (r *rendering) identity() {
	h := r.c.Host
	if h.Hostname != "" {
		r.text("/etc/hostname", 0, r.line("/host/hostname", h.Hostname)+"\n", "/host/hostname")
	}
	isHosts := func(f machineconfig.File) bool { return f.Path == "/etc/hosts" }
	if h.Domain != "" && h.Hostname != "" && !slices.ContainsFunc(r.c.Files, isHosts) {
		r.text("/etc/hosts", 0, "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 "+
			r.line("/host/domain", h.FQDN()+" "+h.Hostname)+"\n", "/host/domain")
	}
	if h.MachineID != "" {
		// As a file it would keep systemd from applying the presets of a first boot, and no unit would be enabled.
		r.args = append(r.args, "systemd.machine_id="+r.line("/host/machineID", h.MachineID))
	}
	if h.Locale != "" {
		r.text(r.os.locale, 0, "LANG="+r.line("/host/locale", h.Locale)+"\n", "/host/locale")
	}
	if h.Keymap != "" {
		r.text(r.os.keymap, 0, r.os.keymapKey+"="+r.line("/host/keymap", h.Keymap)+"\n", "/host/keymap")
	}
	if h.Timezone != "" {
		r.link(machineconfig.Link{Path: "/etc/localtime", Target: "../usr/share/zoneinfo/" + r.line("/host/timezone", h.Timezone)}, "/host/timezone")
	}
}

// kernel writes arguments, modules and settings.
func (r *rendering) kernel() {
	k := r.c.Kernel
	if r.hasKernelArgs() {
		for i, a := range k.Args {
			r.from[fmt.Sprintf("kernel_arguments.should_exist.%d", i)] = "/kernel/args"
			r.b.KernelArguments.ShouldExist = append(r.b.KernelArguments.ShouldExist, r.line("/kernel/args", a))
		}
		for i, a := range k.RemoveArgs {
			r.from[fmt.Sprintf("kernel_arguments.should_not_exist.%d", i)] = "/kernel/removeArgs"
			r.b.KernelArguments.ShouldNotExist = append(r.b.KernelArguments.ShouldNotExist, r.line("/kernel/removeArgs", a))
		}
	}
	if len(k.Modules) > 0 {
		r.text("/etc/modules-load.d/"+r.own+".conf", 0, strings.Join(r.lines("/kernel/modules", k.Modules), "\n")+"\n", "/kernel/modules")
	}
	if len(k.Sysctl) > 0 {
		text := ""
		for _, key := range slices.Sorted(maps.Keys(k.Sysctl)) {
			text += r.line("/kernel/sysctl", key+" = "+k.Sysctl[key]) + "\n"
		}
		r.text("/etc/sysctl.d/90-"+r.own+".conf", 0, text, "/kernel/sysctl")
	}
}

// hasKernelArgs reports whether the document can carry kernel arguments: since 3.3, and not on systems that others own.
func (r *rendering) hasKernelArgs() bool {
	return Compare(r.at.spec, "3.3.0") >= 0 && !r.os.isOneOf(variantOpenShift, variantR4E, variantFIoT)
}

// clock writes time servers and turns the OS's own client on or off.
func (r *rendering) clock() {
	t := r.c.Time
	if len(t.NTPServers) == 0 && t.Enabled == nil {
		return
	}
	const from = "/time"
	name := "systemd-timesyncd.service"
	servers := r.lines(from, t.NTPServers)
	if r.os.ntp == "chrony" {
		name = "chronyd.service"
		if len(servers) > 0 { // Fedora's chrony.conf includes no folder of drop-ins
			text := ""
			for _, s := range servers {
				text += "server " + s + " iburst\n"
			}
			r.text("/etc/chrony.conf", 0, text+"driftfile /var/lib/chrony/drift\nmakestep 1.0 3\nrtcsync\nleapsectz right/UTC\nlogdir /var/log/chrony\n", from)
		}
	} else if len(servers) > 0 {
		r.text("/etc/systemd/timesyncd.conf.d/10-"+r.own+".conf", 0, "[Time]\nNTP="+strings.Join(servers, " ")+"\n", from)
	}
	r.osUnit(name, t.Enabled == nil || *t.Enabled, from)
}

// trust lets both Ignition's own fetches and the running system trust the certificates.
func (r *rendering) trust() {
	const from = "/trust/cas"
	for i, ca := range r.c.Trust.CAs {
		if b, _ := pem.Decode([]byte(ca)); (b == nil || b.Type != "CERTIFICATE") && !late.HasMarker(ca) {
			r.report.Errorf(from, "invalid", "certificate %d is not in PEM", i+1).Hint = "it starts with -----BEGIN CERTIFICATE-----"
			continue
		}
		text := strings.TrimSpace(ca) + "\n"
		r.text(fmt.Sprintf("%s/%s-%d%s", r.os.caDir, r.own, i+1, r.os.caExt), 0, text, from)
		r.from[fmt.Sprintf("ignition.security.tls.certificate_authorities.%d", len(r.b.Ignition.Security.TLS.CAs))] = from
		r.b.Ignition.Security.TLS.CAs = append(r.b.Ignition.Security.TLS.CAs, resource{Source: late.DataURL(text)})
	}
	if len(r.c.Trust.CAs) > 0 {
		r.addStep(trustStep, from, step{
			about: "Slipway: trust certificate authorities", guard: r.stateDir() + "trust.done", noNetwork: true,
			exec: []string{"/usr/bin/env " + r.os.caUpdate, r.touch("trust.done")},
		})
	}
}

// extensions adds system extensions, and layers for OSes made by ostree.
func (r *rendering) extensions() {
	var layers string
	hasImage := false
	for _, e := range r.c.Extensions {
		from := pointer.Of("extensions", e.Name)
		switch e.Format {
		case machineconfig.Sysext, "":
			hasImage = true
			image := "/opt/extensions/" + r.line(from, e.Name) + ".raw"
			if r.os.isOneOf(variantOpenShift) {
				r.notExpressible(from, "RHCOS fetches no files: use its own extensions")
				continue
			}
			r.file(machineconfig.File{Path: image, Content: machineconfig.Content{Remote: &e.Remote}}, from, 0)
			r.link(machineconfig.Link{Path: "/etc/extensions/" + e.Name + ".raw", Target: image}, from)
		case machineconfig.RPMOSTree:
			layers += "rpm-ostree install --assumeyes --idempotent --allow-inactive " + late.ShellWord(e.URL) + "\n"
		case machineconfig.Bootc:
			layers += "bootc switch " + late.ShellWord(e.URL) + "\n"
		}
		if e.Format != machineconfig.Sysext && e.Format != "" && !r.os.ostree {
			r.notExpressible(from, string(e.Format)+" needs an OS made by ostree, such as fedora-coreos: use a sysext")
		}
	}
	if hasImage {
		r.osUnit("systemd-sysext.service", true, "/extensions")
	}
	if layers == "" {
		return
	}
	r.shell("layers.sh", script("Adds layers to the OS, which take effect with the next boot.")+layers+"touch "+r.stateDir()+"layers.done\n", "/extensions")
	r.addStep(layersStep, "/extensions", step{
		about: "Slipway: layers of the OS", guard: r.stateDir() + "layers.done", reboots: true,
		exec: []string{r.bash("layers.sh")},
	})
}
