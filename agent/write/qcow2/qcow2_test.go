package qcow2

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway.dev/slipway/agent/disk/disktest"
	"slipway.dev/slipway/inventory"
)

// memory is a disk in memory.
type memory struct {
	disk []byte
	size int
}

func (m *memory) Buffer() []byte { return make([]byte, m.size) }

func (m *memory) Put(p []byte, n int, off int64) error {
	copy(m.disk[off:], p[:n])
	return nil
}

func fetcher(b []byte) func(off, n int64) ([]byte, error) {
	return func(off, n int64) ([]byte, error) { return b[off:min(off+n, int64(len(b)))], nil }
}

func unpackAll(file []byte, buffer int) ([]byte, *Map, error) {
	h, err := ParseHeader(file[:min(HeaderBytes, len(file))])
	if err != nil {
		return nil, nil, err
	}
	m, err := ReadMap(h, int64(len(file)), fetcher(file))
	if err != nil {
		return nil, nil, err
	}
	if h.Size > 1<<24 {
		return nil, m, nil
	}
	out := &memory{disk: bytes.Repeat([]byte{0xa5}, int(h.Size)), size: buffer}
	for _, hole := range m.Holes {
		clear(out.disk[hole.Off:][:hole.Bytes])
	}
	return out.disk, m, m.Copy(bytes.NewReader(file), out)
}

// sample makes a raw disk with data, repeated data, noise and zeroes.
func sample(t testing.TB, size int) (string, []byte) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	raw := make([]byte, size)
	for off := 0; off+40000 < size; off += 40000 + r.IntN(200000) {
		for i := range 40000 {
			if off%3 == 0 {
				raw[off+i] = byte(r.Uint32())
			} else {
				raw[off+i] = byte(i / 100)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "raw")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, raw
}

func TestImagesOfQEMUAreReadByteForByte(t *testing.T) {
	path, raw := sample(t, 9<<20+512)
	cases := map[string][]string{
		"plain":                     nil,
		"version 2":                 {"-o", "compat=0.10"},
		"packed with deflate":       {"-c"},
		"packed with zstd":          {"-c", "-o", "compression_type=zstd"},
		"small clusters":            {"-o", "cluster_size=512"},
		"small clusters, packed":    {"-c", "-o", "cluster_size=4096"},
		"large clusters":            {"-o", "cluster_size=2M"},
		"large clusters, packed":    {"-c", "-o", "cluster_size=2M"},
		"space allocated ahead":     {"-o", "preallocation=metadata"},
		"version 2, packed":         {"-c", "-o", "compat=0.10"},
		"zeroes kept as data":       {"-S", "0"},
		"written out of order":      {"-W", "-m", "8"},
		"refcounts of 64 bits":      {"-o", "refcount_bits=64"},
		"lazy refcounts, not fresh": {"-o", "lazy_refcounts=on"},
	}
	for name, args := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "q")
			disktest.Run(t, "qemu-img", append(append([]string{"convert", "-f", "raw", "-O", "qcow2"}, args...), path, file)...)
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, buffer := range []int{1 << 20, 4096} {
				got, _, err := unpackAll(b, buffer)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got[:len(raw)], raw) {
					t.Fatal("the disk differs")
				}
			}
		})
	}
}

func TestZeroClustersAreHoles(t *testing.T) {
	path, raw := sample(t, 4<<20)
	file := filepath.Join(t.TempDir(), "q")
	disktest.Run(t, "qemu-img", "convert", "-f", "raw", "-O", "qcow2", path, file)
	disktest.Run(t, "qemu-io", "-f", "qcow2", "-c", "write -z 0 1M", file)
	clear(raw[:1<<20])
	b, _ := os.ReadFile(file)
	got, m, err := unpackAll(b, 1<<20)
	if err != nil || !bytes.Equal(got, raw) {
		t.Fatalf("%v", err)
	}
	if len(m.Holes) == 0 || m.Holes[0].Off != 0 || m.Holes[0].Bytes < 1<<20 {
		t.Errorf("%+v", m.Holes)
	}
}

func TestImagesThatCannotBeWrittenAreRefusedInWords(t *testing.T) {
	path, _ := sample(t, 1<<20)
	dir := t.TempDir()
	cases := map[string]struct{ args, says []string }{
		"with a backing file": {[]string{"create", "-f", "qcow2", "-b", path, "-F", "raw"}, []string{"difference"}},
		"extended entries":    {[]string{"create", "-f", "qcow2", "-o", "extended_l2=on,cluster_size=128k"}, []string{"extended"}},
		"data in another file": {
			[]string{"create", "-f", "qcow2", "-o", "data_file=" + filepath.Join(dir, "ext") + ",data_file_raw=on"},
			[]string{"another file"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "q")
			disktest.Run(t, "qemu-img", append(c.args, file, "1M")...)
			b, _ := os.ReadFile(file)
			_, _, err := unpackAll(b, 4096)
			var e *inventory.Error
			if !errors.As(err, &e) || e.Kind != inventory.Invalid || !strings.Contains(e.Msg, c.says[0]) || e.Hint == "" {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("encrypted", func(t *testing.T) {
		file := filepath.Join(dir, "plain")
		disktest.Run(t, "qemu-img", "create", "-f", "qcow2", file, "1M")
		b, _ := os.ReadFile(file)
		b[35] = 2 // LUKS; qemu-img needs a quiet machine to make a real one
		if _, _, err := unpackAll(b, 4096); err == nil || !strings.Contains(err.Error(), "encrypted") {
			t.Errorf("%v", err)
		}
	})
	t.Run("cut short", func(t *testing.T) {
		file := filepath.Join(dir, "cut")
		disktest.Run(t, "qemu-img", "convert", "-f", "raw", "-O", "qcow2", path, file)
		b, _ := os.ReadFile(file)
		if _, _, err := unpackAll(b[:len(b)/2], 4096); err == nil || !strings.Contains(err.Error(), "cut short") {
			t.Errorf("%v", err)
		}
	})
	t.Run("snapshots inside", func(t *testing.T) {
		file := filepath.Join(dir, "snap")
		disktest.Run(t, "qemu-img", "convert", "-f", "raw", "-O", "qcow2", path, file)
		disktest.Run(t, "qemu-img", "snapshot", "-c", "one", file)
		b, _ := os.ReadFile(file)
		if _, _, err := unpackAll(b, 4096); err == nil || !strings.Contains(err.Error(), "1 snapshots") {
			t.Errorf("%v", err)
		}
	})
}

func TestTablesThatChangeBetweenTheTwoReadsAreNoticed(t *testing.T) {
	path, _ := sample(t, 1<<20)
	file := filepath.Join(t.TempDir(), "q")
	disktest.Run(t, "qemu-img", "convert", "-f", "raw", "-O", "qcow2", path, file)
	b, _ := os.ReadFile(file)
	h, err := ParseHeader(b)
	if err != nil {
		t.Fatal(err)
	}
	m, err := ReadMap(h, int64(len(b)), fetcher(b))
	if err != nil {
		t.Fatal(err)
	}
	b[h.L1Off+7] ^= 1
	if err := m.Copy(bytes.NewReader(b), &memory{disk: make([]byte, h.Size), size: 4096}); err == nil {
		t.Error("the change went unnoticed")
	}
}

// TestDamagedImagesDoNoHarm changes single bytes, more often where the header is: quicker than the fuzzer at finding
// tables that overlap.
func TestDamagedImagesDoNoHarm(t *testing.T) {
	path, _ := sample(t, 1<<17)
	file := filepath.Join(t.TempDir(), "q")
	disktest.Run(t, "qemu-img", "convert", "-f", "raw", "-O", "qcow2", "-c", "-o", "cluster_size=512", path, file)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(7, 8))
	for range 1500 {
		bad := bytes.Clone(b)
		for range 1 + r.IntN(4) {
			i := r.IntN(len(bad))
			if r.IntN(2) == 0 {
				i = r.IntN(112)
			}
			bad[i] = byte(r.Uint32())
		}
		_, _, _ = unpackAll(bad, 4096)
	}
}

func FuzzImage(f *testing.F) {
	path, _ := sample(f, 1<<17)
	for i, args := range [][]string{nil, {"-c"}, {"-c", "-o", "compression_type=zstd"}} {
		file := filepath.Join(f.TempDir(), string(rune('a'+i)))
		disktest.Run(f, "qemu-img", append(append([]string{"convert", "-f", "raw", "-O", "qcow2", "-o", "cluster_size=512"}, args...), path, file)...)
		b, _ := os.ReadFile(file)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, _, err := unpackAll(b, 4096)
		if err == nil && len(a) > 0 {
			sum := sha256.Sum256(a)
			if again, _, _ := unpackAll(b, 65536); sha256.Sum256(again) != sum {
				t.Fatal("the size of the buffer changes what is read")
			}
		}
	})
}
