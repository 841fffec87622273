// Package database runs the PostgreSQL server of a lab: programs of Debian's package postgresql, in a folder of the lab, as the user
// postgres. It listens on a Unix socket only, so that servers in any network namespace reach it and nobody else does. It never touches a
// PostgreSQL server of this machine, and knows no schema.
package database

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
)

// Programs is a pattern for the server program in Debian's package postgresql.
const Programs = "/usr/lib/postgresql/*/bin/postgres"

// account is the user that Debian's package makes. PostgreSQL refuses to run as root.
const account = "postgres"

// startFor is how long the server may take until it answers.
const startFor = 30 * time.Second

// Database is a running PostgreSQL server.
type Database struct {
	dir   string // data, socket and log; the user postgres owns it
	bin   string
	as    *syscall.Credential
	pwd   string // the file with the password, for servers that run as root
	cmd   *exec.Cmd
	ended chan struct{}
}

// Start makes an empty database in the folder, starts its server, and waits until it answers. The process id of the server is in
// postgres.pid in the folder, for a clean-up after a crash.
func Start(ctx context.Context, folder string) (*Database, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	d := &Database{dir: filepath.Join(folder, "postgres"), bin: bin, pwd: filepath.Join(folder, "postgres.password"), ended: make(chan struct{})}
	if d.as, err = credential(); err != nil {
		return nil, err
	}
	if err := d.fill(ctx); err != nil {
		return nil, err
	}
	if err := d.launch(filepath.Join(folder, "postgres.pid")); err != nil {
		return nil, err
	}
	if err := d.await(ctx); err != nil {
		d.Stop()
		return nil, err
	}
	return d, nil
}

// Flags returns the flags of slipway serve for this database.
func (d *Database) Flags() []string {
	// Every installation has the database postgres. Its owner is the role that initdb makes.
	u := url.URL{Scheme: "postgres", User: url.User("slipway"), Path: "/postgres", RawQuery: url.Values{"host": {d.dir}}.Encode()}
	return []string{"--database", u.String(), "--database-password-file", d.pwd}
}

// programs returns the folder with the newest PostgreSQL of this machine.
func programs() (string, error) {
	found, _ := filepath.Glob(Programs)
	newest, best := "", 0
	for _, path := range found {
		bin := filepath.Dir(path)
		if n, err := strconv.Atoi(filepath.Base(filepath.Dir(bin))); err == nil && n > best {
			newest, best = bin, n
		}
	}
	if newest == "" {
		return "", inventory.Errorf(inventory.Unavailable, "PostgreSQL is not installed in /usr/lib/postgresql").
			WithHint("apt-get install --no-install-recommends postgresql")
	}
	return newest, nil
}

func credential() (*syscall.Credential, error) {
	u, err := user.Lookup(account)
	if err != nil {
		return nil, inventory.Errorf(inventory.Unavailable, "the user who runs PostgreSQL is not there: %w", err).
			WithHint("Debian's package postgresql makes it")
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("read the id of user %s: %w", account, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("read the group of user %s: %w", account, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// fill makes the folder, the password and an empty database.
func (d *Database) fill(ctx context.Context) error {
	if err := os.Mkdir(d.dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of PostgreSQL: %w", err)
	}
	if err := os.Chown(d.dir, int(d.as.Uid), int(d.as.Gid)); err != nil {
		return fmt.Errorf("give PostgreSQL its folder: %w", err)
	}
	password := rand.Text()
	if err := os.WriteFile(d.pwd, []byte(password+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the password of the database: %w", err)
	}
	first := filepath.Join(d.dir, "first-password") // initdb reads it as the user postgres
	if err := os.WriteFile(first, []byte(password+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the password for initdb: %w", err)
	}
	defer os.Remove(first)
	if err := os.Chown(first, int(d.as.Uid), int(d.as.Gid)); err != nil {
		return fmt.Errorf("give initdb the password: %w", err)
	}
	out, err := d.command(ctx, "initdb", "--pgdata="+d.data(), "--username=slipway", "--pwfile="+first, "--auth=scram-sha-256",
		"--encoding=UTF8", "--locale=C.UTF-8", "--no-sync").CombinedOutput()
	if err != nil {
		return inventory.Errorf(inventory.Unavailable, "initdb makes no database: %w\n%s", err, strings.TrimSpace(string(out))).
			WithHint("the user %s must be able to enter %s", account, filepath.Dir(d.dir))
	}
	return nil
}

func (d *Database) data() string { return filepath.Join(d.dir, "data") }

// command is a program of PostgreSQL, as its user. In a session of its own it does not get the Ctrl-C of the terminal.
func (d *Database) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(d.bin, name), args...)
	cmd.Dir, cmd.Env = d.dir, append(os.Environ(), "LC_ALL=C.UTF-8")
	cmd.SysProcAttr = &unix.SysProcAttr{Credential: d.as, Setsid: true}
	return cmd
}

// launch starts the server.
func (d *Database) launch(pidFile string) error {
	log, err := os.Create(filepath.Join(d.dir, "log"))
	if err != nil {
		return fmt.Errorf("make the log of PostgreSQL: %w", err)
	}
	defer log.Close()
	d.cmd = d.command(context.Background(), "postgres", "-D", d.data(), "-k", d.dir,
		"-c", "listen_addresses=", // the socket only
		"-c", "dynamic_shared_memory_type=mmap") // in its folder, so that nothing stays in /dev/shm after kill -9
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := d.cmd.Start(); err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	go func() {
		_ = d.cmd.Wait() // why it ended is in its log
		close(d.ended)
	}()
	if err := os.WriteFile(pidFile, []byte(strconv.Itoa(d.cmd.Process.Pid)), 0o644); err != nil {
		d.Stop()
		return fmt.Errorf("note the process of PostgreSQL: %w", err)
	}
	return nil
}

func (d *Database) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startFor)
	defer cancel()
	for {
		if d.command(ctx, "pg_isready", "--quiet", "--host="+d.dir).Run() == nil {
			return nil
		}
		why := error(nil)
		select {
		case <-d.ended:
			why = errors.New("it ended at once")
		default:
			why = sleep.For(ctx, 50*time.Millisecond)
		}
		if why != nil {
			text, _ := os.ReadFile(filepath.Join(d.dir, "log"))
			return inventory.Errorf(inventory.Unavailable, "PostgreSQL does not start: %w\n%s", why, strings.TrimSpace(string(text)))
		}
	}
}

// Stop ends the server and waits for its end. A second call does nothing.
func (d *Database) Stop() {
	_ = d.cmd.Process.Signal(unix.SIGINT) // a fast shutdown: it ends the connections of its clients
	late := time.AfterFunc(10*time.Second, func() { _ = d.cmd.Process.Kill() })
	defer late.Stop()
	<-d.ended
}
