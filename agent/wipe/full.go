package wipe

import (
	"context"
	"errors"
	"math/rand/v2"
	"syscall"

	"slipway.dev/slipway/agent/disk"
	"slipway.dev/slipway/inventory"
)

const (
	sampleN     = 64 // places that are read back
	sampleBytes = disk.Align
	// discardStep is one discard: nothing can interrupt it while the disk works.
	discardStep = 1 << 30
	maxBad      = 256 // places that cannot be written, before the wipe gives the disk up
)

// full makes every block read as zero: by the disk's own command where it promises that, else by writing.
func (o *work) full(ctx context.Context) error {
	o.total.Store(o.dev.Bytes)
	q := o.cfg.Tree.Queue(o.disk.Name)
	if q.CanZero || q.CanDiscard && q.IsZeroAfterDiscard {
		done, err := o.discard(ctx, q)
		if err != nil || done {
			return err
		}
		o.bytes.Store(0)
		o.cert.Bytes, o.cert.VerifiedN = 0, 0
	}
	return o.overwriteAll(ctx)
}

// discard lets the disk clear itself. It returns false when the disk cannot, or when a place that was written before
// still shows it. It never trusts the promise alone: the planted places prove it.
func (o *work) discard(ctx context.Context, q disk.Queue) (bool, error) {
	places := o.sampler()
	if err := o.plant(places); err != nil {
		return false, err
	}
	for off := int64(0); off < o.dev.Bytes; off += discardStep {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		n := min(discardStep, o.dev.Bytes-off)
		var err error
		// Discard is only a hint, so that ZeroOut follows where the disk has it.
		if q.CanDiscard {
			err = o.dev.Discard(off, n) // gives the cells back; the next command says what they read as
		}
		if q.CanZero {
			err = o.dev.ZeroOut(off, n)
		}
		switch {
		// Some disks announce a command and refuse it. They are overwritten.
		case errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.ENOTTY), errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.EREMOTEIO):
			return false, nil
		case err != nil:
			return false, o.explain(err, off)
		}
		o.bytes.Store(off + n)
	}
	if err := o.dev.Sync(); err != nil {
		return false, o.explain(err, 0)
	}
	if err := o.checkSamples(places); err != nil {
		return false, nil //nolint:nilerr // it does not keep its promise: it is overwritten instead
	}
	o.cert.Method, o.cert.Bytes, o.isZero = methodDiscard, o.dev.Bytes, true
	return true, nil
}

// overwriteAll writes zeroes to every block.
func (o *work) overwriteAll(ctx context.Context) error {
	o.cert.Method = methodOverwrite
	o.total.Store(o.dev.Bytes)
	if err := o.overwrite(ctx, 0, o.dev.Bytes); err != nil {
		return err
	}
	if err := o.dev.Sync(); err != nil {
		return o.explain(err, 0)
	}
	if err := o.checkSamples(o.sampler()); err != nil {
		return err
	}
	o.isZero = true
	return nil
}

// overwrite writes zeroes to a range. It skips places that cannot be written, so that as little as possible is left,
// and then returns an error that counts them.
func (o *work) overwrite(ctx context.Context, off, n int64) error {
	zero := disk.Buffer(step)
	var firstErr error
	badN, firstBad := 0, int64(0)
	for end := off + n; off < end; {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := min(step-off%disk.Align, end-off)
		if _, err := o.dev.WriteAt(zero[:part], off); err != nil {
			// EIO is one bad place. Any other error, too many of them, or a pulled disk ends the wipe.
			if !errors.Is(err, syscall.EIO) || badN >= maxBad || !o.isThere() {
				return o.explain(err, off)
			}
			if firstErr == nil {
				firstErr, firstBad = err, off
			}
			badN++
		} else {
			o.cert.Bytes += part
		}
		off += part
		o.bytes.Add(part)
	}
	if firstErr != nil {
		return inventory.Errorf(inventory.Unavailable, "%d places of %s cannot be written, the first at byte %d: data may be left there", badN, o.disk.Name, firstBad)
	}
	return nil
}

func (o *work) isThere() bool { return !o.dev.IsBlock() || o.cfg.Tree.Has(o.disk.Name) }

func (o *work) explain(err error, off int64) error {
	var known *inventory.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, syscall.ENODEV), errors.Is(err, syscall.ENXIO), !o.isThere():
		return inventory.Errorf(inventory.Unavailable, "disk %s vanished while it was wiped, at byte %d", o.disk.Name, off)
	case errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EPERM):
		return inventory.Errorf(inventory.Invalid, "disk %s is read-only", o.disk.Name)
	}
	return inventory.Errorf(inventory.Unavailable, "disk %s cannot be written at byte %d: %w", o.disk.Name, off, err)
}

// sampler chooses the places that are read back: both ends, where tables and labels are, and others by chance.
func (o *work) sampler() []int64 {
	seed := o.cfg.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	// Chance is enough: the disk does not know the places before it is wiped, and a test can repeat them.
	r := rand.New(rand.NewPCG(seed, uint64(o.dev.Bytes)))
	last := max(0, o.dev.Bytes-sampleBytes) &^ (disk.Align - 1)
	places := []int64{0, last}
	for len(places) < sampleN {
		places = append(places, r.Int64N(last/disk.Align+1)*disk.Align)
	}
	return places
}

// within moves places into ranges, one range after the other.
func within(places []int64, ranges []disk.Extent) []int64 {
	var moved []int64
	for i, p := range places {
		r := ranges[i%len(ranges)]
		if room := r.Bytes - sampleBytes; room > 0 {
			moved = append(moved, r.Off+p%room&^(disk.Align-1))
		}
	}
	return moved
}

// plant writes a pattern that must be gone afterwards. On a disk that was empty before, reading zeroes would prove
// nothing.
func (o *work) plant(places []int64) error {
	p := pattern()
	for _, off := range places {
		if _, err := o.dev.WriteAt(p[:min(sampleBytes, o.dev.Bytes-off)], off); err != nil {
			return o.explain(err, off)
		}
	}
	if err := o.dev.Sync(); err != nil {
		return o.explain(err, 0)
	}
	return nil
}

func pattern() []byte {
	p := disk.Buffer(sampleBytes)
	copy(p, "slipway wipe proof ")
	for i := 20; i < len(p); i++ {
		p[i] = byte(i*31 + 7)
	}
	return p
}

// checkSamples reads places back, which must be zero.
func (o *work) checkSamples(places []int64) error {
	return o.check(places, disk.IsZero, "not zero")
}

func (o *work) check(places []int64, isClean func([]byte) bool, otherwise string) error {
	p := disk.Buffer(sampleBytes)
	for _, off := range places {
		n := min(sampleBytes, o.dev.Bytes-off)
		if _, err := o.dev.ReadAt(p[:n], off); err != nil {
			return inventory.Errorf(inventory.Unavailable, "%s cannot be read back at byte %d: %w", o.disk.Name, off, err)
		}
		if !isClean(p[:n]) {
			return inventory.Errorf(inventory.Unavailable, "%s is %s at byte %d after it was wiped", o.disk.Name, otherwise, off)
		}
		o.cert.VerifiedN++
	}
	return nil
}
