package backend

import (
	"context"
	"maps"
	"slices"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
)

// pageN is how many hosts are read in one transaction: a walk through all of them must not hold up the store.
const pageN = 200

// localHosts is what can be done with hosts, as the engine does it.
type localHosts struct{ *local }

var _ contract.Hosts = localHosts{}

// FindHost implements contract.Hosts.
func (l localHosts) FindHost(ctx context.Context, id inventory.HostID) (v contract.HostView, err error) {
	err = l.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		h, err := tx.FindHost(id)
		if err != nil {
			return err
		}
		v, err = l.hostView(tx, h)
		return err
	})
	return v, err
}

// EachHost implements contract.Hosts.
func (l localHosts) EachHost(ctx context.Context, fn func(contract.HostView) error) error {
	for after := ""; ; {
		var page []contract.HostView
		err := l.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
			page = nil
			hosts, err := tx.ListHosts(inventory.HostFilter{}, inventory.Page{After: after, Limit: pageN})
			if err != nil {
				return err
			}
			for _, h := range hosts {
				v, err := l.hostView(tx, h)
				if err != nil {
					return err
				}
				page = append(page, v)
			}
			return nil
		})
		if err != nil {
			return err
		}
		// Outside of the transaction: fn may take long, or write.
		for _, v := range page {
			if err := fn(v); err != nil {
				return err
			}
		}
		if len(page) < pageN {
			return nil
		}
		after = page[len(page)-1].Host.Name
	}
}

func (l localHosts) hostView(tx inventory.Tx, h inventory.Host) (contract.HostView, error) {
	v := contract.HostView{Host: h}
	var err error
	if v.Addresses, err = l.cfg.Engine.HostAddresses(tx, &h); err != nil {
		return v, err
	}
	if v.Inspection, err = found(tx.FindInspection(h.ID, 0)); err != nil {
		return v, err
	}
	if v.BMC, err = found(tx.FindBMC(h.ID)); err != nil {
		return v, err
	}
	if h.Machine != "" {
		if v.Machine, err = found(tx.FindMachine(h.Machine)); err != nil {
			return v, err
		}
	}
	v.Issues, err = tx.ListIssues(false, h.ID)
	return v, err
}

// DeclareHost implements contract.Hosts.
func (l localHosts) DeclareHost(ctx context.Context, h inventory.Host) (inventory.Host, error) {
	return l.cfg.Engine.DeclareHost(ctx, h, l.who())
}

// UpdateHost implements contract.Hosts.
func (l localHosts) UpdateHost(ctx context.Context, h inventory.Host) (inventory.Host, error) {
	return l.cfg.Engine.UpdateHost(ctx, h, l.who())
}

// Accept implements contract.Hosts. A host that is accepted already is left alone.
func (l localHosts) Accept(ctx context.Context, id inventory.HostID) error {
	return l.unless(ctx, id, func(h *inventory.Host) bool { return h.State != inventory.Discovered }, func() error {
		_, err := l.cfg.Engine.Accept(ctx, id, l.who())
		return err
	})
}

// Maintain implements contract.Hosts.
func (l localHosts) Maintain(ctx context.Context, id inventory.HostID, on bool) error {
	return l.unless(ctx, id, func(h *inventory.Host) bool { return h.InMaintenance == on }, func() error {
		_, err := l.cfg.Engine.Maintain(ctx, id, on, l.who())
		return err
	})
}

// Protect implements contract.Hosts.
func (l localHosts) Protect(ctx context.Context, id inventory.HostID, on bool) error {
	return l.unless(ctx, id, func(h *inventory.Host) bool { return h.IsProtected == on }, func() error {
		_, err := l.cfg.Engine.Protect(ctx, id, on, l.who())
		return err
	})
}

// unless does something with a host that is not so already: controllers repeat themselves, and the timeline should not.
func (l localHosts) unless(ctx context.Context, id inventory.HostID, isSo func(*inventory.Host) bool, do func() error) error {
	h, err := inventory.Read(ctx, l.cfg.Store, func(tx inventory.Tx) (inventory.Host, error) { return tx.FindHost(id) })
	if err != nil || isSo(&h) {
		return err
	}
	return do()
}

// SaveBMC implements contract.Hosts. Saving what is stored already writes nothing.
func (l localHosts) SaveBMC(ctx context.Context, b inventory.BMC, password string) error {
	stored, err := inventory.Read(ctx, l.cfg.Store, func(tx inventory.Tx) (*inventory.BMC, error) { return found(tx.FindBMC(b.HostID)) })
	if err != nil {
		return err
	}
	if stored != nil && isSameBMC(stored, &b) && (password == "" || l.isPassword(stored, password)) {
		return nil
	}
	_, err = l.cfg.Engine.SaveBMC(ctx, b, password, l.who())
	return err
}

func isSameBMC(a, b *inventory.BMC) bool {
	return a.Driver == b.Driver && a.Address == b.Address && a.Username == b.Username && a.System == b.System &&
		a.InsecureSkipVerify == b.InsecureSkipVerify && a.Fingerprint == b.Fingerprint && a.MAC == b.MAC && maps.Equal(a.Options, b.Options)
}

// isPassword reports whether a controller has that password, or refused it since another one that was kept lets us in. They
// are sealed under the name that the engine gives them.
func (l localHosts) isPassword(b *inventory.BMC, password string) bool {
	is := func(sealed []byte) bool {
		plain, err := l.cfg.Secrets.Open("bmc/"+string(b.HostID), sealed)
		return err == nil && string(plain) == password
	}
	return is(b.Sealed) || slices.ContainsFunc(b.Others, func(o inventory.OtherPassword) bool { return o.IsRefused && is(o.Sealed) })
}

// Power implements contract.Hosts.
func (l localHosts) Power(ctx context.Context, id inventory.HostID, a bmc.Action) error {
	_, err := l.cfg.Engine.Power(ctx, id, a, l.who())
	return err
}
