package ignition

import (
	"errors"
	"strings"
	"testing"

	"slipway.dev/slipway/machineconfig"
)

const withLocal = `variant: fcos
version: 1.5.0
storage:
  files:
    - path: /é # a comment
      contents: {local: "motd", compression: ""} # kept
    - path: /b
      append: [{local: motd}, {local: 'motd'}]
systemd:
  units:
    - name: a.service
      contents_local: a.service
`

func files(name string) ([]byte, error) {
	switch name {
	case "motd":
		return []byte("hello {{ you }}\n"), nil
	case "a.service":
		return []byte("[Unit]\nDescription=\"{{ x }}\" é\n"), nil
	case "binary":
		return []byte{0xff}, nil
	}
	return nil, errors.New("there is no file " + name)
}

func TestLocalFilesBecomePartOfTheDocument(t *testing.T) {
	text, err := WithLocal(withLocal, files)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(text, "\n") != strings.Count(withLocal, "\n") || !strings.Contains(text, `compression: ""} # kept`) || strings.Contains(text, "local") {
		t.Error(text)
	}
	text = strings.ReplaceAll(text, `{{"{{"}}`, "{{") // as it is expanded
	out := render(t, onFCOS, &machineconfig.Config{Document: &machineconfig.Passthrough{Format: "butane", Data: []byte(text)}})
	doc := string(out.Documents[0].Data)
	if !strings.Contains(doc, `[Unit]\nDescription=\"{{ x }}\" é\n`) || strings.Count(doc, "aGVsbG8ge3sgeW91IH19Cg==") != 3 {
		t.Error(doc)
	}
}

func TestALocalFileThatCannotBeTakenIsSaidWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"a:\n  contents: {local: nothing}\n":       "2:21: there is no file nothing",
		"a:\n  local: >\n    motd\n":               "not written plainly",
		"a:\n  local: \"mo\\u0074d\"\n":            "2:10: the name of a local file is not written plainly",
		"trees:\n  - local: x\n":                   "1:1: a tree",
		"u:\n  - ssh_authorized_keys_local: [x]\n": "2:5: local files of SSH keys",
		"contents_local: binary\n":                 "1:17: binary is no text",
		"a: {local: motd, b: {local: nothing}}\n":  "1:29: there is no file nothing",
	} {
		if _, err := WithLocal(text, files); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for _, same := range []string{"a: [", "", "a: {local: [x]}\n", "x: &a {b: c}\ny: *a\n"} {
		if got, err := WithLocal(same, files); err != nil || got != same {
			t.Errorf("%q: %q, %v", same, got, err)
		}
	}
}

func FuzzWithLocal(f *testing.F) {
	f.Add(withLocal)
	f.Fuzz(func(t *testing.T, text string) { _, _ = WithLocal(text, files) })
}
