package claim

import (
	"fmt"
	"sync"
	"time"

	"slipway.dev/slipway/hardware/placement"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/operation"
)

// inspections remembers what hosts are made of: an inspection never changes.
type inspections struct {
	mu     sync.Mutex
	byHost map[inventory.HostID]inventory.Inspection
}

// maxInspections bounds the memory; one has some 5 KB.
const maxInspections = 20_000

func (c *inspections) find(tx inventory.Tx, h inventory.HostID, n int) (inventory.Inspection, error) {
	c.mu.Lock()
	i, ok := c.byHost[h]
	c.mu.Unlock()
	if ok && i.N == n {
		return i, nil
	}
	i, err := tx.FindInspection(h, n)
	if err != nil {
		return i, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byHost == nil || len(c.byHost) >= maxInspections {
		c.byHost = map[inventory.HostID]inventory.Inspection{}
	}
	c.byHost[h] = i
	return i, nil
}

// demandsOf is what the machines want. What is wrong with one of them is found out when it is claimed.
func demandsOf(tx inventory.Tx, due []inventory.Machine, now time.Time) ([]placement.Demand, error) {
	pools, images, agents := map[string]inventory.Pool{}, map[string]inventory.Image{}, map[inventory.Arch]bool{}
	var all []placement.Demand
	for _, m := range due {
		name := operation.PoolName(m.Pool)
		if _, ok := pools[name]; !ok {
			p, err := poolOf(tx, name)
			if err != nil {
				return nil, fmt.Errorf("read pool %s: %w", name, err)
			}
			pools[name] = p
		}
		kind := m.Profile + "\x00" + m.Image
		if _, ok := images[kind]; !ok {
			i, err := imageOf(tx, &m)
			if err != nil {
				return nil, err
			}
			images[kind] = i
		}
		image := images[kind]
		if _, ok := agents[image.Arch]; !ok {
			_, err := tx.Images().Find(inventory.AgentImage(image.Arch))
			agents[image.Arch] = err == nil
		}
		barred, err := existing(tx, m.Placement.NotPools) // one that is gone bars nothing
		if err != nil {
			return nil, err
		}
		walls, err := existing(tx, m.Placement.OnlyPools)
		if err != nil {
			return nil, err
		}
		all = append(all, placement.Demand{
			Machine: m, Pool: pools[name], Image: image, Now: now, Barred: barred, Walls: walls, IsWalled: len(m.Placement.OnlyPools) > 0,
			IsInspectionNeeded: agents[image.Arch],
		})
	}
	return all, nil
}

// existing reads the pools that there are of some.
func existing(tx inventory.Tx, names []string) (all []inventory.Pool, err error) {
	for _, name := range names {
		if p, err := tx.Pools().Find(name); err == nil {
			all = append(all, p)
		} else if !inventory.IsKind(err, inventory.NotFound) {
			return nil, fmt.Errorf("read pool %s: %w", name, err)
		}
	}
	return all, nil
}

// free remembers the hosts that could be claimed when machines were placed last. Ten thousand hosts are too many to read again for each
// machine that comes.
type free struct {
	byID  map[inventory.HostID]*inventory.Host
	until time.Time
}

// freeFor is how long the hosts stay in memory after machines were placed.
const freeFor = time.Minute

// list returns the hosts that may be claimed. Nobody may change them.
func (f *free) list(tx inventory.Tx, now time.Time) ([]inventory.Claimable, error) {
	all, err := tx.ListClaimable(f.byID)
	if err != nil {
		return nil, fmt.Errorf("list claimable hosts: %w", err)
	}
	f.until, f.byID = now.Add(freeFor), make(map[inventory.HostID]*inventory.Host, len(all))
	for _, c := range all {
		f.byID[c.ID] = c.Host
	}
	return all, nil
}

// forget empties the memory when no machine was placed for a while.
func (f *free) forget(now time.Time) {
	if f.byID != nil && now.After(f.until) {
		f.byID = nil
	}
}

// stock is what placement remembers of hosts from one round to the next.
type stock struct {
	inspections inspections
	free        free
}

// candidates are the hosts that may be claimed, with what they are made of.
func (s *stock) candidates(tx inventory.Tx, now time.Time) ([]placement.Candidate, error) {
	hosts, err := s.free.list(tx, now)
	if err != nil {
		return nil, err
	}
	goldens, err := tx.Goldens().List(inventory.Page{})
	if err != nil {
		return nil, fmt.Errorf("read golden hardware: %w", err)
	}
	strict := map[string]bool{}
	for _, g := range goldens {
		strict[g.Name] = g.IsStrict
	}
	all := make([]placement.Candidate, 0, len(hosts))
	for _, h := range hosts {
		one, i, err := s.inspections.candidate(tx, *h.Host, h.InspectionN)
		if err != nil {
			return nil, err
		}
		one.HasPower = h.HasPower
		if strict[i.Golden] {
			one.Faults = i.Faults
		}
		all = append(all, one)
	}
	return all, nil
}

// candidate is a host with what its n-th inspection found; 0 is none.
func (c *inspections) candidate(tx inventory.Tx, h inventory.Host, n int) (one placement.Candidate, i inventory.Inspection, err error) {
	one.Host = h
	if n == 0 {
		return one, i, nil
	}
	if i, err = c.find(tx, h.ID, n); err != nil {
		return one, i, fmt.Errorf("read inspection of %s: %w", h.Name, err)
	}
	one.Hardware = &i.Hardware
	return one, i, nil
}
