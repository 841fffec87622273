package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"
)

// TestNothingStandsFarToTheRightOfALongText: 340 blanks stood in front of a hint.
func TestNothingStandsFarToTheRightOfALongText(t *testing.T) {
	long := strings.Repeat("words ", 60)
	for name, c := range map[string]struct {
		rows [][]string
		want string
	}{
		"short cells stand beside each other": {
			[][]string{{"STATUS", "CHECK", "DETAIL", "HINT"}, {"ok", "port", "open", "none"}},
			"STATUS  CHECK  DETAIL  HINT\nok      port   open    none\n",
		},
		"what follows a long cell has a line and the name of its column": {
			[][]string{{"STATUS", "CHECK", "DETAIL", "HINT"}, {"error", "server", long, "start it"}, {"ok", "port", "open", ""}},
			"STATUS  CHECK   DETAIL  HINT\nerror   server  " + long + "\n                hint: start it\nok      port    open  -\n",
		},
		"several cells follow": {
			[][]string{{"ID", "CAUSE", "OPENED", "HINT"}, {"1", long, "now", ""}},
			"ID  CAUSE  OPENED  HINT\n1   " + long + "\n    opened: now\n",
		},
		"a long cell at the end": {
			[][]string{{"ID", "REASON"}, {"1", long}, {"2", "x"}},
			"ID  REASON\n1   " + long + "\n2   x\n",
		},
		"a second table": {
			[][]string{{"ID", "CAUSE", "HINT"}, {"1", "x", "y"}, {"NAME", "TEXT", "WAY"}, {"n", long, "w"}},
			"way: w\n",
		},
		"no heads": {[][]string{{"a", long, "b"}}, "a  " + long + "\n   b\n"},
	} {
		var out bytes.Buffer
		tw := &TableWriter{w: tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)}
		for _, r := range c.rows {
			tw.Row(r...)
		}
		if err := tw.w.Flush(); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(out.String(), c.want) || strings.Contains(out.String(), strings.Repeat(" ", 40)) {
			t.Errorf("%s:\n%q\nwant\n%q", name, out.String(), c.want)
		}
	}
}

// TestACommandWaitsForAServerThatStarts: a person writes the next line before the server has opened its socket.
func TestACommandWaitsForAServerThatStarts(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "slipway.sock")
	began := time.Now()
	awaitSocket(t.Context(), socket)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("without a server it waits for %s", took)
	}
	f, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	awaitSocket(t.Context(), socket) // a lock that a server has left behind
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	opened := make(chan time.Time, 1)
	time.AfterFunc(400*time.Millisecond, func() {
		opened <- time.Now()
		_ = os.WriteFile(socket, nil, 0o600)
	})
	awaitSocket(t.Context(), socket)
	select {
	case <-opened:
	default:
		t.Error("it does not wait for a server that has locked its data and no socket yet")
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestABuildWithoutATagHasAVersionThatClusterctlTakes: one rule for what the linker says, the directory and the files in it.
func TestABuildWithoutATagHasAVersionThatClusterctlTakes(t *testing.T) {
	for linked, want := range map[string]string{
		"dev": "v0.1.0-dev", "": "v0.1.0-dev", "141822d": "v0.1.0-dev+g141822d", "0141822-dirty": "v0.1.0-dev+g0141822-dirty",
		"v0.4.0": "v0.4.0", "v0.4.0-12-gabcdef0": "v0.4.0-12-gabcdef0", "v1.0.0-rc.1": "v1.0.0-rc.1", "a/b c": "v0.1.0-dev+ga-b-c",
	} {
		got := VersionOf(linked)
		if got != want || !ReleaseName.MatchString(got) || VersionOf(got) != got {
			t.Errorf("%q is version %q, want %q", linked, got, want)
		}
	}
	for dir, want := range map[string]string{
		"repository/infrastructure-slipway/v0.1.0": "v0.1.0", "v0.4.2/": "v0.4.2", "out": "v0.1.0-dev", ".": "v0.1.0-dev",
	} {
		if got := ReleaseOf(dir, VersionOf("dev")); got != want {
			t.Errorf("files in %s are of version %q, want %q", dir, got, want)
		}
	}
}
