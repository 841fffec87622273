package hosts

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"

	"slipway.dev/slipway/inventory"
)

func TestTheEscapeEndsAConsole(t *testing.T) {
	for _, tc := range []struct {
		name, typed, want string
		isLeft            bool
	}{
		{"at once", "~.", "", true},
		{"after a line", "ls\r~.", "ls\r", true},
		{"not within a line", "cd ~./x\r", "cd ~./x\r", false},
		{"not after a blank", " ~.", " ~.", false},
		{"typed twice it is one", "~~.\r", "~.\r", false},
		{"another key sends both", "~x\r", "~x\r", false},
		{"a line end after it begins a line", "~\r~.", "~\r", true},
		{"what is typed behind it is lost", "a\n~.rm -rf /\n", "a\n", true},
	} {
		for _, reader := range []struct {
			name string
			of   func(io.Reader) io.Reader
		}{{"at once", func(r io.Reader) io.Reader { return r }}, {"byte by byte", iotest.OneByteReader}} {
			t.Run(tc.name+", "+reader.name, func(t *testing.T) {
				var sent strings.Builder
				isLeft, err := typeInto(&sent, reader.of(strings.NewReader(tc.typed)))
				if err != nil || isLeft != tc.isLeft || sent.String() != tc.want {
					t.Errorf("%q, left %t, %v; want %q, %t", sent.String(), isLeft, err, tc.want, tc.isLeft)
				}
			})
		}
	}
}

func TestAConsoleCarriesBothWaysUntilItIsLeft(t *testing.T) {
	here, there := net.Pipe()
	typing, keys := io.Pipe()
	screen, shown := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- talk(typing, shown, here) }()
	buf := make([]byte, 64)
	for _, step := range []func() (int, error){
		func() (int, error) { return io.WriteString(keys, "hi\r") },
		func() (int, error) { return io.ReadFull(there, buf[:3]) },
		func() (int, error) { return io.WriteString(there, "ok") },
		func() (int, error) { return io.ReadFull(screen, buf[3:5]) },
		func() (int, error) { return io.WriteString(keys, "~.") },
	} {
		if _, err := step(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-ended; err != nil || string(buf[:5]) != "hi\rok" {
		t.Errorf("%q: %v", buf[:5], err)
	}
}

// broken is a line that breaks when it is read.
type broken struct{ net.Conn }

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestAConsoleThatBreaksIsAFailure(t *testing.T) {
	here, there := net.Pipe()
	defer func() { _ = there.Close() }()
	typing, keys := io.Pipe()
	defer func() { _ = keys.Close() }()
	var e *inventory.Error
	if err := talk(typing, io.Discard, broken{here}); !errors.As(err, &e) || e.Hint == "" {
		t.Errorf("%v", err)
	}
	_ = here.Close()
}
