package write

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"

	"slipway.dev/slipway/agent/disk"
	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

// resume reports whether the disk still holds the image, as the result of an earlier attempt says. It checks the disk
// itself, because disks are swapped. The head of an image is written last, so that a disk with this image's head has
// all of it.
func (w *Writer) resume(ctx context.Context, t wire.WriteTask, img *image, root inventory.Disk, say func(string, wire.Progress)) (bool, error) {
	old := t.Resume
	if old == nil || !old.IsWritten || old.Digest == "" || old.Digest != img.file.Digest || !isSameDisk(old.Disk, root) {
		return false, nil
	}
	say("looking whether the image is on "+root.Name+" already", wire.Progress{})
	// One mebibyte over the network, against writing the whole image once more.
	head, err := img.head(ctx)
	if err != nil {
		return false, err
	}
	dev, err := w.cfg.Tree.Open(root.Name, disk.Read)
	if err != nil {
		return false, err
	}
	defer dev.Close()
	return hasHead(dev, head), nil
}

// isSameDisk compares what stays with a disk. Kernel names change between boots, so that they count only without
// serial number and WWN.
func isSameDisk(a, b inventory.Disk) bool {
	if a.Serial != "" || a.WWN != "" {
		return a.Serial == b.Serial && a.WWN == b.WWN && a.SizeBytes == b.SizeBytes
	}
	return a.Name == b.Name && a.SizeBytes == b.SizeBytes
}

// hasHead compares what identifies an image: the disk's GUID or signature, the boot code and the partitions. commit
// has fitted the table to the disk, so that not all bytes equal those of the image. An image without a table has no
// such mark, and is written again.
func hasHead(dev *disk.Device, head []byte) bool {
	image, err1 := disk.ReadTable(padded(head), dev.Bytes, dev.Sector)
	there, err2 := disk.ReadTable(dev, dev.Bytes, dev.Sector)
	if err1 != nil || err2 != nil || image == nil || there == nil || image.IsGPT != there.IsGPT || image.ID != there.ID || image.Signature != there.Signature {
		return false
	}
	// IsBackup: the table at the beginning cannot be read, so that the head is not that of the image.
	if image.ID == (disk.GUID{}) && image.Signature == 0 || there.IsBackup {
		return false
	}
	for _, p := range image.Partitions {
		// Logical partitions have numbers from 5 on. They are chained behind the head, where padded knows only zeroes.
		if p.Number < 5 && !slices.Contains(there.Partitions, p) {
			return false
		}
	}
	// The boot code ends at byte 440. The disk signature and the table follow, which are compared above.
	code := make([]byte, 440)
	_, err := dev.ReadAt(code, 0)
	return err == nil && bytes.Equal(code, head[:440])
}

// padded is a disk of which only the beginning is known.
type padded []byte

func (b padded) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	if off < int64(len(b)) {
		copy(p, b[off:])
	}
	return len(p), nil
}

var errHead = errors.New("the head is complete")

// head fetches the first bytes of the disk's image.
func (img *image) head(ctx context.Context) ([]byte, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	st, err := img.source.Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	if img.qcow2 == nil {
		r, end, err := unpacked(st, img.file.Format)
		if err != nil {
			return nil, err
		}
		defer end()
		head := make([]byte, headBytes)
		if _, err := fill(r, head); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		return head, nil
	}
	// Copy ends when this much of the head has come: holes in it bring nothing, so that counting to headBytes would read
	// the file to its end.
	out := &headOut{head: make([]byte, headBytes)}
	for _, e := range img.qcow2.Extents {
		n := e.Bytes
		if e.IsPacked {
			n = min(img.qcow2.Header.Cluster(), img.qcow2.Header.Size-e.Guest)
		}
		out.left += max(0, min(n, headBytes-e.Guest))
	}
	if err := img.qcow2.Copy(st, out); err != nil && !errors.Is(err, errHead) {
		return nil, err
	}
	return out.head, nil
}

// headOut keeps the head of an image and ends its copying when it is complete.
type headOut struct {
	head []byte
	left int64
	p    []byte
}

func (o *headOut) Buffer() []byte {
	if o.p == nil {
		o.p = make([]byte, 256<<10)
	}
	return o.p
}

func (o *headOut) Put(p []byte, n int, off int64) error {
	if off < headBytes {
		o.left -= int64(copy(o.head[off:], p[:n]))
	}
	if o.left <= 0 {
		return errHead
	}
	return nil
}
