package access

import (
	"net/http"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/scoped"
)

// userOps are the operations on users.
type userOps struct {
	frame     *rest.Frame
	store     inventory.Store // the whole
	passwords *passwords
}

// add registers the operations on users. Passwords have one of their own: no other takes or tells them.
func (o *userOps) add() {
	n := rest.Plain(noun.Users, o.frame.Now, func(tx inventory.Tx, in, old *inventory.User) error {
		// A request never sets these fields. They have operations of their own, which check what is given.
		in.PasswordHash, in.HasPassword, in.HasSecondFactor, in.SealedFactors = "", false, false, nil
		if old != nil {
			in.PasswordHash, in.HasPassword, in.LoginAt = old.PasswordHash, old.HasPassword, old.LoginAt
			in.HasSecondFactor, in.SealedFactors = old.HasSecondFactor, old.SealedFactors
		}
		if in.Grants == nil {
			in.Grants = inventory.Grants{}
		}
		if err := in.Validate(); err != nil {
			return err
		}
		return checkGrants(tx, in.Grants)
	})
	update, remove := n.Update, n.Remove
	n.Update = func(tx inventory.Tx, in *inventory.User) error {
		return keepingAdmin(tx, in.Name, func() error {
			if err := update(tx, in); err != nil || !in.IsDisabled {
				return err
			}
			// Each request of a disabled user is refused in any case. The rows go, so that enabling the user does not revive old logins.
			_, err := endLogins(tx, inventory.LoginFilter{User: in.Name}, "", "")
			return err
		})
	}
	n.Remove = func(tx inventory.Tx, name string) error {
		return keepingAdmin(tx, name, func() error { return remove(tx, name) })
	}
	n.Counts = countsOfUser
	n.How = func(before, after *inventory.User) string {
		if after != nil && after.IsDisabled && !before.IsDisabled {
			return "disable"
		}
		return ""
	}
	rest.AddNoun(o.frame, n)
	rest.Register(o.frame, rest.Operation{
		Method: http.MethodPut, Path: "/users/{name}/password", ID: "put-password", Tag: "users",
		Summary: "Set a user's password", Needs: rest.Anybody,
		About: "One's own needs the old one, unless there is none; an admin may set anybody's. The user's other logins end.",
		Dry:   true, Errors: []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict},
	}, o.putPassword)
}

func countsOfUser(tx inventory.Tx, u inventory.User) (map[string]int, error) {
	tokens, err := scoped.TokensOf(tx, u.Name)
	if err != nil {
		return nil, err
	}
	logins, err := tx.ListLogins(inventory.LoginFilter{User: u.Name})
	return map[string]int{"token": len(tokens), "login": len(logins)}, err
}

// isWayIn reports whether a user can come in and be admin of everything.
func isWayIn(u *inventory.User) bool {
	return !u.IsDisabled && u.Grants.Everywhere() == inventory.Admin && (u.HasPassword || u.IsExternal())
}

// keepingAdmin runs a change of a user, and refuses it when the last who could come in as admin is gone with it.
func keepingAdmin(tx inventory.Tx, name string, change func() error) error {
	// A system that has no such admin may still be changed. Only the loss of the last one is refused.
	count := func() (n int, err error) {
		users, err := tx.Users().List(inventory.Page{})
		for i := range users {
			if isWayIn(&users[i]) {
				n++
			}
		}
		return n, err
	}
	before, err := count()
	if err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	after, err := count()
	if err == nil && before > 0 && after == 0 {
		err = inventory.Errorf(inventory.Conflict, "user %s is the last admin who can log in", name).
			WithHint("make another first: slipway user create NAME --role admin")
	}
	return err
}

type passwordInput struct {
	rest.NameRef
	DryRun bool `query:"dryRun" doc:"Only check whether it could be set"`
	Body   struct {
		Password string `json:"password" maxLength:"1024" doc:"At least 10 characters"`
		Old      string `json:"old,omitempty" maxLength:"1024" doc:"The password until now, for one's own"`
	}
}

// putPassword hashes outside of the transaction: that takes long, and nobody else could write meanwhile.
func (o *userOps) putPassword(req *rest.Request, in *passwordInput) (*rest.Written, error) {
	c := req.Caller
	isOwn, isAdmin := c.User == in.Name && c.Token == "", c.Grants.Everywhere() == inventory.Admin
	if !isOwn && !isAdmin {
		return nil, inventory.Errorf(inventory.Forbidden, "only an admin sets the password of another").WithHint("your own: PUT /api/v1/users/%s/password", scoped.OrName(c.User))
	}
	var stored inventory.User
	err := o.store.Read(req, func(tx inventory.Tx) (err error) {
		stored, err = tx.Users().Find(in.Name)
		return err
	})
	if err != nil {
		return nil, err
	}
	if stored.IsExternal() {
		return nil, inventory.Errorf(inventory.Conflict, "user %s logs in elsewhere: %s vouches", stored.Name, inventory.Clean(stored.Issuer, 80)).
			WithHint("change the password there")
	}
	if err := checkPassword(stored, in.Body.Password); err != nil {
		return nil, err
	}
	if isOwn && stored.HasPassword {
		if err := o.passwords.checkOld(req, stored, in.Body.Old); err != nil {
			return nil, err
		}
	}
	if in.DryRun {
		return &rest.Written{Status: http.StatusOK, Body: rest.Diff{IsDryRun: true}}, nil
	}
	hash, err := o.passwords.inner.hash(req, in.Body.Password)
	if err != nil {
		return nil, err
	}
	return &rest.Written{Status: http.StatusNoContent}, o.frame.Write(req, false, func(tx inventory.Tx) error {
		u, err := tx.Users().Find(in.Name)
		if err != nil {
			return err
		}
		// The old password was checked against the stored hash, outside of this transaction. Another request may have been faster.
		if u.PasswordHash != stored.PasswordHash {
			return inventory.Errorf(inventory.Conflict, "the password of user %s has changed meanwhile", u.Name).WithHint("try it again")
		}
		before := u
		u.PasswordHash = hash
		if err := tx.Users().Update(&u, o.frame.Now()); err != nil {
			return err
		}
		rest.Edited(req, "user", u.Name, inventory.AuditUpdate, before, u, u.Version)
		req.Trail.Fix("passwords are not kept")
		if _, err := endLogins(tx, inventory.LoginFilter{User: u.Name}, c.Login, ""); err != nil {
			return err
		}
		return o.frame.Changed(req, tx, "user/"+u.Name, "password of user "+u.Name+" set")
	})
}
