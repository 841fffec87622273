package sqlstore

import (
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	profileColumns = `name, image, selector, priority, kernel_args, parameters, COALESCE(extends, ''), config, document,
format, accepts, isolated, revision, saved_by, saved_by_admin, created_at, updated_at, version`

	findProfileSQL     = `SELECT ` + profileColumns + ` FROM profiles WHERE name = $1`
	listProfilesSQL    = `SELECT ` + profileColumns + ` FROM profiles WHERE name > $1 ORDER BY name LIMIT $2`
	profileVersionSQL  = `SELECT version FROM profiles WHERE name = $1`
	profileParentSQL   = `SELECT COALESCE(extends, '') FROM profiles WHERE name = $1`
	profileUserSQL     = `SELECT name FROM hosts WHERE profile = $1 ORDER BY name LIMIT 1`
	profileMachineSQL  = `SELECT name FROM machines WHERE profile = $1 ORDER BY name LIMIT 1`
	profileExtenderSQL = `SELECT name FROM profiles WHERE extends = $1 ORDER BY name LIMIT 1`
	insertProfileSQL   = `INSERT INTO profiles (name, image, selector, priority, kernel_args, parameters, extends, config, document,
format, accepts, isolated, revision, saved_by, saved_by_admin, created_at, updated_at, version)
VALUES ($1, $2, $3, $4, $5, $6, NULLIF($7, ''), $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, 1)`
	updateProfileSQL = `UPDATE profiles SET image = $1, selector = $2, priority = $3, kernel_args = $4, parameters = $5,
extends = NULLIF($6, ''), config = $7, document = $8, format = $9, accepts = $10, isolated = $11, revision = $12,
saved_by = $13, saved_by_admin = $14, updated_at = $15, version = version + 1 WHERE name = $16 AND version = $17`
	deleteProfileSQL = `DELETE FROM profiles WHERE name = $1`
)

func readProfile(s scan) (p inventory.Profile, err error) {
	err = s(&p.Name, &p.Image, &p.Selector, &p.Priority, jsonColumn(&p.KernelArgs), jsonColumn(&p.Parameters), &p.Extends,
		&p.Config, jsonColumn(&p.Document), &p.Format, jsonColumn(&p.Accepts), &p.Isolated, &p.Revision,
		&p.SavedBy, &p.SavedByAdmin, timeColumn(&p.CreatedAt), timeColumn(&p.UpdatedAt), &p.Version)
	return p, err
}

// FindProfile implements inventory.ImageTx.
func (t *tx) FindProfile(name string) (inventory.Profile, error) {
	return setting(t, "profile/"+name, ownProfile, func() (inventory.Profile, error) {
		return find(t, readProfile, "profile", name, findProfileSQL, name)
	})
}

// ListProfiles implements inventory.ImageTx.
func (t *tx) ListProfiles(p inventory.Page) ([]inventory.Profile, error) {
	read := func() ([]inventory.Profile, error) {
		return list(t, readProfile, listProfilesSQL, p.After, limit(p.Limit))
	}
	if p != (inventory.Page{}) {
		return read()
	}
	return setting(t, "profiles", ownProfiles, read)
}

// CreateProfile implements inventory.ImageTx.
func (t *tx) CreateProfile(p *inventory.Profile, now time.Time) error {
	var version int64
	if found, err := t.row([]any{&version}, profileVersionSQL, p.Name); err != nil {
		return err
	} else if found {
		return taken("profile", p.Name)
	}
	next := *p
	now = stamp(now)
	next.CreatedAt, next.UpdatedAt, next.Version = now, now, 1
	args, err := t.profileArgs(&next)
	if err != nil {
		return err
	}
	args = append([]any{p.Name}, args...)
	if _, err := t.write(insertProfileSQL, append(args, ms(now), ms(now))...); err != nil {
		return err
	}
	*p = next
	return nil
}

// UpdateProfile implements inventory.ImageTx.
func (t *tx) UpdateProfile(p *inventory.Profile, now time.Time) error {
	old, err := t.FindProfile(p.Name)
	if err != nil {
		return err
	}
	if old.Version != p.Version { // before a revision is kept
		return t.updated(0, nil, "profile", p.Name, p.Version, profileVersionSQL, p.Name)
	}
	next := *p
	now = stamp(now)
	next.CreatedAt, next.UpdatedAt, next.Version = old.CreatedAt, now, p.Version+1
	args, err := t.profileArgs(&next)
	if err != nil {
		return err
	}
	n, err := t.write(updateProfileSQL, append(args, ms(now), p.Name, p.Version)...)
	if err := t.updated(n, err, "profile", p.Name, p.Version, profileVersionSQL, p.Name); err != nil {
		return err
	}
	*p = next
	return nil
}

// profileArgs refuses an image or a parent that is not stored, keeps p's content as a revision, and returns the
// arguments that insert and update share.
func (t *tx) profileArgs(p *inventory.Profile) ([]any, error) {
	var version int64
	if found, err := t.row([]any{&version}, imageVersionSQL, p.Image); err != nil {
		return nil, err
	} else if !found {
		return nil, inventory.Errorf(inventory.Invalid, "profile %s names image %s, which does not exist", p.Name, p.Image).
			WithHint("list them with: slipway image list")
	}
	if err := t.checkParents(p); err != nil {
		return nil, err
	}
	if err := t.reviseProfile(p); err != nil {
		return nil, err
	}
	args := []any{p.Image, p.Selector, p.Priority}
	var texts []any
	for _, v := range []any{p.KernelArgs, p.Parameters, p.Document, p.Accepts} {
		text, err := jsonText(v)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return append(args, texts[0], texts[1], p.Extends, p.Config, texts[2], p.Format, texts[3], bit(p.Isolated), p.Revision, p.SavedBy, bit(p.SavedByAdmin)), nil
}

// checkParents refuses a profile that extends one that is not stored, or that comes back to itself.
func (t *tx) checkParents(p *inventory.Profile) error {
	chain := []string{p.Name}
	for parent := p.Extends; parent != ""; {
		if slices.Contains(chain, parent) {
			return inventory.Errorf(inventory.Invalid, "profiles extend each other in a circle: %s", strings.Join(append(chain, parent), " extends ")).
				WithHint("take extends out of one of them")
		}
		chain = append(chain, parent)
		var next string
		found, err := t.row([]any{&next}, profileParentSQL, parent)
		if err != nil {
			return err
		}
		if !found {
			return inventory.Errorf(inventory.Invalid, "profile %s extends profile %s, which does not exist", p.Name, parent).
				WithHint("list them with: slipway profile list")
		}
		parent = next
	}
	return nil
}

// DeleteProfile implements inventory.ImageTx.
func (t *tx) DeleteProfile(name string) error {
	if err := t.unused("profile", name, "host", profileUserSQL); err != nil {
		return err
	}
	if err := t.unused("profile", name, "machine", profileMachineSQL); err != nil {
		return err
	}
	if err := t.unused("profile", name, "profile", profileExtenderSQL); err != nil {
		return err
	}
	n, err := t.write(deleteProfileSQL, name)
	return changed(n, err, "profile", name)
}
