package sqlstore

import (
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	userColumns = `name, display_name, password_hash, grants, is_disabled, issuer, subject, login_at, created_at, updated_at, version, needs_factor, factors`

	findUserSQL          = `SELECT ` + userColumns + ` FROM users WHERE name = $1`
	findUserBySubjectSQL = `SELECT ` + userColumns + ` FROM users WHERE issuer = $1 AND subject = $2 AND issuer <> ''`
	listUsersSQL         = `SELECT ` + userColumns + ` FROM users WHERE name > $1 ORDER BY name LIMIT $2`
	userVersionSQL       = `SELECT version FROM users WHERE name = $1`
	insertUserSQL        = `INSERT INTO users (name, display_name, password_hash, grants, is_disabled, issuer, subject, needs_factor, login_at,
created_at, updated_at, version, factors) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $9, $10, 1, x'')`
	updateUserSQL = `UPDATE users SET display_name = $1, password_hash = $2, grants = $3, is_disabled = $4, issuer = $5, subject = $6,
needs_factor = $7, updated_at = $8, version = version + 1 WHERE name = $9 AND version = $10`
	saveFactorsSQL = `UPDATE users SET factors = $1 WHERE name = $2`
	noteLoginSQL   = `UPDATE users SET login_at = $1 WHERE name = $2`
	deleteUserSQL  = `DELETE FROM users WHERE name = $1`
)

func readUser(s scan) (u inventory.User, err error) {
	err = s(&u.Name, &u.DisplayName, &u.PasswordHash, jsonColumn(&u.Grants), &u.IsDisabled, &u.Issuer, &u.Subject,
		timeColumn(&u.LoginAt), timeColumn(&u.CreatedAt), timeColumn(&u.UpdatedAt), &u.Version, &u.NeedsSecondFactor, &u.SealedFactors)
	u.HasPassword, u.HasSecondFactor = u.PasswordHash != "", len(u.SealedFactors) > 0
	if u.Grants == nil {
		u.Grants = inventory.Grants{}
	}
	return u, err
}

// FindUser implements inventory.AccessTx.
func (t *tx) FindUser(name string) (inventory.User, error) {
	return find(t, readUser, "user", name, findUserSQL, name)
}

// FindUserBySubject implements inventory.AccessTx.
func (t *tx) FindUserBySubject(issuer, subject string) (inventory.User, error) {
	return find(t, readUser, "user", "with that subject", findUserBySubjectSQL, issuer, subject)
}

// ListUsers implements inventory.AccessTx.
func (t *tx) ListUsers(p inventory.Page) ([]inventory.User, error) {
	return list(t, readUser, listUsersSQL, p.After, limit(p.Limit))
}

// CreateUser implements inventory.AccessTx.
func (t *tx) CreateUser(u *inventory.User, now time.Time) error {
	var version int64
	if found, err := t.row([]any{&version}, userVersionSQL, u.Name); err != nil {
		return err
	} else if found {
		return taken("user", u.Name)
	}
	if err := t.isFreeSubject(u); err != nil {
		return err
	}
	args, err := userArgs(u)
	if err != nil {
		return err
	}
	now = stamp(now)
	args = append([]any{u.Name}, args...)
	if _, err := t.write(insertUserSQL, append(args, ms(now), ms(now))...); err != nil {
		return err
	}
	u.LoginAt, u.CreatedAt, u.UpdatedAt, u.Version = time.Time{}, now, now, 1
	u.SealedFactors, u.HasSecondFactor = nil, false
	u.HasPassword = u.PasswordHash != ""
	return nil
}

// UpdateUser implements inventory.AccessTx.
func (t *tx) UpdateUser(u *inventory.User, now time.Time) error {
	if err := t.isFreeSubject(u); err != nil {
		return err
	}
	args, err := userArgs(u)
	if err != nil {
		return err
	}
	now = stamp(now)
	n, err := t.write(updateUserSQL, append(args, ms(now), u.Name, u.Version)...)
	if err := t.updated(n, err, "user", u.Name, u.Version, userVersionSQL, u.Name); err != nil {
		return err
	}
	u.UpdatedAt = now
	u.Version++
	u.HasPassword = u.PasswordHash != ""
	return nil
}

// isFreeSubject refuses a subject that another user has.
func (t *tx) isFreeSubject(u *inventory.User) error {
	if u.Issuer == "" {
		return nil
	}
	other, err := t.FindUserBySubject(u.Issuer, u.Subject)
	switch {
	case err == nil && other.Name != u.Name:
		return inventory.Errorf(inventory.Conflict, "that subject is user %s", other.Name).WithHint("one person is one user")
	case err != nil && !inventory.IsKind(err, inventory.NotFound):
		return err
	}
	return nil
}

// userArgs returns the arguments that insert and update share.
func userArgs(u *inventory.User) ([]any, error) {
	grants, err := jsonText(u.Grants)
	if err != nil {
		return nil, err
	}
	return []any{u.DisplayName, u.PasswordHash, grants, u.IsDisabled, u.Issuer, u.Subject, u.NeedsSecondFactor}, nil
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

// DeleteUser implements inventory.AccessTx.
func (t *tx) DeleteUser(name string) error {
	tokens, err := t.ListTokens()
	if err != nil {
		return err
	}
	for _, k := range tokens {
		if k.User != name {
			continue
		}
		if err := t.DeleteToken(k.Name); err != nil {
			return err
		}
	}
	if _, err := t.write(deleteLoginsOfUserSQL, name); err != nil {
		return err
	}
	n, err := t.write(deleteUserSQL, name)
	return changed(n, err, "user", name)
}
