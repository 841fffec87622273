package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/files"
	"slipway.dev/slipway/web/wire"
)

// fakeBackups sends a text, or breaks in the middle of it.
type fakeBackups struct {
	isBroken bool
	openN    int
	during   func()
}

func (f *fakeBackups) Backup(context.Context) (files.Backup, error) {
	f.openN++
	return f, nil
}

func (f *fakeBackups) BackupSpace(context.Context) (databaseBytes, freeBytes int64, err error) {
	return 10, 20, nil
}

func (f *fakeBackups) Name() string { return "slipway-1.tar.gz" }
func (f *fakeBackups) Close()       { f.openN-- }
func (f *fakeBackups) Write(w io.Writer) error {
	if f.during != nil {
		f.during()
	}
	if _, err := io.WriteString(w, "half "); err != nil || f.isBroken {
		return errors.Join(err, io.ErrUnexpectedEOF)
	}
	_, err := io.WriteString(w, "whole")
	return err
}

func TestABackupIsSentOneAtATimeAndNoted(t *testing.T) {
	f := &fakeBackups{}
	r := newRig(t, func(c *Config) { c.Backups = f })
	var s wire.BackupStatus
	r.must(200, &s, "GET", "/api/v1/backup/status", "")
	if !s.LastAt.IsZero() || s.DatabaseBytes != 10 || s.FreeBytes != 20 {
		t.Errorf("status %+v", s)
	}
	f.during = func() { r.must(409, nil, "GET", "/api/v1/backup", "") }
	a := r.must(200, nil, "GET", "/api/v1/backup", "")
	if a.body != "half whole" || !strings.Contains(a.header.Get("Content-Disposition"), `"slipway-1.tar.gz"`) || a.header.Get("Content-Type") != "application/gzip" {
		t.Errorf("sent %q as %v", a.body, a.header)
	}
	if rows := r.audits(); len(rows) != 2 || rows[0].Status != 200 || rows[1].Status != 409 || rows[0].Operation != "get-backup" {
		t.Errorf("audit %+v", rows)
	}
	r.must(200, &s, "GET", "/api/v1/backup/status", "")
	if !s.LastAt.Equal(testStart) || s.LastBy != "somebody (local)" {
		t.Errorf("status %+v", s)
	}
	if f.openN != 0 {
		t.Error("a copy stays")
	}
}

func TestABackupThatIsCutShortIsNoAnswer(t *testing.T) {
	f := &fakeBackups{isBroken: true}
	r := newRig(t, func(c *Config) { c.Backups = f })
	func() {
		defer func() {
			if recover() != http.ErrAbortHandler {
				t.Error("the connection ended as if the backup were whole")
			}
		}()
		r.ask("GET", "/api/v1/backup", "")
	}()
	var s wire.BackupStatus
	r.must(200, &s, "GET", "/api/v1/backup/status", "")
	if !s.LastAt.IsZero() || f.openN != 0 {
		t.Errorf("counts as taken: %+v", s)
	}
	if rows := r.audits(); len(rows) != 1 || rows[0].Status != 500 || !strings.Contains(rows[0].Detail, "cut short") {
		t.Errorf("audit %+v", rows)
	}
	f.isBroken = false
	r.must(200, nil, "GET", "/api/v1/backup", "") // the lock is free again
	if e := r.audits()[0]; e.IsRefused() || e.Change != inventory.AuditChange("") {
		t.Errorf("audit %+v", e)
	}
}
