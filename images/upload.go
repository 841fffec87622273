package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"slipway.dev/slipway/inventory"
)

// uploadPrefix begins the Source of an artefact that a client sent.
const uploadPrefix = "upload:"

// Take stores what a client sends and registers it as an artefact, so that an import can name it by its digest. size
// is the announced number of bytes, -1 when the client announces none. Prune removes the artefact after an hour
// without an image. An upload that breaks leaves nothing: HTTP clients cannot resume it.
func (c *Cache) Take(ctx context.Context, in io.Reader, name string, size int64) (a inventory.Artefact, err error) {
	if name == "" || inventory.Clean(name, 128) != name {
		return a, inventory.Errorf(inventory.Invalid, "%q is not the name of a file", inventory.Clean(name, 128)).WithHint("at most 128 bytes without control characters")
	}
	if size > c.cfg.MaxBytes {
		return a, c.tooLarge("the file")
	}
	if err := c.CheckSpace(max(size, 0)); err != nil {
		return a, err
	}
	temp, d, n, err := c.takeTemp(ctx, in) // hashed while it arrives: the digest is its name
	if err != nil {
		return a, err
	}
	if n == 0 {
		return a, errors.Join(inventory.Errorf(inventory.Invalid, "the file is empty"), os.Remove(temp))
	}
	if err := c.place(ctx, temp, d, n); err != nil {
		return a, errors.Join(err, ignoreMissing(os.Remove(temp)))
	}
	defer c.unpin(d) // until the row is stored, prune must not take the file
	a = inventory.Artefact{Digest: d, SizeBytes: n, Source: uploadPrefix + name, CreatedAt: c.cfg.Now().UTC()}
	if c.cfg.Share != nil {
		if err := c.cfg.Share(ctx, []inventory.Artefact{a}, func(string, ...any) {}); err != nil {
			return a, stopped(ctx)
		}
	}
	return a, c.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		// The same bytes may be here already. The first source and time stay, because images refer to the row by its digest.
		old, err := tx.FindArtefact(d)
		if err == nil && old.SizeBytes == n {
			a = old
			return nil
		}
		if err != nil && !isNotFound(err) {
			return err
		}
		return tx.SaveArtefact(a)
	})
}

// takeTemp writes what arrives into partial/.
func (c *Cache) takeTemp(ctx context.Context, in io.Reader) (temp string, d inventory.Digest, n int64, err error) {
	out, err := os.CreateTemp(c.PartialDir(), tempPrefix+"*")
	if err != nil {
		return "", "", 0, DiskError("store the file", err)
	}
	defer func() {
		out.Close()
		if err != nil {
			err = errors.Join(err, ignoreMissing(os.Remove(out.Name())))
		}
	}()
	w := &diskWriter{w: out}
	d, n, err = hashAll(ctx, io.TeeReader(io.LimitReader(in, c.cfg.MaxBytes+1), w), func(int64) {})
	switch {
	case w.err != nil:
		return "", "", 0, DiskError("store the file", w.err)
	case err != nil:
		return "", "", 0, &inventory.Error{
			Kind: inventory.Unavailable, Err: err, Msg: fmt.Sprintf("the file was cut off after %s", FormatBytes(n)), Hint: "send it again",
		}
	case n > c.cfg.MaxBytes:
		return "", "", 0, c.tooLarge("the file")
	}
	if err := out.Sync(); err != nil {
		return "", "", 0, DiskError("store the file", err)
	}
	return out.Name(), d, n, nil
}
