package burn

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

// machine makes a root with disks of a few megabytes as plain files, and one port.
func machine(t *testing.T) *Source {
	t.Helper()
	root := t.TempDir()
	write(t, root, "dev/sda", strings.Repeat("old data", 1<<20))
	for name, text := range map[string]string{"carrier": "1\n", "carrier_changes": "2\n", "speed": "10000\n", "statistics/rx_bytes": "7\n"} {
		write(t, root, "sys/class/net/eth0/"+name, text)
	}
	return &Source{
		Root: root, Log: slog.New(slog.DiscardHandler), MemoryBytes: 2 * chunkBytes,
		Disks: []inventory.Disk{{Name: "sda", SizeBytes: 8 << 20}},
		Ports: []inventory.Port{{Name: "eth0", MAC: "52:54:00:aa:00:01", HasLink: true}, {Name: "eth1", MAC: "52:54:00:aa:00:02"}},
	}
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	file := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func silent(string, wire.Progress) {}

func TestAWellMachinePassesAllTests(t *testing.T) {
	report, err := machine(t).Run(t.Context(), wire.BurnInTask{ForSeconds: 1}, silent)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, test := range report.Tests {
		names = append(names, test.Name)
		if !test.Passed || test.Detail == "" {
			t.Errorf("%+v", test)
		}
	}
	if want := "cpu, memory, disk sda, port 52:54:00:aa:00:01"; strings.Join(names, ", ") != want {
		t.Errorf("tests %q, want %q: the port without a link is not tested", strings.Join(names, ", "), want)
	}
}

func TestADiskIsOnlyReadUnlessWritingIsAllowed(t *testing.T) {
	for _, c := range []struct {
		name     string
		mayWrite bool
		isKept   bool
	}{
		{"reading leaves the data", false, true},
		{"writing is allowed", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := machine(t)
			report, err := s.Run(t.Context(), wire.BurnInTask{ForSeconds: 1, Tests: []string{"disk"}, MayWrite: c.mayWrite}, silent)
			if err != nil || !report.Tests[0].Passed {
				t.Fatalf("%+v, %v", report, err)
			}
			got, err := os.ReadFile(filepath.Join(s.Root, "dev/sda"))
			if err != nil {
				t.Fatal(err)
			}
			if isKept := string(got[:8]) == "old data"; isKept != c.isKept || len(got) != 8<<20 {
				t.Errorf("data kept: %v of %d bytes, want %v", isKept, len(got), c.isKept)
			}
		})
	}
}

func TestADiskThatCannotBeReadDoesNotPass(t *testing.T) {
	s := machine(t)
	for _, c := range []struct {
		breakIt func() error
		want    string
	}{
		{func() error { return os.Truncate(filepath.Join(s.Root, "dev/sda"), 5<<20) }, "disk sda: read at 4 MiB"},
		{func() error { return os.Remove(filepath.Join(s.Root, "dev/sda")) }, "disk sda: open sda"},
	} {
		if err := c.breakIt(); err != nil {
			t.Fatal(err)
		}
		_, err := s.Run(t.Context(), wire.BurnInTask{ForSeconds: 1, Tests: []string{"disk"}}, silent)
		var e *inventory.Error
		if !errors.As(err, &e) || !strings.Contains(e.Msg, c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

func TestAWrongWordIsFound(t *testing.T) {
	b := make([]byte, 4096)
	stamp(b, 8192, 3)
	if at := stampedWrong(b, 8192, 3); at != -1 {
		t.Fatalf("a right block is wrong at %d", at)
	}
	b[1001] ^= 4
	if at := stampedWrong(b, 8192, 3); at != 1000 {
		t.Errorf("wrong at %d, want 1000", at)
	}
	stamp(b, 8192, 3)
	if at := stampedWrong(b, 4096, 3); at != 0 {
		t.Error("a block that was written elsewhere is not found")
	}
	if at := stampedWrong(b, 8192, 4); at != 0 {
		t.Error("a block of the pass before is not found")
	}

	for n, pattern := range patterns {
		w := make([]uint64, 1024)
		fill(w, 77, pattern)
		if at, _, _ := check(w, 77, pattern); at != -1 {
			t.Errorf("pattern %d: right memory is wrong at %d", n, at)
		}
		w[513] ^= 1 << 40
		if at, _, _ := check(w, 77, pattern); at != 513 {
			t.Errorf("pattern %d: wrong at %d, want 513", n, at)
		}
	}
}

func TestMemoryIsCheckedOnceHoweverShortTheTime(t *testing.T) {
	s := machine(t)
	s.MemoryBytes = 8 * chunkBytes
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // as on a machine that is so busy that the time is over before the first word is written
	got := s.memory(ctx)
	if !got.Passed || !strings.Contains(got.Detail, "1 passes") {
		t.Errorf("%+v", got)
	}
}

func TestAPortThatMisbehavesDoesNotPass(t *testing.T) {
	for _, c := range []struct{ name, file, text, want string }{
		{"its cable is loose", "carrier_changes", "4\n", "the link went away (2 changes)"},
		{"its cable is bad", "statistics/rx_crc_errors", "12\n", "rx_crc_errors grew by 12"},
		{"it falls back to a lower speed", "speed", "1000\n", "from 10000 to 1000 Mbit/s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := machine(t)
			before := s.counters("eth0")
			write(t, s.Root, "sys/class/net/eth0/"+c.file, c.text)
			if got := compare(before, s.counters("eth0"), 0); got.Passed || !strings.Contains(got.Detail, c.want) {
				t.Errorf("%+v, want %q", got, c.want)
			}
		})
	}
}

func TestACancelledBurnInEndsAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := machine(t).Run(ctx, wire.BurnInTask{ForSeconds: 3600}, silent); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestAnUnknownTestIsRefused(t *testing.T) {
	_, err := machine(t).Run(t.Context(), wire.BurnInTask{Tests: []string{"gpu"}}, silent)
	var e *inventory.Error
	if !errors.As(err, &e) || e.Kind != inventory.Invalid || e.Hint == "" {
		t.Errorf("%v", err)
	}
}
