package lab

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheTokenIsFoundInWhatTheServerPrints(t *testing.T) {
	token := "slipway_" + strings.Repeat("0f", 32)
	for _, c := range []struct{ name, log, want string }{
		{"at a first start", "ok  clock\nadmin token, shown only now: " + token + "\nAPI on ...", token},
		{"not when there is none", "ok  clock\nAPI on http://127.0.0.1:8067\n", ""},
		{"not a shorter word", "slipway_0123 is not one", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := server{logPath: filepath.Join(t.TempDir(), "serve.log")}
			if err := os.WriteFile(s.logPath, []byte(c.log), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := s.token(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestAnotherPortIsTakenWhenTheUsualOneIsNotFree(t *testing.T) {
	first, err := listenAdmin()
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := listenAdmin()
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	a, b := first.Addr().(*net.TCPAddr), second.Addr().(*net.TCPAddr)
	if a.Port == b.Port || !a.IP.IsLoopback() || !b.IP.IsLoopback() {
		t.Errorf("%s and %s", a, b)
	}
}
