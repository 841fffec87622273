package serve

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
)

func TestAnInterfaceThatGetsItsAddressLaterGetsItsSubnetThen(t *testing.T) {
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(t.TempDir(), "slipway.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	c := Default()
	c.Interfaces, c.Mode, c.LogTo = []string{"lo"}, "full", io.Discard
	m := &subnetMaker{cfg: &c, store: store, log: newLog(c)}
	check := &selfCheck{cfg: &c, store: store, subnets: m, loaders: &images.Loaders{}}
	checks := check.checkSubnets(t.Context())
	if len(checks) != 1 || checks[0].Status != failed || checks[0].Hint == "" || !strings.Contains(checks[0].Detail, "127.0.0.1") {
		t.Errorf("without a subnet the self-check says %+v", checks)
	}
	if m.lateSubnet(t.Context(), "eno99") {
		t.Error("an interface that is not there is settled")
	}
	if !m.lateSubnet(t.Context(), "lo") {
		t.Error("an interface with an address is not settled")
	}
	if checks := check.checkSubnets(t.Context()); len(checks) != 0 {
		t.Errorf("with a subnet the self-check says %+v", checks)
	}
	if err := store.Read(t.Context(), func(tx inventory.Tx) error {
		events, err := tx.ListEvents(inventory.EventFilter{Kind: inventory.EventChanged}, 0, 10)
		if len(events) != 1 || events[0].Subject != "subnet/lo" {
			t.Errorf("the lease book is told %+v", events)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
