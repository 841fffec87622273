package cli

import (
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
