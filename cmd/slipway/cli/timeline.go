package cli

import (
	"fmt"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// timeline writes events as lines. Those of a boot stand under a heading, each with the time since the boot began and
// since the step before. The same events give the same lines.
type timeline struct {
	zone  *time.Location
	boots map[inventory.SessionID]*boot
	shown inventory.SessionID // boot that the last line belonged to
	day   string
}

// boot is what is known of a boot session by its events so far.
type boot struct {
	began, last time.Time
}

// bootsMax bounds the boots remembered while events are followed for weeks.
const bootsMax = 4096

func newTimeline(zone *time.Location) *timeline {
	return &timeline{zone: zone, boots: map[inventory.SessionID]*boot{}}
}

// Lines returns the lines for an event. host is its host's name, "" when that goes without saying.
func (t *timeline) Lines(e inventory.Event, host string) string {
	var b strings.Builder
	at := e.At.In(t.zone)
	if day := at.Format("2006-01-02 MST"); day != t.day {
		t.day = day
		b.WriteString(day + "\n")
	}
	if e.SessionID != "" && e.SessionID != t.shown {
		b.WriteString(strings.TrimRight(fmt.Sprintf("boot %s  %s  %s", Plain(string(e.SessionID)), Plain(host), e.MAC), " ") + "\n")
	}
	since, step, about := "", "", ""
	switch {
	case e.SessionID != "":
		since, step = t.took(e)
	case host != "":
		about = Plain(host) + ": "
	case e.Subject != "" && !strings.Contains(e.Detail, e.Subject[strings.LastIndex(e.Subject, "/")+1:]):
		about = Plain(e.Subject) + ": "
	}
	t.shown = e.SessionID
	b.WriteString(strings.TrimRight(fmt.Sprintf("%s %9s %9s  %-15s  %s%s", at.Format("15:04:05.000"), since, step, Plain(e.Kind), about, Plain(e.Detail)), " ") + "\n")
	return b.String()
}

// took says how long the boot has lasted at an event, and since the event before.
func (t *timeline) took(e inventory.Event) (since, step string) {
	known := t.boots[e.SessionID]
	if known == nil {
		if len(t.boots) >= bootsMax {
			clear(t.boots)
		}
		known = &boot{began: e.At, last: e.At}
		t.boots[e.SessionID] = known
	}
	since, step = Seconds(e.At.Sub(known.began)), "+"+Seconds(e.At.Sub(known.last))
	known.last = e.At
	return since, step
}

// Seconds writes a duration with three decimals. Several listeners note events at the same time, so that one may be a
// little in the past.
func Seconds(d time.Duration) string { return fmt.Sprintf("%.3fs", max(d, 0).Seconds()) }
