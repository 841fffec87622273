package recorder

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
)

// A packet of a boot, which the table knew before the decision, may be stored after the decision.
func TestProgressKeepsTheReferencesOfADecision(t *testing.T) {
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(t.TempDir(), "slipway.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	now := time.Now()
	err = store.Write(t.Context(), func(tx inventory.Tx) error {
		h := inventory.Host{ID: "id-1", Name: "alpha-1", State: inventory.Active, StateSinceAt: now, NICs: []inventory.NIC{{MAC: "52:54:00:00:00:01"}}}
		if err := tx.CreateHost(&h, now); err != nil {
			return err
		}
		s := inventory.BootSession{ID: "s1", HostID: h.ID, MAC: "52:54:00:00:00:01", StartedAt: now, LastAt: now}
		decided := s
		decided.Boot, decided.Reason, decided.Refs = "wait", "beta-1 is joining k8s", []inventory.Ref{inventory.HostRef("beta-1")}
		if err := tx.SaveSession(decided); err != nil {
			return err
		}
		s.LastAt = now.Add(time.Second)
		if err := saveProgress(tx, s); err != nil {
			return err
		}
		b, err := tx.FindSession("s1")
		if isKept := slices.ContainsFunc(b.Refs, func(r inventory.Ref) bool { return r.Name == "beta-1" }); !isKept || b.Reason == "" {
			t.Errorf("reason %q with the references %v", b.Reason, b.Refs)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
