package configuration

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/address"
)

// heldEvery is how often addresses are compared with the network's, which changes without us.
const heldEvery = 10 * time.Minute

// Clashes finds the addresses and names that two machines hold, or a machine and the network.
type Clashes struct {
	*Configurer
	at   time.Time // of the last comparison, as ours
	ours []netip.Addr
}

// Compare is Look with a word in the log when it fails.
func (c *Clashes) Compare(ctx context.Context) {
	if err := c.Look(ctx); err != nil && ctx.Err() == nil {
		c.cfg.Log.Warn("addresses and names not compared", "err", err)
	}
}

// Look compares what machines hold, after it was brought up to date where that is needed.
func (c *Clashes) Look(ctx context.Context) error {
	if c.isHeldStale.Swap(false) {
		if err := c.renew(ctx); err != nil {
			c.isHeldStale.Store(true)
			return err
		}
	}
	return c.compare(ctx)
}

// renew brings what all machines and hosts hold up to date: an older version has not noted it.
func (c *Clashes) renew(ctx context.Context) error {
	var keys []string
	err := c.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		return c.eachHolder(tx, func(m *inventory.Machine, h *inventory.Host) error {
			keys = append(keys, subject(m, h).Key())
			return nil
		})
	})
	if err != nil {
		return err
	}
	return c.noteAll(ctx, keys)
}

// compare opens an issue for each address and name that two machines have, or a machine and the network, and closes those
// that are over.
func (c *Clashes) compare(ctx context.Context) error {
	now := c.cfg.Now()
	var ours []netip.Addr
	if c.cfg.Ours != nil {
		ours = c.cfg.Ours()
	}
	if !c.hasHeld.Swap(false) && now.Sub(c.at) < heldEvery && slices.Equal(ours, c.ours) {
		return nil
	}
	c.at, c.ours = now, ours
	var wanted []inventory.Issue
	var open []inventory.Issue
	err := c.cfg.Store.Read(ctx, func(tx inventory.Tx) (err error) {
		if wanted, err = c.heldTwice(tx); err != nil {
			return err
		}
		open, err = tx.ListIssues(false, "")
		return err
	})
	if err != nil {
		return err
	}
	isOpen := map[string]bool{}
	var over []inventory.Issue
	for _, i := range open {
		if i.Type != inventory.IssueTwice {
			continue
		}
		isOpen[i.Key] = true
		if !slices.ContainsFunc(wanted, func(w inventory.Issue) bool { return w.Key == i.Key }) {
			over = append(over, i)
		}
	}
	fresh := slices.DeleteFunc(wanted, func(i inventory.Issue) bool { return isOpen[i.Key] })
	if len(fresh)+len(over) == 0 {
		return nil
	}
	return c.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		for _, i := range fresh {
			if err := c.cfg.Ledger.OpenIssue(tx, i); err != nil {
				return err
			}
		}
		for _, i := range over {
			if err := c.cfg.Ledger.CloseIssue(tx, i, "nobody else has it any more"); err != nil {
				return err
			}
		}
		return nil
	})
}

// heldTwice returns the issues of what is held more than once.
func (c *Clashes) heldTwice(tx inventory.Tx) (all []inventory.Issue, err error) {
	twice, err := tx.ListHeldTwice()
	if err != nil {
		return nil, fmt.Errorf("read what is held twice: %w", err)
	}
	for _, clash := range address.Among(twice) {
		all = append(all, twiceIssue(clash, twice))
	}
	for _, clash := range address.Namesakes(twice) {
		i := twiceIssue(clash, twice)
		i.Key, i.Severity = inventory.IssueTwice+"/object/"+clash.Value, inventory.SeverityWarning
		all = append(all, i)
	}
	holdings, err := tx.ListHoldings(inventory.AddressFilter{})
	if err != nil {
		return nil, fmt.Errorf("read what is held: %w", err)
	}
	b, err := c.book(tx, true)
	if err != nil {
		return nil, err
	}
	for _, h := range holdings {
		if h.Kind != inventory.HoldsAddress || h.Subnet != "" {
			continue
		}
		s, err := address.SubjectOf(tx, h.Holder)
		if err != nil {
			return nil, err
		}
		clashes, err := b.Clashes(s, []inventory.Holding{h}, nil)
		if err != nil {
			return nil, err
		}
		if len(clashes) > 0 && clashes[0].Other == (inventory.Holder{}) {
			all = append(all, twiceIssue(clashes[0], []inventory.Holding{h}))
		}
	}
	slices.SortStableFunc(all, func(a, b inventory.Issue) int { return strings.Compare(a.Key, b.Key) })
	return slices.CompactFunc(all, func(a, b inventory.Issue) bool { return a.Key == b.Key }), nil
}

func twiceIssue(c address.Clash, among []inventory.Holding) inventory.Issue {
	i := inventory.Issue{
		Key: inventory.IssueTwice + "/" + string(c.Kind) + "/" + c.Value, Type: inventory.IssueTwice, Severity: inventory.SeverityError,
		Cause: inventory.Clean(c.Holder.String()+": "+c.Message()+address.From(c.Source), 500), Hint: c.Hint, Refs: c.References(),
	}
	for _, h := range among {
		if h.Kind == c.Kind && h.Value == c.Value && h.HostID != "" && !slices.Contains(i.HostIDs, h.HostID) {
			i.HostIDs = append(i.HostIDs, h.HostID)
		}
	}
	return i
}
