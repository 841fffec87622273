package sqlstore

import (
	"database/sql"
	"encoding/json"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/migrations"
)

// databaseAt makes a database as a Slipway of that schema left it, with rows.
func databaseAt(t *testing.T, schema int64, rows ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "slipway.db")
	db, err := sql.Open("sqlite3", dsn(path))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	files, err := fs.Sub(migrations.SQLite, "sqlite")
	if err != nil {
		t.Fatal(err)
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(t.Context(), schema); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if _, err := db.ExecContext(t.Context(), row); err != nil {
			t.Fatalf("%v\n%s", err, row)
		}
	}
	return path
}

// TestADatabaseOfTheFirstSchemaKeepsItsRows holds what the first schema's code wrote, as it wrote it.
func TestADatabaseOfTheFirstSchemaKeepsItsRows(t *testing.T) {
	path := databaseAt(t, 202611210001,
		`INSERT INTO artefacts VALUES ('sha256:01', 10, 'test', 1795000000123)`,
		`INSERT INTO images VALUES ('debian-12', 'debian', '12', 'x86_64', '["quiet"]', 512, 1, 1795000000123, 1795000000123, 3)`,
		`INSERT INTO image_files VALUES ('debian-12', 0, 'kernel', 'linux', 'sha256:01')`,
		`INSERT INTO profiles VALUES ('web', 'debian-12', 'rack=r1', 5, '["a=\"b c\""]', '{"url":"http://x/"}', 1795000000123, 1795000001456, 4)`,
		`INSERT INTO profiles VALUES ('bare', 'debian-12', '', 0, '', '', 1795000000123, 1795000000123, 1)`,
		`INSERT INTO hosts VALUES ('h1', 'n1', 'available', '', 1795000000123, 0, 0, 0, 'u', 's', '', 'Dell', 'R650', 'x86_64', 'uefi',
1024, 'fra', 'a', 'r1', 3, '{"role":"db"}', '', 'web', '', 0, 'n1', 1795000000123, 1795000000123, 0, 0, 2)`,
		`INSERT INTO nics VALUES ('52:54:00:00:00:01', 'h1', 0, 'eno1', 'Intel', 1)`,
		`INSERT INTO host_labels VALUES ('h1', 'role', 'db')`,
		`INSERT INTO sessions VALUES ('00', 'h1', '52:54:00:00:00:01', '10.0.0.1', 'x86_64', 'uefi', 'rack1', 'image', 'why', 'web',
'debian-12', 'boot.decided', 'arrived', 1795000000123, 1795000000123, 1795000000123)`)
	s := openTest(t, path)
	at := time.UnixMilli(1795000000123).UTC()
	wantProfile := inventory.Profile{
		Name: "web", Image: "debian-12", Selector: "rack=r1", Priority: 5, KernelArgs: []string{`a="b c"`},
		Parameters: map[string]string{"url": "http://x/"}, Revision: 1, CreatedAt: at, UpdatedAt: at.Add(1333 * time.Millisecond), Version: 4,
	}
	err := s.Read(t.Context(), func(tx inventory.Tx) error {
		p, err := tx.FindProfile("web")
		if err != nil {
			return err
		}
		if d := cmp.Diff(wantProfile, p); d != "" {
			t.Errorf("profile (-want +got):\n%s", d)
		}
		for _, name := range []string{"web", "bare"} {
			r, err := tx.FindRevision(inventory.RevisionOfProfile, name, 1)
			if err != nil {
				return err
			}
			p, err := tx.FindProfile(name)
			if err != nil {
				return err
			}
			var was inventory.Profile
			if err := json.Unmarshal(r.Body, &was); err != nil {
				t.Fatalf("%v\n%s", err, r.Body)
			}
			if d := cmp.Diff(p, was); d != "" {
				t.Errorf("revision 1 of %s (-profile +revision):\n%s", name, d)
			}
		}
		h, err := tx.FindHost("h1")
		if err != nil {
			return err
		}
		if h.Profile != "web" || h.ProfileRevision != 0 || h.Labels["role"] != "db" || len(h.NICs) != 1 || h.DiskBoot != "" || h.Version != 2 {
			t.Errorf("host is %+v", h)
		}
		b, err := tx.FindSession("00")
		if err != nil {
			return err
		}
		if b.Config != "" || b.Outcome != inventory.OutcomeArrived || b.Image != "debian-12" {
			t.Errorf("session is %+v", b)
		}
		i, err := tx.FindImage("debian-12")
		if err != nil {
			return err
		}
		if i.Configs != nil || i.ConfigArgs != nil || i.MemoryMiB != 512 || !i.IsInstaller || i.KernelArgs[0] != "quiet" {
			t.Errorf("image is %+v", i)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Write(t.Context(), func(tx inventory.Tx) error {
		p := wantProfile
		if err := tx.UpdateProfile(&p, at); err != nil {
			return err
		}
		if p.Revision != 1 {
			t.Errorf("a save without a change made revision %d", p.Revision)
		}
		p.Priority = 6
		if err := tx.UpdateProfile(&p, at); err != nil || p.Revision != 2 {
			t.Errorf("a change made revision %d, %v", p.Revision, err)
		}
		h, err := tx.FindHost("h1")
		if err != nil {
			return err
		}
		h.ProfileRevision = 1
		return tx.UpdateHost(&h, at)
	})
	if err != nil {
		t.Fatal(err)
	}
}
