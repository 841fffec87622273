package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Standby starts a server that has what s has and follows it, until Promote. It ends with the test. It has the settings of s and those of
// more.
func (s *Server) Standby(t testing.TB, more map[string]string) *Server {
	t.Helper()
	standby, err := newServer(s.bin, s.password, Options{TLS: s.options.TLS, Settings: more}, func(to *Server) error {
		if s.options.TLS { // of the same authority: clients know one for both
			for _, name := range []string{"ca.crt", "server.crt", "server.key"} {
				if err := copyFile(s.file(name), to, name); err != nil {
					return err
				}
			}
		}
		return s.backUp(t.Context(), to)
	})
	if err != nil {
		t.Fatalf("start a standby: %v\n%s", err, s.logSince(0))
	}
	standby.endWith(t)
	return standby
}

// backUp copies the files of s, which runs on, to a standby. It does what pg_basebackup does, which is not among the programs of versions
// that Debian does not have.
func (s *Server) backUp(ctx context.Context, to *Server) error {
	begin, end := `SELECT pg_backup_start('standby', true)`, `SELECT labelfile FROM pg_backup_stop(false)`
	if major(s.bin) < 15 {
		begin, end = `SELECT pg_start_backup('standby', true, false)`, `SELECT labelfile FROM pg_stop_backup(false, false)`
	}
	c, err := pgx.Connect(ctx, s.SocketURL("postgres"))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	if _, err := c.Exec(ctx, begin); err != nil {
		return err
	}
	if err := copyFolder(s.data(), to); err != nil {
		return err
	}
	var label string
	if err := c.QueryRow(ctx, end).Scan(&label); err != nil {
		return err
	}
	// The standby reads from the label where its copy began, and gets from s what was written since.
	auto, err := os.ReadFile(s.file("data/postgresql.auto.conf"))
	if err != nil {
		return err
	}
	auto = fmt.Appendf(auto, "primary_conninfo = 'host=%s port=%d user=slipway password=%s'\n", s.dir, s.port, s.password)
	for name, text := range map[string]string{"backup_label": label, "standby.signal": "", "postgresql.auto.conf": string(auto)} {
		if err := to.write("data/"+name, text); err != nil {
			return err
		}
	}
	return nil
}

// copyFolder copies the data of a server that runs. A file that goes meanwhile is one that the standby gets in another way.
func copyFolder(from string, to *Server) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != from {
			return nil
		}
		if err != nil {
			return err
		}
		name := "data" + strings.TrimPrefix(path, from)
		if entry.IsDir() {
			if err := os.Mkdir(to.file(name), 0o700); err != nil || to.as == nil {
				return err
			}
			return os.Chown(to.file(name), int(to.as.Uid), int(to.as.Gid))
		}
		if strings.HasPrefix(entry.Name(), "postmaster.") { // of the process
			return nil
		}
		if err := copyFile(path, to, name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

func copyFile(path string, to *Server, name string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return to.write(name, string(text))
}

// Promote makes a standby a server that takes writes, and waits until it does.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	if err := s.control("promote"); err != nil {
		t.Fatalf("%v\n%s", err, s.logSince(0))
	}
}
