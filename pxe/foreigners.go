package pxe

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// The bounds of what is remembered of other servers.
const (
	ForeignersAtMost = 64
	ForeignForgotten = time.Hour        // a server that has been silent for so long is gone
	ForeignTellEvery = 30 * time.Second // how often one that goes on is told of
)

// Foreigners are the other DHCP servers that Slipway has noticed, in bounded memory. In a full table, a new server
// replaces one that Slipway knows only from a machine's REQUEST. A new server of that sort is not added. The zero value
// is empty and ready.
type Foreigners struct {
	mu  sync.Mutex
	all map[foreignID]*foreignEntry
}

type foreignID struct {
	iface   string
	name    string // ForeignServer.Name
	isHeard bool
}

type foreignEntry struct {
	ForeignServer
	toldAt time.Time
}

// Note adds a sighting of a server, and fills in when it was first noticed. isNews says that the caller should report
// it.
func (t *Foreigners) Note(f *ForeignServer, now time.Time) (isNews bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := foreignID{f.Interface, f.Name(), f.IsHeard}
	e := t.all[k]
	if e == nil || now.Sub(e.LastAt) > ForeignForgotten {
		if e == nil && !t.makeRoom(f, now) {
			return false
		}
		e = &foreignEntry{ForeignServer: *f}
		e.SinceAt = now
		if t.all == nil {
			t.all = map[foreignID]*foreignEntry{}
		}
		t.all[k] = e
	}
	if f.Server.IsValid() {
		e.Server = f.Server
	}
	if f.MAC != "" {
		e.MAC = f.MAC
	}
	e.LastAt, e.IsProxy = now, f.IsProxy
	*f = e.ForeignServer
	if now.Sub(e.toldAt) < ForeignTellEvery {
		return false
	}
	e.toldAt = now
	return true
}

// makeRoom drops what is old, and for a server that was heard one that was only named.
func (t *Foreigners) makeRoom(f *ForeignServer, now time.Time) bool {
	if len(t.all) < ForeignersAtMost {
		return true
	}
	for k, e := range t.all {
		if now.Sub(e.LastAt) > ForeignForgotten || f.IsHeard && !k.isHeard {
			delete(t.all, k)
			return true
		}
	}
	return false
}

// List returns the servers that were noticed in the last hour, in order.
func (t *Foreigners) List(now time.Time) (all []ForeignServer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, e := range t.all {
		if now.Sub(e.LastAt) > ForeignForgotten {
			delete(t.all, k)
			continue
		}
		all = append(all, e.ForeignServer)
	}
	slices.SortFunc(all, func(a, b ForeignServer) int {
		if c := cmp.Or(cmp.Compare(a.Interface, b.Interface), a.Server.Compare(b.Server), cmp.Compare(a.DUID, b.DUID)); c != 0 || a.IsHeard == b.IsHeard {
			return c
		}
		if a.IsHeard {
			return -1
		}
		return 1
	})
	return all
}
