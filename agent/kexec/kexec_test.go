package kexec

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

func say(string, wire.Progress) {}

func TestKernelAndRAMDisksAreFetchedAndLoaded(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "file "+r.URL.Path) }))
	defer srv.Close()
	l := New(Config{})
	var kernel, initrd, line string
	l.load = func(k, i *os.File, args string) error {
		read := func(f *os.File) string {
			b, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
			if err != nil {
				t.Error(err)
			}
			return string(b)
		}
		kernel, initrd, line = read(k), read(i), args
		return nil
	}
	task := wire.Task{Kexec: &wire.KexecTask{Kernel: srv.URL + "/vmlinuz", Initrd: []string{srv.URL + "/a", srv.URL + "/bb"}, Args: []string{"quiet", "console=ttyS0"}}}
	if _, err := l.Handler(t.Context(), task, say); err != nil {
		t.Fatal(err)
	}
	if kernel != "file /vmlinuz" || initrd != "file /a\x00file /bb" || line != "quiet console=ttyS0" {
		t.Errorf("%q, %q, %q", kernel, initrd, line)
	}
}

func TestWhatCannotBeStartedIsExplained(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "not a kernel") }))
	defer srv.Close()
	cases := map[string]struct {
		task wire.KexecTask
		err  error
		says string
	}{
		"a file that is no kernel": {wire.KexecTask{Kernel: srv.URL}, syscall.ENOEXEC, "not a kernel"},
		"secure boot":              {wire.KexecTask{Kernel: srv.URL}, syscall.EPERM, "may not start another"},
		"a path without a system":  {wire.KexecTask{Kernel: "/boot/vmlinuz"}, nil, "no system was written"},
		"control characters":       {wire.KexecTask{Kernel: srv.URL, Args: []string{"a\x00b"}}, nil, "control characters"},
		"no kernel":                {wire.KexecTask{}, nil, "does not say which kernel"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := New(Config{})
			l.load = func(*os.File, *os.File, string) error { return c.err }
			_, err := l.Handler(context.Background(), wire.Task{Kexec: &c.task}, say)
			var e *inventory.Error
			if !errors.As(err, &e) || !strings.Contains(e.Msg, c.says) {
				t.Errorf("%v", err)
			}
		})
	}
}
