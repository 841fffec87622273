package records

import (
	"fmt"
	"regexp"
	"time"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

func audit(c *client.Client) client.Noun[inventory.Audit] { return c.Audit }

// AuditCommand is slipway audit.
type AuditCommand struct {
	List auditList `cmd:"" help:"List the requests to the server, latest first."`
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
func (c *auditList) Run(s *cli.Session) error {
	q := client.Query{Actor: c.Actor, Noun: c.Noun, Name: c.Name, Host: c.Host, Operation: c.Operation, Outcome: c.Outcome}
	if c.Since > 0 {
		q.Since = time.Now().Add(-c.Since)
	}
	headings := []string{"ID", "AT", "ACTOR", "OPERATION", "NOUN", "NAME", "STATUS", "DETAIL"}
	return cli.ShowList(s, audit, q, c.Limit, headings, func(a inventory.Audit) []string {
		return []string{fmt.Sprint(a.ID), cli.TimeText(a.At), a.Actor, a.Operation, a.Noun, a.Name, auditStatus(&a), auditDetail(&a)}
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
	return fmt.Sprintf("undo of %d", a.UndoOf) + cli.Prefixed(": ", a.Detail)
}

type auditShow struct {
	ID int64 `arg:"" help:"Its number."`
}

// Run shows an entry.
func (c *auditShow) Run(s *cli.Session, api *client.Client) error {
	return cli.Answered(api.AuditEntry(s.Ctx, c.ID)).Show(s, func(t *cli.TableWriter, e wire.AuditEntry) {
		t.Field("entry", fmt.Sprint(e.ID))
		t.Field("at", cli.TimeText(e.At))
		t.Field("actor", e.Actor)
		t.Field("role", e.Role)
		t.Field("via", e.Via)
		t.Field("source", e.Source)
		t.Field("operation", e.Operation)
		t.Field(e.Noun, e.Name)
		t.Field("status", auditStatus(&e.Audit))
		t.Field("detail", auditDetail(&e.Audit))
		t.Field("request", e.RequestID)
		if e.Change != "" {
			t.Field("not undoable", e.NotUndoable)
		}
		for _, x := range e.Changes {
			t.Field(x.Field, shortValue(x.From)+" -> "+shortValue(x.To))
		}
	})
}

// shortValue is a value of a change for a line.
func shortValue(v any) string {
	text := inventory.Clean(cli.ValueText(v), 200)
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
func (c *auditUndo) Run(s *cli.Session, api *client.Client) error {
	if c.DryRun {
		return s.Preview(api.PreviewUndo(s.Ctx, c.ID))
	}
	return cli.Answered(api.Undo(s.Ctx, c.ID)).Show(s, func(t *cli.TableWriter, a inventory.Audit) {
		t.Row(fmt.Sprint(a.ID), a.Noun, a.Name, auditStatus(&a), auditDetail(&a))
	})
}

var auditHead = regexp.MustCompile(`^[0-9a-f]{64}$`)

type auditVerify struct {
	Noted string `help:"Head that an earlier run printed: it must still be in the chain." placeholder:"HASH"`
}

// Run looks at the chain of the audit. A broken one is an error.
func (c *auditVerify) Run(s *cli.Session, api *client.Client) error {
	if c.Noted != "" && !auditHead.MatchString(c.Noted) {
		return cli.Usage("give the head that an earlier check printed, 64 hex digits: slipway audit verify", "--noted %q is not the head of an audit", c.Noted)
	}
	a, err := api.AuditChain(s.Ctx, c.Noted)
	if err != nil {
		return err
	}
	if err := s.Show(a, func(t *cli.TableWriter) {
		t.Field("entries", fmt.Sprint(a.EntryN))
		if a.UnhashedN > 0 {
			t.Field("of versions without hashes", fmt.Sprint(a.UnhashedN))
		}
		t.Field("newest", fmt.Sprint(a.HeadID))
		t.Field("head", a.Head)
	}); err != nil {
		return err
	}
	if !a.IsWhole {
		return inventory.Errorf(inventory.Conflict, "the audit is not as it was written: %s", a.Reason).
			WithHint("compare with an export or a backup: slipway audit show %d", max(a.BrokenID, 1))
	}
	s.Say("no entry was changed or taken out; note the head elsewhere, and give it next time with --noted")
	return nil
}

type auditExport struct {
	After int64 `help:"Only entries after this id." placeholder:"ID"`
}

// Run writes entries as JSON lines.
func (c *auditExport) Run(s *cli.Session, api *client.Client) error {
	for after := c.After; ; {
		page, err := api.AuditExport(s.Ctx, after)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if err := cli.WriteJSON(s.Out, page.Items[i], false); err != nil {
				return err
			}
			after = page.Items[i].ID
		}
		if page.Next == "" {
			return nil
		}
	}
}
