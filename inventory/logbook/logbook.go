// Package logbook owns the logs that machines send. They are text files next to the database: a ring for each accepted host
// and one for all other machines. It never decides what is logged. A disk that takes nothing costs a log, never a boot.
//
// Start reading at Book.Add. A ring is two files: the newer one is added to, and replaces the older one when it is full.
package logbook

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Config is everything a Book needs.
type Config struct {
	Dir       string // is made; its files are for their owner alone
	PerHost   int64  // bytes on disk for each host; 0 means 512 KiB
	Strangers int64  // for all strangers together; 0 means 4 MiB
	All       int64  // for everybody; 0 means 1 GiB: beyond, the ring that was written longest ago goes
	Now       func() time.Time
}

// Book keeps logs. Its methods may be called from many goroutines.
type Book struct {
	cfg  Config
	mu   sync.Mutex
	size map[string]int64     // of the files of a ring together
	at   map[string]time.Time // when a ring was written last
	all  int64
	last int64 // number given last; the next is larger also when the clock went back
}

const strangers = "strangers"

// Open opens a book, with what was kept before.
func Open(cfg Config) (*Book, error) {
	for _, d := range []struct {
		field *int64
		value int64
	}{{&cfg.PerHost, 512 << 10}, {&cfg.Strangers, 4 << 20}, {&cfg.All, 1 << 30}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	b := &Book{cfg: cfg, size: map[string]int64{}, at: map[string]time.Time{}}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open the logs: %w", err)
	}
	files, err := os.ReadDir(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("open the logs: %w", err)
	}
	for _, f := range files {
		ring, _, isOurs := strings.Cut(f.Name(), ".")
		if info, err := f.Info(); err == nil && isOurs && nameRE.MatchString(ring) {
			b.size[ring] += info.Size()
			b.all += info.Size()
			if info.ModTime().After(b.at[ring]) {
				b.at[ring] = info.ModTime()
			}
		}
	}
	return b, nil
}

// nameRE is what a ring may be called: it is the name of a file.
var nameRE = regexp.MustCompile(`^[a-zA-Z0-9-]{1,64}$`)

// Add keeps the text of a log: of a host or, without one, of an unaccepted machine. It returns what Text finds it by.
func (b *Book) Add(host, text string) (ref string, err error) {
	ring, limit := host, b.cfg.PerHost
	if host == "" {
		ring, limit = strangers, b.cfg.Strangers
	}
	if !nameRE.MatchString(ring) {
		return "", fmt.Errorf("keep a log: %q is no host", ring)
	}
	if most := int(limit / 4); len(text) > most {
		text = strings.ToValidUTF8(text[len(text)-most:], "") // its end says most
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	// The time makes numbers unique across restarts, without a file that would have to be read first.
	b.last = max(b.last+1, b.cfg.Now().UnixNano())
	record := fmt.Appendf(nil, "#%d %d\n%s\n", b.last, len(text), text)
	if err := b.write(ring, limit, record); err != nil {
		return "", fmt.Errorf("keep a log: %w", err)
	}
	b.makeRoom(ring)
	return ring + "/" + strconv.FormatInt(b.last, 10), nil
}

// write adds a record to a ring.
func (b *Book) write(ring string, limit int64, record []byte) error {
	path := b.path(ring)
	// Each of the two files may have half of the room. The rename replaces the older one in one step: if the process
	// dies, there are two whole files or one.
	if info, err := os.Stat(path); err == nil && info.Size()+int64(len(record)) > limit/2 {
		replaced := int64(0)
		if old, err := os.Stat(path + ".old"); err == nil {
			replaced = old.Size()
		}
		// The size falls only once the older file is gone. Counted before, each rename that fails would let a disk that is
		// already in trouble fill up further.
		if err := os.Rename(path, path+".old"); err != nil {
			return err
		}
		b.grow(ring, -replaced)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	// Not synced: a log is worth no wait for the disk. find stops at a record that a crash has cut short.
	n, err := f.Write(record)
	b.grow(ring, int64(n))
	b.at[ring] = b.cfg.Now()
	return errors.Join(err, f.Close())
}

func (b *Book) path(ring string) string { return filepath.Join(b.cfg.Dir, ring+".log") }

func (b *Book) grow(ring string, by int64) {
	b.size[ring] += by
	b.all += by
}

// makeRoom deletes the rings that were written longest ago while there is too much in all.
func (b *Book) makeRoom(but string) {
	// A search through all rings for each one that goes: there are as many as hosts, and this runs once in a while.
	for b.all > b.cfg.All {
		oldest := ""
		for ring, at := range b.at {
			if ring != but && (oldest == "" || at.Before(b.at[oldest])) {
				oldest = ring
			}
		}
		if oldest == "" {
			return
		}
		b.forget(oldest)
	}
}

// Forget deletes the logs of a host.
func (b *Book) Forget(host string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if host != "" && nameRE.MatchString(host) {
		b.forget(host)
	}
}

func (b *Book) forget(ring string) {
	for _, path := range []string{b.path(ring), b.path(ring) + ".old"} {
		_ = os.Remove(path)
	}
	b.all -= b.size[ring]
	delete(b.size, ring)
	delete(b.at, ring)
}

// Text returns a log that was kept; ok is false when newer ones have taken its room.
func (b *Book) Text(ref string) (text string, ok bool) {
	ring, number, _ := strings.Cut(ref, "/")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || !nameRE.MatchString(ring) {
		return "", false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, path := range []string{b.path(ring), b.path(ring) + ".old"} {
		if text, ok := find(path, n); ok {
			return text, true
		}
	}
	return "", false
}

// find reads the record with a number from a file.
func find(path string, n int64) (string, bool) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) || err != nil {
		return "", false
	}
	defer f.Close()
	r := bufio.NewReader(f)
	for {
		number, length, err := readHead(r)
		if err != nil {
			return "", false
		}
		if number != n {
			if _, err := r.Discard(length + 1); err != nil {
				return "", false
			}
			continue
		}
		text := make([]byte, length)
		_, err = io.ReadFull(r, text)
		return string(text), err == nil
	}
}

var errHead = errors.New("not the head of a record")

// readHead reads the line before a text: its number and how long it is.
func readHead(r *bufio.Reader) (number int64, length int, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return 0, 0, err
	}
	of, bytesOf, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
	if !ok || len(of) < 2 || of[0] != '#' {
		return 0, 0, errHead
	}
	number, err1 := strconv.ParseInt(string(of[1:]), 10, 64)
	length, err2 := strconv.Atoi(string(bytesOf))
	// A damaged length must not make us read, or keep, gigabytes.
	if err := errors.Join(err1, err2); err != nil || length < 0 || length > 8<<20 {
		return 0, 0, errors.Join(errHead, err)
	}
	return number, length, nil
}
