package net_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/test/history"
)

// There are fewer addresses than machines, so that they meet.
const (
	addressN = 4
	machineN = 8
)

func addressOf(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, 1, byte(1 + n)}) }

func machineMACs() (all []inventory.MAC) {
	for n := range machineN {
		all = append(all, inventory.MAC(fmt.Sprintf("52:54:00:00:00:%02x", n)))
	}
	return all
}

const (
	offerFor   = time.Second             // a machine waits for an offer
	ackFor     = 1500 * time.Millisecond // and for an acknowledgement, before it begins again
	patientFor = 14 * time.Second        // or, if it is patient, as long as the client of an operating system
	lateFor    = 16 * time.Second        // an acknowledgement counts, however late it comes
	holdFor    = 2 * time.Second         // at most, before it renews or releases its address
)

// air is the network of the machines: one socket for all, and for each question where its answer goes.
type air struct {
	conn net.PacketConn
	mu   sync.Mutex
	asks map[dhcpv4.TransactionID]chan *dhcpv4.DHCPv4
}

func newAir(p *past) *air {
	w := &air{conn: p.Socket(p.servers[0].Net.Client, p.servers[0].Net.ClientIf, 68), asks: map[dhcpv4.TransactionID]chan *dhcpv4.DHCPv4{}}
	go w.hear()
	return w
}

func (w *air) hear() {
	buf := make([]byte, 2048)
	for {
		n, _, err := w.conn.ReadFrom(buf)
		if err != nil {
			return // the test has ended
		}
		m, err := dhcpv4.FromBytes(buf[:n])
		if err != nil {
			continue
		}
		w.mu.Lock()
		if to := w.asks[m.TransactionID]; to != nil {
			select {
			case to <- m:
			default:
			}
		}
		w.mu.Unlock()
	}
}

// send sends a message to all servers. It returns where the answers come, until forget.
func (w *air) send(m *dhcpv4.DHCPv4) (answers <-chan *dhcpv4.DHCPv4, forget func(), err error) {
	to := make(chan *dhcpv4.DHCPv4, 8)
	w.mu.Lock()
	w.asks[m.TransactionID] = to
	w.mu.Unlock()
	_, err = w.conn.WriteTo(m.ToBytes(), &net.UDPAddr{IP: net.IPv4bcast, Port: 67})
	return to, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.asks, m.TransactionID)
	}, err
}

// machine is one that asks for an address as real ones do: any server that hears it may answer.
type machine struct {
	*asker
	mac inventory.MAC
	// isPatient says that it waits for the server that has made the offer. Others ask all servers again soon, so that addresses are taken.
	isPatient bool
	may       map[string]bool // addresses that may be its own, as far as it knows
	has       string          // the address of the last acknowledgement
}

func (m *machine) message(kind dhcpv4.MessageType, more ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	m.T.Helper()
	return message(m.T, kind, string(m.mac), append([]dhcpv4.Modifier{dhcpv4.WithBroadcast(true)}, more...)...)
}

// live is one of the things that a machine does.
func (m *machine) live() {
	if m.has == "" {
		m.boot()
		return
	}
	time.Sleep(time.Duration(m.dice.Int64N(int64(holdFor))))
	switch {
	case m.dice.IntN(2) == 0:
		m.renew()
	default:
		m.release()
	}
}

// boot asks for an offer, and takes it.
func (m *machine) boot() {
	answers, forget, err := m.air.send(m.message(dhcpv4.MessageTypeDiscover))
	if err != nil {
		m.T.Error(err)
	}
	defer forget()
	var offer *dhcpv4.DHCPv4
	select {
	case offer = <-answers:
	case <-time.After(offerFor):
		return
	}
	at := offer.YourIPAddr.String()
	for other := range m.may { // it has one address: by another one it gives up what it had
		if other != at {
			m.ask(history.Request{Model: history.Leases, Key: other, Do: history.Give, Who: string(m.mac)}, func(*history.Answer) error {
				return errors.New("nobody is told")
			})
			delete(m.may, other)
		}
	}
	m.take(at, false, m.message(dhcpv4.MessageTypeRequest, dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(offer.YourIPAddr)),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(offer.ServerIdentifier()))))
}

// renew asks for the address again that the machine has, as one that has not heard of its server for long (REBINDING).
func (m *machine) renew() {
	m.take(m.has, true, m.message(dhcpv4.MessageTypeRequest, dhcpv4.WithClientIP(net.ParseIP(m.has))))
}

// take sends a request. The machine begins again soon, but an acknowledgement is a promise also when it comes late.
func (m *machine) take(at string, isOwn bool, request *dhcpv4.DHCPv4) {
	m.may[at], m.has = true, ""
	heard := make(chan history.Answer, 1)
	m.work.Go(func() {
		a, err := m.journal.Ask(history.Request{Model: history.Leases, Key: at, Do: history.Take, Who: string(m.mac)}, func() history.Answer {
			answers, forget, err := m.air.send(request)
			if err != nil {
				m.T.Error(err)
			}
			defer forget()
			late, over := time.After(lateFor), m.ctx.Done()
			for {
				select {
				case <-over:
					late, over = time.After(ackFor), nil
				case r := <-answers:
					switch {
					case r.MessageType() == dhcpv4.MessageTypeAck:
						return history.Answer{Is: history.Done}
					case r.MessageType() == dhcpv4.MessageTypeNak && isOwn:
						return history.Answer{Is: history.Refused, Holder: history.Another}
					case r.MessageType() == dhcpv4.MessageTypeNak:
						return history.Answer{Is: history.Failed}
					}
				case <-late:
					return history.Answer{Is: history.Unknown}
				}
			}
		})
		if err != nil {
			m.T.Error(err)
		}
		heard <- a
	})
	select {
	case a := <-heard:
		if a.Is == history.Done {
			m.has = at
		}
	case <-time.After(m.patience()):
	}
}

func (m *machine) patience() time.Duration {
	if m.isPatient && m.ctx.Err() == nil {
		return patientFor
	}
	return ackFor
}

// release gives an address back. Nobody acknowledges that, so the machine reads whether a server has heard it.
func (m *machine) release() {
	at := m.has
	m.has = ""
	delete(m.may, at)
	m.ask(history.Request{Model: history.Leases, Key: at, Do: history.Give, Who: string(m.mac)}, func(*history.Answer) error {
		for n := range 30 {
			if n%10 == 0 {
				_, forget, err := m.air.send(m.message(dhcpv4.MessageTypeRelease, dhcpv4.WithClientIP(net.ParseIP(at))))
				if err != nil {
					return err
				}
				forget()
			}
			time.Sleep(100 * time.Millisecond)
			if is := m.readLease(at, m.api()); is.Is == history.Done && is.Holder != string(m.mac) {
				return nil
			}
		}
		return errors.New("nobody has heard it")
	})
}
