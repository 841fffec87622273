package keys

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/secret"
)

// Vault keeps pairs of a certificate and its key in the database, with the key sealed. So all instances have the same. Files in the data
// directory are copies of certificates for people, and pairs of older versions.
type Vault struct {
	Store inventory.Store
	Box   *secret.Box
	Dir   string // data directory
	Log   *slog.Logger
}

// pairText is a certificate and its key, both PEM. Its zero value is none.
type pairText struct{ cert, key []byte }

func (p pairText) isNone() bool { return len(p.cert) == 0 }

// sealedAs is the name that is bound into the seal: no key opens in the place of another. No stored secret has a slash in its name.
func sealedAs(name string) string { return "site key/" + name }

// load returns the pair with a name, none if there is none.
func (v *Vault) load(ctx context.Context, name string) (pairText, error) {
	return inventory.Read(ctx, v.Store, func(tx inventory.Tx) (pairText, error) { return v.find(tx, name) })
}

func (v *Vault) find(tx inventory.Tx, name string) (p pairText, err error) {
	k, err := tx.FindSiteKey(name)
	if inventory.IsKind(err, inventory.NotFound) {
		return p, nil
	}
	if err != nil {
		return p, fmt.Errorf("read the certificate %s: %w", name, err)
	}
	key, err := v.Box.Open(sealedAs(name), k.Sealed)
	return pairText{[]byte(k.Public), key}, err
}

func (v *Vault) save(tx inventory.Tx, name string, p pairText, now time.Time) error {
	sealed, err := v.Box.Seal(sealedAs(name), p.key)
	if err != nil {
		return err
	}
	return tx.SaveSiteKey(inventory.SiteKey{Name: name, Public: string(p.cert), Sealed: sealed, SinceAt: now})
}

// keep stores a pair unless there is one with that name, and returns what is stored then. Of several instances that make or bring a pair
// at the same time, one wins.
func (v *Vault) keep(ctx context.Context, name string, p pairText, now time.Time) (stored pairText, err error) {
	err = v.Store.Write(ctx, func(tx inventory.Tx) (err error) {
		if stored, err = v.find(tx, name); err != nil || !stored.isNone() {
			return err
		}
		stored = p
		return v.save(tx, name, p, now)
	})
	return stored, err
}

// copyOut writes the copy of a certificate for people, and removes it when there is none. Nothing reads it but people and the doctor.
func (v *Vault) copyOut(file string, cert []byte) {
	path := filepath.Join(v.Dir, file)
	had, err := os.ReadFile(path)
	switch {
	case err == nil && string(had) == string(cert) || os.IsNotExist(err) && len(cert) == 0:
		return
	case len(cert) == 0:
		err = os.Remove(path)
	default:
		err = renameio.WriteFile(path, cert, 0o644)
	}
	if err != nil {
		v.Log.Warn("copy of a certificate not written", "path", path, "err", err)
	}
}
