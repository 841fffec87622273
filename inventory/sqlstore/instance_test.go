package sqlstore

import (
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

// TestARowOfAnInstanceThatSomebodyHasEdited reads rows with what no instance writes, and saves one of them.
func TestARowOfAnInstanceThatSomebodyHasEdited(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slipway.db")
	s := openTest(t, path)
	is := inventory.Instance{
		ID: "1", Name: "a", Run: "r", Version: "1.2.3", Addresses: []string{"192.0.2.1", "fe80::1"}, Links: []string{"192.0.2.1:8069"},
	}
	must(t, s.Write(t.Context(), func(tx inventory.Tx) error {
		if err := tx.SaveInstance(is); err != nil {
			return err
		}
		return tx.SaveDuty(inventory.Duty{Name: inventory.DutyEngine, Holder: "1", Epoch: 1, Reason: "nobody had it"})
	}))
	const evil = "\x1b[31mNode 1\x1b]0;x\x07<img src=x>\n; rm -rf /"
	const cleaned = "[31mNode 1 ]0;x <img src=x> ; rm -rf /"
	db, err := sql.Open("sqlite3", "file:"+path+"?_busy_timeout=5000")
	must(t, err)
	defer db.Close()
	for _, c := range []struct {
		column string
		value  string
		want   func(i inventory.Instance) bool
	}{
		{"name", evil, func(i inventory.Instance) bool { return i.Name == "31mnode-1--0-x--img-src-x----rm--rf" }},
		{"name", "", func(i inventory.Instance) bool { return i.Name == "unreadable" }},
		{"name", "A" + strings.Repeat("b-", 1<<19), func(i inventory.Instance) bool {
			return inventory.CheckName("instance", i.Name) == nil
		}},
		{"program", evil, func(i inventory.Instance) bool { return i.Version == cleaned }},
		{"program", strings.Repeat("x", 1<<20), func(i inventory.Instance) bool { return len(i.Version) == 500 }},
		{"cut_off", evil, func(i inventory.Instance) bool { return i.CutOff == cleaned }},
		{"addresses", `["192.0.2.7", "<img>", "192.0.2.1:80", ""]`, func(i inventory.Instance) bool {
			return slices.Equal(i.Addresses, []string{"192.0.2.7"})
		}},
		{"addresses", "no list", func(i inventory.Instance) bool { return len(i.Addresses) == 0 }},
		{"addresses", `["192.0.2.7"` + strings.Repeat(`,"192.0.2.8"`, 1000) + `]`, func(i inventory.Instance) bool {
			return len(i.Addresses) == 64
		}},
		{"links", `["evil.example:80/x?", "192.0.2.9:1@192.0.2.1:2", "192.0.2.7:8069", "x"]`, func(i inventory.Instance) bool {
			return slices.Equal(i.Links, []string{"192.0.2.7:8069"})
		}},
	} {
		must(t, s.Write(t.Context(), func(tx inventory.Tx) error { return tx.SaveInstance(is) }))
		_, err := db.ExecContext(t.Context(), "UPDATE instances SET "+c.column+" = ?", c.value)
		must(t, err)
		must(t, s.Write(t.Context(), func(tx inventory.Tx) error {
			all, err := tx.ListInstances()
			if err != nil || len(all) != 1 || !c.want(all[0]) {
				t.Errorf("%s %.60q is read as %.300v, %v", c.column, c.value, all, err)
				return err
			}
			found, err := tx.FindInstance("1")
			if err != nil || !c.want(found) {
				t.Errorf("%s %.60q: by its id %.300v, %v", c.column, c.value, found, err)
			}
			found.IsDrained = true
			return tx.SaveInstance(found)
		}))
	}
	_, err = db.ExecContext(t.Context(), "UPDATE duties SET reason = ?, former = ?", evil, evil)
	must(t, err)
	must(t, s.Read(t.Context(), func(tx inventory.Tx) error {
		all, err := tx.ListDuties()
		if err != nil || len(all) != 1 || all[0].Reason != cleaned || all[0].Former != cleaned {
			t.Errorf("the duty is read as %+v, %v", all, err)
		}
		return err
	}))
}
