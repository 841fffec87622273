package cli

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
)

var update = flag.Bool("update", false, "rewrite golden files")

// golden compares text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestTheTimelineShowsDurationsPerStep(t *testing.T) {
	const one, two = "11111111111111111111111111111111", "22222222222222222222222222222222"
	at := time.Date(2026, 11, 21, 23, 59, 50, 0, time.UTC)
	ev := func(after time.Duration, kind string, s inventory.SessionID, detail string) inventory.Event {
		e := inventory.Event{At: at.Add(after), Kind: kind, SessionID: s, Detail: detail}
		if s != "" {
			e.MAC = "52:54:00:aa:00:01"
		}
		return e
	}
	ms := time.Millisecond
	token := ev(19000*ms, inventory.EventChanged, "", "deleted by root (local)")
	token.Subject = "token/ci"
	subnet := ev(19100*ms, inventory.EventChanged, "", "subnet rack1 created by root (local)")
	subnet.Subject = "subnet/rack1"
	tl := newTimeline(time.UTC)
	var b strings.Builder
	for _, e := range []inventory.Event{
		ev(0, inventory.EventServer, "", "started"),
		ev(1*ms, inventory.EventSessionStarted, one, "uefi x86_64 on subnet rack1"),
		ev(2*ms, inventory.EventDHCPDiscover, one, ""),
		ev(1003*ms, inventory.EventDHCPAck, one, "10.0.0.100 for 10m"),
		ev(1002*ms, inventory.EventDHCPRequest, one, "noted late, happened before"),
		ev(1500*ms, inventory.EventLoaderStarted, one, "snponly.efi by tftp"),
		ev(1600*ms, inventory.EventSessionStarted, two, "another machine in between"),
		ev(6100*ms, inventory.EventBootDecided, one, "image debian-12 \x1b[31mwith\u202e tricks\n"),
		ev(15*time.Second, inventory.EventSessionEnded, one, "arrived"), // after midnight
		ev(18*time.Second, inventory.EventStateChanged, "", "available by root (local)"),
		token, subnet,
	} {
		host := ""
		if e.SessionID != "" || e.Kind == inventory.EventStateChanged {
			host = "web1"
		}
		b.WriteString(tl.Lines(e, host))
	}
	golden(t, "timeline.golden", b.String())
}

func TestTheTimelineForgets(t *testing.T) {
	tl := newTimeline(time.UTC)
	for i := range 3 * bootsMax {
		tl.Lines(inventory.Event{SessionID: inventory.SessionID(strings.Repeat("x", 1+i%100) + time.Duration(i).String())}, "")
	}
	if len(tl.boots) > bootsMax {
		t.Errorf("%d boots remembered", len(tl.boots))
	}
}
