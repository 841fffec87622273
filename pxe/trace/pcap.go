package trace

import (
	"encoding/binary"
	"errors"
	"time"
)

// The classic capture format, which every tool reads: little-endian, times in microseconds, Ethernet.
const (
	pcapMagic    = 0xa1b2c3d4
	pcapHeader   = 24
	pcapRecord   = 16
	pcapEthernet = 1
	pcapSnap     = 262_144
)

// AppendPCAP appends a whole capture file with these frames: header and records. tcpdump and Wireshark read it.
func AppendPCAP(b []byte, frames []Frame) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, pcapMagic)
	b = le.AppendUint16(b, 2)
	b = le.AppendUint16(b, 4)
	b = append(b, make([]byte, 8)...) // time zone and accuracy: unused
	b = le.AppendUint32(b, pcapSnap)
	b = le.AppendUint32(b, pcapEthernet)
	for _, f := range frames {
		b = AppendFrame(b, f)
	}
	return b
}

// AppendFrame appends one record to a capture file that has its header already.
func AppendFrame(b []byte, f Frame) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(f.At.Unix()))
	b = le.AppendUint32(b, uint32(f.At.Nanosecond()/1000))
	b = le.AppendUint32(b, uint32(len(f.Bytes)))
	b = le.AppendUint32(b, uint32(max(f.Len, len(f.Bytes))))
	return append(b, f.Bytes...)
}

var errNoPCAP = errors.New("no capture file of Ethernet frames with times in microseconds")

// ParsePCAP reads a capture file of AppendPCAP or tcpdump. It drops a last record that is cut off: the process may
// have died while it wrote. The frames refer to b. The only error is a header of another format: big-endian,
// nanoseconds, or no Ethernet.
func ParsePCAP(b []byte) ([]Frame, error) {
	le := binary.LittleEndian
	if len(b) < pcapHeader || le.Uint32(b) != pcapMagic || le.Uint32(b[20:]) != pcapEthernet {
		return nil, errNoPCAP
	}
	var frames []Frame
	for b = b[pcapHeader:]; len(b) >= pcapRecord; {
		n := int(le.Uint32(b[8:]))
		if n > pcapSnap || len(b) < pcapRecord+n {
			break
		}
		at := time.Unix(int64(le.Uint32(b)), int64(le.Uint32(b[4:]))*1000).UTC()
		frames = append(frames, Frame{At: at, Bytes: b[pcapRecord : pcapRecord+n], Len: int(le.Uint32(b[12:]))})
		b = b[pcapRecord+n:]
	}
	return frames, nil
}
