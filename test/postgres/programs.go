package postgres

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// programs returns the folder of the PostgreSQL that Env names: of the newest one that is installed, or of a version that tools/postgres.sh
// has fetched. It skips the test when Env is not set, and fails it when there is none: a ring that was asked for must not look green.
func programs(t testing.TB) string {
	t.Helper()
	if !strings.Contains(t.Name(), "Postgre") {
		t.Fatal("a test that needs PostgreSQL has PostgreSQL or Postgres in its name: make test-postgres runs those")
	}
	version := os.Getenv(Env)
	switch version {
	case "":
		t.Skip("starts PostgreSQL, Debian's package postgresql; run: make test-postgres RUN=" + t.Name())
	case "1":
		return installed(t)
	}
	bin, err := fetched(version)
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

func installed(t testing.TB) string {
	t.Helper()
	all, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(all) == 0 {
		t.Fatal("PostgreSQL is not installed in /usr/lib/postgresql; run: apt-get install postgresql")
	}
	for i := range all {
		all[i] = filepath.Dir(all[i])
	}
	return slices.MaxFunc(all, func(a, b string) int { return major(a) - major(b) })
}

// fetched returns the folder of a version below the root of the project, which is above the folder of each test.
func fetched(version string) (string, error) {
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		if root == "/" {
			return "", fmt.Errorf("%s=%s: the test does not run in the folder of the project", Env, version)
		}
	}
	bin := filepath.Join(root, "build/postgres", version, "bin")
	if _, err := os.Stat(filepath.Join(bin, "initdb")); err != nil {
		return "", fmt.Errorf("PostgreSQL %s is not there: %w; run: tools/postgres.sh %s", version, err, version)
	}
	return bin, nil
}

// major returns the version of PostgreSQL whose programs are in a folder such as /usr/lib/postgresql/15/bin.
func major(bin string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	return n
}

// runner says who runs the server. PostgreSQL refuses to run as root.
func runner() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return nil, err
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// run runs a program of PostgreSQL.
func (s *Server) run(name string, args ...string) error {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir // the folder of the test may be one that its user cannot enter
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "PGPASSWORD="+s.password)
	// In a session of its own it does not get the Ctrl-C of the terminal: the guard ends it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as, Setsid: true}
	// A file, not a pipe: the server that pg_ctl starts has it, too, and a pipe ends when its last writer has ended.
	out, err := os.CreateTemp(s.dir, "out-")
	if err != nil {
		return err
	}
	defer out.Close()
	defer os.Remove(out.Name())
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(out.Name())
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, bytes.TrimSpace(said))
	}
	return nil
}
