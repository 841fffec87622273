package access

import (
	"context"
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	loginIdle = 12 * time.Hour     // a login that is not used for so long has ended
	loginFor  = 7 * 24 * time.Hour // and any at this age
)

// loginRows keeps the logins of users and tokens.
type loginRows struct {
	store inventory.Store // the whole
	now   func() time.Time
}

// loginsMax is how many logins a user or token has; the oldest ends for one more.
const loginsMax = 50

// begin stores a login and returns its cookie's secret.
func (r *loginRows) begin(ctx context.Context, l *inventory.Login) (secret string, err error) {
	// The secret leaves only in the cookie. A copy of the database has its hash, and lets nobody in.
	secret, now := NewSecret(), r.now()
	l.ID, l.Hash = newLoginID(), HashToken(secret)
	return secret, r.store.Write(ctx, func(tx inventory.Tx) error {
		// At most 1,000 rows at once: a login after a long pause must not wait for all of them.
		if _, err := tx.ForgetLogins(now, now.Add(-loginIdle), 1000); err != nil {
			return err
		}
		old, err := tx.ListLogins(inventory.LoginFilter{User: l.User, Token: l.Token})
		if err != nil {
			return err
		}
		for i := loginsMax - 1; i < len(old); i++ {
			if err := tx.DeleteLogin(old[i].ID); err != nil {
				return err
			}
		}
		if l.User != "" {
			if err := tx.NoteLogin(l.User, now); err != nil {
				return err
			}
		}
		return tx.CreateLogin(l, now)
	})
}

// endLogins ends logins, but the one to keep; hit is whether that with the id own was among them.
func endLogins(tx inventory.Tx, f inventory.LoginFilter, keep, own string) (hit bool, err error) {
	all, err := tx.ListLogins(f)
	for _, l := range all {
		if l.ID == keep {
			continue
		}
		if err := tx.DeleteLogin(l.ID); err != nil {
			return hit, err
		}
		hit = hit || l.ID == own
	}
	return hit, err
}
