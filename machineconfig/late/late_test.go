package late

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// awkward is a value that breaks whatever does not encode it.
const awkward = "a'b\"c\\d\n% #{{x}} $HOME `id` é\u0085\u007f🙂"

func value(string) ([]byte, error) { return []byte(awkward), nil }

func TestALateValueComesOutAsItIs(t *testing.T) {
	late := Marker("secret://x")
	inject := func(doc string) string {
		t.Helper()
		out, err := Inject([]byte(doc), value)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	want := "before " + awkward + " after"
	text := "before " + late + " after"
	if got := inject(text); got != want {
		t.Errorf("raw: %q", got)
	}
	quoted, _ := json.Marshal(text)
	var got string
	if err := json.Unmarshal([]byte(inject(Retag(string(quoted), JSONString))), &got); err != nil || got != want {
		t.Errorf("JSON: %q %v", got, err)
	}
	got = ""
	if err := yaml.Unmarshal([]byte(inject(Retag(string(quoted), JSONString))), &got); err != nil || got != want {
		t.Errorf("YAML: %q %v", got, err)
	}
	u, err := url.PathUnescape(strings.TrimPrefix(inject(DataURL(text)), "data:,"))
	if err != nil || u != want {
		t.Errorf("data URL: %q %v", u, err)
	}
	b, err := base64.StdEncoding.DecodeString(inject(MarkerIn("secret://x", Base64)))
	if err != nil || string(b) != awkward {
		t.Errorf("base64: %q %v", b, err)
	}
	out, err := exec.Command("sh", "-c", "printf %s "+inject(ShellWord(text))).Output()
	if err != nil || string(out) != want {
		t.Errorf("shell: %q %v", out, err)
	}
}

func TestReferencesAndRedaction(t *testing.T) {
	doc := []byte(Marker("secret://b") + Marker("secret://a#k") + DataURL(Marker("secret://b")) + MarkerIn("session://report", JSONString))
	if got := strings.Join(References(doc), " "); got != "secret://a#k secret://b session://report" {
		t.Errorf("references %s", got)
	}
	if got := string(Redact(doc)); got != "«secret://b»«secret://a#k»data:,«secret://b»«session://report»" {
		t.Errorf("redacted %s", got)
	}
	if !HasMarker(string(doc)) || HasMarker("SLIPWAYLATE") {
		t.Error("HasLate")
	}
	for ref, want := range map[string]bool{"secret://a": true, "join://p/token": true, "session://report": false} {
		if IsSecret(ref) != want {
			t.Errorf("%s is a secret: %v", ref, !want)
		}
	}
	broken := errors.New("broken")
	if _, err := Inject(doc, func(string) ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("the error is lost: %v", err)
	}
}

func FuzzInject(f *testing.F) {
	f.Add([]byte(Marker("secret://x")), "value")
	f.Add([]byte("SLIPWAYLATEj6Z SLIPWAYLATEr61Z"), "SLIPWAYLATEr61Z")
	f.Fuzz(func(t *testing.T, doc []byte, v string) {
		out, err := Inject(doc, func(string) ([]byte, error) { return []byte(v), nil })
		if err == nil && len(References(doc)) == 0 && string(out) != string(doc) {
			t.Errorf("%q became %q", doc, out)
		}
		Redact(doc)
	})
}
