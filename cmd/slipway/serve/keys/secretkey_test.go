package keys

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheKeyOfTheSecretsIsKeptAndGuarded(t *testing.T) {
	dir := t.TempDir()
	key, err := makeKey(filepath.Join(dir, KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, KeyFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the key file: %v %v", info, err)
	}
	sealed, err := key.Box.Seal("x", []byte("value"))
	if err != nil {
		t.Fatal(err)
	}
	opens := func(k *Key) bool {
		plain, err := k.Box.Open("x", sealed)
		return err == nil && string(plain) == "value" && string(k.Reports) == string(key.Reports)
	}
	if again, err := ReadKey(dir); err != nil || !opens(again) {
		t.Errorf("the next start: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	credentials := t.TempDir()
	if err := os.WriteFile(filepath.Join(credentials, KeyCred), text, 0o400); err != nil {
		t.Fatal(err)
	}
	t.Run("as a systemd credential", func(t *testing.T) {
		t.Setenv("CREDENTIALS_DIRECTORY", credentials)
		other := t.TempDir()
		if k, err := ReadKey(other); err != nil || !opens(k) {
			t.Errorf("%v", err)
		}
		if hasKey(t, other) {
			t.Error("a key file was made beside it")
		}
	})
	for name, spoil := range map[string]func(path string) error{
		"missing":            os.Remove,
		"readable by others": func(path string) error { return os.Chmod(path, 0o640) },
		"no key":             func(path string) error { return os.WriteFile(path, []byte("no key"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, KeyFile)
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := spoil(path); err != nil {
				t.Fatal(err)
			}
			if _, err := ReadKey(dir); err == nil {
				t.Error("it is read all the same")
			}
		})
	}
}
