package invite

import (
	"encoding/json"
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

// readAll reads what textOf has written; "" is no invitation.
func readAll(text string) (invitations []*invitation, err error) {
	var all []stored
	if text != "" {
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			return nil, inventory.Errorf(inventory.Internal, "the invitations in the database cannot be read: %w", err)
		}
	}
	for _, s := range all[:min(len(all), mostKept)] {
		i := &invitation{
			id: s.ID, name: s.Name, by: s.By, madeAt: s.MadeAt, expiresAt: s.ExpiresAt, isWithdrawn: s.IsWithdrawn, wrongN: s.WrongN,
			use: use{usedAt: s.UsedAt, usedFrom: s.UsedFrom, usedAs: s.UsedAs, givenN: s.GivenN},
		}
		copy(i.hash[:], s.Hash)
		copy(i.proof[:], s.Proof)
		invitations = append(invitations, i)
	}
	return invitations, nil
}

// textOf is invitations as a text.
func textOf(invitations []*invitation) (string, error) {
	all := []stored{}
	for _, i := range invitations {
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
