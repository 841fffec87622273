package keys

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/inventory/storetest"
	"slipway.dev/slipway/test/postgres"
	"slipway.dev/slipway/web/access"
)

// rules are what holds on both databases.
var rules = map[string]func(t *testing.T, open func(t *testing.T) inventory.Store){
	"a database belongs to one key":               oneKey,
	"of two first starts one wins":                firstStarts,
	"an old database takes the key that opens it": oldDatabases,
	"all instances have the same authority":       sameAuthority,
	"the next authority is known before it signs": nextAuthority,
	"the database takes over old files":           oldFiles,
	"a damaged authority is an error":             damagedAuthority,
	"a lost key is replaced":                      lostKey,
	"an uploaded certificate is that of all":      sameUpload,
}

func TestKeys(t *testing.T) {
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			rule(t, func(t *testing.T) inventory.Store {
				return openStore(t, sqlstore.Config{Path: filepath.Join(t.TempDir(), "slipway.db")})
			})
		})
	}
}

func TestKeysOnPostgreSQL(t *testing.T) {
	server := postgres.Shared(t)
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			rule(t, func(t *testing.T) inventory.Store { return openStore(t, sqlstore.Config{URL: server.Database(t)}) })
		})
	}
}

func openStore(t *testing.T, cfg sqlstore.Config) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func start(t *testing.T, s inventory.Store, dir string) (*Key, error) {
	t.Helper()
	return OpenKey(t.Context(), s, dir, time.Now())
}

func started(t *testing.T, s inventory.Store, dir string) *Key {
	t.Helper()
	k, err := start(t, s, dir)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// refused checks that an error has a kind, a hint, and words in it.
func refused(t *testing.T, err error, kind inventory.Kind, words string) {
	t.Helper()
	e, ok := errors.AsType[*inventory.Error](err)
	if !ok || e.Kind != kind || e.Hint == "" || !strings.Contains(e.Msg, words) {
		t.Errorf("got %v, want %s with %q and a hint", err, kind, words)
	}
}

// hasKey reports whether a data directory has a key.
func hasKey(t *testing.T, dir string) bool {
	t.Helper()
	_, err := os.Stat(filepath.Join(dir, KeyFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func copyKey(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(from, KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(to, KeyFile), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func oneKey(t *testing.T, open func(t *testing.T) inventory.Store) {
	s := open(t)
	first, second := t.TempDir(), t.TempDir()
	key := started(t, s, first)
	if again := started(t, s, first); again.Fingerprint != key.Fingerprint {
		t.Errorf("the next start has %s, not %s", again.Fingerprint, key.Fingerprint)
	}
	has, err := inventory.Read(t.Context(), s, Fingerprint)
	if err != nil || has != key.Fingerprint || len(has) != 16 {
		t.Errorf("the database has %q: %v", has, err)
	}
	_, err = start(t, s, second)
	refused(t, err, inventory.Conflict, "is missing")
	if hasKey(t, second) {
		t.Error("an instance without a key has made one for a database that has another")
	}
	if _, err := makeKey(filepath.Join(second, KeyFile)); err != nil {
		t.Fatal(err)
	}
	_, err = start(t, s, second)
	refused(t, err, inventory.Conflict, "the database belongs to "+key.Fingerprint)
	if !hasKey(t, second) {
		t.Error("a key that an admin has put there was removed")
	}
	copyKey(t, first, second)
	if with := started(t, s, second); with.Fingerprint != key.Fingerprint {
		t.Errorf("with the copy it has %s", with.Fingerprint)
	}
}

func firstStarts(t *testing.T, open func(t *testing.T) inventory.Store) {
	s := open(t)
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()}
	errs := make([]error, len(dirs))
	var all sync.WaitGroup
	for i, dir := range dirs {
		all.Go(func() { _, errs[i] = OpenKey(t.Context(), s, dir, time.Now()) })
	}
	all.Wait()
	wonN := 0
	for i, dir := range dirs {
		if errs[i] == nil {
			wonN++
			started(t, s, dir)
			continue
		}
		refused(t, errs[i], inventory.Conflict, "is missing")
		if hasKey(t, dir) {
			t.Errorf("start %d was refused, and leaves a key behind", i)
		}
	}
	if wonN != 1 {
		t.Errorf("%d of %d first starts went on", wonN, len(dirs))
	}
}

// oldDatabases starts on databases that an older Slipway has sealed something in.
func oldDatabases(t *testing.T, open func(t *testing.T) inventory.Store) {
	for name, seal := range map[string]func(tx inventory.Tx, k *Key) error{
		"a secret": func(tx inventory.Tx, k *Key) error {
			sealed, err := k.Box.Seal("db", []byte("value"))
			return errors.Join(err, tx.Secrets().Create(&inventory.Secret{Name: "db", Sealed: sealed}, storetest.Now))
		},
		"a second factor": func(tx inventory.Tx, k *Key) error {
			sealed, err := k.Box.Seal(access.SealedAs("anna"), []byte("{}"))
			u := inventory.User{Name: "anna", Grants: inventory.AdminEverywhere(), HasSecondFactor: true}
			return errors.Join(err, tx.Users().Create(&u, storetest.Now), tx.SaveFactors("anna", sealed))
		},
		"a secret of another key, and one set again": func(tx inventory.Tx, k *Key) error {
			sealed, err := k.Box.Seal("new", []byte("value"))
			return errors.Join(err, tx.Secrets().Create(&inventory.Secret{Name: "old", Sealed: make([]byte, len(sealed))}, storetest.Now),
				tx.Secrets().Create(&inventory.Secret{Name: "new", Sealed: sealed}, storetest.Now))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			right, wrong, none := t.TempDir(), t.TempDir(), t.TempDir()
			key, err := makeKey(filepath.Join(right, KeyFile))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Write(t.Context(), func(tx inventory.Tx) error { return seal(tx, key) }); err != nil {
				t.Fatal(err)
			}
			if _, err := makeKey(filepath.Join(wrong, KeyFile)); err != nil {
				t.Fatal(err)
			}
			_, err = start(t, s, wrong)
			refused(t, err, inventory.Invalid, "opens none of the")
			_, err = start(t, s, none)
			refused(t, err, inventory.Invalid, "is missing")
			if hasKey(t, none) {
				t.Error("a key was made that opens nothing")
			}
			started(t, s, right)
			_, err = start(t, s, wrong)
			refused(t, err, inventory.Conflict, "is not the key of this database")
		})
	}
}
