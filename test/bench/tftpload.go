package bench

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// tftpLoad is machines that fetch one file over TFTP at the same time. They live in one thread and call the kernel
// directly, so that what is measured is the server.
type tftpLoad struct {
	server  netip.AddrPort
	file    string
	size    int
	window  int     // 0: the option is not asked for
	clients int     // at once
	loss    float64 // share of the blocks that do not arrive
}

// tftpClient is one machine.
type tftpClient struct {
	load    *tftpLoad
	fd      int
	peer    unix.Sockaddr // the transfer's; nil before its first packet
	window  int
	got     int    // bytes
	last    uint16 // block
	inBatch int
	said    []byte // sent last
	saidAt  time.Time
	took    time.Duration
}

const (
	tftpBlock   = 1468
	tftpPatient = time.Second // as long as most firmware, and longer than any server needs for a lost block
	tftpFor     = 2 * time.Minute
)

// run fetches the file with all clients and returns how long each took, and all of them.
func (l *tftpLoad) run() (each []time.Duration, all time.Duration, err error) {
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, 0, fmt.Errorf("wait for packets: %w", err)
	}
	defer unix.Close(poll)
	running := map[int]*tftpClient{}
	defer func() {
		for fd := range running {
			unix.Close(fd)
		}
	}()
	began := time.Now()
	for i := range l.clients {
		c, err := l.ask(i)
		if err != nil {
			return nil, 0, err
		}
		running[c.fd] = c
		if err := unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, c.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.fd)}); err != nil {
			return nil, 0, fmt.Errorf("wait for packets: %w", err)
		}
	}
	events := make([]unix.EpollEvent, 256)
	buf := make([]byte, 2048)
	for checked := began; len(running) > 0; {
		n, err := unix.EpollWait(poll, events, 100)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return nil, 0, fmt.Errorf("wait for packets: %w", err)
		}
		now := time.Now()
		for _, e := range events[:max(n, 0)] {
			c := running[int(e.Fd)]
			isDone, err := c.receive(buf, now)
			if err != nil {
				return nil, 0, err
			}
			if isDone {
				c.took = now.Sub(began)
				each = append(each, c.took)
				delete(running, c.fd)
				unix.Close(c.fd)
			}
		}
		if now.Sub(checked) < 100*time.Millisecond {
			continue
		}
		checked = now
		if now.Sub(began) > tftpFor {
			return nil, 0, fmt.Errorf("%d of %d clients have no whole file after %s", len(running), l.clients, tftpFor)
		}
		for _, c := range running {
			if now.Sub(c.saidAt) > tftpPatient {
				c.say(c.said, now)
			}
		}
	}
	return each, time.Since(began), nil
}

// ask sends the request of the client with that number, from an address of its own.
func (l *tftpLoad) ask(i int) (*tftpClient, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("make a socket: %w", err)
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 1<<20)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{10, 99, byte(128 + i/250), byte(1 + i%250)}}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("take a machine's address: %w", err)
	}
	c := &tftpClient{load: l, fd: fd, window: 1}
	request := "\x00\x01" + l.file + "\x00octet\x00blksize\x00" + strconv.Itoa(tftpBlock) + "\x00"
	if l.window > 0 {
		request += "windowsize\x00" + strconv.Itoa(l.window) + "\x00"
	}
	c.say([]byte(request), time.Now())
	return c, nil
}

// say sends a packet, to the server's own port until the transfer has one; a lost packet is said again.
func (c *tftpClient) say(p []byte, now time.Time) {
	to := c.peer
	if to == nil {
		to = &unix.SockaddrInet4{Addr: c.load.server.Addr().As4(), Port: int(c.load.server.Port())}
	}
	c.said, c.saidAt = p, now
	_ = unix.Sendto(c.fd, p, 0, to)
}

// receive takes all packets that are there, and reports whether the file is whole.
func (c *tftpClient) receive(buf []byte, now time.Time) (isDone bool, err error) {
	for {
		n, from, err := unix.Recvfrom(c.fd, buf, 0)
		if err != nil {
			return false, nil // there is none
		}
		if n < 4 {
			return false, fmt.Errorf("a packet of %d bytes", n)
		}
		c.peer = cmp.Or(c.peer, from)
		number := binary.BigEndian.Uint16(buf[2:])
		switch op := binary.BigEndian.Uint16(buf); {
		case op == 6:
			c.window = 1
			if windowOf(buf[2:n]) {
				c.window = c.load.window
			}
			c.say([]byte{0, 4, 0, 0}, now)
		case op != 3:
			return false, fmt.Errorf("the server sent %q", buf[:n])
		case c.load.loss > 0 && rand.Float64() < c.load.loss:
		case number != c.last+1:
			if number == c.last && c.window == 1 || number-c.last < 1<<15 && c.inBatch != 0 {
				c.inBatch = 0
				c.acknowledge(now)
			}
		default:
			c.last = number
			c.got += n - 4
			c.inBatch++
			isLast := n-4 < tftpBlock
			if isLast || c.inBatch == c.window {
				c.inBatch = 0
				c.acknowledge(now)
			}
			if isLast {
				if c.got != c.load.size {
					return false, fmt.Errorf("%d bytes instead of %d", c.got, c.load.size)
				}
				return true, nil
			}
		}
	}
}

func (c *tftpClient) acknowledge(now time.Time) {
	c.say(binary.BigEndian.AppendUint16([]byte{0, 4}, c.last), now)
}

// windowOf reports whether the server took the window.
func windowOf(options []byte) bool {
	const name = "windowsize\x00"
	for i := range options {
		if len(options)-i >= len(name) && string(options[i:i+len(name)]) == name {
			return true
		}
	}
	return false
}
