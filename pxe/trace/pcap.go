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

// AppendPCAP appends frames as a capture file.
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

// AppendFrame appends a frame to a capture file.
func AppendFrame(b []byte, f Frame) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(f.At.Unix()))
	b = le.AppendUint32(b, uint32(f.At.Nanosecond()/1000))
	b = le.AppendUint32(b, uint32(len(f.Bytes)))
	b = le.AppendUint32(b, uint32(max(f.Len, len(f.Bytes))))
	return append(b, f.Bytes...)
}

var errNoPCAP = errors.New("no capture file of Ethernet frames with times in microseconds")

// ParsePCAP reads a capture file that AppendPCAP or tcpdump has written. A last record that is cut off is left out.
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
