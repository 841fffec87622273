package provision

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/configuration"
)

func TestDocumentsThatAreAtHandNoMoreAreRenderedAgainUnlessTheStoreHasThem(t *testing.T) {
	for _, c := range []struct {
		name   string
		isKept bool
		want   string
	}{{"the store has them from the boot before", true, "Etc/UTC"}, {"no boot was given them yet", false, "Europe/Rome"}} {
		t.Run(c.name, func(t *testing.T) {
			r, _ := configRack(t)
			r.configured("web", inventory.ImageConfig{Format: "cloud-init", Version: "24.4"}, inventory.Profile{Config: "host: {timezone: Etc/UTC}\n"})
			m := r.machine(1)
			m.boot()
			m.accept()
			m.boot()
			if !c.isKept {
				r.write(func(tx inventory.Tx) error {
					p, err := tx.Profiles().Find("web")
					if err != nil {
						return err
					}
					p.Config = "host: {timezone: Europe/Rome}\n"
					return tx.Profiles().Update(&p, r.clock)
				})
				r.must(r.store.Read(context.Background(), func(tx inventory.Tx) error {
					h := m.host()
					p, err := r.engine.Plan(tx, &h, "rack")
					if err == nil {
						_, err = r.engine.ConfigOf(tx, &h, p, m.mac())
					}
					return err
				}))
			}
			now := func() *configuration.Rendered { return r.engine.Rendered.Of(m.host().ID) }
			before := now()
			for i := range configuration.MaxDocuments { // others boot
				r.engine.Rendered.Put(inventory.HostID(fmt.Sprint("other", i)), &configuration.Rendered{Key: "k", Digest: "sha256:1", Documents: []inventory.RenderedDocument{{Name: "user-data"}}})
			}
			script, s := m.boot()
			if !strings.Contains(script, "config=") {
				t.Fatalf("script:\n%s", script)
			}
			if isSame := now() == before; isSame != c.isKept {
				t.Errorf("not rendered again: %v, want %v", isSame, c.isKept)
			}
			if text, err := m.ask(s, "user-data"); err != nil || !strings.Contains(text, c.want) {
				t.Errorf("%q %v", text, err)
			}
		})
	}
}
