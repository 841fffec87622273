package host

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Consoles writes to every console of the kernel. So both the screen and the serial line of the BMC show the progress. It
// skips a console that accepts no output, and never waits for one.
type Consoles struct {
	mu    sync.Mutex
	files []*os.File
}

// OpenConsoles opens what /proc/consoles lists; standard error when there is none.
func OpenConsoles() *Consoles {
	c := &Consoles{}
	text, _ := os.ReadFile("/proc/consoles")
	for _, name := range consoleNames(string(text)) {
		// O_NOCTTY: PID 1 has no terminal yet, and Ctrl-C on a console must not reach the agent. O_NONBLOCK: a serial line whose
		// BMC holds the flow control would stop the agent at its first message. It also lets Write set deadlines.
		f, err := os.OpenFile("/dev/"+name, os.O_WRONLY|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
		if err == nil {
			c.files = append(c.files, f)
		}
	}
	if c.files == nil {
		c.files = []*os.File{os.Stderr}
	}
	return c
}

// consoleNames reads /proc/consoles: "ttyS0                -W- (EC p a)    4:64".
func consoleNames(text string) (names []string) {
	for _, line := range strings.Split(text, "\n") {
		f := strings.Fields(line)
		if len(f) < 2 || !strings.Contains(f[1], "W") || strings.ContainsAny(f[0], "/.") || len(names) == 8 {
			continue
		}
		// The second field has W where the kernel can write there. At most 8 consoles: each may cost a deadline for each line.
		names = append(names, f[0])
	}
	return names
}

// Write sends text to all of them. It always reports success: a log that failed because of a dead serial line would hide the
// message from the screen, too.
func (c *Consoles) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Serial consoles are raw: without the carriage return each line begins where the last one ended.
	text := bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))
	for _, f := range c.files {
		// A serial line of 115,200 baud takes some 2 KiB in this time. A longer text loses its end there and nowhere else.
		_ = f.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
		_, _ = f.Write(text)
	}
	return len(p), nil
}

// LineHandler is a slog handler that writes for people: seconds since the kernel started, the message, what belongs to
// it. Errors of inventory show their hint as well.
type LineHandler struct {
	Out   io.Writer
	Level slog.Level
	Since func() time.Duration // since the kernel started
	attrs []slog.Attr
}

// Enabled implements slog.Handler.
func (h *LineHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.Level }

// Handle implements slog.Handler.
func (h *LineHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	fmt.Fprintf(&b, "[%9.3f] slipway: ", h.Since().Seconds())
	if r.Level >= slog.LevelError {
		b.WriteString("ERROR: ")
	}
	b.WriteString(r.Message)
	add := func(a slog.Attr) bool {
		text := a.Value.String()
		if text == "" {
			return true
		}
		// Values come from disks, firmware and servers. Quoting keeps a line a line, and escape sequences from the terminal.
		if strings.ContainsAny(text, " \n\t\x1b\"=") {
			text = strconv.Quote(text)
		}
		fmt.Fprintf(&b, " %s=%s", a.Key, text)
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	b.WriteByte('\n')
	_, err := io.WriteString(h.Out, b.String())
	return err
}

// WithAttrs implements slog.Handler.
func (h *LineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	c.attrs = append(append([]slog.Attr(nil), h.attrs...), attrs...)
	return &c
}

// WithGroup implements slog.Handler; lines have no groups.
func (h *LineHandler) WithGroup(string) slog.Handler { return h }
