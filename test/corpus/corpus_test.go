package corpus

import (
	"testing"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

func TestEveryCaseBuilds(t *testing.T) {
	cases, err := All()
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) < 44 {
		t.Errorf("there are %d cases; at least 44 are promised", len(cases))
	}
}

func TestTheCorpusUsesEveryFieldThatLayersCanSet(t *testing.T) {
	cases, err := All()
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{"/bootstrap": true, "/bootstrap/native": true, "/bootstrap/prelude": true, "/phoneHome": true} // set by the renderer
	for _, c := range cases {
		for _, u := range machineconfig.Uses(c.Config) {
			used[u.Field] = true
		}
	}
	for _, f := range machineconfig.Fields() {
		if !used[f.Path] {
			t.Errorf("no case uses %s", f.Path)
		}
	}
}

func TestLayersAndTemplatesOfTheCorpusSayWhatTheyShould(t *testing.T) {
	cases, err := All()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*machineconfig.Config{}
	for _, c := range cases {
		byName[c.Name] = c.Config
	}
	l := byName["layers"]
	if f := l.Files; len(f) != 1 || f[0].Text != "" || f[0].Base64 != "bmFycm93" || f[0].Mode != 0o600 {
		t.Errorf("files %+v", f)
	}
	if k := l.Kernel; len(k.Args) != 1 || k.Args[0] != "debug" || len(k.Sysctl) != 1 || k.Sysctl["vm.swappiness"] != "10" {
		t.Errorf("kernel %+v", k)
	}
	if p := l.Packages.Install; len(p) != 2 || p[1] != "openssh-client" || len(l.Users[0].Groups) != 2 {
		t.Errorf("packages %v, users %+v", p, l.Users)
	}
	const want = "name=node-1\nserial=SN-4711\nrack=r1 unit=7\ntier=gold\nzone=ZONE-1\naddress=192.0.2.7\n" +
		"mac=52:54:00:12:34:56\nmac=52:54:00:12:34:57\nmac=52:54:00:12:34:58\nrole=worker\n"
	if got := byName["file-template"].Files[0].Text; got != want {
		t.Errorf("the template says %q; want %q", got, want)
	}
	if got := byName["file-braces"].Files[0].Text; got != "{{ .Labels.severity }} is a template of somebody else, ${VAR} and $1 too\n" {
		t.Errorf("braces became %q", got)
	}
	if !late.HasMarker(byName["file-secret"].Files[1].Text) {
		t.Error("the secret has no marker")
	}
	again, err := All()
	if err != nil {
		t.Fatal(err)
	}
	again[0].Config.Host.Hostname = "changed"
	if cases[0].Config.Host.Hostname == "changed" {
		t.Error("two calls of All share configurations")
	}
}

func TestBuildSaysWhichCaseIsWrong(t *testing.T) {
	for name, layer := range map[string]string{
		"a key": "host: {hostnme: a}", "a template": "files: [{path: /a, text: '{{ .Nope }}'}]", "a rule": "files: [{path: a, text: b}]",
		"a warning": "files: [{path: /a, $remove: true}]",
	} {
		if _, err := Build(name, layer); err == nil {
			t.Errorf("%s was built", name)
		}
	}
}
