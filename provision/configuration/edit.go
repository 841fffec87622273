package configuration

import (
	"encoding/json"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/render"
)

// edit is a transaction as it would be after a profile or layer was saved.
type edit struct {
	inventory.Tx
	profile *inventory.Profile
	layer   *inventory.Layer
}

// Profiles implements inventory.RecordTx.
func (t edit) Profiles() inventory.Records[inventory.Profile] {
	return editedProfiles{t.Tx.Profiles(), t.profile}
}

// Layers implements inventory.RecordTx.
func (t edit) Layers() inventory.Records[inventory.Layer] {
	return editedLayers{t.Tx.Layers(), t.layer}
}

// editedProfiles are the profiles as they would be.
type editedProfiles struct {
	inventory.Records[inventory.Profile]
	draft *inventory.Profile // nil for none
}

// Find implements inventory.Records.
func (x editedProfiles) Find(name string) (inventory.Profile, error) {
	if x.draft != nil && x.draft.Name == name {
		return *x.draft, nil
	}
	return x.Records.Find(name)
}

// List implements inventory.Records.
func (x editedProfiles) List(p inventory.Page) ([]inventory.Profile, error) {
	all, err := x.Records.List(p)
	if err != nil || x.draft == nil {
		return all, err
	}
	all = slices.DeleteFunc(all, func(p inventory.Profile) bool { return p.Name == x.draft.Name })
	return append(all, *x.draft), nil
}

// editedLayers are the layers as they would be.
type editedLayers struct {
	inventory.Records[inventory.Layer]
	draft *inventory.Layer // nil for none
}

// Find implements inventory.Records.
func (x editedLayers) Find(key string) (inventory.Layer, error) {
	if x.draft != nil && x.draft.Key() == key {
		return *x.draft, nil
	}
	return x.Records.Find(key)
}

// isUsedBy reports whether a rendering depends on what is edited.
func (t edit) isUsedBy(in *render.Input) bool {
	if t.profile != nil {
		return slices.ContainsFunc(in.Profiles, func(p inventory.Profile) bool { return p.Name == t.profile.Name })
	}
	return slices.ContainsFunc(in.Layers, func(l inventory.Layer) bool { return l.Scope == t.layer.Scope && l.Name == t.layer.Name })
}

// editKey tells one edit of a profile or layer from another.
func editKey(p *inventory.Profile, l *inventory.Layer) (string, error) {
	var said any
	if p != nil {
		c := *p
		c.Version, c.Revision, c.CreatedAt, c.UpdatedAt, c.Saved = 0, 0, time.Time{}, time.Time{}, inventory.Saved{}
		said = c
	} else {
		c := *l
		c.Version, c.Revision, c.CreatedAt, c.UpdatedAt, c.Saved = 0, 0, time.Time{}, time.Time{}, inventory.Saved{}
		said = c
	}
	b, err := json.Marshal([]any{p != nil, said})
	return string(b), err
}
