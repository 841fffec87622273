package ipmi

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
)

// Serial over LAN (IPMI 2.0, 15 and 24).
const (
	instance = 1 // of the payload; all controllers have one

	statusDeactivating = 0x10 // in the fourth byte of the controller's packets

	consoleAlive  = 20 * time.Second // between questions that keep the session open
	consoleSilent = 90 * time.Second // without any answer, until it counts as dead
	consoleTries  = 12               // of one piece of input; each waits for half a second
	consoleWait   = 500 * time.Millisecond
)

// console is an open serial console with a session of its own. Console starts one goroutine, which reads from the
// socket, and Close waits for it. input lets one Write run at a time. send guards the sequence numbers of the
// session, because the reader sends acknowledgements. Only one goroutine may Read.
type console struct {
	s       *session
	maxOut  int // bytes in one packet
	input   sync.Mutex
	send    sync.Mutex // guards the session's numbers
	acks    chan ack
	output  chan []byte
	rest    []byte // of what Read took from output
	done    chan struct{}
	stopped chan struct{}
	once    sync.Once
	err     error // why it ended; set before done is closed
	lastSeq byte  // of ours
	seq     byte  // of theirs that was taken last
	seqN    int   // bytes taken of it
}

// ack says how many bytes of a packet of ours were taken; none when the machine is not ready.
type ack struct {
	seq byte
	n   int
}

// Console implements bmc.Console. It ends another session that holds the console: an admin who left a terminal open
// must not lock out everybody else. ctx bounds the opening only; Close ends the console.
func (d *driver) Console(ctx context.Context) (io.ReadWriteCloser, error) {
	const doing = "open the console"
	l, err := d.credentials(ctx)
	if err != nil {
		return nil, err
	}
	s, err := l.open(ctx)
	if err != nil {
		return nil, err
	}
	got, err := activate(ctx, s)
	// Completion codes from 0x80 belong to Activate Payload: 0x80 is "already active in another session", 0x81
	// "disabled".
	if codeOf(err) == 0x80 { // in use
		if _, err = s.call(ctx, s.tries, netApp, cmdDeactivatePayload, payloadSOL, instance, 0, 0, 0, 0); err == nil || codeOf(err) != 0 {
			got, err = activate(ctx, s)
		}
	}
	var c codeError
	switch {
	case errors.As(err, &c):
		s.close()
		e := reason(d.address, doing, c)
		if c == 0x81 || c == 0xc1 || c == codeNotPermitted || c == codeField {
			e = e.WithHint("turn on Serial over LAN in the controller's settings, and let the user use it")
		}
		return nil, e
	case err != nil:
		s.conn.Close()
		return nil, d.explain(err)
	case len(got) < 8:
		s.close()
		return nil, d.short(doing)
	}
	cons := &console{
		// The controller names the size of its packets, headers of four bytes included. Some name 0, or more than
		// their buffer.
		s: s, maxOut: min(max(int(binary.LittleEndian.Uint16(got[4:]))-4, 1), 200),
		acks: make(chan ack, 16), output: make(chan []byte, 256), done: make(chan struct{}), stopped: make(chan struct{}),
	}
	go cons.receive()
	return cons, nil
}

// activate starts the payload, encrypted and authenticated.
func activate(ctx context.Context, s *session) ([]byte, error) {
	return s.call(ctx, s.tries, netApp, cmdActivatePayload, payloadSOL, instance, 0xc0, 0, 0, 0)
}

// receive reads packets until Close, or until the controller is silent for consoleSilent.
func (c *console) receive() {
	defer close(c.stopped)
	var buf [maxPacket]byte
	for heardAt := time.Now(); ; {
		c.s.conn.SetReadDeadline(time.Now().Add(consoleAlive))
		n, err := c.s.conn.Read(buf[:])
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && time.Since(heardAt) < consoleSilent:
			// Get Device ID, whose answer is not waited for, keeps the session open.
			c.post(payloadIPMI, request(netApp, cmdDeviceID, 0x3f, nil))
			continue
		case errors.Is(err, net.ErrClosed):
			c.end(io.EOF)
			return
		case err != nil:
			c.end(inventory.Errorf(inventory.Unavailable, "the controller of the console does not answer any more"))
			return
		}
		payload, body, err := c.s.open(buf[:n], c.s.local)
		if err != nil {
			continue
		}
		heardAt = time.Now()
		if payload == payloadSOL && len(body) >= 4 && !c.take(body) {
			return
		}
	}
}

// take handles one packet of the controller. It returns false when the controller has ended the console.
//
// The header is: our number, the number of the acknowledged packet, how many of its bytes were taken, status.
func (c *console) take(p []byte) bool {
	seq, acked, status, text := p[0]&0x0f, p[1]&0x0f, p[3], p[4:]
	if acked != 0 {
		select {
		case c.acks <- ack{seq: acked, n: int(p[2])}:
		default: // nobody waits for it
		}
	}
	if seq != 0 {
		c.deliver(seq, text)
	}
	if status&statusDeactivating != 0 {
		c.end(inventory.Errorf(inventory.Unavailable, "the controller ended the console").WithHint("another session may have opened it"))
		return false
	}
	return true
}

// deliver passes output on and acknowledges it. When nobody reads, it does not acknowledge: the controller then sends
// the packet again later, which is the flow control of Serial over LAN. Nothing of the output is lost.
func (c *console) deliver(seq byte, text []byte) {
	fresh := text
	if seq == c.seq { // sent again, perhaps with more at its end
		fresh = text[min(c.seqN, len(text)):]
	}
	if len(fresh) > 0 {
		select {
		case c.output <- append([]byte(nil), fresh...):
		default:
			return
		}
	}
	c.seq, c.seqN = seq, len(text)
	c.post(payloadSOL, []byte{0, seq, byte(len(text)), 0})
}

func (c *console) post(payload byte, body []byte) error {
	c.send.Lock()
	defer c.send.Unlock()
	_, err := c.s.conn.Write(c.s.next(payload, body))
	return err
}

func (c *console) end(err error) {
	c.once.Do(func() {
		c.err = err
		close(c.done)
	})
}

// Read returns what the machine wrote. After the end it first returns what was still waiting, then the reason.
func (c *console) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		select {
		case c.rest = <-c.output:
		default:
			select {
			case c.rest = <-c.output:
			case <-c.done:
				return 0, c.err
			}
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// Write sends input, and returns when the controller has taken all of it. The error is Unavailable when it does not
// within six seconds for a packet.
func (c *console) Write(p []byte) (int, error) {
	c.input.Lock()
	defer c.input.Unlock()
	for sent := 0; ; {
		if sent == len(p) {
			return sent, nil
		}
		n, err := c.typed(p[sent:min(len(p), sent+c.maxOut)])
		if sent += n; err != nil {
			return sent, err
		}
	}
}

// typed sends one packet until the controller acknowledges it, and returns how many of its bytes the controller took.
func (c *console) typed(text []byte) (int, error) {
	c.lastSeq = c.lastSeq%15 + 1 // 1 to 15; 0 is an acknowledgement only
	timer := time.NewTimer(0)
	defer timer.Stop()
	for try := 0; try <= consoleTries; {
		select {
		case <-c.done:
			return 0, c.err
		case a := <-c.acks:
			if a.seq != c.lastSeq {
				continue
			}
			if a.n > 0 {
				return min(a.n, len(text)), nil // the rest goes into a packet of its own
			}
		case <-timer.C:
			if try++; try > consoleTries {
				continue
			}
			if err := c.post(payloadSOL, append([]byte{c.lastSeq, 0, 0, 0}, text...)); err != nil {
				return 0, err
			}
			timer.Reset(consoleWait)
		}
	}
	return 0, inventory.Errorf(inventory.Unavailable, "the controller does not take what is typed").WithHint("the machine may be off")
}

// Close ends the console.
func (c *console) Close() error {
	c.end(io.EOF)
	c.post(payloadIPMI, request(netApp, cmdDeactivatePayload, 0x3e, []byte{payloadSOL, instance, 0, 0, 0, 0}))
	c.send.Lock()
	c.s.close()
	c.send.Unlock()
	<-c.stopped
	return nil
}
