package dhcp

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"slipway.dev/slipway/pxe"
)

const (
	foreignersAtMost = 64
	foreignForgotten = time.Hour        // a server that has been silent for so long is gone
	foreignTellEvery = 30 * time.Second // how often one that goes on is told of
)

// foreigners are the other DHCP servers that were noticed, in bounded memory: when the table is full, a server that
// was only named makes room, and a new one that is only named does not.
type foreigners struct {
	mu  sync.Mutex
	all map[foreignKey]*foreignEntry
}

type foreignKey struct {
	iface   string
	server  netip.Addr
	isHeard bool
}

type foreignEntry struct {
	pxe.ForeignServer
	toldAt time.Time
}

// note adds a sign of a server and fills in since when it is known; isNews says that it should be told of.
func (t *foreigners) note(f *pxe.ForeignServer, now time.Time) (isNews bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := foreignKey{f.Interface, f.Server, f.IsHeard}
	e := t.all[k]
	if e == nil || now.Sub(e.LastAt) > foreignForgotten {
		if e == nil && !t.makeRoom(f, now) {
			return false
		}
		e = &foreignEntry{ForeignServer: *f}
		e.SinceAt = now
		t.all[k] = e
	}
	if f.MAC != "" {
		e.MAC = f.MAC
	}
	e.LastAt, e.IsProxy = now, f.IsProxy
	*f = e.ForeignServer
	if now.Sub(e.toldAt) < foreignTellEvery {
		return false
	}
	e.toldAt = now
	return true
}

// makeRoom drops what is old, and for a server that was heard one that was only named.
func (t *foreigners) makeRoom(f *pxe.ForeignServer, now time.Time) bool {
	if len(t.all) < foreignersAtMost {
		return true
	}
	for k, e := range t.all {
		if now.Sub(e.LastAt) > foreignForgotten || f.IsHeard && !k.isHeard {
			delete(t.all, k)
			return true
		}
	}
	return false
}

// list returns the servers that were noticed in the last hour, in order.
func (t *foreigners) list(now time.Time) (all []pxe.ForeignServer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, e := range t.all {
		if now.Sub(e.LastAt) > foreignForgotten {
			delete(t.all, k)
			continue
		}
		all = append(all, e.ForeignServer)
	}
	slices.SortFunc(all, func(a, b pxe.ForeignServer) int {
		if a.Interface != b.Interface {
			return compareText(a.Interface, b.Interface)
		}
		if c := a.Server.Compare(b.Server); c != 0 || a.IsHeard == b.IsHeard {
			return c
		}
		if a.IsHeard {
			return -1
		}
		return 1
	})
	return all
}

func compareText(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

// Foreigners returns the other DHCP servers that were noticed in the last hour on the interfaces that are served.
func (s *Server) Foreigners() []pxe.ForeignServer { return s.foreigners.list(s.cfg.Now()) }
