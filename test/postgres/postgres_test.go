package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	neturl "net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ask reads one value as text.
func ask(t *testing.T, url, sql string) string {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	var v string
	if err := c.QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func must(t *testing.T, url, sql string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	if _, err := c.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func TestAPostgreSQLServerSyncsAndAsksForThePassword(t *testing.T) {
	s := Shared(t)
	url := s.Database(t)
	if got := ask(t, url, "SHOW fsync"); got != "on" {
		t.Errorf("fsync is %s", got)
	}
	if got := ask(t, s.SocketURL("postgres"), "SELECT COALESCE(inet_server_addr()::text, 'socket')"); got != "socket" {
		t.Errorf("the socket leads to %s", got)
	}
	for _, wrong := range []string{s.URL("postgres"), s.SocketURL("postgres")} {
		_, err := pgx.Connect(t.Context(), strings.Replace(wrong, s.password, "wrong", 1))
		var said *pgconn.PgError
		if !errors.As(err, &said) || said.Code != "28P01" {
			t.Errorf("a wrong password: %v", err)
		}
	}
}

func TestEachTestHasAPostgreSQLDatabaseOfItsOwn(t *testing.T) {
	s := Shared(t)
	n := 0
	fill := func(url string) error {
		n++
		must(t, url, "CREATE TABLE a (b TEXT)")
		must(t, url, "INSERT INTO a VALUES ('filled')")
		return nil
	}
	one, two := s.Filled(t, "a", fill), s.Filled(t, "a", fill)
	must(t, one, "UPDATE a SET b = 'changed'")
	if got := ask(t, two, "SELECT b FROM a"); got != "filled" || n != 1 {
		t.Errorf("the second database has %q; it was filled %d times", got, n)
	}
	if got := ask(t, s.Database(t), "SELECT COUNT(*)::text FROM pg_class WHERE relname = 'a'"); got != "0" {
		t.Error("an empty database has a table")
	}
}

func TestAPostgreSQLServerKeepsWhatItHas(t *testing.T) {
	s := Start(t, Options{Settings: map[string]string{"work_mem": "5MB"}})
	url := s.Database(t)
	must(t, url, "CREATE TABLE a (b TEXT)")
	for _, mode := range []Mode{Fast, Immediate} {
		must(t, url, "INSERT INTO a VALUES ('x')")
		s.Stop(t, mode)
		if c, err := pgx.Connect(t.Context(), url); err == nil {
			c.Close(t.Context())
			t.Errorf("%s: the server still answers", mode)
		}
		s.StartAgain(t)
	}
	if got := ask(t, url, "SELECT COUNT(*)::text FROM a"); got != "2" {
		t.Errorf("%s rows are left", got)
	}
	if got := ask(t, url, "SHOW work_mem"); got != "5MB" {
		t.Errorf("work_mem is %s", got)
	}
}

func TestAPostgreSQLServerWithTLSRefusesOthers(t *testing.T) {
	s := Start(t, Options{TLS: true})
	if got := ask(t, s.Database(t), "SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()"); !strings.HasPrefix(got, "TLSv1.") {
		t.Errorf("the connection has %q", got)
	}
	plain := strings.Replace(s.URL("postgres"), "verify-full", "disable", 1)
	if _, err := pgx.Connect(t.Context(), plain); err == nil || !strings.Contains(err.Error(), "no encryption") {
		t.Errorf("without encryption: %v", err)
	}
}

// TestAPostgreSQLStandbyTakesOver loses the first server in a power cut. A commit waits for the standby, so that it has all of them.
func TestAPostgreSQLStandbyTakesOver(t *testing.T) {
	s := Start(t, Options{TLS: true, Settings: map[string]string{"synchronous_standby_names": "*", "synchronous_commit": "local"}})
	url := s.Database(t)
	must(t, url, "CREATE TABLE a (b TEXT)")
	standby := s.Standby(t, nil)
	must(t, url, "SET synchronous_commit = remote_apply; INSERT INTO a VALUES ('x')")
	u, err := neturl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	there := standby.URL(strings.TrimPrefix(u.Path, "/"))
	if got := ask(t, there, "SELECT pg_is_in_recovery()::text || COUNT(*) FROM a"); got != "true1" {
		t.Errorf("the standby says %s", got)
	}
	s.Stop(t, Immediate)
	standby.Promote(t)
	must(t, there, "SET synchronous_commit = local; INSERT INTO a VALUES ('y')")
	if got := ask(t, there, "SELECT pg_is_in_recovery()::text || COUNT(*) FROM a"); got != "false2" {
		t.Errorf("after it took over, it says %s", got)
	}
}

func TestAPostgreSQLServerThatDoesNotStartSaysWhy(t *testing.T) {
	_, err := start(programs(t), Options{Settings: map[string]string{"no_such_setting": "1"}})
	if err == nil || !strings.Contains(err.Error(), `unrecognized configuration parameter "no_such_setting"`) {
		t.Errorf("got %v", err)
	}
}

// TestMakeRunsAllTestsThatNeedPostgreSQL looks for packages that use this one. Their tests skip where no ring runs them.
func TestMakeRunsAllTestsThatNeedPostgreSQL(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(makefile), "\nPOSTGRES := ")
	line, _, _ = strings.Cut(line, "\n")
	runs := append(strings.Fields(line), "./test/net", "./test/attack", "./test/bench", "./test/chaos") // targets of their own
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "build" || d.Name() == ".git") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "\t\"slipway.dev/slipway/test/postgres\"\n") {
			return err
		}
		folder := "./" + strings.TrimPrefix(filepath.Dir(path), "../../")
		if !slices.ContainsFunc(runs, func(p string) bool {
			below, all := strings.CutSuffix(p, "/...")
			return folder == below || all && strings.HasPrefix(folder, below+"/")
		}) {
			t.Errorf("%s needs PostgreSQL, and is not in POSTGRES of the Makefile", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

const victimEnv = "SLIPWAY_POSTGRES_VICTIM"

// TestAKilledTestLeavesNoPostgreSQLServer kills a test process that has started a server.
func TestAKilledTestLeavesNoPostgreSQLServer(t *testing.T) {
	if os.Getenv(victimEnv) != "" {
		s := Shared(t)
		pid, err := os.ReadFile(s.file("data/postmaster.pid"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("victim %s %s\n", s.dir, strings.Fields(string(pid))[0])
		time.Sleep(time.Minute)
		return
	}
	programs(t)
	victim := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	victim.Env = append(os.Environ(), victimEnv+"=1")
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	var dir string
	var pid int
	if _, err := fmt.Fscanf(out, "victim %s %d\n", &dir, &pid); err != nil {
		t.Fatal(err)
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		_, err := os.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the server %d or its folder %s is still there", pid, dir)
		}
	}
}
