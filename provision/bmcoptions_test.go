package provision

import (
	"context"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/power"
)

func TestOptionsOfControllersThatMayHoldSecretsAreStoredSealed(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	id := s.host().ID
	l.write(func(tx inventory.Tx) error { // as an older Slipway has stored it
		b := inventory.BMC{HostID: id, Driver: inventory.Webhook, Address: "https://pdu", Options: map[string]string{"header.X-Key": canary, "on.path": "/on"}}
		if old, err := tx.FindBMC(id); err == nil {
			b.Version = old.Version
		}
		return tx.SaveBMC(&b, l.clock)
	})
	l.must(l.engine.SealOldOptions(context.Background()))
	var b inventory.BMC
	l.write(func(tx inventory.Tx) (err error) {
		b, err = tx.FindBMC(id)
		return err
	})
	if v := b.Options["header.X-Key"]; !strings.HasPrefix(v, power.SealedMark) || strings.Contains(v, canary) || b.Options["on.path"] != "/on" {
		t.Fatalf("stored %v", b.Options)
	}
	opened, err := l.engine.OpenedOptions(b)
	if err != nil || opened.Options["header.X-Key"] != canary || opened.Options["on.path"] != "/on" {
		t.Errorf("its driver is given %v, %v", opened.Options, err)
	}
	b.HostID = "00000000-0000-7000-8000-0000000000ff"
	if opened, err := l.engine.OpenedOptions(b); err == nil && opened.Options["header.X-Key"] == canary {
		t.Error("the sealed value of one host opens for another")
	}
}
