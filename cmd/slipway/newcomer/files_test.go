package newcomer

import (
	"os"
	"path/filepath"
	"testing"
)

// Somebody may have made a file of that name before, so that others can read it, or a link.
func TestSecretsAreNotReadableByOthers(t *testing.T) {
	for name, before := range map[string]func(path string) error{
		"nothing":                       func(string) error { return nil },
		"a file that all can read":      func(path string) error { return os.WriteFile(path, []byte("x"), 0o666) },
		"the same, but all can read it": func(path string) error { return os.WriteFile(path, []byte("the key\n"), 0o644) },
		"a link":                        func(path string) error { return os.Symlink(filepath.Join(filepath.Dir(path), "elsewhere"), path) },
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "secret.key")
		if err := before(path); err != nil {
			t.Fatal(err)
		}
		var w writer
		if w.file(path, []byte("the key\n"), secret); w.err != nil {
			t.Errorf("%s: %v", name, w.err)
		}
		info, err := os.Lstat(path)
		if err != nil || info.Mode() != secret || !isSame(path, []byte("the key")) {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
		if _, err := os.Lstat(filepath.Join(dir, "elsewhere")); err == nil {
			t.Errorf("%s: the secret went through the link", name)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(proofFile(dir), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := proofFor(dir, "id"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(proofFile(dir)); err != nil || info.Mode() != secret {
		t.Errorf("the proof: %v, %v", info.Mode(), err)
	}
}
