package sqlstore

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

// TestEventsAreReadFromTheirOwnIndex names the index behind each list of events: with a million of them, none may be read
// that is not asked for, nor sorted.
func TestEventsAreReadFromTheirOwnIndex(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "slipway.db"))
	for _, c := range []struct {
		f     inventory.EventFilter
		index string
	}{
		{inventory.EventFilter{Kind: "dhcp.ack"}, "events_by_kind (kind=? AND "},
		{inventory.EventFilter{HostID: "h"}, "events_by_host (host_id=? AND "},
		{inventory.EventFilter{HostID: "h", Kind: "dhcp.ack"}, "events_by_host (host_id=? AND "},
		{inventory.EventFilter{HostID: "h", Kind: "dhcp"}, "events_by_host (host_id=? AND "},
		{inventory.EventFilter{SessionID: "s"}, "events_by_session (session_id=? AND "},
		{inventory.EventFilter{SessionID: "s", Kind: "dhcp"}, "events_by_session (session_id=? AND "},
		{inventory.EventFilter{}, "INTEGER PRIMARY KEY"},
	} {
		for _, c.f.Before = range []int64{0, 5} {
			query, _ := eventsSQL(c.f)
			if plan := planOf(t, s, query); !strings.Contains(plan, c.index) || strings.Contains(plan, "TEMP B-TREE") {
				t.Errorf("events by %+v do not go by %s alone:\n%s\n%s", c.f, c.index, plan, query)
			}
		}
	}
	if plan := planOf(t, s, nextKindSQL); !strings.Contains(plan, "COVERING INDEX events_by_kind (kind>?)") {
		t.Errorf("the kinds do not go by their index:\n%s", plan)
	}
}

// TestAPartOfTheKindsIsPaged turns the pages of a part both ways and finds each event once, in order.
func TestAPartOfTheKindsIsPaged(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "slipway.db"))
	kinds := []string{"boot", "boot.a", "boots.x", "boot.b", "dhcp.ack", "boot.a"}
	var want []int64
	err := s.Write(t.Context(), func(tx inventory.Tx) error {
		for i := range 60 {
			e := inventory.Event{Kind: kinds[i%len(kinds)]}
			if err := tx.AddEvent(&e); err != nil {
				return err
			}
			if e.Kind == "boot" || strings.HasPrefix(e.Kind, "boot.") {
				want = append(want, e.ID)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	turn := func(f inventory.EventFilter) (got []int64) {
		f.Kind = "boot"
		for after := int64(0); ; {
			var page []inventory.Event
			err := s.Read(t.Context(), func(tx inventory.Tx) (err error) {
				page, err = tx.ListEvents(f, after, 7)
				return err
			})
			if err != nil || len(page) == 0 {
				return got
			}
			for _, e := range page {
				got = append(got, e.ID)
			}
			if last := page[len(page)-1].ID; f.Before > 0 {
				f.Before = last
			} else {
				after = last
			}
		}
	}
	if got := turn(inventory.EventFilter{}); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("forwards %v, want %v", got, want)
	}
	back := turn(inventory.EventFilter{Before: 1 << 60})
	for i, j := 0, len(back)-1; i < j; i, j = i+1, j-1 {
		back[i], back[j] = back[j], back[i]
	}
	if fmt.Sprint(back) != fmt.Sprint(want) {
		t.Errorf("backwards %v, want %v", back, want)
	}
}
