// Package lookup keeps in memory what each packet asks for: which machines are known, which subnets there are, and who was
// seen on the network. The store is the truth; these are copies that follow it.
package lookup

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/lease"
)

// strangers are the limits for machines that nobody has accepted: an eighth of each subnet's addresses is kept for
// those that are known, a switch port has room for 32, and an offer holds for four tries of firmware.
var strangers = lease.Limits{KeptPart: 8, PerPort: 32, OfferFor: 15 * time.Second}

func isNotFound(err error) bool {
	var e *inventory.Error
	return errors.As(err, &e) && e.Kind == inventory.NotFound
}

// known has the MACs of accepted hosts and of reservations: the limits for unaccepted machines do not hold for these. The listeners look
// each packet up, so known is in memory.
type known struct {
	store inventory.Store

	mu       sync.RWMutex
	macs     map[[6]byte]int // how many hosts and reservations have it
	ofHost   map[inventory.HostID][][6]byte
	reserved [][6]byte
}

func newKnown(store inventory.Store) *known {
	return &known{store: store, macs: map[[6]byte]int{}, ofHost: map[inventory.HostID][][6]byte{}}
}

// Has reports whether a MAC is known.
func (k *known) Has(mac [6]byte) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.macs[mac] > 0
}

func (k *known) HasMAC(m inventory.MAC) bool {
	b, ok := macBytes(m)
	return ok && k.Has(b)
}

// hasHost reports whether a host is known to be accepted.
func (k *known) hasHost(id inventory.HostID) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.ofHost[id] != nil
}

// macBytes reads a MAC as the inventory writes it.
func macBytes(m inventory.MAC) (b [6]byte, ok bool) {
	if len(m) != 17 {
		return b, false
	}
	for i := range b {
		if i > 0 && m[3*i-1] != ':' {
			return b, false
		}
		if _, err := hex.Decode(b[i:i+1], []byte(m[3*i:3*i+2])); err != nil {
			return b, false
		}
	}
	return b, true
}

// KnownPage is how many hosts or reservations one query reads.
const KnownPage = 1000

// Load reads all hosts and reservations.
func (k *known) Load(tx inventory.Tx) error {
	for after := ""; ; {
		hosts, err := tx.ListHosts(inventory.HostFilter{}, inventory.Page{After: after, Limit: KnownPage})
		if err != nil {
			return err
		}
		for i := range hosts {
			k.setHost(&hosts[i])
		}
		if len(hosts) < KnownPage {
			break
		}
		after = hosts[len(hosts)-1].Name
	}
	return k.loadReservations(tx)
}

func (k *known) loadReservations(tx inventory.Tx) error {
	all, err := tx.ListReservations("", inventory.Page{})
	if err != nil {
		return err
	}
	var macs []inventory.MAC
	for _, r := range all {
		macs = append(macs, r.MAC)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reserved = k.replace(k.reserved, macs)
	return nil
}

// setHost takes over what a host is now: one that nobody has accepted is a stranger.
func (k *known) setHost(h *inventory.Host) {
	var macs []inventory.MAC
	if h.State != inventory.Discovered {
		macs = h.MACs()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := k.replace(k.ofHost[h.ID], macs); now == nil {
		delete(k.ofHost, h.ID)
	} else {
		k.ofHost[h.ID] = now
	}
}

// replace counts MACs in place of others and returns them.
func (k *known) replace(old [][6]byte, macs []inventory.MAC) (now [][6]byte) {
	for _, b := range old {
		if k.macs[b]--; k.macs[b] <= 0 {
			delete(k.macs, b)
		}
	}
	for _, m := range macs {
		if b, ok := macBytes(m); ok {
			k.macs[b]++
			now = append(now, b)
		}
	}
	return now
}

// Hear takes over what an event says has changed.
func (k *known) Hear(ctx context.Context, e inventory.Event) error {
	noun, _, _ := strings.Cut(e.Subject, "/")
	switch {
	case e.Kind == inventory.EventChanged && noun == "import":
		return k.store.Read(ctx, k.Load)
	case e.Kind == inventory.EventChanged && noun == "reservation":
		return k.store.Read(ctx, k.loadReservations)
	case e.HostID == "":
		return nil
	}
	switch e.Kind {
	case inventory.EventHostChanged, inventory.EventHostDeleted, inventory.EventInspected:
	case inventory.EventStateChanged:
		if k.hasHost(e.HostID) { // it is accepted, which no state takes back
			return nil
		}
	default:
		return nil
	}
	return k.store.Read(ctx, func(tx inventory.Tx) error {
		h, err := tx.FindHost(e.HostID)
		if isNotFound(err) {
			k.setHost(&inventory.Host{ID: e.HostID, State: inventory.Discovered})
			return nil
		}
		if err == nil {
			k.setHost(&h)
		}
		return err
	})
}
