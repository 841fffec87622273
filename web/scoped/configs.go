package scoped

import (
	"strings"

	"slipway.dev/slipway/inventory"
)

// imageTx shows everything.
type imageTx struct{ *sight }

// Artefacts belong to nobody: all may read them. Writes need the role everywhere.

func (t imageTx) FindArtefact(d inventory.Digest) (inventory.Artefact, error) {
	return t.all.FindArtefact(d)
}

func (t imageTx) ListArtefacts(p inventory.Page) ([]inventory.Artefact, error) {
	return t.all.ListArtefacts(p)
}

func (t imageTx) SaveArtefact(a inventory.Artefact) error { return t.all.SaveArtefact(a) }

func (t imageTx) DeleteArtefact(d inventory.Digest) error { return t.all.DeleteArtefact(d) }

// configTx shows no revisions and renderings of hosts out of reach.
type configTx struct{ *sight }

// isOfHostLayer returns the host whose layer a revision is of.
func isOfHostLayer(k inventory.RevisionKind, name string) (inventory.HostID, bool) {
	id, ok := strings.CutPrefix(name, string(inventory.ScopeHost)+"/")
	return inventory.HostID(id), ok && k == inventory.RevisionOfLayer
}

// FindRevision implements inventory.ConfigTx.
func (t configTx) FindRevision(k inventory.RevisionKind, name string, n int) (inventory.Revision, error) {
	if id, ok := isOfHostLayer(k, name); ok {
		if err := t.needHost(id); err != nil {
			return inventory.Revision{}, err
		}
	}
	return t.all.FindRevision(k, name, n)
}

// ListRevisions implements inventory.ConfigTx.
func (t configTx) ListRevisions(k inventory.RevisionKind, name string, before, limit int) ([]inventory.Revision, error) {
	if id, ok := isOfHostLayer(k, name); ok {
		if err := t.needHost(id); err != nil {
			return nil, err
		}
	}
	return t.all.ListRevisions(k, name, before, limit)
}

// FindRendering implements inventory.ConfigTx.
func (t configTx) FindRendering(d inventory.Digest) (inventory.Rendering, error) {
	r, err := t.all.FindRendering(d)
	return seen(t.sight, r, err, func(r inventory.Rendering) (bool, error) { return t.seesHost(r.HostID) }, "rendering", string(d))
}

// ListRenderings implements inventory.ConfigTx.
func (t configTx) ListRenderings(host inventory.HostID, limit int) ([]inventory.Rendering, error) {
	return ofHost(t.sight, host, func() ([]inventory.Rendering, error) { return t.all.ListRenderings(host, limit) })
}

// Renderings are kept by the engine.

func (t configTx) HasRendering(host inventory.HostID, d inventory.Digest) (bool, error) {
	return t.all.HasRendering(host, d)
}
func (t configTx) SaveRendering(r inventory.Rendering) error { return t.all.SaveRendering(r) }

// secretTx shows everything.
type secretTx struct{ *sight }

// Join tokens, deliveries and locks are of the engine.

func (t secretTx) FindJoinToken(id string) (inventory.JoinToken, error) {
	return t.all.FindJoinToken(id)
}

func (t secretTx) FindJoinTokenOf(s inventory.SessionID, target string) (inventory.JoinToken, error) {
	return t.all.FindJoinTokenOf(s, target)
}

func (t secretTx) ListJoinTokens(target string, states ...inventory.JoinTokenState) ([]inventory.JoinToken, error) {
	return t.all.ListJoinTokens(target, states...)
}
func (t secretTx) SaveJoinToken(k inventory.JoinToken) error { return t.all.SaveJoinToken(k) }
func (t secretTx) FindDelivery(s inventory.SessionID, document string) (inventory.Delivery, error) {
	return t.all.FindDelivery(s, document)
}
func (t secretTx) SaveDelivery(d inventory.Delivery) error      { return t.all.SaveDelivery(d) }
func (t secretTx) FindLock(name string) (inventory.Lock, error) { return t.all.FindLock(name) }
func (t secretTx) ListLocks() ([]inventory.Lock, error)         { return t.all.ListLocks() }
func (t secretTx) SaveLock(l inventory.Lock) error              { return t.all.SaveLock(l) }
func (t secretTx) DeleteLock(name string) error                 { return t.all.DeleteLock(name) }

// The keys of the site are for the server itself.
func (t secretTx) FindSiteKey(string) (inventory.SiteKey, error) {
	return inventory.SiteKey{}, instanceTx(t).refused()
}
func (t secretTx) SaveSiteKey(inventory.SiteKey) error { return instanceTx(t).refused() }
func (t secretTx) DeleteSiteKey(string) error          { return instanceTx(t).refused() }
