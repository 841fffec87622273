package walkthrough

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/test/kube/cluster"
)

// withoutRack begins the section of docs/walkthrough-standalone.md that needs neither machines nor a cluster.
const withoutRack = "## Without a rack"

// TestTheObjectsOfThePageWorkWithoutARack runs that section as it stands: simulated machines, and slipway apply.
func TestTheObjectsOfThePageWorkWithoutARack(t *testing.T) {
	cluster.Skip(t)
	if os.Getenv(insideEnv) == "" {
		t.Skip("makes network namespaces, which needs root; run: make test-kube RUN=" + t.Name())
	}
	program, err := build()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/walkthrough-standalone.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n"+withoutRack+"\n")
	if !found {
		t.Fatalf("the page has no %q", withoutRack)
	}
	blocks, err := Parse(section)
	if err != nil || len(blocks) < 6 {
		t.Fatalf("%d blocks, %v", len(blocks), err)
	}
	home := t.TempDir()
	bin := filepath.Join(home, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(bin, "slipway")); err != nil {
		t.Fatal(err)
	}
	shell, err := NewShell(home, []string{"PATH=" + bin + ":/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + home})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shell.Close)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, b := range blocks {
		began := time.Now()
		out, err := shell.Run(ctx, b)
		if err != nil {
			log, _ := os.ReadFile(filepath.Join(home, "try.log"))
			t.Fatalf("%v\n%s\nprinted:\n%s\ntry.log:\n%s", err, b.Shell, out, log)
		}
		t.Logf("%s: %s\n%s", strings.SplitN(b.Shell, "\n", 2)[0], time.Since(began).Round(100*time.Millisecond), out)
	}
}
