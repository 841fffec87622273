package trace

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"slipway.dev/slipway/inventory"
)

// The operations of TFTP (RFC 1350, RFC 2347).
const (
	// The operations of TFTP (RFC 1350 section 5) and the answer to options (RFC 2347).
	RRQ   = 1
	Data  = 3
	Ack   = 4
	Error = 5
	OAck  = 6
)

// TFTPPacket is a packet of a TFTP transfer.
type TFTPPacket struct {
	Op      uint16
	Name    string            // of RRQ
	Options map[string]string // of RRQ and OACK, in lower case
	Block   uint16            // of DATA and ACK
	Code    uint16            // of ERROR
	Text    string            // of ERROR
}

// parseTFTP decodes a TFTP packet; it returns nil for anything else. isFirst says that it went to port 69, where only
// a request may come. The checks are narrow because any UDP packet between two high ports comes here.
func parseTFTP(b []byte, isFirst bool) *TFTPPacket {
	if len(b) < 4 {
		return nil
	}
	t := &TFTPPacket{Op: binary.BigEndian.Uint16(b)}
	switch {
	case t.Op == RRQ && isFirst:
		f := fields(b[2:])
		if len(f) < 2 {
			return nil
		}
		t.Name, t.Options = inventory.Clean(strings.ToValidUTF8(f[0], "\uFFFD"), 255), options(f[2:])
	case isFirst:
		return nil
	case t.Op == OAck:
		t.Options = options(fields(b[2:]))
	case t.Op == Data, t.Op == Ack && len(b) == 4:
		t.Block = binary.BigEndian.Uint16(b[2:])
	case t.Op == Error:
		t.Code = binary.BigEndian.Uint16(b[2:])
		if t.Code > 8 {
			return nil
		}
		t.Text = text(b[4:])
	default:
		return nil
	}
	return t
}

// fields returns the texts of a packet, each of which ends with NUL: at most 32, which is more than any client sends.
func fields(b []byte) []string {
	var f []string
	for len(b) > 0 && len(f) < 32 {
		i := bytes.IndexByte(b, 0)
		if i < 0 {
			break
		}
		f = append(f, string(b[:i]))
		b = b[i+1:]
	}
	return f
}

func options(f []string) map[string]string {
	o := map[string]string{}
	for ; len(f) >= 2; f = f[2:] {
		o[strings.ToLower(inventory.Clean(f[0], 32))] = inventory.Clean(f[1], 32)
	}
	return o
}

// BlockSize returns the block size of the options in bytes (RFC 2348): 512 where they name none, or one below 8.
func (t *TFTPPacket) BlockSize() int {
	if n, err := strconv.Atoi(t.Options["blksize"]); err == nil && n >= 8 {
		return n
	}
	return 512
}

func (t *TFTPPacket) line(p Packet) string {
	switch t.Op {
	case RRQ:
		line := "TFTP read request for " + t.Name + " to " + p.Dst.Addr().String()
		for _, k := range []string{"tsize", "blksize", "windowsize"} {
			if v, ok := t.Options[k]; ok {
				line += ", " + k + " " + v
			}
		}
		return line
	case OAck:
		return "TFTP options from " + p.Src.Addr().String()
	case Data:
		return fmt.Sprintf("TFTP data, block %d", t.Block)
	case Ack:
		return fmt.Sprintf("TFTP ACK of block %d", t.Block)
	}
	return fmt.Sprintf("TFTP error %d from %s: %s", t.Code, p.Src.Addr(), t.Text)
}

// Segment is a TCP segment: its flags, and the start of the HTTP message or TLS record that it begins with.
type Segment struct {
	IsSYN, IsACK, IsFIN, IsRST bool
	HasData                    bool

	Method, Path string // of an HTTP request
	Version      string // HTTP/1.1, of both
	Status       int    // of an HTTP answer
	RetryAfter   int    // seconds, of an HTTP answer; 0 when absent

	IsHello bool  // a TLS ClientHello
	Alert   uint8 // the description of a TLS alert in clear (RFC 5246 section 7.2); 0 when it is none
}

// segment decodes a TCP segment. It joins none: boot clients send a request, and servers a header, in one segment.
func (p *Packet) segment(b []byte, size int) {
	header := int(b[12]>>4) * 4
	if header < 20 || len(b) < header {
		return
	}
	flags := b[13]
	s := &Segment{IsFIN: flags&1 != 0, IsSYN: flags&2 != 0, IsRST: flags&4 != 0, IsACK: flags&16 != 0, HasData: size > header}
	p.Kind, p.TCP = TCP, s
	b = b[header:]
	p.tail = len(b)
	if len(b) > size-header && size >= header {
		b = b[:size-header] // the rest is Ethernet's padding
	}
	switch {
	case len(b) >= 7 && b[0] == 0x15 && b[1] == 3 && b[3] == 0 && b[4] == 2:
		s.Alert = b[6]
	case len(b) >= 6 && b[0] == 0x16 && b[1] == 3 && b[5] == 1:
		s.IsHello = true
	case len(b) > 12:
		s.http(b)
	}
}

// http decodes the first line of an HTTP/1 message, and Retry-After of an answer.
func (s *Segment) http(b []byte) {
	head, rest, _ := bytes.Cut(b, []byte("\r\n"))
	f := strings.SplitN(string(head[:min(len(head), 1024)]), " ", 3)
	if len(f) < 2 {
		return
	}
	if strings.HasPrefix(f[0], "HTTP/1.") {
		s.Version = f[0]
		s.Status, _ = strconv.Atoi(f[1])
		for _, line := range strings.Split(string(rest), "\r\n") {
			k, v, _ := strings.Cut(line, ":")
			if strings.EqualFold(k, "Retry-After") {
				s.RetryAfter, _ = strconv.Atoi(strings.TrimSpace(v))
			}
		}
		return
	}
	switch f[0] {
	case "GET", "HEAD", "POST":
		s.Method, s.Path = f[0], inventory.Clean(withoutKey(f[1]), 200)
		if len(f) == 3 {
			s.Version = inventory.Clean(f[2], 10)
		}
	}
}

func (s *Segment) line(p Packet) string {
	switch {
	case s.Method != "":
		return s.Method + " " + s.Path + " to " + p.Dst.String()
	case s.Status != 0:
		return fmt.Sprintf("HTTP status %d from %s", s.Status, p.Src)
	case s.Alert != 0:
		return fmt.Sprintf("TLS alert %d from %s", s.Alert, p.Src.Addr())
	case s.IsSYN && s.IsACK:
		return "TCP connection taken by " + p.Src.String()
	case s.IsSYN:
		return "TCP connection asked for to " + p.Dst.String()
	case s.IsRST:
		return "TCP connection refused by " + p.Src.String()
	case s.IsFIN:
		return "TCP connection closed by " + p.Src.String()
	}
	return "TCP segment from " + p.Src.String()
}

// withoutKey replaces the key in the path of a report by x of the same length: who has the key can speak for the
// machine. The length must stay, since scrub writes the result over the bytes of the frame.
func withoutKey(path string) string {
	if i := strings.Index(path, reportPath); i >= 0 {
		key, rest, hasRest := strings.Cut(path[i+len(reportPath):], "?")
		path = path[:i+len(reportPath)] + strings.Repeat("x", len(key))
		if hasRest {
			path += "?" + rest
		}
	}
	return path
}

const reportPath = "/report/"

// scrub removes what a record must not hold: contents of files and configurations, headers of requests, and keys. It
// changes the bytes. The lengths in the headers stay, so that tools show such a frame as cut off and not as broken.
func scrub(f Frame, p *Packet) Frame {
	at := len(f.Bytes) - p.tail
	payload := f.Bytes[at:]
	switch {
	case p.Kind == TFTP && p.TFTP.Op == Data:
		payload = payload[:min(len(payload), 4)]
	case p.Kind == TCP && p.TCP.Status != 0:
		if i := bytes.Index(payload, []byte("\r\n\r\n")); i >= 0 {
			payload = payload[:i+4]
		}
	case p.Kind == TCP && p.TCP.Method != "":
		line, _, _ := bytes.Cut(payload, []byte("\r\n"))
		payload = payload[:min(len(payload), len(line)+2)]
		copy(payload, withoutKey(string(line)))
	case p.Kind == TCP && p.TCP.Alert == 0:
		payload = nil
	}
	f.Bytes = f.Bytes[:at+len(payload)]
	return f
}
