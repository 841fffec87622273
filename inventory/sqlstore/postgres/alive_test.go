package postgres

import (
	"net"
	"testing"
	"time"
)

// A goroutine of pgx may wait for data of a connection that is idle. A question whether data are there does not wait with it.
func TestAConnectionThatIsReadElsewhereIsPeekedAtOnce(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = c.Read(make([]byte, 1))
	}()
	time.Sleep(20 * time.Millisecond) // it reads
	said := make(chan error, 1)
	go func() {
		has, err := hasArrived(c)
		if has {
			t.Error("something has arrived")
		}
		said <- err
	}()
	select {
	case err := <-said:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("the question waits for the reader")
	}
	if _, err := server.Write([]byte("xy")); err != nil {
		t.Fatal(err)
	}
	<-ended
	for until := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		if has, err := hasArrived(c); has || err != nil || time.Now().After(until) {
			if !has || err != nil {
				t.Errorf("nothing has arrived: %v", err)
			}
			break
		}
	}
	server.Close()
	_, _ = c.Read(make([]byte, 1))
	for until := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := hasArrived(c); err != nil {
			break
		}
		if time.Now().After(until) {
			t.Error("the end is not seen")
			break
		}
	}
}
