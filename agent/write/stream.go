package write

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

const (
	blockBytes = 1 << 20 // read from the network at once
	blockN     = 24      // read ahead
)

// stream reads a file ahead and computes its digest on the way, each in a goroutine of its own. Neither the network
// nor the disk then waits for the processor. One goroutine calls Read; done is closed when both goroutines have
// ended.
type stream struct {
	in    chan []byte
	free  chan []byte
	fail  error // set before in is closed
	done  chan struct{}
	sum   hash.Hash
	bytes atomic.Int64 // of the file, read
	now   []byte
	whole []byte // the block that now is a part of
}

func newStream(ctx context.Context, file io.Reader) *stream {
	s := &stream{in: make(chan []byte, blockN), free: make(chan []byte, blockN+4), done: make(chan struct{}), sum: sha256.New()}
	// These blocks are all the memory of a stream. A slow disk leaves none free, which stops the reading.
	for range cap(s.free) {
		s.free <- make([]byte, blockBytes)
	}
	read := make(chan []byte, blockN)
	var readErr error
	go func() {
		defer close(read)
		for {
			var b []byte
			select {
			case b = <-s.free:
			case <-ctx.Done():
				readErr = context.Cause(ctx)
				return
			}
			n, err := fill(file, b)
			if n > 0 {
				s.bytes.Add(int64(n))
				// This cannot hang: the second goroutine takes blocks until read is closed, also after the end of ctx.
				read <- b[:n]
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					readErr = err
				}
				return
			}
		}
	}()
	go func() {
		// Deferred calls run backwards: in is closed first, and shows Read the end. done is last, when nobody uses the
		// file.
		defer close(s.done)
		defer close(s.in)
		for b := range read {
			s.sum.Write(b)
			select {
			case s.in <- b:
			case <-ctx.Done():
				s.fail = context.Cause(ctx)
			}
		}
		s.fail = cmp.Or(s.fail, readErr)
	}()
	return s
}

func (s *stream) Read(p []byte) (int, error) {
	for len(s.now) == 0 {
		if s.whole != nil {
			// A block that was read short has its full length again.
			s.free <- s.whole[:cap(s.whole)]
			s.whole = nil
		}
		b, ok := <-s.in
		if !ok {
			if s.fail != nil {
				return 0, s.fail
			}
			return 0, io.EOF
		}
		s.now, s.whole = b, b
	}
	n := copy(p, s.now)
	s.now = s.now[n:]
	return n, nil
}

// digest returns the digest of the whole file. Only after io.EOF from Read has the hashing goroutine ended.
func (s *stream) digest() string { return "sha256:" + hex.EncodeToString(s.sum.Sum(nil)) }

// unpacked returns a reader of the disk's bytes, and a function that ends it. The bound of zstd's window is also what
// the server checks at the import.
func unpacked(r io.Reader, format string) (io.Reader, func(), error) {
	none := func() {}
	switch format {
	case "raw":
		return r, none, nil
	case "raw.gz":
		z, err := gzip.NewReader(r)
		return z, none, err
	case "raw.zst":
		z, err := zstd.NewReader(r, zstd.WithDecoderMaxMemory(512<<20), zstd.WithDecoderMaxWindow(wire.MaxZstdWindow))
		if err != nil {
			return nil, none, err
		}
		return z, z.Close, nil
	case "raw.xz":
		z, err := xz.NewReader(bufio.NewReaderSize(r, 256<<10)) // it reads byte by byte
		return z, none, err
	}
	return nil, none, inventory.Errorf(inventory.Invalid, "images of the format %q cannot be written", inventory.Clean(format, 40)).
		WithHint("known are raw, raw.gz, raw.zst, raw.xz and qcow2")
}
