package logbook

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func open(t *testing.T, dir string, change func(*Config)) *Book {
	t.Helper()
	cfg := Config{Dir: dir, PerHost: 8 << 10, Strangers: 16 << 10, All: 40 << 10, Now: time.Now}
	if change != nil {
		change(&cfg)
	}
	b, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func add(t *testing.T, b *Book, host, text string) string {
	t.Helper()
	ref, err := b.Add(host, text)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// sizeOf is what a folder holds.
func sizeOf(t *testing.T, dir string) (n int64) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", f.Name(), info.Mode())
		}
		n += info.Size()
	}
	return n
}

func TestALogIsFoundAgainAlsoAfterARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	b := open(t, dir, nil)
	refs := map[string]string{}
	for i, text := range []string{"", "one line", "#99 4\nfake\n#1 1\nx", "ümlaut\nand\x00zero"} {
		refs[add(t, b, fmt.Sprintf("h%d", i%2), text)] = text
	}
	refs[add(t, b, "", "of a stranger")] = "of a stranger"
	for _, b := range []*Book{b, open(t, dir, nil)} {
		for ref, text := range refs {
			if got, ok := b.Text(ref); !ok || got != text {
				t.Errorf("%s: %q, %t, want %q", ref, got, ok, text)
			}
		}
	}
	for _, ref := range []string{"", "h0", "h0/x", "h0/1", "../h0/1", "nobody/1"} {
		if text, ok := b.Text(ref); ok {
			t.Errorf("%q finds %q", ref, text)
		}
	}
	if _, err := b.Add("../up", "text"); err == nil {
		t.Error("a host with the name of a path")
	}
}

func TestStrangersNeverFillTheDisk(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir, nil)
	known := add(t, b, "host-a", "why it failed")
	long := strings.Repeat("x", 60<<10)
	last := ""
	for range 200 {
		last = add(t, b, "", long)
	}
	if n := sizeOf(t, dir); n > 16<<10+1<<10 {
		t.Errorf("%d bytes on disk", n)
	}
	if text, ok := b.Text(last); !ok || len(text) != 4<<10 {
		t.Errorf("the newest log has %d bytes of its end", len(text))
	}
	if text, ok := b.Text(known); !ok || text != "why it failed" {
		t.Error("a flood of strangers took the log of a host away")
	}
}

func TestTheRingThatWasWrittenLongestAgoMakesRoom(t *testing.T) {
	dir := t.TempDir()
	now := time.Unix(1_000_000, 0)
	b := open(t, dir, func(c *Config) { c.Now = func() time.Time { now = now.Add(time.Second); return now } })
	refs := make([]string, 20)
	for i := range refs {
		for range 10 {
			refs[i] = add(t, b, fmt.Sprintf("h%d", i), strings.Repeat("x", 1500))
		}
	}
	if n := sizeOf(t, dir); n > 40<<10 || n != b.all {
		t.Errorf("%d bytes on disk, %d counted", n, b.all)
	}
	_, isFirst := b.Text(refs[0])
	if _, isLast := b.Text(refs[19]); isFirst || !isLast {
		t.Errorf("the first host's log is there: %t, the last one's: %t", isFirst, isLast)
	}
	b.Forget("h19")
	if _, ok := b.Text(refs[19]); ok || sizeOf(t, dir) != b.all {
		t.Error("what was forgotten is there")
	}
}

func FuzzRecords(f *testing.F) {
	f.Add([]byte("#1 3\nabc\n#2 1\nx\n"), int64(2))
	f.Add([]byte("#2 -1\n"), int64(2))
	f.Add([]byte("#2 99999999999\n"), int64(2))
	path := filepath.Join(f.TempDir(), "x.log")
	f.Fuzz(func(t *testing.T, file []byte, n int64) {
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		if text, ok := find(path, n); ok && !strings.Contains(string(file), text) {
			t.Errorf("%q was never kept", text)
		}
	})
}

// A rename that fails leaves both files: the book must go on counting them, or it would not stop at its limit.
func TestARingThatCannotTurnStillCounts(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir, nil)
	if err := os.MkdirAll(filepath.Join(dir, "host-1.log.old", "in-the-way"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 2000)
	for b.all < 4000 {
		add(t, b, "host-1", text)
	}
	was := b.all
	for range 3 {
		if _, err := b.Add("host-1", text); err == nil {
			t.Fatal("a file has replaced a folder")
		}
	}
	if b.all != was {
		t.Errorf("the book counts %d bytes after failed renames, and %d before", b.all, was)
	}
}
