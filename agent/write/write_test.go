package write

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"slipway.dev/slipway/agent/disk"
	"slipway.dev/slipway/agent/disk/disktest"
	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

const mib = 1 << 20

// rack is a machine whose disks are files.
type rack struct {
	t      testing.TB
	tree   disk.Tree
	disks  []inventory.Disk
	server *httptest.Server
	files  map[string][]byte
	serve  func(w http.ResponseWriter, r *http.Request, content []byte)
	says   atomic.Pointer[string]
}

func newRack(t testing.TB, sizes ...int64) *rack {
	t.Helper()
	r := &rack{t: t, tree: disk.Tree{Sys: t.TempDir(), Dev: disktest.Dir(t)}, files: map[string][]byte{}}
	noise := make([]byte, mib)
	for i := range noise {
		noise[i] = byte(i*7 + 1)
	}
	for i, size := range sizes {
		name := "sd" + string(rune('a'+i))
		f, err := os.Create(r.tree.DevPath(name))
		if err != nil {
			t.Fatal(err)
		}
		for off := int64(0); off < size; off += mib { // what an earlier system left
			_, _ = f.WriteAt(noise[:min(mib, size-off)], off)
		}
		f.Close()
		r.disks = append(r.disks, inventory.Disk{Name: name, Serial: "S" + name, Model: "QEMU", SizeBytes: size})
	}
	r.serve = func(w http.ResponseWriter, q *http.Request, content []byte) {
		sum := sha256.Sum256(content)
		w.Header().Set("ETag", `"sha256:`+hex.EncodeToString(sum[:])+`"`)
		http.ServeContent(w, q, "", time.Time{}, bytes.NewReader(content))
	}
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		content, ok := r.files[q.URL.Path]
		if !ok {
			http.NotFound(w, q)
			return
		}
		r.serve(w, q, content)
	}))
	t.Cleanup(r.server.Close)
	return r
}

func (r *rack) writer() *Writer {
	return New(Config{
		Disks: func(context.Context) ([]inventory.Disk, error) { return r.disks, nil },
		Tree:  r.tree, Wait: func(context.Context, time.Duration) error { return nil }, Tries: 4,
	})
}

func (r *rack) offer(format string, content []byte) wire.ImageFile {
	sum := sha256.Sum256(content)
	r.files["/image"] = content
	return wire.ImageFile{URL: r.server.URL + "/image", Digest: "sha256:" + hex.EncodeToString(sum[:]), SizeBytes: int64(len(content)), Format: format}
}

func (r *rack) do(task wire.WriteTask) (wire.Report, error) {
	return r.writer().Handler(r.t.Context(), wire.Task{ID: "1", Kind: wire.Write, Write: &task}, func(s string, _ wire.Progress) { r.says.Store(&s) })
}

func (r *rack) content(name string) []byte {
	b, err := os.ReadFile(r.tree.DevPath(name))
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

// diskImage makes a disk with a GPT, data and holes, as mkosi and others make them.
func diskImage(t testing.TB, size int64) []byte {
	t.Helper()
	imagesMu.Lock()
	defer imagesMu.Unlock()
	if images[size] == nil { // sgdisk waits for all disks of the machine: it is run once
		images[size] = makeDiskImage(t, size)
	}
	return bytes.Clone(images[size])
}

var (
	imagesMu sync.Mutex
	images   = map[int64][]byte{}
)

func makeDiskImage(t testing.TB, size int64) []byte {
	t.Helper()
	path := disktest.File(t, size)
	disktest.Run(t, "sgdisk", "-n1:2048:+2M", "-t1:ef00", "-n2:0:+10M", path)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, uint64(size)))
	for off := int64(mib); off+300000 < size-mib; off += 700000 {
		for i := range int64(300000) {
			b[off+i] = byte(r.Uint32())
		}
	}
	return b
}

func pack(t testing.TB, format string, raw []byte) []byte {
	t.Helper()
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	if err := os.WriteFile(in, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	programs := map[string]string{
		"raw": "cat in >out", "raw.gz": "gzip -c in >out", "raw.zst": "zstd -q -c in >out", "raw.xz": "xz -0 -c in >out",
		"qcow2": "qemu-img convert -O qcow2 in out", "qcow2, packed": "qemu-img convert -c -O qcow2 in out",
	}
	disktest.Run(t, "sh", "-c", "cd "+dir+" && "+programs[format])
	b, err := os.ReadFile(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// checkDisk expects an image on a larger disk: its bytes, but for the table that is fitted to the disk.
func checkDisk(t *testing.T, r *rack, name string, raw []byte) {
	t.Helper()
	got := r.content(name)
	end := len(raw) - 34*512 // the image's own backup table is no longer one
	if !bytes.Equal(got[34*512:end], raw[34*512:end]) || !bytes.Equal(got[:440], raw[:440]) {
		t.Error("the disk does not hold the image")
	}
	if out := disktest.Run(t, "sgdisk", "-v", r.tree.DevPath(name)); !strings.Contains(out, "No problems found") {
		t.Error(out)
	}
}

func TestImagesOfAllFormatsAreWritten(t *testing.T) {
	raw := diskImage(t, 24*mib)
	for _, format := range []string{"raw", "raw.gz", "raw.zst", "raw.xz", "qcow2", "qcow2, packed"} {
		t.Run(format, func(t *testing.T) {
			r := newRack(t, 40*mib)
			file := r.offer(strings.TrimSuffix(format, ", packed"), pack(t, format, raw))
			report, err := r.do(wire.WriteTask{Image: file})
			if err != nil {
				t.Fatal(err)
			}
			checkDisk(t, r, "sda", raw)
			w := report.Write
			if !w.IsWritten || !w.IsSeeded || w.Digest != file.Digest || w.ReadBytes != file.SizeBytes || w.Disk.Serial != "Ssda" || w.WrittenBytes < 8*mib || w.SkippedBytes < 8*mib {
				t.Errorf("%+v", w)
			}
		})
	}
}

func TestTheDiskIsLeftWithoutItsHeadWhenTheImageIsNotGood(t *testing.T) {
	raw := diskImage(t, 24*mib)
	gz := pack(t, "raw.gz", raw)
	cases := map[string]struct {
		spoil     func(r *rack, f *wire.ImageFile)
		says      string
		isLasting bool
	}{
		"the checksum is wrong": {func(_ *rack, f *wire.ImageFile) { f.Digest = "sha256:" + strings.Repeat("0", 64) }, "checksum of the image is wrong", true},
		"a bit has flipped": {func(r *rack, _ *wire.ImageFile) {
			b := bytes.Clone(gz)
			b[len(b)/2] ^= 4
			r.files["/image"] = b
		}, "checksum of the image is wrong", true},
		"it is truncated on the server": {func(r *rack, _ *wire.ImageFile) { r.files["/image"] = gz[:len(gz)/2] }, "truncated or another", true},
		"its format is another": {func(r *rack, f *wire.ImageFile) {
			*f = r.offer("raw.zst", gz)
		}, "not a good raw.zst file", true},
		"it unpacks to more than was said": {func(_ *rack, f *wire.ImageFile) { f.DiskBytes = 4 * mib }, "4194304 were announced", true},
		"it unpacks to less than was said": {func(_ *rack, f *wire.ImageFile) { f.DiskBytes = 30 * mib }, "31457280 were announced", true},
		"the network stays away": {func(r *rack, _ *wire.ImageFile) {
			n := 0
			r.serve = func(w http.ResponseWriter, q *http.Request, content []byte) {
				if n++; n > 1 {
					w.WriteHeader(http.StatusBadGateway)
					return
				}
				w.Header().Set("Content-Length", fmt.Sprint(len(content)))
				_, _ = w.Write(content[:len(content)/2])
				panic(http.ErrAbortHandler)
			}
		}, "not to be had now", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRack(t, 40*mib)
			file := r.offer("raw.gz", gz)
			c.spoil(r, &file)
			report, err := r.do(wire.WriteTask{Image: file})
			var e *inventory.Error
			if !errors.As(err, &e) || !strings.Contains(e.Msg, c.says) || report.IsLasting != c.isLasting || report.Write.IsWritten {
				t.Errorf("%v, lasting %v", err, report.IsLasting)
			}
			if !disk.IsZero(r.content("sda")[:mib]) || !disk.IsZero(r.content("sda")[39*mib:]) {
				t.Error("the disk could start")
			}
		})
	}
}

func TestNothingIsWrittenWhenTheDiskIsWrong(t *testing.T) {
	raw := diskImage(t, 24*mib)
	cases := map[string]struct {
		sizes []int64
		task  wire.WriteTask
		says  string
	}{
		"the disk is too small":              {[]int64{20 * mib}, wire.WriteTask{}, "no disk is large enough"},
		"two disks fit the hint":             {[]int64{40 * mib, 40 * mib}, wire.WriteTask{Root: inventory.DiskHint{Model: "qemu"}}, "2 disks are model qemu"},
		"the disk of the hint is kept":       {[]int64{40 * mib, 40 * mib}, wire.WriteTask{Root: inventory.DiskHint{Serial: "Ssda"}, Keep: []inventory.DiskHint{{Serial: "Ssda"}}}, "none of 1 disks is serial Ssda"},
		"all disks are kept":                 {[]int64{40 * mib}, wire.WriteTask{Keep: []inventory.DiskHint{{Model: "QEMU"}}}, "all 1 disks are to be kept"},
		"there is no disk":                   {nil, wire.WriteTask{}, "the machine has no disk"},
		"the disk was larger when inspected": {[]int64{20 * mib}, wire.WriteTask{Root: inventory.DiskHint{Name: "sda"}}, "is too small"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRack(t, c.sizes...)
			if strings.Contains(name, "inspected") {
				r.disks[0].SizeBytes = 40 * mib
			}
			before := map[string]string{}
			for _, d := range r.disks {
				before[d.Name] = string(r.content(d.Name))
			}
			c.task.Image = r.offer("qcow2", pack(t, "qcow2", raw))
			report, err := r.do(c.task)
			var e *inventory.Error
			if !errors.As(err, &e) || !strings.Contains(e.Msg, c.says) || !report.IsLasting || e.Hint == "" {
				t.Errorf("%v, lasting %v", err, report.IsLasting)
			}
			for name, old := range before {
				if string(r.content(name)) != old {
					t.Errorf("%s was written", name)
				}
			}
		})
	}
}

func TestTheNetworkMayBeCutAnywhere(t *testing.T) {
	raw := diskImage(t, 24*mib)
	for _, format := range []string{"raw", "raw.gz", "raw.zst", "qcow2"} {
		t.Run(format, func(t *testing.T) {
			r := newRack(t, 40*mib)
			cuts := 0
			plain := r.serve
			r.serve = func(w http.ResponseWriter, q *http.Request, content []byte) {
				cuts++
				plain(&cutter{w, 1_500_000}, q, content)
			}
			if _, err := r.do(wire.WriteTask{Image: r.offer(format, pack(t, format, raw))}); err != nil {
				t.Fatal(err)
			}
			checkDisk(t, r, "sda", raw)
			if cuts < 5 {
				t.Errorf("only %d requests", cuts)
			}
		})
	}
}

type cutter struct {
	http.ResponseWriter
	left int
}

func (c *cutter) Write(p []byte) (int, error) {
	if len(p) > c.left {
		_, _ = c.ResponseWriter.Write(p[:c.left])
		panic(http.ErrAbortHandler)
	}
	c.left -= len(p)
	return c.ResponseWriter.Write(p)
}

func TestAnImageThatIsThereIsNotWrittenAgain(t *testing.T) {
	raw := diskImage(t, 24*mib)
	for _, format := range []string{"raw.gz", "qcow2"} {
		t.Run(format, func(t *testing.T) {
			r := newRack(t, 40*mib)
			task := wire.WriteTask{Image: r.offer(format, pack(t, format, raw))}
			first, err := r.do(task)
			if err != nil {
				t.Fatal(err)
			}
			task.Resume = first.Write
			mark := []byte("a mark in a place that the image does not use")
			poke(t, r, mark, 30*mib)
			poke(t, r, mark, 20*mib)
			if _, err := r.do(task); err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(r.content("sda")[20*mib:21*mib], mark) {
				t.Error("the image was written again")
			}
			poke(t, r, make([]byte, mib), 0) // the disk was wiped meanwhile
			if _, err := r.do(task); err != nil {
				t.Fatal(err)
			}
			if checkDisk(t, r, "sda", raw); bytes.Contains(r.content("sda")[20*mib:21*mib], mark) {
				t.Error("the image was not written again")
			}
			r.disks[0].Serial = "another"
			poke(t, r, mark, 20*mib)
			if _, err := r.do(task); err != nil {
				t.Fatal(err)
			}
			checkDisk(t, r, "sda", raw)
		})
	}
}

func poke(t *testing.T, r *rack, p []byte, off int64) {
	t.Helper()
	f, err := os.OpenFile(r.tree.DevPath("sda"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(p, off); err != nil {
		t.Fatal(err)
	}
}

func TestAZeroedDiskIsWrittenWithoutItsZeroes(t *testing.T) {
	raw := diskImage(t, 24*mib)
	r := newRack(t, 40*mib)
	poke(t, r, make([]byte, 40*mib), 0)
	w := r.writer()
	w.cfg.IsZeroed = func(d inventory.Disk) bool { return d.Name == "sda" }
	task := wire.WriteTask{Image: r.offer("raw", raw)}
	report, err := w.Handler(t.Context(), wire.Task{Write: &task}, func(string, wire.Progress) {})
	if err != nil {
		t.Fatal(err)
	}
	checkDisk(t, r, "sda", raw)
	if sum := report.Write.SkippedBytes + report.Write.WrittenBytes; sum != 24*mib || report.Write.SkippedBytes < 8*mib {
		t.Errorf("%+v", report.Write)
	}
}

// BenchmarkWrite measures the way from a server on the loopback to a file.
func BenchmarkWrite(b *testing.B) {
	raw := make([]byte, 256*mib)
	rnd := rand.NewChaCha8([32]byte{1})
	_, _ = io.ReadFull(rnd, raw)
	r := newRack(b, 260*mib)
	file := r.offer("raw", raw)
	file.Digest = "sha256:" + fmt.Sprintf("%x", sha256.Sum256(raw))
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, err := r.do(wire.WriteTask{Image: file}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPlainCopy is what the same way costs without unpacking, checking and looking for zeroes: curl | dd.
func BenchmarkPlainCopy(b *testing.B) {
	raw := make([]byte, 256*mib)
	_, _ = io.ReadFull(rand.NewChaCha8([32]byte{1}), raw)
	r := newRack(b, 260*mib)
	r.files["/image"] = raw
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		resp, err := http.Get(r.server.URL + "/image")
		if err != nil {
			b.Fatal(err)
		}
		f, err := os.OpenFile(r.tree.DevPath("sda"), os.O_WRONLY, 0)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.CopyBuffer(struct{ io.Writer }{f}, resp.Body, make([]byte, mib)); err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
		f.Close()
	}
}
