package moving

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

func TestACopyToAFullDiskIsRefused(t *testing.T) {
	dir := t.TempDir()
	_, err := copyToFile(t.Context(), nil, 1<<60, filepath.Join(dir, "new.db"), true)
	e, ok := errors.AsType[*inventory.Error](err)
	if !ok || e.Kind != inventory.Unavailable || !strings.Contains(e.Msg, "MiB free and the copy needs up to") || !strings.Contains(e.Hint, dir) {
		t.Errorf("%#v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 0 {
		t.Errorf("it has left %v", left)
	}
}
