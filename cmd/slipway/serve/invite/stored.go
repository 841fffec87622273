package invite

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"slipway.dev/slipway/inventory"
)

// stored is an invitation as the database has it: with hashes in place of its secret and of the proof.
type stored struct {
	ID          string     `json:"id"`
	Name        string     `json:"name,omitempty"`
	By          string     `json:"by"`
	Hash        []byte     `json:"hash"`
	MadeAt      time.Time  `json:"madeAt"`
	ExpiresAt   time.Time  `json:"expiresAt"`
	IsWithdrawn bool       `json:"isWithdrawn,omitempty"`
	WrongN      int        `json:"wrongN,omitempty"`
	Proof       []byte     `json:"proof,omitempty"`
	UsedAt      time.Time  `json:"usedAt,omitzero"`
	UsedFrom    netip.Addr `json:"usedFrom,omitzero"`
	UsedAs      string     `json:"usedAs,omitempty"`
	GivenN      int        `json:"givenN,omitempty"`
}

// Load takes over the invitations of the leader before, as Config.Keep has stored them last.
func (b *Book) Load(text string) error {
	var all []stored
	if text != "" {
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			return inventory.Errorf(inventory.Internal, "the invitations in the database cannot be read: %w", err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = nil
	for _, s := range all[:min(len(all), mostKept)] {
		i := &invitation{
			id: s.ID, name: s.Name, by: s.By, madeAt: s.MadeAt, expiresAt: s.ExpiresAt, isWithdrawn: s.IsWithdrawn, wrongN: s.WrongN,
			use: use{usedAt: s.UsedAt, usedFrom: s.UsedFrom, usedAs: s.UsedAs, givenN: s.GivenN},
		}
		copy(i.hash[:], s.Hash)
		copy(i.proof[:], s.Proof)
		b.all = append(b.all, i)
	}
	return nil
}

// text is all invitations, for Load.
func (b *Book) text() (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := []stored{}
	for _, i := range b.all {
		s := stored{
			ID: i.id, Name: i.name, By: i.by, Hash: i.hash[:], MadeAt: i.madeAt, ExpiresAt: i.expiresAt, IsWithdrawn: i.isWithdrawn,
			WrongN: i.wrongN, UsedAt: i.usedAt, UsedFrom: i.usedFrom, UsedAs: i.usedAs, GivenN: i.givenN,
		}
		if i.isUsed() {
			s.Proof = i.proof[:]
		}
		all = append(all, s)
	}
	text, err := json.Marshal(all)
	return string(text), err
}

// keep stores all invitations, with an event unless note is nil. The last one to write has what all before have changed.
func (b *Book) keep(ctx context.Context, note *Note) error {
	b.keeping.Lock()
	defer b.keeping.Unlock()
	text, err := b.text()
	if err == nil {
		err = b.cfg.Keep(ctx, text, note)
	}
	if err != nil {
		return fmt.Errorf("store the invitations: %w", err)
	}
	return nil
}
