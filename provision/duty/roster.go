package duty

import "slipway.dev/slipway/inventory"

// Peer is an instance of the database with all that this one knows of it.
type Peer struct {
	inventory.Instance
	Sight
	IsSelf   bool
	IsLeader bool             // it has the engine
	Duties   []inventory.Duty // that it has
}

// Roster is all instances of the database, ordered by name, and all duties.
type Roster struct {
	Peers  []Peer
	Duties []inventory.Duty
}

// Others returns the other instances as the last sign of life of this one has found them, without their duties. It reads memory only.
// isKnown is false before the first sign of life.
func (k *Keeper) Others() (all []Peer, isKnown bool) {
	s := k.seen.Load()
	for _, i := range s.others {
		all = append(all, Peer{Instance: i, Sight: k.Sight(i)})
	}
	return all, s.others != nil
}

// Roster reads all instances and duties.
func (k *Keeper) Roster(tx inventory.InstanceTx) (r Roster, err error) {
	all, err := tx.ListInstances()
	if err != nil {
		return r, err
	}
	if r.Duties, err = tx.ListDuties(); err != nil {
		return r, err
	}
	for _, i := range all {
		r.Peers = append(r.Peers, k.peer(i, r.Duties))
	}
	return r, nil
}

// peer adds to a row what is known of its instance.
func (k *Keeper) peer(i inventory.Instance, duties []inventory.Duty) Peer {
	p := Peer{Instance: i, Sight: k.Sight(i), IsSelf: i.ID == k.cfg.ID, Duties: heldBy(i.ID, duties)}
	for _, d := range p.Duties {
		p.IsLeader = p.IsLeader || d.Name == inventory.DutyEngine
	}
	return p
}

// Peer returns one instance.
func (k *Keeper) Peer(tx inventory.InstanceTx, name string) (p Peer, err error) {
	i, err := tx.FindInstanceByName(name)
	if err != nil {
		return p, err
	}
	duties, err := tx.ListDuties()
	return k.peer(i, duties), err
}

// AliveN is how many instances are known to be alive.
func (r Roster) AliveN() (n int) {
	for _, p := range r.Peers {
		if p.Life == Alive {
			n++
		}
	}
	return n
}
