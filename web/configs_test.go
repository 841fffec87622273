package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

const canary = "correct-horse-battery-staple"

// plainFormat is a format that says host names, locales and files, one a line; it knows no bonds.
type plainFormat struct{}

func (plainFormat) Kind() string { return "plain" }
func (plainFormat) Documents() []inventory.DocumentFormat {
	return []inventory.DocumentFormat{inventory.DocPreseed}
}

func (plainFormat) Capabilities(t machineconfig.Target) machineconfig.Capabilities {
	cells := machineconfig.Capabilities{}
	for _, f := range machineconfig.Fields() {
		cells[f.Path] = machineconfig.Capability{Support: machineconfig.Lossless}
	}
	cells["/host/locale"] = machineconfig.Capability{Support: machineconfig.Emulated, Note: "by version " + t.Tool}
	cells["/network/bonds"] = machineconfig.Capability{Support: machineconfig.Unsupported, Note: "use one interface"}
	return cells
}

func (plainFormat) Render(_ machineconfig.Target, c *machineconfig.Config) (*machineconfig.Rendered, machineconfig.Report) {
	var b strings.Builder
	fmt.Fprintf(&b, "hostname %s\nlocale %s\n", c.Host.Hostname, c.Host.Locale)
	for _, f := range c.Files {
		fmt.Fprintf(&b, "file %s\n", f.Path)
		if f.Secret != "" {
			b.WriteString(late.Marker(f.Secret) + "\n")
		}
	}
	return &machineconfig.Rendered{
		Documents: []machineconfig.Document{{Name: "plain.cfg", ContentType: "text/plain", Data: []byte(b.String())}}, Args: []string{"plain=1"},
	}, nil
}

// rendering stores one for a host, with a secret in it.
func (r *rig) rendering(host string) {
	r.t.Helper()
	err := r.store.Write(r.t.Context(), func(tx inventory.Tx) error {
		h, err := tx.FindHostByName(host)
		if err != nil {
			return err
		}
		return tx.SaveRendering(inventory.Rendering{
			Digest: inventory.Digest("sha256:" + strings.Repeat("b", 64)), HostID: h.ID, Profile: "worker", Revision: 1, Image: "debian",
			Format: "plain", CreatedAt: testStart,
			Documents: []inventory.RenderedDocument{{Name: "plain.cfg", Text: "password " + late.Marker("secret://db"), IsSecret: true}},
		})
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func jsonText(s string) string { return fmt.Sprintf("%q", s) }

func TestAProfileWithErrorsIsNotSaved(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	put := func(config string, query string) answer {
		return r.ask("PUT", "/api/v1/profiles/worker"+query, `{"image":"debian","selector":"rack=r1","config":`+jsonText(config)+`}`)
	}
	a := put("host:\n  locale: C\n  colour: blue\n", "")
	p := a.problem(t)
	if a.status != http.StatusUnprocessableEntity || len(p.Findings) == 0 || !strings.Contains(p.Detail, "profile worker was not saved") {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if f := p.Findings[0]; f.Source != "profile worker:3:3" || f.Path != "/host/colour" || f.Severity != machineconfig.SeverityError || f.Hint == "" {
		t.Errorf("finding %+v", f)
	}
	// What only the format can say is found by rendering.
	a = put("network: {bonds: [{name: bond0, members: [eno1, eno2], mode: active-backup}]}\n", "")
	if p = a.problem(t); a.status != 422 || len(p.Findings) == 0 || !strings.Contains(a.body, "not-expressible") || !strings.Contains(p.Detail, "1 of its 1 hosts") {
		t.Errorf("%d %s", a.status, a.body)
	}
	a = put("files: [{path: /etc/pw, secret: 'secret://db'}]\n", "?dryRun=true")
	if a.status != 422 || !strings.Contains(a.body, "missing-secret") {
		t.Errorf("%d %s", a.status, a.body)
	}
	var stored inventory.Profile
	r.must(200, &stored, "GET", "/api/v1/profiles/worker", "")
	if stored.Config != "" || stored.Revision != 1 {
		t.Errorf("stored after refusals: %+v", stored)
	}
	var d rest.Diff
	if a := put("host: {locale: C}\n", "?dryRun=true"); a.status != 200 {
		t.Fatal(a.body)
	} else {
		r.must(200, &d, "PUT", "/api/v1/profiles/worker?dryRun=true", `{"image":"debian","selector":"rack=r1","config":"host: {locale: C}\n"}`)
	}
	if d.Impact == nil || d.Impact.HostN != 1 || d.Impact.ChangedN != 1 || len(d.Impact.Hosts) != 1 || d.Impact.Hosts[0].Host != "r1-u01" ||
		!strings.Contains(d.Impact.Hosts[0].Diff, "+locale C") {
		t.Errorf("impact %+v", d.Impact)
	}
	var i configuration.Impact
	r.must(200, &i, "POST", "/api/v1/profiles/worker/check", `{"image":"debian","selector":"rack=r1","config":"host: {colour: x}\n"}`)
	if i.FailedN != 1 || !i.Findings.HasErrors() {
		t.Errorf("impact %+v", i)
	}
	if a := put("host: {locale: C}\n", ""); a.status != 200 {
		t.Fatal(a.body)
	}
	r.must(201, nil, "POST", "/api/v1/profiles", `{"name":"unused","image":"debian","config":"host: {locale: C}\n"}`)
	if a := r.ask("POST", "/api/v1/profiles", `{"name":"bad","image":"debian","config":"host: [\n"}`); a.status != 422 || len(a.problem(t).Findings) == 0 {
		t.Errorf("a profile without hosts: %d %s", a.status, a.body)
	}
	if a := r.ask("POST", "/api/v1/profiles", `{"name":"worker","image":"debian","config":"host: [\n"}`); a.status != 409 {
		t.Errorf("a profile that exists: %d %s", a.status, a.body)
	}
	r.must(200, &i, "POST", "/api/v1/profiles/worker/check", `{"image":"none","selector":"rack=r1"}`)
	if !i.Findings.HasErrors() {
		t.Errorf("check with an image that is not there: %+v", i)
	}
}

func TestRevisionsAreListedShownAndRolledBackTo(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	for _, locale := range []string{"aa_AA", "bb_BB", "bb_BB"} {
		r.must(200, nil, "PUT", "/api/v1/profiles/worker", `{"image":"debian","selector":"rack=r1","config":"host: {locale: `+locale+`}\n"}`)
	}
	var l, more rest.List[wire.Revision[inventory.Profile]]
	r.must(200, &l, "GET", "/api/v1/profiles/worker/revisions?limit=2", "")
	if len(l.Items) != 2 || l.Items[0].N != 3 || l.Items[0].Body != nil || strings.Join(l.Items[0].Changed, " ") != "config" || l.Next != "2" {
		t.Errorf("revisions %+v", l)
	}
	r.must(200, &more, "GET", "/api/v1/profiles/worker/revisions?after=2", "")
	if len(more.Items) != 1 || more.Items[0].N != 1 || len(more.Items[0].Changed) != 0 {
		t.Errorf("the rest of the revisions %+v", more)
	}
	var one wire.Revision[inventory.Profile]
	r.must(200, &one, "GET", "/api/v1/profiles/worker/revisions/2", "")
	if one.Body.Config != "host: {locale: aa_AA}\n" || one.Changed[0] != "config" {
		t.Errorf("revision %+v", one)
	}
	r.must(404, nil, "GET", "/api/v1/profiles/worker/revisions/9", "")
	r.must(404, nil, "GET", "/api/v1/profiles/nobody/revisions", "")
	r.must(422, nil, "GET", "/api/v1/profiles/worker/revisions?after=x", "")
	r.must(404, nil, "POST", "/api/v1/profiles/worker/rollback", `{"revision":9}`)
	var d rest.Diff
	r.must(200, &d, "POST", "/api/v1/profiles/worker/rollback?dryRun=true", `{"revision":2}`)
	if d.Impact == nil || d.Impact.ChangedN != 1 || d.Changes[0].Field != "config" {
		t.Errorf("dry run of a rollback: %+v", d)
	}
	var p inventory.Profile
	r.must(200, &p, "POST", "/api/v1/profiles/worker/rollback", `{"revision":2}`)
	if p.Config != "host: {locale: aa_AA}\n" || p.Revision != 4 {
		t.Errorf("rolled back: %+v", p)
	}
	if !strings.Contains(r.must(200, nil, "GET", "/api/v1/events?limit=100", "").body, "profile worker rolled back to revision 2 (config)") {
		t.Error("no event says that it was rolled back")
	}
	r.must(204, nil, "DELETE", "/api/v1/profiles/worker", "")
	r.must(200, &p, "POST", "/api/v1/profiles/worker/rollback", `{"revision":3}`)
	if p.Config != "host: {locale: bb_BB}\n" || p.Revision != 5 || p.Version != 1 {
		t.Errorf("brought back: %+v", p)
	}
}

func TestAHostPinsARevision(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.must(422, nil, "PATCH", "/api/v1/hosts/r1-u01", `{"profileRevision":1}`) // of which profile?
	r.must(422, nil, "PATCH", "/api/v1/hosts/r1-u01", `{"profile":"worker","profileRevision":2}`)
	var h inventory.Host
	r.must(200, &h, "PATCH", "/api/v1/hosts/r1-u01", `{"profile":"worker","profileRevision":1}`)
	if h.ProfileRevision != 1 {
		t.Errorf("host %+v", h)
	}
	r.must(201, nil, "POST", "/api/v1/profiles", `{"name":"other","image":"debian"}`)
	h = inventory.Host{}
	r.must(200, &h, "PATCH", "/api/v1/hosts/r1-u01", `{"profile":"other"}`)
	if h.ProfileRevision != 0 || h.Profile != "other" {
		t.Errorf("another profile keeps the pin of the first: %+v", h)
	}
}

func TestLayersAreCalledByKeysWithHostNames(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.must(200, nil, "PUT", "/api/v1/profiles/worker", `{"image":"debian","selector":"rack=r1","config":"host: {locale: C}\n"}`)
	at := func(key string) string { return "/api/v1/layers/" + url.PathEscape(key) }
	var l inventory.Layer
	r.must(200, &l, "PUT", at("host/r1-u01"), `{"config":"host: {locale: hh_HH}\n"}`)
	if l.Scope != inventory.ScopeHost || l.Name != "r1-u01" || l.Revision != 1 {
		t.Errorf("layer %+v", l)
	}
	r.must(200, &l, "GET", at("host/52-54-00-AA-00-01"), "")
	if l.Name != "r1-u01" {
		t.Errorf("found by MAC: %+v", l)
	}
	r.must(200, &l, "PUT", at("rack/r1"), `{"scope":"rack","name":"r1","config":"host: {locale: rr_RR}\n"}`)
	r.must(422, nil, "PUT", at("rack/r1"), `{"scope":"rack","name":"r2","config":""}`)
	r.must(404, nil, "PUT", at("host/nobody"), `{"config":""}`)
	r.must(422, nil, "GET", at("row/1"), "")
	r.must(404, nil, "GET", at("site/x"), "")
	a := r.ask("PUT", at("rack/r1"), `{"config":"host: {colour: R}\n"}`)
	if p := a.problem(t); a.status != 422 || len(p.Findings) == 0 || !strings.HasPrefix(p.Findings[0].Source, "layer rack/r1:1:") {
		t.Errorf("%d %s", a.status, a.body)
	}
	a = r.ask("PUT", at("site/nowhere"), `{"config":"host: {colour: R}\n"}`)
	if p := a.problem(t); a.status != 422 || len(p.Findings) == 0 {
		t.Errorf("a layer without hosts: %d %s", a.status, a.body)
	}
	var v configuration.Preview
	r.must(200, &v, "GET", "/api/v1/hosts/r1-u01/render", "")
	if len(v.Documents) != 1 || !strings.Contains(v.Documents[0].Text, "locale hh_HH") || v.Provenance["/host/locale"] == "" {
		t.Errorf("preview %+v", v)
	}
	var i configuration.Impact
	r.must(200, &i, "POST", at("host/r1-u01")+"/check", `{"config":"host: {locale: xx_XX}\n"}`)
	if i.HostN != 1 || i.ChangedN != 1 {
		t.Errorf("impact %+v", i)
	}
	var list rest.List[inventory.Layer]
	r.must(200, &list, "GET", "/api/v1/layers?limit=1", "")
	if len(list.Items) != 1 || list.Items[0].Name != "r1-u01" {
		t.Fatalf("layers %+v", list)
	}
	r.must(200, &list, "GET", "/api/v1/layers?after="+url.QueryEscape(list.Next), "")
	if len(list.Items) != 1 || list.Items[0].Key() != "rack/r1" {
		t.Errorf("the rest of the layers: %+v", list)
	}
	r.must(200, nil, "GET", at("host/r1-u01")+"/revisions", "")
	r.must(200, &l, "POST", at("rack/r1")+"/rollback", `{"revision":1}`)
	r.must(204, nil, "DELETE", at("host/r1-u01"), "")
	r.must(404, nil, "DELETE", at("host/r1-u01"), "")
}

func TestADraftIsRenderedAndNotStored(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.must(200, nil, "PUT", "/api/v1/profiles/worker", `{"image":"debian","selector":"rack=r1","config":"host: {locale: C}\n"}`)
	r.rendering("r1-u01")
	var v configuration.Preview
	r.must(200, &v, "POST", "/api/v1/hosts/r1-u01/render", `{"image":"debian","config":"host: {locale: dd_DD}\n"}`)
	if len(v.Documents) != 1 || !strings.Contains(v.Documents[0].Text, "locale dd_DD") || v.Revision != 0 || v.Digest == "" || v.Since == "" {
		t.Errorf("draft %+v", v)
	}
	if !strings.Contains(v.Diff, "-password «secret://db»") || !strings.Contains(v.Diff, "+locale dd_DD") {
		t.Errorf("difference %s", v.Diff)
	}
	r.must(200, &v, "POST", "/api/v1/hosts/r1-u01/render", `{"image":"debian","config":"host: {colour: D}\n"}`)
	if !v.Findings.HasErrors() || v.Findings[0].Source != "profile draft:1:8" || len(v.Documents) != 0 {
		t.Errorf("draft with an error %+v", v)
	}
	r.must(422, nil, "POST", "/api/v1/hosts/r1-u01/render", `{"image":"debian","document":{"format":"word","text":""}}`)
	r.must(404, nil, "POST", "/api/v1/hosts/nobody/render", `{"image":"debian"}`)
	r.must(200, &v, "GET", "/api/v1/hosts/r1-u01/render", "")
	if v.Revision != 2 || !strings.Contains(v.Documents[0].Text, "locale C") {
		t.Errorf("preview %+v", v)
	}
	var l rest.List[inventory.Rendering]
	r.must(200, &l, "GET", "/api/v1/hosts/r1-u01/renderings", "")
	if len(l.Items) != 1 || len(l.Items[0].Documents) != 0 {
		t.Errorf("renderings %+v", l)
	}
	var one inventory.Rendering
	r.must(200, &one, "GET", "/api/v1/renderings/"+string(l.Items[0].Digest), "")
	if one.Documents[0].Text != "password «secret://db»" {
		t.Errorf("rendering %+v", one)
	}
	r.must(404, nil, "GET", "/api/v1/renderings/"+strings.Repeat("c", 64), "")
	r.must(422, nil, "GET", "/api/v1/renderings/x", "")
}

func TestAHostThatNothingIsForHasAnAnswer(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	for _, host := range []string{"r2-u01", "host-525400aa000a"} { // no profile matches; not accepted
		a := r.ask("GET", "/api/v1/hosts/"+host+"/render", "")
		if a.status >= 500 {
			t.Errorf("%s: %d %s\n%s", host, a.status, a.body, r.logged())
		}
	}
}

func TestTheCapabilityTableIsForATarget(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	var c wire.CapabilityTable
	r.must(200, &c, "GET", "/api/v1/capabilities?image=debian", "")
	if c.Target != "debian 12" || len(c.Formats) != 1 || !c.Formats[0].IsRead || c.Formats[0].Tool != "1" || len(c.Fields) < 20 ||
		c.Formats[0].Cells["/network/bonds"] != (wire.CapabilityCell{Support: "unsupported", Note: "use one interface"}) {
		t.Errorf("table %+v", c)
	}
	if note := c.Formats[0].Cells["/host/locale"].Note; note != "by version 1" {
		t.Errorf("the format was not asked about the version of the image's tool: %q", note)
	}
	r.must(200, &c, "GET", "/api/v1/capabilities", "")
	if c.Formats[0].IsRead {
		t.Errorf("table of no target: %+v", c)
	}
	r.must(200, &c, "GET", "/api/v1/capabilities?os=debian&release=12", "")
	r.must(404, nil, "GET", "/api/v1/capabilities?os=beos", "")
	r.must(404, nil, "GET", "/api/v1/capabilities?image=none", "")
}

func TestJoinTargets(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.must(422, nil, "POST", "/api/v1/targets", `{"name":"prod","endpoint":"k:6443","kubeconfig":"admin"}`)
	r.must(200, nil, "PUT", "/api/v1/secrets/admin", `{"value":"x"}`)
	r.must(201, nil, "POST", "/api/v1/targets", `{"name":"prod","endpoint":"k:6443","kubeconfig":"admin"}`)
	r.must(422, nil, "PUT", "/api/v1/targets/prod", `{"endpoint":"k"}`)
	r.must(409, nil, "DELETE", "/api/v1/secrets/admin", "")
	var c wire.TargetCheck
	r.must(200, &c, "GET", "/api/v1/targets/prod/check", "")
	if c.IsGood || c.Results[0].Hint != "start it" {
		t.Errorf("check %+v", c)
	}
	if a := r.must(200, nil, "GET", "/api/v1/targets/prod/rbac", ""); a.body != "kind: ClusterRole\n" {
		t.Errorf("rbac %q", a.body)
	}
	r.must(404, nil, "GET", "/api/v1/targets/none/rbac", "")
	r.must(404, nil, "GET", "/api/v1/targets/none/tokens", "")
	err := r.store.Write(t.Context(), func(tx inventory.Tx) error {
		return tx.SaveJoinToken(inventory.JoinToken{ID: "abcdef", Target: "prod", State: inventory.TokenMinted, Sealed: []byte(canary)})
	})
	if err != nil {
		t.Fatal(err)
	}
	if a := r.must(200, nil, "GET", "/api/v1/targets/prod/tokens", ""); !strings.Contains(a.body, `"abcdef"`) || strings.Contains(a.body, "ealed") {
		t.Errorf("tokens %s", a.body)
	}
	// A profile that names it keeps it.
	err = r.store.Write(t.Context(), func(tx inventory.Tx) error {
		return tx.Profiles().Create(&inventory.Profile{Name: "node", Image: "debian", Config: "bootstrap: {kind: kubeadm, target: prod}\n"}, testStart)
	})
	if err != nil {
		t.Fatal(err)
	}
	if a := r.ask("DELETE", "/api/v1/targets/prod", ""); a.status != 409 || !strings.Contains(a.body, "profile node") {
		t.Errorf("%d %s", a.status, a.body)
	}
	r.must(204, nil, "DELETE", "/api/v1/profiles/node", "")
	r.must(204, nil, "DELETE", "/api/v1/targets/prod", "")
	r.must(204, nil, "DELETE", "/api/v1/secrets/admin", "")
}

func TestAnImportOfConfigsIsReadable(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	const file = "profiles:\n- name: web\n  image: debian\n  config: |\n    host: {colour: bl_BL}\n"
	a := r.ask("POST", "/api/v1/transfer", file, "Content-Type", "text/plain")
	if p := a.problem(t); a.status != 422 || len(p.Findings) == 0 || p.Findings[0].Source != "profile web:1:8" {
		t.Errorf("%d %s", a.status, a.body)
	}
	r.must(200, nil, "POST", "/api/v1/transfer", strings.Replace(file, "colour", "locale", 1)+"layers:\n- {layer: host/r1-u01, config: \"host: {locale: xx_XX}\\n\"}\n", "Content-Type", "text/plain")
	out := r.must(200, nil, "GET", "/api/v1/transfer?noun=all", "").body
	if !strings.Contains(out, "layer: host/r1-u01") || !strings.Contains(out, "host: {locale: bl_BL}") {
		t.Errorf("export:\n%s", out)
	}
}

func TestALayerThatHostsNeedIsNotDeleted(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.must(200, nil, "PUT", "/api/v1/layers/global", `{"config":"network: {interfaces: [{name: eth1, dhcp4: true}]}\n"}`)
	r.must(200, nil, "PUT", "/api/v1/profiles/worker",
		`{"image":"debian","selector":"rack=r1","config":"network: {vlans: [{name: vlan7, parent: eth1, id: 7, dhcp4: true}]}\n"}`)
	a := r.ask("DELETE", "/api/v1/layers/global", "")
	if p := a.problem(t); a.status != 422 || len(p.Findings) == 0 || !strings.Contains(a.body, "eth1") {
		t.Errorf("%d %s", a.status, a.body)
	}
	r.must(200, nil, "PUT", "/api/v1/profiles/worker", `{"image":"debian","selector":"rack=r1","config":""}`)
	r.must(204, nil, "DELETE", "/api/v1/layers/global", "")
}

func TestAProfileIsForThoseItSelectsAndThoseWhoseMachineNamesIt(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	hosts := func() string {
		var l rest.List[string]
		r.must(200, &l, "GET", "/api/v1/profiles/worker/hosts", "")
		return strings.Join(l.Items, " ")
	}
	if got := hosts(); got != "r1-u01" {
		t.Errorf("by its selector: %q", got)
	}
	r.adopted()
	if got := hosts(); got != "r1-u01 r2-u01" {
		t.Errorf("with the host of a machine: %q", got)
	}
}

func TestFilesBesideADocumentAreUploadedWithIt(t *testing.T) {
	r := newRig(t, nil)
	r.teams()
	const document = `"document":{"format":"butane","text":"variant: fcos\nversion: 1.5.0\nstorage:\n  files:\n    - {path: /etc/motd, contents: {local: motd}}\n"`
	body := func(files string) string { return `{"name":"bu","image":"debian",` + document + files + `}}` }
	for _, path := range []string{"/api/v1/profiles", "/api/v1/profiles/bu/check"} {
		a := r.ask("POST", path, body(`,"files":{"../motd":"aGVsbG8="}`))
		if e := a.problem(t); a.status != 422 || !strings.Contains(e.Detail, "no name of a file in the folder") || len(e.Errors) != 1 || e.Errors[0].Location != "body.document.files" {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	// the rig's image reads no Butane: that is said only of a document whose files were taken
	if a := r.ask("POST", "/api/v1/profiles", body(`,"files":{"motd":"aGVsbG8="}`)); !strings.Contains(a.body, "cannot be given a document in butane") {
		t.Errorf("with its files: %d %s", a.status, a.body)
	}
}
