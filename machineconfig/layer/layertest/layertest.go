// Package layertest merges layers in tests. It checks no more of them than package layer does.
package layertest

import (
	"fmt"
	"testing"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/layer"
)

// Merged parses and merges layers, the widest first. They are called "layer 1", "layer 2" and so on. A finding ends the test.
func Merged(t testing.TB, texts ...string) *machineconfig.Config {
	t.Helper()
	c, r := layer.Merge(Parsed(t, texts...)...)
	if len(r) > 0 {
		t.Fatal(r)
	}
	return c
}

// Parsed parses layers. A finding ends the test.
func Parsed(t testing.TB, texts ...string) []*layer.Layer {
	t.Helper()
	var all []*layer.Layer
	for i, text := range texts {
		l, r := layer.Parse(text, fmt.Sprintf("layer %d", i+1))
		if len(r) > 0 {
			t.Fatal(r)
		}
		all = append(all, l)
	}
	return all
}
