package autoinstall

import (
	"bytes"
	"slices"

	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/installer"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// guest is the cloud-config of the installed system. A bootstrap secret of Cluster API cannot be in it: then the
// documents are a NoCloud seed, which a late command brings to the disk.
func (w *writer) guest() any {
	g := installer.Guest(w.c)
	_, g.Packages.Repos = installer.SplitMirror(w.t.OS, g.Packages.Repos)
	if len(g.Packages.Repos)+len(g.Packages.Pins) == 0 {
		g.Packages.Install = nil
	}
	g.Packages.Snaps, g.Packages.Proxy = nil, "" // the installer's own
	g = installer.WithEveryBootUnit(g)
	target := installer.GuestTarget(w.t)
	user, report := cloudinit.UserData(target, g)
	if bytes.HasPrefix(user, []byte("#cloud-config")) {
		if holdsSecret(user) {
			g.Commands = append(slices.Clip(g.Commands), scrub)
			user, report = cloudinit.UserData(target, g)
		}
		w.report = append(w.report, report...)
		return parse(user)
	}
	w.report = append(w.report, report...)
	w.seed(user, cloudinit.MetaData(g))
	return object{}.with("disable_root", true) // the installer wants a user, or the statement that there is none
}

// scrub removes what the installer leaves of a document that holds secrets. Its cloud-init runs only once, so nothing is
// lost.
var scrub = machineconfig.Command{
	Name: "slipway-scrub", Phase: machineconfig.PostBootstrap,
	Shell: "touch /etc/cloud/cloud-init.disabled; rm -f /etc/cloud/cloud.cfg.d/99-installer.cfg /var/log/installer/autoinstall-user-data " +
		"/var/log/installer/cloud-init.log /var/log/installer/subiquity-server-debug.log*",
}

func holdsSecret(doc []byte) bool {
	return slices.ContainsFunc(late.References(doc), late.IsSecret)
}

// seed brings documents of cloud-init to the installed system, in place of what the installer has written.
func (w *writer) seed(user, meta []byte) {
	const home = "/target" + installer.SeedFolder
	w.late = append(w.late, "mkdir -p "+home, "chmod 0700 "+home)
	for _, d := range []struct {
		name string
		data []byte
	}{{"user-data", user}, {"meta-data", meta}} {
		doc := machineconfig.Document{Name: "seed-" + d.name, ContentType: "text/plain; charset=utf-8", Data: d.data}
		w.documents = append(w.documents, doc)
		w.late = append(w.late,
			installer.Curl.Fetch(doc.Name, home+d.name),
			"chmod 0600 "+home+d.name)
	}
	w.late = append(w.late,
		"rm -f /target/etc/cloud/cloud.cfg.d/99-installer.cfg /target/etc/cloud/ds-identify.cfg",
		`printf 'datasource_list: [ NoCloud ]\nnetwork: {config: disabled}\n' > /target/etc/cloud/cloud.cfg.d/99-slipway.cfg`)
}
