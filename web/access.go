package web

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
)

// addAcceptRules registers the operations on accept rules.
func (s *Server) addAcceptRules() {
	now := s.cfg.Now
	addNoun(s, noun[inventory.AcceptRule]{
		singular: "acceptrule", plural: "acceptrules", article: "an",
		name:    func(r inventory.AcceptRule) string { return r.Name },
		version: func(r inventory.AcceptRule) int64 { return r.Version },
		prepare: func(_ inventory.Tx, in *inventory.AcceptRule, name string, old *inventory.AcceptRule) error {
			if err := sameName("acceptrule", &in.Name, name); err != nil {
				return err
			}
			if old != nil {
				in.CreatedAt, in.UpdatedAt, in.Version = old.CreatedAt, old.UpdatedAt, old.Version
			}
			return in.Validate()
		},
		find: func(tx inventory.Tx, name string) (inventory.AcceptRule, error) { return tx.FindAcceptRule(name) },
		list: func(tx inventory.Tx, p Page) (*listed[inventory.AcceptRule], error) {
			all, err := tx.ListAcceptRules()
			return cut(all, p, func(r inventory.AcceptRule) string { return r.Name }), err
		},
		create: func(tx inventory.Tx, in *inventory.AcceptRule) error { return tx.CreateAcceptRule(in, now()) },
		update: func(tx inventory.Tx, in *inventory.AcceptRule) error { return tx.UpdateAcceptRule(in, now()) },
		remove: func(tx inventory.Tx, name string) error { return tx.DeleteAcceptRule(name) },
	})
}

// NewToken is a token with its secret.
type NewToken struct {
	Name      string    `json:"name"`
	Secret    string    `json:"secret" doc:"Told this once; send it as Authorization: Bearer SECRET"`
	CreatedAt time.Time `json:"createdAt"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

type tokenInput struct {
	Body struct {
		Name      string    `json:"name"`
		ExpiresAt time.Time `json:"expiresAt,omitzero" doc:"Without it the token stays valid until it is deleted"`
	}
}

// addTokens registers the operations on tokens. A token is never changed and its secret is told once.
func (s *Server) addTokens() {
	find := func(tx inventory.Tx, name string) (inventory.Token, error) {
		all, err := tx.ListTokens()
		if i := slices.IndexFunc(all, func(t inventory.Token) bool { return t.Name == name }); i >= 0 {
			return all[i], nil
		}
		if err == nil {
			err = inventory.Errorf(inventory.NotFound, "there is no token %q", inventory.Clean(name, 80)).WithHint("slipway token list shows them")
		}
		return inventory.Token{}, err
	}
	addNoun(s, noun[inventory.Token]{
		singular: "token", plural: "tokens", article: "a",
		name:    func(t inventory.Token) string { return t.Name },
		version: func(inventory.Token) int64 { return 0 },
		find:    find,
		list: func(tx inventory.Tx, p Page) (*listed[inventory.Token], error) {
			all, err := tx.ListTokens()
			slices.SortFunc(all, func(a, b inventory.Token) int { return compareText(a.Name, b.Name) })
			return cut(all, p, func(t inventory.Token) string { return t.Name }), err
		},
		remove: func(tx inventory.Tx, name string) error { return tx.DeleteToken(name) },
	})
	register(s, operation{
		method: http.MethodPost, path: "/tokens", id: "create-token", tag: "tokens", summary: "Create a token",
		about: "The answer has its secret, which is told this once.", status: http.StatusCreated, errors: []int{http.StatusConflict},
	}, s.createToken)
}

func (s *Server) createToken(ctx context.Context, in *tokenInput) (*one[NewToken], error) {
	now := s.cfg.Now()
	if err := inventory.CheckName("token", in.Body.Name); err != nil {
		return nil, err
	}
	if !in.Body.ExpiresAt.IsZero() && !in.Body.ExpiresAt.After(now) {
		return nil, inventory.Errorf(inventory.Invalid, "the token would have expired already").WithHint("give a time that is still to come")
	}
	secret := NewSecret()
	t := inventory.Token{Name: in.Body.Name, Hash: HashToken(secret), ExpiresAt: in.Body.ExpiresAt.UTC()}
	err := s.write(ctx, false, func(tx inventory.Tx) error {
		if err := tx.CreateToken(&t, now); err != nil {
			return err
		}
		return s.changed(ctx, tx, "token/"+t.Name, "token "+t.Name+" created")
	})
	return &one[NewToken]{Body: NewToken{Name: t.Name, Secret: secret, CreatedAt: t.CreatedAt, ExpiresAt: t.ExpiresAt}}, err
}

// NewSecret draws the secret of a token: 256 random bits behind a prefix by which secret scanners know it.
func NewSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return "slipway_" + hex.EncodeToString(b[:])
}
