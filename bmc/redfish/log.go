package redfish

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// logService is one log.
type logService struct {
	ID           string `json:"Id"`
	LogEntryType string
	Entries      link
	Actions      struct {
		Clear action `json:"#LogService.ClearLog"`
	}
}

// logNames are the ids of the logs of hardware events, best first: iDRAC and XCC, iLO, OpenBMC, Supermicro, AMI.
var logNames = []string{"sel", "iml", "standardlog", "eventlog", "log1", "biosselog", "eventservice", "platformlog", "log"}

// eventLog finds the log of hardware events, in the system or in its manager.
func (d *driver) eventLog(ctx context.Context) (*logService, error) {
	s, err := d.system(ctx)
	if err != nil {
		return nil, err
	}
	refs := []string{s.LogServices.ID}
	if m, err := d.manager(ctx, s); err == nil {
		refs = append(refs, m.LogServices.ID)
	} else if bmc.KindOf(err) != inventory.NotFound {
		return nil, err
	}
	var best *logService
	bestRank := len(logNames) + 1
	for _, ref := range refs {
		docs, err := d.members(ctx, ref, 16)
		if err != nil {
			return nil, err
		}
		for _, doc := range docs {
			l := &logService{}
			if decode(doc, l) != nil || l.Entries.ID == "" {
				continue
			}
			if r := l.rank(); r < bestRank {
				best, bestRank = l, r
			}
		}
	}
	if best == nil {
		return nil, inventory.Errorf(inventory.Invalid, "the controller at %s has no event log", d.host())
	}
	return best, nil
}

// rank says how likely a log is the one of hardware events; less is better.
func (l *logService) rank() int {
	if i := slices.Index(logNames, strings.ToLower(l.ID)); i >= 0 {
		return i
	}
	if l.LogEntryType == "SEL" {
		return 0
	}
	return len(logNames)
}

// Log reads the newest entries. Controllers sort as they like, so all pages are read, and sorted by their time.
func (d *driver) Log(ctx context.Context, limit int) (_ []bmc.LogEntry, err error) {
	defer d.safe(&err)
	l, err := d.eventLog(ctx)
	if err != nil || limit <= 0 {
		return nil, err
	}
	docs, err := d.members(ctx, l.Entries.ID, maxMembers)
	if err != nil {
		return nil, err
	}
	return newest(docs, limit), nil
}

// newest turns documents into entries. Those without a time come last, in the order of the controller.
func newest(docs []json.RawMessage, limit int) []bmc.LogEntry {
	type timed struct {
		bmc.LogEntry
		at time.Time
	}
	var all []timed
	for _, doc := range docs {
		var e struct {
			ID       string `json:"Id"`
			Created  string
			Severity string
			Message  string
			Name     string
		}
		if decode(doc, &e) != nil {
			continue
		}
		t := timed{LogEntry: bmc.LogEntry{ID: clean(e.ID), Severity: severity(e.Severity), Message: inventory.Clean(e.Message, 500)}}
		if t.Message == "" {
			t.Message = clean(e.Name)
		}
		if at, err := time.Parse(time.RFC3339, e.Created); err == nil && at.UTC().Year() > 0 && at.UTC().Year() < 10000 {
			t.at, t.At = at, at.UTC().Format(time.RFC3339)
		}
		all = append(all, t)
	}
	slices.SortStableFunc(all, func(a, b timed) int { return b.at.Compare(a.at) })
	entries := make([]bmc.LogEntry, 0, min(limit, len(all)))
	for _, t := range all[:min(limit, len(all))] {
		entries = append(entries, t.LogEntry)
	}
	return entries
}

func severity(s string) string {
	switch strings.ToLower(s) {
	case "ok", "informational":
		return "ok"
	case "warning":
		return "warning"
	case "critical", "fatal":
		return "critical"
	}
	return strings.ToLower(inventory.Clean(s, 20))
}

// ClearLog empties the log that Log reads.
func (d *driver) ClearLog(ctx context.Context) (err error) {
	defer d.safe(&err)
	l, err := d.eventLog(ctx)
	if err != nil {
		return err
	}
	if l.Actions.Clear.Target == "" {
		return inventory.Errorf(inventory.Invalid, "the controller at %s does not let its event log be cleared", d.host())
	}
	_, err = d.post(ctx, l.Actions.Clear.Target, struct{}{}, "clear the event log")
	return err
}
