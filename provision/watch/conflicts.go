package watch

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/recorder"
)

// IntrudersConfig is everything that Intruders need.
type IntrudersConfig struct {
	*ledger.Ledger // with the time
	Recorder       *recorder.Recorder
	Vendor         func(m inventory.MAC) string // who made a network card; "" when unknown
}

// Intruders are others on our networks: DHCP servers, and machines that use our addresses. Its methods may be called from many
// goroutines, once it is configured.
type Intruders struct {
	cfg       IntrudersConfig
	conflicts conflicts
}

// Configure gives Intruders what they need.
func (in *Intruders) Configure(cfg IntrudersConfig) { in.cfg = cfg }

// conflicts are the addresses of ours that others use: one issue for each network and cause, because one machine can answer
// for as many addresses as it likes.
type conflicts struct {
	mu    sync.Mutex
	byKey map[string]*contested
}

// contested is the addresses of one issue, with when each was found in use.
type contested struct {
	seen   map[netip.Addr]time.Time
	first  []netip.Addr // that the issue names
	toldAt time.Time
}

const (
	contestedNames = 4
	contestedMost  = 4096
	ContestedKinds = 8 // causes of one network
	// ContestedFor is how long an address counts that was found in use.
	ContestedFor = 24 * time.Hour
	toldEvery    = time.Minute
)

// Conflict notes that somebody else uses one of our addresses, and opens the issue of its network.
func (in *Intruders) Conflict(a netip.Addr, subnet string, who inventory.MAC, detail string) {
	now := in.cfg.Now()
	// The text is counted at once and stored later: the caller answers packets, and must not wait for the disk.
	issue, isTold := in.conflicts.Add(a, subnet, detail, now)
	in.cfg.Recorder.Take(recorder.Note{
		Event: inventory.Event{At: now, Kind: inventory.EventConflict, MAC: who, Subject: "subnet/" + subnet, Detail: detail},
		Do: func(tx inventory.Tx) error {
			if isTold {
				return nil
			}
			return in.cfg.Ledger.OpenIssue(tx, issue)
		},
	})
}

// Add counts an address, and returns the issue that it belongs to. isTold says that the issue was reported a moment ago.
func (c *conflicts) Add(a netip.Addr, subnet, detail string, now time.Time) (i inventory.Issue, isTold bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	prefix := inventory.IssueAddressConflict + "/" + subnet + "/"
	key := prefix + wordsOf(detail)
	// Causes beyond ContestedKinds share one issue, so that a machine cannot fill the list of issues.
	if c.byKey[key] == nil && c.kindsOf(prefix) >= ContestedKinds {
		key = prefix + "other"
	}
	x := c.byKey[key]
	if x == nil {
		if c.byKey == nil {
			c.byKey = map[string]*contested{}
		}
		x = &contested{seen: map[netip.Addr]time.Time{}}
		c.byKey[key] = x
	}
	isNew := x.see(a, now)
	// Up to contestedNames the issue changes with each address, and each change is written at once. After that once a minute is enough.
	isTold = now.Sub(x.toldAt) < toldEvery && (!isNew || len(x.seen) > contestedNames)
	if !isTold {
		x.toldAt = now
	}
	i = inventory.Issue{
		Key: key, Type: inventory.IssueAddressConflict, Severity: inventory.SeverityWarning, Subnet: subnet, Cause: detail,
		Hint: "find the machine that uses " + a.String() + " without asking; the address is set aside for now",
	}
	if n := len(x.seen); n > 1 {
		i.Cause = fmt.Sprintf("%d addresses of subnet %s are used by others, such as %s; the latest: %s", n, subnet, sayAddresses(x.first), detail)
		i.Hint = "find the machine that answers for them; they are set aside for now. The events say who: slipway event list --kind " + inventory.EventConflict
	}
	return i, isTold
}

func (c *conflicts) kindsOf(prefix string) (n int) {
	for key := range c.byKey {
		if strings.HasPrefix(key, prefix) {
			n++
		}
	}
	return n
}

// see notes an address; those of a day ago are forgotten.
func (x *contested) see(a netip.Addr, now time.Time) (isNew bool) {
	// A full list takes no new address. Otherwise one machine that answers for everything would fill the memory.
	if _, known := x.seen[a]; !known && len(x.seen) >= contestedMost {
		return false
	} else if isNew = !known; isNew {
		for old, at := range x.seen {
			if now.Sub(at) > ContestedFor {
				delete(x.seen, old)
				x.first = slices.DeleteFunc(x.first, func(f netip.Addr) bool { return f == old })
			}
		}
		if len(x.first) < contestedNames {
			x.first = append(x.first, a)
		}
	}
	x.seen[a] = now
	return isNew
}

func sayAddresses(all []netip.Addr) string {
	var words []string
	for _, a := range all {
		words = append(words, a.String())
	}
	return strings.Join(words, ", ")
}

// wordsOf is what a text says without its addresses and numbers.
func wordsOf(detail string) string {
	// IPv6 and MAC addresses may have no digit. They all have a colon.
	words := slices.DeleteFunc(strings.Fields(detail), func(w string) bool { return strings.ContainsAny(w, "0123456789:") })
	return inventory.Clean(strings.Join(words, "-"), 80)
}
