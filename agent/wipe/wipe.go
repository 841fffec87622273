// Package wipe owns the ways to wipe a disk: signatures at known places, every block, or the disk's own erase. It
// makes a certificate for each disk, with what it did and what it read back. It never opens a disk that is to be
// kept, and never calls a disk clean that it has not read.
package wipe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"slipway.dev/slipway/agent/disk"
	"slipway.dev/slipway/agent/efi"
	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

// Methods of certificates.
const (
	methodKept       = "kept"
	methodNone       = "none"
	methodSignatures = "signatures"
	methodDiscard    = "discard"
	methodOverwrite  = "overwrite"
	methodSanitize   = "nvme-sanitize"
	methodFormat     = "nvme-format"
	methodATA        = "ata-secure-erase"
)

// Config holds what a Wiper needs: Disks and Tree; the rest has defaults.
type Config struct {
	Disks func(ctx context.Context) ([]inventory.Disk, error)
	Tree  disk.Tree
	EFI   efi.Vars
	// Parallel is how many disks are wiped at once; 32 when 0.
	Parallel int
	// StallFor is how long a disk may make no progress before the wiper gives it up; 10 minutes when 0. A drive tries
	// for long to read or write a bad place, and the kernel tries again.
	StallFor time.Duration
	Now      func() time.Time // time.Now when nil
	Seed     uint64           // of the places that are read back; 0 takes them by chance
	// Wiped receives each disk that now reads as zeroes from its first to its last block; it may be nil. A later
	// write of an image can then skip zeroes.
	Wiped func(inventory.Disk)
}

// Wiper wipes the disks of this machine.
type Wiper struct{ cfg Config }

// New returns a Wiper.
func New(cfg Config) *Wiper {
	cfg.Parallel = cmp.Or(cfg.Parallel, 32)
	cfg.StallFor = cmp.Or(cfg.StallFor, 10*time.Minute)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Wiper{cfg: cfg}
}

// work is the wiping of one disk. One goroutine has it, and another watches bytes and isErasing for a standstill.
type work struct {
	cfg   Config
	disk  inventory.Disk
	mode  inventory.CleanMode
	mates []inventory.Disk // kept disks of the same machine

	releasing *sync.Mutex // of all disks
	dev       *disk.Device
	cert      inventory.WipeCertificate

	total, bytes atomic.Int64
	isErasing    atomic.Bool // by the disk itself: it answers nothing meanwhile
	isZero       bool        // all over
	ids          []disk.GUID // of the partitions that were on it
}

// Handler does a wire.Wipe task. The report has a certificate for every disk, also with an error. A disk that is not
// clean is an error only when the task demands it (MustEmpty); else its certificate tells.
//
// A repetition after a crash begins again: wiping twice does no harm.
func (w *Wiper) Handler(ctx context.Context, t wire.Task, say func(string, wire.Progress)) (wire.Report, error) {
	if t.Wipe == nil || !slices.Contains(inventory.CleanModes(), t.Wipe.Mode) {
		return wire.Report{}, inventory.Errorf(inventory.Internal, "the task does not say how to wipe")
	}
	disks, err := w.cfg.Disks(ctx)
	if err != nil {
		return wire.Report{}, fmt.Errorf("list the disks: %w", err)
	}
	isKept := func(d inventory.Disk) bool {
		return slices.ContainsFunc(t.Wipe.Keep, func(h inventory.DiskHint) bool { return h.Matches(d) })
	}
	var all []*work
	var kept []inventory.Disk
	for _, d := range disks {
		if isKept(d) {
			kept = append(kept, d)
		}
		// A kept disk gets a certificate, too, so that the server sees which disks the hints matched.
		if d.SizeBytes > 0 || isKept(d) { // else a drive without a medium
			all = append(all, &work{cfg: w.cfg, disk: d, mode: t.Wipe.Mode})
		}
	}
	releasing := &sync.Mutex{}
	for _, o := range all {
		o.mates, o.releasing = kept, releasing
	}
	certs := w.run(ctx, all, isKept, say)
	report := wire.Report{Certificates: certs}
	var bad []string
	for _, c := range certs {
		if c.Error != "" {
			bad = append(bad, c.Disk.Name)
		}
	}
	if err := ctx.Err(); err != nil {
		return report, err
	}
	if len(bad) > 0 && t.Wipe.MustEmpty {
		return report, inventory.Errorf(inventory.Unavailable, "%d of %d disks are not clean: %s", len(bad), len(certs), strings.Join(bad, ", ")).
			WithHint("the certificate of each disk says why")
	}
	report.Detail = fmt.Sprintf("%d of %d disks are done", len(certs)-len(bad), len(certs))
	return report, nil
}

// run wipes the disks at the same time and returns their certificates in the order of the disks. It leaves a disk
// behind that hangs: nothing can end a system call that waits for it.
func (w *Wiper) run(ctx context.Context, all []*work, isKept func(inventory.Disk) bool, say func(string, wire.Progress)) []inventory.WipeCertificate {
	certs := make([]inventory.WipeCertificate, len(all))
	slots := make(chan struct{}, w.cfg.Parallel)
	stopSaying := w.say(all, say)
	defer stopSaying()
	var done sync.WaitGroup
	for i, o := range all {
		o.cert = inventory.WipeCertificate{Disk: o.disk, Mode: o.mode, StartedAt: w.cfg.Now().UTC().Format(time.RFC3339)}
		switch {
		case isKept(o.disk):
			o.cert.Method, o.cert.IsKept = methodKept, true
			certs[i] = o.cert
			continue
		case o.mode == inventory.CleanNone:
			o.cert.Method = methodNone
			certs[i] = o.cert
			continue
		}
		done.Go(func() {
			// Each disk has its goroutine; the slots bound the memory and the load of the controllers.
			slots <- struct{}{}
			certs[i] = o.watched(ctx)
			<-slots
		})
	}
	done.Wait()
	w.forgetEntries(all, certs)
	return certs
}

// say reports the sum of all disks every second, until the caller calls the returned function.
func (w *Wiper) say(all []*work, say func(string, wire.Progress)) func() {
	start := w.cfg.Now()
	stop, done := make(chan struct{}), make(chan struct{})
	tell := func() {
		var p wire.Progress
		for _, o := range all {
			p.Bytes += o.bytes.Load()
			p.Total += max(o.total.Load(), o.bytes.Load())
		}
		if d := w.cfg.Now().Sub(start).Seconds(); d > 0 {
			p.BytesPerSecond = float64(p.Bytes) / d
		}
		say(fmt.Sprintf("wiping %d disks", len(all)), p)
	}
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				tell()
			}
		}
	}()
	return func() {
		close(stop)
		<-done
		tell()
	}
}

// watched wipes one disk, and gives it up when nothing moves for StallFor. The goroutine of such a disk stays behind.
// Its certificate is made from a copy, so that both never write to the same one.
func (o *work) watched(ctx context.Context) inventory.WipeCertificate {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	start := o.cfg.Now()
	result := make(chan inventory.WipeCertificate, 1)
	// A copy: the goroutine below goes on to write into o.cert, maybe for hours after the disk is given up.
	given := o.cert
	go func() {
		err := o.wipe(ctx)
		cert := o.cert
		cert.Seconds = o.cfg.Now().Sub(start).Seconds()
		if err != nil {
			cert.Error = words(err)
		}
		result <- cert
	}()
	tick := time.NewTicker(max(o.cfg.StallFor/10, time.Millisecond))
	defer tick.Stop()
	last, since := int64(-1), time.Now()
	for {
		select {
		case cert := <-result:
			return cert
		case <-tick.C:
		}
		if n := o.bytes.Load(); n != last || o.isErasing.Load() {
			last, since = n, time.Now()
		}
		if time.Since(since) > o.cfg.StallFor {
			given.Seconds, given.Bytes = o.cfg.Now().Sub(start).Seconds(), last
			given.Error = fmt.Sprintf("the disk has not answered for %s, after %d bytes", inventory.Duration(o.cfg.StallFor), last)
			return given
		}
	}
}

func words(err error) string {
	if e, ok := errors.AsType[*inventory.Error](err); ok {
		return e.Msg
	}
	return inventory.Clean(err.Error(), 500)
}

// wipe does it, from opening the disk to reading back.
func (o *work) wipe(ctx context.Context) error {
	if err := o.release(); err != nil {
		return err
	}
	if o.disk.IsReadOnly || o.cfg.Tree.Queue(o.disk.Name).IsReadOnly {
		return inventory.Errorf(inventory.Invalid, "disk %s is read-only", o.disk.Name)
	}
	dev, err := o.cfg.Tree.Open(o.disk.Name, disk.Write)
	if err != nil {
		return err
	}
	defer dev.Close()
	o.dev = dev
	parts := o.partitions()
	switch o.mode {
	case inventory.CleanQuick:
		err = o.quick(ctx, parts)
	case inventory.CleanFull:
		err = o.full(ctx)
	default:
		err = o.secure(ctx)
	}
	if err != nil {
		return err
	}
	// Until here the kernel shows the old partitions. A later task would find them.
	if err := dev.Forget(); err != nil {
		return err
	}
	if o.isZero && o.cfg.Wiped != nil {
		o.cfg.Wiped(o.disk)
	}
	return nil
}

// release stops arrays and volumes on the disk. One disk at a time: an array is built on several, and two goroutines
// would stop it at once.
func (o *work) release() error {
	var kept []string
	for _, k := range o.mates {
		kept = append(kept, k.Name)
	}
	o.releasing.Lock()
	defer o.releasing.Unlock()
	return o.cfg.Tree.Release(o.disk.Name, kept...)
}

// partitions lists those of the tables at both ends, and those that the kernel knows.
func (o *work) partitions() []disk.Extent {
	all := o.cfg.Tree.Partitions(o.disk.Name)
	for _, sector := range []int{512, 4096} {
		// Both sizes are tried: an image for another sector size leaves a table that this kernel does not see.
		t, err := disk.ReadTable(o.dev, o.dev.Bytes, sector)
		if err != nil || t == nil {
			continue
		}
		all = append(all, t.Extents(o.disk.Name, o.dev.Bytes)...)
		for _, p := range t.Partitions {
			o.ids = append(o.ids, p.ID)
		}
	}
	slices.SortFunc(all, func(a, b disk.Extent) int { return int(min(max(a.Off-b.Off, -1), 1)) })
	return slices.CompactFunc(all, func(a, b disk.Extent) bool { return a.Off == b.Off && a.Bytes == b.Bytes })
}

// forgetEntries removes the firmware's boot entries that lead to disks which are clean now. A failure does not make a
// disk unclean: the firmware finds out by itself, only later.
func (w *Wiper) forgetEntries(all []*work, certs []inventory.WipeCertificate) {
	if !w.cfg.EFI.Present() {
		return
	}
	var gone []disk.GUID
	for i, o := range all {
		if !certs[i].IsKept && certs[i].Error == "" && certs[i].Method != methodNone {
			gone = append(gone, o.ids...)
		}
	}
	// Partitions of an MBR have the zero GUID, which no entry may match.
	_, _ = w.cfg.EFI.Forget(func(id disk.GUID) bool { return id != disk.GUID{} && slices.Contains(gone, id) })
}
