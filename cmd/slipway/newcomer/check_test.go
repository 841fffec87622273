package newcomer

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
)

func TestADatabaseOfAnotherKeyOrSiteIsRefused(t *testing.T) {
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(t.TempDir(), "x.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	ask := func(fingerprint, site string) error {
		return store.Read(context.WithoutCancel(t.Context()), func(tx inventory.Tx) error { return isOurs(tx, fingerprint, site) })
	}
	refused := func(what string, err error, want string) {
		t.Helper()
		if !inventory.IsKind(err, inventory.Conflict) || !strings.Contains(err.Error(), want) || inventory.HintOf(err) == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("no key", ask("aa", "berlin"), `a key with the fingerprint "", that of the other instances to "aa"`)
	err = store.Write(t.Context(), func(tx inventory.Tx) error {
		now := time.Now()
		if err := tx.SaveSiteKey(inventory.SiteKey{Name: "secret.key", Public: "aa", SinceAt: now}); err != nil {
			return err
		}
		return tx.SaveSiteKey(inventory.SiteKey{Name: "site", Public: "berlin", SinceAt: now})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := ask("aa", "berlin"); err != nil {
		t.Error(err)
	}
	refused("another key", ask("bb", "berlin"), `fingerprint "aa"`)
	refused("another site", ask("aa", "default"), "the database is of site berlin, and the other instance of site default")
}
