package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// surge is a load of full exchanges, each of a new client behind one relay, as perfdhcp makes it; but it keeps rates that
// perfdhcp does not. It lives in one thread.
type surge struct {
	rate   int // new clients per second, whatever becomes of them; 0: as many as are answered
	flight int // of those, clients that wait for an answer at a time
	during time.Duration
}

// surged is what became of a surge.
type surged struct {
	sent, acks int
	took       time.Duration
}

// goodput is exchanges per second that ended with an ACK.
func (s surged) goodput() float64 { return float64(s.acks) / s.took.Seconds() }

const (
	surgeBatch  = 64
	surgePacket = 512
	// surgePatience is how long a client waits that is replaced by another when nothing comes.
	surgePatience = 200 * time.Millisecond
)

// run runs the load in a namespace.
func (s surge) run(ns string) (got surged, err error) {
	err = onClientCPU(ns, func() error {
		conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: surgeFrom, Port: 67})
		if err != nil {
			return fmt.Errorf("take the relay's address: %w", err)
		}
		defer conn.Close()
		raw, err := conn.SyscallConn()
		if err != nil {
			return err
		}
		_ = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, clientBuffer)
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, clientBuffer)
		})
		got, err = s.drive(ipv4.NewPacketConn(conn))
		return err
	})
	return got, err
}

// drive sends and answers until the time is over, and then waits for what is on its way.
func (s surge) drive(conn *ipv4.PacketConn) (got surged, err error) {
	in, out := surgeMessages(), surgeMessages()
	began := time.Now()
	heard, waiting := began, 0
	for {
		now := time.Now()
		elapsed := now.Sub(began)
		isOver := elapsed >= s.during
		if isOver && now.Sub(heard) > surgePatience {
			break
		}
		due := s.flight - waiting
		if s.rate > 0 {
			due = int(elapsed.Seconds()*float64(s.rate)) - got.sent
		} else if now.Sub(heard) > surgePatience {
			due = s.flight
		}
		n := 0
		for ; !isOver && n < min(due, surgeBatch); n++ {
			out[n].Buffers[0] = appendDiscover(out[n].Buffers[0][:0], uint32(got.sent+n))
		}
		if err := writeAll(conn, out[:n]); err != nil {
			return got, err
		}
		got.sent += n
		waiting += n
		n, err := conn.ReadBatch(in, unix.MSG_DONTWAIT)
		if err != nil && !errors.Is(err, unix.EAGAIN) {
			return got, fmt.Errorf("read answers: %w", err)
		}
		asks := 0
		for i := range in[:max(n, 0)] {
			heard = now
			switch b := in[i].Buffers[0][:in[i].N]; kindOf(b) {
			case 2:
				out[asks].Buffers[0] = appendRequest(out[asks].Buffers[0][:0], b)
				asks++
			case 5:
				waiting--
				if !isOver {
					got.acks++
				}
			}
		}
		if err := writeAll(conn, out[:asks]); err != nil {
			return got, err
		}
		if n <= 0 && due <= 0 {
			time.Sleep(50 * time.Microsecond)
		}
	}
	got.took = s.during
	return got, nil
}

func surgeMessages() []ipv4.Message {
	ms := make([]ipv4.Message, surgeBatch)
	for i := range ms {
		ms[i] = ipv4.Message{Buffers: [][]byte{make([]byte, surgePacket)}}
	}
	return ms
}

// surgeTo is where the load goes, and surgeFrom the relay that it comes through.
var (
	surgeTo   = &net.UDPAddr{IP: net.ParseIP(serverAddress).To4(), Port: 67}
	surgeFrom = net.ParseIP(clientAddress).To4()
)

func writeAll(conn *ipv4.PacketConn, ms []ipv4.Message) error {
	for i := range ms {
		ms[i].Addr = surgeTo
	}
	for len(ms) > 0 {
		n, err := conn.WriteBatch(ms, 0)
		if err != nil {
			return fmt.Errorf("send: %w", err)
		}
		ms = ms[n:]
	}
	return nil
}

// appendDiscover appends the DISCOVER of the client with a number, as its relay passes it on.
func appendDiscover(b []byte, number uint32) []byte {
	b = append(b, 1, 1, 6, 1)
	b = binary.BigEndian.AppendUint32(b, number)
	b = append(b, make([]byte, 16)...)
	b = append(b, surgeFrom...)
	b = append(b, 2, 0xca)
	// Neighbours in time are no neighbours in the server's tables, as with real network cards.
	b = binary.BigEndian.AppendUint32(b, number*2654435761)
	b = append(b, make([]byte, 10+64+128)...)
	b = append(b, 0x63, 0x82, 0x53, 0x63, 53, 1, 1)
	return append(append(b, surgeAsks...), 255)
}

// surgeAsks is the list of options that perfdhcp asks for.
var surgeAsks = []byte{55, 7, 1, 28, 2, 3, 15, 6, 12}

// appendRequest appends the REQUEST that takes an offer.
func appendRequest(b, offer []byte) []byte {
	b = append(b, offer[:240]...)
	b[0], b[3] = 1, 1
	clear(b[16:24])
	b = append(append(b, 53, 1, 3, 50, 4), offer[16:20]...)
	b = append(append(b, 54, 4), surgeTo.IP...)
	return append(append(b, surgeAsks...), 255)
}

// kindOf returns the type of a reply; every server says it first.
func kindOf(b []byte) byte {
	if len(b) < 243 || b[0] != 2 || b[240] != 53 {
		return 0
	}
	return b[242]
}
