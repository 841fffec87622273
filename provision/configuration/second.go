package configuration

import (
	"fmt"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/address"
	"slipway.dev/slipway/provision/ledger"
)

// runs reports whether the system of a host is up under the names and addresses that it was given.
func runs(h *inventory.Host) bool { return h.IsAdopted || h.State == inventory.Active && !h.IsArmed }

// CameSecond says why a host is not given a configuration now: another machine or host had one of its addresses or names
// before. An older version let that pass. It is nil for a host whose system runs: that has them already. Of two that run,
// neither installs again until one of them has something else.
func (c *Configurer) CameSecond(tx inventory.Tx, h *inventory.Host, held []inventory.Holding) (*inventory.Error, error) {
	if len(held) == 0 || runs(h) {
		return nil, nil
	}
	tx = address.Whole(tx)
	s, err := subjectOn(tx, h)
	if err != nil {
		return nil, err
	}
	b, err := c.book(tx, true)
	if err != nil {
		return nil, err
	}
	clashes, err := b.Others(s, held)
	for _, clash := range clashes {
		isFirst, err := hadFirst(tx, clash.Other, s.Holder)
		if err != nil {
			return nil, err
		}
		if isFirst {
			return inventory.Errorf(inventory.Conflict, "%s is given no configuration: %s", s.Holder, clash.Message()).
				WithHint("%s", clash.Hint).Naming(clash.Refs...), nil
		}
	}
	return nil, err
}

// hadFirst reports whether what two hold is one's: it runs, or is left behind by what ran, or else it is the older one.
func hadFirst(tx inventory.Tx, one, other inventory.Holder) (bool, error) {
	isUp, since, err := ageOf(tx, one)
	if err != nil || isUp {
		return isUp, ledger.IgnoreNotFound(err)
	}
	_, otherSince, err := ageOf(tx, other)
	if d := since.Compare(otherSince); d != 0 {
		return d < 0, err
	}
	return one.Key() < other.Key(), err
}

// ageOf says whether a system runs, or may run, under what a holder has, and since when the holder is known.
func ageOf(tx inventory.Tx, x inventory.Holder) (isUp bool, since time.Time, err error) {
	if x.HostID != "" {
		h, err := tx.FindHost(x.HostID)
		if err != nil {
			return false, since, fmt.Errorf("read host of %s: %w", x, err)
		}
		isUp, since = runs(&h) || x.MachineUID == "" && h.State == inventory.Failed, h.CreatedAt
	}
	if x.MachineUID == "" {
		return isUp, since, nil
	}
	m, err := tx.FindMachineByUID(x.MachineUID)
	if err != nil {
		return false, since, fmt.Errorf("read %s: %w", x, err)
	}
	return isUp, m.CreatedAt, nil
}
