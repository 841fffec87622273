package cloudinit

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// machine runs what cloud-init would run, below a folder instead of /run/slipway.
type machine struct {
	root    string
	trace   string
	dir     string
	mu      sync.Mutex
	reports []string
	logs    []string // what came with them
}

func boot(t *testing.T, c *seedCase, edit func(script string) string) (*machine, error) {
	t.Helper()
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS(c.root)); err != nil {
		t.Fatal(err)
	}
	private := *c
	private.root = root
	c = &private
	m := &machine{root: root, trace: filepath.Join(t.TempDir(), "trace"), dir: filepath.Join(c.root, "run/slipway")}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		m.reports, m.logs = append(m.reports, r.URL.RawQuery), append(m.logs, string(body))
	}))
	t.Cleanup(server.Close)
	helper := filepath.Join(m.dir, "first-boot.sh")
	text, err := os.ReadFile(helper)
	if err != nil {
		t.Fatal(err)
	}
	// Nothing outside of the test's folder may be touched.
	text = []byte(strings.NewReplacer("/run/slipway", m.dir, "/var/lib/cloud", c.root+"/cloud").Replace(string(text)))
	write(t, m.dir, "first-boot.sh", text)
	if _, err := os.Stat(filepath.Join(m.dir, "report-url")); err == nil {
		write(t, m.dir, "report-url", []byte(server.URL+"/x"))
	}
	script := strings.NewReplacer("/run/slipway", m.dir, "/run/kubeadm", c.root+"/run/kubeadm", "/run/cluster-api", c.root+"/run/cluster-api").Replace(c.result.Runcmd)
	if edit != nil {
		script = edit(script)
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", write(t, t.TempDir(), "runcmd", []byte(script)))
	cmd.Env = append(os.Environ(), "TRACE="+m.trace)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	return m, err
}

func find(t *testing.T, cases []*seedCase, name string) *seedCase {
	t.Helper()
	for _, c := range cases {
		if c.name == name {
			return c
		}
	}
	t.Fatalf("there is no case %s", name)
	return nil
}

func TestTheFirstBootRunsInOrderAndReports(t *testing.T) {
	each(t, func(t *testing.T, r reader, cases []*seedCase) {
		c := find(t, cases, "own-bootstrap")
		const userData, seed = "/cloud/instances/i/user-data.txt", "/cloud/seed/nocloud/user-data"
		write(t, c.root, userData, []byte("secret"))
		write(t, c.root, seed, []byte("secret"))
		m, err := boot(t, c, nil)
		if err != nil {
			t.Error(err)
		}
		got, err := os.ReadFile(m.trace)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff("first's\nactivate\npost a b'c\n$HOME\n", string(got)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"step=up"}, m.reports); diff != "" {
			t.Error(diff)
		}
		for _, gone := range []string{"/run/kubeadm/join.yaml", userData, "/run/slipway/report-url"} {
			if _, err := os.Stat(m.root + gone); err == nil {
				t.Errorf("%s is still there", gone)
			}
		}
		if text, _ := os.ReadFile(m.root + seed); strings.Contains(string(text), "secret") {
			t.Error("the seed still holds secrets")
		}
		if _, err := os.Stat(m.root + "/etc/cloud/cloud.cfg.d/90-slipway.cfg"); err != nil {
			t.Error("commands of every boot are lost with the seed")
		}
	})
}

func TestAFailedStepIsReportedAndEndsTheFirstBoot(t *testing.T) {
	each(t, func(t *testing.T, r reader, cases []*seedCase) {
		m, err := boot(t, find(t, cases, "own-bootstrap"), func(script string) string {
			return strings.Replace(script, "echo activate", "echo the cluster does not answer >&2; exit 7; echo activate", 1)
		})
		if err == nil {
			t.Error("cloud-init sees no failure")
		}
		got, _ := os.ReadFile(m.trace)
		if diff := cmp.Diff("first's\n", string(got)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"step=failed&detail=bootstrap+kubeadm++status+7&part=bootstrap"}, m.reports); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"the cluster does not answer\n"}, m.logs); diff != "" {
			t.Errorf("the end of its log: %s", diff)
		}
	})
}

func TestAnActivationThatIsDoneIsNotRepeated(t *testing.T) {
	each(t, func(t *testing.T, r reader, cases []*seedCase) {
		m, err := boot(t, find(t, cases, "own-bootstrap"), func(script string) string {
			return strings.Replace(script, "/nonexistent/kubelet.conf", "/etc/passwd", 1)
		})
		got, _ := os.ReadFile(m.trace)
		if err != nil || strings.Contains(string(got), "activate") {
			t.Errorf("%v: %s", err, got)
		}
	})
}

func TestTheBootstrapSecretAndOursAreMerged(t *testing.T) {
	each(t, func(t *testing.T, r reader, cases []*seedCase) {
		c := find(t, cases, "own-prelude")
		script := c.result.Runcmd
		at := -1
		for _, s := range []string{"ours-first", "echo before-join", "kubeadm join", "bootstrap-success.complete' ", "ours-post", "finish"} {
			i := strings.Index(script, strings.TrimSuffix(s, "' "))
			if s == "bootstrap-success.complete' " {
				i = strings.Index(script, "'test' '-e'")
			}
			if i <= at {
				t.Errorf("%q is not where it belongs in\n%s", s, script)
			}
			at = i
		}
		join, err := os.ReadFile(c.root + "/run/kubeadm/kubeadm-join-config.yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"name: 'node-1'", "value: 'slipway://lab/node-1'", "größer"} {
			if !strings.Contains(string(join), want) {
				t.Errorf("%q is not in\n%s", want, join)
			}
		}
		ntp := fmt.Sprint(c.result.Config["ntp"])
		if !regexp.MustCompile(`ntp\.ours\.example ntp\.capi\.example`).MatchString(ntp) {
			t.Errorf("ntp is %s", ntp)
		}
		for _, name := range []string{"alice", "capi"} {
			if _, ok := c.result.Users.Users[name]; !ok {
				t.Errorf("%s is lost: %v", name, c.result.Users.Users)
			}
		}
	})
}

func TestTheProfilesDocumentAndOursAreMerged(t *testing.T) {
	each(t, func(t *testing.T, r reader, cases []*seedCase) {
		c := find(t, cases, "own-document")
		if s := c.result.Runcmd; !strings.Contains(s, "echo theirs") || strings.Index(s, "echo ours") < strings.Index(s, "echo theirs") {
			t.Errorf("runcmd is\n%s", s)
		}
		v, _ := asciiValue("secret://db")
		got, err := os.ReadFile(c.root + "/etc/theirs")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(v), string(got)); diff != "" {
			t.Error(diff)
		}
		if c.result.Config["swap"] == nil {
			t.Error("swap is lost")
		}
	})
}
