package cli

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"slipway.dev/slipway/web/client"
)

// bar shows the progress of an import: one line that moves on a terminal, elsewhere a line per step.
type bar struct {
	s      *Session
	isLive bool
	last   string
}

// NewBar returns a progress bar on the error output of the session.
func NewBar(s *Session) *bar { return &bar{s: s, isLive: s.isTerminal()} }

func (b *bar) Show(j client.Job) {
	if j.IsEnded() {
		return
	}
	p := j.Progress
	if j.State == "waiting" {
		p.Note = "waiting for another import"
	}
	if !b.isLive {
		line := strings.TrimSpace(fmt.Sprintf("%s %s", p.Step, p.File))
		if p.Note != "" {
			line = strings.TrimPrefix(line+": "+p.Note, ": ")
		}
		if line != b.last && line != "" {
			b.s.Say("%s", line)
			b.last = line
		}
		return
	}
	width := 80
	if f, ok := b.s.Err.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 10 {
			width = w - 1
		}
	}
	line := drawBar(p, width)
	if p.Note != "" && p.Note != b.last {
		fmt.Fprintf(b.s.Err, "\r\x1b[K%s\n", Plain(p.Note))
		b.last = p.Note
	}
	fmt.Fprintf(b.s.Err, "\r\x1b[K%s", Plain(line))
}

func (b *bar) End() {
	if b.isLive {
		fmt.Fprint(b.s.Err, "\r\x1b[K")
	}
}
