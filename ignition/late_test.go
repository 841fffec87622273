package ignition

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// nasty is a secret that every encoding but the right one would break.
const nasty = "a\"b\\c%41 'x' $HOME `id` #?&\n\tü€"

const greeting = `a"b\c%41 'x'`

func inject(t *testing.T, doc []byte) (out []byte, storage map[string]string, units map[string]string) {
	t.Helper()
	out, err := late.Inject(doc, func(ref string) ([]byte, error) {
		switch {
		case strings.HasPrefix(ref, "session://"):
			return []byte("http://192.0.2.1/boot/x"), nil
		case ref == "secret://greeting": // a unit's option is one line
			return []byte(greeting), nil
		}
		return []byte(nasty), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found := Validate(out); len(found) > 0 {
		t.Fatalf("after the injection Ignition refuses it: %v\n%s", found, out)
	}
	var d struct {
		Storage struct {
			Files []struct {
				Path     string `json:"path"`
				Contents struct {
					Source string `json:"source"`
				} `json:"contents"`
			} `json:"files"`
		} `json:"storage"`
		Systemd struct {
			Units []struct{ Name, Contents string } `json:"units"`
		} `json:"systemd"`
	}
	if err := json.Unmarshal(out, &d); err != nil {
		t.Fatal(err)
	}
	storage, units = map[string]string{}, map[string]string{}
	for _, f := range d.Storage.Files {
		text, ok := strings.CutPrefix(f.Contents.Source, "data:,")
		if !ok {
			storage[f.Path] = f.Contents.Source
			continue
		}
		if text, err = url.PathUnescape(text); err != nil {
			t.Fatal(err)
		}
		storage[f.Path] = text
	}
	for _, u := range d.Systemd.Units {
		units[u.Name] = u.Contents
	}
	return out, storage, units
}

func TestLateValuesArriveAsTheyAre(t *testing.T) {
	c := machineconfig.Config{Files: sampleFiles, Users: sampleUsers, Units: sampleUnits[:1]}
	doc := render(t, onFCOS, &c).Documents[0].Data
	out, files, units := inject(t, doc)
	for path, want := range map[string]string{
		"/etc/token": nasty, "/etc/mixed": "user=a\npassword=" + nasty + "\n", "/opt/here": "http://192.0.2.1/boot/x/artefact/x",
	} {
		if files[path] != want {
			t.Errorf("%s holds %q, want %q", path, files[path], want)
		}
	}
	if !strings.Contains(units["hello.service"], greeting) {
		t.Errorf("the unit holds %q", units["hello.service"])
	}
	var d struct {
		Passwd struct {
			Users []struct{ PasswordHash string }
		}
	}
	if err := json.Unmarshal(out, &d); err != nil || d.Passwd.Users[0].PasswordHash != nasty {
		t.Errorf("the password is %q, %v", d.Passwd.Users, err)
	}
}

func TestLateValuesInAUsersDocument(t *testing.T) {
	secret := late.Marker("secret://x")
	hidden := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("y", 100) + secret))
	long := strings.Repeat("a long line that compresses well\\n", 100)
	butane := fmt.Sprintf(`variant: flatcar
version: 1.0.0
storage:
  files:
    - path: /etc/long
      contents:
        inline: "%s%s"
    - path: /etc/hidden
      contents:
        source: "data:;base64,%s"
    - path: /etc/fetched
      contents:
        source: %s/x
        verification: {hash: "sha256-e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}
`, long, secret, hidden, late.Marker("session://base"))
	c := machineconfig.Config{Document: &machineconfig.Passthrough{Format: "butane", Data: []byte(butane)}}
	_, files, _ := inject(t, render(t, onFlatcar, &c).Documents[0].Data)
	if !strings.HasSuffix(files["/etc/long"], "well\n"+nasty) || files["/etc/hidden"] != strings.Repeat("y", 100)+nasty {
		t.Errorf("got %q and %q", files["/etc/long"], files["/etc/hidden"])
	}
	if files["/etc/fetched"] != "http://192.0.2.1/boot/x/x" {
		t.Errorf("got %q", files["/etc/fetched"])
	}
}

func TestLateValuesInScriptsAreWords(t *testing.T) {
	secret := late.Marker("secret://x")
	c := machineconfig.Config{
		Activation: &machineconfig.Activation{Exec: []string{"printf", "%s|", "it's " + secret, secret + secret, "$HOME"}},
		Files: []machineconfig.File{{
			Path: "/opt/s.sh", Content: machineconfig.Content{Text: "#!/bin/sh\nprintf %s " + late.ShellWord("<"+secret+">") + "\n"},
		}},
	}
	_, files, _ := inject(t, render(t, onFlatcar, &c).Documents[0].Data)
	for path, want := range map[string]string{
		"/etc/slipway/bootstrap.sh": "it's " + nasty + "|" + nasty + nasty + "|$HOME|", "/opt/s.sh": "<" + nasty + ">",
	} {
		got, err := exec.Command("bash", "-c", files[path]).Output()
		if err != nil || string(got) != want {
			t.Errorf("%s prints %q, %v, want %q", path, got, err, want)
		}
	}
}

func TestLargeTextIsCompressedUnlessItHoldsAMarker(t *testing.T) {
	long := strings.Repeat("all work and no play\n", 1000)
	c := machineconfig.Config{Files: []machineconfig.File{
		{Path: "/etc/plain", Content: machineconfig.Content{Text: long}},
		{Path: "/etc/late", Content: machineconfig.Content{Text: long + late.Marker("secret://x")}},
	}}
	doc := string(render(t, onFCOS, &c).Documents[0].Data)
	if strings.Count(doc, `"compression":"gzip"`) != 1 || !strings.Contains(doc, late.MarkerIn("secret://x", late.Percent)) {
		t.Errorf("%d are compressed", strings.Count(doc, "gzip"))
	}
}

func TestOddCharactersReachAUnit(t *testing.T) {
	want := "[Service]\nEnvironment=X=\x7f\u0080\u0085\u2028\ufeff\u2029<>&\n"
	c := machineconfig.Config{Units: []machineconfig.Unit{{Name: "a.service", Contents: want}}}
	_, _, units := inject(t, render(t, onFCOS, &c).Documents[0].Data)
	if units["a.service"] != want {
		t.Errorf("got %q, want %q", units["a.service"], want)
	}
}
