package render

import (
	"fmt"
	"sync"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/layer"
)

// cache keeps parsed layers: a fleet shares a few of them.
type cache struct {
	mu     sync.Mutex
	parsed map[cacheKey]cached
}

type cacheKey struct{ origin, text string }

type cached struct {
	layer    *layer.Layer
	findings machineconfig.Report
}

// cachedLayers is when the cache is emptied; edits fill it with texts that nobody asks for again.
const cachedLayers = 4096

func newCache() *cache { return &cache{parsed: map[cacheKey]cached{}} }

func (c *cache) parse(text, origin string) (*layer.Layer, machineconfig.Report) {
	key := cacheKey{origin, text}
	c.mu.Lock()
	got, ok := c.parsed[key]
	c.mu.Unlock()
	if !ok {
		got.layer, got.findings = layer.Parse(text, origin)
		c.mu.Lock()
		if len(c.parsed) >= cachedLayers {
			clear(c.parsed)
		}
		c.parsed[key] = got
		c.mu.Unlock()
	}
	return got.layer, got.findings
}

// mapPart takes one text out of a YAML map of texts.
func mapPart(value []byte, part string) ([]byte, error) {
	var m map[string]yaml.Node
	if err := yaml.Unmarshal(value, &m); err != nil {
		return nil, errNoMap
	}
	text, ok := m[part]
	if !ok || text.Kind != yaml.ScalarNode {
		return nil, inventory.Errorf(inventory.Invalid, "the secret holds no %s", fmt.Sprintf("%.64q", part)).
			WithHint("write its value as YAML: a name and a text for each part")
	}
	return []byte(text.Value), nil
}
