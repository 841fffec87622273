package httpboot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// copied is how much net/http reads ahead of a connection where the kernel does not send by itself.
const copied = 32 << 10

var (
	errClosed       = errors.New("the machine closed the connection")
	errStalled      = errors.New("the machine took nothing for a minute")
	errNotInstalled = errors.New("the loader is not installed on the boot server; its start-up log names the package")
)

// sendLoader sends a boot loader from memory. A loader that is not installed is a 404 and a failed transfer, since
// operators look for the reason there.
func (s *Server) sendLoader(x *exchange) int {
	l, ok := s.cfg.Loaders.Find(x.name)
	if !ok {
		s.cfg.Boots.Transferred(pxe.Transfer{Session: x.session, Source: x.source, Proto: proto, Name: x.name, Err: errNotInstalled})
		return x.text(http.StatusNotFound, x.name+" is not installed on the boot server", s.whatExists())
	}
	return s.sendFile(x, bytes.NewReader(l.Data), int64(len(l.Data)), l.SHA256, l.Type)
}

// sendArtefact sends a file of an image, if the boot may have it and the link has room. If the link is full it
// answers 503, with the place in the waiting line. HEAD takes no place in the line: it sends no content.
func (s *Server) sendArtefact(x *exchange) int {
	digest, err := s.cfg.Boots.Artefact(x.r.Context(), x.session, x.source, x.digest, x.name)
	if err != nil {
		return s.refuse(x, err)
	}
	f, a, err := s.cfg.Artefacts.Open(digest)
	if inventory.IsKind(err, inventory.Unavailable) {
		return s.refuse(x, err) // it comes from another instance, and the machine asks again: no transfer has failed
	}
	if err != nil {
		s.cfg.Boots.Transferred(pxe.Transfer{Session: x.session, Source: x.source, Proto: proto, Name: x.name, Err: forPeople(err)})
		return s.refuse(x, err)
	}
	defer f.Close()
	if x.r.Method == http.MethodHead {
		return s.sendFile(x, f, a.SizeBytes, a.Digest, typeOf(x.name))
	}
	// A boot counts once, however many connections it opens. Without a session the address stands for the boot.
	boot := string(x.session)
	if boot == "" {
		boot = x.source.String()
	}
	leave, wait, place := s.cfg.Admission.Enter(x.local, boot, a.SizeBytes)
	if wait > 0 {
		s.cfg.Log.Debug("download waits", "addr", x.source.String(), "boot", x.session, "place", place, "seconds", wait.Seconds())
		return x.later(wait, fmt.Sprintf("too many machines load images now; this one is number %d in line", place),
			fmt.Sprintf("ask again in %d s", int(wait/time.Second)))
	}
	defer leave()
	return s.sendFile(x, f, a.SizeBytes, a.Digest, typeOf(x.name))
}

// forPeople returns the error that an operator may see in the session: never one with paths of this server.
func forPeople(err error) error {
	if e, ok := errors.AsType[*inventory.Error](err); ok {
		return errors.New(e.Msg)
	}
	return errors.New("the boot server cannot read the file; its log says why")
}

// typeOf returns the media type that tells UEFI HTTP Boot what the file is (UEFI 2.10 section 24.7). EDK2 looks at
// the extension of the name only where the type says nothing.
func typeOf(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".efi":
		return "application/efi"
	case ".iso":
		return "application/vnd.efi-iso"
	case ".img":
		return "application/vnd.efi-img"
	}
	return "application/octet-stream"
}

// sendFile sends a file or the range that the request names, and reports how that went to Boots.
//
// It passes the writer and the file to ServeContent unwrapped: net/http then lets the kernel send the file, which any
// wrapper would prevent. So it learns only from the position of the file how many bytes were read, and from the
// kernel how many of them arrived.
func (s *Server) sendFile(x *exchange, f io.ReadSeeker, size int64, d inventory.Digest, mediaType string) int {
	h := x.w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("ETag", `"`+d.Hex()+`"`) // the content's own name: strong, and the same after a restart
	if strings.Contains(x.r.Header.Get("Range"), ",") {
		x.r.Header.Del("Range") // several ranges at once would be chunked and copied; all of it is right too (RFC 9110 section 14.2)
	}
	if x.r.Method == http.MethodHead {
		http.ServeContent(x.w, x.r, "", time.Time{}, f)
		return x.statusOf(size)
	}
	k := fetchKey{session: x.session, source: x.source, name: x.name, digest: d}
	hasCondition := false // then it is known afterwards only whether anything is sent
	for _, name := range []string{"Range", "If-Match", "If-None-Match"} {
		hasCondition = hasCondition || x.r.Header.Get(name) != ""
	}
	t, isNew := s.progress.begin(k, size)
	if isNew && !hasCondition {
		s.cfg.Boots.Transferring(t)
	}
	http.ServeContent(x.w, x.r, "", time.Time{}, f)
	asked := askedSpan(h, size)
	sent := span{asked.from, asked.from}
	if at, err := f.Seek(0, io.SeekCurrent); err == nil && asked.to > asked.from {
		sent.to = max(at, asked.from)
	}
	unread, broken := x.arrived(sent.to < asked.to)
	sent.to = max(sent.from, sent.to-unread)
	s.Metrics.Bytes.WithLabelValues(string(x.place)).Add(float64(sent.to - sent.from))
	if isNew && hasCondition && sent.to > sent.from {
		s.cfg.Boots.Transferring(t)
	}
	if t, hasEnded := s.progress.end(k, sent, size, broken); hasEnded {
		s.cfg.Boots.Transferred(t)
	}
	return x.statusOf(size)
}

// askedSpan returns the bytes that ServeContent has promised in the header. It is empty after a 304, 412 or 416.
func askedSpan(h http.Header, size int64) span {
	if from, to, ok := strings.Cut(strings.TrimPrefix(h.Get("Content-Range"), "bytes "), "-"); ok {
		to, _, _ = strings.Cut(to, "/")
		a, err1 := strconv.ParseInt(from, 10, 64)
		b, err2 := strconv.ParseInt(to, 10, 64)
		if err1 == nil && err2 == nil {
			return span{a, b + 1}
		}
	}
	if h.Get("Content-Length") == strconv.FormatInt(size, 10) {
		return span{0, size}
	}
	return span{}
}

// statusOf returns the status that belongs to a header of ServeContent, which does not return it.
func (x *exchange) statusOf(size int64) int {
	h := x.w.Header()
	switch {
	case strings.HasPrefix(h.Get("Content-Range"), "bytes */"):
		return http.StatusRequestedRangeNotSatisfiable
	case h.Get("Content-Range") != "":
		return http.StatusPartialContent
	case h.Get("Content-Length") == strconv.FormatInt(size, 10):
		return http.StatusOK
	case x.r.Header.Get("If-Match") != "":
		return http.StatusPreconditionFailed
	}
	return http.StatusNotModified
}

// arrived waits until the machine has acknowledged what was sent. If it never will, arrived returns how many of the
// bytes read so far are missing, and why.
func (x *exchange) arrived(isBroken bool) (unread int64, err error) {
	if c, ok := x.r.Context().Value(connKey{}).(*conn); ok {
		unread, err = c.drain()
		if first := c.broken.Load(); first != nil {
			unread, err = unread+copied, *first // more may have been read, but not written
		}
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return unread, errStalled
	case err != nil || isBroken:
		return unread, errClosed
	}
	return 0, nil
}
