package postgres

import (
	"os"
	"strconv"
	"testing"
)

// Standby starts a server that has what s has and follows it, until Promote. It ends with the test. It has the settings of s and those of
// more.
func (s *Server) Standby(t testing.TB, more map[string]string) *Server {
	t.Helper()
	standby, err := newServer(s.bin, s.password, Options{TLS: s.options.TLS, Settings: more}, func(to *Server) error {
		if s.options.TLS { // of the same authority: clients know one for both
			for _, name := range []string{"ca.crt", "server.crt", "server.key"} {
				text, err := os.ReadFile(s.file(name))
				if err != nil {
					return err
				}
				if err := to.write(name, string(text)); err != nil {
					return err
				}
			}
		}
		// --write-recovery-conf makes it a standby, and leaves it the address of s with the password. WAL files come as the standby gets them,
		// until it runs.
		return to.run("pg_basebackup", "--pgdata="+to.data(), "--host="+s.dir, "--port="+strconv.Itoa(s.port), "--username=slipway",
			"--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync")
	})
	if err != nil {
		t.Fatalf("start a standby: %v\n%s", err, s.logSince(0))
	}
	standby.endWith(t)
	return standby
}

// Promote makes a standby a server that takes writes, and waits until it does.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	if err := s.control("promote"); err != nil {
		t.Fatalf("%v\n%s", err, s.logSince(0))
	}
}
