package configuration

import (
	"fmt"
	"testing"

	"slipway.dev/slipway/inventory"
)

func TestRenderingsAreRememberedInBoundedMemory(t *testing.T) {
	var c Renderings
	for i := range 2 * maxRendered {
		c.Put(inventory.HostID(fmt.Sprint(i)), &Rendered{Key: "k", Documents: []inventory.RenderedDocument{}})
		if len(c.byHost) > maxRendered || len(c.documents) > MaxDocuments {
			t.Fatalf("%d renderings, the documents of %d", len(c.byHost), len(c.documents))
		}
	}
	for _, r := range c.byHost {
		if r.Documents != nil {
			t.Fatal("documents are kept beside those that are bounded")
		}
	}
}
