package images

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// killedEnv makes the test binary import into a folder until it is killed: "folder URL".
const killedEnv = "SLIPWAY_TEST_IMPORT"

func TestMain(m *testing.M) {
	if dir, url, ok := strings.Cut(os.Getenv(killedEnv), " "); ok {
		importForever(dir, url)
	}
	os.Exit(m.Run())
}

func importForever(dir, url string) {
	catalogue, err := BuiltinCatalogue()
	if err != nil {
		panic(err)
	}
	c, err := New(Config{Dir: dir, Store: newMemStore(), Catalogue: catalogue, Now: time.Now, Checkpoint: 100_000})
	if err != nil {
		panic(err)
	}
	r := ImportRequest{Name: "x", Files: []ImportFile{{Role: "kernel", Source: url + "/linux"}}}
	if _, err := c.Import(context.Background(), r, nil); err != nil {
		panic(err)
	}
	os.Exit(0)
}

func TestAKilledServerGoesOnWithItsDownload(t *testing.T) {
	content := bytesOf(1, 2_000_000)
	m := newMirror(t, content)
	reached := make(chan struct{})
	m.answer = func(n int, w http.ResponseWriter, r *http.Request) bool {
		if n > 0 {
			return false
		}
		w.Header().Set("ETag", m.etag)
		w.Header().Set("Content-Length", "2000000")
		w.Write(content[:1_500_000])
		w.(http.Flusher).Flush()
		close(reached)
		<-r.Context().Done()
		return true
	}
	f := newFixture(t)
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), killedEnv+"="+f.dir+" "+m.URL)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-reached
	// Until its first checkpoint is on disk it has promised nothing.
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if notes, err := filepath.Glob(filepath.Join(f.PartialDir(), "*.json")); err == nil && len(notes) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no checkpoint within 20 s")
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("it was not killed")
	}
	f.wantNothing(t)
	f.Cache = openFixture(t, f.dir, f.store)
	if _, err := f.Import(t.Context(), ImportRequest{Name: "x", Files: []ImportFile{{Role: "kernel", Source: m.URL + "/linux"}}}, nil); err != nil {
		t.Fatal(err)
	}
	f.wantArtefact(t, content)
	if n := m.servedN.Load(); n > 1_950_000 || n < 500_000 {
		t.Errorf("%d bytes were fetched after the kill, want what was missing", n)
	}
}
