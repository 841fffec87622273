package configs

import (
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

func TestFilesBesideADocumentBecomePartOfItsText(t *testing.T) {
	p := inventory.Profile{Document: &inventory.Document{Format: inventory.DocButane, Text: "a: {local: motd}\n", Files: map[string][]byte{"motd": []byte("hello")}}}
	if err := takeFiles(&p); err != nil || !strings.Contains(p.Document.Text, "base64,aGVsbG8=") || p.Document.Files != nil {
		t.Errorf("taken: %v, %+v", err, p.Document)
	}
	p.Document = &inventory.Document{Format: inventory.DocIgnition, Files: map[string][]byte{"motd": nil}}
	if err := takeFiles(&p); !inventory.IsKind(err, inventory.Invalid) {
		t.Errorf("files beside Ignition: %v", err)
	}
}
