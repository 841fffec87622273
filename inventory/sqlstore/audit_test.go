package sqlstore

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/auditchain"
)

// auditStatements adds the queries that filters of the audit build.
func auditStatements(all map[string]string) {
	for i := range 256 {
		var f inventory.AuditFilter
		for bit, set := range []func(){
			func() { f.Actor = "x" }, func() { f.Noun = "x" }, func() { f.Name = "x" }, func() { f.HostID = "x" },
			func() { f.Operation = "x" }, func() { f.Since, f.Until = time.Unix(1, 0), time.Unix(2, 0) },
			func() { f.IsRefused = true }, func() { f.IsChange = true },
		} {
			if i&(1<<bit) != 0 {
				set()
			}
		}
		all[fmt.Sprintf("audits by %+v", f)], _ = auditsSQL(f)
	}
}

// TestTheAuditIsAppendOnly goes past our own code, straight to the database.
func TestTheAuditIsAppendOnly(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "slipway.db"))
	for range 3 {
		a := inventory.Audit{At: time.Unix(1, 0), Actor: "root (local)", Operation: "delete-host", Detail: "before"}
		if err := s.Write(t.Context(), func(tx inventory.Tx) error { return tx.AddAudit(&a) }); err != nil {
			t.Fatal(err)
		}
	}
	row := `(id, at, actor, role, via, source, request_id, operation, noun, name, host_id, change, status, detail, version, undo_of, fixed, before, after)
VALUES (2, 1, 'x', '', '', '', '', '', '', '', '', '', 0, 'after', 0, 0, '', '', '')`
	for _, sql := range []string{
		`UPDATE audit SET detail = 'after' WHERE id = 2`,
		`DELETE FROM audit WHERE id = 2`,
		`DELETE FROM audit`,
		`INSERT OR REPLACE INTO audit ` + row,
		`INSERT INTO audit ` + row + ` ON CONFLICT (id) DO UPDATE SET detail = 'after'`,
	} {
		if _, err := run(t, s, sql); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: got %v", sql, err)
		}
	}
	var n int
	if err := value(t, s, &n, `SELECT COUNT(*) FROM audit WHERE detail = 'before'`); err != nil || n != 3 {
		t.Errorf("%d of 3 entries are as they were (%v)", n, err)
	}
}

// TestTheAuditIsAChain: whoever writes to the database past the program leaves a break that a look finds.
func TestTheAuditIsAChain(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "slipway.db"))
	add := func(detail string) (a inventory.Audit) {
		t.Helper()
		a = inventory.Audit{At: time.Unix(1, 0), Actor: "user anna", Operation: "put-pool", Detail: detail, Before: []byte(`{"a": 1}`), After: []byte(`{"a":"<&>"}`)}
		if err := s.Write(t.Context(), func(tx inventory.Tx) error { return tx.AddAudit(&a) }); err != nil {
			t.Fatal(err)
		}
		return a
	}
	look := func(noted string) (c auditchain.AuditChain) {
		t.Helper()
		c, err := auditchain.Check(noted, func(after int64) (some []inventory.Audit, err error) {
			err = s.Read(t.Context(), func(tx inventory.Tx) error {
				some, err = tx.WalkAudits(after, 2)
				return err
			})
			return some, err
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := look(""); !c.IsWhole || c.EntryN != 0 {
		t.Errorf("an empty audit: %+v", c)
	}
	// Entries of a version without hashes, as its migration leaves them.
	for id := 1; id <= 3; id++ {
		if _, err := run(t, s, fmt.Sprintf(`INSERT INTO audit VALUES (%d, 1000, 'old', '', '', '', '', 'x', '', '', '', '', 200, 'before', 0, 0, '', '', '', '', '')`, id)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		add(fmt.Sprint("new ", i))
	}
	noted := add("the last one that was noted")
	add("one more")
	c := look(noted.Hash)
	if !c.IsWhole || !c.HasNoted || c.EntryN != 8 || c.UnhashedN != 3 || c.HeadID != 8 || len(c.Head) != 64 {
		t.Fatalf("a whole one: %+v", c)
	}
	for _, tc := range []struct {
		name, do, undo string
		brokenID       int64
	}{
		{"a word of an entry", `UPDATE audit SET actor = 'user ben' WHERE id = 5`, `UPDATE audit SET actor = 'user anna' WHERE id = 5`, 5},
		{"what it changed", `UPDATE audit SET after = '{}' WHERE id = 5`, `UPDATE audit SET after = '{"a":"<&>"}' WHERE id = 5`, 5},
		{"an entry from before the hashes", `UPDATE audit SET detail = 'after' WHERE id = 2`, `UPDATE audit SET detail = 'before' WHERE id = 2`, 4},
		{"one taken out", `UPDATE audit SET id = 99 WHERE id = 6`, `UPDATE audit SET id = 6 WHERE id = 99`, 6},
		{"a hash taken away", `UPDATE audit SET hash = '' WHERE id = 8`, fmt.Sprintf(`UPDATE audit SET hash = '%s' WHERE id = 8`, c.Head), 8},
		{"the end cut off", `DELETE FROM audit WHERE id >= 7`, "", 6},
	} {
		for _, sql := range []string{`DROP TRIGGER IF EXISTS audit_is_not_changed`, `DROP TRIGGER IF EXISTS audit_is_not_deleted`, tc.do} {
			if _, err := run(t, s, sql); err != nil {
				t.Fatalf("%s: %v", tc.name, err)
			}
		}
		if c := look(noted.Hash); c.IsWhole || c.BrokenID != tc.brokenID || c.Reason == "" {
			t.Errorf("%s: %+v, want a break at %d", tc.name, c, tc.brokenID)
		}
		if tc.undo != "" {
			if _, err := run(t, s, tc.undo); err != nil {
				t.Fatal(err)
			}
			if c := look(noted.Hash); !c.IsWhole {
				t.Errorf("%s, undone: %+v", tc.name, c)
			}
		}
	}
}
