package access

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

// NewToken is a token with its secret.
type NewToken struct {
	Name       string           `json:"name"`
	Secret     string           `json:"secret" doc:"Told this once; send it as Authorization: Bearer SECRET"`
	User       string           `json:"user,omitempty"`
	Grants     inventory.Grants `json:"grants"`
	Cluster    string           `json:"cluster,omitempty"`
	Namespaces []string         `json:"namespaces,omitempty"`
	CreatedAt  time.Time        `json:"createdAt"`
	ExpiresAt  time.Time        `json:"expiresAt,omitzero"`
}

type tokenInput struct {
	Body struct {
		Name       string           `json:"name"`
		User       *string          `json:"user,omitempty" doc:"The user that owns it: it never has more rights than that user, and goes with the user. Without it, its maker. Only an admin may name another, or nobody by an empty text" maxLength:"63"`
		Grants     inventory.Grants `json:"grants,omitempty" doc:"Its roles; without it, all roles of its maker" maxItems:"256"`
		Cluster    string           `json:"cluster,omitempty" doc:"An attached cluster, or the UID of any (that of its namespace kube-system): the token is for the controllers of this cluster. It reaches only the cluster's own things, and has no roles. Only an admin makes one" maxLength:"64"`
		Namespaces []string         `json:"namespaces,omitempty" doc:"Of the cluster: only for their objects. Hosts and pools are then only read" maxItems:"256"`
		ExpiresAt  time.Time        `json:"expiresAt,omitzero" doc:"Without it the token stays valid until it is deleted"`
	}
}

// tokenOps are the operations on tokens.
type tokenOps struct{ frame *rest.Frame }

// add registers the operations on tokens. A token is never changed and its secret is told once. Who is no admin has to
// do with the tokens of one's own only, which is for the store to say (see scoped).
func (o *tokenOps) add() {
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
	rest.AddNoun(o.frame, rest.Noun[inventory.Token]{
		Singular: "token", Plural: "tokens", Article: "a", Needs: rest.Anybody, ReadNeeds: rest.Anybody,
		Name:    func(t inventory.Token) string { return t.Name },
		Version: func(inventory.Token) int64 { return 0 },
		Find:    find,
		List: func(tx inventory.Tx, p rest.Page) (*rest.Listed[inventory.Token], error) {
			all, err := tx.ListTokens()
			slices.SortFunc(all, func(a, b inventory.Token) int { return strings.Compare(a.Name, b.Name) })
			return rest.Cut(all, p, func(t inventory.Token) string { return t.Name }), err
		},
		Remove: func(tx inventory.Tx, name string) error { return tx.DeleteToken(name) },
	})
	rest.Register(o.frame, rest.Operation{
		Method: http.MethodPost, Path: "/tokens", ID: "create-token", Tag: "tokens", Summary: "Create a token", Needs: rest.Anybody,
		About: "The answer has its secret, which is shown only once. It may do no more than its maker.", Status: http.StatusCreated,
		Errors: []int{http.StatusConflict, http.StatusForbidden, http.StatusNotFound},
	}, o.createToken)
}

func (o *tokenOps) createToken(req *rest.Request, in *tokenInput) (*rest.One[NewToken], error) {
	now, c := o.frame.Now(), req.Caller
	if err := inventory.CheckName("token", in.Body.Name); err != nil {
		return nil, err
	}
	t := inventory.Token{Name: in.Body.Name, User: c.User, Grants: in.Body.Grants, ExpiresAt: in.Body.ExpiresAt.UTC()}
	if !t.ExpiresAt.IsZero() && !t.ExpiresAt.After(now) {
		return nil, inventory.Errorf(inventory.Invalid, "the token would have expired already").WithHint("give a time that is still to come")
	}
	if in.Body.User != nil {
		t.User = *in.Body.User
	}
	isClusters := in.Body.Cluster != "" || len(in.Body.Namespaces) > 0
	if isClusters && in.Body.User == nil {
		t.User = ""
	}
	if len(t.Grants) == 0 && !isClusters {
		t.Grants = c.Grants
	}
	secret := NewSecret()
	t.Hash = HashToken(secret)
	err := o.frame.Write(req, false, func(tx inventory.Tx) (err error) {
		if isClusters {
			t.Namespaces = slices.Clone(in.Body.Namespaces)
			slices.Sort(t.Namespaces)
			t.Namespaces = slices.Compact(t.Namespaces)
		}
		if in.Body.Cluster != "" {
			if t.Cluster, err = rest.ClusterUID(tx, in.Body.Cluster); err != nil {
				return err
			}
		}
		if err := mayMake(tx, c, &t); err != nil {
			return err
		}
		if err := tx.CreateToken(&t, now); err != nil {
			return err
		}
		rest.Edited(req, "token", t.Name, inventory.AuditCreate, nil, t, 0)
		req.Trail.Fix("a token is ended by deleting it")
		return o.frame.Changed(req, tx, "token/"+t.Name, "token "+t.Name+" ("+allowedTo(&t)+") created")
	})
	return &rest.One[NewToken]{Body: NewToken{
		Name: t.Name, Secret: secret, User: t.User, Grants: t.Grants, Cluster: t.Cluster, Namespaces: t.Namespaces, CreatedAt: t.CreatedAt, ExpiresAt: t.ExpiresAt,
	}}, err
}

// mayMake refuses a token that would give its maker more than the maker has: other roles, another user, or more time.
func mayMake(tx inventory.Tx, c rest.Caller, t *inventory.Token) error {
	isAdmin := c.Grants.Everywhere() == inventory.Admin
	if err := t.ValidateCluster(); err != nil {
		return err
	}
	switch {
	case t.Cluster != "" && !isAdmin:
		return inventory.Errorf(inventory.Forbidden, "only an admin makes the token of a cluster").WithHint("ask an admin")
	case t.Cluster == "" && len(t.Grants) == 0:
		return inventory.Errorf(inventory.Invalid, "the token could do nothing").WithHint("give it a role")
	case !isAdmin && c.User == "":
		return inventory.Errorf(inventory.Forbidden, "a token that belongs to no user makes no others").WithHint("log in as a user, or ask an admin")
	case !isAdmin && t.User != c.User:
		return inventory.Errorf(inventory.Forbidden, "only an admin makes tokens of other users, or of nobody").WithHint("leave out user")
	case !c.Grants.Covers(t.Grants):
		return inventory.Errorf(inventory.Forbidden, "the token would do more than you may: it has %s; you have %s", t.Grants, orNothing(c.Grants)).
			WithHint("give it roles that you have")
	}
	if err := checkGrants(tx, t.Grants); err != nil {
		return err
	}
	// A token must not make one that outlives it: a thief could renew the access without end.
	if c.Token == "" {
		return nil
	}
	own, err := tx.FindToken(c.Token)
	if err == nil && !own.ExpiresAt.IsZero() && (t.ExpiresAt.IsZero() || t.ExpiresAt.After(own.ExpiresAt)) {
		err = inventory.Errorf(inventory.Forbidden, "the token would outlive token %s, which makes it", own.Name).
			WithHint("let it expire by %s", own.ExpiresAt.Format(time.RFC3339))
	}
	return err
}

// allowedTo says what a token may do.
func allowedTo(t *inventory.Token) string {
	switch {
	case t.Cluster == "":
		return t.Grants.String()
	case len(t.Namespaces) == 0:
		return "controllers of cluster " + t.Cluster
	}
	return "controllers of cluster " + t.Cluster + ", namespaces " + strings.Join(t.Namespaces, ", ")
}

func orNothing(g inventory.Grants) string {
	if len(g) == 0 {
		return "nothing"
	}
	return g.String()
}

// checkGrants checks grants, and that their pools exist.
func checkGrants(tx inventory.Tx, g inventory.Grants) error {
	if err := g.Validate(); err != nil {
		return err
	}
	for _, name := range g.Pools() {
		if _, err := tx.Pools().Find(name); inventory.IsKind(err, inventory.NotFound) && name != inventory.DefaultPool {
			return inventory.Errorf(inventory.Invalid, "there is no pool %s", name).WithHint("slipway pool list shows them")
		} else if err != nil && !inventory.IsKind(err, inventory.NotFound) {
			return err
		}
	}
	return nil
}
