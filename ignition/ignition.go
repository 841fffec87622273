// Package ignition writes a machineconfig.Config as an Ignition document, through Butane, at a spec that the machine's
// Ignition reads. It also negotiates, upgrades and validates such documents. It never fetches, stores or serves one, and it
// never sees the value of a secret.
//
// Start reading at Provisioner.Render. The differences between operating systems are data in variant.go and capability.go.
package ignition

import (
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/plain"
)

// ContentType is what documents are served as.
const ContentType = "application/vnd.coreos.ignition+json"

// Provisioner renders Ignition documents.
type Provisioner struct{ own string }

// ownName is what our units, scripts and files are called after.
const ownName = "slipway"

// New returns the provisioner.
func New() *Provisioner { return &Provisioner{own: ownName} }

// Within returns a provisioner for documents that are merged into another document of ours. Their units, scripts and files
// have name in front, so that none replaces one of the outer document.
func Within(name string) *Provisioner { return &Provisioner{own: ownName + "-" + name} }

// Kind is the format's name.
func (*Provisioner) Kind() string { return "ignition" }

// Documents are the formats that a profile's own document may have.
func (*Provisioner) Documents() []inventory.DocumentFormat {
	return []inventory.DocumentFormat{inventory.DocButane, inventory.DocIgnition}
}

// Render says c as one document, config.ign. An entry of Butane's or Ignition's own report, warnings too, is an error.
func (p *Provisioner) Render(t machineconfig.Target, c *machineconfig.Config) (*machineconfig.Rendered, machineconfig.Report) {
	r, ok := newRendering(p.own, t, c)
	if !ok {
		return nil, r.report
	}
	r.say()
	for _, part := range []func(){
		r.files, r.links, r.users, r.units, r.identity, r.kernel, r.clock, r.trust, r.extensions, r.network, r.storage,
		r.bootstrap, r.commands, r.finish, r.phoneHome, r.prelude, r.volatile,
	} {
		part()
	}
	r.unsupported()
	data := r.document()
	if r.report.HasErrors() || data == nil {
		return nil, r.report
	}
	return &machineconfig.Rendered{
		Documents: []machineconfig.Document{{Name: "config.ign", ContentType: ContentType, Data: data, Path: t.InitrdPath}},
		Args:      r.args,
	}, r.report
}

// say puts what Ignition has no words for into files, units and commands.
func (r *rendering) say() {
	rows := []string{"/storage/mounts", "/sshd"}
	if !r.os.isOneOf(variantFCOS) || r.os.caDir != debian.caDir { // Debian's have AppArmor
		rows = append(rows, "/selinux")
	}
	var findings machineconfig.Report
	install := r.c.Packages.Install
	r.c, r.report = plain.Say(r.t, r.c, rows...)
	r.c.Packages.Install = install // images bring what they need
	r.c, findings = plain.Nftables(r.t, r.c)
	r.report = append(r.report, findings...)
}

// rendering collects what one Config becomes.
type rendering struct {
	own string // what our units, scripts and files are called after
	t   machineconfig.Target
	os  family
	at  edition
	c   *machineconfig.Config
	b   butane

	from   map[string]string // place in the Butane document, such as storage.files.2, to the pointer it comes from
	taken  map[string]string // path on the machine to the pointer that put something there
	unit   map[string]string // name of a unit to the pointer that it comes from
	stages [2]stage          // volatile files: the admin's, and the bootstrapper's
	steps  []string          // our units, in the order in which they run
	args   []string
	places []place // the texts of the profile's own document
	report machineconfig.Report
}

func newRendering(own string, t machineconfig.Target, c *machineconfig.Config) (*rendering, bool) {
	r := &rendering{own: own, t: t, os: familyOf(t.OS), c: c, from: map[string]string{}, taken: map[string]string{}, unit: map[string]string{}}
	r.stages = [2]stage{
		{dir: r.scriptDir() + "stage", conf: own + "-stage.conf"}, {dir: r.scriptDir() + "bootstrap", conf: own + "-bootstrap.conf"},
	}
	at, err := editionFor(r.os.variant, t.Tool)
	if err != nil {
		r.report.Errorf("", "not-expressible", "%v", err).Hint = "the image's version of Ignition is the newest spec that it reads, such as 3.3.0"
		return r, false
	}
	r.at = at
	r.b = butane{Variant: r.os.variant, Version: at.butane}
	if r.os.variant == variantOpenShift {
		r.b.Metadata = &metadata{Name: "slipway", Labels: map[string]string{"machineconfiguration.openshift.io/role": "worker"}}
	}
	return r, true
}

// notExpressible reports a value that cannot be carried, with the capability table's words when why is empty.
func (r *rendering) notExpressible(path, why string) {
	r.report = append(r.report, machineconfig.NotExpressible(path, "ignition", r.t, machineconfig.Capability{Note: why}))
}

// unsupported reports what the table says cannot be carried, for callers that skipped Check.
func (r *rendering) unsupported() {
	cells := New().Capabilities(r.t)
	for _, u := range machineconfig.Uses(r.c) {
		known := func(f machineconfig.Finding) bool {
			return f.Path == u.Path && f.Severity == machineconfig.SeverityError
		}
		if cell := cells[u.Field]; cell.Support == machineconfig.Unsupported && !slices.ContainsFunc(r.report, known) {
			r.notExpressible(u.Path, cell.Note)
		}
	}
}

// line returns s when it is one line, as most files want their values; otherwise it reports it.
func (r *rendering) line(path, s string) string {
	if strings.ContainsAny(s, "\n\r\x00") {
		r.report.Errorf(path, "invalid", "holds a line break where one line is written").Hint = "write it on one line"
		return ""
	}
	return s
}

func (r *rendering) lines(path string, list []string) []string {
	out := make([]string, 0, len(list))
	for _, s := range list {
		out = append(out, r.line(path, s))
	}
	return out
}
