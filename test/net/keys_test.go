package net_test

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway.dev/slipway/cmd/slipway/serve/keys"
	"slipway.dev/slipway/inventory/secret"
)

// TestPostgreSQLBelongsToOneKey starts a second server without the key of the first one, with another key, and with a copy.
func TestPostgreSQLBelongsToOneKey(t *testing.T) {
	both := newInstances(t, "a", "other")
	s, other := both[0], both[1]
	s.Start()
	if err := os.Mkdir(other.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(other.Data, keys.KeyFile)
	other.Launch()
	other.Process.WaitFor("the database belongs to a key of the secrets that is not here", 1)
	if _, err := os.Stat(key); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the second server has made a key: %v", err)
	}

	wrong, err := secret.NewKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, []byte(wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	other.Launch()
	other.Process.WaitFor("is not the key of this database", 1)

	right, err := os.ReadFile(filepath.Join(s.Data, keys.KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, right, 0o600); err != nil {
		t.Fatal(err)
	}
	other.Launch()
	other.Process.WaitFor("instance a has the engine", 1)
	if said := other.Process.Text(); strings.Contains(said, "is not the key") {
		t.Errorf("with a copy of the key it says:\n%s", said)
	}
}
