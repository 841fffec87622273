package qcow2

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"

	"slipway.dev/slipway/inventory"
)

// Out takes the data of a disk. Offsets are those of the disk, not of the file.
type Out interface {
	// Buffer returns memory for Put; it belongs to the caller until then.
	Buffer() []byte
	// Put takes the first n bytes of a buffer as what is at an offset of the disk.
	Put(p []byte, n int, off int64) error
}

// Copy reads the whole file once, from its first byte, and passes on the data in it. It proves that the tables in the
// stream equal those that made the map: Unavailable means that the file changed on the server in between.
//
// An error of out ends it and comes back unchanged. A file that ends early, or does not unpack, is Invalid.
func (m *Map) Copy(file io.Reader, out Out) error {
	checked := &checkReader{r: file, regions: m.tables, sum: sha256.New()}
	// copyPacked peeks at a whole packed cluster, for which addTable allows two clusters and a little.
	r := bufio.NewReaderSize(checked, int(max(1<<20, 4*m.Header.Cluster())))
	unpack := unpacker{isZstd: m.Header.IsZstd, cluster: m.Header.Cluster()}
	defer unpack.close()
	pos := int64(0)
	skipTo := func(off int64) error {
		for pos < off {
			n, err := r.Discard(int(min(off-pos, 1<<30)))
			pos += int64(n)
			if err != nil {
				return short(err)
			}
		}
		return nil
	}
	for _, e := range m.Extents {
		if err := skipTo(e.File); err != nil {
			return err
		}
		if e.IsPacked {
			// It only peeks, so that pos stays: the length of a packed cluster is rounded up to sectors, and the next one may
			// begin inside it.
			if err := m.copyPacked(r, &unpack, e, out); err != nil {
				return err
			}
			continue
		}
		for done := int64(0); done < e.Bytes; {
			p := out.Buffer()
			n := int(min(int64(len(p)), e.Bytes-done))
			if _, err := io.ReadFull(r, p[:n]); err != nil {
				return short(err)
			}
			if err := out.Put(p, n, e.Guest+done); err != nil {
				return err
			}
			done += int64(n)
			pos += int64(n)
		}
	}
	// The rest of the file goes through the hash of the whole, and past checkReader.
	if _, err := io.Copy(io.Discard, r); err != nil {
		return err
	}
	return checked.finish()
}

func short(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return invalid("is cut short")
	}
	return err
}

func (m *Map) copyPacked(r *bufio.Reader, u *unpacker, e Extent, out Out) error {
	packed, err := r.Peek(int(e.Bytes))
	if err != nil && !errors.Is(err, io.EOF) { // the last one's length is rounded up over the end of the file
		return err
	}
	rest := min(m.Header.Cluster(), m.Header.Size-e.Guest)
	plain, err := u.unpack(packed)
	if err != nil {
		return inventory.Errorf(inventory.Invalid, "the qcow2 image has a cluster at byte %d that cannot be unpacked", e.File)
	}
	for done := int64(0); done < rest; {
		p := out.Buffer()
		n := copy(p, plain[done:rest])
		if err := out.Put(p, n, e.Guest+done); err != nil {
			return err
		}
		done += int64(n)
	}
	return nil
}

// unpacker unpacks one cluster at a time. Other bytes may follow the packed ones, because their length is rounded up
// to sectors.
type unpacker struct {
	isZstd  bool
	cluster int64
	plain   []byte
	deflate io.ReadCloser
	zstd    *zstd.Decoder
}

func (u *unpacker) unpack(packed []byte) ([]byte, error) {
	if u.plain == nil {
		u.plain = make([]byte, u.cluster)
	}
	var r io.Reader
	switch in := bytes.NewReader(packed); {
	// A qcow2 file packs each cluster by itself. One decoder is made and then reset for each.
	case u.isZstd && u.zstd == nil:
		d, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
		if err != nil {
			return nil, err
		}
		u.zstd, r = d, d
	case u.isZstd:
		if err := u.zstd.Reset(in); err != nil {
			return nil, err
		}
		r = u.zstd
	case u.deflate == nil:
		u.deflate = flate.NewReader(in)
		r = u.deflate
	default:
		if err := u.deflate.(flate.Resetter).Reset(in, nil); err != nil {
			return nil, err
		}
		r = u.deflate
	}
	_, err := io.ReadFull(r, u.plain)
	return u.plain, err
}

func (u *unpacker) close() {
	if u.zstd != nil {
		u.zstd.Close()
	}
}

// checkReader compares the regions that were fetched ahead with the stream. regions is sorted by offset, without
// overlaps.
type checkReader struct {
	r       io.Reader
	pos     int64 // of the next byte in the stream
	regions []region
	sum     hash.Hash // of the region that is passing
	bad     bool      // a region differs from what was read ahead
}

func (c *checkReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	for b := p[:n]; len(b) > 0; {
		if len(c.regions) == 0 {
			break
		}
		next := c.regions[0]
		if c.pos < next.off {
			skip := min(next.off-c.pos, int64(len(b)))
			b, c.pos = b[skip:], c.pos+skip
			continue
		}
		take := min(next.off+next.n-c.pos, int64(len(b)))
		c.sum.Write(b[:take])
		b, c.pos = b[take:], c.pos+take
		if c.pos == next.off+next.n {
			c.bad = c.bad || [sha256.Size]byte(c.sum.Sum(nil)) != next.sum
			c.sum.Reset()
			c.regions = c.regions[1:]
		}
	}
	return n, err
}

func (c *checkReader) finish() error {
	if c.bad || len(c.regions) > 0 {
		return inventory.Errorf(inventory.Unavailable, "the image changed on the server while it was fetched").WithHint("try again")
	}
	return nil
}
