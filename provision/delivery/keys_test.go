package delivery

import (
	"testing"

	"slipway.dev/slipway/inventory"
)

func TestEachPurposeAndBootHasAKeyOfItsOwn(t *testing.T) {
	k := Keys{[]byte("a secret")}
	seen := map[string]bool{}
	for _, s := range []inventory.SessionID{"a", "b"} {
		for _, key := range []string{k.ReportKey(s), k.AgentKey(s), k.DocumentKey(s), Keys{[]byte("another")}.AgentKey(s)} {
			if seen[key] {
				t.Errorf("%s is used twice", key)
			}
			seen[key] = true
		}
	}
	if !k.IsAgentKey("a", k.AgentKey("a")) || k.IsAgentKey("b", k.AgentKey("a")) || k.IsAgentKey("a", k.ReportKey("a")) || k.IsAgentKey("a", "") {
		t.Error("another key is taken for the agent's")
	}
	var none Keys
	if none.IsAgentKey("a", none.AgentKey("a")) {
		t.Error("without a secret of this server everybody knows the key")
	}
}
