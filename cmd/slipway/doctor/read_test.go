package doctor

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// holdEnv names the file that a process of this test locks, until its standard input ends.
const holdEnv = "SLIPWAY_TEST_HOLD"

func TestMain(m *testing.M) {
	if path := os.Getenv(holdEnv); path != "" {
		hold(path)
		return
	}
	os.Exit(m.Run())
}

func hold(path string) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		panic(err)
	}
	at := int64(pendingByte)
	if filepath.Ext(path) == ".db-shm" {
		at = writerByte
	}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: at, Len: 1}); err != nil {
		panic(err)
	}
	println("locked")
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
}

// holder starts a process that has a file locked, as a writer of SQLite has.
func holder(t *testing.T, path string) (pid int, end func()) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), holdEnv+"="+path)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return c.Process.Pid, func() {
		_ = in.Close()
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
}

func TestWhoKeepsTheDatabaseLockedIsNamed(t *testing.T) {
	for _, name := range []string{"slipway.db-shm", "slipway.db"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := Database{Path: filepath.Join(t.TempDir(), "slipway.db"), IsThere: true}
			if err := os.WriteFile(d.Path, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			if d.WaitLocker(0); d.LockedBy != 0 || d.Locker != "" {
				t.Errorf("nobody has it, and it is %+v", d)
			}
			pid, end := holder(t, filepath.Join(filepath.Dir(d.Path), name))
			if d.WaitLocker(pid); d.LockedBy != 0 {
				t.Errorf("the server is told of itself: %+v", d)
			}
			if d.WaitLocker(0); d.LockedBy != pid || d.Locker == "" {
				t.Errorf("process %d has it, and it is %+v", pid, d)
			}
			end()
			if pid := locker(d.Path); pid != 0 {
				t.Errorf("it is free, and process %d has it", pid)
			}
		})
	}
}

func TestADatabaseIsAsOldAsItsLatestFile(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct{ db, wal, want time.Duration }{
		"its log is newer":  {time.Hour, 2 * time.Hour, 2 * time.Hour},
		"its log is older":  {2 * time.Hour, time.Hour, 2 * time.Hour},
		"there is no log":   {time.Hour, 0, time.Hour},
		"there is only one": {0, time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "slipway.db")
			for file, since := range map[string]time.Duration{path: tc.db, path + "-wal": tc.wal} {
				if since == 0 {
					continue
				}
				if err := errors.Join(os.WriteFile(file, []byte("x"), 0o600), os.Chtimes(file, at.Add(since), at.Add(since))); err != nil {
					t.Fatal(err)
				}
			}
			d := readDatabase(path)
			if d.Err != nil || d.IsThere != (tc.db != 0) {
				t.Fatalf("%+v", d)
			}
			if want := at.Add(tc.want); tc.want != 0 && !d.WrittenAt.Equal(want) || tc.want == 0 && !d.WrittenAt.IsZero() {
				t.Errorf("written at %s, want %s", d.WrittenAt, want)
			}
		})
	}
}

func TestWhatThisMachineHasIsRead(t *testing.T) {
	if lo := ReadInterface("lo"); !lo.IsThere || lo.MTU == 0 || len(lo.Prefixes) > 0 && lo.Prefixes[0].Bits() != 8 || lo.HasLinkLocal {
		t.Errorf("%+v", lo)
	}
	if slices.Contains(InterfaceNames(), "lo") {
		t.Error("loopback is offered")
	}
	for name, n := range ReadSysctl() {
		if name != ipForward && n <= 0 {
			t.Errorf("%s is %d", name, n)
		}
	}
	if _, err := os.Stat(sysctlPath(ipForward)); err == nil && len(ReadSysctl()) == 0 {
		t.Error("no setting is read")
	}
}

func TestWhoHasAFileOpenIsFoundByAnyPathToIt(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	f, err := os.Create("lock")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Symlink(dir, "again"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"lock", filepath.Join(dir, "lock"), "again/lock"} {
		if pid := Holder(path); pid != os.Getpid() {
			t.Errorf("%s is held by %d, want %d", path, pid, os.Getpid())
		}
	}
	if pid := Holder("other"); pid != 0 {
		t.Errorf("a file that is not there is held by %d", pid)
	}
}

func TestTheDataDirectoryIsReadAsItIs(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600)
	os.Mkdir(filepath.Join(dir, "open"), 0o700)
	os.WriteFile(filepath.Join(dir, "open", "secret.key"), []byte("x"), 0o644)
	os.Mkdir(filepath.Join(dir, "kept"), 0o700)
	os.WriteFile(filepath.Join(dir, "kept", "secret.key"), []byte("x"), 0o600)
	for name, want := range map[string]string{
		"kept": OK, "new": OK, "new/below/new": OK, // before the first start nothing is wrong
		"file": Failed, "file/below": Failed, "open": Failed,
	} {
		if k := DataDir(readDataDir(filepath.Join(dir, name))); k.Status != want || want == Failed && k.Hint == "" {
			t.Errorf("%s: %+v, want %s", name, k, want)
		}
	}
}
