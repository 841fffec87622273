// Package record owns the record of the wire on disk. It never decides what is recorded, and never keeps a boot waiting.
package record

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/pxe/trace"
)

// Log keeps frames on disk, so that the record outlives the server. It only adds to capture files, and deletes the oldest
// file for space. A crash may lose the frames of the last two seconds. A full disk loses frames and never delays a boot.
// Many goroutines may call its methods.
type Log struct {
	cfg LogConfig

	mu      sync.Mutex
	waiting []byte // not written yet
	lost    int    // frames that found no room there
	// second is the one that frames were added in last, and inSecond how many.
	second   int64
	inSecond int

	writing sync.Mutex // of what follows
	file    *os.File
	size    int64 // of file
	files   []segment
	next    int
	failed  error // told last
}

// LogConfig is everything a Log needs.
type LogConfig struct {
	Dir      string // is made; its files are for their owner alone
	Name     string // of the files, with a number each
	MaxBytes int64  // on disk in all
	// PerSecond bounds the frames that are kept of a second; 0 means all.
	PerSecond int
	Log       *slog.Logger
}

type segment struct {
	path string
	size int64
}

const (
	segments   = 8 // the oldest eighth makes room
	flushEvery = 2 * time.Second
	maxWaiting = 1 << 20
)

// OpenLog opens a log, with what was kept before.
func OpenLog(cfg LogConfig) (*Log, error) {
	l := &Log{cfg: cfg}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open the record: %w", err)
	}
	names, err := filepath.Glob(filepath.Join(cfg.Dir, cfg.Name+"-*.pcap"))
	if err != nil {
		return nil, fmt.Errorf("open the record: %w", err)
	}
	slices.Sort(names)
	for _, path := range names {
		if i, err := os.Stat(path); err == nil {
			l.files = append(l.files, segment{path, i.Size()})
		}
		if n := strings.TrimSuffix(filepath.Base(path)[len(cfg.Name)+1:], ".pcap"); len(n) == digits {
			_, _ = fmt.Sscanf(n, "%d", &l.next)
		}
	}
	l.next++
	return l, nil
}

const digits = 10 // of a file's number, with zeros in front: sorted by name, the files are in order

// Each calls fn with each frame that is kept, oldest first. Files that cannot be read are left out.
func (l *Log) Each(fn func(trace.Frame)) {
	l.writing.Lock()
	files := slices.Clone(l.files)
	l.writing.Unlock()
	for _, f := range files {
		b, err := os.ReadFile(f.path)
		if err != nil {
			continue
		}
		frames, _ := trace.ParsePCAP(b)
		for _, x := range frames {
			fn(x)
		}
	}
}

// Add keeps a frame; it never waits for the disk.
func (l *Log) Add(f trace.Frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if second := f.At.Unix(); second != l.second {
		l.second, l.inSecond = second, 0
	}
	// The second bound is against a disk that has stopped: what waits stays in memory, at most 1 MiB and one frame.
	if l.inSecond++; l.cfg.PerSecond > 0 && l.inSecond > l.cfg.PerSecond || len(l.waiting) > maxWaiting {
		l.lost++
		return
	}
	l.waiting = trace.AppendFrame(l.waiting, f)
}

// Serve writes what was added until ctx is done, and once more then.
func (l *Log) Serve(ctx context.Context) error {
	t := time.NewTicker(flushEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			l.tell(l.Flush())
		case <-ctx.Done():
			err := l.Flush()
			l.tell(err)
			l.writing.Lock()
			defer l.writing.Unlock()
			if l.file != nil {
				_ = l.file.Close()
				l.file = nil
			}
			return nil
		}
	}
}

// tell logs a reason once.
func (l *Log) tell(err error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	// A full disk fails every two seconds. The log gets the reason once, and again after it has changed or gone.
	if err != nil && (l.failed == nil || l.failed.Error() != err.Error()) {
		l.cfg.Log.Warn("packets not kept on disk", "err", err)
	}
	l.failed = err
}

// Flush writes what was added to the disk, without waiting for the disk to have it.
func (l *Log) Flush() error {
	l.mu.Lock()
	b := l.waiting
	l.waiting = nil // Add goes on meanwhile: it takes mu only, and never waits for the disk
	l.mu.Unlock()
	if len(b) == 0 {
		return nil
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.file == nil || l.size >= l.cfg.MaxBytes/segments {
		if err := l.begin(); err != nil {
			return err
		}
	}
	n, err := l.file.Write(b)
	l.size += int64(n)
	l.files[len(l.files)-1].size = l.size
	if err != nil { // the file may end in the middle of a frame: what follows needs a new one
		err = errors.Join(fmt.Errorf("write the record: %w", err), l.file.Close())
		l.file = nil
	}
	return err
}

// begin begins a file, and deletes the oldest ones first, so that the new one finds space. The caller holds writing.
func (l *Log) begin() error {
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
	room := l.cfg.MaxBytes - l.cfg.MaxBytes/segments
	total := int64(0)
	for _, f := range l.files {
		total += f.size
	}
	for len(l.files) > 0 && (total > room || len(l.files) >= 8*segments) {
		if err := os.Remove(l.files[0].path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("free space for the record: %w", err)
		}
		total -= l.files[0].size
		l.files = l.files[1:]
	}
	path := filepath.Join(l.cfg.Dir, fmt.Sprintf("%s-%0*d.pcap", l.cfg.Name, digits, l.next))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	head := trace.AppendPCAP(nil, nil)
	if _, err := f.Write(head); err != nil {
		return errors.Join(fmt.Errorf("write the record: %w", err), f.Close(), os.Remove(path))
	}
	l.file, l.size = f, int64(len(head))
	l.next++
	l.files = append(l.files, segment{path, l.size})
	return nil
}
