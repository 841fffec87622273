package keys

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"slipway.dev/slipway/inventory"
)

// Replaced says what a database loses when it takes another key.
type Replaced struct {
	Fingerprint string   `json:"fingerprint"` // of the key that the database belongs to now
	Former      string   `json:"former"`      // "" if it had none
	LostN       int      `json:"lostN"`       // sealed secrets that the key does not open
	Deleted     []string `json:"deleted"`     // certificates whose keys it does not open
}

// Replace makes a database belong to the key of a data directory, for an admin who has lost the former one. No server may use either. Secrets
// that this key does not open stay, and an admin sets them again. The next start makes new authorities in place of those that are deleted.
func Replace(ctx context.Context, store inventory.Store, dataDir string, now time.Time) (out Replaced, err error) {
	key, err := ReadKey(dataDir)
	if errors.Is(err, fs.ErrNotExist) {
		key, err = makeKey(KeyPath(dataDir))
	}
	if err != nil {
		return out, err
	}
	err = store.Write(ctx, func(tx inventory.Tx) error {
		out = Replaced{Fingerprint: key.Fingerprint, Deleted: []string{}}
		var err error
		if out.Former, err = Fingerprint(tx); err != nil {
			return err
		}
		all, err := sealedIn(tx)
		if err != nil {
			return err
		}
		for _, s := range all {
			if _, err := key.Box.Open(s.name, s.text); err != nil {
				out.LostN++
			}
		}
		for _, name := range []string{BootCA.Name, BootCA.next().Name, AdminCA.Name, AdminCA.next().Name, uploaded} {
			k, err := tx.FindSiteKey(name)
			if inventory.IsKind(err, inventory.NotFound) {
				continue
			}
			if err != nil {
				return err
			}
			if _, err := key.Box.Open(sealedAs(name), k.Sealed); err == nil {
				continue
			}
			if err := tx.DeleteSiteKey(name); err != nil {
				return err
			}
			out.Deleted = append(out.Deleted, name)
		}
		return tx.SaveSiteKey(inventory.SiteKey{Name: keyRow, Public: key.Fingerprint, SinceAt: now})
	})
	if err != nil {
		return out, fmt.Errorf("give the database another key: %w", err)
	}
	return out, nil
}
