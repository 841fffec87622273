package delivery

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"slipway.dev/slipway/hardware/identity"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/pxe"
)

// AdmissionConfig is everything an Admission needs.
type AdmissionConfig struct {
	*ledger.Ledger // with the store, the time and the log
	Sessions       *session.Table
	Recorder       *recorder.Recorder
	Configurer     *configuration.Configurer
	// ReportKey is a secret of this server; from it come the keys of boots.
	ReportKey []byte
	// Neighbour returns the MAC that uses an address on our own network, where the kernel knows one; nil knows none.
	Neighbour func(netip.Addr) (inventory.MAC, bool)
	// Plan is what a host in a subnet would boot.
	Plan func(tx inventory.Tx, h *inventory.Host, subnet string) (pxe.Plan, error)
}

// Admission decides whether a request under the URL of a boot comes from the machine of that boot. Its methods may be called
// from many goroutines, once it is configured.
type Admission struct {
	Keys
	cfg AdmissionConfig
}

// Configure gives an Admission what it needs.
func (a *Admission) Configure(cfg AdmissionConfig) { a.cfg, a.Keys = cfg, Keys{cfg.ReportKey} }

// errStranger marks the refusal of a request that does not come from the machine of the boot.
var errStranger = errors.New("not the machine of this boot")

// sessionOf returns the boot that a URL names, as memory has it or else the store.
func (a *Admission) sessionOf(tx inventory.Tx, id inventory.SessionID, source netip.Addr) (inventory.BootSession, error) {
	// Memory is ahead of the store, which the recorder writes behind the packets. The id has to fit: an address changes hands.
	if s, ok := a.cfg.Sessions.At(source); ok && s.ID == id {
		return s, nil
	}
	s, err := tx.FindSession(id)
	if inventory.IsKind(err, inventory.NotFound) {
		return s, inventory.Errorf(inventory.NotFound, "no boot session %.32s", id).WithHint("boot the machine again: the server does not know this boot")
	}
	if err != nil {
		return s, fmt.Errorf("read boot session %s: %w", id, err)
	}
	return s, nil
}

// Admitted returns the boot that a URL names for a request that belongs to it, with the address that it has by now. Every
// place under that URL asks here, and identity.WayOf alone decides. A refused caller changes nothing. The refusal is an
// event, and an issue of the host.
func (a *Admission) Admitted(tx inventory.Tx, id inventory.SessionID, source netip.Addr, key, what string) (inventory.BootSession, error) {
	s, err := a.sessionOf(tx, id, source)
	if err != nil {
		return s, err
	}
	way, err := a.admit(tx, &s, source, key)
	if err != nil {
		a.noteStranger(s, source, what, err)
		return s, err
	}
	if way == identity.ByLease || way == identity.ByNeighbour || way == identity.AsFirst {
		s.Address = source
		a.cfg.Sessions.BindTo(s.MAC, s.ID, source)
	}
	return s, nil
}

// admit judges a request under the URL of a boot.
func (a *Admission) admit(tx inventory.Tx, s *inventory.BootSession, source netip.Addr, key string) (identity.Way, error) {
	// The key first: it is good from each address, also after the installed system has taken another one.
	if a.isReportKey(s.ID, key) {
		return identity.ByKey, nil
	}
	if s.Address.IsValid() && s.Address == source {
		return identity.ByAddress, nil
	}
	h, err := hostOfSession(tx, s)
	if err != nil {
		return "", err
	}
	b := identity.Boot{Address: s.Address, Ports: append(h.MACs(), s.MAC)}
	c, err := a.callerAt(tx, source)
	if err != nil {
		return "", err
	}
	// Rendering is expensive, and needed only when our own DHCP gave the address to nobody.
	if s.Config != "" && h.ID != "" && c.Lessee == "" {
		if c.Configured, err = a.configuredAddresses(tx, &h, s); err != nil {
			return "", err
		}
	}
	way, why := identity.WayOf(b, c)
	if way != "" {
		return way, nil
	}
	return "", strangerTo(s, source, why)
}

func strangerTo(s *inventory.BootSession, source netip.Addr, why string) error {
	err := inventory.Errorf(inventory.Forbidden, "boot session %s belongs to the machine at %s, not to %s: %s", s.ID, s.Address, source, why).
		WithHint("let the machine ask our DHCP for its address, and boot it again")
	err.Err = errStranger
	return err
}

// configuredAddresses returns the addresses that the configuration of a boot gives the host itself: some tools set them
// before they fetch the rest of it. Only a server that has forgotten the rendering of the boot, because it was restarted,
// makes it again.
func (a *Admission) configuredAddresses(tx inventory.Tx, h *inventory.Host, s *inventory.BootSession) ([]netip.Addr, error) {
	if r := a.cfg.Configurer.Rendered.Of(h.ID); r != nil && r.Digest == s.Config {
		return r.Addresses, nil
	}
	p, err := a.cfg.Plan(tx, h, s.Subnet)
	if err != nil {
		return nil, err
	}
	r, err := a.cfg.Configurer.ConfigOf(tx, h, p, s.MAC)
	// The configuration has changed since the boot began. Its addresses prove nothing about that boot then.
	if err != nil || r == nil || r.Digest != s.Config {
		return nil, err
	}
	return r.Addresses, nil
}

// callerAt reads what is known of an address.
func (a *Admission) callerAt(tx inventory.Tx, source netip.Addr) (identity.Caller, error) {
	c := identity.Caller{Source: source}
	if !source.IsValid() {
		return c, nil
	}
	l, err := tx.FindLease(source)
	if err != nil && !inventory.IsKind(err, inventory.NotFound) {
		return c, fmt.Errorf("read lease of %s: %w", source, err)
	}
	// The lease of a machine that is gone may still be in the store. Its address may belong to another machine by now.
	if err == nil && l.State == inventory.LeaseBound && a.cfg.Now().Before(l.ExpiresAt) {
		c.Lessee = l.MAC
	}
	if a.cfg.Neighbour != nil {
		c.Neighbour, _ = a.cfg.Neighbour(source)
	}
	return c, nil
}

// hostOfSession returns the host of a boot; its zero value is for a machine that is no host yet.
func hostOfSession(tx inventory.Tx, s *inventory.BootSession) (h inventory.Host, err error) {
	if s.HostID != "" {
		h, err = tx.FindHost(s.HostID)
	}
	// A host that was deleted and made again has another id. Its MAC still finds it.
	if s.HostID == "" || inventory.IsKind(err, inventory.NotFound) {
		h, err = tx.FindHostByMAC(s.MAC)
	}
	if err = ledger.IgnoreNotFound(err); err != nil {
		return h, fmt.Errorf("read host of boot session %s: %w", s.ID, err)
	}
	return h, nil
}

// noteStranger notes that somebody used the URL of a boot that is another machine's: once a minute for each boot, however
// many addresses ask.
func (a *Admission) noteStranger(s inventory.BootSession, source netip.Addr, what string, err error) {
	if !errors.Is(err, errStranger) || !a.cfg.Refusals.First("stranger "+string(s.ID)+string(s.MAC), a.cfg.Now()) {
		return
	}
	a.cfg.Log.Warn("boot request from another machine refused", "boot", s.ID, "mac", s.MAC, "addr", source.String(), "op", what, "err", err)
	id := s.HostID
	if id == "" {
		id = a.cfg.Sessions.HostOf(s.MAC)
	}
	a.cfg.Recorder.Take(recorder.Note{
		Event: inventory.Event{
			At: a.cfg.Now(), Kind: inventory.EventSessionRefused, HostID: id, SessionID: s.ID, MAC: s.MAC,
			Detail: inventory.Clean(fmt.Sprintf("%s, asked for by %s: %s", what, source, ledger.PublicMessage(err)), 500),
			Data:   map[string]any{"source": source, "place": what, "hint": inventory.HintOf(err)},
			Refs:   inventory.RefsOf(err),
		},
		Do: func(tx inventory.Tx) error {
			// No issue for a machine that nobody has accepted: its events are enough.
			h, found := tx.FindHost(id)
			if found != nil || h.State == inventory.Discovered {
				return ledger.IgnoreNotFound(found)
			}
			issue := SessionRefused(h.ID)
			issue.Cause = inventory.Clean(fmt.Sprintf("%s used the URL of a boot of %s (%s): %s", source, h.Name, what, ledger.PublicMessage(err)), 500)
			issue.Refs = inventory.RefsOf(err)
			return a.cfg.Ledger.OpenIssue(tx, issue)
		},
	})
}

// SessionRefused is the issue that another machine used the URL of a host's boot.
func SessionRefused(id inventory.HostID) inventory.Issue {
	return inventory.Issue{
		Key: inventory.IssueSessionRefused + "/" + string(id), Type: inventory.IssueSessionRefused, Severity: inventory.SeverityWarning,
		HostIDs: []inventory.HostID{id},
		Hint:    "find out who has that address: somebody reads the boot network, or another DHCP server gave the machine an address that we do not know",
	}
}

// StrangerForgotten is how long after its last request the issue about a stranger stays open.
const StrangerForgotten = 24 * time.Hour

// CheckSource is the same rule for a request that names a host by its MAC alone. A caller that does not know the session
// must not take a boot over, nor report on it.
func (a *Admission) CheckSource(tx inventory.Tx, c pxe.Client) error {
	h, err := tx.FindHostByMAC(c.MAC)
	if inventory.IsKind(err, inventory.NotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read host of %s: %w", c.MAC, err)
	}
	cur, isRunning := a.cfg.Sessions.Of(c.MAC)
	b := identity.Boot{Ports: h.MACs()}
	if isRunning && cur.Subnet != "" {
		b.Address = cur.Address
	}
	caller, err := a.callerAt(tx, c.Address)
	if err != nil || !c.Address.IsValid() && !b.Address.IsValid() {
		return err
	}
	if way, why := identity.WayOf(b, caller); way == "" {
		err := inventory.Errorf(inventory.Forbidden, "%s is not the address of %s: %s", c.Address, h.Name, why).
			WithHint("let it ask DHCP for its address and boot from there")
		err.Err = errStranger
		a.noteStranger(inventory.BootSession{ID: cur.ID, HostID: h.ID, MAC: c.MAC}, c.Address, "script", err)
		return err
	}
	return nil
}
