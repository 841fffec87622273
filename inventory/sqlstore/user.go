package sqlstore

import (
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	saveFactorsSQL = `UPDATE users SET factors = $1 WHERE name = $2`
	noteLoginSQL   = `UPDATE users SET login_at = $1 WHERE name = $2`

	loginColumns = `id, hash, user_name, token_name, source, agent, created_at, seen_at, expires_at`

	findLoginSQL       = `SELECT ` + loginColumns + ` FROM logins WHERE id = $1`
	findLoginByHashSQL = `SELECT ` + loginColumns + ` FROM logins WHERE hash = $1`
	listLoginsSQL      = `SELECT ` + loginColumns + ` FROM logins WHERE ($1 = '' OR user_name = $2) AND ($3 = '' OR token_name = $4)
ORDER BY created_at DESC, id`
	insertLoginSQL         = `INSERT INTO logins (` + loginColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
	touchLoginSQL          = `UPDATE logins SET seen_at = $1 WHERE id = $2`
	deleteLoginSQL         = `DELETE FROM logins WHERE id = $1`
	deleteLoginsOfUserSQL  = `DELETE FROM logins WHERE user_name = $1`
	deleteLoginsOfTokenSQL = `DELETE FROM logins WHERE token_name = $1`
	forgetLoginsSQL        = `DELETE FROM logins WHERE id IN (SELECT id FROM logins WHERE expires_at <= $1 OR seen_at < $2 LIMIT $3)`
)

func readLogin(s scan) (l inventory.Login, err error) {
	err = s(&l.ID, &l.Hash, &l.User, &l.Token, &l.Source, &l.Agent, timeColumn(&l.CreatedAt), timeColumn(&l.SeenAt), timeColumn(&l.ExpiresAt))
	return l, err
}

// FindLoginByHash implements inventory.AccessTx.
func (t *tx) FindLoginByHash(hash string) (inventory.Login, error) {
	return find(t, readLogin, "login", "with that cookie", findLoginByHashSQL, hash)
}

// ListLogins implements inventory.AccessTx.
func (t *tx) ListLogins(f inventory.LoginFilter) ([]inventory.Login, error) {
	return list(t, readLogin, listLoginsSQL, f.User, f.User, f.Token, f.Token)
}

// CreateLogin implements inventory.AccessTx.
func (t *tx) CreateLogin(l *inventory.Login, now time.Time) error {
	if _, err := find(t, readLogin, "login", l.ID, findLoginSQL, l.ID); err == nil {
		return taken("login", l.ID)
	} else if !inventory.IsKind(err, inventory.NotFound) {
		return err
	}
	now = stamp(now)
	if _, err := t.write(insertLoginSQL, l.ID, l.Hash, l.User, l.Token, l.Source, l.Agent, ms(now), ms(now), ms(l.ExpiresAt)); err != nil {
		return err
	}
	l.CreatedAt, l.SeenAt = now, now
	return nil
}

// TouchLogin implements inventory.AccessTx.
func (t *tx) TouchLogin(id string, now time.Time) error {
	n, err := t.write(touchLoginSQL, ms(stamp(now)), id)
	return changed(n, err, "login", id)
}

// DeleteLogin implements inventory.AccessTx.
func (t *tx) DeleteLogin(id string) error {
	n, err := t.write(deleteLoginSQL, id)
	return changed(n, err, "login", id)
}

// ForgetLogins implements inventory.AccessTx.
func (t *tx) ForgetLogins(now, idle time.Time, limit int) (int, error) {
	n, err := t.write(forgetLoginsSQL, ms(now), ms(idle), limit)
	return int(n), err
}

var findUserBySubjectSQL = users.from + ` WHERE issuer = $1 AND subject = $2 AND issuer <> ''`

// FindUserBySubject implements inventory.AccessTx.
func (t *tx) FindUserBySubject(issuer, subject string) (inventory.User, error) {
	return find(t, users.readOne, "user", "with that subject", findUserBySubjectSQL, issuer, subject)
}

// SaveFactors implements inventory.AccessTx.
func (t *tx) SaveFactors(user string, sealed []byte) error {
	n, err := t.write(saveFactorsSQL, blob(sealed), user)
	return changed(n, err, "user", user)
}

// NoteLogin implements inventory.AccessTx.
func (t *tx) NoteLogin(name string, now time.Time) error {
	n, err := t.write(noteLoginSQL, ms(stamp(now)), name)
	return changed(n, err, "user", name)
}
