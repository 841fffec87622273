package write

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"

	"slipway.dev/slipway/agent/disk"
	"slipway.dev/slipway/inventory"
)

const (
	// headBytes are held back until the image is known to be whole: they have the partition table and the boot sector,
	// without which nothing starts from the disk. The same length at the end is cleared first, for what other tables,
	// arrays and pools left there.
	headBytes = 1 << 20
	// chunkBytes is one write.
	chunkBytes = 4 << 20
	// zeroBytes is the least run of zeroes that is worth a command of its own.
	zeroBytes = 64 << 10
	// writerN writes are under way at once, so that the disk always has the next one.
	writerN = 3
	// chunkN chunks are filled, waiting or being written.
	chunkN = 10
)

// job is a chunk to be written, or a range that has to read as zero.
type job struct {
	p    []byte // whole buffer; the first n bytes count
	n    int
	off  int64
	zero int64 // bytes, when p is nil
}

// sink writes a disk from several goroutines. The owner calls Put and Zero from one goroutine, and ends it by finish
// and commit, or by abandon. mu guards head. The first failed write ends ctx with its error as the cause, and the
// owner sees it at the next Put.
type sink struct {
	dev      *disk.Device
	isZeroed bool // the disk reads as zeroes all over
	canZero  bool // it has a command for zeroes
	isThere  func() bool

	jobs chan job
	free chan []byte
	done sync.WaitGroup
	stop context.CancelCauseFunc
	ctx  context.Context //nolint:containedctx // ends with the first write error

	mu   sync.Mutex
	head []byte

	written, skipped atomic.Int64
}

// newSink clears both ends of a disk, syncs them, and takes data from then on. From here until commit nothing starts
// from the disk, also after a power failure.
func newSink(ctx context.Context, dev *disk.Device, isZeroed bool, q disk.Queue, isThere func() bool) (*sink, error) {
	s := &sink{
		dev: dev, isZeroed: isZeroed, canZero: q.CanZero || !dev.IsBlock(), isThere: isThere,
		jobs: make(chan job, chunkN), free: make(chan []byte, chunkN), head: disk.Buffer(headBytes),
	}
	s.ctx, s.stop = context.WithCancelCause(ctx)
	for _, off := range []int64{0, max(0, dev.Bytes-headBytes)} {
		if _, err := dev.WriteAt(s.head[:min(headBytes, dev.Bytes-off)], off); err != nil {
			return nil, s.explain(err, off)
		}
	}
	if err := dev.Sync(); err != nil {
		return nil, s.explain(err, 0)
	}
	for range chunkN {
		s.free <- disk.Buffer(chunkBytes)
	}
	for range writerN {
		s.done.Go(s.work)
	}
	return s, nil
}

// Buffer returns memory for Put. It waits while all chunks are on their way to the disk, which slows the network down
// to the speed of the disk.
func (s *sink) Buffer() []byte { return <-s.free }

// Put queues the first n bytes of a buffer for an offset. The buffer belongs to the sink afterwards, also with an
// error.
func (s *sink) Put(p []byte, n int, off int64) error {
	if err := s.fits(off, int64(n)); err != nil {
		s.free <- p
		return err
	}
	return s.send(job{p: p, n: n, off: off})
}

// Zero queues a range that has to read as zero. It comes in pieces of 256 MiB, so that an ended context stops it
// soon.
func (s *sink) Zero(off, n int64) error {
	if err := s.fits(off, n); err != nil {
		return err
	}
	if off < headBytes { // the head is zero until something is put there
		skip := min(headBytes-off, n)
		off, n = off+skip, n-skip
		s.skipped.Add(skip)
	}
	for n > 0 {
		part := min(n, 256<<20)
		if err := s.send(job{off: off, zero: part}); err != nil {
			return err
		}
		off, n = off+part, n-part
	}
	return nil
}

func (s *sink) fits(off, n int64) error {
	if off+n <= s.dev.Bytes {
		return nil
	}
	return inventory.Errorf(inventory.Invalid, "the image is larger than disk %s: it has %d bytes", s.dev.Name, s.dev.Bytes).
		WithHint("use a larger disk or a smaller image")
}

func (s *sink) send(j job) error {
	select {
	case <-s.ctx.Done():
		if j.p != nil {
			s.free <- j.p
		}
		return context.Cause(s.ctx)
	case s.jobs <- j:
		return nil
	}
}

func (s *sink) work() {
	for j := range s.jobs {
		if s.ctx.Err() == nil {
			if err := s.do(j); err != nil {
				s.stop(err)
			}
		}
		if j.p != nil {
			s.free <- j.p
		}
	}
}

func (s *sink) do(j job) error {
	if j.p == nil {
		return s.zero(j.off, j.zero)
	}
	p, off := j.p[:j.n], j.off
	if off < headBytes {
		n := min(headBytes-off, int64(len(p)))
		s.mu.Lock()
		copy(s.head[off:], p[:n])
		s.mu.Unlock()
		p, off = p[n:], off+n
	}
	for len(p) > 0 {
		n, isZero := run(p)
		if isZero && n >= zeroBytes {
			if err := s.zero(off, int64(n)); err != nil {
				return err
			}
		} else {
			if _, err := s.dev.WriteAt(p[:n], off); err != nil {
				return s.explain(err, off)
			}
			s.written.Add(int64(n))
		}
		p, off = p[n:], off+int64(n)
	}
	return nil
}

// run returns the length of the first run of pieces of zeroBytes that are all zero, or all not zero.
func run(p []byte) (int, bool) {
	isZero := disk.IsZero(p[:min(zeroBytes, len(p))])
	n := min(zeroBytes, len(p))
	for n < len(p) {
		next := p[n:min(n+zeroBytes, len(p))]
		if disk.IsZero(next) != isZero {
			break
		}
		n += len(next)
	}
	return n, isZero
}

func (s *sink) zero(off, n int64) error {
	if s.isZeroed {
		s.skipped.Add(n)
		return nil
	}
	// BLKZEROOUT takes whole sectors. The rest, at the end of an odd image, is written.
	whole := n / int64(s.dev.Sector) * int64(s.dev.Sector)
	if off%int64(s.dev.Sector) != 0 {
		whole = 0
	}
	if whole > 0 {
		if err := s.dev.ZeroOut(off, whole); err != nil {
			return s.explain(err, off)
		}
	}
	if rest := n - whole; rest > 0 {
		if _, err := s.dev.WriteAt(make([]byte, rest), off+whole); err != nil {
			return s.explain(err, off)
		}
	}
	if s.canZero {
		s.skipped.Add(n)
	} else {
		s.written.Add(n)
	}
	return nil
}

// explain turns a failed write into an error that names the disk, the place and what to check.
func (s *sink) explain(err error, off int64) error {
	if _, ok := errors.AsType[*inventory.Error](err); ok {
		return err
	}
	if errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.ENXIO) || s.isThere != nil && !s.isThere() {
		return inventory.Errorf(inventory.Unavailable, "disk %s vanished while it was written, at byte %d", s.dev.Name, off).
			WithHint("look at its cable, its bay and its power")
	}
	return inventory.Errorf(inventory.Unavailable, "disk %s cannot be written at byte %d: %w", s.dev.Name, off, err).
		WithHint("look at the health of the disk; it may have to be replaced")
}

// finish waits for all queued writes and syncs them. The head stays in memory: if the process dies here, the disk is
// empty for every reader.
func (s *sink) finish() error {
	close(s.jobs)
	s.done.Wait()
	if err := context.Cause(s.ctx); err != nil {
		return err
	}
	if err := s.dev.Sync(); err != nil {
		return s.explain(err, s.dev.Bytes)
	}
	return nil
}

// abandon ends the writers after an error. The disk stays without its head, so that nothing starts from half an
// image.
func (s *sink) abandon() {
	s.stop(errors.New("abandoned"))
	close(s.jobs)
	s.done.Wait()
}

// commit writes the head, with the partition table fitted to the disk. The first 64 KiB come last, in one write. From
// that write on the disk starts the image. If the process dies before the table is fitted, a repetition writes the
// image again.
func (s *sink) commit() error {
	n := min(headBytes, s.dev.Bytes)
	if err := checkSector(s.head, s.dev); err != nil {
		return err
	}
	// All but the first sectors before them: only the last write makes the disk start.
	for _, part := range [][2]int64{{64 << 10, n}, {0, min(64<<10, n)}} {
		if part[0] >= part[1] {
			continue
		}
		if _, err := s.dev.WriteAt(s.head[part[0]:part[1]], part[0]); err != nil {
			return s.explain(err, part[0])
		}
	}
	s.written.Add(n)
	table, err := disk.ReadTable(s.dev, s.dev.Bytes, s.dev.Sector)
	if err != nil {
		return s.explain(err, 0)
	}
	if table != nil && table.IsGPT {
		if err := table.Write(s.dev, s.dev.Bytes); err != nil {
			return fmt.Errorf("fit the partition table of %s to the disk: %w", s.dev.Name, err)
		}
	}
	if err := s.dev.Sync(); err != nil {
		return s.explain(err, 0)
	}
	return nil
}

// checkSector refuses an image whose GPT was made for another sector size than the disk has. The header lies at
// sector 1, so that the firmware would look for it at another byte.
func checkSector(head []byte, dev *disk.Device) error {
	for _, sector := range []int{512, 4096} {
		if sector != dev.Sector && string(head[sector:sector+8]) == "EFI PART" && string(head[dev.Sector:dev.Sector+8]) != "EFI PART" {
			return inventory.Errorf(inventory.Invalid, "the image is made for disks with sectors of %d bytes, and %s has %d", sector, dev.Name, dev.Sector).
				WithHint("use an image for such disks, or reformat the disk to sectors of %d bytes", sector)
		}
	}
	return nil
}
