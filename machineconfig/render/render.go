// Package render owns the way from layers and a profile to the documents of one host. It merges, expands, bootstraps,
// adapts and checks, and calls the provisioner of the image's format. It never reads a store or a clock. It sees a secret
// only where a bootstrapper has to read one. The same input gives the same bytes.
//
// Start reading at Renderer.Host.
package render

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/layer"
	"slipway.dev/slipway/machineconfig/pointer"
	"slipway.dev/slipway/machineconfig/template"
	"slipway.dev/slipway/machineconfig/validation"
)

// Parts are the formats and bootstrappers that exist, and what meets a bootstrapper's requirements on an OS.
type Parts struct {
	Provisioners  []machineconfig.Provisioner
	Bootstrappers []machineconfig.Bootstrapper
	Adapt         func(t machineconfig.Target, req machineconfig.Requirements, install string, c *machineconfig.Config) machineconfig.Report
}

// Renderer renders hosts. It may be used from many goroutines.
type Renderer struct {
	parts  Parts
	layers *cache
}

// New returns a Renderer.
func New(p Parts) *Renderer { return &Renderer{parts: p, layers: newCache()} }

// Provisioners returns the formats that exist, for the capability table.
func (r *Renderer) Provisioners() []machineconfig.Provisioner { return r.parts.Provisioners }

// Input is everything that a rendering depends on.
type Input struct {
	Host    *inventory.Host
	BootMAC inventory.MAC
	Image   *inventory.Image
	// Profiles are the host's profile and those it extends, the widest first.
	Profiles []inventory.Profile
	Layers   []inventory.Layer // those of the host's scopes, the widest first
	// Machine is the one that has the host, nil for none.
	Machine *Machine
	// Target finds a join target by name; its error is an *inventory.Error.
	Target func(name string) (inventory.JoinTarget, error)
	// Secret returns the value of a secret; HasSecret reports whether there is one.
	Secret    func(name string) ([]byte, error)
	HasSecret func(name string) bool
	// MayUse says why a part of the configuration may not name what it names; nil allows everything.
	MayUse func(inventory.Use) error
	// Address returns the address that is kept for the machine in a subnet; nil knows none.
	Address machineconfig.AddressOf
	// Generation changes the instance id, so that a first boot happens again.
	Generation string
}

func (in *Input) profile() *inventory.Profile { return &in.Profiles[len(in.Profiles)-1] }

// IsWanted reports whether there is anything to render: the image reads a configuration, and somebody has written one.
func (in *Input) IsWanted() bool {
	if slices.ContainsFunc(in.Profiles, func(p inventory.Profile) bool { return p.Config != "" || p.Document != nil }) {
		return true
	}
	if in.Machine != nil && (in.Machine.Config != "" || in.Machine.BootstrapFrom != "") {
		return true
	}
	return len(in.Image.Configs) > 0 && slices.ContainsFunc(in.Layers, func(l inventory.Layer) bool { return l.Config != "" })
}

// Result is a rendering with all that is to say about it. With an error among the findings Documents is nil.
type Result struct {
	Config     *machineconfig.Config
	Format     string
	Target     machineconfig.Target
	Documents  []inventory.RenderedDocument
	Args       []string
	References []string        // late values in the documents
	Uses       []inventory.Use // which parts of the configuration name them
	Digest     inventory.Digest
	Findings   machineconfig.Report
}

// Host renders one host.
func (r *Renderer) Host(in Input) Result {
	var res Result
	prov, format := r.choose(&in, &res.Findings)
	if prov == nil {
		return res
	}
	res.Format = prov.Kind()
	res.Target = machineconfig.Target{
		OS: in.Image.OS, Release: in.Image.Release, Arch: in.Image.Arch, Tool: format.Version, InitrdPath: format.InitrdPath,
	}
	c, uses, findings := r.config(&in)
	res.Config = c
	res.Findings = append(res.Findings, findings...)
	if res.Findings.HasErrors() {
		return res
	}
	if on := c.PhoneHome.Enabled; on == nil && prov.Capabilities(res.Target)["/phoneHome"].Support == machineconfig.Unsupported {
		c.PhoneHome.URL = "" // nobody asked for it
	}
	if res.Findings = append(res.Findings, in.mayUse(c, uses)...); res.Findings.HasErrors() {
		return res
	}
	target, findings := r.bootstrap(&in, prov.Kind(), res.Target, c)
	findings.Locate(c)
	res.Findings = append(res.Findings, findings...)
	res.Findings = append(res.Findings, validation.Validate(c)...)
	res.Findings = append(res.Findings, machineconfig.Check(prov, res.Target, c, accepted(in.Profiles))...)
	if res.Findings.HasErrors() {
		return res
	}
	out, findings := prov.Render(res.Target, c)
	findings.Locate(c)
	overrule(c, findings)
	res.Findings = append(res.Findings, findings...)
	if out == nil || res.Findings.HasErrors() {
		if !res.Findings.HasErrors() {
			res.Findings.Errorf("", "internal", "the provisioner %s rendered nothing and did not say why", prov.Kind())
		}
		return res
	}
	res.fill(out, uses, target)
	res.Findings = append(append(res.Findings, in.mayUse(c, res.Uses)...), in.untraced(&res)...)
	res.Findings = append(res.Findings, r.secrets(&in, c, res.References)...)
	if res.Findings.HasErrors() {
		res.Documents = nil
	}
	return res
}

// accepted collects the losses that the profile and those it extends accept.
func accepted(profiles []inventory.Profile) (paths []string) {
	for _, p := range profiles {
		paths = append(paths, p.Accepts...)
	}
	return paths
}

// choose finds the provisioner, and the image's format that it renders for.
func (r *Renderer) choose(in *Input, findings *machineconfig.Report) (machineconfig.Provisioner, inventory.ImageConfig) {
	p := in.profile()
	if len(in.Image.Configs) == 0 {
		findings.Errorf("", "no-format", "image %s reads no configuration", in.Image.Name).Hint =
			"import it with the formats it reads, or take the configuration out of profile " + p.Name
		return nil, inventory.ImageConfig{}
	}
	doc := document(in.Profiles)
	want := ""
	for _, p := range in.Profiles {
		want = cmp.Or(p.Format, want)
	}
	var names []string
	for _, f := range in.Image.Configs {
		names = append(names, f.Format)
		if want != "" && f.Format != want {
			continue
		}
		for _, prov := range r.parts.Provisioners {
			if prov.Kind() == f.Format && (doc == nil || slices.Contains(prov.Documents(), doc.Format)) {
				return prov, f
			}
		}
	}
	switch {
	case want != "" && !slices.Contains(names, want):
		findings.Errorf("", "no-format", "image %s does not read %s", in.Image.Name, want).Hint = "it reads " + strings.Join(names, ", ")
	case doc != nil:
		findings.Errorf("", "no-format", "image %s cannot be given a document in %s", in.Image.Name, doc.Format).Hint =
			"it reads " + strings.Join(names, ", ")
	default:
		findings.Errorf("", "no-format", "nothing here writes %s, which image %s reads", strings.Join(names, ", "), in.Image.Name)
	}
	return nil, inventory.ImageConfig{}
}

// document returns the narrowest document of the profiles.
func document(profiles []inventory.Profile) *inventory.Document {
	if p := documented(profiles); p != nil {
		return p.Document
	}
	return nil
}

// documented returns the narrowest of the profiles that has a document, nil for none.
func documented(profiles []inventory.Profile) *inventory.Profile {
	for i := range slices.Backward(profiles) {
		if profiles[i].Document != nil {
			return &profiles[i]
		}
	}
	return nil
}

// Config returns what the layers and profiles of a host say, without making documents of it; nil with errors that leave
// nothing of it.
func (r *Renderer) Config(in Input) (*machineconfig.Config, machineconfig.Report) {
	c, _, report := r.config(&in)
	return c, report
}

// config merges the layers and profiles of a host and fills in what the inventory knows.
// It returns what the configuration names, too.
func (r *Renderer) config(in *Input) (*machineconfig.Config, []inventory.Use, machineconfig.Report) {
	var report machineconfig.Report
	var layers []*layer.Layer
	add := func(origin, text string) {
		l, findings := r.layers.parse(text, origin)
		report = append(report, findings...)
		if l != nil {
			layers = append(layers, l)
		}
	}
	for _, l := range in.Layers {
		if l.Scope != inventory.ScopeHost {
			add(originOf(in, l), l.Config)
		}
	}
	for _, p := range in.Profiles {
		add("profile "+p.Name, p.Config)
	}
	for _, l := range in.Layers {
		if l.Scope == inventory.ScopeHost {
			add(originOf(in, l), l.Config)
		}
	}
	if in.Machine != nil {
		add(in.Machine.Origin, in.Machine.Config)
	}
	if report.HasErrors() {
		return nil, nil, report
	}
	c, findings := layer.Merge(layers...)
	if report = append(report, findings...); report.HasErrors() {
		return nil, nil, report
	}
	if in.Machine != nil {
		in.Machine.apply(in, c, &report)
	}
	machineconfig.Fill(c, in.Host, in.BootMAC)
	report = append(report, machineconfig.FillAddresses(c, in.Address)...)
	vars := r.vars(in)
	named, findings := template.Expand(c, vars)
	report = append(report, findings...)
	named = append(named, c.Names()...)
	owner := ""
	if p := documented(in.Profiles); p != nil {
		doc := p.Document
		owner = "profile " + p.Name
		if line, column, what, hint := machineconfig.TextFault(doc.Text); line > 0 {
			f := report.Errorf("/document", "encoding", "%s", what)
			f.Source, f.Hint = fmt.Sprintf("document:%d:%d", line, column), hint
		}
		if before, _, ok := strings.Cut(doc.Text, "\ufffd"); ok {
			f := report.Warnf("/document", "encoding", "holds U+FFFD, which stands where something could not read a byte of the file")
			f.Source = fmt.Sprintf("document:%d:%d", 1+strings.Count(before, "\n"), 1+len([]rune(before[strings.LastIndexByte(before, '\n')+1:])))
			f.Hint = "save the file as UTF-8 and give it again"
		}
		text, asked, findings := template.ExpandText("document", string(doc.Format), doc.Text, vars)
		report, named = append(report, findings...), append(named, asked...)
		explain(c, p, text)
		c.Document = &machineconfig.Passthrough{Format: string(doc.Format), Data: []byte(text)}
	}
	if c.PhoneHome.Enabled == nil || *c.PhoneHome.Enabled {
		c.PhoneHome.URL = late.Marker("session://report")
	}
	c.Host.InstanceID = instanceID(in)
	return c, in.uses(c, named, owner), report
}

func (r *Renderer) vars(in *Input) template.Vars {
	p := *in.profile()
	p.Parameters = map[string]string{}
	for _, wider := range in.Profiles {
		maps.Copy(p.Parameters, wider.Parameters)
	}
	return template.NewVars(in.Host, &p, in.Image.Release).WithAddresses(in.Address)
}

// instanceID names one life of a machine for its first-boot tools.
func instanceID(in *Input) string {
	sum := sha256.Sum256([]byte(string(in.Host.ID) + "\x00" + in.Image.Name + "\x00" + in.profile().Name + "\x00" + in.Generation))
	return "i-" + hex.EncodeToString(sum[:8])
}

// bootstrap asks the bootstrapper for its part and meets what it requires. It returns the join target, nil for none.
func (r *Renderer) bootstrap(in *Input, format string, t machineconfig.Target, c *machineconfig.Config) (target *inventory.JoinTarget, report machineconfig.Report) {
	spec := c.Bootstrap
	if spec == nil {
		return nil, nil
	}
	i := slices.IndexFunc(r.parts.Bootstrappers, func(b machineconfig.Bootstrapper) bool { return b.Kind() == spec.Kind })
	if i < 0 {
		var kinds []string
		for _, b := range r.parts.Bootstrappers {
			kinds = append(kinds, b.Kind())
		}
		report.Errorf("/bootstrap/kind", "unknown", "no bootstrapper is called %q", inventory.Clean(spec.Kind, 40)).Hint = "use one of " + strings.Join(kinds, ", ")
		return nil, report
	}
	input := machineconfig.BootstrapInput{Config: c, Spec: *spec, OS: t, Format: format}
	if spec.Target != "" {
		found, err := in.Target(spec.Target)
		if err != nil {
			return nil, append(report, finding("/bootstrap/target", err))
		}
		target, input.Target = &found, &found
	}
	if spec.Secret != "" && in.HasSecret(secretName(spec.Secret)) {
		value, err := in.Secret(secretName(spec.Secret))
		if err != nil {
			return target, append(report, finding("/bootstrap/secret", err))
		}
		input.Secret = value
	}
	if checker, ok := r.parts.Bootstrappers[i].(Checker); ok {
		report = append(report, checker.Findings(input)...)
	}
	a, req, err := r.parts.Bootstrappers[i].Emit(input)
	if err != nil {
		return target, append(report, finding("/bootstrap", err))
	}
	c.Activation = a
	if a != nil && a.Native == nil && r.parts.Adapt != nil {
		report = append(report, r.parts.Adapt(t, req, spec.Install, c)...)
	}
	return target, report
}

// finding says an error of a part as a finding.
func finding(path string, err error) machineconfig.Finding {
	f := machineconfig.Finding{Severity: machineconfig.SeverityError, Path: path, Code: "bootstrap", Message: err.Error()}
	if e, ok := errors.AsType[*inventory.Error](err); ok {
		f.Message, f.Hint, f.Refs = e.Msg, e.Hint, e.Refs
	}
	switch {
	case errors.Is(err, machineconfig.ErrUnsupportedFormat):
		f.Code = "unsupported-format"
	case errors.Is(err, machineconfig.ErrUnsupportedDirective):
		f.Code = "unsupported-directive"
	}
	return f
}

// Checker is a bootstrapper that has more to say than its error.
type Checker interface {
	Findings(in machineconfig.BootstrapInput) machineconfig.Report
}

// secretName takes the name out of secret://name#part; a bare name is one too.
func secretName(ref string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(ref, "secret://"), "#")
	return name
}

// fill takes over what a provisioner has rendered, with the uses of what is in it.
func (res *Result) fill(out *machineconfig.Rendered, uses []inventory.Use, target *inventory.JoinTarget) {
	for _, d := range out.Documents {
		refs := late.References(d.Data)
		res.References = append(res.References, refs...)
		res.Documents = append(res.Documents, inventory.RenderedDocument{
			Name: d.Name, ContentType: d.ContentType, Text: string(d.Data), Path: d.Path,
			IsSecret: slices.ContainsFunc(refs, late.IsSecret),
		})
	}
	slices.Sort(res.References)
	res.References = slices.Compact(res.References)
	if target != nil {
		uses = append(uses, ofTarget(target, res.References)...)
	}
	res.Uses = sorted(uses)
	res.Args = out.Args
	b, err := json.Marshal(struct {
		Format    string
		Documents []inventory.RenderedDocument
		Args      []string
		Uses      []inventory.Use `json:",omitempty"`
	}{res.Format, res.Documents, res.Args, res.Uses})
	if err != nil {
		panic(fmt.Sprintf("strings always marshal: %v", err))
	}
	sum := sha256.Sum256(b)
	res.Digest = inventory.Digest("sha256:" + hex.EncodeToString(sum[:]))
}

// secrets reports the secrets that a rendering refers to and that do not exist, or do not hold what is wanted of them.
func (r *Renderer) secrets(in *Input, c *machineconfig.Config, refs []string) (report machineconfig.Report) {
	said := map[string]bool{}
	for _, ref := range refs {
		name := secretName(ref)
		if !strings.HasPrefix(ref, "secret://") || said[name] || in.HasSecret(name) {
			continue
		}
		said[name] = true
		path := usedAt(c, name)
		f := report.Errorf(path, "missing-secret", "there is no secret %q", inventory.Clean(name, 64))
		f.Hint = "make it with: slipway secret set " + inventory.Clean(name, 64)
	}
	for _, ref := range refs {
		name, part, hasPart := strings.Cut(strings.TrimPrefix(ref, "secret://"), "#")
		if !hasPart || !strings.HasPrefix(ref, "secret://") || said[name] {
			continue
		}
		value, err := in.Secret(name)
		if err == nil {
			_, err = r.Part(value, part)
		}
		if err != nil {
			f := finding(usedAt(c, name), err)
			f.Message = "secret " + inventory.Clean(name, 64) + ": " + f.Message
			report = append(report, f)
		}
	}
	report = append(report, values(in, c)...)
	report.Locate(c)
	return report
}

// usedAt finds where a configuration names a secret by itself, "" when it stands inside of some text.
func usedAt(c *machineconfig.Config, name string) string {
	is := func(ref string) bool { return ref != "" && secretName(ref) == name }
	for _, u := range c.Users {
		if is(u.PasswordHash) {
			return "/users/" + u.Name + "/passwordHash"
		}
	}
	for _, f := range c.Files {
		if is(f.Secret) {
			return pointer.Add("/files", f.Path) + "/secret"
		}
	}
	for _, l := range c.Storage.LUKS {
		if is(l.Key) {
			return "/storage/luks/" + l.Name + "/key"
		}
	}
	if c.Bootstrap != nil && is(c.Bootstrap.Secret) {
		return "/bootstrap/secret"
	}
	return ""
}

// Part returns a piece of a secret's value, for the reference secret://name#part. That bootstrapper takes out kind:what;
// any other part is a key of a YAML map of texts.
func (r *Renderer) Part(value []byte, part string) ([]byte, error) {
	kind, what, _ := strings.Cut(part, ":")
	for _, b := range r.parts.Bootstrappers {
		if p, ok := b.(Parter); ok && b.Kind() == kind {
			return p.Part(value, what)
		}
	}
	return mapPart(value, part)
}

// Parter is a bootstrapper whose secret is a document that it takes apart. The references hold all that it needs besides
// the secret: at delivery there is no configuration any more.
type Parter interface {
	Part(secret []byte, what string) ([]byte, error)
}

var errNoMap = inventory.Errorf(inventory.Invalid, "the secret is not a map of names to texts").
	WithHint("write its value as YAML: a name and a text for each part")
