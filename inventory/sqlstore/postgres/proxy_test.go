package postgres

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// proxy stands between a DB and its server, and does to the connections what networks do.
type proxy struct {
	listener net.Listener

	mu    sync.Mutex
	to    string // the server of new connections
	links []*link
	delay time.Duration // of each way
}

// link is one connection. A direction that is stopped takes bytes and forwards none: neither side hears of it.
type link struct {
	client, server net.Conn

	mu                           sync.Mutex
	stopsQuestions, stopsAnswers bool
}

func startProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: to}
	t.Cleanup(func() {
		l.Close()
		p.each(func(k *link) { k.client.Close(); k.server.Close() })
	})
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.connect(client)
		}
	}()
	return p
}

func (p *proxy) connect(client net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	server, err := net.Dial("tcp4", p.to)
	if err != nil {
		client.Close()
		return
	}
	k := &link{client: client, server: server}
	p.links = append(p.links, k)
	go p.copy(server, client, func() bool { return k.stopsQuestions }, k)
	go p.copy(client, server, func() bool { return k.stopsAnswers }, k)
}

// copy forwards one direction until one side ends. A connection that is stopped stays open.
func (p *proxy) copy(to, from net.Conn, isStopped func() bool, k *link) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		wait := p.delay
		p.mu.Unlock()
		time.Sleep(wait)
		k.mu.Lock()
		stopped := isStopped()
		k.mu.Unlock()
		if stopped {
			_, _ = io.Copy(io.Discard, from)
			return
		}
		if err != nil {
			to.Close()
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			from.Close()
			return
		}
	}
}

func (p *proxy) each(fn func(*link)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.links {
		fn(k)
	}
}

// stop stops one or both directions of all connections that there are.
func (p *proxy) stop(questions, answers bool) {
	p.each(func(k *link) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.stopsQuestions, k.stopsAnswers = questions, answers
	})
}

func (p *proxy) sendTo(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to = address
}

func (p *proxy) slow(delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = delay
}

// url is the URL of a server with the address of the proxy.
func (p *proxy) url(t *testing.T, of string) string { return at(t, of, p.listener.Addr().String()) }

// at puts other hosts into a URL.
func at(t *testing.T, of, hosts string) string {
	t.Helper()
	u, err := url.Parse(of)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = hosts
	return u.String()
}
