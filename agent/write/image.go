package write

import (
	"context"
	"errors"
	"io"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/agent/write/fetch"
	"slipway.dev/slipway/agent/write/qcow2"
	"slipway.dev/slipway/inventory"
)

// image is a file that is about to be written, with what is known of it before the first byte.
type image struct {
	file   wire.ImageFile
	source *fetch.Source
	qcow2  *qcow2.Map
	chain  [][]byte // documents of a registry that name the file
}

// open finds out how large the disk must be, as far as that can be known before writing. An image that does not fit
// must fail while the old system still exists.
func (w *Writer) open(ctx context.Context, file wire.ImageFile) (*image, error) {
	img := &image{file: file, source: &fetch.Source{
		Client: w.cfg.Client, URL: file.URL, Elsewhere: file.Elsewhere, Name: "the image", Wait: w.cfg.Wait, Tries: w.cfg.Tries,
	}}
	if isOCI(file.URL) {
		// From here the task means one layer by its digest, even if somebody moves the tag while the disk is written.
		if err := img.resolve(ctx, w.cfg.Client); err != nil {
			return nil, err
		}
	}
	if img.file.Format == "qcow2" {
		return img, img.readMap(ctx)
	}
	// A raw file is the disk, byte for byte. How large a compressed one becomes shows only at its end.
	if img.file.Format == "raw" && img.file.SizeBytes > 0 {
		img.file.DiskBytes = img.file.SizeBytes
	}
	return img, nil
}

func (img *image) readMap(ctx context.Context) error {
	// The data pass once, from the first byte to the last. The tables say where they belong, so that they come first, by
	// byte ranges.
	b, err := img.source.Range(ctx, 0, qcow2.HeaderBytes)
	if err != nil {
		return err
	}
	header, err := qcow2.ParseHeader(b)
	if err != nil {
		return err
	}
	// The tables of qcow2 point anywhere in the file. Their bounds need its size.
	size := img.file.SizeBytes
	if size == 0 {
		st, err := img.source.Stream(ctx)
		if err != nil {
			return err
		}
		size = st.Size()
		st.Close()
	}
	img.qcow2, err = qcow2.ReadMap(header, size, func(off, n int64) ([]byte, error) { return img.source.Range(ctx, off, n) })
	if err != nil {
		return err
	}
	// The server measured the disk at the import. A larger header belongs to another file.
	if said := img.file.DiskBytes; said > 0 && header.Size > said {
		return tooBig(header.Size, said)
	}
	img.file.DiskBytes = header.Size
	return nil
}

func tooBig(is, said int64) error {
	return inventory.Errorf(inventory.Invalid, "the image has a disk of at least %d bytes, and %d were announced", is, said).
		WithHint("add the image again, so that its size is measured")
}

// copy fetches the file and passes its data to the sink. After a nil error the file was whole and its digest right.
// The sink has then taken everything, but it has written only what finish confirms.
func (img *image) copy(ctx context.Context, to *sink, read func(*stream)) error {
	ctx, stop := context.WithCancel(ctx)
	st, err := img.source.Stream(ctx)
	if err != nil {
		stop()
		return err
	}
	s := newStream(ctx, st)
	defer func() {
		stop()
		<-s.done
		st.Close()
	}()
	read(s)
	// A file of another length cannot be the image. The task fails now, and not after gigabytes.
	if want, is := img.file.SizeBytes, st.Size(); want > 0 && is >= 0 && want != is {
		return faulty("the image has %d bytes on the server, and %d were announced: it is truncated or another", is, want).
			WithHint("add the image again")
	}
	copyErr := img.unpack(s, to)
	if err := context.Cause(to.ctx); err != nil {
		return err // the disk failed; that the stream did as well is no news
	}
	var known *inventory.Error
	// The source failed. A digest of what came until then would blame the image for it.
	if errors.As(copyErr, &known) && known.Kind == inventory.Unavailable {
		return copyErr
	}
	// Also when the data makes no sense the rest is read: a wrong digest is the better explanation.
	if _, err := io.Copy(io.Discard, s); err != nil {
		return err
	}
	return img.judge(s, copyErr)
}

// judge says what is wrong with a file that was read to its end. Length and digest come before an error of the
// unpacker, because a damaged file also fails to unpack.
func (img *image) judge(s *stream, copyErr error) error {
	n, digest := s.bytes.Load(), s.digest()
	switch {
	case img.file.SizeBytes > 0 && n < img.file.SizeBytes:
		return faulty("the image is truncated: it has %d of %d bytes", n, img.file.SizeBytes).WithHint("add the image again")
	case img.file.SizeBytes > 0 && n > img.file.SizeBytes:
		return inventory.Errorf(inventory.Invalid, "the image has %d bytes, and %d were announced", n, img.file.SizeBytes).WithHint("add the image again")
	case img.file.Digest != "" && digest != img.file.Digest:
		return faulty("the checksum of the image is wrong: it is %s and should be %s", digest, inventory.Clean(img.file.Digest, 80)).
			WithHint("the file is damaged, on the server or on the way: add the image again, or look at the network")
	case copyErr != nil:
		if _, ok := errors.AsType[*inventory.Error](copyErr); ok {
			return copyErr
		}
		return inventory.Errorf(inventory.Invalid, "the image is not a good %s file: %s", img.file.Format, inventory.Clean(copyErr.Error(), 200)).
			WithHint("look at its format, and add it again")
	}
	return nil
}

func (img *image) unpack(s *stream, to *sink) error {
	if img.qcow2 != nil {
		// A hole has no bytes in the file, so that nothing has to be fetched for it.
		for _, h := range img.qcow2.Holes {
			if err := to.Zero(h.Off, h.Bytes); err != nil {
				return err
			}
		}
		return img.qcow2.Copy(s, to)
	}
	r, stop, err := unpacked(s, img.file.Format)
	if err != nil {
		return err
	}
	defer stop()
	for off := int64(0); ; {
		p := to.Buffer()
		n, err := fill(r, p)
		// Every buffer goes back, also on an error: the writers and this loop share chunkN of them.
		if n == 0 {
			to.free <- p
		} else if said := img.file.DiskBytes; said > 0 && off+int64(n) > said {
			to.free <- p
			return tooBig(off+int64(n), said)
		} else if err := to.Put(p, n, off); err != nil {
			return err
		}
		off += int64(n)
		switch {
		case errors.Is(err, io.EOF):
			if said := img.file.DiskBytes; said > 0 && off < said {
				return inventory.Errorf(inventory.Invalid, "the image has a disk of %d bytes, and %d were announced", off, said).WithHint("add the image again, so that its size is measured")
			}
			return nil
		case err != nil:
			return err
		}
	}
}

// fill reads until a buffer is full. Unlike io.ReadFull it returns io.EOF for a short last piece, and so
// distinguishes the end from data that are truncated (io.ErrUnexpectedEOF of an unpacker).
func fill(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var got int
		got, err = r.Read(p[n:])
		n += got
	}
	return n, err
}

// errFaulty marks an error that the image causes: it would fail on every other machine, too. The report then blames
// the image, and not the host.
var errFaulty = errors.New("the image is at fault")

// faulty makes an error that the image causes.
func faulty(format string, args ...any) *inventory.Error {
	e := inventory.Errorf(inventory.Invalid, format, args...)
	e.Err = errFaulty
	return e
}
