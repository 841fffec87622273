package sqlstore

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ref"
	"slipway.dev/slipway/migrations"
)

// databaseAt makes a database as a Slipway of that schema left it, with rows.
func databaseAt(t *testing.T, schema int64, rows ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "slipway.db")
	db, err := sql.Open("sqlite3", "file:"+path+"?_foreign_keys=1")
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

// TestADatabaseOfTheSecondSchemaKeepsItsRows holds what the second schema's code wrote, as it wrote it, in every table
// that the third changes or asks about.
func TestADatabaseOfTheSecondSchemaKeepsItsRows(t *testing.T) {
	path := databaseAt(t, 202611211200,
		`INSERT INTO artefacts VALUES ('sha256:01', 10, 'test', 1795000000123)`,
		`INSERT INTO images (name, os, release, arch, kernel_args, configs, config_args, memory_mib, is_installer, created_at,
updated_at, version) VALUES ('flatcar', 'flatcar', '4081', 'x86_64', '["quiet"]', '[{"format":"ignition","version":"3.4.0"}]',
'["ignition.config.url=${config}"]', 2048, 0, 1795000000123, 1795000000123, 3)`,
		`INSERT INTO image_files VALUES ('flatcar', 0, 'kernel', 'vmlinuz', 'sha256:01')`,
		`INSERT INTO profiles (name, image, selector, priority, kernel_args, parameters, config, revision, created_at, updated_at, version)
VALUES ('web', 'flatcar', 'role=web', 5, '', '', 'host: {locale: C}', 2, 1795000000123, 1795000000123, 2)`,
		`INSERT INTO revisions VALUES ('profile', 'web', 1, '{"name":"web"}', 1795000000123), ('profile', 'web', 2, '{"name":"web"}', 1795000000123)`,
		`INSERT INTO hosts (id, name, state, state_reason, state_since_at, in_maintenance, is_protected, is_adopted, uuid, serial,
asset_tag, manufacturer, product, arch, firmware, memory_mib, site, row, rack, unit, labels, facts, profile, profile_revision,
disk_boot, is_armed, search_text, created_at, updated_at, last_seen_at, identified_at, version)
VALUES ('h1', 'n1', 'available', 'imported', 1795000000123, 0, 0, 0, 'u', 's', '', 'Dell', 'R650', 'x86_64', 'uefi', 1024, 'fra',
'a', 'r1', 3, '{"role":"web"}', '', 'web', 1, '', 1, 'n1', 1795000000123, 1795000000123, 0, 0, 2),
('h2', 'n2', 'failed', 'boot loop', 1795000000123, 0, 0, 0, '', '', '', '', '', 'x86_64', 'uefi', 0, '', '', '', 0, '', '', NULL, 0,
'', 0, 'n2', 1795000000123, 1795000000123, 0, 0, 7)`,
		`INSERT INTO nics VALUES ('52:54:00:00:00:01', 'h1', 0, 'eno1', 'Intel', 1), ('52:54:00:00:00:02', 'h2', 0, '', '', 1)`,
		`INSERT INTO host_labels VALUES ('h1', 'role', 'web')`,
		`INSERT INTO layers VALUES ('host/h1', 'host', 'h1', 'host: {keymap: de}', 1, 1795000000123, 1795000000123, 1)`,
		`INSERT INTO renderings VALUES ('sha256:02', 'h1', 1, 'web', 1, 'flatcar', 'ignition', '', '', 1795000000123)`,
		`INSERT INTO sessions (id, host_id, mac, address, arch, firmware, subnet, boot, reason, profile, image, config, step, outcome,
started_at, last_at, ended_at) VALUES ('00', 'h1', '52:54:00:00:00:01', '10.0.0.1', 'x86_64', 'uefi', 'rack1', 'image', 'why', 'web',
'flatcar', 'sha256:02', 'boot.decided', '', 1795000000123, 1795000000123, 0)`,
		`INSERT INTO secrets VALUES ('admin', 'of prod', x'00ff', 1795000000123, 1795000000123, 1)`)
	s := openTest(t, path)
	at := time.UnixMilli(1795000000123).UTC()
	host := inventory.Host{
		ID: "h1", Name: "n1", State: inventory.Available, StateReason: "imported", Refs: []inventory.Ref{{Kind: ref.Unknown}}, StateSinceAt: at, UUID: "u", Serial: "s",
		Manufacturer: "Dell", Product: "R650", Arch: inventory.X8664, Firmware: inventory.UEFI, MemoryMiB: 1024,
		Place: inventory.Place{Site: "fra", Row: "a", Rack: "r1", Unit: 3}, Labels: map[string]string{"role": "web"}, Profile: "web",
		ProfileRevision: 1, IsArmed: true, NICs: []inventory.NIC{{MAC: "52:54:00:00:00:01", Name: "eno1", Vendor: "Intel", IsBoot: true}},
		CreatedAt: at, UpdatedAt: at, Version: 2,
	}
	image := inventory.Image{
		Name: "flatcar", OS: "flatcar", Release: "4081", Arch: inventory.X8664, KernelArgs: []string{"quiet"}, MemoryMiB: 2048,
		Files:      []inventory.ImageArtefact{{Role: inventory.RoleKernel, Name: "vmlinuz", Digest: "sha256:01"}},
		Configs:    []inventory.ImageConfig{{Format: "ignition", Version: "3.4.0"}},
		ConfigArgs: []string{"ignition.config.url=${config}"}, CreatedAt: at, UpdatedAt: at, Version: 3,
	}
	err := s.Write(t.Context(), func(tx inventory.Tx) error {
		h, err := tx.FindHost("h1")
		if err != nil {
			return err
		}
		i, err := tx.Images().Find("flatcar")
		if err != nil {
			return err
		}
		b, err := tx.FindOpenSession("52:54:00:00:00:01")
		if err != nil {
			return err
		}
		x, err := tx.Secrets().Find("admin")
		if err != nil {
			return err
		}
		if d := cmp.Diff(host, h); d != "" {
			t.Errorf("host (-want +got):\n%s", d)
		}
		if d := cmp.Diff(image, i); d != "" {
			t.Errorf("image (-want +got):\n%s", d)
		}
		if b.ID != "00" || b.Operation != "" || b.Config != "sha256:02" || string(x.Sealed) != "\x00\xff" {
			t.Errorf("session is %+v, secret %+v", b, x)
		}
		// It can be lived with at once: the host that was there is claimed, the one that failed is not for claiming.
		free, err := tx.ListClaimable(nil)
		if err != nil {
			return err
		}
		if len(free) != 1 || free[0].Name != "n1" {
			t.Errorf("claimable are %+v", free)
		}
		if err := tx.CreateMachine(&inventory.Machine{Name: "m", UID: "01M", Profile: "web"}, at); err != nil {
			return err
		}
		return tx.CreateClaim(&inventory.Claim{ID: "01C", MachineUID: "01M", HostID: "h1"}, at)
	})
	if err != nil {
		t.Fatal(err)
	}
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
		p, err := tx.Profiles().Find("web")
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
			p, err := tx.Profiles().Find(name)
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
		i, err := tx.Images().Find("debian-12")
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
		if err := tx.Profiles().Update(&p, at); err != nil {
			return err
		}
		if p.Revision != 1 {
			t.Errorf("a save without a change made revision %d", p.Revision)
		}
		p.Priority = 6
		if err := tx.Profiles().Update(&p, at); err != nil || p.Revision != 2 {
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

// TestCablesOfEarlierInspectionsAreKept fills what hosts heard from the last two inspections of each.
func TestCablesOfEarlierInspectionsAreKept(t *testing.T) {
	inspection := func(host string, n int, hardware string) string {
		return fmt.Sprintf(`INSERT INTO inspections (host_id, n, at, hardware, changes, faults, golden, operation, is_old)
VALUES ('%s', %d, %d, '%s', '', '', '', '', 0)`, host, n, 1795000000123+n, hardware)
	}
	heard := func(port string) string {
		return `{"source":"agent","ports":[{"name":"eno1","mac":"52:54:00:00:00:01","speedMbps":25000,"hasLink":true,"neighbour":{"chassis":"c","port":"` + port + `","vlan":7}},{"name":"eno2","mac":"52:54:00:00:00:02","hasLink":false}]}`
	}
	const silent = `{"source":"agent","ports":[{"name":"eno1","mac":"52:54:00:00:00:01","hasLink":true}]}`
	rows := []string{
		inspection("twice", 1, silent), inspection("twice", 2, heard("1")), inspection("twice", 3, heard("2")),
		inspection("once", 1, heard("3")), inspection("before", 1, heard("4")), inspection("before", 2, silent),
		inspection("never", 1, silent), inspection("never", 2, `{"source":"bmc"}`), inspection("empty", 1, ""),
	}
	for i, id := range []string{"twice", "once", "before", "never", "empty"} {
		rows = append([]string{fmt.Sprintf(`INSERT INTO hosts (id, name, state, state_reason, state_since_at, in_maintenance, is_protected, is_adopted, uuid, serial,
asset_tag, manufacturer, product, arch, firmware, memory_mib, site, row, rack, unit, labels, facts, profile, profile_revision,
disk_boot, is_armed, search_text, created_at, updated_at, last_seen_at, identified_at, version)
VALUES ('%s', 'n%d', 'available', '', 0, 0, 0, 0, '', '', '', '', '', 'x86_64', 'uefi', 0, '', '', '', 0, '', '', NULL, 0, '', 0, '', 0, 0, 0, 0, 1)`, id, i)}, rows...)
	}
	s := openTest(t, databaseAt(t, 202611222126, rows...))
	ports := func(port string) []inventory.Port {
		return []inventory.Port{{Name: "eno1", MAC: "52:54:00:00:00:01", SpeedMbps: 25000, Neighbour: &inventory.Neighbour{Chassis: "c", Port: port, VLAN: 7}}}
	}
	err := s.Read(t.Context(), func(tx inventory.Tx) error {
		got, err := tx.ListHeard()
		want := map[inventory.HostID]inventory.Heard{
			"twice":  {At: time.UnixMilli(1795000000126).UTC(), Now: ports("2"), Before: ports("1")},
			"once":   {At: time.UnixMilli(1795000000124).UTC(), Now: ports("3")},
			"before": {Before: ports("4")},
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("what was heard (-want +got):\n%s", d)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
