package images

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"slipway.dev/slipway/inventory"
)

// download is a file on its way into partial/. A note with the ending .json lies next to it, from which another
// process resumes. The first SyncedBytes of the file are certain to be on disk. Bytes behind them may be holes after
// a power failure, and takeOver drops them.
//
// Who holds lockDownload owns the download; nothing in it needs a mutex.
type download struct {
	cache *Cache
	url   string
	want  inventory.Digest // "" when no sum is known

	name  string // of the partial file; the note is name + ".json"
	file  *os.File
	hash  hash.Hash
	bytes int64 // in the file and in the hash
	mark  downloadMark
	track *tracker
	// isResumed: the bytes here are of more than one answer.
	isResumed bool
}

// downloadMark is the note next to a partial file. The name of the file is a hash of the URL, because the URL may
// hold a password.
type downloadMark struct {
	ETag         string `json:"etag,omitempty"` // strong, RFC 9110 section 8.8.3
	LastModified string `json:"lastModified,omitempty"`
	TotalBytes   int64  `json:"totalBytes,omitempty"`
	SyncedBytes  int64  `json:"syncedBytes"`
}

// fetch downloads a URL and resumes what an earlier attempt left. The result is a complete, verified and synced file,
// which the caller owns and must place or remove. After an error the partial file stays for the next import.
func (c *Cache) fetch(ctx context.Context, rawURL string, want inventory.Digest, t *tracker) (temp string, d inventory.Digest, size int64, err error) {
	key := sha256.Sum256([]byte(rawURL))
	name := filepath.Join(c.PartialDir(), hex.EncodeToString(key[:16]))
	release, err := c.lockDownload(ctx, name)
	if err != nil {
		return "", "", 0, err
	}
	defer release()
	dl := &download{cache: c, url: rawURL, want: want, name: name, hash: sha256.New(), track: t}
	dl.file, err = os.OpenFile(dl.name, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return "", "", 0, DiskError("open download", err)
	}
	defer dl.file.Close()
	if err := dl.takeOver(ctx); err != nil {
		return "", "", 0, err
	}
	d, err = dl.run(ctx)
	if err != nil {
		return "", "", 0, err
	}
	// Off to a name of its own: the next download of this URL may end, with the same bytes, before this one is put in place.
	own, err := os.CreateTemp(c.PartialDir(), tempPrefix+"*")
	if err != nil {
		return "", "", 0, DiskError("finish download", err)
	}
	_ = own.Close() // nothing was written
	temp = own.Name()
	// If the process dies between this rename and the removal of the note, the note describes a file that is gone.
	// takeOver notices that the file is shorter than SyncedBytes, and starts from zero.
	if err := os.Rename(dl.name, temp); err != nil {
		return "", "", 0, DiskError("finish download", err)
	}
	if err := os.Remove(dl.name + ".json"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", "", 0, DiskError("finish download", err)
	}
	return temp, d, dl.bytes, nil
}

// lockDownload waits until no other import fetches the same URL. Two imports that wrote into one partial file would
// mix their bytes. The import that waited downloads again, because the server may have a new version by then.
func (c *Cache) lockDownload(ctx context.Context, name string) (release func(), err error) {
	for {
		c.mu.Lock()
		other, busy := c.loading[name]
		if !busy {
			mine := make(chan struct{})
			c.loading[name] = mine
			c.mu.Unlock()
			return func() {
				c.mu.Lock()
				// Before the close, so that a waiter that wakes up never finds the old entry again.
				delete(c.loading, name)
				c.mu.Unlock()
				close(mine)
			}, nil
		}
		c.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, stopped(ctx)
		}
	}
}

// run fetches until the file is whole and has the wanted sum.
func (d *download) run(ctx context.Context) (inventory.Digest, error) {
	for {
		if err := d.cache.retry(ctx, func() (int64, error) { return d.once(ctx) }, d.track.note); err != nil {
			// What has arrived is worth keeping whatever the reason; the next import starts behind it.
			if saveErr := d.checkpoint(); saveErr != nil && ctx.Err() == nil {
				return "", saveErr
			}
			return "", err
		}
		if err := d.file.Sync(); err != nil {
			return "", DiskError("write download", err)
		}
		got := digestOf(d.hash.Sum(nil))
		if d.want == "" || got == d.want {
			return got, nil
		}
		wasResumed := d.isResumed
		if err := d.restart(); err != nil {
			return "", err
		}
		if !wasResumed {
			return "", wrongSum(redactString(d.url), d.want, got)
		}
		// The pieces may be of two different files; all of it again tells.
		d.track.at(0, 0, "the pieces do not fit together; starting over")
	}
}

func wrongSum(what string, want, got inventory.Digest) error {
	return wrongHex(what, want.Hex(), got.Hex())
}

func wrongHex(what, want, got string) error {
	return inventory.Errorf(inventory.Invalid, "%s has the wrong checksum: expected %s, got %s", what, want, got).
		WithHint("nothing was imported; either it was damaged or replaced on the way, or the checksum belongs to another version")
}

// takeOver takes as much of the partial file as is certain. It hashes the kept bytes again: the sum at the end is
// then about the bytes on the disk, and not about those of a process that is gone.
func (d *download) takeOver(ctx context.Context) error {
	// A missing or damaged note costs the download so far, and never its correctness.
	if text, err := os.ReadFile(d.name + ".json"); err != nil || json.Unmarshal(text, &d.mark) != nil {
		d.mark = downloadMark{}
	}
	keep := d.mark.SyncedBytes
	info, err := d.file.Stat()
	if err != nil || keep < 0 || keep > info.Size() || !d.canResume() {
		keep = 0
	}
	if keep == 0 {
		return d.restart()
	}
	if err := d.file.Truncate(keep); err != nil {
		return DiskError("resume download", err)
	}
	d.track.step(StepCheck)
	d.track.at(0, keep, "")
	_, _, err = hashAll(ctx, io.TeeReader(d.file, d.hash), d.track.copied)
	if err != nil {
		if ctx.Err() != nil {
			return stopped(ctx)
		}
		return DiskError("resume download", err)
	}
	d.bytes, d.isResumed = keep, true
	d.track.step(StepFetch)
	d.track.at(keep, d.mark.TotalBytes, "goes on at "+FormatBytes(keep))
	return nil
}

// canResume reports whether a mixture of two versions would be noticed: by the server, through a validator, or by us,
// through the sum.
// Without any of the three, the second half of a new release could follow the first half of the old one unnoticed.
func (d *download) canResume() bool {
	return d.mark.ETag != "" || d.mark.LastModified != "" || d.want != ""
}

// restart forgets what has arrived.
// The file is emptied before the note goes. A crash between both leaves a note about more bytes than there are, which
// takeOver ignores.
func (d *download) restart() error {
	d.mark = downloadMark{}
	d.bytes, d.isResumed = 0, false
	d.hash.Reset()
	err := d.file.Truncate(0)
	if err == nil {
		_, err = d.file.Seek(0, io.SeekStart)
	}
	if err == nil {
		err = os.Remove(d.name + ".json")
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return DiskError("start download", err)
	}
	return nil
}

// checkpoint syncs what has arrived, and then records it in the note. In this order the note never names bytes that a
// power failure can take away. renameio replaces the note atomically; if the new one is lost, the old one names fewer
// bytes and still holds.
func (d *download) checkpoint() error {
	if err := d.file.Sync(); err != nil {
		return DiskError("write download", err)
	}
	d.mark.SyncedBytes = d.bytes
	text, err := json.Marshal(d.mark)
	if err != nil {
		return fmt.Errorf("write note of download: %w", err)
	}
	if err := renameio.WriteFile(d.name+".json", text, 0o640); err != nil {
		return DiskError("write download", err)
	}
	return nil
}

// once makes one request and copies what it brings. It returns how many bytes were new, also with an error: retry
// counts them as progress.
func (d *download) once(ctx context.Context) (int64, error) {
	header := http.Header{}
	if d.bytes > 0 && !d.canResume() {
		if err := d.restart(); err != nil {
			return 0, err
		}
	}
	if d.bytes > 0 {
		// If-Range makes the server send the whole file as 200 when it has changed (RFC 9110 section 13.1.5). Without
		// it a 206 could continue another version.
		header.Set("Range", fmt.Sprintf("bytes=%d-", d.bytes))
		if v := d.validator(); v != "" {
			header.Set("If-Range", v)
		}
	}
	resp, err := d.cache.get(ctx, d.url, header)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if err := d.accept(resp); err != nil {
		return 0, err
	}
	before := d.bytes
	err = d.copy(resp.Body)
	// Some servers and proxies close a connection in the middle and call that the end. Only the promised length shows
	// it.
	if err == nil && d.mark.TotalBytes > 0 && d.bytes != d.mark.TotalBytes {
		err = brokenError(resp.Request.URL, io.ErrUnexpectedEOF, false)
	}
	return d.bytes - before, err
}

func (d *download) validator() string {
	return cmp.Or(d.mark.ETag, d.mark.LastModified)
}

// accept checks the status and header of an answer, and sets the file to where its body belongs. Afterwards the mark
// describes this answer: its validator and its size replace those of the answer before.
func (d *download) accept(resp *http.Response) error {
	total := resp.ContentLength
	switch resp.StatusCode {
	case http.StatusOK:
		if d.bytes > 0 {
			note := "the server cannot resume; starting over"
			if v := d.validator(); v != "" && v != validatorOf(resp) {
				note = "the file has changed; starting over"
			}
			if err := d.restart(); err != nil {
				return err
			}
			d.track.at(0, 0, note)
		}
	case http.StatusPartialContent:
		// A 206 may cover another range than the requested one (RFC 9110 section 15.3.7). Bytes at a wrong offset
		// would damage the file without any error.
		first, size, ok := contentRange(resp.Header.Get("Content-Range"))
		changed := d.mark.TotalBytes > 0 && size > 0 && size != d.mark.TotalBytes ||
			d.mark.ETag != "" && resp.Header.Get("ETag") != "" && resp.Header.Get("ETag") != d.mark.ETag
		if !ok || first != d.bytes || changed {
			return d.startOver("the server resumes with something else")
		}
		total = size
		d.isResumed = d.isResumed || first > 0
	// The file ends before our offset (RFC 9110 section 15.5.17): its publisher has replaced it.
	case http.StatusRequestedRangeNotSatisfiable:
		return d.startOver("the file is shorter than it was")
	default:
		return statusError(d.url, resp)
	}
	// A chunked answer has no length (-1). The copy loop then bounds it by MaxBytes and by the free space.
	if total < 0 {
		total = 0
	}
	if total > d.cache.cfg.MaxBytes {
		return d.cache.tooLarge(redactString(d.url))
	}
	if err := d.cache.CheckSpace(total - d.bytes); err != nil {
		return err
	}
	d.mark.TotalBytes = total
	d.mark.ETag, d.mark.LastModified = "", ""
	// Only a strong tag may be in If-Range. A weak one, W/"...", does not promise equal bytes (RFC 9110 section
	// 13.1.5).
	if tag := resp.Header.Get("ETag"); strings.HasPrefix(tag, `"`) {
		d.mark.ETag = tag
	} else {
		d.mark.LastModified = resp.Header.Get("Last-Modified")
	}
	d.track.at(d.bytes, total, "")
	return nil
}

// validatorOf returns what identifies the version of an answer.
func validatorOf(resp *http.Response) string {
	if tag := resp.Header.Get("ETag"); strings.HasPrefix(tag, `"`) {
		return tag
	}
	return resp.Header.Get("Last-Modified")
}

// startOver drops what has arrived, and returns an error that retry answers with another attempt.
func (d *download) startOver(why string) error {
	if err := d.restart(); err != nil {
		return err
	}
	return tryAgain{inventory.Errorf(inventory.Unavailable, "%s: %s", redactString(d.url), why).
		WithHint("import again; if it repeats, use another mirror")}
}

// copy writes the body behind what is there.
func (d *download) copy(body io.Reader) error {
	buf := make([]byte, copyBytes)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if d.bytes+int64(n) > d.cache.cfg.MaxBytes {
				return d.cache.tooLarge(redactString(d.url))
			}
			if wn, err := d.file.Write(buf[:n]); err != nil {
				// A full disk takes a part of the chunk. The hash follows, so that the checkpoint after the error
				// keeps a true prefix.
				d.hash.Write(buf[:wn])
				d.bytes += int64(wn)
				return DiskError("write download", err)
			}
			d.hash.Write(buf[:n])
			d.bytes += int64(n)
			d.track.copied(int64(n))
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if d.bytes-d.mark.SyncedBytes >= d.cache.cfg.Checkpoint {
			if err := d.checkpoint(); err != nil {
				return err
			}
			// A body of unknown length must not fill the disk that leases are written to.
			if err := d.cache.CheckSpace(d.cache.cfg.Checkpoint); err != nil {
				return err
			}
		}
	}
}

func (c *Cache) tooLarge(what string) error {
	return inventory.Errorf(inventory.Invalid, "%s is larger than %s", what, FormatBytes(c.cfg.MaxBytes)).
		WithHint("Slipway imports files up to that size; check that the address is the right one")
}
