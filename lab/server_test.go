package lab

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheTokenIsFoundWhereTheServerPutIt(t *testing.T) {
	s := server{dataDir: t.TempDir()}
	if got := s.token(); got != "" {
		t.Errorf("without the file: %q", got)
	}
	token := "slipway_" + strings.Repeat("0f", 32)
	if err := os.WriteFile(filepath.Join(s.dataDir, "admin.token"), []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := s.token(); got != token {
		t.Errorf("got %q, want %q", got, token)
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
