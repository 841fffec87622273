package sqlstore

import (
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	classColumns = `name, vendor_classes, user_classes, archs, mac_prefixes, priority, options, options6, created_at, updated_at, version`

	findClassSQL    = `SELECT ` + classColumns + ` FROM classes WHERE name = $1`
	listClassesSQL  = `SELECT ` + classColumns + ` FROM classes ORDER BY name`
	classVersionSQL = `SELECT version FROM classes WHERE name = $1`
	insertClassSQL  = `INSERT INTO classes (vendor_classes, user_classes, archs, mac_prefixes, priority, options, options6, name,
created_at, updated_at, version) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 1)`
	updateClassSQL = `UPDATE classes SET vendor_classes = $1, user_classes = $2, archs = $3, mac_prefixes = $4, priority = $5,
options = $6, options6 = $7, updated_at = $8, version = version + 1 WHERE name = $9 AND version = $10`
	deleteClassSQL = `DELETE FROM classes WHERE name = $1`
)

func readClass(s scan) (c inventory.Class, err error) {
	err = s(&c.Name, jsonColumn(&c.VendorClasses), jsonColumn(&c.UserClasses), jsonColumn(&c.Archs), jsonColumn(&c.MACPrefixes), &c.Priority,
		jsonColumn(&c.Options), jsonColumn(&c.Options6), timeColumn(&c.CreatedAt), timeColumn(&c.UpdatedAt), &c.Version)
	return c, err
}

// FindClass implements inventory.NetworkTx.
func (t *tx) FindClass(name string) (inventory.Class, error) {
	return find(t, readClass, "class", name, findClassSQL, name)
}

// ListClasses implements inventory.NetworkTx.
func (t *tx) ListClasses() ([]inventory.Class, error) {
	return setting(t, "classes", slices.Clone, func() ([]inventory.Class, error) { return list(t, readClass, listClassesSQL) })
}

// CreateClass implements inventory.NetworkTx.
func (t *tx) CreateClass(c *inventory.Class, now time.Time) error {
	var version int64
	if found, err := t.row([]any{&version}, classVersionSQL, c.Name); err != nil {
		return err
	} else if found {
		return taken("class", c.Name)
	}
	args, err := classArgs(c)
	if err != nil {
		return err
	}
	now = stamp(now)
	if _, err := t.write(insertClassSQL, append(args, c.Name, ms(now), ms(now))...); err != nil {
		return err
	}
	c.CreatedAt, c.UpdatedAt, c.Version = now, now, 1
	return nil
}

// UpdateClass implements inventory.NetworkTx.
func (t *tx) UpdateClass(c *inventory.Class, now time.Time) error {
	args, err := classArgs(c)
	if err != nil {
		return err
	}
	now = stamp(now)
	n, err := t.write(updateClassSQL, append(args, ms(now), c.Name, c.Version)...)
	if err := t.updated(n, err, "class", c.Name, c.Version, classVersionSQL, c.Name); err != nil {
		return err
	}
	c.UpdatedAt = now
	c.Version++
	return nil
}

// classArgs returns the arguments that insert and update share.
func classArgs(c *inventory.Class) ([]any, error) {
	texts, err := jsonTexts(c.VendorClasses, c.UserClasses, c.Archs, c.MACPrefixes, c.Options, c.Options6)
	if err != nil {
		return nil, err
	}
	return []any{texts[0], texts[1], texts[2], texts[3], c.Priority, texts[4], texts[5]}, nil
}

// DeleteClass implements inventory.NetworkTx.
func (t *tx) DeleteClass(name string) error {
	n, err := t.write(deleteClassSQL, name)
	return changed(n, err, "class", name)
}
