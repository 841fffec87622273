package images

import (
	"context"
	"encoding/binary"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/agent/write/qcow2"
	"slipway.dev/slipway/inventory"
)

// How large a disk image is once it is unpacked. Placement asks that before a host is claimed: on a disk that is too small,
// writing would fail when the old system is gone already. Unpacking also shows a file that was cut short.

// maxMeasured is how much is unpacked to measure it. A larger disk image has the size that the request says, or none.
const maxMeasured = 64 << 30

var errTooLong = errors.New("more than is measured")

// measure returns the size of the disk in a file, 0 when it is too large to be measured. The error is why it cannot be
// unpacked.
func measure(ctx context.Context, format string, f io.ReaderAt, size int64) (n int64, err error) {
	in := &ctxReader{ctx: ctx, in: io.NewSectionReader(f, 0, size)}
	var out io.Reader
	switch format {
	case "raw":
		return size, nil
	case "qcow2":
		head := make([]byte, min(size, qcow2.HeaderBytes))
		if _, err = f.ReadAt(head, 0); err != nil && err != io.EOF {
			return 0, err
		}
		h, err := qcow2.ParseHeader(head)
		return h.Size, err
	case "raw.xz":
		return xzSize(f, size)
	case "raw.gz":
		out, err = gzip.NewReader(in)
	case "raw.zst":
		var z *zstd.Decoder
		if z, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(wire.MaxZstdWindow)); err == nil {
			defer z.Close()
			out = z
		}
	}
	if err == nil && out != nil {
		n, err = io.Copy(&counter{left: maxMeasured}, struct{ io.Reader }{out})
	}
	if errors.Is(err, errTooLong) {
		return 0, nil
	}
	return n, err
}

// ctxReader ends with its context.
type ctxReader struct {
	ctx context.Context
	in  io.Reader
}

func (r *ctxReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.in.Read(p)
}

// counter throws away at most so many bytes.
type counter struct{ left int64 }

func (c *counter) Write(p []byte) (int, error) {
	if c.left -= int64(len(p)); c.left < 0 {
		return 0, errTooLong
	}
	return len(p), nil
}

// The parts of an .xz file. Section numbers are those of "The .xz File Format": a stream header (2.1.1), blocks (3),
// an index (4) and a stream footer (2.1.2). All numbers are little-endian.
const (
	xzEdge     = 12 // of header and of footer
	maxXZIndex = 64 << 20
	// maxXZSteps bounds the streams and the words of padding between them that are walked over.
	maxXZSteps = 1 << 16
)

var errXZ = errors.New("its end is not that of an xz file")

// xzSize reads the indexes at the ends of the streams of an xz file, from the last to the first. The size is 0 for a file of more
// steps than are walked.
// The indexes hold the unpacked sizes, so that a file of many gigabytes is measured with a few reads. The file comes
// from outside: each length is checked against what remains before it is used.
func xzSize(f io.ReaderAt, size int64) (total int64, err error) {
	for end, steps := size, 0; end > 0; steps++ {
		if steps == maxXZSteps {
			return 0, nil
		}
		foot := make([]byte, xzEdge)
		if end < 2*xzEdge || end%4 != 0 {
			return 0, errXZ
		}
		if _, err := f.ReadAt(foot, end-xzEdge); err != nil {
			return 0, err
		}
		if binary.LittleEndian.Uint32(foot[8:]) == 0 { // padding between streams, or behind the last
			end -= 4
			continue
		}
		// Backward Size (2.1.2.2) stores the size of the index in units of four bytes, less one.
		indexBytes := (int64(binary.LittleEndian.Uint32(foot[4:])) + 1) * 4
		if string(foot[10:]) != "YZ" || indexBytes > min(end-2*xzEdge, maxXZIndex) {
			return 0, errXZ
		}
		index := make([]byte, indexBytes)
		if _, err := f.ReadAt(index, end-xzEdge-indexBytes); err != nil {
			return 0, err
		}
		packed, unpacked, ok := xzIndex(index)
		if end -= 2*xzEdge + indexBytes + packed; !ok || end < 0 || total+unpacked < total {
			return 0, errXZ
		}
		total += unpacked
	}
	return total, nil
}

// xzIndex adds up the blocks that an index lists.
// A record (4.3) has the unpadded size of a block, which lies padded to four bytes in the file, and the unpacked
// size.
func xzIndex(b []byte) (packed, unpacked int64, ok bool) {
	if len(b) == 0 || b[0] != 0 {
		return 0, 0, false
	}
	b = b[1:]
	number := func() (v int64) {
		u, n := binary.Uvarint(b)
		if n <= 0 || u > 1<<62 {
			ok, b = false, nil
			return 0
		}
		b = b[n:]
		return int64(u)
	}
	ok = true
	for n := number(); ok && n > 0; n-- {
		blockBytes, plainBytes := number(), number()
		packed += (blockBytes + 3) &^ 3
		if unpacked += plainBytes; packed < 0 || unpacked < 0 {
			return 0, 0, false
		}
	}
	return packed, unpacked, ok
}

// settleSize notes how large the disk must be, unless the request says so. Both have to agree on what is unpacked.
func (p *plan) settleSize(ctx context.Context, name, format string, f io.ReaderAt, size int64) error {
	n, err := measure(ctx, format, f, size)
	switch said := p.image.DiskBytes; {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return inventory.Errorf(inventory.Invalid, "%s ends too early, or is damaged: %v", name, err).
			WithHint("compare its checksum, or fetch it again")
	case n > said && said > 0, n > 0 && n < said && format != "raw" && format != "qcow2":
		return inventory.Errorf(inventory.Invalid, "%s has a disk of %d bytes, and %d were said", name, n, said).WithHint("leave --disk-bytes out: the file tells it")
	case n > said:
		p.image.DiskBytes = n
	}
	return nil
}
