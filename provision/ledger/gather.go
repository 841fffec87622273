package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
)

// crowds are the issues about machines that nobody has accepted: one for each network, kind and cause. They are in memory only.
// After a restart the counts begin again, and the open issue in the store goes on under the same key.
type crowds struct {
	mu    sync.Mutex
	byKey map[string]*gathering
}

// gathering is the strangers of one issue.
type gathering struct {
	hosts  map[inventory.HostID]bool
	first  []inventory.HostID // that the issue names
	toldAt time.Time
}

const (
	GatheringNames  = 8
	gatheringHosts  = 50_000
	gatheringsMost  = 256
	gatheringsEvery = time.Minute
	OfStrangersKey  = "/strangers/"
)

// gather merges the issues of one kind about unaccepted hosts of a network into one issue. isTold reports that Slipway wrote
// an event about it a short time ago, so that the caller writes none.
func (c *crowds) gather(tx inventory.Tx, i inventory.Issue, now time.Time) (_ inventory.Issue, isTold bool, err error) {
	var accepted, strange []inventory.HostID
	for _, id := range i.HostIDs {
		h, err := tx.FindHost(id)
		switch {
		case inventory.IsKind(err, inventory.NotFound), err == nil && h.State != inventory.Discovered:
			accepted = append(accepted, id)
		case err != nil:
			return i, false, fmt.Errorf("read host of an issue: %w", err)
		default:
			strange = append(strange, id)
		}
	}
	if len(strange) == 0 {
		return i, false, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil {
		c.byKey = map[string]*gathering{}
	}
	key := i.Type + OfStrangersKey + i.Subnet + "/" + causeOf(&i)
	// With an accepted host in it the issue is that host's own. The unaccepted machines are only counted there.
	if len(accepted) > 0 {
		key = i.Type + OfStrangersKey + string(accepted[0])
	}
	// Causes hold words of the machines' own. A flood of invented ones ends up in one issue for the network.
	if c.byKey[key] == nil && len(c.byKey) >= gatheringsMost {
		key = i.Type + OfStrangersKey + i.Subnet
	}
	g := c.byKey[key]
	if g == nil {
		g = &gathering{hosts: map[inventory.HostID]bool{}}
		c.byKey[key] = g
	}
	isNew := false
	for _, id := range strange {
		// Beyond the bound the count stops. The issue is open by then, and 50,000 is no number that an admin counts.
		if !g.hosts[id] && len(g.hosts) < gatheringHosts {
			g.hosts[id], isNew = true, true
			if len(g.first) < GatheringNames {
				g.first = append(g.first, id)
			}
		}
	}
	isTold = !g.toldAt.IsZero() && now.Sub(g.toldAt) < gatheringsEvery && (len(g.hosts) > GatheringNames || !isNew)
	if !isTold {
		g.toldAt = now
	}
	i.Key, i.HostIDs = key, append(accepted, g.first...)
	if n := len(g.hosts); n > 1 {
		i.Cause = fmt.Sprintf("%d machines that nobody has accepted, the latest: %s", n, i.Cause)
		i.Hint = cmp.Or(i.Hint, "look at one") + "; those that are no machines of yours: slipway host forget-strangers"
	}
	return i, isTold, nil
}

// causeOf is what the issues of several machines have in common.
func causeOf(i *inventory.Issue) string {
	cause, _, _ := strings.Cut(i.Cause, ":")
	words := strings.Fields(cause)
	words = slices.DeleteFunc(words, func(w string) bool { return strings.ContainsAny(w, "0123456789") })
	if i.Type == inventory.IssueIdentityConflict {
		return ""
	}
	return inventory.Clean(strings.Join(words, "-"), 80)
}

// ungather takes a host out of the issue that it shares with others. key is that of the issue when nobody is left in it.
func (c *crowds) ungather(i *inventory.Issue) (key string) {
	if len(i.HostIDs) != 1 {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// The key holds the cause, which the caller of CloseIssue does not have. So this searches all issues of the type.
	for k, g := range c.byKey {
		if strings.HasPrefix(k, i.Type+OfStrangersKey) && g.hosts[i.HostIDs[0]] {
			delete(g.hosts, i.HostIDs[0])
			if len(g.hosts) == 0 {
				delete(c.byKey, k)
				return k
			}
		}
	}
	return ""
}
