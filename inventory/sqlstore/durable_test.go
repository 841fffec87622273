package sqlstore

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/storetest"
)

const childPath = "SLIPWAY_TEST_CHILD_DATABASE"

func TestMain(m *testing.M) {
	if path := os.Getenv(childPath); path != "" {
		writeUntilKilled(path)
		return
	}
	os.Exit(m.Run())
}

// writeUntilKilled is the child process of the test below: it saves leases from many goroutines and prints the
// address of each that was acknowledged.
func writeUntilKilled(path string) {
	s, err := Open(context.Background(), Config{Path: path})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	var out sync.Mutex
	for w := range 16 {
		go func() {
			for i := 0; ; i++ {
				l := storetest.Lease("rack1", 1, (w*1000+i%1000)%50000)
				l.Hostname = fmt.Sprint(i)
				if err := s.Write(context.Background(), func(tx inventory.Tx) error { return tx.SaveLease(l) }); err != nil {
					fmt.Println("error", err)
					os.Exit(1)
				}
				out.Lock()
				fmt.Println(l.Address, l.Hostname)
				out.Unlock()
			}
		}()
	}
	select {}
}

func TestNoAcknowledgedLeaseIsLostToKill9(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slipway.db")
	s := openTest(t, path)
	subnet := storetest.Subnet("rack1", 1)
	if err := s.Write(t.Context(), func(tx inventory.Tx) error { return tx.Subnets().Create(&subnet, storetest.Now) }); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for round := range 6 {
		acknowledged := killWriter(t, path)
		s, err := Open(t.Context(), Config{Path: path})
		if err != nil {
			t.Fatalf("round %d: open after the kill: %v", round, err)
		}
		err = s.Read(t.Context(), func(tx inventory.Tx) error {
			for address, at := range acknowledged {
				l, err := tx.FindLease(address)
				if err != nil {
					return err
				}
				var stored int
				if _, err := fmt.Sscan(l.Hostname, &stored); err != nil || stored < at {
					t.Errorf("round %d: lease %s was acknowledged at %d but is at %q", round, address, at, l.Hostname)
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		var verdict string
		if err := value(t, s, &verdict, `PRAGMA integrity_check`); err != nil || verdict != "ok" {
			t.Errorf("round %d: integrity check says %q, %v", round, verdict, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("round %d: close: %v", round, err)
		}
	}
}

// killWriter runs the child, kills it at a random moment, and returns the latest acknowledged write of each address.
func killWriter(t *testing.T, path string) map[netip.Addr]int {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childPath+"="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	acknowledged := map[netip.Addr]int{}
	lines := bufio.NewScanner(out)
	var kill *time.Timer
	for lines.Scan() {
		address, n, _ := strings.Cut(lines.Text(), " ")
		a, err := netip.ParseAddr(address)
		if err != nil {
			if len(acknowledged) > 0 && !strings.HasPrefix(lines.Text(), "error") {
				continue // a line that the kill cut short
			}
			t.Fatalf("the child says %q", lines.Text())
		}
		var at int
		if _, err := fmt.Sscan(n, &at); err != nil {
			continue
		}
		acknowledged[a] = max(acknowledged[a], at)
		if kill == nil && len(acknowledged) >= 50 { // however slow the disk is
			kill = time.AfterFunc(time.Duration(20+rand.IntN(100))*time.Millisecond, func() { _ = child.Process.Kill() })
		}
	}
	_ = child.Wait() // killed, as wished
	if len(acknowledged) < 50 {
		t.Fatalf("the child was acknowledged only %d leases", len(acknowledged))
	}
	return acknowledged
}

func TestAReopenedDatabaseHasEverything(t *testing.T) {
	path := filepath.Join(t.TempDir(), "odd name%20?#.db")
	s, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	h := storetest.Host(1)
	if err := s.Write(t.Context(), func(tx inventory.Tx) error { return tx.CreateHost(&h, storetest.Now) }); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if info, err := os.Stat(path + suffix); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; only its owner may read it", path+suffix, info.Mode(), err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	wantError(t, s.Write(t.Context(), func(inventory.Tx) error { return nil }), inventory.Unavailable, "stopping")
	s = openTest(t, path)
	backup := filepath.Join(t.TempDir(), "backup.db")
	if err := s.Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	wantError(t, s.Backup(t.Context(), backup), inventory.Conflict, "exists already")
	if left, _ := filepath.Glob(filepath.Dir(backup) + "/*"); len(left) != 1 {
		t.Errorf("the backup left %v", left)
	}
	for name, s := range map[string]*Store{"reopened": s, "backup": openTest(t, backup)} {
		err := s.Read(t.Context(), func(tx inventory.Tx) error { _, err := tx.FindHostByMAC(h.NICs[0].MAC); return err })
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOnCommitWakesAfterEventsOnly(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "slipway.db"))
	woken := make(chan struct{}, 10)
	s.OnCommit(func() { woken <- struct{}{} })
	h := storetest.Host(1)
	for _, step := range []struct {
		about string
		fn    func(inventory.Tx) error
		want  bool
	}{
		{"no event", func(tx inventory.Tx) error { return tx.CreateHost(&h, storetest.Now) }, false},
		{"an undone event", func(tx inventory.Tx) error {
			if err := tx.AddEvent(&inventory.Event{Kind: "server"}); err != nil {
				return err
			}
			return fs.ErrInvalid
		}, false},
		{"an event", func(tx inventory.Tx) error { return tx.AddEvent(&inventory.Event{Kind: "server"}) }, true},
	} {
		_ = s.Write(t.Context(), step.fn) // one of them fails, as wished
		// The wake-up comes after the answer; the next write begins after the wake-up.
		if err := s.Write(t.Context(), func(inventory.Tx) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if got := len(woken) == 1; got != step.want {
			t.Errorf("%s: woken is %v", step.about, got)
		}
		for len(woken) > 0 {
			<-woken
		}
	}
}

// The write-ahead log grows to its bound, which spares the disk, and little beyond.
func TestTheWriteAheadLogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slipway.db")
	s := openTest(t, path)
	for range 160 {
		err := s.Write(t.Context(), func(tx inventory.Tx) error {
			for range 1000 {
				ev := inventory.Event{At: storetest.Now, Kind: inventory.EventBootDecided, Detail: strings.Repeat("x", 1000)}
				if err := tx.AddEvent(&ev); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if mib := info.Size() >> 20; mib < 12 || mib > 120 { // of 230 that were written; on a busy machine it is looked at late
		t.Errorf("the write-ahead log has %d MiB after 160 MiB of events, want about 16 to 40", mib)
	}
}

func TestAWriteThatEndsItsGoroutineDoesNotStopTheStore(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "slipway.db"))
	err := s.Write(t.Context(), func(tx inventory.Tx) error {
		h := storetest.Host(1)
		if err := tx.CreateHost(&h, storetest.Now); err != nil {
			return err
		}
		runtime.Goexit()
		return nil
	})
	if err == nil {
		t.Error("the write was acknowledged")
	}
	err = s.Write(t.Context(), func(tx inventory.Tx) error {
		n, err := tx.CountHosts(inventory.HostFilter{})
		if n != 0 {
			t.Error("the write left a trace")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAnotherProgramThatHoldsTheDatabaseIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slipway.db")
	s := openTest(t, path)
	other := openTest(t, path)
	if _, err := run(t, s, `PRAGMA busy_timeout = 1`); err != nil && !strings.Contains(err.Error(), "row") {
		t.Fatal(err)
	}
	held, hold := make(chan struct{}), make(chan struct{})
	done := make(chan error)
	go func() {
		done <- other.Write(t.Context(), func(inventory.Tx) error { close(held); <-hold; return nil })
	}()
	<-held
	wantError(t, s.Write(t.Context(), func(inventory.Tx) error { return nil }), inventory.Unavailable, "another program")
	close(hold)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := s.Write(t.Context(), func(inventory.Tx) error { return nil }); err != nil {
		t.Errorf("after the other program let go: %v", err)
	}
}

// TestAFullDiskFailsTheWriteAndTheStoreGoesOn limits the number of pages, which SQLite reports as a full disk.
func TestAFullDiskFailsTheWriteAndTheStoreGoesOn(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "slipway.db"))
	limitPages := func(n int) {
		var now int
		if err := value(t, s, &now, fmt.Sprintf(`PRAGMA max_page_count = %d`, n)); err != nil {
			t.Fatal(err)
		}
	}
	limitPages(1) // SQLite takes it as: no more than now
	err := s.Write(t.Context(), func(tx inventory.Tx) error {
		for n := range 1000 {
			h := storetest.Host(n)
			if err := tx.CreateHost(&h, storetest.Now); err != nil {
				// A caller that ignores the error gets it again, and at the end the whole write fails.
				if again := tx.AddEvent(&inventory.Event{Kind: "server"}); again == nil {
					t.Error("a lost transaction went on")
				}
				return nil
			}
		}
		return nil
	})
	wantError(t, err, inventory.Unavailable, "disk with the database is full")
	limitPages(1 << 30)
	err = s.Write(t.Context(), func(tx inventory.Tx) error {
		n, err := tx.CountHosts(inventory.HostFilter{})
		if n != 0 {
			t.Errorf("%d hosts are left of the failed write", n)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
