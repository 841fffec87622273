package consoles

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/power"
	"slipway.dev/slipway/web/wire"
)

// lines are the serial consoles that are open: one connection to each controller, for most allow no second, shared by all
// who look at it. What a console says is recorded for as long as it is open.
type lines struct {
	life    context.Context // ends with the server
	power   *power.Server
	now     func() time.Time
	running sync.WaitGroup

	mu   sync.Mutex
	open map[inventory.HostID]*line
	said map[inventory.HostID]*recording
}

// line is the console of one host. run owns conn until ready is closed. After that conn never changes, so that typing needs no
// lock; err is set before ready is closed, too.
type line struct {
	host  inventory.HostID
	ready chan struct{} // closed when conn or err is there
	conn  io.ReadWriteCloser
	err   error
	// listeners is under the mutex of lines; nil when the line is over.
	listeners map[*listener]bool
	end       context.CancelFunc
}

// listener is one who looks at a console. It is an io.ReadWriteCloser. One goroutine may read, others may write and close.
type listener struct {
	lines *lines
	line  *line
	said  chan []byte
	rest  []byte
	once  sync.Once
}

// listenerChunks is how many reads of up to 4 KiB a listener may be behind before it is cut off.
const listenerChunks = 256

// recordingBytes is how much of a console is kept of each host, and recordingsMax of how many hosts.
const (
	recordingBytes = 256 << 10
	recordingsMax  = 1000
)

// recording is the end of what a console has said. Offsets count from the first byte ever.
type recording struct {
	text  []byte
	end   int64
	at    time.Time
	marks []mark // ascending
}

// mark says when a console had said so much.
type mark struct {
	offset int64
	at     time.Time
}

// markEvery is how exactly it is known when something was said, and marksMax how many marks are kept: of a recording that
// has more, every other one goes.
const (
	markEvery = time.Second
	marksMax  = 4096
)

func (r *recording) add(b []byte, now time.Time) {
	if n := len(r.marks); n == 0 || now.Sub(r.marks[n-1].at) >= markEvery {
		r.marks = append(r.marks, mark{offset: r.end, at: now})
	}
	if len(r.marks) > marksMax {
		for i := range marksMax / 2 {
			r.marks[i] = r.marks[2*i]
		}
		r.marks = append(r.marks[:marksMax/2], r.marks[marksMax:]...)
	}
	r.end += int64(len(b))
	r.at = now
	r.text = append(r.text, b...)
	if over := len(r.text) - recordingBytes; over > 0 {
		// A copy, and not a slice of the old one, whose array would grow without end.
		r.text = append(make([]byte, 0, recordingBytes+4<<10), r.text[over:]...)
	}
}

// lines are the lines of a recording without escape codes, each with when it began to be said; the newest linesMax.
func (r *recording) lines() (all []wire.ConsoleLine) {
	marks := r.marks
	offset := r.end - int64(len(r.text))
	for raw := range bytes.SplitSeq(r.text, []byte("\n")) {
		for len(marks) > 1 && marks[1].offset <= offset {
			marks = marks[1:]
		}
		if len(marks) > 0 {
			all = append(all, wire.ConsoleLine{At: marks[0].at, Text: strings.TrimRight(plainText(raw), "\n")})
		}
		// The line end counts, too: offsets are of the text as it was said.
		offset += int64(len(raw)) + 1
	}
	if n := len(all); n > 0 && all[n-1].Text == "" {
		all = all[:n-1] // what comes behind the last line end was not said yet
	}
	return all[max(0, len(all)-linesMax):]
}

// ConsoleLine is a line that a console said.
type ConsoleLine struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// escapes are terminal control sequences (ECMA-48), and what else is no text.
var escapes = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(\x07|\x1b\\\\)?|\x1b[PX^_][^\x1b]*(\x1b\\\\)?|\x1b[ -/]*[0-~]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")

// plainText is a console's text without escape codes.
func plainText(b []byte) string {
	text := escapes.ReplaceAllString(strings.ToValidUTF8(string(b), "\ufffd"), "")
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}

// linesMax bounds how many lines are told with their times.
const linesMax = 10_000

// join lets somebody look at the console of a host, which is opened for the first; errors are those of its controller.
func (l *lines) join(ctx context.Context, h inventory.Host) (*listener, error) {
	l.mu.Lock()
	on := l.open[h.ID]
	if on == nil {
		lifeCtx, end := context.WithCancel(l.life)
		on = &line{host: h.ID, ready: make(chan struct{}), listeners: map[*listener]bool{}, end: end}
		if l.open == nil {
			l.open = map[inventory.HostID]*line{}
		}
		l.open[h.ID] = on
		l.running.Go(func() { l.run(lifeCtx, on, h) })
	}
	who := &listener{lines: l, line: on, said: make(chan []byte, listenerChunks)}
	// Still under the lock that made or found the line: it cannot end in between without closing this listener.
	on.listeners[who] = true
	l.mu.Unlock()
	select {
	case <-on.ready:
	case <-ctx.Done():
		_ = who.Close()
		return nil, ctx.Err()
	}
	if on.err != nil {
		_ = who.Close()
		return nil, on.err
	}
	return who, nil
}

// run opens a line and passes on what it says until nobody listens any more, or it ends.
func (l *lines) run(ctx context.Context, on *line, h inventory.Host) {
	defer on.end()
	isOpen := false
	err := power.OnBMC(ctx, l.power, h, "has no serial console", func(_ inventory.Host, d bmc.Console, _ inventory.BMC) error {
		conn, err := d.Console(ctx)
		if err != nil {
			return err
		}
		closeLine := sync.OnceFunc(func() { _ = conn.Close() }) // the session is over either way
		defer closeLine()
		defer context.AfterFunc(ctx, closeLine)()
		on.conn, isOpen = conn, true
		close(on.ready)
		buf := make([]byte, 4<<10)
		for {
			n, err := conn.Read(buf)
			if n > 0 {
				l.heard(on, buf[:n])
			}
			if err != nil {
				return err
			}
		}
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	// Close may have taken the line out, and somebody opened the next one.
	if l.open[on.host] == on {
		delete(l.open, on.host)
	}
	for who := range on.listeners {
		close(who.said)
	}
	on.listeners = nil
	if !isOpen {
		if on.err = err; err == nil {
			on.err = errors.New("console not opened")
		}
		close(on.ready)
	}
}

// heard records what a console said, and gives it to all who listen; it cuts a listener off that cannot follow.
func (l *lines) heard(on *line, b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record(on.host).add(b, l.now())
	for who := range on.listeners {
		select {
		case who.said <- append([]byte(nil), b...):
		default:
			// Waiting for one slow client would stop the console for all of them, and the recording too.
			delete(on.listeners, who)
			close(who.said)
		}
	}
}

// record returns the recording of a host; the longest silent one makes room for it.
func (l *lines) record(id inventory.HostID) *recording {
	if l.said == nil {
		l.said = map[inventory.HostID]*recording{}
	}
	r := l.said[id]
	if r == nil {
		for len(l.said) >= recordingsMax {
			// 1,000 comparisons, and only when a host speaks that has no recording yet.
			var oldest inventory.HostID
			for other, x := range l.said {
				if oldest == "" || x.at.Before(l.said[oldest].at) {
					oldest = other
				}
			}
			delete(l.said, oldest)
		}
		r = &recording{}
		l.said[id] = r
	}
	return r
}

// recorded returns a copy of what is kept of a host's console, and whether that is open.
func (l *lines) recorded(id inventory.HostID) (r recording, isOpen bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if x := l.said[id]; x != nil {
		r = recording{text: append([]byte(nil), x.text...), end: x.end, at: x.at, marks: slices.Clone(x.marks)}
	}
	return r, l.open[id] != nil
}

// forget drops the recording of a host.
func (l *lines) forget(id inventory.HostID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.said, id)
}

// typeInto sends what is typed to a console that is open.
func (l *lines) typeInto(h inventory.Host, b []byte) error {
	l.mu.Lock()
	on := l.open[h.ID]
	l.mu.Unlock()
	// A line that is still opening takes nothing: conn is not set.
	if on != nil {
		select {
		case <-on.ready:
		default:
			on = nil
		}
	}
	if on == nil || on.err != nil {
		return inventory.Errorf(inventory.Conflict, "the console of host %s is not open", h.Name).WithHint("open it first, and keep it open while you type")
	}
	_, err := on.conn.Write(b)
	if err != nil {
		return inventory.Errorf(inventory.Unavailable, "the console of host %s took nothing: %v", h.Name, err).WithHint("open it again")
	}
	return nil
}

// Read implements io.Reader.
func (w *listener) Read(p []byte) (int, error) {
	if len(w.rest) == 0 {
		b, ok := <-w.said
		if !ok {
			return 0, io.EOF
		}
		w.rest = b
	}
	n := copy(p, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

// Write implements io.Writer: what is typed.
func (w *listener) Write(p []byte) (int, error) { return w.line.conn.Write(p) }

// Close stops listening; the last who does closes the console.
func (w *listener) Close() error {
	w.once.Do(func() {
		w.lines.mu.Lock()
		defer w.lines.mu.Unlock()
		if w.line.listeners[w] {
			delete(w.line.listeners, w)
			close(w.said)
		}
		if len(w.line.listeners) == 0 && w.line.listeners != nil {
			if w.lines.open[w.line.host] == w.line {
				delete(w.lines.open, w.line.host) // the next listener opens it again
			}
			w.line.end()
		}
	})
	return nil
}
