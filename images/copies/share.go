package copies

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
)

const (
	// minShared is what an instance has to receive of a file within sharedFor. Share gives up one that is slower.
	minShared = 64 << 20
	sharedFor = time.Minute
)

// Share gives files of this instance to the others, and returns when the first of them has all. It also returns when there is no other, or
// when none can be reached or gets on. It notes that and logs it, and Alone finds it again. Its error is that of ctx.
func (c *Copies) Share(ctx context.Context, files []inventory.Artefact, note func(string, ...any)) error {
	names, err := c.cfg.Peers.Live(ctx)
	if err != nil {
		c.cfg.Log.Warn("files of an image not given to other instances: it is not known which live", "err", err)
		note("only this instance has the files: it is not known which others live")
		return ctx.Err()
	}
	if len(names) == 0 {
		return nil
	}
	note("waits until another instance has the files: %s", strings.Join(names, ", "))
	giving, cancel := context.WithCancel(ctx)
	defer cancel() // an instance that is not done goes on with the file that it fetches, and soon looks for the others by itself
	ends, lines := make(chan error, len(names)), make(chan string)
	for _, name := range names {
		go func() { ends <- c.give(giving, name, files, lines) }()
	}
	var problems []error
	for len(problems) < len(names) {
		select {
		case line := <-lines: // here, because note is for one goroutine
			note("%s", line)
		case err := <-ends:
			if err == nil {
				return nil
			}
			problems = append(problems, err)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	why := strings.ReplaceAll(errors.Join(problems...).Error(), "\n", "; ")
	c.cfg.Log.Warn("only this instance has the files of an image", "reason", why)
	note("only this instance has the files: %s", why)
	return nil
}

// give has one instance fetch the files, one after the other.
func (c *Copies) give(ctx context.Context, name string, files []inventory.Artefact, lines chan<- string) error {
	for _, f := range files {
		if err := c.giveOne(ctx, name, File{f.Digest, f.SizeBytes}, lines); err != nil {
			return fmt.Errorf("instance %s: %w", name, err)
		}
	}
	return nil
}

// giveOne asks an instance again and again to fetch a file, until it has it.
func (c *Copies) giveOne(ctx context.Context, name string, f File, lines chan<- string) error {
	answeredAt, movedAt, moved := c.cfg.Now(), c.cfg.Now(), int64(0)
	for {
		got, err := c.cfg.Peers.Bring(ctx, name, f)
		now := c.cfg.Now()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && got.IsWhole:
			return nil
		case err != nil && now.Sub(answeredAt) >= c.cfg.GoneFor:
			return err
		case err == nil:
			answeredAt = now
			if got.Bytes >= moved+minShared {
				movedAt, moved = now, got.Bytes
			}
			select {
			case lines <- fmt.Sprintf("instance %s has %s of %s", name, images.FormatBytes(got.Bytes), images.FormatBytes(f.SizeBytes)):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if now.Sub(movedAt) >= sharedFor+c.cfg.GoneFor {
			return inventory.Errorf(inventory.Unavailable, "it receives less than %s in %s", images.FormatBytes(minShared), sharedFor)
		}
		if err := sleep.For(ctx, c.cfg.GoneFor/40); err != nil {
			return err
		}
	}
}

// Alone returns the artefacts that no other instance has, although at least one other lives, with the reason. They would be gone if this
// instance were lost. It counts as lacking what an instance that does not answer may have.
func (c *Copies) Alone(ctx context.Context, of []inventory.Digest) (alone []inventory.Digest, why error) {
	names, err := c.cfg.Peers.Live(ctx)
	if err != nil {
		return nil, err // what another instance has is unknown, and an issue about the database is open
	}
	if len(names) == 0 || len(of) == 0 {
		return nil, nil
	}
	alone = of
	var problems []error
	for _, name := range names {
		lacking, err := c.cfg.Peers.Lacking(ctx, name, alone)
		if err != nil {
			problems = append(problems, fmt.Errorf("instance %s: %w", name, err))
			continue
		}
		alone = lacking
	}
	return alone, errors.Join(problems...)
}
