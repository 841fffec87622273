package tftp

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/admission"
)

func TestJoinedFilesBeginAtMultiplesOfFour(t *testing.T) {
	var want []byte
	all := &joined{}
	for i, size := range []int{5, 0, 4, 1, 1468, 3} {
		part := bytes.Repeat([]byte{byte('a' + i)}, size)
		all.add(Memory(part))
		want = append(want, part...)
		want = append(want, make([]byte, -len(part)&3)...)
	}
	if all.Size() != int64(len(want)) {
		t.Fatalf("%d bytes, want %d", all.Size(), len(want))
	}
	for _, block := range []int{1, 3, 8, 512, 4096} {
		var got []byte
		for off := 0; off < len(want); off += block {
			p := make([]byte, min(block, len(want)-off))
			if n, err := all.ReadAt(p, int64(off)); n != len(p) || err != nil {
				t.Fatalf("blocks of %d: %d bytes at %d: %v", block, n, off, err)
			}
			got = append(got, p...)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("blocks of %d: the content differs", block)
		}
	}
}

// scripts are what an engine says: the artefact of any name, or err.
type scripts struct {
	Scripts
	err error
}

func (s *scripts) Artefact(_ context.Context, _ inventory.SessionID, _ netip.Addr, d inventory.Digest, _ string) (inventory.Digest, error) {
	return d, s.err
}

// folder is an artefact folder with one file.
type folder struct{ path string }

func (f folder) Open(d inventory.Digest) (*os.File, inventory.Artefact, error) {
	file, err := os.Open(f.path)
	return file, inventory.Artefact{Digest: d, SizeBytes: 100_000}, err
}

func TestAnImageWaitsForItsTurnWithoutAnAnswer(t *testing.T) {
	path, data := filepath.Join(t.TempDir(), "linux"), fileOf(100_000)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	asked := make(chan netip.Addr, 10)
	lines := admission.New(func(local netip.Addr) admission.Rules {
		asked <- local
		return admission.Rules{Downloads: 1}
	}, time.Now)
	s, addr, b := start(t, func(c *Config) {
		c.Files = &ForLoaders{Scripts: &scripts{}, Artefacts: folder{path}, Admission: lines, Log: slog.New(slog.DiscardHandler)}
	})
	name := func(session string) string {
		return "/boot/" + strings.Repeat(session, 32) + "/artefact/" + strings.Repeat("c", 64) + "/linux"
	}
	first, second := newMachine(t, addr), newMachine(t, addr)
	first.send(rrq(name("a"), "octet"), first.to)
	if p := first.receive(5 * time.Second); len(p) != 516 {
		t.Fatalf("the first got %q", p)
	}
	if local := <-asked; local != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("asked for the rules of %s", local)
	}
	second.send(rrq(name("b"), "octet"), second.to)
	for counted(t, s.Metrics.Requests.WithLabelValues(string(queued))) == 0 {
		time.Sleep(time.Millisecond)
	}
	if p := second.receive(50 * time.Millisecond); p != nil {
		t.Fatalf("firmware takes any answer but the file for final: %q", p)
	}
	if _, err := fetch(addr, "snponly.efi", nil); err != nil {
		t.Errorf("a loader waits too: %v", err)
	}
	b.wait(t)
	first.send("\x00\x05\x00\x00enough\x00", first.peer)
	b.wait(t)
	for _, active := lines.Lengths(); active > 0; _, active = lines.Lengths() {
		time.Sleep(time.Millisecond)
	}
	got, err := fetch(addr, name("b"), nil)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("when its turn has come: %d bytes, %v", len(got), err)
	}
	b.wait(t)
	if q, a := lines.Lengths(); q != 0 || a != 0 {
		t.Errorf("%d wait and %d load in the end", q, a)
	}
}

func TestAFileThatCannotBeMadeIsRefusedInWordsForPeople(t *testing.T) {
	files := &ForLoaders{Scripts: &scripts{}, Admission: admission.New(nil, time.Now), Log: slog.New(slog.DiscardHandler)}
	_, addr, b := start(t, func(c *Config) { c.Files = files })
	for _, c := range []struct {
		what string
		err  error
		code int
		want string
		not  string
	}{
		{"words for people", inventory.Errorf(inventory.Forbidden, "this boot was decided as wait: no profile").WithHint("pin one"), 2, "this boot was decided as wait: no profile; pin one", "internal"},
		{"nothing there", inventory.Errorf(inventory.NotFound, "no boot session x").WithHint("boot the machine again"), 1, "no boot session x; boot the machine again", "internal"},
		{"not now", inventory.Errorf(inventory.Unavailable, "the database is locked"), 0, "the database is locked", "internal"},
		{"our own fault", inventory.Errorf(inventory.Internal, "row 7 of /var/lib/slipway"), 0, "the boot server has an internal error", "/var"},
		{"an error without words", fmt.Errorf("open /var/lib/slipway/x: %w", os.ErrPermission), 0, "the boot server has an internal error", "/var"},
		{"more than a console shows", inventory.Errorf(inventory.Invalid, "%s", strings.Repeat("a", 1000)), 0, strings.Repeat("a", maxErrorText), strings.Repeat("a", maxErrorText+1)},
	} {
		files.Scripts = &scripts{err: c.err}
		_, err := fetch(addr, "boot/"+strings.Repeat("a", 32)+"/artefact/"+strings.Repeat("c", 64)+"/linux", nil)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("code: %d", c.code)) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), c.not) {
			t.Errorf("%s: %v", c.what, err)
		}
		b.wait(t)
	}
}
