package redfish

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
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
	m, first := d.manager(ctx, s)
	if fatal := d.omit(ctx, "the controller's own document", first); fatal != nil {
		return nil, fatal
	}
	if first == nil {
		refs = append(refs, m.LogServices.ID)
	}
	var best *logService
	bestRank := len(logNames) + 1
	for _, ref := range refs {
		docs, err := d.members(ctx, ref)
		if fatal := d.omit(ctx, ref, err); fatal != nil {
			return nil, fatal
		}
		if err != nil && (first == nil || bmc.KindOf(first) == inventory.NotFound) {
			first = err
		}
		for _, doc := range docs {
			l := &logService{}
			if decode(doc, l) != nil || l.Entries.ID == "" {
				continue
			}
			// The system's logs come first, and win among logs of the same rank.
			if r := l.rank(); r < bestRank {
				best, bestRank = l, r
			}
		}
	}
	// A manager that could not be read may have the log. Saying that there is none would hide a fault that passes.
	if best == nil && first != nil && bmc.KindOf(first) != inventory.NotFound {
		return nil, first // there may be one
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
	if l.LogEntryType == "SEL" { // IPMI's system event log, under whatever name
		return 0
	}
	return len(logNames)
}

// Bounds of one reading of a log.
const (
	logFor        = 45 * time.Second
	maxLogPages   = 2000
	maxLogSingles = 512 // entries that take one request each
)

// Log reads the newest entries, and reports with bmc.Omit how many it left out. Controllers sort as they like, so
// that it reads all pages, for at most 45 seconds, and keeps the newest entries.
func (d *driver) Log(ctx context.Context, limit int) (_ []bmc.LogEntry, err error) {
	defer d.safe(&err)
	l, err := d.eventLog(ctx)
	if err != nil || limit <= 0 {
		return nil, err
	}
	all, total, err := d.entries(ctx, l.Entries.ID, limit)
	if err != nil {
		return nil, err
	}
	entries := newest(all, limit)
	if n := total - len(entries); n > 0 {
		bmc.Omit(ctx, "%d of %d entries of the log are not shown: older ones", n, total)
	}
	return entries, nil
}

// timed is an entry with its time, which is zero where the controller has none.
type timed struct {
	bmc.LogEntry
	at time.Time
}

// entries reads a log, and how many entries it has. It returns at least the newest, limit of them, where it could read to
// the end.
func (d *driver) entries(ctx context.Context, ref string, limit int) (all []timed, total int, err error) {
	root, err := d.root(ctx)
	if err != nil {
		return nil, 0, err
	}
	if root.ProtocolFeaturesSupported.ExpandQuery.NoLinks && !strings.Contains(ref, "?") {
		// One request for a page instead of one for each entry: a log of 4,000 entries would take an hour.
		if all, total, err = d.entryPages(ctx, ref+"?$expand=.", limit); err == nil && total > 0 {
			return all, total, nil // what is promised is not always kept
		}
	}
	return d.entryPages(ctx, ref, limit)
}

func (d *driver) entryPages(ctx context.Context, ref string, limit int) (all []timed, total int, err error) {
	var (
		links []json.RawMessage
		readN int
		seen  = map[string]bool{}
		end   = time.Now().Add(logFor)
	)
	for ref != "" && !seen[ref] {
		if len(seen) >= maxLogPages || time.Now().After(end) {
			bmc.Omit(ctx, "the log is too long to be read to its end: newer entries may be missing; clear the log")
			break
		}
		// Some firmware links the last page to itself.
		seen[ref] = true
		var page collection
		if err := d.read(ctx, ref, &page); err != nil {
			if len(seen) == 1 {
				return nil, 0, err
			}
			if err := d.omit(ctx, ref, err); err != nil {
				return nil, 0, err
			}
			bmc.Omit(ctx, "the log was not read to its end: newer entries may be missing")
			break
		}
		total, readN = max(total, int(page.Count)), readN+len(page.Members)
		some, rest := entriesOf(page.Members)
		all, links, ref = append(all, some...), append(links, rest...), page.Next
		// Memory stays bounded while pages arrive in any order.
		if len(all) > 4*limit {
			all = sorted(all)[:limit]
		}
	}
	// Links are read last: how many are wanted, and from which end, shows only once all pages are known.
	more, err := d.singles(ctx, links, limit)
	return append(all, more...), max(total, readN), err
}

// entriesOf takes the entries out of a page, and the links to those that are documents of their own.
func entriesOf(members []json.RawMessage) (all []timed, links []json.RawMessage) {
	for _, m := range members {
		var keys map[string]json.RawMessage
		if decode(m, &keys) != nil {
			continue
		}
		// A member with nothing but its path is a link; an expanded one has all of the document.
		if _, hasID := keys["@odata.id"]; hasID && len(keys) == 1 {
			links = append(links, m)
			continue
		}
		all = append(all, entryOf(m))
	}
	return all, links
}

// singles reads entries that take one request each: from the end of the list that has the newer ones, as many as are wanted.
func (d *driver) singles(ctx context.Context, links []json.RawMessage, limit int) (all []timed, err error) {
	// The standard says nothing of the order. Reading the first and the last entry tells which end is new.
	if n := min(limit, maxLogSingles); len(links) > n {
		ends := []timed{}
		for _, m := range []json.RawMessage{links[0], links[len(links)-1]} {
			doc, err := d.member(ctx, m)
			if err != nil {
				return nil, err
			}
			if doc != nil {
				ends = append(ends, entryOf(doc))
			}
		}
		if len(ends) == 2 && isNewer(ends[0], ends[1]) {
			links = links[:n]
		} else {
			links = links[len(links)-n:]
		}
	}
	for _, m := range links {
		doc, err := d.member(ctx, m)
		if err != nil {
			return nil, err
		}
		if doc != nil {
			all = append(all, entryOf(doc))
		}
	}
	return all, nil
}

// entryOf converts a log entry. A time that cannot be parsed is kept as text.
func entryOf(doc json.RawMessage) timed {
	var e struct {
		ID       string `json:"Id"`
		Created  string
		Severity string
		Message  string
		Name     string
	}
	_ = decode(doc, &e)
	t := timed{LogEntry: bmc.LogEntry{ID: clean(e.ID), Severity: severity(e.Severity), Message: inventory.Clean(e.Message, 500)}}
	// Some firmware puts the text of an event into its name.
	t.Message = cmp.Or(t.Message, clean(e.Name))
	// iLO writes 0000-00-00 for an entry from before its clock was set. That is no time, and no text for an admin either.
	at, ok := timeOf(e.Created)
	switch found := clean(e.Created); {
	case ok:
		t.at, t.At = at, at.UTC().Format(time.RFC3339)
	case found != "" && !strings.HasPrefix(found, "0000-00-00"):
		t.Message = "[" + inventory.Clean(found, 40) + "] " + t.Message
	}
	return t
}

// timeLayouts are how controllers write a time, in addition to RFC 3339. One without a zone counts as UTC.
var timeLayouts = []string{
	time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02 15:04:05Z07:00",
	"2006-01-02 15:04:05 Z0700", "2006-01-02 15:04:05 MST", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006/01/02 15:04:05", "2006/01/02 15:04",
	time.RFC1123, time.RFC1123Z, time.RFC850, time.ANSIC, time.UnixDate, "Jan _2 15:04:05 2006", "Jan 2, 2006 15:04:05", "2 Jan 2006 15:04:05",
	"Mon Jan _2 2006 15:04:05", "01/02/2006 15:04:05", "20060102T150405Z0700", "20060102150405",
}

// timeOf reads a time as it is found.
func timeOf(text string) (time.Time, bool) {
	text = strings.Join(strings.Fields(text), " ")
	for _, layout := range timeLayouts {
		at, err := time.Parse(layout, text)
		if err == nil && at.UTC().Year() > 1 && at.UTC().Year() < 10000 {
			return at, true
		}
	}
	return time.Time{}, false
}

// isNewer reports whether a was logged after b: by their times, or by their numbers where the controller has no clock.
func isNewer(a, b timed) bool {
	if !a.at.IsZero() || !b.at.IsZero() {
		return a.at.After(b.at)
	}
	m, err := strconv.Atoi(a.ID)
	n, err2 := strconv.Atoi(b.ID)
	return err == nil && err2 == nil && m > n
}

// sorted puts the newest in front. Those without a time come last, by their numbers.
func sorted(all []timed) []timed {
	slices.SortStableFunc(all, func(a, b timed) int {
		switch {
		case isNewer(a, b):
			return -1
		case isNewer(b, a):
			return 1
		}
		return 0
	})
	return all
}

// newest returns the newest entries.
func newest(all []timed, limit int) []bmc.LogEntry {
	all = sorted(all)
	entries := make([]bmc.LogEntry, 0, min(limit, len(all)))
	for _, t := range all[:min(limit, len(all))] {
		entries = append(entries, t.LogEntry)
	}
	return entries
}

// severity maps to the words of package bmc. An unknown word stays, shortened: an admin may know the vendor's scale.
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

// ClearLog empties the log that Log reads, and waits until it is empty.
func (d *driver) ClearLog(ctx context.Context) (err error) {
	defer d.safe(&err)
	l, err := d.eventLog(ctx)
	if err != nil {
		return err
	}
	if l.Actions.Clear.Target == "" {
		return inventory.Errorf(inventory.Invalid, "the controller at %s does not let its event log be cleared", d.host())
	}
	// The number before, to see that it falls: the order alone proves nothing.
	_, before, err := d.entries(ctx, l.Entries.ID, 1)
	if err != nil {
		return err
	}
	// An empty object and not an empty body, which DSP0266 does not know for an action.
	if _, err = d.post(ctx, l.Actions.Clear.Target, struct{}{}, "clear the event log"); err != nil {
		return err
	}
	// Clearing runs in the background on some controllers: the count falls seconds later.
	for n := 0; ; n++ {
		_, after, err := d.entries(ctx, l.Entries.ID, 1)
		if err != nil {
			return err
		}
		if after < before || after <= 1 { // clearing it may be an event
			return nil
		}
		if n+1 >= d.looks {
			return inventory.Errorf(inventory.Unavailable, "the controller at %s took the order to clear its event log, but that still has %d entries", d.host(), after)
		}
		if err := d.sleep(ctx, d.every); err != nil {
			return d.unreached(ctx, err)
		}
	}
}
