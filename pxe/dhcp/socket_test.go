package dhcp

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// loopback is a socket of ours on the loopback interface and a client of it.
func loopback(t *testing.T) (*udpSocket, *net.UDPConn) {
	t.Helper()
	s, err := listenUDP("lo", 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	var own unix.Sockaddr
	if _, err := s.Use(func(fd int) (_ int, err error) {
		own, err = unix.Getsockname(fd)
		return 0, err
	}); err != nil {
		t.Fatal(err)
	}
	c, err := net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: own.(*unix.SockaddrInet4).Port})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	return s, c
}

func rooms(n, size int) []datagram {
	ms := make([]datagram, n)
	for i := range ms {
		ms[i].b = make([]byte, size)
	}
	return ms
}

func TestASocketReadsWhatCame(t *testing.T) {
	s, c := loopback(t)
	want := map[string]bool{}
	for i := range 100 {
		text := fmt.Sprintf("packet %d", i)
		want[text] = true
		if _, err := c.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	from := c.LocalAddr().(*net.UDPAddr).AddrPort()
	for len(want) > 0 {
		ms := rooms(16, 64)
		n, err := s.read(ms)
		if err != nil || n == 0 {
			t.Fatal(n, err)
		}
		for _, m := range ms[:n] {
			if !want[string(m.b)] || m.peer != from || m.local != netip.MustParseAddr("127.0.0.1") || m.isCut {
				t.Fatalf("read %+v", m)
			}
			delete(want, string(m.b))
		}
	}
}

func TestASocketWaitsForPackets(t *testing.T) {
	s, c := loopback(t)
	for i := range 5 { // each time it has found nothing before
		go func() {
			time.Sleep(10 * time.Millisecond)
			_, _ = c.Write([]byte{byte(i)})
		}()
		ms := rooms(4, 64)
		if n, err := s.read(ms); n != 1 || err != nil || ms[0].b[0] != byte(i) {
			t.Fatal(n, err, ms[0])
		}
	}
}

func TestALongPacketIsMarked(t *testing.T) {
	s, c := loopback(t)
	_, _ = c.Write(make([]byte, 65))
	ms := rooms(1, 64)
	if n, err := s.read(ms); n != 1 || err != nil || !ms[0].isCut {
		t.Error(n, err, ms[0].isCut)
	}
}

func TestCloseEndsARead(t *testing.T) {
	s, _ := loopback(t)
	done := make(chan error)
	go func() {
		_, err := s.read(rooms(1, 64))
		done <- err
	}()
	time.Sleep(10 * time.Millisecond)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-done:
		if err == nil {
			t.Error("a read of a closed socket returned packets")
		}
	case <-time.After(5 * time.Second):
		t.Fatal("a read went on after Close")
	}
	_, read := s.read(rooms(1, 64))
	_, write := s.write([]datagram{{b: []byte("x"), peer: netip.MustParseAddrPort("127.0.0.1:9")}})
	if !errors.Is(read, net.ErrClosed) || !errors.Is(write, net.ErrClosed) {
		t.Errorf("after Close: %v, %v", read, write)
	}
	if err := s.Close(); !errors.Is(err, net.ErrClosed) && err == nil {
		t.Error("closed twice without a word")
	}
}

func TestASocketSendsMany(t *testing.T) {
	s, c := loopback(t)
	to := c.LocalAddr().(*net.UDPAddr).AddrPort()
	local := netip.MustParseAddr("127.0.0.1")
	var ms []datagram
	var want []string
	for i := range 100 {
		b := bytes.Repeat([]byte{byte(i)}, 300)
		if i%10 == 9 {
			b = b[:290]
		}
		ms = append(ms, datagram{b: b, peer: to, local: local})
		want = append(want, string(b))
	}
	for rest := ms; len(rest) > 0; {
		n, err := s.write(rest)
		if err != nil || n == 0 {
			t.Fatal(n, err)
		}
		rest = rest[n:]
	}
	var got []string
	for range ms {
		b := make([]byte, 2048)
		n, err := c.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(b[:n]))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d packets came out otherwise", len(got))
	}
}

func TestAPacketWithoutAWayCostsOnlyItself(t *testing.T) {
	s, c := loopback(t)
	to := c.LocalAddr().(*net.UDPAddr).AddrPort()
	ms := []datagram{
		{b: []byte("a"), peer: to}, {b: []byte("b"), peer: netip.MustParseAddrPort("255.255.255.255:0")}, {b: []byte("c"), peer: to},
	}
	if n, err := s.write(ms); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := s.write(ms[1:]); n != 0 || err == nil {
		t.Fatal(n, err)
	}
	if n, err := s.write(ms[2:]); n != 1 || err != nil {
		t.Fatal(n, err)
	}
}

func TestPace(t *testing.T) {
	at := time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)
	every := func(p *pace, n, each int, gap time.Duration) {
		for range n {
			p.add(each, 64, at)
			at = at.Add(gap)
		}
	}
	var p pace
	if every(&p, 63, 1, 100*time.Microsecond); p.isThick {
		t.Error("too few packets tell nothing")
	}
	if every(&p, 2, 1, 100*time.Microsecond); !p.isThick {
		t.Error("10,000 packets a second are not thick")
	}
	if every(&p, 200, 1, 250*time.Microsecond); p.isThick {
		t.Error("4,000 packets a second are thick")
	}
	if every(&p, 20, 16, time.Millisecond); !p.isThick {
		t.Error("16 packets each millisecond are not thick")
	}
	if p.gather() == 0 {
		t.Error("thick packets are not let gather")
	}
	if p.add(64, 64, at); p.gather() != 0 {
		t.Error("packets that had no room wait for others")
	}
	if p.none(); p.isThick {
		t.Error("no packets are thick")
	}
	for range 64 {
		p.none()
		p.add(1, 64, at)
		at = at.Add(100 * time.Microsecond)
	}
	if !p.isThick {
		t.Error("10,000 packets a second are not thick when each is read alone")
	}
}
