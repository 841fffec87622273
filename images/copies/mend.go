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
		if err != nil && ctx.Err() == nil {
			f.Hint = hintOf(f, err)
		}
		left = append(left, f)
	}
	return left
}

// hintOf says what an admin can do about a file that does not come. Another instance may have it that does not run, or this one has no room
// for it: then an import would not help.
func hintOf(f images.Fault, err error) string {
	if inventory.IsKind(err, inventory.NotFound) {
		return "start the instance that has it, if there is one; else " + f.Hint
	}
	hint := "it is fetched from another instance again and again, and the last time: " + err.Error()
	if h := inventory.HintOf(err); h != "" {
		hint += "; " + h
	}
	return hint
}
