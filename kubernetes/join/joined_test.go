package join

import (
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// Whoever joins under the name of a node that is in the cluster becomes that node.
func TestANodeNameOfAnotherHostThatHasJoinedIsRefused(t *testing.T) {
	l := newLab(t)
	k := l.token(l.mint(host(1), "boot-1"))
	k.State = inventory.TokenJoined
	l.write(func(tx inventory.Tx) error { return tx.SaveJoinToken(k) })
	l.pass(5 * time.Second)
	if _, err := l.Mint(t.Context(), target(), host(2), "boot-2", "web-1"); inventory.KindOf(err) != inventory.Conflict {
		t.Errorf("another host: %v", err)
	}
	if _, err := l.Mint(t.Context(), target(), host(2), "boot-2", "web-2"); err != nil {
		t.Errorf("a name of its own: %v", err)
	}
	if _, err := l.Mint(t.Context(), target(), host(1), "boot-3", "web-1"); err != nil {
		t.Errorf("the host itself, installed anew: %v", err)
	}
	l.write(func(tx inventory.Tx) error { return tx.DeleteHost("host-1") })
	if _, err := l.Mint(t.Context(), target(), host(2), "boot-4", "web-1"); err != nil {
		t.Errorf("the name of a host that is gone: %v", err)
	}
}
