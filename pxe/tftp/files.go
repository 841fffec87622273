package tftp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/admission"
)

// Scripts makes the scripts of machines whose loader has TFTP only. Its errors are *inventory.Error when the
// machine's console may show them.
type Scripts interface {
	// Script returns what the machine boots, in the words of the loader that asks.
	Script(ctx context.Context, s inventory.SessionID, c pxe.Client, base string) ([]byte, error)
	Artefact(ctx context.Context, s inventory.SessionID, source netip.Addr, d inventory.Digest, name string) (inventory.Digest, error)
	Document(ctx context.Context, r pxe.ConfigRequest) (pxe.ConfigDocument, error)
	// Initrds returns the RAM disks of a boot in order, and whether its configuration is one more.
	Initrds(ctx context.Context, s inventory.SessionID, source netip.Addr) (files []inventory.ImageArtefact, hasConfig bool, err error)
	Report(ctx context.Context, s inventory.SessionID, source netip.Addr, key string, r pxe.Report) error
}

// Artefacts are the files of images by digest.
type Artefacts interface {
	Open(d inventory.Digest) (*os.File, inventory.Artefact, error)
}

// ForLoaders are the files that GRUB and U-Boot ask for: their scripts, made for each machine, and the files of images.
type ForLoaders struct {
	Scripts   Scripts
	Artefacts Artefacts
	Admission *admission.Lines // of files of images
	Log       *slog.Logger
}

// later is the error of a file that may not be loaded yet. The machine is not answered, since firmware takes an ERROR
// for final; it asks again by itself and keeps its place.
type later struct {
	wait  time.Duration
	place int
	why   error // nil: the link is full
}

func (l *later) Error() string {
	if l.why != nil {
		return l.why.Error()
	}
	return fmt.Sprintf("too many machines load images now; this one is number %d in line, for about %s", l.place, l.wait)
}

// Open implements Files.
func (f *ForLoaders) Open(ctx context.Context, source netip.Addr, base, name string) (File, error) {
	ask, ok := pxe.ParseFile(name)
	if !ok {
		return nil, inventory.Errorf(inventory.NotFound, "nothing is called %q", inventory.Clean(name, 80))
	}
	switch ask.Kind {
	case pxe.FileGRUB:
		return Memory(pxe.GRUBScript(serverOf(base))), nil
	case pxe.FileAsk:
		c, err := pxe.ParseAsk(ask.Query)
		return f.script(ctx, c, err, pxe.StageGRUB, source, base)
	case pxe.FilePXELinux:
		c := pxe.Client{MAC: ask.MAC}
		return f.script(ctx, c, nil, pxe.StagePXELinux, source, base)
	case pxe.FileArtefact:
		file, err := f.artefact(ctx, ask.Session, source, ask.Digest, ask.Name)
		return f.admit(file, err, ask.Session, base)
	case pxe.FileArchive:
		return f.archive(ctx, ask.Session, source, base)
	case pxe.FileInitrds:
		file, err := f.initrds(ctx, ask.Session, source, base)
		return f.admit(file, err, ask.Session, base)
	}
	return f.report(ctx, ask, source)
}

// serverOf is our address in a base URL.
func serverOf(base string) netip.Addr {
	u, err := url.Parse(base)
	if err != nil {
		return netip.Addr{}
	}
	a, _ := netip.ParseAddr(u.Hostname())
	return a
}

// script is what the machine is to do. Whatever goes wrong, it gets a script that says so: a loader without one shows
// a prompt, and nobody sees why.
func (f *ForLoaders) script(ctx context.Context, c pxe.Client, err error, stage pxe.Stage, source netip.Addr, base string) (File, error) {
	c.Stage, c.Address, c.Server = stage, source, serverOf(base)
	var text []byte
	if err == nil {
		text, err = f.Scripts.Script(ctx, "", c, base)
	}
	if err != nil {
		f.Log.Info("boot request refused", "addr", source.String(), "mac", c.MAC, "op", string(stage), "err", err)
		text = pxe.Refusal(c, base, "", err)
	}
	return Memory(text), nil
}

func (f *ForLoaders) artefact(ctx context.Context, s inventory.SessionID, source netip.Addr, d inventory.Digest, name string) (File, error) {
	d, err := f.Scripts.Artefact(ctx, s, source, d, name)
	if err != nil {
		return nil, err
	}
	file, a, err := f.Artefacts.Open(d)
	if inventory.IsKind(err, inventory.Unavailable) { // it comes from another instance
		return nil, &later{why: err}
	}
	if err != nil {
		return nil, err
	}
	return stored{file, a.SizeBytes}, nil
}

type stored struct {
	*os.File
	size int64
}

// Size implements File.
func (s stored) Size() int64 { return s.size }

// admit lets a boot load a file of its image when the link has room; it leaves when the file is closed.
func (f *ForLoaders) admit(file File, err error, s inventory.SessionID, base string) (File, error) {
	if err != nil {
		return nil, err
	}
	leave, wait, place := f.Admission.Enter(serverOf(base), string(s), file.Size())
	if wait > 0 {
		return nil, errors.Join(&later{wait: wait, place: place}, file.Close())
	}
	return &admitted{file, sync.OnceFunc(leave)}, nil
}

type admitted struct {
	File
	leave func()
}

// Close implements File.
func (a *admitted) Close() error {
	a.leave()
	return a.File.Close()
}

func (f *ForLoaders) archive(ctx context.Context, s inventory.SessionID, source netip.Addr, base string) (File, error) {
	doc, err := f.Scripts.Document(ctx, pxe.ConfigRequest{Session: s, Source: source, Base: base, Name: pxe.ConfigArchive, Agent: "TFTP"})
	if err != nil {
		return nil, err
	}
	return Memory(doc.Data), nil
}

// initrds puts the RAM disks of a boot one behind the other, each from a multiple of four bytes on, as the kernel's
// format of RAM disks wants it (buffer-format.rst).
func (f *ForLoaders) initrds(ctx context.Context, s inventory.SessionID, source netip.Addr, base string) (File, error) {
	images, hasConfig, err := f.Scripts.Initrds(ctx, s, source)
	if err != nil {
		return nil, err
	}
	all := &joined{}
	for _, i := range images {
		part, err := f.artefact(ctx, s, source, i.Digest, i.Name)
		if err != nil {
			return nil, errors.Join(err, all.Close())
		}
		all.add(part)
	}
	if hasConfig {
		part, err := f.archive(ctx, s, source, base)
		if err != nil {
			return nil, errors.Join(err, all.Close())
		}
		all.add(part)
	}
	return all, nil
}

// joined is several files as one.
type joined struct {
	parts []File
	at    []int64 // where each begins
	size  int64
}

func (j *joined) add(f File) {
	j.parts, j.at = append(j.parts, f), append(j.at, j.size)
	j.size += (f.Size() + 3) &^ 3
}

// Size implements File.
func (j *joined) Size() int64 { return j.size }

// Close implements File.
func (j *joined) Close() (err error) {
	for _, p := range j.parts {
		err = errors.Join(err, p.Close())
	}
	return err
}

// ReadAt implements File.
func (j *joined) ReadAt(p []byte, off int64) (n int, err error) {
	for i, part := range j.parts {
		end := j.at[i] + (part.Size()+3)&^3
		for n < len(p) && off >= j.at[i] && off < end {
			in := off - j.at[i]
			if in >= part.Size() {
				p[n] = 0
				n, off = n+1, off+1
				continue
			}
			k, err := part.ReadAt(p[n:min(len(p), n+int(min(part.Size()-in, int64(len(p)))))], in)
			n, off = n+k, off+int64(k)
			if err != nil && !errors.Is(err, io.EOF) || k == 0 {
				return n, err
			}
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// report takes what a loader tells on its way: it has no other voice than the name of a file.
func (f *ForLoaders) report(ctx context.Context, ask pxe.File, source netip.Addr) (File, error) {
	q, err := url.ParseQuery(ask.Query)
	if err != nil {
		return nil, inventory.Errorf(inventory.Invalid, "the report cannot be read")
	}
	r := pxe.Report{Step: pxe.ReportStep(inventory.Clean(q.Get("step"), 40)), Detail: inventory.Clean(q.Get("detail"), 500)}
	if r.Step != pxe.ReportProgress && r.Step != pxe.ReportDisk { // what says that a system is up comes from a system
		return nil, inventory.Errorf(inventory.Invalid, "a boot loader cannot report %q", r.Step)
	}
	if err := f.Scripts.Report(ctx, ask.Session, source, "", r); err != nil {
		return nil, err
	}
	return Memory([]byte("\n")), nil
}
