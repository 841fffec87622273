package images

import (
	"cmp"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/maruel/natural"

	"slipway.dev/slipway/inventory"
)

// Import brings the files of an image into the artefact folder, checks them while they stream, and registers
// artefacts and image in one transaction. Until then the store knows nothing of them, and a failed import changes no
// image. An import that fails or is stopped keeps what has arrived, and the next import of the same addresses resumes
// there.
//
// Importing the same again changes nothing. Other content under the same name updates the image. Import calls
// progress often, from this goroutine; it may be nil.
//
// The kinds of error are:
//
//   - Invalid: the request, a checksum, a signature or the content of a file is wrong.
//   - NotFound: no source has the file.
//   - Forbidden: the egress policy or the caller's rights forbid a source.
//   - Conflict: a local file changed while it was read, or an upload is gone.
//   - Unavailable: the network or the disk failed, or somebody stopped the import.
func (c *Cache) Import(ctx context.Context, r ImportRequest, progress func(Progress)) (inventory.Image, error) {
	img, err := c.bringImage(ctx, r, progress)
	return img, told(err, r.IsAdmin)
}

func (c *Cache) bringImage(ctx context.Context, r ImportRequest, progress func(Progress)) (inventory.Image, error) {
	// The whole request is checked before the first byte is fetched.
	p, err := c.cfg.Catalogue.plan(r)
	if err != nil {
		return inventory.Image{}, err
	}
	t := newTracker(c.cfg.Now, progress, len(p.files))
	t.step(StepResolve)
	if err := c.resolve(ctx, &p, t); err != nil {
		return inventory.Image{}, err
	}
	var artefacts []inventory.Artefact
	for i, f := range p.files {
		a, err := c.obtain(ctx, p.hint, f, i+1, t)
		if err != nil {
			return inventory.Image{}, err
		}
		// The pins last until the image is registered or the import has failed: deferred in the loop, they all run at
		// the end.
		defer c.unpin(a.Digest)
		if err := f.checkSHA512(ctx, c, a.Digest, t); err != nil {
			return inventory.Image{}, err
		}
		if err := c.checkFile(ctx, &p, f, a.Digest, t); err != nil {
			return inventory.Image{}, err
		}
		artefacts = append(artefacts, a)
		p.image.Files = append(p.image.Files, inventory.ImageArtefact{Role: f.role, Name: f.name, Digest: a.Digest})
	}
	// The content is checked once all is here: a file with the right sum may still be no kernel.
	if err := c.fit(ctx, &p); err != nil {
		return inventory.Image{}, err
	}
	if c.cfg.Share != nil {
		t.step(StepShare)
		if err := c.cfg.Share(ctx, artefacts, t.note); err != nil {
			return inventory.Image{}, stopped(ctx)
		}
	}
	t.step(StepStore)
	if line := p.chainLine(c); line != "" {
		t.note("%s", line)
	}
	return c.register(ctx, p.image, artefacts)
}

// resolve reads the checksum list, if any file needs it or the request names it, and with it fills in what files should be.
func (c *Cache) resolve(ctx context.Context, p *plan, t *tracker) error {
	var sums Sums
	if p.sums != "" && (p.isSumsAsked || slices.ContainsFunc(p.files, func(f planned) bool { return f.listed != isNoneOfList && f.want == "" })) {
		text, err := c.fetchText(ctx, p.sums, maxSumsBytes, t.note)
		var e *inventory.Error
		switch {
		case p.isSumsOptional && errors.As(err, &e) && e.Kind == inventory.NotFound:
		case err != nil:
			return explain(err, "checksum list: ")
		default:
			if text, err = c.signedList(ctx, p, text, t); err != nil {
				return err
			}
			if sums, err = ParseSums(text); err != nil {
				return explain(err, redactIfURL(p.sums)+": ")
			}
		}
	}
	for i := range p.files {
		if err := p.files[i].nameUploaded(ctx, c.cfg.Store); err != nil {
			return err
		}
	}
	// A sum without a name is about the file next to it. With several files nobody knows which.
	if sum, ok := sums.Alone(); ok {
		if len(p.files) != 1 {
			return inventory.Errorf(inventory.Invalid, "%s: the checksum list has one sum and no file name, and the image has %d files", redactIfURL(p.sums), len(p.files)).
				WithHint("name a list with the names of the files, or give each sum with --sha256 FILE=HEX")
		}
		sums.byPath = map[string]Sum{p.files[0].sources[0].path: sum}
	}
	for i := range p.files {
		if err := resolveFile(&p.files[i], sums, p.isSumsAsked); err != nil {
			return err
		}
	}
	return nil
}

// nameUploaded finds what an uploaded file was called, which is the name that a checksum list has.
func (f *planned) nameUploaded(ctx context.Context, store inventory.Store) error {
	if f.listed == isNoneOfList || !f.sources[0].isHere {
		return nil
	}
	return store.Read(ctx, func(tx inventory.Tx) error {
		a, err := tx.FindArtefact(f.want)
		if name, ok := strings.CutPrefix(a.Source, uploadPrefix); err == nil && ok {
			f.sources[0].path = name
		}
		if isNotFound(err) {
			return nil // obtain says so
		}
		return err
	})
}

// resolveFile replaces patterns in the sources of a file and finds its sum.
func resolveFile(f *planned, sums Sums, isAsked bool) error {
	var sources []source
	for _, s := range f.sources {
		switch {
		case !strings.Contains(s.path, "*"):
			sources = append(sources, s)
		case s.isPath:
			found, err := filepath.Glob(s.at)
			if err != nil {
				return inventory.Errorf(inventory.Invalid, "%q is not a pattern", s.at)
			}
			if name := newest(found); name != "" {
				sources = append(sources, source{at: name, path: filepath.Base(name), isPath: true})
			}
		default:
			if name, ok := sums.Match(s.path); ok {
				sources = append(sources, source{at: strings.TrimSuffix(s.at, s.path) + name, path: name})
			}
		}
	}
	if len(sources) == 0 {
		return inventory.Errorf(inventory.NotFound, "nothing is named like %s", f.sources[0].path).
			WithHint("give the file itself, by address or path")
	}
	f.sources = sources
	if f.listed == isNoneOfList || sums.byPath == nil {
		return nil
	}
	for _, s := range sources {
		sum, ok, err := sums.Find(s.path)
		if err != nil {
			return err
		}
		if ok {
			return f.take(sum)
		}
	}
	if f.listed == mustBeListed && (isAsked || f.want == "") {
		return inventory.Errorf(inventory.Invalid, "the checksum list does not name %s", sources[0].path).
			WithHint("give a list that has it, or the sum of the file itself with --sha256 in place of the list")
	}
	return nil
}

// take notes what a list says of a file. It must agree with what is known already.
func (f *planned) take(sum Sum) error {
	if f.want != "" && sum.SHA256 != "" && f.want != sum.SHA256 {
		return inventory.Errorf(inventory.Invalid, "%s has two sums: the checksum list says %s, the request %s", f.name, sum.SHA256.Hex(), f.want.Hex()).
			WithHint("nothing was imported; the list and the file are of different versions")
	}
	f.want, f.sha512 = cmp.Or(sum.SHA256, f.want), sum.SHA512
	return nil
}

// checkSHA512 reads a file again and compares the sum that only a list of SHA-512 sums has.
func (f planned) checkSHA512(ctx context.Context, c *Cache, d inventory.Digest, t *tracker) error {
	if f.sha512 == "" {
		return nil
	}
	file, a, err := c.Open(d)
	if err != nil {
		return err
	}
	defer file.Close()
	t.step(StepCheck)
	t.at(0, a.SizeBytes, "")
	h := sha512.New()
	if _, _, err := hashAll(ctx, io.TeeReader(file, h), t.copied); err != nil {
		if ctx.Err() != nil {
			return stopped(ctx)
		}
		return DiskError("read the file", err)
	}
	// The file is already in the folder under its SHA-256. Nothing registers it, so Prune removes it after an hour.
	if got := hex.EncodeToString(h.Sum(nil)); got != f.sha512 {
		return wrongHex(redactIfURL(f.sources[0].at), f.sha512, got)
	}
	return nil
}

// newest returns the name with the highest numbers, "" for none.
func newest(names []string) string {
	best := ""
	for _, n := range names {
		if best == "" || natural.Less(best, n) {
			best = n
		}
	}
	return best
}

// obtain brings one file into the folder, from the first of its sources that has it, and pins it.
func (c *Cache) obtain(ctx context.Context, hint string, f planned, n int, t *tracker) (inventory.Artefact, error) {
	if f.want != "" {
		if a, ok := c.haveAlready(ctx, f, n, t); ok {
			return a, nil
		}
	}
	var tried []string
	for _, s := range f.sources {
		t.file(n, f.name, redactIfURL(s.at))
		temp, d, size, err := c.bring(ctx, s, f.want, t)
		// Only "does not exist" leads to the next source. A broken or forbidden server ends the import, so that a
		// mirror with an older file does not step in without notice.
		if isNotFound(err) {
			tried = append(tried, redactIfURL(s.at))
			continue
		}
		if err != nil {
			return inventory.Artefact{}, err
		}
		if err := c.place(ctx, temp, d, size); err != nil {
			return inventory.Artefact{}, errors.Join(err, ignoreMissing(os.Remove(temp)))
		}
		return inventory.Artefact{Digest: d, SizeBytes: size, Source: redactIfURL(s.at), CreatedAt: c.cfg.Now().UTC()}, nil
	}
	err := inventory.Errorf(inventory.NotFound, "there is no %s at %s", f.name, strings.Join(tried, ", nor at "))
	hint = cmp.Or(hint, "check the release and the place")
	return inventory.Artefact{}, err.WithHint("%s", hint)
}

// haveAlready finds a file by its known sum in the folder. It hashes the file again, so that importing repairs
// damage. The file is pinned when it returns true.
func (c *Cache) haveAlready(ctx context.Context, f planned, n int, t *tracker) (inventory.Artefact, bool) {
	file, a, err := c.Open(f.want)
	if err != nil {
		return a, false
	}
	defer file.Close()
	t.file(n, f.name, redactIfURL(f.sources[0].at))
	t.step(StepCheck)
	t.at(0, a.SizeBytes, "")
	// The pin comes before the long read, so that Prune cannot take the file while it is hashed.
	c.pin(f.want)
	got, _, err := hashAll(ctx, file, t.copied)
	if err != nil || got != f.want {
		c.unpin(f.want)
		return a, false
	}
	// Open may have been a moment before a prune; the pin keeps it from now on.
	if _, err := os.Stat(c.path(f.want)); err != nil {
		c.unpin(f.want)
		return a, false
	}
	a.Source, a.CreatedAt = redactIfURL(f.sources[0].at), c.cfg.Now().UTC()
	return a, true
}

// bring copies a source into partial/ and checks its sum.
func (c *Cache) bring(ctx context.Context, s source, want inventory.Digest, t *tracker) (temp string, d inventory.Digest, size int64, err error) {
	if s.isHere {
		return "", "", 0, inventory.Errorf(inventory.Conflict, "artefact %s is not here, or damaged", s.at).
			WithHint("upload the file again; a file that no image uses is removed after an hour")
	}
	if s.isPath {
		return c.copyLocal(ctx, s.at, want, t)
	}
	return c.fetch(ctx, s.at, want, t)
}

// copyLocal copies a file of this machine into partial/.
func (c *Cache) copyLocal(ctx context.Context, name string, want inventory.Digest, t *tracker) (temp string, d inventory.Digest, size int64, err error) {
	in, info, err := openLocal(name)
	if err != nil {
		return "", "", 0, err
	}
	defer in.Close()
	if info.Size() > c.cfg.MaxBytes {
		return "", "", 0, c.tooLarge(name)
	}
	if err := c.CheckSpace(info.Size()); err != nil {
		return "", "", 0, err
	}
	out, err := os.CreateTemp(c.PartialDir(), tempPrefix+"*")
	if err != nil {
		return "", "", 0, DiskError("copy "+name, err)
	}
	defer func() {
		out.Close()
		if err != nil {
			err = errors.Join(err, ignoreMissing(os.Remove(out.Name())))
		}
	}()
	t.at(0, info.Size(), "")
	// TeeReader returns read and write errors alike. The difference tells a person whether the source or our disk is
	// at fault.
	w := &diskWriter{w: out}
	d, size, err = hashAll(ctx, io.TeeReader(io.LimitReader(in, c.cfg.MaxBytes+1), w), t.copied)
	switch {
	case ctx.Err() != nil:
		return "", "", 0, stopped(ctx)
	case w.err != nil:
		return "", "", 0, DiskError("copy "+name, w.err)
	case err != nil:
		return "", "", 0, &inventory.Error{
			Kind: inventory.Unavailable, Err: err, Msg: name + " cannot be read to its end",
			Hint: "see the kernel's log of the server for the disk's own words",
		}
	}
	// The sum would be right for bytes that no file ever had: a program may still write it. Size and time before and
	// after show that.
	after, err := in.Stat()
	if err != nil || size != info.Size() || after.Size() != size || !after.ModTime().Equal(info.ModTime()) {
		return "", "", 0, inventory.Errorf(inventory.Conflict, "%s changed while it was read", name).
			WithHint("wait until it is complete and import again")
	}
	if want != "" && d != want {
		return "", "", 0, wrongSum(name, want, d)
	}
	if err := out.Sync(); err != nil {
		return "", "", 0, DiskError("copy "+name, err)
	}
	return out.Name(), d, size, nil
}

// diskWriter remembers a failed write, to tell it from a failed read.
type diskWriter struct {
	w   io.Writer
	err error
}

// Write passes p on.
func (w *diskWriter) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	if err != nil {
		w.err = err
	}
	return n, err
}

// register stores artefacts and image in one transaction. What the image no longer uses is left to Prune, which gives
// it some time because machines may be booting it.
func (c *Cache) register(ctx context.Context, img inventory.Image, artefacts []inventory.Artefact) (inventory.Image, error) {
	var dropped []inventory.Digest
	// All files are in place and synced here. If the process dies now, they are files that nothing uses, and Prune
	// takes them.
	err := c.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		dropped = nil
		for _, a := range artefacts {
			old, err := tx.FindArtefact(a.Digest)
			if err == nil && old.SizeBytes == a.SizeBytes {
				continue
			}
			if err != nil && !isNotFound(err) {
				return err
			}
			if err := tx.SaveArtefact(a); err != nil {
				return err
			}
		}
		old, err := tx.Images().Find(img.Name)
		if isNotFound(err) {
			return tx.Images().Create(&img, c.cfg.Now())
		}
		if err != nil {
			return err
		}
		// An update at the version just read: within one transaction nobody else can change the image.
		img.CreatedAt, img.UpdatedAt, img.Version = old.CreatedAt, old.UpdatedAt, old.Version
		if sameImage(old, img) {
			return nil
		}
		for _, f := range old.Files {
			dropped = append(dropped, f.Digest)
		}
		return tx.Images().Update(&img, c.cfg.Now())
	})
	if err != nil {
		return inventory.Image{}, err
	}
	for _, d := range dropped {
		if err := c.touch(d); err != nil {
			return inventory.Image{}, err
		}
	}
	return img, nil
}

// touch makes Prune count an artefact's time without use from now.
// The hour of Prune then begins when the last image let go of the file. A host that booted a minute ago may still
// fetch it.
func (c *Cache) touch(d inventory.Digest) error {
	now := c.cfg.Now()
	return ignoreMissing(os.Chtimes(c.path(d), now, now))
}

func sameImage(a, b inventory.Image) bool {
	return a.OS == b.OS && a.Release == b.Release && a.Arch == b.Arch && slices.Equal(a.Files, b.Files) &&
		slices.Equal(a.KernelArgs, b.KernelArgs) && slices.Equal(a.ConfigArgs, b.ConfigArgs) && slices.Equal(a.Configs, b.Configs) &&
		a.MemoryMiB == b.MemoryMiB && a.CPULevel == b.CPULevel && a.IsInstaller == b.IsInstaller
}

func isNotFound(err error) bool {
	var e *inventory.Error
	return errors.As(err, &e) && e.Kind == inventory.NotFound
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func redactIfURL(s string) string {
	if isURL(s) {
		return redactString(s)
	}
	return s
}
