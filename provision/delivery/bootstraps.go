package delivery

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	// bootstrapSecret is the name under which a rendering refers to the data of its machine. A stored secret of that name is
	// not seen by machines that have such data.
	bootstrapSecret = "bootstrap-data"
	// BootstrapFor is how long data are kept that nobody asks for.
	BootstrapFor = 10 * time.Minute
	// WantedEvery is how often Slipway asks for the data of one machine at first, wantedSeldom after many tries without a
	// result.
	WantedEvery  = 5 * time.Second
	wantedSeldom = time.Minute
	maxBootstrap = inventory.MaxConfigBytes
)

// Bootstraps are the bootstrap data of machines, by their UIDs. They are secrets: they never leave memory but to the
// machine itself.
type Bootstraps struct {
	mu     sync.Mutex
	data   map[string]bootstrapData
	wanted map[string]asking
}

// asking is when data were asked for last, and how long nobody is bothered after that.
type asking struct {
	at    time.Time
	pause time.Duration
}

type bootstrapData struct {
	value     []byte
	format    string
	expiresAt time.Time
}

// digest stands for the data in keys and events.
func (d bootstrapData) digest() string {
	// The format counts, too: the same bytes are another configuration in another format.
	sum := sha256.Sum256(append([]byte(d.format+"\x00"), d.value...))
	return hex.EncodeToString(sum[:])
}

func (b *Bootstraps) put(uid string, d bootstrapData) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.data == nil {
		b.data = map[string]bootstrapData{}
	}
	b.data[uid] = d
	// The data are here, so that after a loss Slipway may ask again at once.
	delete(b.wanted, uid)
}

func (b *Bootstraps) find(uid string, now time.Time) (bootstrapData, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d, ok := b.data[uid]
	// The end is checked here, and not by Sweep alone, which runs only now and then.
	if ok && !now.Before(d.expiresAt) {
		delete(b.data, uid)
		return bootstrapData{}, false
	}
	return d, ok
}

// Has reports whether the data of a machine are here.
func (b *Bootstraps) Has(uid string, now time.Time) bool {
	_, ok := b.find(uid, now)
	return ok
}

// keep moves the end of data that are here.
func (b *Bootstraps) keep(uid string, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d, ok := b.data[uid]; ok {
		d.expiresAt = until
		b.data[uid] = d
	}
}

// Drop forgets the data of a machine.
func (b *Bootstraps) Drop(uid string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.data, uid)
	delete(b.wanted, uid)
}

// Sweep drops what has ended.
func (b *Bootstraps) Sweep(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for uid, d := range b.data {
		if !now.Before(d.expiresAt) {
			delete(b.data, uid)
		}
	}
	for uid, a := range b.wanted {
		if now.Sub(a.at) > BootstrapFor {
			delete(b.wanted, uid)
		}
	}
}

// mayAsk reports whether it is time to ask for a machine's data again.
func (b *Bootstraps) mayAsk(uid string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := b.wanted[uid]
	if now.Sub(last.at) < last.pause {
		return false
	}
	if b.wanted == nil {
		b.wanted = map[string]asking{}
	}
	// The pause doubles from 5 seconds to a minute, because a controller may be away for long.
	b.wanted[uid] = asking{now, min(max(WantedEvery, 2*last.pause), wantedSeldom)}
	return true
}
