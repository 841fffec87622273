package client

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhoFindsNoServerReadsHowToStartIt(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.yaml")
	said := howToStart(config)
	if !strings.Contains(said, "there is no "+config) || !strings.Contains(said, "systemctl enable --now slipway") {
		t.Error(said)
	}
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if said := howToStart(config); !strings.Contains(said, "systemctl start slipway") || strings.Contains(said, config) {
		t.Error(said)
	}
}
