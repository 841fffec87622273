package duty

import (
	"maps"

	"slipway.dev/slipway/inventory"
)

// show makes what the keeper has seen of others readable for Sight and Others.
func (k *Keeper) show(others []inventory.Instance) {
	k.seen.Store(&seen{at: k.cfg.Elapsed(), signs: maps.Clone(k.watch), others: others})
}

// IsAlone reports whether no other process can use the database.
func (k *Keeper) IsAlone() bool { return k.cfg.IsAlone }

// TakenN returns how many duties this instance has taken since it was started.
func (k *Keeper) TakenN() int64 { return k.takenN.Load() }

// Held returns the epochs of the duties that this instance has at this moment.
func (k *Keeper) Held() map[string]int64 {
	held := map[string]int64{}
	for name := range *k.held.Load() {
		if g, ok := k.grant(name); ok {
			held[name] = g.epoch
		}
	}
	return held
}

// Sight returns what this instance knows of the life of an instance whose row was just read. It compares no clocks: it counts by its own
// one how long a sign of life has been the same.
func (k *Keeper) Sight(i inventory.Instance) Sight {
	if i.ID == k.cfg.ID {
		return Sight{Life: Alive}
	}
	if k.cfg.IsAlone { // nobody else can use the database
		return Sight{Life: Stopped, IsFirst: true}
	}
	return k.seen.Load().sight(i, k.cfg.Elapsed())
}
