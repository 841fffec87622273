package cloudinit

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/machineconfig"
)

// door serves a rendering as the appliance does, and keeps what was asked for.
type door struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

// versionIn finds the version in a User-Agent such as Cloud-Init/22.4.2.
var versionIn = regexp.MustCompile(`[0-9]+(\.[0-9]+)+`)

func serve(t *testing.T, rendered *machineconfig.Rendered) *door {
	t.Helper()
	d := &door{}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/ci/")
		d.mu.Lock()
		d.asked = append(d.asked, name+" "+versionIn.FindString(r.UserAgent()))
		d.mu.Unlock()
		if path, ok := strings.CutPrefix(name, "ec2/"); ok {
			name = cloudinit.EC2Path(path)
		}
		for _, doc := range rendered.Documents {
			if doc.Name == name {
				w.Header().Set("Content-Type", doc.ContentType)
				_, _ = w.Write(doc.Data)
				return
			}
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(d.Close)
	return d
}

type seeded struct {
	OK      bool           `json:"ok"`
	Seconds float64        `json:"seconds"`
	Meta    map[string]any `json:"meta"`
	Network map[string]any `json:"network"`
	User    string         `json:"user"`
	Vendor  int            `json:"vendor"`
}

func TestTheDatasourceFetchesASeedWithoutAStall(t *testing.T) {
	each(t, func(t *testing.T, r reader, cases []*seedCase) {
		for _, c := range cases {
			if !strings.HasPrefix(c.name, "own-") && c.name != "empty" && c.name != "network-static" {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				d := serve(t, c.rendered)
				var got seeded
				r.ask(t, nil, &got, "datasource", d.URL+"/ci/")
				if !got.OK || got.Seconds > 3 {
					t.Errorf("the datasource answers %v after %.1f s", got.OK, got.Seconds)
				}
				if got.User != string(c.document(t, "user-data")) || got.Vendor != 0 {
					t.Error("user-data or vendor-data arrive changed")
				}
				if got.Meta["local-hostname"] != nil && got.Meta["local-hostname"] != c.config.Host.Hostname {
					t.Errorf("local-hostname is %v", got.Meta["local-hostname"])
				}
				if id := got.Meta["instance-id"]; id == nil || id == "nocloud" {
					t.Errorf("instance-id is %v", id)
				}
				reads := cloudinit.CompareVersions(r.version, "24.3") >= 0
				if want := reads && !c.config.Network.IsZero(); want != (got.Network != nil) {
					t.Errorf("cloud-init %s has network %v", r.version, got.Network)
				}
				for _, asked := range d.asked {
					if !strings.HasSuffix(asked, " "+r.version) {
						t.Errorf("asked for %q, want version %s", asked, r.version)
					}
				}
			})
		}
	})
}

func TestTheDatasourceReadsASeedInTheInitrd(t *testing.T) {
	for _, r := range readers(t) {
		for _, c := range ownCases(t) {
			dir := t.TempDir() + "/nocloud/"
			target := r.target()
			target.InitrdPath = "/var/lib/cloud/seed/nocloud"
			rendered, report := cloudinit.New().Render(target, c.config)
			if rendered == nil {
				t.Errorf("%s: %v", c.name, report)
				continue
			}
			if len(rendered.Documents) != 4 {
				t.Errorf("%s has %d documents", c.name, len(rendered.Documents))
			}
			for _, d := range rendered.Documents {
				if d.Path != target.InitrdPath+"/"+d.Name {
					t.Errorf("%s stands at %s", d.Name, d.Path)
				}
				write(t, dir, d.Name, d.Data)
			}
			var got seeded
			r.ask(t, nil, &got, "initrd", dir)
			if !got.OK || got.Seconds > 1 || got.Meta["local-hostname"] != "node-1" || got.User == "" {
				t.Errorf("%s: cloud-init %s reads %v after %.1f s: %v, %d bytes", c.name, r.version, got.OK, got.Seconds, got.Meta, len(got.User))
			}
			if c.config.Network.IsZero() != (got.Network == nil) {
				t.Errorf("%s: cloud-init %s has network %v", c.name, r.version, got.Network)
			}
		}
	}
}

func TestTheEC2ClientWalksTheMetadata(t *testing.T) {
	each(t, func(t *testing.T, r reader, cases []*seedCase) {
		c := cases[0]
		d := serve(t, c.rendered)
		var got struct {
			Meta map[string]any `json:"meta"`
			User int            `json:"user"`
		}
		r.ask(t, nil, &got, "ec2", d.URL+"/ci/ec2")
		want := map[string]any{"ami-launch-index": "0", "hostname": "node-1.example.org", "instance-id": "i-1", "local-hostname": "node-1.example.org"}
		if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(got.Meta)); diff != "" {
			t.Error(diff)
		}
		if got.User != len(c.document(t, "user-data")) {
			t.Errorf("user-data has %d bytes", got.User)
		}
	})
}
