package clock

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const childEnv = "SLIPWAY_CLOCK_CHILD"

// TestMain is also the process whose clocks are replaced: it answers each line with its time.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		os.Exit(m.Run())
	}
	began := time.Now()
	hour := time.NewTimer(time.Hour)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		isOver := false
		select {
		case <-hour.C:
			isOver = true
		case <-time.After(50 * time.Millisecond):
		}
		now := time.Now()
		fmt.Println(now.Unix(), int(now.Sub(began).Seconds()), isOver)
	}
}

func TestTheClocksOfAProcessGoAsTheyAreTold(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewReader(out)
	read := func() (wall time.Time, since time.Duration, isOver bool) {
		t.Helper()
		if _, err := io.WriteString(in, "\n"); err != nil {
			t.Fatal(err)
		}
		line, err := lines.ReadString('\n')
		var unix, secs int64
		if _, scanErr := fmt.Sscan(strings.TrimSpace(line), &unix, &secs, &isOver); err != nil || scanErr != nil {
			t.Fatalf("%q: %v, %v", line, err, scanErr)
		}
		return time.Unix(unix, 0), time.Duration(secs) * time.Second, isOver
	}
	read()
	c, err := Take(cmd.Process.Pid)
	if err != nil {
		t.Skip(err)
	}
	defer c.Close()
	for _, step := range []struct {
		name   string
		move   func() error
		wall   time.Duration // by which its clock differs from ours, in all
		since  time.Duration // that it has lived, in its own eyes
		isOver bool
	}{
		{"nothing yet", func() error { return nil }, 0, 0, false},
		{"set ahead", func() error { return c.Set(2 * time.Hour) }, 2 * time.Hour, 0, false},
		{"set back", func() error { return c.Set(-3 * time.Hour) }, -time.Hour, 0, false},
		{"half an hour passes", func() error { return c.Pass(30 * time.Minute) }, -30 * time.Minute, 30 * time.Minute, false},
		{"and another", func() error { return c.Pass(31 * time.Minute) }, time.Minute, 61 * time.Minute, true},
	} {
		if err := step.move(); err != nil {
			t.Fatal(err)
		}
		wall, since, isOver := read()
		const slack = 20 * time.Second
		if off := time.Until(wall) - step.wall; off.Abs() > slack {
			t.Errorf("%s: its clock is off by %s", step.name, off)
		}
		if off := since - step.since; off < 0 || off > slack {
			t.Errorf("%s: it has lived for %s, want %s", step.name, since, step.since)
		}
		if isOver != step.isOver {
			t.Errorf("%s: the timer of an hour has fired: %v", step.name, isOver)
		}
		if off := time.Until(c.Now()) - step.wall; off.Abs() > time.Second {
			t.Errorf("%s: Now is off by %s", step.name, off)
		}
	}
}
