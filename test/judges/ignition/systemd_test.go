package ignition_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// contents are the files and units of a document, decoded.
func (j *judged) contents(t *testing.T) (files, units map[string]string) {
	t.Helper()
	var d struct {
		Storage struct {
			Files []struct {
				Path     string
				Contents struct{ Source, Compression string }
			}
		}
		Systemd struct {
			Units []struct{ Name, Contents string }
		}
	}
	must(t, json.Unmarshal(j.doc, &d))
	files, units = map[string]string{}, map[string]string{}
	for _, f := range d.Storage.Files {
		head, body, _ := strings.Cut(f.Contents.Source, ",")
		text, err := url.PathUnescape(body)
		if strings.HasSuffix(head, ";base64") {
			var b []byte
			b, err = base64.StdEncoding.DecodeString(body)
			text = string(b)
		}
		must(t, err)
		if f.Contents.Compression == "gzip" {
			z, err := gzip.NewReader(bytes.NewReader([]byte(text)))
			must(t, err)
			b, err := io.ReadAll(z)
			must(t, err)
			text = string(b)
		}
		files[f.Path] = text
	}
	for _, u := range d.Systemd.Units {
		units[u.Name] = u.Contents
	}
	return files, units
}

func TestSystemdAcceptsOurUnits(t *testing.T) {
	judges(t)
	analyze := program(t, "systemd-analyze", "systemd")
	seen := map[string]bool{}
	for _, j := range all(t).cases {
		_, units := j.contents(t)
		dir := t.TempDir()
		var check []string
		key := ""
		for name, text := range units {
			if strings.HasPrefix(name, "slipway-") {
				name = strings.Replace(name, "@.", "@slipway-bootstrap.", 1)
				// The OS of the target has these; the machine that runs the tests need not.
				text = strings.NewReplacer("/usr/bin/env update-ca-trust", "/usr/bin/env true").Replace(text)
				write(t, filepath.Join(dir, name), text, 0o644)
				check = append(check, filepath.Join(dir, name))
				key += text
			}
		}
		if len(check) == 0 || seen[key] {
			continue
		}
		seen[key] = true
		argv := append([]string{analyze, "verify", "--man=no", "--recursive-errors=no"}, check...)
		if out, err := run(dir, []string{"SYSTEMD_UNIT_PATH=" + dir + ":"}, argv...); err != nil || strings.TrimSpace(out) != "" {
			t.Errorf("%s: %v\n%s", j.name, err, out)
		}
	}
	t.Logf("%d sets of units were verified", len(seen))
	if len(seen) < 5 {
		t.Error("that is too few")
	}
	broken := filepath.Join(t.TempDir(), "broken.service")
	write(t, broken, "[Service]\nExecStart=/bin/true\nNoSuchKey=1\n", 0o644)
	if out, err := run("", nil, analyze, "verify", "--man=no", broken); err == nil && strings.TrimSpace(out) == "" {
		t.Error("systemd-analyze lets anything through")
	}
}

func TestShellcheckAcceptsOurScripts(t *testing.T) {
	judges(t)
	shellcheck := program(t, "shellcheck", "shellcheck")
	seen := map[string]bool{}
	for _, j := range all(t).cases {
		files, _ := j.contents(t)
		for path, text := range files {
			if !strings.HasPrefix(path, "/etc/slipway/") || !strings.HasSuffix(path, ".sh") || strings.Contains(path, "/stage/") || seen[text] {
				continue
			}
			seen[text] = true
			file := filepath.Join(t.TempDir(), fmt.Sprintf("%d.sh", len(seen)))
			write(t, file, text, 0o700)
			// SC1010: the word done in what admins write.
			if out, err := run("", nil, shellcheck, "--severity=warning", "--exclude=SC1010", file); err != nil {
				t.Errorf("%s: %s: %v\n%s", j.name, path, err, out)
			}
		}
	}
	t.Logf("%d scripts were checked", len(seen))
	if len(seen) < 10 {
		t.Error("that is too few")
	}
}
