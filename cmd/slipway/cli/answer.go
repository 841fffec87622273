package cli

import (
	"encoding/json"
	"fmt"

	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// Answer is what a call has answered, or its error.
type Answer[T any] struct {
	v   T
	err error
}

// Answered takes the two results of a call.
func Answered[T any](v T, err error) Answer[T] { return Answer[T]{v, err} }

// Items takes the two results of a call that answers with a list.
func Items[T any](p client.Page[T], err error) Answer[[]T] { return Answered(p.Items, err) }

// Show writes the answer in the form asked for; table writes it for people. An error is returned.
func (a Answer[T]) Show(s *Session, table func(*TableWriter, T)) error {
	if a.err != nil {
		return a.err
	}
	return s.Show(a.v, func(t *TableWriter) { table(t, a.v) })
}

// Rows writes a table of a list, with those headings and a row for each item.
func Rows[T any](headings []string, row func(T) []string) func(*TableWriter, []T) {
	return func(t *TableWriter, items []T) {
		t.Row(headings...)
		for _, item := range items {
			t.Row(row(item)...)
		}
	}
}

// ShowChecks shows what was checked, and what more it says. Anything that is not good is a failure.
func ShowChecks(s *Session, whole any, isGood bool, results []wire.TargetCheckResult, more ...[]string) error {
	err := s.Show(whole, func(t *TableWriter) {
		t.Row("STATUS", "CHECK", "DETAIL", "HINT")
		for _, r := range results {
			status := "ok"
			if !r.IsGood {
				status = "error"
			}
			t.Row(status, r.Name, r.Detail, r.Hint)
		}
		for _, row := range more {
			t.Row(row...)
		}
	})
	if err == nil && !isGood {
		return ErrSaid
	}
	return err
}

// ListAll collects a list, page by page, up to limit items; 0 is all.
func ListAll[T any](s *Session, noun func(*client.Client) client.Noun[T], q client.Query, limit int) ([]T, error) {
	c, err := s.Client()
	if err != nil {
		return nil, err
	}
	q.Limit = 500
	if limit > 0 && limit < q.Limit {
		q.Limit = limit
	}
	items := []T{}
	for item, err := range noun(c).All(s.Ctx, q) {
		if err != nil {
			return nil, err
		}
		if limit > 0 && len(items) == limit {
			s.SayCut(limit, true)
			break
		}
		items = append(items, item)
	}
	return items, nil
}

// SayCut says that a list goes on behind its limit.
func (s *Session) SayCut(limit int, isCut bool) {
	if isCut && s.Globals.Output == "table" {
		s.Say("the first %d are shown; --limit 0 shows all", limit)
	}
}

// ShowList lists things as a table with those headings.
func ShowList[T any](s *Session, noun func(*client.Client) client.Noun[T], q client.Query, limit int, headings []string, row func(T) []string) error {
	return Answered(ListAll(s, noun, q, limit)).Show(s, Rows(headings, row))
}

// ShowOne shows a thing.
func ShowOne[T any](s *Session, noun func(*client.Client) client.Noun[T], name string, table func(*TableWriter, T)) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	return Answered(noun(c).Get(s.Ctx, name)).Show(s, table)
}

// Write creates or puts a thing, or with isDryRun shows what that would change. method is POST or PUT.
func Write[T any](s *Session, noun func(*client.Client) client.Noun[T], method, name string, item T, isDryRun bool, opts ...client.Option) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	if isDryRun {
		return s.Preview(noun(c).Preview(s.Ctx, method, name, item))
	}
	var stored T
	if method == "POST" {
		stored, err = noun(c).Create(s.Ctx, item)
	} else {
		stored, err = noun(c).Put(s.Ctx, name, item, opts...)
	}
	if err != nil {
		return err
	}
	return s.Stored(stored, nil)
}

// Stored shows what a write has stored: nothing to people, who know what they have typed. err is the error of the write.
func (s *Session) Stored(v any, err error) error {
	if err != nil || s.Globals.Output == "table" {
		return err
	}
	return s.Show(v, nil)
}

// Preview shows what a write would change.
func (s *Session) Preview(d client.Diff, err error) error {
	if err != nil {
		return err
	}
	return s.Show(d, func(t *TableWriter) {
		if len(d.Changes) == 0 {
			t.Row("nothing would change")
			return
		}
		t.Row("FIELD", "FROM", "TO")
		for _, c := range d.Changes {
			t.Row(c.Field, ValueText(c.From), ValueText(c.To))
		}
	})
}

// ValueText is a value of a change for people: a string as it is, everything else as JSON.
func ValueText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// Remove deletes things one by one, and goes on after one that fails.
func Remove[T any](s *Session, noun func(*client.Client) client.Noun[T], names []string, isDryRun bool, opts ...client.Option) error {
	return s.Each(names, func(c *client.Client, name string) error {
		if isDryRun {
			d, err := noun(c).Preview(s.Ctx, "DELETE", name, nil, opts...)
			if err == nil {
				s.Say("%s would be deleted%s", name, ToldThat(d.Does))
			}
			return err
		}
		return noun(c).Delete(s.Ctx, name, opts...)
	})
}

// ToldThat is what would happen, behind a colon; "" when the server has no word for it.
func ToldThat(does string) string {
	if does == "" {
		return ""
	}
	return ": " + does
}

// Each does something to every name, and goes on after one that fails.
func (s *Session) Each(names []string, do func(c *client.Client, name string) error) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	var failed error
	for _, name := range names {
		if err := do(c, name); err != nil {
			if len(names) == 1 || s.Ctx.Err() != nil {
				return err
			}
			Complain(s.Err, err)
			failed = ErrSaid
		}
	}
	return failed
}
