package main

import (
	"fmt"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

type auditCommand struct {
	List auditList `cmd:"" help:"List what was asked of the server, latest first."`
	Show auditShow `cmd:"" help:"Show an entry with what it changed."`
	Undo auditUndo `cmd:"" help:"Take back an edit, if nothing has changed since."`

	Verify auditVerify `cmd:"" help:"Look whether an entry was changed or taken out since it was written."`
	Export auditExport `cmd:"" help:"Write all entries, oldest first, one JSON document a line."`
}

type auditList struct {
	Actor     string        `help:"Only what this one asked, such as \"user anna\"." placeholder:"ACTOR"`
	Noun      string        `help:"Only what was about this noun, such as profile." placeholder:"NOUN"`
	Name      string        `help:"Only what was about the one of this name." placeholder:"NAME"`
	Host      string        `help:"Only what concerned this host." placeholder:"HOST"`
	Operation string        `help:"Only this operation of the API, such as power-host." placeholder:"ID"`
	Outcome   string        `enum:"change,refused," default:"" help:"Only edits that were made (change), or what was refused (refused)."`
	Since     time.Duration `help:"Only of the last, such as 24h." placeholder:"DURATION"`
	Limit     int           `default:"50" help:"At most so many; 0 for all."`
}

// Run lists entries of the audit.
func (c *auditList) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	q := client.AuditQuery{
		Actor: c.Actor, Noun: c.Noun, Name: c.Name, Host: c.Host, Operation: c.Operation, Outcome: c.Outcome, Limit: 500,
	}
	if c.Since > 0 {
		q.Since = time.Now().Add(-c.Since)
	}
	if c.Limit > 0 {
		q.Limit = min(q.Limit, c.Limit)
	}
	list := []inventory.Audit{}
	for isMore := true; isMore; {
		page, err := api.Audit(s.ctx, q)
		if err != nil {
			return err
		}
		list = append(list, page.Items...)
		q.After, isMore = page.Next, page.Next != "" && (c.Limit <= 0 || len(list) < c.Limit)
	}
	if c.Limit > 0 {
		s.sayCut(c.Limit, q.After != "" || len(list) > c.Limit)
		list = list[:min(len(list), c.Limit)]
	}
	return s.show(list, func(t *tableWriter) {
		t.row("ID", "AT", "ACTOR", "OPERATION", "NOUN", "NAME", "STATUS", "DETAIL")
		for i := range list {
			a := &list[i]
			t.row(fmt.Sprint(a.ID), timeText(a.At), a.Actor, a.Operation, a.Noun, a.Name, auditStatus(a), auditDetail(a))
		}
	})
}

// auditStatus is what became of a request, in a word.
func auditStatus(a *inventory.Audit) string {
	switch {
	case a.IsRefused():
		return fmt.Sprintf("refused (%d)", a.Status)
	case a.Change != "":
		return string(a.Change)
	}
	return "done"
}

func auditDetail(a *inventory.Audit) string {
	if a.UndoOf == 0 {
		return a.Detail
	}
	return fmt.Sprintf("undo of %d", a.UndoOf) + prefixed(": ", a.Detail)
}

type auditShow struct {
	ID int64 `arg:"" help:"Its number."`
}

// Run shows an entry.
func (c *auditShow) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	e, err := api.AuditEntry(s.ctx, c.ID)
	if err != nil {
		return err
	}
	return s.show(e, func(t *tableWriter) {
		t.field("entry", fmt.Sprint(e.ID))
		t.field("at", timeText(e.At))
		t.field("actor", e.Actor)
		t.field("role", e.Role)
		t.field("via", e.Via)
		t.field("source", e.Source)
		t.field("operation", e.Operation)
		t.field(e.Noun, e.Name)
		t.field("status", auditStatus(&e.Audit))
		t.field("detail", auditDetail(&e.Audit))
		t.field("request", e.RequestID)
		if e.Change != "" {
			t.field("not undoable", e.NotUndoable)
		}
		for _, x := range e.Changes {
			t.field(x.Field, shortValue(x.From)+" -> "+shortValue(x.To))
		}
	})
}

// shortValue is a value of a change for a line.
func shortValue(v any) string {
	text := inventory.Clean(valueText(v), 200)
	if text == "" {
		return "(none)"
	}
	return text
}

type auditUndo struct {
	ID     int64 `arg:"" help:"The number of the entry that is taken back."`
	DryRun bool  `help:"Only show what would change."`
}

// Run takes back an edit.
func (c *auditUndo) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	if c.DryRun {
		return s.preview(api.PreviewUndo(s.ctx, c.ID))
	}
	a, err := api.Undo(s.ctx, c.ID)
	if err != nil {
		return err
	}
	return s.show(a, func(t *tableWriter) { t.row(fmt.Sprint(a.ID), a.Noun, a.Name, auditStatus(&a), auditDetail(&a)) })
}
