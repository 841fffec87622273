package tftp

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"

	"slipway.dev/slipway/pxe"
)

// Operation codes (RFC 1350 section 5).
const (
	opRead  = 1
	opWrite = 2
	opError = 5
)

// Error codes (RFC 1350 section 5, RFC 2347).
const (
	codeNotFound  = 1
	codeForbidden = 2
	codeIllegal   = 4
)

// request is a read request that we serve.
type request struct {
	name      string // of pxe's table
	blockSize int    // what the client can take, 0 when it does not say
	wantsSize bool   // it asks for tsize (RFC 2349)
}

// refusal is why a packet is not served.
type refusal struct {
	why  outcome
	code uint16 // 0: not answered at all
	text string // for the machine's console; it never tells a path
}

const (
	maxRequest  = 512 // RFC 2347: a request packet has at most 512 octets
	maxName     = 128
	minBlock    = 8     // RFC 2348
	maxBlock    = 65464 // RFC 2348
	plainBlock  = 512
	sizeOption  = "tsize"
	blockOption = "blksize"
)

// parseRequest reads a packet that came to the server's own port. It is the only look that anything has at what the
// network sent: the transfer below gets a request that we wrote.
func parseRequest(p []byte) (request, *refusal) {
	if len(p) < 4 {
		return request{}, &refusal{why: malformed}
	}
	switch binary.BigEndian.Uint16(p) {
	case opRead:
	case opWrite:
		return request{}, &refusal{why: isWrite, code: codeForbidden, text: "this server sends boot files and takes none"}
	default:
		return request{}, &refusal{why: malformed} // an answer to a stray answer could go round for ever
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
		return request{}, &refusal{why: unknownName, code: codeNotFound, text: "this server has no such boot file"}
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
// for files beside the loader that way. Anything else that is not in the table letter by letter is no name.
func checkName(s string) (string, bool) {
	if len(s) > maxName {
		return "", false
	}
	s = strings.TrimPrefix(s, "/")
	return s, pxe.IsLoader(s)
}

// write returns the request as the transfer below reads it, with blocks that fit the network.
func (r *request) write(to []byte, fits int) int {
	out := append(to[:0], 0, opRead)
	out = appendText(out, r.name, "octet")
	// The library knows no blocks below 512; without the option both sides use 512, which every client can.
	if n := min(r.blockSize, max(fits, plainBlock)); n > plainBlock {
		out = appendText(out, blockOption, strconv.Itoa(n))
	}
	if r.wantsSize {
		out = appendText(out, sizeOption, "0")
	}
	return len(out)
}

func appendText(out []byte, texts ...string) []byte {
	for _, s := range texts {
		out = append(append(out, s...), 0)
	}
	return out
}

// errorPacket returns an ERROR packet.
func errorPacket(code uint16, text string) []byte {
	return appendText(binary.BigEndian.AppendUint16([]byte{0, opError}, code), text)
}
