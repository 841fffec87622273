package main

import (
	"encoding/json"
	"testing"
	"time"
)

// TestABillNamesWhatIsNoGoModule checks that npm packages and the C library stand beside the modules, once each.
func TestABillNamesWhatIsNoGoModule(t *testing.T) {
	bill := []byte(`{"bomFormat":"CycloneDX","metadata":{"component":{"name":"slipway"}},"components":[{"name":"golang.org/x/sys"}]}`)
	npm := []npmPart{{"Go", "golang.org/x/sys", "v0.1.0", "BSD-3-Clause"}, {"npm", "@patternfly/react-core", "6.6.1", "MIT"}}
	got, err := complete(bill, time.Unix(1795000000, 0), npm, "glibc=2.36-9+deb12u14")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Metadata   struct{ Timestamp string }
		Components []struct{ Name, PURL string }
	}
	if err := json.Unmarshal(got, &doc); err != nil {
		t.Fatal(err)
	}
	want := []string{"", "pkg:npm/%40patternfly/react-core@6.6.1", "pkg:deb/debian/glibc@2.36-9%2Bdeb12u14?arch=source"}
	if len(doc.Components) != len(want) || doc.Metadata.Timestamp != "2026-11-18T11:06:40Z" {
		t.Fatalf("%d components at %s", len(doc.Components), doc.Metadata.Timestamp)
	}
	for i, c := range doc.Components {
		if c.PURL != want[i] {
			t.Errorf("component %d is %q, want %q", i, c.PURL, want[i])
		}
	}
}

func TestWhatIsNoBillIsRefused(t *testing.T) {
	for _, text := range []string{``, `[]`, `{}`, `{"metadata":{},"components":[]}`} {
		if _, err := complete([]byte(text), time.Unix(1, 0), nil, ""); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
