package vm

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/lab"
)

// serversUp is a lab with two servers, in the folder that the user postgres can enter.
func serversUp(t *testing.T) lab.Config {
	t.Helper()
	needVM(t)
	needLong(t)
	cfg := lab.Config{Executable: os.Getenv("SLIPWAY_BIN")}
	if cfg.Executable == "" {
		cfg.Executable, _ = filepath.Abs("../../bin/slipway") // make test-long has built it
	}
	cfg.Specs, cfg.Instances = lab.LifeSpecs(1), 2
	return cfg
}

// nothingIsLeft fails the test if processes, namespaces or files of a lab with servers are still there.
func nothingIsLeft(t *testing.T) {
	t.Helper()
	if left := naming(t, lab.DefaultDir); len(left) > 0 {
		t.Errorf("still running: %q", left)
	}
	for _, path := range []string{lab.DefaultDir, "/run/netns/slipway-lab", "/run/netns/slipway-lab-1", "/run/netns/slipway-lab-2"} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is still there", path)
		}
	}
}

// TestPostgreSQLAMachineArrivesWhoseServerIsKilled is make lab CHECK=1 INSTANCES=2 with one machine.
func TestPostgreSQLAMachineArrivesWhoseServerIsKilled(t *testing.T) {
	cfg := serversUp(t)
	var said bytes.Buffer
	cfg.Out = &said
	err := lab.Up(t.Context(), lab.UpConfig{Config: cfg, IsCheck: true, Timeout: 15 * time.Minute})
	t.Logf("the lab says:\n%s", &said)
	if err != nil {
		t.Fatal(explain(err))
	}
	for _, want := range []string{
		`one +alive.* engine, network/slipway0`, `server one, which leads, was killed after it had sent`,
		`bios arrived after`, `two +alive.* engine, network/slipway0`, `its disk reads as zero`,
	} {
		if !regexp.MustCompile(want).MatchString(said.String()) {
			t.Errorf("it does not say %q", want)
		}
	}
	nothingIsLeft(t)
}

// TestPostgreSQLNothingIsLeftOfALabWithServersThatWasKilled kills the lab itself. Its servers and their database go on until slipway lab down.
func TestPostgreSQLNothingIsLeftOfALabWithServersThatWasKilled(t *testing.T) {
	cfg := serversUp(t)
	cmd := exec.Command(cfg.Executable, "lab", "up", "--by-hand", "--machines", "1", "--instances", "2", "--accel", "tcg")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan() && !strings.Contains(lines.Text(), "The machines are yours"); {
		t.Log(lines.Text())
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got := naming(t, lab.DefaultDir); len(got) < 4 { // libvirtd, PostgreSQL and two servers
		t.Errorf("running: %q", got)
	}
	var said bytes.Buffer
	if err := lab.Down(t.Context(), "", &said); err != nil {
		t.Fatalf("%v\n%s", err, &said)
	}
	t.Logf("down says:\n%s", &said)
	nothingIsLeft(t)
}
