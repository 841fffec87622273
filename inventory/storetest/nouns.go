package storetest

import (
	"slices"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
)

// plainNouns tries what holds for every plain noun, with the samples of the table: records are found, listed, changed and deleted.
func plainNouns(t *testing.T, s inventory.Store) {
	for _, n := range noun.All() {
		one, r, key := n.About().One, n.New(), n.KeyOf(n.New())
		write(t, s, func(tx inventory.Tx) error { return n.Of(tx).Create(&r, Now) })
		first, created := r, Now.Truncate(time.Millisecond)
		if at := n.StampsOf(r); !at.Created.Equal(created) || !at.Updated.Equal(created) || *at.Version != 1 {
			t.Errorf("stamps of a new %s: %v %v %d", one, at.Created, at.Updated, *at.Version)
		}
		refuses(t, s, inventory.Conflict, one+" "+key, func(tx inventory.Tx) error {
			again := n.New()
			return n.Of(tx).Create(&again, Now)
		})
		write(t, s, func(tx inventory.Tx) error { return n.Of(tx).Update(&r, Now.Add(time.Second)) })
		refuses(t, s, inventory.Conflict, one+" "+key+" 2 1", func(tx inventory.Tx) error { return n.Of(tx).Update(&first, Now) })
		read(t, s, func(tx inventory.Tx) error {
			got, err := n.Of(tx).Find(key)
			if err != nil {
				return err
			}
			same(t, one, r, got)
			if at := n.StampsOf(got); !at.Created.Equal(created) || !at.Updated.Equal(created.Add(time.Second)) || *at.Version != 2 {
				t.Errorf("stamps of a changed %s: %v %v %d", one, at.Created, at.Updated, *at.Version)
			}
			all, err := n.Of(tx).List(inventory.Page{})
			if !slices.ContainsFunc(all, func(r any) bool { return n.KeyOf(r) == key }) {
				t.Errorf("%s is not among %v", one, all)
			}
			_, missing := n.Of(tx).Find("nothing")
			expect(t, missing, inventory.NotFound, one+" nothing")
			return err
		})
	}
	for _, n := range slices.Backward(noun.All()) { // a sample may name one that comes before it
		one, key := n.About().One, n.KeyOf(n.New())
		write(t, s, func(tx inventory.Tx) error { return n.Of(tx).Delete(key) })
		refuses(t, s, inventory.NotFound, one+" "+key, func(tx inventory.Tx) error { return n.Of(tx).Delete(key) })
	}
}
