package keys

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"slipway.dev/slipway/inventory"
)

// keyRow is the site key that has the fingerprint of secret.key.
const keyRow = "secret.key"

// OpenKey reads the key of a data directory, and compares it with the fingerprint in the database. The first start makes the key, and
// writes the fingerprint. Each later start of each instance needs the same key. With another one, it would fail later at each stored
// secret.
func OpenKey(ctx context.Context, store inventory.Store, dataDir string, now time.Time) (*Key, error) {
	path := KeyPath(dataDir)
	key, err := ReadKey(dataDir)
	isNew := errors.Is(err, fs.ErrNotExist)
	if isNew {
		if err := mayMake(ctx, store, path); err != nil {
			return nil, err
		}
		key, err = makeKey(path)
	}
	if err != nil {
		return nil, err
	}
	err = key.check(ctx, store, path, now)
	// Refused: another first start was faster, and nothing was sealed with this key. After any other error the file stays, because the
	// fingerprint may have been stored.
	if isNew && (inventory.IsKind(err, inventory.Conflict) || inventory.IsKind(err, inventory.Invalid)) {
		err = errors.Join(noKey(path), os.Remove(path))
	}
	if err != nil {
		return nil, err
	}
	return key, nil
}

// Fingerprint returns the fingerprint of the key that belongs to a database, "" if no server has started on it.
func Fingerprint(tx inventory.Tx) (string, error) {
	k, err := tx.FindSiteKey(keyRow)
	if inventory.IsKind(err, inventory.NotFound) {
		return "", nil
	}
	return k.Public, err
}

// mayMake refuses to make a key for a database that has one elsewhere.
func mayMake(ctx context.Context, store inventory.Store, path string) error {
	return store.Read(ctx, func(tx inventory.Tx) error {
		if has, err := Fingerprint(tx); err != nil {
			return fmt.Errorf("read the fingerprint of the key: %w", err)
		} else if has != "" {
			return noKey(path)
		}
		all, err := sealedIn(tx)
		if err != nil {
			return fmt.Errorf("list secrets: %w", err)
		}
		if len(all) > 0 {
			return inventory.Errorf(inventory.Invalid, "the key of the secrets, %s, is missing: %d stored secrets need it", path, len(all)).
				WithHint("restore it from where it was kept; a new one would not open them. If it is lost: slipway database new-key")
		}
		return nil
	})
}

func noKey(path string) error {
	return inventory.Errorf(inventory.Conflict, "the database belongs to a key of the secrets that is not here: %s is missing", path).
		WithHint("copy secret.key from another instance, or from where it was kept; if it is lost: slipway database new-key")
}

// check compares the key with the fingerprint in the database, and writes it where there is none.
func (k *Key) check(ctx context.Context, store inventory.Store, path string, now time.Time) error {
	has, err := inventory.Read(ctx, store, Fingerprint)
	if err == nil && has == "" {
		err = store.Write(ctx, func(tx inventory.Tx) (err error) {
			// Again, in the transaction that writes: of two first starts at once, one finds the fingerprint of the other.
			if has, err = Fingerprint(tx); err != nil || has != "" {
				return err
			}
			has = k.Fingerprint
			return k.take(tx, path, now)
		})
	}
	if err != nil {
		return fmt.Errorf("compare the key of the secrets with the database: %w", err)
	}
	if has != k.Fingerprint {
		return inventory.Errorf(inventory.Conflict, "%s is not the key of this database: its fingerprint is %s, the database belongs to %s",
			path, k.Fingerprint, has).
			WithHint("copy secret.key from another instance, or name the database of this key; if the key is lost: slipway database new-key")
	}
	return nil
}

// take makes the key that of a database without a fingerprint. An older Slipway may have sealed something in it: then the key must open
// some of it. It need not open all, because an admin may have set some secrets again after a key was lost.
func (k *Key) take(tx inventory.Tx, path string, now time.Time) error {
	all, err := sealedIn(tx)
	if err != nil {
		return err
	}
	opens := len(all) == 0
	for _, s := range all {
		if _, err := k.Box.Open(s.name, s.text); err == nil {
			opens = true
			break
		}
	}
	if !opens {
		return inventory.Errorf(inventory.Invalid, "%s opens none of the %d secrets in this database", path, len(all)).
			WithHint("copy secret.key from another instance, or from where it was kept; if it is lost: slipway database new-key")
	}
	return tx.SaveSiteKey(inventory.SiteKey{Name: keyRow, Public: k.Fingerprint, SinceAt: now})
}
