package claim

import (
	"sync"

	"slipway.dev/slipway/hardware/placement"
	"slipway.dev/slipway/kubernetes/contract"
)

// rejections remembers why machines got no host, by their UIDs, from the latest round that placed them.
type rejections struct {
	mu    sync.Mutex
	byUID map[string]placement.Choice
}

const maxRejections = 20_000

func (r *rejections) put(uid string, c placement.Choice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.Host != nil {
		delete(r.byUID, uid)
		return
	}
	if r.byUID == nil || len(r.byUID) >= maxRejections {
		r.byUID = map[string]placement.Choice{}
	}
	r.byUID[uid] = placement.Choice{Rejected: c.Rejected, Code: c.Code}
}

func (r *rejections) find(uid string) (all []contract.Rejection, code string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.byUID[uid]
	for _, x := range c.Rejected {
		all = append(all, contract.Rejection{Cause: x.Cause, N: x.N})
	}
	return all, string(c.Code)
}
