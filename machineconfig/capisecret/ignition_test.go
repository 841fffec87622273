package capisecret

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/ignition"
	"slipway.dev/slipway/machineconfig/late"
)

// bomb is the base64 of a small gzip that becomes n zeros.
func bomb(n int) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(make([]byte, n)) // to memory
	_ = z.Close()
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// made returns the Ignition configuration that a reference to a secret becomes.
func made(t *testing.T, value, format string) []byte {
	t.Helper()
	in := input(value, format)
	c := conversion{From: formatCloudConfig, Target: in.OS, Meta: metaOf(in)}
	if format != "" {
		c.From = format
	}
	out, err := c.ignition([]byte(value))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTheConversionIsIgnition(t *testing.T) {
	out := made(t, string(read(t, "full.yaml")), "")
	if found := ignition.Validate(out); len(found) > 0 {
		t.Error(found)
	}
	if spec := ignition.SpecOf(out); !ignition.CanRead(flatcar.Tool, spec) {
		t.Errorf("it is Ignition %s", spec)
	}
	if strings.Contains(string(out), "{{") || strings.Contains(string(out), "%7B%7B") {
		t.Error("a template is left")
	}
}

// TestASecretOfIgnitionIsBroughtUp reads what Cluster API 1.14 writes, shortened.
func TestASecretOfIgnitionIsBroughtUp(t *testing.T) {
	var b bytes.Buffer
	if err := json.Indent(&b, made(t, string(read(t, "old.ign")), formatIgnition), "", "  "); err != nil {
		t.Fatal(err)
	}
	b.WriteByte('\n')
	golden(t, "old.golden", b.Bytes())
}

func TestTemplatesInContentsAreFilledIn(t *testing.T) {
	zipped := func(s string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(s)) // to memory
		_ = z.Close()
		return base64.StdEncoding.EncodeToString(b.Bytes())
	}
	const doc = `{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/a","contents":CONTENTS}]}}`
	for name, c := range map[string]struct{ contents, want string }{
		"in percents":               {`{"source":"data:,name%3A%20%7B%7B%20ds.meta_data.local_hostname%20%7D%7D"}`, "name: node-1"},
		"in base64":                 {`{"source":"data:text/plain;base64,` + base64.StdEncoding.EncodeToString([]byte("{{v1.instance_id}}")) + `"}`, "i-1"},
		"in quoted base64":          {`{"source":"data:;base64,` + strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte("a{{v1.instance_id}}")), "=", "%3D") + `"}`, "ai-1"},
		"compressed":                {`{"compression":"gzip","source":"data:;base64,` + zipped(`{{ ds.meta_data["provider_id"] }}`) + `","verification":{"hash":"sha512-x"}}`, "slipway://lab/node-1"},
		"with signs around":         {`{"source":"data:,%7B%7B-%20ds.meta_data.failure_domain%20-%7D%7D"}`, "zone-a"},
		"another tool's is left":    {`{"source":"data:,%7B%7B%20.Values.x%20%7D%7D"}`, "{{ .Values.x }}"},
		"a bare name is left":       {`{"source":"data:,%7B%7B%20hostname%20%7D%7D"}`, "{{ hostname }}"},
		"no template is left alone": {`{"source":"data:,plain%20text","verification":{}}`, "plain text"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := resolveIgnition([]byte(strings.Replace(doc, "CONTENTS", c.contents, 1)), metaOf(input("", "")))
			if err != nil {
				t.Fatal(err)
			}
			var d struct {
				Storage struct {
					Files []struct {
						Contents struct {
							Source, Compression string
							Verification        struct{ Hash string }
						}
					}
				}
			}
			if err := json.Unmarshal(out, &d); err != nil {
				t.Fatal(err)
			}
			f := d.Storage.Files[0].Contents
			got, ok := dataOf(f.Source)
			if !ok || string(got) != c.want || f.Compression != "" || f.Verification.Hash != "" {
				t.Errorf("%s", cmp.Diff(c.want, string(got)))
			}
		})
	}
	unit := `{"ignition":{"version":"3.2.0"},"systemd":{"units":[{"name":"a.service","contents":"[Service]\nExecStart=/a {{ v1.local_hostname }}\n","dropins":[{"name":"b.conf","contents":"# {{ ds.meta_data.hostname }}"}]}]}}`
	out, err := resolveIgnition([]byte(unit), metaOf(input("", "")))
	if err != nil || !strings.Contains(string(out), "/a node-1") || !strings.Contains(string(out), "# node-1") {
		t.Errorf("%s %v", out, err)
	}
	large := `{"ignition":{"version":"3.2.0"},"systemd":{"units":[{"name":"{{ v1.local_hostname }}","contents":"{{ v1.local_hostname }}"}]},"storage":{"disks":[{"sizeMiB":9007199254740993}]}}`
	if out, err := resolveIgnition([]byte(large), metaOf(input("", ""))); err != nil || !strings.Contains(string(out), "9007199254740993") ||
		!strings.Contains(string(out), `"name":"{{ v1.local_hostname }}"`) {
		t.Errorf("numbers or names are changed: %s %v", out, err)
	}
}

func TestLargeSecretsTakeNoTime(t *testing.T) {
	for name, value := range map[string]string{
		"expressions": jinjaHead + "runcmd:\n" + strings.Repeat("- '{{ v1.local_hostname }}'\n", 30000),
		"braces":      jinjaHead + "runcmd: ['" + strings.Repeat("{", 1<<19) + "']",
		"files":       head + "write_files:\n" + strings.Repeat("- {path: /a, content: x}\n", 20000),
		"nesting":     head + "runcmd: " + strings.Repeat("[", 1<<18),
		"aliases":     head + "bootcmd: &a [x,x,x,x,x,x,x,x,x]\nruncmd: [*a,*a,*a,*a,*a,*a,*a]\n",
	} {
		start := time.Now()
		_, _, err := New().Emit(input(value, ""))
		if d := time.Since(start); d > 20*time.Second {
			t.Errorf("%s: %s", name, d)
		}
		t.Logf("%s: %s %v", name, time.Since(start), err)
	}
}

func FuzzSecret(f *testing.F) {
	full, old := string(read(f, "full.yaml")), string(read(f, "old.ign"))
	for _, format := range []string{"ignition", "cloud-init"} {
		f.Add(full, "", format)
		f.Add(old, "ignition", format)
	}
	f.Add(`{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/a","contents":{"compression":"gzip","source":"data:;base64,H4sIAAAAAAAC/8tIzcnJ5wIAIDA6NgYAAAA="}}]}}`, "ignition", "ignition")
	f.Add(head+"runcmd: [[a, b], c]\nusers: [a, {name: b}]\n", "", "ignition")
	f.Fuzz(func(t *testing.T, value, format, tool string) {
		in := input(value, format)
		in.Format = tool
		a, _, err := New().Emit(in)
		if (a == nil) == (err == nil) {
			t.Fatalf("%v and %v", a, err)
		}
		if err != nil {
			said(t, err, "")
			return
		}
		if len(value) > 64 && strings.Contains(string(a.Prelude.Data), value) {
			t.Error("the rendering holds the secret")
		}
		if tool != "ignition" {
			return
		}
		out, err := New().Part([]byte(value), partOf(t, a.Prelude.Data))
		if err != nil {
			t.Fatalf("Emit took it, but Part says %v", err)
		}
		for _, f := range ignition.Validate(out) {
			if f.Code != "ignition-warning" { // such as a key of the secret that Ignition does not know
				t.Errorf("Ignition refuses it: %v", f)
			}
		}
	})
}

// partOf returns what a rendering asks Part for.
func partOf(t *testing.T, data []byte) string {
	t.Helper()
	refs := late.References(data)
	if len(refs) != 1 {
		t.Fatalf("references %v", refs)
	}
	return strings.TrimPrefix(refs[0], "secret://boot#"+Kind+":")
}
