package ignition

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

// TestAReportGoesToTheNextInstance runs the tool that reports. The instance of the boot is gone for good.
func TestAReportGoesToTheNextInstance(t *testing.T) {
	var got atomic.Pointer[string]
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		uri := r.URL.RequestURI()
		got.Store(&uri)
	}))
	defer server.Close()
	const gone = "http://127.0.0.1:1/report" // nothing listens there
	for _, c := range []struct {
		name, urls string
		isTaken    bool
	}{
		{"one instance", server.URL + "/report", true},
		{"the first of two is gone", gone + " " + server.URL + "/report", true},
		{"the second of two is gone", server.URL + "/report " + gone, true},
		{"both are gone", gone + " " + gone, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got.Store(nil)
			dir := t.TempDir()
			url := filepath.Join(dir, "report-url")
			script := strings.NewReplacer("REPORT-URL", url, "sleep 5", "sleep 0", "i < 120", "i < 3").Replace(reportScript)
			for name, text := range map[string]string{"report.sh": script, "report-url": c.urls + "\n"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out, err := exec.CommandContext(t.Context(), "bash", filepath.Join(dir, "report.sh"), "up").CombinedOutput()
			if (err == nil) != c.isTaken {
				t.Errorf("%v: %s", err, out)
			}
			if uri := got.Load(); (uri != nil) != c.isTaken || uri != nil && *uri != "/report?step=up" {
				t.Errorf("the report came as %v: %s", uri, out)
			}
		})
	}
}
