package storetest

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

func auditEntry(n int) inventory.Audit {
	return inventory.Audit{
		At: Now.Add(time.Duration(n) * time.Minute), Actor: "user anna", Role: "operator", Via: "login", Source: "10.0.0.7",
		RequestID: "00ff", Operation: "patch-host", Noun: "host", Name: "r1-u04", HostID: "0193-1", Change: inventory.AuditUpdate,
		Status: 200, Version: int64(n), Before: json.RawMessage(`{"b": 1}`), After: json.RawMessage(`{"b":2}`),
	}
}

func audits(t *testing.T, s inventory.Store) {
	all := []inventory.Audit{auditEntry(0), auditEntry(1), auditEntry(2), auditEntry(3)}
	all[1].Actor, all[1].Operation, all[1].Noun, all[1].Name, all[1].HostID = "token ci", "create-pool", "pool", "gold", ""
	all[1].Before, all[1].Change = nil, inventory.AuditCreate
	all[2].Status, all[2].Detail, all[2].Change, all[2].Before, all[2].After = 403, "not you", "", nil, nil
	all[3].UndoOf, all[3].Fixed = 1, "it set a password"
	for i := range all {
		write(t, s, func(tx inventory.Tx) error { return tx.AddAudit(&all[i]) })
		if all[i].ID != int64(i+1) {
			t.Errorf("entry %d got id %d", i, all[i].ID)
		}
	}
	read(t, s, func(tx inventory.Tx) error {
		for _, want := range all {
			got, err := tx.FindAudit(want.ID)
			if err != nil {
				return err
			}
			same(t, "an entry", want, got)
		}
		return nil
	})
	expect(t, s.Read(t.Context(), func(tx inventory.Tx) error { _, err := tx.FindAudit(99); return err }), inventory.NotFound, "audit 99")
	expect(t, s.Read(t.Context(), func(tx inventory.Tx) error { a := auditEntry(9); return tx.AddAudit(&a) }), inventory.Internal, "Read write")
	auditFilters(t, s)

	// What is rolled back leaves no entry, and one never takes the place of another.
	failed := auditEntry(5)
	_ = s.Write(t.Context(), func(tx inventory.Tx) error {
		if err := tx.AddAudit(&failed); err != nil {
			t.Error(err)
		}
		return inventory.Errorf(inventory.Conflict, "no")
	})
	expect(t, s.Read(t.Context(), func(tx inventory.Tx) error { _, err := tx.FindAudit(failed.ID); return err }), inventory.NotFound, "audit")
}

// auditFilters asks for the four entries in all the ways there are.
func auditFilters(t *testing.T, s inventory.Store) {
	for _, c := range []struct {
		what string
		f    inventory.AuditFilter
		p    inventory.Page
		want string
	}{
		{"all", inventory.AuditFilter{}, inventory.Page{}, "4 3 2 1"},
		{"the first page", inventory.AuditFilter{}, inventory.Page{Limit: 3}, "4 3 2"},
		{"the page after it", inventory.AuditFilter{}, inventory.Page{After: "2", Limit: 3}, "1"},
		{"an actor", inventory.AuditFilter{Actor: "token ci"}, inventory.Page{}, "2"},
		{"a noun", inventory.AuditFilter{Noun: "host"}, inventory.Page{}, "4 3 1"},
		{"a thing", inventory.AuditFilter{Noun: "pool", Name: "gold"}, inventory.Page{}, "2"},
		{"a host, from an entry on", inventory.AuditFilter{HostID: "0193-1"}, inventory.Page{After: "4"}, "3 1"},
		{"an operation", inventory.AuditFilter{Operation: "create-pool"}, inventory.Page{}, "2"},
		{"what was refused", inventory.AuditFilter{IsRefused: true}, inventory.Page{}, "3"},
		{"edits", inventory.AuditFilter{IsChange: true}, inventory.Page{}, "4 2 1"},
		{"a time", inventory.AuditFilter{Since: Now.Add(time.Minute), Until: Now.Add(3 * time.Minute)}, inventory.Page{}, "3 2"},
	} {
		read(t, s, func(tx inventory.Tx) error {
			rows, err := tx.ListAudits(c.f, c.p)
			var ids []string
			for _, a := range rows {
				ids = append(ids, strconv.FormatInt(a.ID, 10))
				if a.Before != nil || a.After != nil {
					t.Errorf("%s: a list has before or after", c.what)
				}
			}
			if got := strings.Join(ids, " "); got != c.want {
				t.Errorf("%s: got %s, want %s", c.what, got, c.want)
			}
			return err
		})
	}
	expect(t, s.Read(t.Context(), func(tx inventory.Tx) error {
		_, err := tx.ListAudits(inventory.AuditFilter{}, inventory.Page{After: "x"})
		return err
	}), inventory.Invalid, "id audit")
}
