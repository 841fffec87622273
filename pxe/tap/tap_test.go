package tap

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A frame that has waited for others is recorded with the time at which it came.
func TestStampIsWhenItCame(t *testing.T) {
	to, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	raw, err := to.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var sent time.Time
	receive := func() (at time.Time) {
		t.Helper()
		if _, err := to.WriteTo([]byte("frame"), to.LocalAddr()); err != nil {
			t.Fatal(err)
		}
		sent = time.Now().Round(0) // over the loopback it has come by then
		time.Sleep(20 * time.Millisecond)
		buf, control := make([]byte, 16), make([]byte, controlSize)
		failed := raw.Read(func(fd uintptr) bool {
			_, n, _, _, err2 := unix.Recvmsg(int(fd), buf, control, 0)
			err, at = err2, stampOf(control[:n])
			return err2 != unix.EAGAIN
		})
		if err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		return at
	}
	if at := receive(); !at.IsZero() {
		t.Errorf("a socket that was not asked for the time says %s", at)
	}
	if err := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1) }); err != nil {
		t.Fatal(err)
	}
	var before, at time.Time
	for range 50 { // the kernel begins to stamp what comes a moment after it was asked to
		before = time.Now().Round(0)
		if at = receive(); !at.Before(before.Add(-time.Millisecond)) && !at.After(sent.Add(time.Millisecond)) {
			return
		}
	}
	t.Errorf("sent from %s to %s, stamped %s", before, sent, at)
}
