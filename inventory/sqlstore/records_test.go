package sqlstore

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
)

// TestRecordsAreListedInPages: pages of two, one after the other, are the whole list. The order of racks is not that of their ids:
// the space in the site "a b" comes before the slash that ends the site "a".
func TestRecordsAreListedInPages(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "slipway.db"))
	now := time.Now()
	must(t, s.Write(t.Context(), func(tx inventory.Tx) error {
		for _, name := range []string{"d", "a", "e", "c", "b"} {
			must(t, tx.Pools().Create(&inventory.Pool{Name: name}, now))
			must(t, tx.AcceptRules().Create(&inventory.AcceptRule{Name: name, Selector: "state=discovered"}, now))
			must(t, tx.Secrets().Create(&inventory.Secret{Name: name, Sealed: []byte(name)}, now))
		}
		for _, r := range []inventory.Rack{{Site: "a b", Name: "1"}, {Site: "a", Name: "2"}, {Site: "a", Name: "10"}, {Site: "a", Row: "x", Name: "1"}, {Name: "z"}} {
			must(t, tx.Racks().Create(&r, now))
		}
		return nil
	}))
	must(t, s.Read(t.Context(), func(tx inventory.Tx) error {
		paged(t, tx.Pools(), func(p inventory.Pool) string { return p.Name })
		paged(t, tx.AcceptRules(), func(r inventory.AcceptRule) string { return r.Name })
		paged(t, tx.Secrets(), func(x inventory.Secret) string { return x.Name })
		paged(t, tx.Racks(), func(r inventory.Rack) string { return r.ID() })
		return nil
	}))
}

func paged[R any](t *testing.T, all inventory.Records[R], name func(R) string) {
	t.Helper()
	want, err := all.List(inventory.Page{})
	if err != nil || len(want) != 5 {
		t.Fatalf("%d records, %v", len(want), err)
	}
	var got []R
	for p := (inventory.Page{Limit: 2}); ; {
		some, err := all.List(p)
		if err != nil || len(some) > 2 {
			t.Fatalf("a page of %d, %v", len(some), err)
		}
		got = append(got, some...)
		if len(some) < 2 || len(got) > 5 {
			break
		}
		p.After = name(some[1])
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("pages (-whole list +pages):\n%s", d)
	}
}
