package record

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"slipway.dev/slipway/pxe/trace"
)

func openLog(t *testing.T, dir string, limit int64) *Log {
	t.Helper()
	l, err := OpenLog(LogConfig{Dir: dir, Name: "known", MaxBytes: limit, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func numbered(n int) trace.Frame {
	return trace.Frame{At: time.Unix(int64(n), 0).UTC(), Bytes: []byte(fmt.Sprintf("frame %06d", n)), Len: 1000}
}

func kept(l *Log) (all []trace.Frame) {
	l.Each(func(f trace.Frame) { all = append(all, f) })
	return all
}

func TestALogOutlivesItsServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "record")
	for start := range 3 {
		l := openLog(t, dir, 1<<20)
		for n := range 10 {
			l.Add(numbered(10*start + n))
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := l.Serve(ctx); err != nil { // writes what waits
			t.Fatal(err)
		}
	}
	all := kept(openLog(t, dir, 1<<20))
	if len(all) != 30 {
		t.Fatalf("%d frames are left", len(all))
	}
	for n, f := range all {
		if want := numbered(n); !f.At.Equal(want.At) || !bytes.Equal(f.Bytes, want.Bytes) || f.Len != want.Len {
			t.Errorf("frame %d came back as %+v", n, f)
		}
	}
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		if i, err := f.Info(); err != nil || i.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name(), i.Mode(), err)
		}
	}
}

func TestALogKeepsTheLatestWithinItsBounds(t *testing.T) {
	const limit = 64 << 10
	dir := t.TempDir()
	l := openLog(t, dir, limit)
	const last = 20_000
	for n := range last {
		l.Add(numbered(n))
		if n%50 == 0 {
			if err := l.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if n == last/2 { // a restart in the middle
			l = openLog(t, dir, limit)
		}
	}
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	size := int64(0)
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		i, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		size += i.Size()
	}
	all := kept(l)
	if size > limit+limit/segments || size < limit/2 {
		t.Errorf("%d bytes on disk, the limit is %d", size, limit)
	}
	if len(all) == 0 || !bytes.Equal(all[len(all)-1].Bytes, numbered(last-1).Bytes) {
		t.Errorf("the latest of %d frames is missing", len(all))
	}
}

func TestALogThatWasCutOffIsReadUpToThere(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir, 1<<20)
	l.Add(numbered(1))
	l.Add(numbered(2))
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	path := l.files[0].path
	if err := os.Truncate(path, l.files[0].size-3); err != nil { // power failed
		t.Fatal(err)
	}
	l = openLog(t, dir, 1<<20)
	l.Add(numbered(3))
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	if all := kept(l); len(all) != 2 || !bytes.Equal(all[1].Bytes, numbered(3).Bytes) {
		t.Errorf("%+v", all)
	}
}

// A disk that takes nothing costs frames and memory within bounds; when it takes some again, the log goes on.
func TestALogWaitsForItsDiskWithinBounds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "record")
	l := openLog(t, dir, 1<<20)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	l.Add(numbered(1))
	if l.Flush() == nil {
		t.Fatal("a folder that is gone is no error")
	}
	for n := range 100_000 {
		l.Add(numbered(n))
	}
	if len(l.waiting) > maxWaiting+100 || l.lost == 0 {
		t.Errorf("%d bytes wait, %d frames lost", len(l.waiting), l.lost)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	if all := kept(l); len(all) == 0 {
		t.Error("nothing is kept after the disk came back")
	}
}

func TestALogKeepsSoManyFramesOfASecond(t *testing.T) {
	l, err := OpenLog(LogConfig{Dir: t.TempDir(), Name: "strangers", MaxBytes: 1 << 20, PerSecond: 5, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 30 {
		l.Add(trace.Frame{At: time.Unix(int64(n/10), 0), Bytes: []byte("a frame"), Len: 7})
	}
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	if n := len(kept(l)); n != 15 {
		t.Errorf("%d frames of 3 seconds are kept, want 15", n)
	}
}
