package burn

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
)

const (
	chunkBytes = 64 << 20
	// keepBytes stays free for the agent and the kernel, which keeps the RAM disk in memory too; no swap, no killer.
	keepBytes = 256 << 20
)

// patterns are written to every word and read back: all bits both ways, neighbours that differ, and the word's own
// address, which finds address lines that are crossed.
var patterns = []func(i uint64) uint64{
	func(uint64) uint64 { return 0 },
	func(uint64) uint64 { return ^uint64(0) },
	func(uint64) uint64 { return 0xaaaaaaaaaaaaaaaa },
	func(uint64) uint64 { return 0x5555555555555555 },
	func(i uint64) uint64 { return i * 0x9e3779b97f4a7c15 },
	func(i uint64) uint64 { return ^(i * 0x9e3779b97f4a7c15) },
	func(i uint64) uint64 { return 1 << (i & 63) },
}

// memory fills most of the free memory with patterns and reads them back, over and over. All of it is written before any
// is read, so that no cache can answer for it.
func (s *Source) memory(ctx context.Context) inventory.BurnInTest {
	size := s.MemoryBytes
	if size == 0 {
		free := s.available()
		size = free - max(free/10, keepBytes)
	}
	x := memoryWork{chunks: allocate(size)}
	defer func() { release(x.chunks) }()
	began := time.Now()
	for (x.passes == 0 || ctx.Err() == nil) && len(x.chunks) > 0 && x.fault.text() == "" {
		x.pass(ctx)
	}
	if x.passes == 0 && x.fault.text() == "" {
		return inventory.BurnInTest{Detail: "no memory is free to be tested"}
	}
	t := inventory.BurnInTest{Rate: float64(x.words.Load()) * 8 / 1e6 / max(time.Since(began).Seconds(), 0.001), Unit: "MB/s", Detail: x.fault.text()}
	if t.Passed = t.Detail == ""; t.Passed {
		t.Detail = fmt.Sprintf("%d MiB, %d passes, no wrong bit", int64(len(x.chunks))*chunkBytes>>20, x.passes)
	}
	return t
}

// memoryWork is the work on all chunks.
type memoryWork struct {
	chunks [][]byte
	words  atomic.Int64 // written or read
	fault  firstFault
	passes int
}

// pass writes one pattern everywhere and reads it back. The first is always finished: when the time is up before
// everything was written once, what was written is still checked, and the rest does not count as tested.
func (x *memoryWork) pass(ctx context.Context) {
	pattern := patterns[x.passes%len(patterns)]
	filled := each(ctx, x.chunks, func(i int, w []uint64) {
		fill(w, uint64(i)*chunkBytes/8, pattern)
		x.words.Add(int64(len(w)))
	})
	if x.passes == 0 {
		release(x.chunks[filled:])
		x.chunks = x.chunks[:filled]
		ctx = context.WithoutCancel(ctx)
	}
	if filled < len(x.chunks) || filled == 0 {
		return
	}
	checked := each(ctx, x.chunks, func(i int, w []uint64) {
		if at, got, want := check(w, uint64(i)*chunkBytes/8, pattern); at >= 0 {
			x.fault.set(fmt.Sprintf("at %d MiB of the tested memory %016x was read where %016x was written", (int64(i)*chunkBytes+int64(at)*8)>>20, got, want))
		}
		x.words.Add(int64(len(w)))
	})
	if checked == len(x.chunks) {
		x.passes++
	}
}

func release(chunks [][]byte) {
	for _, c := range chunks {
		_ = unix.Munmap(c)
	}
}

// allocate maps chunks until size is reached or the kernel refuses. They are touched by the first pass.
func allocate(size int64) (chunks [][]byte) {
	for ; size >= chunkBytes; size -= chunkBytes {
		c, err := unix.Mmap(-1, 0, chunkBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			break
		}
		chunks = append(chunks, c)
	}
	return chunks
}

// each hands the chunks, in order, to as many workers as there are processors, at least one to each, until ctx ends. It returns how
// many it handed out.
func each(ctx context.Context, chunks [][]byte, work func(i int, words []uint64)) int {
	var next atomic.Int64
	var crew sync.WaitGroup
	for range runtime.NumCPU() {
		crew.Go(func() {
			for isFirst := true; isFirst || ctx.Err() == nil; isFirst = false { // a processor that is late has its turn
				i := int(next.Add(1)) - 1
				if i >= len(chunks) {
					return
				}
				work(i, unsafe.Slice((*uint64)(unsafe.Pointer(&chunks[i][0])), len(chunks[i])/8))
			}
		})
	}
	crew.Wait()
	return min(int(next.Load()), len(chunks))
}

func fill(words []uint64, from uint64, pattern func(uint64) uint64) {
	for i := range words {
		words[i] = pattern(from + uint64(i))
	}
}

// check returns the first word that is not what was written, or -1.
func check(words []uint64, from uint64, pattern func(uint64) uint64) (at int, got, want uint64) {
	for i, w := range words {
		if p := pattern(from + uint64(i)); w != p {
			return i, w, p
		}
	}
	return -1, 0, 0
}

// available is MemAvailable.
func (s *Source) available() int64 {
	text, err := os.ReadFile(filepath.Join(s.Root, "proc/meminfo"))
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(text), "\n") {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemAvailable:" {
			if kb, err := strconv.ParseInt(f[1], 10, 53); err == nil {
				return kb << 10
			}
		}
	}
	return 0
}

// firstFault keeps the first of several findings.
type firstFault struct {
	mu   sync.Mutex
	what string
}

func (f *firstFault) set(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.what = cmp.Or(f.what, what)
}

func (f *firstFault) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.what
}
