package cloudinit

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestAReportWaitsForTheServer runs the last step of the first boot while the server refuses for a while, as it does when it restarts, or
// another one takes its work over. A host whose report is lost would fail a quarter of an hour later, although all is well.
func TestAReportWaitsForTheServer(t *testing.T) {
	const gone = "http://127.0.0.1:1/report" // nothing listens there
	for _, c := range []struct {
		name          string
		refused       int32
		wants         int32 // requests
		before, after string
	}{
		{name: "at once", wants: 1},
		{name: "after a while", refused: 8, wants: 9},
		{name: "never", refused: 1000, wants: 20},
		{name: "another instance, when that of the boot is gone for good", wants: 1, before: gone + " "},
		{name: "no other instance, when that of the boot answers", wants: 1, after: " " + gone},
		{name: "another instance after a while", refused: 3, wants: 4, before: gone + " ", after: " " + gone},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.RawQuery != "step=up" {
					t.Errorf("the report is %q", r.URL.RawQuery)
				}
				if asked.Add(1) <= c.refused {
					w.WriteHeader(http.StatusForbidden)
				}
			}))
			defer server.Close()
			dir := t.TempDir()
			// The pauses are the only thing that differs on a machine.
			script := strings.NewReplacer("/run/slipway", dir, "sleep 5", "sleep 0").Replace(firstBootScript)
			for name, text := range map[string]string{"first-boot.sh": script, "report-url": c.before + server.URL + "/report" + c.after} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out, err := exec.CommandContext(t.Context(), "/bin/sh", filepath.Join(dir, "first-boot.sh"), "report", "finish").CombinedOutput()
			if err != nil {
				t.Errorf("the first boot fails: %v\n%s", err, out)
			}
			if n := asked.Load(); n != c.wants {
				t.Errorf("%d requests came, want %d\n%s", n, c.wants, out)
			}
		})
	}
}
