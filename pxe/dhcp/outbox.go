package dhcp

import (
	"net/netip"
	"runtime"
	"sync"
)

// packetOut is an encoded reply on its way. It owns its buffer.
type packetOut struct {
	port  *port
	isPXE bool
	from  netip.Addr
	mac   hardwareAddr
	to    destination
	buf   *[replySize]byte
	size  int
}

// replySize is the longest reply we ever send: what one Ethernet packet carries.
const replySize = 1500 - ipHeader - udpHeader

// buffers hands out reply buffers for use by any goroutine.
type buffers struct{ pool sync.Pool }

func newBuffers() *buffers {
	return &buffers{pool: sync.Pool{New: func() any { return new([replySize]byte) }}}
}

func (b *buffers) get() *[replySize]byte { return b.pool.Get().(*[replySize]byte) }

// outbox collects replies and sends those of one socket with one system call. It belongs to one goroutine.
type outbox struct {
	buffers *buffers
	metrics *Metrics
	waiting []packetOut
	ms      []datagram
	frame   []byte
}

const outboxSize = 64

func newOutbox(b *buffers, m *Metrics) *outbox {
	return &outbox{buffers: b, metrics: m, waiting: make([]packetOut, 0, outboxSize), ms: make([]datagram, 0, outboxSize)}
}

// add queues a reply, and sends what waits when the box is full. On one processor the sockets' readers get their turn then:
// what the kernel has no room for it drops, a machine's REQUEST like a stranger's DISCOVER.
func (o *outbox) add(p packetOut) {
	o.waiting = append(o.waiting, p)
	if len(o.waiting) == outboxSize {
		o.flush()
		runtime.Gosched()
	}
}

// flush sends everything that waits.
func (o *outbox) flush() {
	for i := 0; i < len(o.waiting); {
		first := &o.waiting[i]
		if first.to.isFrame {
			o.sendFrame(first)
			i++
			continue
		}
		o.ms = o.ms[:0]
		for ; i < len(o.waiting); i++ {
			p := &o.waiting[i]
			if p.to.isFrame || p.port != first.port || p.isPXE != first.isPXE {
				break
			}
			o.ms = append(o.ms, datagram{b: p.buf[:p.size], peer: p.to.to, local: p.from})
		}
		o.send(first)
	}
	for i := range o.waiting {
		o.buffers.pool.Put(o.waiting[i].buf)
		o.waiting[i] = packetOut{}
	}
	o.waiting = o.waiting[:0]
}

// send writes the messages of one socket. The kernel stops at the first that it refuses: that one is given up, and
// the rest goes on.
func (o *outbox) send(first *packetOut) {
	socket := first.port.dhcp
	if first.isPXE {
		socket = first.port.pxe
	}
	for rest := o.ms; len(rest) > 0; {
		n, err := socket.write(rest)
		o.metrics.Sent.Add(float64(n))
		if err != nil {
			o.metrics.SendErrors.Inc()
			n++
		}
		rest = rest[min(n, len(rest)):]
	}
}

func (o *outbox) sendFrame(p *packetOut) {
	o.frame = appendFrame(o.frame[:0], p.port.link.mac, p.mac, p.from, p.to.to.Addr(), p.buf[:p.size])
	if err := p.port.sendFrame(o.frame, p.mac); err != nil {
		o.metrics.SendErrors.Inc()
		return
	}
	o.metrics.Sent.Inc()
}
