package images

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestAnAdminsFolderWinsOverDebian(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(second, "snponly.efi"), "second folder")
	writeFile(t, filepath.Join(second, "x86_64", "ipxe.efi"), "second folder, build layout")
	writeFile(t, filepath.Join(first, "x86_64", "snponly.efi"), "first folder")
	writeFile(t, filepath.Join(first, "arm64", "snponly.efi"), "arm64")

	l, err := LoadLoaders([]string{first, second})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, want, path string }{
		{"snponly.efi", "first folder", filepath.Join(first, "x86_64", "snponly.efi")},
		{"ipxe.efi", "second folder, build layout", filepath.Join(second, "x86_64", "ipxe.efi")},
		{"snponly-arm64.efi", "arm64", filepath.Join(first, "arm64", "snponly.efi")},
	} {
		got, ok := l.Find(c.name)
		if !ok || string(got.Data) != c.want || got.Path != c.path {
			t.Errorf("%s: got %q from %s, want %q from %s", c.name, got.Data, got.Path, c.want, c.path)
		}
		sum := sha256.Sum256([]byte(c.want))
		if got.SHA256.Hex() != hex.EncodeToString(sum[:]) || got.Type != "application/efi" {
			t.Errorf("%s: digest %s, type %s", c.name, got.SHA256, got.Type)
		}
		if !slices.Contains(l.Names(), c.name) || !l.Has(c.name) {
			t.Errorf("%s is found but not listed", c.name)
		}
	}
}

func TestAMissingLoaderIsReportedWithItsPackage(t *testing.T) {
	l, err := LoadLoaders(nil)
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]LoaderProblem{}
	for _, p := range l.Problems() {
		if p.IsMissing {
			missing[p.Name] = p
		}
	}
	for _, row := range pxe.Loaders() {
		p, isMissing := missing[row.Name]
		if isMissing == l.Has(row.Name) {
			t.Errorf("%s: served %v, reported missing %v", row.Name, l.Has(row.Name), isMissing)
		}
		if isMissing && (p.Hint == "" || !strings.Contains(p.Hint, row.Package)) {
			t.Errorf("%s: the hint %q does not name package %q", row.Name, p.Hint, row.Package)
		}
	}
	if _, ok := missing["ipxe-arm64.efi"]; !ok {
		t.Error("Debian has no iPXE for arm64, yet it is not reported missing")
	}
}

func TestAFolderThatDoesNotExistIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, "no folder")
	for _, dir := range []string{"/nonexistent/loaders", file} {
		_, err := LoadLoaders([]string{dir})
		var e *inventory.Error
		if !errors.As(err, &e) || e.Kind != inventory.Invalid || e.Hint == "" || !strings.Contains(e.Msg, dir) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

func TestAnUnusableFileIsReportedAndNotServed(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "snponly-arm64.efi"), "") // empty
	if err := os.Mkdir(filepath.Join(dir, "ipxe-arm64.efi"), 0o755); err != nil {
		t.Fatal(err)
	}
	big, err := os.Create(filepath.Join(dir, "ipxe-i386.efi"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(big.Truncate(maxLoader+1), big.Close()); err != nil {
		t.Fatal(err)
	}
	l, err := LoadLoaders([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	for name, why := range map[string]string{"snponly-arm64.efi": "empty", "ipxe-arm64.efi": "regular", "ipxe-i386.efi": "16 MiB"} {
		i := slices.IndexFunc(l.Problems(), func(p LoaderProblem) bool { return p.Name == name })
		if l.Has(name) || i < 0 || !strings.Contains(l.Problems()[i].Msg, why) || !l.Problems()[i].IsMissing {
			t.Errorf("%s: served %v, problems %+v", name, l.Has(name), l.Problems())
		}
	}
}
