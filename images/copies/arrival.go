package copies

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
)

// arrival is a file that comes from other instances. done is closed when err is set.
type arrival struct {
	cfg     *Config
	room    chan struct{} // a place for each fetch that runs
	file    File
	missing error // what NotFound says
	done    chan struct{}
	err     error
	bytes   atomic.Int64 // that are here, and in the sum

	// The rest is of the goroutine that runs it.

	out  *os.File
	sum  hash.Hash
	from string // who sent all of these bytes; "" when they are of several instances, or of a run before
}

const (
	copyBytes = 256 << 10
	// least is what an instance has to send within StallFor.
	least = 256 << 10
	// spaceEvery is how often the free space is looked at. Several files may come at the same time, and an import besides.
	spaceEvery = 64 << 20
)

// wait waits until the fetch has ended, and reports whether it has.
func (x *arrival) wait(ctx context.Context, atMost time.Duration) bool {
	late := time.NewTimer(atMost)
	defer late.Stop()
	select {
	case <-x.done:
		return true
	case <-ctx.Done():
	case <-late.C:
	}
	return false
}

// run fetches the file, checks it, and gives it to the cache.
func (x *arrival) run(ctx context.Context) error {
	select {
	case x.room <- struct{}{}:
		defer func() { <-x.room }()
	case <-ctx.Done():
		return ctx.Err()
	}
	name := filepath.Join(x.cfg.Cache.PartialDir(), "copy-"+x.file.Digest.Hex())
	out, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return images.DiskError("fetch a file of another instance", err)
	}
	defer out.Close()
	x.out, x.sum = out, sha256.New()
	if err := x.takeOver(); err != nil {
		return err
	}
	if err := x.cfg.Cache.CheckSpace(x.file.SizeBytes - x.bytes.Load()); err != nil {
		return err
	}
	if err := x.ask(ctx); err != nil {
		return err
	}
	if err := out.Sync(); err != nil {
		return images.DiskError("store a file of another instance", err)
	}
	return x.cfg.Cache.Keep(ctx, name, x.file.Digest, x.file.SizeBytes)
}

// takeOver reads what a former run has left. A power failure may have damaged it. The sum of the whole file shows that, and the fetch then
// begins again.
func (x *arrival) takeOver() error {
	n, err := io.Copy(x.sum, io.LimitReader(x.out, x.file.SizeBytes))
	if err != nil {
		return images.DiskError("go on with a file of another instance", err)
	}
	x.bytes.Store(n)
	return nil
}

// restart drops what has arrived.
func (x *arrival) restart() error {
	x.sum.Reset()
	x.bytes.Store(0)
	x.from = ""
	err := x.out.Truncate(0)
	if err == nil {
		_, err = x.out.Seek(0, io.SeekStart)
	}
	if err != nil {
		return ours{images.DiskError("begin a file of another instance again", err)}
	}
	return nil
}

// isRight reports whether the whole file is here, with the right sum.
func (x *arrival) isRight() bool {
	return x.bytes.Load() == x.file.SizeBytes && fmt.Sprintf("%x", x.sum.Sum(nil)) == x.file.Digest.Hex()
}

// errWrong is the error of an instance that has sent other content, all of it by itself.
var errWrong = errors.New("sent wrong content")

// ask fetches from one instance after the other until the file is right. It begins again with the first as long as enough bytes come. It
// never asks again who has sent wrong content.
func (x *arrival) ask(ctx context.Context) error {
	liars := map[string]bool{}
	for {
		if x.isRight() {
			return nil
		}
		names, err := x.cfg.Peers.Live(ctx)
		if err != nil {
			return err
		}
		before, lackN := x.bytes.Load(), 0
		var problems []error
		for _, name := range names {
			if liars[name] {
				continue
			}
			err := x.askOne(ctx, name)
			switch {
			case err == nil:
				return nil
			case ctx.Err() != nil:
				return ctx.Err()
			case isOurs(err):
				return err
			case inventory.IsKind(err, inventory.NotFound):
				lackN++
			case errors.Is(err, errWrong):
				liars[name] = true
				x.cfg.Log.Error("another instance sends a damaged file: it is refused", "instance", name, "digest", x.file.Digest)
			default:
				x.cfg.Log.Warn("file of another instance not complete", "instance", name, "digest", x.file.Digest, "err", err)
			}
			problems = append(problems, fmt.Errorf("instance %s: %w", name, err))
		}
		if x.bytes.Load() >= before+least {
			continue
		}
		return x.nobody(len(names), lackN, problems)
	}
}

// nobody is the error for a file that no instance has sent. NotFound is certain only when all have answered that they lack it.
func (x *arrival) nobody(askedN, lackN int, problems []error) error {
	if lackN == askedN {
		if x.missing != nil {
			return x.missing
		}
		return inventory.Errorf(inventory.NotFound, "no other instance has the file %s", x.file.Digest)
	}
	all := errors.Join(problems...)
	return inventory.Errorf(inventory.Unavailable, "the file %s does not come from another instance: %w", x.file.Digest, all).
		WithHint("it is tried again; slipway instance list shows which instances live")
}

// askOne fetches what is missing from one instance. If pieces of several do not fit together, it fetches all of it from this one.
func (x *arrival) askOne(ctx context.Context, name string) error {
	for {
		if x.bytes.Load() == 0 {
			x.from = name
		} else if x.from != name {
			x.from = ""
		}
		if err := x.receive(ctx, name); err != nil {
			return err
		}
		if x.isRight() {
			return nil
		}
		isAlone := x.from == name
		if err := x.restart(); err != nil {
			return err
		}
		if isAlone {
			return errWrong
		}
	}
}

// errStalled is the cause of the end of a fetch that brings too little.
var errStalled = errors.New("sent too little for some time")

// receive copies what one instance sends, up to the size of the file.
func (x *arrival) receive(ctx context.Context, name string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := time.AfterFunc(x.cfg.StallFor, func() { cancel(errStalled) })
	defer stall.Stop()
	if x.bytes.Load() == x.file.SizeBytes { // of a former run
		return nil
	}
	body, err := x.cfg.Peers.Fetch(ctx, name, x.file.Digest, x.bytes.Load())
	if err != nil {
		return causeOf(ctx, err)
	}
	defer body.Close()
	buf, enough, spaced := make([]byte, copyBytes), int64(0), int64(0)
	for {
		n, err := body.Read(buf)
		if x.bytes.Load()+int64(n) > x.file.SizeBytes {
			// Nothing says which of its bytes are right, so none stay.
			return errors.Join(errWrong, x.restart())
		}
		if err := x.write(buf[:n]); err != nil {
			return err
		}
		if enough += int64(n); enough >= least {
			enough = 0
			stall.Reset(x.cfg.StallFor)
		}
		if spaced += int64(n); spaced >= spaceEvery {
			spaced = 0
			if err := x.cfg.Cache.CheckSpace(x.file.SizeBytes - x.bytes.Load()); err != nil {
				return ours{err}
			}
		}
		switch {
		case err == io.EOF && x.bytes.Load() < x.file.SizeBytes:
			return io.ErrUnexpectedEOF
		case err == io.EOF:
			return nil
		case err != nil:
			return causeOf(ctx, err)
		}
	}
}

// write adds bytes to the file and to its sum.
func (x *arrival) write(p []byte) error {
	n, err := x.out.Write(p)
	// A full disk takes a part. The sum is of what is in the file.
	x.sum.Write(p[:n])
	x.bytes.Add(int64(n))
	if err != nil {
		return ours{images.DiskError("store a file of another instance", err)}
	}
	return nil
}

// ours is an error of this instance: no other can help.
type ours struct{ error }

func (o ours) Unwrap() error { return o.error }

func isOurs(err error) bool {
	var o ours
	return errors.As(err, &o)
}

// causeOf returns why a request was ended, if it was.
func causeOf(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errStalled) {
		return errStalled
	}
	return err
}
