package storetest

import (
	"errors"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

func racks(t *testing.T, s inventory.Store) {
	bare := inventory.Rack{Name: "r1", Height: 42, Numbering: inventory.FromBottom}
	full := inventory.Rack{
		Site: "fra1", Row: "a/b", Name: "r1", Height: 48, Numbering: inventory.FromTop, Notes: "by the door",
		Cables: []inventory.Cable{{Unit: 3, Port: "eno1", Switch: "leaf-1", To: "Ethernet3"}},
	}
	write(t, s, func(tx inventory.Tx) error {
		return errors.Join(tx.Racks().Create(&full, Now), tx.Racks().Create(&bare, Now))
	})
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.Racks().Find("fra1/a%2Fb/r1")
		same(t, "rack", full, got)
		if err != nil {
			return err
		}
		all, err := tx.Racks().List(inventory.Page{})
		same(t, "racks", []inventory.Rack{bare, full}, all)
		return err
	})
	refuses(t, s, inventory.Conflict, "rack r1", func(tx inventory.Tx) error {
		return tx.Racks().Create(&inventory.Rack{Name: "r1"}, Now)
	})
	stale := full
	full.Height, full.Cables = 40, nil
	write(t, s, func(tx inventory.Tx) error { return tx.Racks().Update(&full, Now.Add(time.Minute)) })
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.Racks().Find(full.ID())
		same(t, "changed rack", full, got)
		return err
	})
	refuses(t, s, inventory.Conflict, "rack changed version", func(tx inventory.Tx) error { return tx.Racks().Update(&stale, Now) })
	write(t, s, func(tx inventory.Tx) error { return tx.Racks().Delete(full.ID()) })
	refuses(t, s, inventory.NotFound, "rack", func(tx inventory.Tx) error { return tx.Racks().Delete(full.ID()) })
	refuses(t, s, inventory.NotFound, "rack", func(tx inventory.Tx) error { return tx.Racks().Update(&full, Now) })
}
