package keys

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/storetest"
)

// lostKey is what an admin does who has lost the key: the server starts again, and says what it cannot open.
func lostKey(t *testing.T, open func(t *testing.T) inventory.Store) {
	s, dir := open(t), t.TempDir()
	key := started(t, s, dir)
	v := &Vault{Store: s, Box: key.Box, Dir: dir, Log: slog.New(slog.DiscardHandler)}
	authority(t, v, BootCA)
	sealed, err := key.Box.Seal("db", []byte("value"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), func(tx inventory.Tx) error {
		return tx.Secrets().Create(&inventory.Secret{Name: "db", Sealed: sealed}, storetest.Now)
	}); err != nil {
		t.Fatal(err)
	}
	if same, err := Replace(t.Context(), s, dir, time.Now()); err != nil || same.LostN != 0 || len(same.Deleted) != 0 || same.Former != same.Fingerprint {
		t.Errorf("with the right key it loses %+v: %v", same, err)
	}
	if err := os.Remove(filepath.Join(dir, KeyFile)); err != nil {
		t.Fatal(err)
	}
	out, err := Replace(t.Context(), s, dir, time.Now())
	if err != nil || out.LostN != 1 || !slices.Equal(out.Deleted, []string{BootCA.Name}) || out.Former != key.Fingerprint {
		t.Errorf("it loses %+v: %v", out, err)
	}
	fresh := started(t, s, dir)
	if fresh.Fingerprint == key.Fingerprint || fresh.Fingerprint != out.Fingerprint {
		t.Errorf("it starts with %s", fresh.Fingerprint)
	}
	v.Box = fresh.Box
	_, err = OpenAuthority(t.Context(), v, BootCA, time.Now())
	refused(t, err, inventory.Invalid, "the database has no authority for")
	if err := os.Remove(filepath.Join(dir, "ca.crt")); err != nil {
		t.Fatal(err)
	}
	authority(t, v, BootCA)
}
