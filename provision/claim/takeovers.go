package claim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/provision/ledger"
)

// Takeovers let the objects of a cluster take over machines that other objects own.
type Takeovers struct {
	cfg  *Config
	told takeRefusals
}

// HandOver makes owner the owner of the machine that holds a claim, where contract.MayTake lets it. Nothing happens on its
// host. A refusal is in the timeline.
func (t *Takeovers) HandOver(ctx context.Context, id inventory.ClaimID, owner string, who ledger.Asker) (m inventory.Machine, err error) {
	if owner == "" {
		return m, inventory.Errorf(inventory.Invalid, "a machine is handed over to somebody").WithHint("name its new owner")
	}
	err = t.cfg.Ledger.Write(ctx, who, func(tx inventory.Tx) error {
		c, err := tx.FindClaim(id)
		if err != nil {
			return err
		}
		if m, err = tx.FindMachineByUID(c.MachineUID); err != nil || m.Owner == owner {
			return err
		}
		if !m.DeletedAt.IsZero() {
			return inventory.Errorf(inventory.Conflict, "machine %s is being deleted", m.Name).
				WithHint("wait until it is gone, and make another")
		}
		if err := mayTake(tx, &m, owner); err != nil {
			return err
		}
		old := m.Owner
		m.Owner, m.OfferedTo = owner, ""
		if err := m.Validate(); err != nil {
			return err
		}
		return t.cfg.Ledger.SaveMachine(tx, &m, fmt.Sprintf("handed over from %q to %q by %s", old, owner, who.By))
	})
	if inventory.IsKind(err, inventory.Forbidden) {
		t.refuse(ctx, &m, owner, err, who.By)
		return inventory.Machine{}, err
	}
	t.cfg.Operator.Poke()
	return m, err
}

// OfferTo lets the objects of a cluster take over the machine of an owner by its claim, because the owner has agreed. ""
// takes that back. Nothing happens on its host.
func (t *Takeovers) OfferTo(ctx context.Context, owner, cluster string, who ledger.Asker) error {
	if cluster != "" && !inventory.IsClusterUID(cluster) {
		return inventory.Errorf(inventory.Invalid, "%q is not the UID of a cluster", inventory.Clean(cluster, 80)).
			WithHint("it is the UID of its namespace kube-system: kubectl get namespace kube-system -o jsonpath={.metadata.uid}")
	}
	return t.cfg.Ledger.Write(ctx, who, func(tx inventory.Tx) error {
		m, err := tx.FindMachineByOwner(owner)
		if err != nil || m.OfferedTo == cluster {
			return err
		}
		m.OfferedTo = cluster
		what := "offered to cluster " + cluster
		if cluster == "" {
			what = "not offered to another cluster any more"
		}
		return t.cfg.Ledger.SaveMachine(tx, &m, "machine "+m.Name+" is "+what+" by its owner, by "+who.By)
	})
}

// Takeable returns the machine that holds a claim when HandOver would give it to owner, and refuses as HandOver does.
func (t *Takeovers) Takeable(ctx context.Context, id inventory.ClaimID, owner string, who ledger.Asker) (m inventory.Machine, err error) {
	err = t.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		c, err := tx.FindClaim(id)
		if err != nil {
			return err
		}
		if m, err = tx.FindMachineByUID(c.MachineUID); err != nil {
			return err
		}
		return mayTake(tx, &m, owner)
	})
	if inventory.IsKind(err, inventory.Forbidden) {
		t.refuse(ctx, &m, owner, err, who.By)
	}
	if err != nil {
		return inventory.Machine{}, err
	}
	return m, nil
}

// mayTake asks what an admin lets the cluster of owner take.
func mayTake(tx inventory.Tx, m *inventory.Machine, owner string) error {
	access, err := tx.FindClusterAccess(contract.ClusterOf(owner))
	if err != nil {
		return fmt.Errorf("read what a cluster may take: %w", err)
	}
	return contract.MayTake(m.Owner, owner, m.OfferedTo, access)
}

// refuse puts a takeover that was refused into the timeline of the machine's host, once for each who tries.
func (t *Takeovers) refuse(ctx context.Context, m *inventory.Machine, owner string, why error, by string) {
	if !t.told.isNew(string(m.ClaimID)+" "+owner, t.cfg.Now()) {
		return
	}
	t.cfg.Log.Warn("takeover of a machine refused", "machine", m.Name, "owner", m.Owner, "taker", owner, "err", why)
	err := t.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		return tx.AddEvent(&inventory.Event{
			At: t.cfg.Now(), Kind: inventory.EventTakeRefused, HostID: m.HostID, Subject: "machine/" + m.Name,
			Detail: inventory.Clean(fmt.Sprintf("%s tried to take over machine %s of %q by its claim, by %s: %v", owner, m.Name, m.Owner, by, why), 500),
			Data:   map[string]any{"machine": m.Name, "claim": m.ClaimID, "taker": owner},
		})
	})
	if err != nil {
		t.cfg.Log.Warn("refused takeover not stored", "machine", m.Name, "err", err)
	}
}

const (
	// tookAgain is after what time the timeline shows a refusal again: controllers repeat their requests.
	tookAgain = time.Hour
	// takesAtMost bounds what is remembered. Beyond it the timeline shows none before the oldest are forgotten.
	takesAtMost = 1024
)

// takeRefusals remembers what was refused and told. Its zero value is ready.
type takeRefusals struct {
	mu   sync.Mutex
	told map[string]time.Time
}

// isNew reports whether the timeline has to show a refusal, and remembers it.
func (r *takeRefusals) isNew(key string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, ok := r.told[key]; ok && now.Sub(at) < tookAgain {
		return false
	}
	if len(r.told) >= takesAtMost {
		for k, at := range r.told {
			if now.Sub(at) >= tookAgain {
				delete(r.told, k)
			}
		}
		if len(r.told) >= takesAtMost {
			return false
		}
	}
	if r.told == nil {
		r.told = map[string]time.Time{}
	}
	r.told[key] = now
	return true
}
