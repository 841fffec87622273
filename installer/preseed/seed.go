package preseed

import (
	"path"
	"slices"

	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/installer"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// seedFolder is where the seed is in the installer when it comes with the initrd.
const seedFolder = "/slipway-seed/"

// seed leaves to the cloud-init of the installed system what the installer has no question for.
func (w *writer) seed() {
	g := installer.Guest(w.c)
	_, g.Packages.Repos = installer.SplitMirror(w.t.OS, g.Packages.Repos)
	if !w.leavesPackages() {
		g.Packages.Install = nil
	}
	g.Packages.Groups, g.Packages.Proxy = nil, "" // the installer's own
	if !w.needed(g) {
		return
	}
	target := installer.GuestTarget(w.t)
	user, report := cloudinit.UserData(target, g)
	w.report = append(w.report, report...)
	w.packages = append(w.packages, "cloud-init")
	w.late = append(w.late, "mkdir -p /target"+installer.SeedFolder, "chmod 0700 /target"+installer.SeedFolder)
	w.plant("user-data", user)
	w.plant("meta-data", cloudinit.MetaData(g))
	config := "echo 'datasource_list: [ NoCloud ]'"
	if n := w.c.Network; !n.HasLinks() && len(n.DNS)+len(n.Search) == 0 {
		config += "; echo 'network: {config: disabled}'"
	} else {
		network, report := cloudinit.NetworkConfig(target, g)
		w.report = append(w.report, report...)
		w.plant("network-config", network)
		if w.needsNetplan() {
			config += "; echo 'system_info: {network: {renderers: [netplan]}}'"
			w.packages = append(w.packages, "netplan.io", "systemd-resolved")
		}
		for _, p := range []struct {
			name  string
			isFor int
		}{{"ifenslave", len(n.Bonds)}, {"vlan", len(n.VLANs)}, {"bridge-utils", len(n.Bridges)}} {
			if p.isFor > 0 {
				w.packages = append(w.packages, p.name)
			}
		}
		w.late = append(w.late, "{ echo 'auto lo'; echo 'iface lo inet loopback'; echo 'source /etc/network/interfaces.d/*'; } > /target/etc/network/interfaces")
	}
	w.late = append(w.late, "{ "+config+"; } > /target/etc/cloud/cloud.cfg.d/99-slipway.cfg")
}

// needsNetplan reports whether the network has something that the files of ifupdown cannot say.
func (w *writer) needsNetplan() bool {
	return slices.ContainsFunc(machineconfig.Uses(w.c), func(u machineconfig.Use) bool {
		return slices.Contains([]string{"/network/match", "/network/dhcp", "/network/rules", "/network/wakeOnLAN"}, u.Field)
	})
}

// answered are the rows of the capability table that the installer has questions for in full.
var answered = []string{"/host/hostname", "/host/domain"}

// needed reports whether anything is left for cloud-init.
func (w *writer) needed(g *machineconfig.Config) bool {
	return slices.ContainsFunc(machineconfig.Uses(g), func(u machineconfig.Use) bool { return !slices.Contains(answered, u.Field) })
}

// plant brings a document of the seed to the installed system: from the initrd, or from the boot session.
func (w *writer) plant(name string, data []byte) {
	doc := machineconfig.Document{Name: "seed-" + name, ContentType: "text/plain; charset=utf-8", Data: data}
	target := late.ShellWord(path.Join("/target"+installer.SeedFolder, name))
	if w.t.InitrdPath != "" {
		doc.Path = seedFolder + name
		w.late = append(w.late, "cp "+doc.Path+" "+target)
	} else {
		w.late = append(w.late, installer.Wget.Fetch(doc.Name, target))
	}
	w.late = append(w.late, "chmod 0600 "+target)
	w.documents = append(w.documents, doc)
}
