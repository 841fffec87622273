// Package tap captures packets on the boot interfaces. It passes the packets of boots, those of other servers included, to
// the record. The kernel sorts out what is no part of a boot; file contents never come here. It never sends anything, and
// never answers anybody.
package tap

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/bpf"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/pxe/ear"
	"slipway.dev/slipway/pxe/metric"
	"slipway.dev/slipway/pxe/trace"
)

// Config is everything a Server needs.
type Config struct {
	Interfaces []string
	Ports      []int // TCP ports of the boot door
	Record     func(trace.Frame)
	// Knows reports whether a MAC is that of an accepted host. The frames of such hosts come before those of
	// strangers. nil knows no host.
	Knows func(mac [6]byte) bool
	// PerSecond limits the frames that are decoded; 0 means 4000. The kernel drops the rest, because late answers to
	// machines are worse than a record with gaps.
	PerSecond int
	Now       func() time.Time
	Log       *slog.Logger
}

// Server captures the packets of boots.
type Server struct {
	Metrics *Metrics
	cfg     Config
}

// Metrics count the captured packets.
type Metrics struct {
	metric.Set

	Frames  prometheus.Counter
	Dropped prometheus.Counter
}

const (
	perSecond = 4000
	// What strangers say in DHCP is recorded up to a rate: a flood of invented machines is not worth its trace.
	strangersPerSecond = 500
	strangersBurst     = 4000
	burst              = 256 // frames between two looks at the clock
	bufferSize         = 2048
	socketBytes        = 2 << 20
	retryEvery         = 2 * time.Second
	// gatherFor is how long frames wait for others: the record is in no hurry, and who boots is answered meanwhile.
	gatherFor   = 5 * time.Millisecond
	controlSize = 64 // of the kernel's time of a frame
)

// New returns a Server; nothing is opened before Serve.
func New(cfg Config) *Server {
	cfg.PerSecond = cmp.Or(cfg.PerSecond, perSecond)
	if cfg.Knows == nil {
		cfg.Knows = func([6]byte) bool { return false }
	}
	m := metric.New("slipway_tap_")
	return &Server{cfg: cfg, Metrics: &Metrics{
		Set:     m,
		Frames:  m.Counter("frames_total", "Frames of boots that were captured for the record."),
		Dropped: m.Counter("drops_total", "Frames of boots that the record missed because there were too many."),
	}}
}

// Serve captures until ctx is done. It waits for an interface that is missing or down.
func (s *Server) Serve(ctx context.Context) error {
	var g errgroup.Group
	for _, name := range s.cfg.Interfaces {
		g.Go(func() error {
			last := ""
			for ctx.Err() == nil {
				err := s.hear(ctx, name)
				if err != nil && ctx.Err() == nil && err.Error() != last { // the same reason is told once
					last = err.Error()
					s.cfg.Log.Warn("packets not recorded, trying again", "iface", name, "err", err)
				}
				_ = sleep.For(ctx, retryEvery)
			}
			return nil
		})
	}
	return g.Wait()
}

// hear records an interface until it fails or ctx is done.
func (s *Server) hear(ctx context.Context, name string) error {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return fmt.Errorf("find interface %s: %w", name, err)
	}
	filter, err := Filter(s.cfg.Ports)
	if err != nil {
		return err
	}
	socket, err := listen(ifi.Index, filter)
	if err != nil {
		return fmt.Errorf("open packet socket on %s: %w", name, err)
	}
	defer socket.Close()
	stop := context.AfterFunc(ctx, func() { socket.Close() })
	defer stop()
	buf, control := make([]byte, bufferSize), make([]byte, controlSize)
	strangers := rate.NewLimiter(strangersPerSecond, strangersBurst)
	for from, n := s.cfg.Now(), 0; ; n++ {
		var at time.Time
		size, err := socket.Use(func(fd int) (int, error) {
			size, stamped, _, _, err := unix.Recvmsg(fd, buf, control, 0)
			at = stampOf(control[:stamped])
			return size, err
		})
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
			// The sleep after the first frame lets others gather in the socket, so that one wake-up takes many.
			if err := socket.Wait(); err != nil {
				return err
			}
			time.Sleep(gatherFor)
			n--
			continue
		case err != nil:
			return err
		}
		if at.IsZero() {
			at = s.cfg.Now()
		}
		// A flood of invented MACs must not fill the record of real machines.
		if mac, ok := machineOf(buf[:size]); ok && !s.cfg.Knows(mac) && !strangers.AllowN(at, 1) {
			s.Metrics.Dropped.Inc()
		} else {
			s.Metrics.Frames.Inc()
			s.cfg.Record(trace.Frame{At: at, Bytes: buf[:size], Len: size})
		}
		if n < burst {
			continue
		}
		// The kernel resets its count with each question.
		if drops, err := socket.Use(dropsOf); err == nil {
			s.Metrics.Dropped.Add(float64(drops))
		}
		// More than PerSecond: the rest of the second passes here, and the kernel drops and counts what does not fit.
		if early := time.Duration(n)*time.Second/time.Duration(s.cfg.PerSecond) - s.cfg.Now().Sub(from); early > 0 {
			_ = sleep.For(ctx, early)
		}
		from, n = s.cfg.Now(), 0
	}
}

// listen opens a socket for all frames of an interface that the filter lets through.
func listen(ifindex int, filter []bpf.RawInstruction) (*ear.Ear, error) {
	// Without a protocol it hears nothing before it is bound, and so nothing that the filter has not seen.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, socketBytes)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	code := make([]unix.SockFilter, len(filter))
	for i, f := range filter {
		code[i] = unix.SockFilter{Code: f.Op, Jt: f.Jt, Jf: f.Jf, K: f.K}
	}
	err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]})
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: everyProtocol, Ifindex: ifindex})
	}
	var e *ear.Ear
	if err == nil {
		e, err = ear.New(fd)
	}
	if err != nil {
		unix.Close(fd)
	}
	return e, err
}

// everyProtocol is ETH_P_ALL in network byte order.
var everyProtocol = binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL))

// dropsOf returns how many frames a socket had no room for since it was asked last.
func dropsOf(fd int) (int, error) {
	st, err := unix.GetsockoptTpacketStats(fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return 0, err
	}
	return int(st.Drops), nil
}

// stampOf returns when the kernel saw a frame, or zero where it did not say.
func stampOf(control []byte) time.Time {
	if len(control) < unix.SizeofCmsghdr {
		return time.Time{}
	}
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return time.Time{}
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= 16 {
			return time.Unix(int64(binary.NativeEndian.Uint64(m.Data)), int64(binary.NativeEndian.Uint64(m.Data[8:])))
		}
	}
	return time.Time{}
}

// machineOf returns the machine that a DHCP message over IPv4 is from or for; ok is false for any other frame.
func machineOf(frame []byte) (mac [6]byte, ok bool) {
	const udp, chaddr = 17, 28
	if len(frame) < etherNet+20 || binary.BigEndian.Uint16(frame[12:]) != unix.ETH_P_IP || frame[etherNet+9] != udp {
		return mac, false
	}
	at := etherNet + int(frame[etherNet]&15)*4
	if len(frame) < at+8+chaddr+6 {
		return mac, false
	}
	b := frame[at:]
	src, dst := binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	if dst != 67 && dst != 68 || src != 67 && src != 68 {
		return mac, false
	}
	return [6]byte(b[8+chaddr:]), true
}
