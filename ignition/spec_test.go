package ignition

import (
	"errors"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

func TestNegotiate(t *testing.T) {
	for _, tt := range []struct{ name, accept, want string }{
		{"Ignition 2.14", "application/vnd.coreos.ignition+json;version=3.3.0, */*;q=0.1", "3.3.0"},
		{"Ignition 2.26", "application/vnd.coreos.ignition+json;version=3.6.0, */*;q=0.1", "3.6.0"},
		{"Ignition of the old kind", "application/vnd.coreos.ignition+json; version=2.4.0, application/vnd.coreos.ignition+json; version=1; q=0.5, */*; q=0.1", "2.4.0"},
		{"the newest of several", "application/vnd.coreos.ignition+json;version=3.3.0, application/vnd.coreos.ignition+json;version=3.10.0", "3.10.0"},
		{"in quotes and other case", `Application/VND.coreos.Ignition+JSON ; Version="3.4.0"`, "3.4.0"},
		{"an experimental one", "application/vnd.coreos.ignition+json;version=3.7.0-experimental", "3.7.0-experimental"},
		{"what is refused does not count", "application/vnd.coreos.ignition+json;version=3.6.0;q=0, application/vnd.coreos.ignition+json;version=3.3.0;q=0.2", "3.3.0"},
		{"a browser", "text/html,application/xhtml+xml,*/*;q=0.8", ""},
		{"nothing", "", ""},
		{"no version", "application/vnd.coreos.ignition+json", ""},
		{"a version that is none", "application/vnd.coreos.ignition+json;version=3.3", ""},
		{"a version out of bounds", "application/vnd.coreos.ignition+json;version=9999.3.0", ""},
		{"a version with a path", "application/vnd.coreos.ignition+json;version=../../3.3.0", ""},
		{"a quality that is none", "application/vnd.coreos.ignition+json;version=3.3.0;q=x", ""},
		{"a header that never ends", strings.Repeat("application/vnd.coreos.ignition+json;version=3.3.0,", 100), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, ok := Negotiate(tt.accept); got != tt.want || ok != (tt.want != "") {
				t.Errorf("got %q, %t, want %q", got, ok, tt.want)
			}
		})
	}
}

func FuzzNegotiate(f *testing.F) {
	f.Add("application/vnd.coreos.ignition+json;version=3.3.0, */*;q=0.1")
	f.Fuzz(func(t *testing.T, accept string) {
		version, ok := Negotiate(accept)
		if ok != (version != "") {
			t.Fatalf("%q: %q, %t", accept, version, ok)
		}
		if _, valid := parseSpec(version); ok && !valid {
			t.Fatalf("%q is no version", version)
		}
	})
}

func TestCanRead(t *testing.T) {
	for _, tt := range []struct {
		name, client, doc string
		want              bool
	}{
		{"the same", "3.3.0", "3.3.0", true},
		{"an older one", "3.6.0", "3.0.0", true},
		{"a newer one", "3.3.0", "3.4.0", false},
		{"two digits are more than one", "3.10.0", "3.9.0", true},
		{"another major version", "3.3.0", "2.3.0", false},
		{"its own experimental one", "3.7.0-experimental", "3.7.0-experimental", true},
		{"another experimental one", "3.8.0", "3.7.0-experimental", false},
		{"an experimental client reads the stable ones before", "3.7.0-experimental", "3.6.0", true},
		{"an experimental client does not read the stable one of that number", "3.7.0-experimental", "3.7.0", false},
		{"no version", "3.3.0", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := CanRead(tt.client, tt.doc); got != tt.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestSpecOf(t *testing.T) {
	for doc, want := range map[string]string{
		`{"ignition":{"version":"3.3.0"}}`: "3.3.0", `{"ignition":{"version":"2.3.0"}}`: "2.3.0", `{"ignition":{"version":"x"}}`: "",
		`{}`: "", `[]`: "", "": "", "variant: fcos": "", `{"ignition":{"version":3}}`: "",
	} {
		if got := SpecOf([]byte(doc)); got != want {
			t.Errorf("%s: got %q, want %q", doc, got, want)
		}
	}
}

func TestUpgrade(t *testing.T) {
	out, err := Upgrade([]byte(`{"ignition":{"config":{},"version":"2.3.0"},"storage":{"filesystems":[{"name":"data","path":"/mnt/data"}],"files":[
		{"filesystem":"root","path":"/etc/kubeadm.sh","mode":448,"contents":{"source":"data:,x"}},{"filesystem":"data","path":"/y"}]},
		"systemd":{"units":[{"name":"kubeadm.service","enabled":true,"contents":"[Install]\nWantedBy=multi-user.target\n"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"version":"3.0.0"`, `"path":"/etc/kubeadm.sh"`, `"path":"/mnt/data/y"`, `"enabled":true`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s is not in %s", want, out)
		}
	}
	if found := Validate(out); len(found) > 0 {
		t.Error(found)
	}
	for name, doc := range map[string]string{
		"empty": "", "JSON that is none": "{", "Ignition 3": `{"ignition":{"version":"3.3.0"}}`, "cloud-config": "#cloud-config\n",
		"the same file twice":     `{"ignition":{"version":"2.3.0"},"storage":{"files":[{"filesystem":"root","path":"/a"},{"filesystem":"root","path":"/a"}]}}`,
		"an unknown file system":  `{"ignition":{"version":"2.3.0"},"storage":{"files":[{"filesystem":"x","path":"/a"}]}}`,
		"networkd of the old way": `{"ignition":{"version":"2.3.0"},"networkd":{"units":[{"name":"a.network","contents":"[Match]\nName=x\n"}]}}`,
	} {
		var e *inventory.Error
		if out, err := Upgrade([]byte(doc)); !errors.As(err, &e) || e.Kind != inventory.Invalid {
			t.Errorf("%s: got %s, %v", name, out, err)
		}
	}
}

func FuzzUpgrade(f *testing.F) {
	f.Add([]byte(`{"ignition":{"version":"2.3.0"},"storage":{"files":[{"filesystem":"root","path":"/a","contents":{"source":"data:,x"}}]}}`))
	f.Add([]byte(`{"ignition":{"version":"2.0.0"},"storage":{"filesystems":[{"name":"d","mount":{"device":"/dev/x","format":"ext4"}}]}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		out, err := Upgrade(doc)
		if err == nil && SpecOf(out) != "3.0.0" {
			t.Fatalf("upgraded to %q: %s", SpecOf(out), out)
		}
	})
}

func TestValidate(t *testing.T) {
	for _, tt := range []struct{ name, doc, msg string }{
		{"a good one", `{"ignition":{"version":"3.3.0"}}`, ""},
		{"one with late values", `{"ignition":{"version":"3.3.0","config":{"merge":[{"source":"SLIPWAYLATEj73657373696f6e3a2f2f62617365Z/x"}]}}}`, ""},
		{"a warning", `{"ignition":{"version":"3.3.0"},"x":1}`, "unused key"},
		{"a duplicate", `{"ignition":{"version":"3.3.0"},"storage":{"files":[{"path":"/a"},{"path":"/a"}]}}`, "duplicate"},
		{"a version of tomorrow", `{"ignition":{"version":"3.99.0"}}`, "version"},
		{"nothing", ``, "unexpected end"},
		{"Butane is not what machines are given", "variant: fcos\nversion: 1.4.0\n", "invalid character"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Validate([]byte(tt.doc))
			if (tt.msg == "") != (len(got) == 0) || tt.msg != "" && !strings.Contains(got.Err().Error()+got[0].String(), tt.msg) {
				t.Errorf("got %v", got)
			}
		})
	}
}
