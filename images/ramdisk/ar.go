package ramdisk

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// arReader reads the members of an archive of the common ar form, of which Debian's packages are (deb(5), ar(5)).
type arReader struct {
	r    *bufio.Reader
	left int64 // of the present member
	odd  int64 // 1 when a byte of padding follows it
}

const (
	arMagic  = "!<arch>\n"
	arHeader = 60
)

var errNoAr = errors.New("it does not begin like a Debian package")

func newArReader(r io.Reader) (*arReader, error) {
	a := &arReader{r: bufio.NewReaderSize(r, 1<<16)}
	magic := make([]byte, len(arMagic))
	if _, err := io.ReadFull(a.r, magic); err != nil || string(magic) != arMagic {
		return nil, errNoAr
	}
	return a, nil
}

// next goes to the next member and returns its name; io.EOF is the end.
func (a *arReader) next() (name string, err error) {
	if n, err := io.CopyN(io.Discard, a.r, a.left+a.odd); err != nil && (n < a.left || a.left == 0) {
		return "", io.ErrUnexpectedEOF // at the end of a file the padding may be missing
	}
	a.left, a.odd = 0, 0
	h := make([]byte, arHeader)
	if n, err := io.ReadFull(a.r, h); n == 0 && errors.Is(err, io.EOF) {
		return "", io.EOF
	} else if err != nil {
		return "", io.ErrUnexpectedEOF
	}
	size, err := strconv.ParseUint(strings.TrimRight(string(h[48:58]), " "), 10, 40)
	if err != nil || string(h[58:60]) != "`\n" {
		return "", fmt.Errorf("a member without a head")
	}
	a.left, a.odd = int64(size), int64(size&1)
	return strings.TrimSuffix(strings.TrimRight(string(h[:16]), " "), "/"), nil
}

// Read reads the present member.
func (a *arReader) Read(b []byte) (int, error) {
	if a.left == 0 {
		return 0, io.EOF
	}
	n, err := a.r.Read(b[:min(int64(len(b)), a.left)])
	a.left -= int64(n)
	if errors.Is(err, io.EOF) && a.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
