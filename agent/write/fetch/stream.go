package fetch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// Stream reads a file from its first byte to its last, whatever the network does meanwhile. One goroutine uses it.
type Stream struct {
	source *Source
	ctx    context.Context //nolint:containedctx // a Stream is one reading, and Read takes no context
	now    *answer
	pos    int64
	size   int64 // of the file; -1 when the server does not say
	etag   string
	failN  int // in a row, without a byte between
}

// Stream begins a reading, and returns after the first answer, which says how large the file is. ctx bounds the whole
// reading. The caller must Close the stream.
func (s *Source) Stream(ctx context.Context) (*Stream, error) {
	st := &Stream{source: s, ctx: ctx, size: -1}
	for {
		err := st.connect()
		if err == nil {
			return st, nil
		}
		st.failN++
		if err := s.again(ctx, st.failN, err); err != nil {
			return nil, err
		}
	}
}

// Size returns how large the file is, or -1.
func (s *Stream) Size() int64 { return s.size }

// Close ends the reading.
func (s *Stream) Close() error {
	if s.now != nil {
		s.now.close()
		s.now = nil
	}
	return nil
}

// connect asks for the rest of the file. A file that changed in the meantime ends the reading with Unavailable: two
// halves of different versions would pass unnoticed without a digest.
func (s *Stream) connect() error {
	a, err := s.source.get(s.ctx, s.pos, -1, s.etag)
	if err != nil {
		return err
	}
	// Content-Range has the size of the whole file, also for an answer that begins in the middle.
	size, hasSize := total(a, 0)
	changed := s.pos > 0 && (s.etag != "" && a.Header.Get("ETag") != s.etag || hasSize && s.size >= 0 && size != s.size)
	if changed {
		a.close()
		return &refusal{isFinal: true, why: inventory.Errorf(inventory.Unavailable, "%s changed on the server while it was fetched", s.source.name()).WithHint("try again")}
	}
	if s.pos == 0 {
		if tag := a.Header.Get("ETag"); !strings.HasPrefix(tag, "W/") { // a weak one does not promise the same bytes
			s.etag = tag
		}
		if hasSize {
			s.size = size
		}
	}
	s.now = a
	if a.StatusCode == http.StatusOK && s.pos > 0 { // the server knows no ranges: read up to where we were
		return s.skip(s.pos)
	}
	return nil
}

func (s *Stream) skip(n int64) error {
	silence := time.AfterFunc(s.source.stall(), s.now.stop)
	defer silence.Stop()
	buf := make([]byte, 256<<10)
	for n > 0 {
		got, err := s.now.Body.Read(buf[:min(n, int64(len(buf)))])
		silence.Reset(s.source.stall())
		n -= int64(got)
		if err != nil && n > 0 {
			s.Close()
			return bare(err)
		}
	}
	return nil
}

// Read returns the next bytes, and connects again when the connection broke. It returns io.EOF only at the promised
// length, because a broken proxy also ends a body.
func (s *Stream) Read(p []byte) (int, error) {
	for {
		n, err := s.read(p)
		s.pos += int64(n)
		if n > 0 {
			// Any byte is progress: tries are counted from the last one, so that a bad line with small steps still
			// succeeds.
			s.failN = 0
			return n, nil
		}
		if err == nil {
			continue // connected: now there is a body
		}
		if errors.Is(err, io.EOF) && (s.size < 0 || s.pos >= s.size) {
			return 0, io.EOF
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		s.Close()
		s.failN++
		if err := s.source.again(s.ctx, s.failN, err); err != nil {
			return 0, err
		}
	}
}

func (s *Stream) read(p []byte) (int, error) {
	if s.size >= 0 && s.pos >= s.size {
		return 0, io.EOF
	}
	if s.now == nil {
		return 0, s.connect()
	}
	// The timer cancels the request, which ends a Read that waits.
	silence := time.AfterFunc(s.source.stall(), s.now.stop)
	defer silence.Stop()
	n, err := s.now.Body.Read(p)
	return n, bare(err)
}
