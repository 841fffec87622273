package tftp

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// Operation codes (RFC 1350 section 5).
const (
	opRead   = 1
	opWrite  = 2
	opData   = 3
	opAck    = 4
	opError  = 5
	opOption = 6 // RFC 2347
)

// Error codes (RFC 1350 section 5, RFC 2347).
const (
	codeUndefined = 0
	codeNotFound  = 1
	codeForbidden = 2
	codeIllegal   = 4
)

// request is a read request that we serve.
type request struct {
	name      string        // of pxe's table
	blockSize int           // what the client can take, 0 when it does not say
	wantsSize bool          // it asks for tsize (RFC 2349)
	window    int           // blocks of a flight (RFC 7440), 0 when it does not say
	timeout   time.Duration // RFC 2349; 0 when it does not say
}

// refusal is why a packet is not served.
type refusal struct {
	why  outcome
	code uint16 // 0: not answered at all
	text string // for the machine's console; it never tells a path
	name string // what was asked for, where that is no file of ours
}

const (
	maxRequest = 512 // RFC 2347: a request packet has at most 512 octets
	maxName    = 128
	minBlock   = 8     // RFC 2348
	maxBlock   = 65464 // RFC 2348
	plainBlock = 512
	maxWindow  = 64 // flights that fit every machine's receive buffer
	noSuchFile = "this server has no such boot file"

	sizeOption    = "tsize"
	blockOption   = "blksize"
	windowOption  = "windowsize"
	timeoutOption = "timeout"
)

// parseRequest reads a packet that came to the server's own port. What a client means by a name that there is nothing for
// says meant, "" when nothing.
func parseRequest(p []byte, meant func(name string) string) (request, *refusal) {
	if len(p) < 4 {
		return request{}, &refusal{why: malformed}
	}
	switch binary.BigEndian.Uint16(p) {
	case opRead:
	case opWrite:
		return request{}, &refusal{why: isWrite, code: codeForbidden, text: "this server sends boot files and takes none"}
	default:
		return request{}, &refusal{why: malformed} // an answer to a stray answer could go round without end
	}
	if len(p) > maxRequest {
		return request{}, &refusal{why: malformed, code: codeIllegal, text: "the request is longer than 512 bytes"}
	}
	rawName, rest, ok := cutText(p[2:])
	mode, rest, ok2 := cutText(rest)
	if !ok || !ok2 {
		return request{}, &refusal{why: malformed, code: codeIllegal, text: "the request has no end"}
	}
	name, ok := checkName(rawName)
	if !ok {
		name = meant(name)
	}
	if name == "" {
		return request{}, &refusal{why: unknownName, code: codeNotFound, text: noSuchFile, name: inventory.Clean(rawName, maxName)}
	}
	// netascii would change the bytes of a loader (RFC 764); mail is obsolete.
	if !strings.EqualFold(mode, "octet") {
		return request{}, &refusal{why: badMode, code: codeIllegal, text: "boot files are sent in octet mode only; say: binary"}
	}
	r := request{name: name}
	r.readOptions(rest)
	return r, nil
}

// readOptions reads the options we know; others, and values that make no sense, are left out of the answer, which
// tells the client that they do not apply (RFC 2347). Option names have no case.
func (r *request) readOptions(rest []byte) {
	for len(rest) > 0 {
		var name, value string
		var ok bool
		if name, rest, ok = cutText(rest); !ok || name == "" {
			return
		}
		if value, rest, ok = cutText(rest); !ok {
			return
		}
		switch strings.ToLower(name) {
		case blockOption:
			if n, err := strconv.ParseUint(value, 10, 32); err == nil && n >= minBlock && r.blockSize == 0 {
				r.blockSize = int(min(n, maxBlock))
			}
		case sizeOption:
			r.wantsSize = true
		case windowOption:
			if n, err := strconv.ParseUint(value, 10, 16); err == nil && n > 0 && r.window == 0 {
				r.window = int(min(n, maxWindow))
			}
		case timeoutOption:
			if n, err := strconv.ParseUint(value, 10, 8); err == nil && n > 0 {
				r.timeout = time.Duration(n) * time.Second
			}
		}
	}
}

// cutText takes a text that ends with NUL off p.
func cutText(p []byte) (text string, rest []byte, ok bool) {
	i := bytes.IndexByte(p, 0)
	if i < 0 {
		return "", nil, false
	}
	return string(p[:i]), p[i+1:], true
}

// checkName returns the name of pxe's table that a client means. One slash in front is taken off: iPXE and GRUB ask
// for files next to the loader that way. Anything else that is neither in the table letter by letter nor made for machines is no name.
func checkName(s string) (string, bool) {
	s = strings.TrimPrefix(s, "/")
	return s, len(s) <= maxName && pxe.IsLoader(s) || pxe.IsBootFile(s)
}

// answer returns the answer to the options that apply (RFC 2347), nil when there is none.
func (r *request) answer(block int, size int64) []byte {
	out := []byte{0, opOption}
	if r.blockSize > 0 {
		out = appendText(out, blockOption, strconv.Itoa(block))
	}
	if r.wantsSize {
		out = appendText(out, sizeOption, strconv.FormatInt(size, 10))
	}
	if r.window > 0 {
		out = appendText(out, windowOption, strconv.Itoa(r.window))
	}
	if r.timeout > 0 {
		out = appendText(out, timeoutOption, strconv.Itoa(int(r.timeout/time.Second)))
	}
	if len(out) == 2 {
		return nil
	}
	return out
}

func appendText(out []byte, texts ...string) []byte {
	for _, s := range texts {
		out = append(append(out, s...), 0)
	}
	return out
}

// errorText is what an ERROR packet says: its text, or the meaning of its code where it has none.
func errorText(code uint16, text string) string {
	if text != "" {
		return text
	}
	return "error " + strconv.Itoa(int(code))
}

// errorPacket returns an ERROR packet.
func errorPacket(code uint16, text string) []byte {
	return appendText(binary.BigEndian.AppendUint16([]byte{0, opError}, code), text)
}
