package ear

import (
	"errors"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func pair(t *testing.T) (e *Ear, peer int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if e, err = New(fds[0]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close(); unix.Close(fds[1]) })
	return e, fds[1]
}

func TestWaitEndsWithEachPacket(t *testing.T) {
	e, peer := pair(t)
	heard := make(chan error)
	go func() {
		for range 3 {
			err := e.Wait()
			if err == nil {
				_, err = e.Use(func(fd int) (int, error) { return unix.Read(fd, make([]byte, 8)) })
			}
			heard <- err
		}
	}()
	for range 3 {
		select {
		case <-heard:
			t.Fatal("it heard what nobody said")
		case <-time.After(10 * time.Millisecond):
		}
		if _, err := unix.Write(peer, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := <-heard; err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatCameBeforeIsHeard(t *testing.T) {
	e, peer := pair(t)
	if _, err := unix.Write(peer, []byte("x")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // nobody has read it
		if err := e.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCloseEndsAWait(t *testing.T) {
	e, _ := pair(t)
	ended := make(chan error)
	go func() { ended <- e.Wait() }()
	time.Sleep(10 * time.Millisecond)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("a wait on a closed socket says that something came")
	}
	if _, err := e.Use(func(int) (int, error) { return 1, nil }); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if err := e.Wait(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
