// Package write owns the installation of a disk image: from a server onto a disk. It chooses the disk, and fetches,
// unpacks, checks and writes the image in one pass. Then it places the configuration and sets the boot order. It
// never writes to a disk that is to be kept, and leaves nothing behind that would start from half an image.
//
// The order on disk ensures that. Both ends are cleared first, then the image follows without its first mebibyte. Its
// digest is checked, and the first sectors come last. A machine that loses power in between finds an empty disk, and
// boots from the network again.
//
// Start reading at Writer.do, then sink.commit.
package write

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/agent/disk"
	"slipway.dev/slipway/agent/efi"
	"slipway.dev/slipway/agent/seed"
	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/hardware/rootdisk"
	"slipway.dev/slipway/inventory"
)

// Config holds what a Writer needs: Disks and Tree; the rest has defaults.
type Config struct {
	Disks      func(ctx context.Context) ([]inventory.Disk, error)
	Client     *http.Client // nil for http.DefaultClient
	Tree       disk.Tree
	EFI        efi.Vars
	LoadModule func(name string) error // may be nil
	MountDir   string                  // /run/slipway when empty
	// IsZeroed reports whether this agent has wiped a disk to zeroes since it started; it may be nil. Only a disk
	// that this process has read as zero counts, and no claim from outside.
	IsZeroed func(inventory.Disk) bool

	Now   func() time.Time                                 // time.Now when nil
	Wait  func(ctx context.Context, d time.Duration) error // between tries to fetch; may be nil
	Tries int                                              // to fetch, without a byte in between; 0 for the usual number
}

// Writer writes images to disks. It has one task at a time.
type Writer struct{ cfg Config }

// New returns a Writer.
func New(cfg Config) *Writer {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Writer{cfg: cfg}
}

// sayEvery is how often the writer reports progress.
const sayEvery = time.Second

// Handler does a wire.Write task. The report says how far it came, also with an error. The server sends it back in
// Resume, so that a repetition does not write again what is there. IsLasting marks an error that another try cannot
// change. Blame names the image when every other machine would fail with it, too.
func (w *Writer) Handler(ctx context.Context, t wire.Task, say func(string, wire.Progress)) (wire.Report, error) {
	if t.Write == nil {
		return wire.Report{}, inventory.Errorf(inventory.Internal, "the task has nothing to write")
	}
	r := wire.WriteResult{}
	err := w.do(ctx, *t.Write, &r, say)
	report := wire.Report{Write: &r}
	if err != nil {
		report.IsLasting = isLasting(err)
		if errors.Is(err, errFaulty) {
			report.Blame = wire.BlameImage
		}
		return report, err
	}
	report.Detail = fmt.Sprintf("the image is on %s", r.Disk.Name)
	return report, nil
}

// isLasting reports whether an error stays the same at another try: a wrong image, a disk that is too small.
func isLasting(err error) bool {
	e, ok := asError(err)
	return ok && (e.Kind == inventory.Invalid || e.Kind == inventory.Conflict)
}

func (w *Writer) do(ctx context.Context, t wire.WriteTask, r *wire.WriteResult, say func(string, wire.Progress)) error {
	// open and choose write nothing: a task that cannot succeed leaves the old system on its disk.
	img, err := w.open(ctx, t.Image)
	if err != nil {
		return err
	}
	root, kept, err := w.choose(ctx, t, img.file.DiskBytes)
	if err != nil {
		return err
	}
	r.Disk = root
	if isSame, err := w.resume(ctx, t, img, root, say); err != nil {
		return err
	} else if isSame {
		*r = *t.Resume
		r.Disk = root
	} else if err := w.image(ctx, img, root, kept, r, say); err != nil {
		return err
	}
	if !r.IsSeeded {
		if t.Seed.Kind != "" {
			say("writing the configuration", wire.Progress{})
		}
		where, err := seed.Place(ctx, w.seedConfig(), root.Name, t.Seed)
		if err != nil {
			return err
		}
		// From here a repetition finds the whole system and its configuration, and only sets the boot entry again.
		r.IsSeeded = true
		if where != "" {
			say("the configuration is in "+where, wire.Progress{})
		}
	}
	if len(t.KernelArgs) > 0 {
		files, err := seed.KernelArgs(ctx, w.seedConfig(), root.Name, t.KernelArgs)
		if err != nil {
			return err
		}
		say("kernel arguments added to "+strings.Join(files, ", "), wire.Progress{})
	}
	r.BootEntry, err = w.bootEntry(ctx, t, root, say)
	return err
}

func (w *Writer) seedConfig() seed.Config {
	return seed.Config{Tree: w.cfg.Tree, Client: w.cfg.Client, LoadModule: w.cfg.LoadModule, Wait: w.cfg.Wait, MountDir: w.cfg.MountDir}
}

// choose finds the disk to write, and names those to keep. A disk to keep is never chosen, whatever the root disk's
// hint says.
func (w *Writer) choose(ctx context.Context, t wire.WriteTask, minBytes int64) (root inventory.Disk, kept []string, err error) {
	all, err := w.cfg.Disks(ctx)
	if err != nil {
		return root, nil, fmt.Errorf("list the disks: %w", err)
	}
	var free []inventory.Disk
	for _, d := range all {
		if slices.ContainsFunc(t.Keep, func(h inventory.DiskHint) bool { return h.Matches(d) }) {
			kept = append(kept, d.Name)
			continue
		}
		free = append(free, d)
	}
	if len(free) == 0 && len(kept) > 0 {
		return root, nil, inventory.Errorf(inventory.Invalid, "all %d disks are to be kept: none is left to write to", len(kept)).
			WithHint("look at the list of disks to keep")
	}
	root, err = rootdisk.Choose(free, t.Root, minBytes)
	return root, kept, err
}

// image writes the image and fills in the result.
func (w *Writer) image(ctx context.Context, img *image, root inventory.Disk, kept []string, r *wire.WriteResult, say func(string, wire.Progress)) error {
	start := w.cfg.Now()
	// Arrays and volumes of an old system keep its disk open. Release stops them, but none that also uses a disk to
	// keep.
	if err := w.cfg.Tree.Release(root.Name, kept...); err != nil {
		return err
	}
	dev, err := w.cfg.Tree.Open(root.Name, disk.Write)
	if err != nil {
		return err
	}
	defer dev.Close()
	if need := img.file.DiskBytes; need > dev.Bytes {
		return inventory.Errorf(inventory.Invalid, "disk %s is too small: it has %d bytes, and the image needs %d", root.Name, dev.Bytes, need).
			WithHint("use a larger disk or a smaller image")
	}
	isThere := func() bool { return !dev.IsBlock() || w.cfg.Tree.Has(root.Name) }
	isZeroed := w.cfg.IsZeroed != nil && w.cfg.IsZeroed(root)
	to, err := newSink(ctx, dev, isZeroed, w.cfg.Tree.Queue(root.Name), isThere)
	if err != nil {
		return err
	}
	from := &progress{say: say, total: img.file.SizeBytes, start: start, now: w.cfg.Now, detail: "writing the image to " + root.Name}
	err = img.copy(to.ctx, to, from.follow)
	from.end()
	r.ReadBytes = from.bytes()
	if err == nil {
		say("waiting for "+root.Name+" to keep what was written", wire.Progress{Bytes: r.ReadBytes, Total: r.ReadBytes})
		// The image is whole and its digest is right. Its head is still in memory.
		err = to.finish()
	} else {
		to.abandon()
	}
	if err == nil {
		err = to.commit()
	}
	r.WrittenBytes, r.SkippedBytes = to.written.Load(), to.skipped.Load()
	r.Seconds = w.cfg.Now().Sub(start).Seconds()
	if err != nil {
		return err
	}
	// Only here may a server believe that the disk holds the image.
	r.IsWritten, r.Digest, r.Chain = true, img.file.Digest, img.chain
	return dev.Forget()
}

// progress reports how far a stream is, until it ends.
type progress struct {
	say    func(string, wire.Progress)
	detail string
	total  int64
	start  time.Time
	now    func() time.Time

	stream *stream
	stop   chan struct{}
	done   chan struct{}
}

func (p *progress) follow(s *stream) {
	p.stream, p.stop, p.done = s, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(p.done)
		tick := time.NewTicker(sayEvery)
		defer tick.Stop()
		for {
			select {
			case <-p.stop:
				return
			case <-tick.C:
				p.tell()
			}
		}
	}()
}

func (p *progress) tell() {
	n := p.bytes()
	out := wire.Progress{Bytes: n, Total: p.total}
	if d := p.now().Sub(p.start).Seconds(); d > 0 {
		out.BytesPerSecond = float64(n) / d
	}
	p.say(p.detail, out)
}

func (p *progress) bytes() int64 {
	if p.stream == nil {
		return 0
	}
	return p.stream.bytes.Load()
}

func (p *progress) end() {
	if p.stream == nil {
		return
	}
	close(p.stop)
	<-p.done
	p.tell()
}
