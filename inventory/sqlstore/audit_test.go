package sqlstore

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
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
		if _, err := s.writer.run(sql); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: got %v", sql, err)
		}
	}
	var n int
	if err := s.writer.value(&n, `SELECT COUNT(*) FROM audit WHERE detail = 'before'`); err != nil || n != 3 {
		t.Errorf("%d of 3 entries are as they were (%v)", n, err)
	}
}
