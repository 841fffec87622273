package agent

import (
	"bytes"
	"context"
	"sync"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

// maxLines bounds the log that waits for the server, in bytes; a machine that cannot reach its server keeps the end.
const maxLines = 64 << 10

// Lines collects log lines for the server. It is an io.Writer, safe for concurrent use; the zero value is ready.
type Lines struct {
	mu       sync.Mutex
	text     []byte
	droppedN int
}

// Write adds whole lines. The logger calls it, so that it never waits for the network.
func (l *Lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	l.cut()
	return len(p), nil
}

// cut drops whole lines from the front until the rest fits.
func (l *Lines) cut() {
	for len(l.text) > maxLines {
		i := bytes.IndexByte(l.text, '\n')
		if i < 0 {
			i = len(l.text) - 1
		}
		l.text = l.text[i+1:]
		l.droppedN++
	}
}

// take returns and empties what is there.
func (l *Lines) take() (string, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text, n := string(l.text), l.droppedN
	l.text, l.droppedN = nil, 0
	return text, n
}

// sendLines brings the log to the server in batches.
func (a *agent) sendLines(ctx context.Context) {
	if a.Lines == nil {
		return
	}
	ticker := time.NewTicker(linesEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			a.flushLines(ctx)
		}
	}
}

// flushLines sends what there is now. What cannot be sent goes back and is tried again with the next batch.
func (a *agent) flushLines(ctx context.Context) {
	if a.Lines == nil {
		return
	}
	text, droppedN := a.Lines.take()
	if text == "" {
		return
	}
	if droppedN > 0 {
		text = "(earlier lines were dropped)\n" + text
	}
	err := a.door.report(ctx, wire.Report{State: wire.Log, Log: inventory.CleanLines(text, maxLines)})
	if err != nil {
		// Lines that came meanwhile stay behind these.
		a.Lines.putBack(text)
	}
}

// putBack returns what could not be sent to the front of the queue.
func (l *Lines) putBack(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append([]byte(text), l.text...)
	l.cut()
}
