package scoped

import (
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// imageTx shows everything.
type imageTx struct{ *sight }

// Artefacts, images and profiles belong to nobody: all may read them. Writes need the role everywhere.

func (t imageTx) FindArtefact(d inventory.Digest) (inventory.Artefact, error) {
	return t.all.FindArtefact(d)
}

func (t imageTx) ListArtefacts(p inventory.Page) ([]inventory.Artefact, error) {
	return t.all.ListArtefacts(p)
}

func (t imageTx) SaveArtefact(a inventory.Artefact) error { return t.all.SaveArtefact(a) }

func (t imageTx) DeleteArtefact(d inventory.Digest) error { return t.all.DeleteArtefact(d) }

func (t imageTx) FindImage(name string) (inventory.Image, error) { return t.all.FindImage(name) }

func (t imageTx) ListImages(p inventory.Page) ([]inventory.Image, error) { return t.all.ListImages(p) }

func (t imageTx) CreateImage(i *inventory.Image, now time.Time) error {
	return t.all.CreateImage(i, now)
}

func (t imageTx) UpdateImage(i *inventory.Image, now time.Time) error {
	return t.all.UpdateImage(i, now)
}

func (t imageTx) DeleteImage(name string) error { return t.all.DeleteImage(name) }

func (t imageTx) FindProfile(name string) (inventory.Profile, error) { return t.all.FindProfile(name) }

func (t imageTx) ListProfiles(p inventory.Page) ([]inventory.Profile, error) {
	return t.all.ListProfiles(p)
}

func (t imageTx) CreateProfile(f *inventory.Profile, now time.Time) error {
	return t.all.CreateProfile(f, now)
}

func (t imageTx) UpdateProfile(f *inventory.Profile, now time.Time) error {
	return t.all.UpdateProfile(f, now)
}
func (t imageTx) DeleteProfile(name string) error { return t.all.DeleteProfile(name) }

// configTx shows no layers, revisions and renderings of hosts out of reach.
type configTx struct{ *sight }

// isOfHostLayer returns the host whose layer a revision is of.
func isOfHostLayer(k inventory.RevisionKind, name string) (inventory.HostID, bool) {
	id, ok := strings.CutPrefix(name, string(inventory.ScopeHost)+"/")
	return inventory.HostID(id), ok && k == inventory.RevisionOfLayer
}

// FindLayer implements inventory.ConfigTx.
func (t configTx) FindLayer(s inventory.Scope, name string) (inventory.Layer, error) {
	if s == inventory.ScopeHost {
		if err := t.needHost(inventory.HostID(name)); err != nil {
			return inventory.Layer{}, err
		}
	}
	return t.all.FindLayer(s, name)
}

// ListLayers implements inventory.ConfigTx.
func (t configTx) ListLayers(p inventory.Page) ([]inventory.Layer, error) {
	return keptPages(p, t.all.ListLayers, func(l inventory.Layer) string { return l.Key() }, func(l inventory.Layer) (bool, error) {
		if l.Scope != inventory.ScopeHost {
			return true, nil
		}
		return t.seesHost(inventory.HostID(l.Name))
	})
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
	if err != nil {
		return r, err
	}
	if ok, err := t.seesHost(r.HostID); err != nil || !ok {
		return inventory.Rendering{}, orGone(err, t.gone("rendering", string(d)))
	}
	return r, nil
}

// ListRenderings implements inventory.ConfigTx.
func (t configTx) ListRenderings(host inventory.HostID, limit int) ([]inventory.Rendering, error) {
	if err := t.needHost(host); err != nil {
		return nil, err
	}
	return t.all.ListRenderings(host, limit)
}

// Writes of layers need the role everywhere. Renderings are kept by the engine.

func (t configTx) CreateLayer(l *inventory.Layer, now time.Time) error {
	return t.all.CreateLayer(l, now)
}

func (t configTx) UpdateLayer(l *inventory.Layer, now time.Time) error {
	return t.all.UpdateLayer(l, now)
}

func (t configTx) DeleteLayer(s inventory.Scope, name string) error {
	return t.all.DeleteLayer(s, name)
}

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
