package copies

import (
	"context"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
)

// Mend fetches the files that are missing or damaged here, and returns the faults that remain, with why. They come one after the other:
// machines that wait for other files go first. A new instance gets all files of all images in this way.
func (c *Copies) Mend(ctx context.Context, faults []images.Fault) (left []images.Fault) {
	for _, f := range faults {
		var a inventory.Artefact
		err := c.cfg.Store.Read(ctx, func(tx inventory.Tx) (err error) {
			a, err = tx.FindArtefact(f.Digest)
			return err
		})
		if err == nil {
			// A damaged file stays in place until the right one replaces it. Until then the listeners send it, as an instance alone would.
			x := c.start(File{a.Digest, a.SizeBytes}, nil)
			select {
			case <-x.done:
				err = x.err
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		if err == nil {
			c.cfg.Log.Info("file of an image fetched from another instance", "digest", f.Digest, "problem", f.Problem)
			continue
		}
		if ctx.Err() == nil && !inventory.IsKind(err, inventory.NotFound) {
			c.cfg.Log.Warn("file of an image not fetched from another instance", "digest", f.Digest, "problem", f.Problem, "err", err)
		}
		left = append(left, f)
	}
	return left
}
