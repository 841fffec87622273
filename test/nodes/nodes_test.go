package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/test/kube/walkthrough"
	"slipway.dev/slipway/test/netlab"
)

func TestMain(m *testing.M) { Main(m) }

// pageFor is how long the whole page may take. It takes three minutes.
const pageFor = 15 * time.Minute

// TestPostgreSQLOnThreeNodes runs docs/walkthrough-postgres.md: from one appliance with SQLite to three with PostgreSQL, etcd and Patroni.
func TestPostgreSQLOnThreeNodes(t *testing.T) {
	if os.Getenv("SLIPWAY_LONG") == "" {
		t.Skip("takes minutes; run: make test-long RUN=" + t.Name())
	}
	l := netlab.New(t, "make test-long", "nsenter", "setpriv", "etcd", "patroni", "psql")
	dir, err := os.MkdirTemp("", "slipway-nodes-") // others than root enter it, which they may not with t.TempDir
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	slipway := program(t, dir)
	text, err := os.ReadFile("../../docs/walkthrough-postgres.md")
	must(t, err)
	blocks, err := walkthrough.Parse(string(text))
	must(t, err)
	configuration, err := os.ReadFile("../../docs/configuration.md")
	must(t, err)
	unit, err := UnitOf(string(configuration))
	must(t, err)

	hub := l.NS("hub")
	for _, sw := range []string{"lan", "rack"} {
		l.In(hub, "ip", "link", "add", "name", sw, "type", "bridge", "forward_delay", "0", "mcast_snooping", "0")
		l.In(hub, "ip", "link", "set", sw, "up")
	}
	plug := func(ns, iface, sw, port, address string) {
		l.Wire(ns, iface, hub, port)
		l.In(hub, "ip", "link", "set", port, "master", sw)
		if address != "" {
			l.In(ns, "ip", "addr", "add", address, "dev", iface)
		}
	}
	all := map[string]*walkthrough.Shell{}
	var nodes []*Node
	for i, name := range []string{"node1", "node2", "node3"} {
		ns := l.NS(name)
		plug(ns, "eno1", "lan", fmt.Sprint("lan", i), fmt.Sprintf("192.0.2.%d/24", 11+i))
		plug(ns, "eno2", "rack", fmt.Sprint("rack", i), fmt.Sprintf("10.77.0.%d/16", 1+i))
		n := Start(t, dir, l.Prefix+name, name, slipway, unit)
		all[name], nodes = n.Shell, append(nodes, n)
	}
	machines := l.NS("machines")
	plug(machines, "eno2", "rack", "machines", "")
	l.In(machines, "ip", "route", "add", "10.77.0.0/16", "dev", "eno2")
	home := filepath.Join(dir, "machines")
	must(t, os.Mkdir(home, 0o755))
	all["machines"], err = walkthrough.NewShell(home, []string{"PATH=" + filepath.Dir(slipway) + ":/usr/bin:/bin", "HOME=" + home, "NETNS=" + machines})
	must(t, err)
	t.Cleanup(all["machines"].Close)
	t.Cleanup(func() {
		if t.Failed() {
			for _, n := range nodes {
				t.Log(n.Logs())
			}
		}
	})

	ctx, cancel := context.WithTimeout(t.Context(), pageFor)
	defer cancel()
	on := ""
	for _, b := range blocks {
		if b.On != "" {
			on = b.On
		}
		began := time.Now()
		said, err := everywhere(ctx, all, on, b)
		t.Logf("docs/walkthrough-postgres.md:%d on %s: %s\n%s", b.Line, on, time.Since(began).Round(100*time.Millisecond), said)
		if err != nil {
			t.Fatalf("docs/walkthrough-postgres.md:%d: %v\n%s", b.Line, err, b.Shell)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// program returns a slipway in a folder that all users may enter.
func program(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "program", "slipway")
	if made := os.Getenv("SLIPWAY_BIN"); made != "" { // for people who look for a fault
		must(t, os.Mkdir(filepath.Dir(path), 0o755))
		must(t, exec.Command("cp", made, path).Run())
		return path
	}
	out, err := exec.Command("go", "build", "-ldflags", "-s -w", "-o", path, "slipway.dev/slipway/cmd/slipway").CombinedOutput()
	if err != nil {
		t.Fatalf("build slipway: %v\n%s", err, out)
	}
	return path
}

// everywhere runs a block on all its machines at the same time, as an admin does who has a shell on each.
func everywhere(ctx context.Context, all map[string]*walkthrough.Shell, on string, b walkthrough.Block) (string, error) {
	type answer struct {
		name, text string
		err        error
	}
	names := strings.Fields(on)
	said := make(chan answer, len(names))
	for _, name := range names {
		shell := all[name]
		if shell == nil {
			return "", fmt.Errorf("the test has no machine %q", name)
		}
		go func() {
			text, err := shell.Run(ctx, b)
			if err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			said <- answer{name, text, err}
		}()
	}
	var errs []error
	var texts []string
	for range names {
		a := <-said
		errs, texts = append(errs, a.err), append(texts, "# "+a.name+"\n"+a.text)
	}
	slices.Sort(texts)
	return strings.Join(texts, ""), errors.Join(errs...)
}
