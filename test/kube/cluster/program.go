package cluster

import (
	"os"
	"path/filepath"
	"testing"
)

// Program is a program of someone else's that runs beside a control plane.
type Program struct{ *process }

// Run starts a program of build/parts. It is stopped at the end of the test; its log is shown when the test has failed.
func Run(t testing.TB, name string, args ...string) Program {
	t.Helper()
	p := Program{start(t, filepath.Join(t.TempDir(), name+".log"), Part(t, name), args...)}
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Log(p.tail())
		}
	})
	return p
}

// Ended returns why the program is not running any more, nil while it does.
func (p Program) Ended() error { return p.ended() }

// Stop ends the program, gently first.
func (p Program) Stop() { p.stop() }

// Log returns all that the program has said.
func (p Program) Log() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Tail returns the end of that.
func (p Program) Tail() string { return p.tail() }

// FreePort returns a port of loopback that nothing has at the moment.
func FreePort(t testing.TB) int { return freePort(t) }

// ServingCert returns certificate and key of the API server, which are good for localhost, PEM.
func (c *Cluster) ServingCert() (cert, key []byte) {
	c.t.Helper()
	cert, err := os.ReadFile(c.file("server.crt"))
	must(c.t, err)
	key, err = os.ReadFile(c.file("server.key"))
	must(c.t, err)
	return cert, key
}
