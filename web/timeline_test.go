package web

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/history"
	"slipway.dev/slipway/web/rest"
)

func TestATimelineHasWhatWasDoneAndIsReadBackwards(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	var h inventory.Host
	r.must(200, &h, "GET", "/api/v1/hosts/r1-u01", "")
	err := r.store.Write(t.Context(), func(tx inventory.Tx) error {
		for i := range 12 {
			id := inventory.SessionID(fmt.Sprintf("%032d", i))
			began := r.clock().Add(time.Duration(i-100) * time.Minute)
			b := inventory.BootSession{ID: id, HostID: h.ID, MAC: h.NICs[0].MAC, Boot: "agent", StartedAt: began, LastAt: began, EndedAt: began.Add(30 * time.Second), Outcome: inventory.OutcomeArrived, Step: inventory.EventAgentStarted}
			if err := tx.SaveSession(b); err != nil {
				return err
			}
			for k, kind := range []string{inventory.EventDHCPAck, inventory.EventLoaderSent, inventory.EventBootDecided, inventory.EventArtefactSent, inventory.EventAgentStarted} {
				if err := tx.AddEvent(&inventory.Event{At: began.Add(time.Duration(k+1) * time.Duration(i+1) * time.Second), Kind: kind, HostID: h.ID, SessionID: id}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for after := ""; ; {
		var page history.Timeline
		r.must(200, &page, "GET", "/api/v1/hosts/r1-u01/timeline?limit=5&after="+after, "")
		for _, g := range page.Groups {
			seen = append(seen, g.ID)
			if len(g.Steps) != 5 || g.Steps[4].Step != "agent" || g.Steps[0].SampleN != 9 {
				t.Errorf("steps of boot %s: %+v", g.ID, g.Steps)
			}
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if len(seen) != 12 || !slices.IsSortedFunc(seen, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Errorf("boots in the order of the pages: %v", seen)
	}
	var back rest.List[inventory.Event]
	r.must(200, &back, "GET", "/api/v1/events?host=r1-u01&before=9007199254740991&limit=3", "")
	if len(back.Items) != 3 || back.Items[0].ID < back.Items[2].ID || back.Next == "" {
		t.Errorf("events from the newest back: %+v", back)
	}
}

func TestAnOperationSaysWhatIsExpectedNext(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.must(202, nil, "POST", "/api/v1/hosts/r1-u01/power", `{"action":"on"}`)
	var page history.Timeline
	r.must(200, &page, "GET", "/api/v1/hosts/r1-u01/timeline", "")
	if page.Expects == nil || page.Expects.What == "" || page.Expects.Operation != page.Groups[0].ID || page.Groups[0].State != "running" {
		t.Errorf("timeline of a host that is switched on: %+v", page)
	}
}
