package claim

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"slipway.dev/slipway/hardware/placement"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/pxe"
)

// ViewConfig is everything that a Viewer needs.
type ViewConfig struct {
	Now        func() time.Time
	Sessions   *session.Table
	Configurer *configuration.Configurer
	// ProviderID is how the Kubernetes node on a claim is known.
	ProviderID func(inventory.Claim) string
}

// Viewer tells how far machines are. Its methods may be called from many goroutines, once it is configured.
type Viewer struct {
	cfg        ViewConfig
	rejections *rejections
}

// Configure gives a Viewer what it needs.
func (w *Viewer) Configure(cfg ViewConfig) { w.cfg = cfg }

// View returns a machine with all that tells how far it is.
func (w *Viewer) View(tx inventory.Tx, m inventory.Machine) (v contract.View, err error) {
	v.Machine = m
	if i, err := imageOf(tx, &m); err == nil {
		v.Image = i.Name
	}
	if m.HostID == "" {
		if v.Rejected, v.Code = w.rejections.find(m.UID); v.Code == "" { // after a restart
			v.Code = string(placement.CodeOf(m.Reason))
		}
		return v, nil
	}
	h, err := tx.FindHost(m.HostID)
	if err != nil {
		return v, fmt.Errorf("read host of machine %s: %w", m.Name, err)
	}
	v.Host = &h
	c, err := tx.FindClaim(m.ClaimID)
	if err != nil {
		return v, fmt.Errorf("read claim of machine %s: %w", m.Name, err)
	}
	v.Claim, v.ProviderID = &c, w.cfg.ProviderID(c)
	if op, err := tx.FindOpenOperation(h.ID); err == nil {
		v.Operation = &op
		v.JoinFailure = operation.ParamsOf(&op).JoinFailure
		if v.Issues, err = tx.ListIssues(false, h.ID); err != nil {
			return v, fmt.Errorf("list issues of %s: %w", h.Name, err)
		}
		if d, ok := op.DrainState(); ok {
			v.Drain = &d
		}
	} else if !inventory.IsKind(err, inventory.NotFound) {
		return v, err
	}
	last, err := tx.ListSessions(h.ID, inventory.Page{Limit: 1})
	if err != nil {
		return v, fmt.Errorf("read boots of %s: %w", h.Name, err)
	}
	if len(last) == 1 && !last[0].StartedAt.Before(c.CreatedAt) {
		v.Session = &last[0]
		if live, ok := w.cfg.Sessions.Of(last[0].MAC); ok && live.ID == last[0].ID { // it is further than what is on disk
			v.Session = &live
		}
	}
	if err = reached(tx, &v); err != nil {
		return v, err
	}
	v.Addresses, err = w.hostAddresses(tx, &h, v.Session)
	return v, err
}

// reached says in a view how far the system of a claim has come: it has its configuration, and it has reported up. Both
// stay as they are for as long as the claim lasts. That the configuration was written does not say that it has booted.
func reached(tx inventory.Tx, v *contract.View) error {
	m, s := &v.Machine, v.Session
	ops, err := tx.ListOperations(inventory.OperationFilter{HostID: m.HostID}, inventory.Page{Limit: 32})
	if err != nil {
		return fmt.Errorf("read operations of machine %s: %w", m.Name, err)
	}
	for _, o := range ops {
		isInstall := o.Kind == inventory.OpInstall || o.Kind == inventory.OpReinstall
		if !isInstall || o.ClaimID != m.ClaimID {
			continue
		}
		isDone, p := o.State == inventory.OpDone, operation.ParamsOf(&o)
		way := operation.Steps(o.Kind, p)
		at, first := slices.Index(way, o.Step), slices.Index(way, inventory.StepFirstBoot)
		v.IsUp = isDone || at > first
		v.Delivered = v.IsUp || at == first
		switch {
		case p.Road == operation.RoadLive: // what it runs comes with each boot
			v.Delivered = v.IsUp || s != nil && s.Boot == string(pxe.BootImage) && session.StepIndex(s.Step) >= session.StepIndex(inventory.EventConfigSent)
		case v.Delivered && !v.IsUp:
			v.IsUnseen = true
		case v.IsUp && p.IsSilent:
			v.IsUnseen, err = isUnseen(tx, v.Host, s, o.StepAt)
		}
		return err
	}
	// The operation is forgotten, or there was none: it was adopted.
	v.IsUp = m.Phase == inventory.MachineRunning || m.Phase == inventory.MachineDeleting
	v.Delivered = v.IsUp
	return nil
}

// isUnseen reports whether a host has neither booted from its disk by the network nor asked for an address as a running
// system does, since our agent was told to leave it.
func isUnseen(tx inventory.Tx, h *inventory.Host, s *inventory.BootSession, since time.Time) (bool, error) {
	if s != nil && s.StartedAt.After(since) && s.Boot == string(pxe.BootDisk) {
		return false, nil
	}
	for _, n := range h.NICs {
		leases, err := tx.ListLeasesOf(n.MAC)
		if err != nil {
			return false, fmt.Errorf("read leases of %s: %w", h.Name, err)
		}
		if slices.ContainsFunc(leases, func(l inventory.Lease) bool { return !l.IsBoot && l.StartsAt.After(since) }) {
			return false, nil
		}
	}
	return true, nil
}

// HostAddresses returns the addresses of a host that are known: from leases, reservations and its configuration.
func (w *Viewer) HostAddresses(tx inventory.Tx, h *inventory.Host) ([]string, error) {
	last, err := tx.ListSessions(h.ID, inventory.Page{Limit: 1})
	if err != nil || len(last) == 0 {
		return w.hostAddresses(tx, h, nil)
	}
	return w.hostAddresses(tx, h, &last[0])
}

// hostAddresses puts those of a boot first.
func (w *Viewer) hostAddresses(tx inventory.Tx, h *inventory.Host, s *inventory.BootSession) (all []string, err error) {
	add := func(a netip.Addr) {
		if text := a.String(); a.IsValid() && !slices.Contains(all, text) && len(all) < 64 {
			all = append(all, text)
		}
	}
	now := w.cfg.Now()
	var leases []inventory.Lease
	for _, n := range h.NICs {
		of, err := tx.ListLeasesOf(n.MAC)
		if err != nil {
			return nil, fmt.Errorf("read leases of %s: %w", h.Name, err)
		}
		for _, l := range of {
			if l.State == inventory.LeaseBound && now.Before(l.ExpiresAt) {
				leases = append(leases, l)
			}
		}
	}
	if s != nil && slices.ContainsFunc(leases, func(l inventory.Lease) bool { return l.Address == s.Address }) {
		add(s.Address)
	}
	for _, a := range w.cfg.Configurer.Rendered.Addresses(h.ID) {
		if !a.IsLoopback() {
			add(a)
		}
	}
	for _, l := range leases {
		add(l.Address)
	}
	if len(all) == 0 && s != nil { // an address that nobody renews is better than none
		add(s.Address)
	}
	return all, nil
}
