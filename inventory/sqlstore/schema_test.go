package sqlstore

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/column"
	"slipway.dev/slipway/inventory/sqlstore/database"
	"slipway.dev/slipway/migrations"
)

var update = flag.Bool("update", false, "write golden files instead of comparing with them")

const goldenSchema = "../../migrations/sqlite/schema.sql"

// TestMigrationsBuildTheGoldenSchema shows what a migration does to the whole schema, in the diff of one file.
func TestMigrationsBuildTheGoldenSchema(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "slipway.db"))
	var got strings.Builder
	got.WriteString("-- The schema after all migrations. Written by: go test ./inventory/sqlstore -run GoldenSchema -update\n")
	err := query(t, s, func(row database.Scan) error {
		var sql string
		err := row(&sql)
		got.WriteString("\n" + sql + ";\n")
		return err
	}, `SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' AND tbl_name NOT LIKE 'goose_%'
ORDER BY tbl_name, type DESC, name`)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(goldenSchema, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(goldenSchema)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got.String()); d != "" {
		t.Errorf("the migrations build another schema than %s (-want +got); if that is meant, run with -update:\n%s", goldenSchema, d)
	}
}

func TestMigrationsAreNamedAfterTheirMinute(t *testing.T) {
	files, err := fs.Glob(migrations.SQLite, "sqlite/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no migrations: %v", err)
	}
	for _, f := range files {
		if !regexp.MustCompile(`^sqlite/20\d{10}_[a-z0-9_]+\.sql$`).MatchString(f) {
			t.Errorf("%s is not named YYYYMMDDHHMM_what.sql", f)
		}
	}
}

// TestEveryTableIsStrict keeps SQLite from storing text in a number.
func TestEveryTableIsStrict(t *testing.T) {
	schema, err := os.ReadFile(goldenSchema)
	if err != nil {
		t.Fatal(err)
	}
	tables := regexp.MustCompile(`(?s)CREATE TABLE (\w+) \(.*?\n\)([^;]*);`).FindAllStringSubmatch(string(schema), -1)
	if len(tables) < 15 {
		t.Fatalf("found only %d tables in %s", len(tables), goldenSchema)
	}
	for _, m := range tables {
		if !strings.Contains(m[2], "STRICT") {
			t.Errorf("table %s is not STRICT", m[1])
		}
	}
}

// statements returns every query of the package: its constants, found in its source, and those that filters build.
func statements(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{
		"10 hosts": hostsByIDSQL(10), "100 hosts": hostsByIDSQL(column.HostsPerQuery),
		"nics of 10 hosts": nicsSQL(10), "nics of 100 hosts": nicsSQL(column.HostsPerQuery),
		"extras of 10 hosts": extrasSQL(10), "extras of 100 hosts": extrasSQL(column.HostsPerQuery),
	}
	for i := range 128 {
		f := inventory.HostFilter{}
		for bit, set := range []func(){
			func() { f.State = "x" }, func() { f.Rack = "x" }, func() { f.Label = "x=y" }, func() { f.Search = "x" },
			func() { f.Label = "x" }, func() { f.Pool = "x" }, func() { f.Pool = inventory.DefaultPool },
		} {
			if i&(1<<bit) != 0 {
				set()
			}
		}
		all[fmt.Sprintf("hosts by %+v", f)], _ = hostsSQL(f)
		all[fmt.Sprintf("count of hosts by %+v", f)], _ = countHostsSQL(f)
	}
	for _, f := range []inventory.EventFilter{
		{}, {Kind: "dhcp.ack"}, {Kind: "dhcp.ack", Before: 5}, {HostID: "x"}, {SessionID: "x"}, {HostID: "x", SessionID: "x", Kind: "dhcp"}, {Before: 5}, {HostID: "x", Kind: "dhcp", Before: 5},
	} {
		all[fmt.Sprintf("events by %+v", f)], _ = eventsSQL(f)
	}
	lifeStatements(all)
	auditStatements(all)
	recordStatements(all)
	tableStatements(all)
	set := token.NewFileSet()
	var files []*ast.File
	names, _ := filepath.Glob("*.go")
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	// Only constants are of interest: imports may stay unresolved.
	config := types.Config{Importer: importer.Default(), Error: func(error) {}}
	pkg, _ := config.Check("sqlstore", set, files, nil)
	for _, name := range pkg.Scope().Names() {
		c, ok := pkg.Scope().Lookup(name).(*types.Const)
		if !ok || c.Val().Kind() != constant.String {
			continue
		}
		if sql := constant.StringVal(c.Val()); regexp.MustCompile(`^(SELECT|INSERT|UPDATE|DELETE) `).MatchString(sql) {
			all[name] = sql
		}
	}
	return all
}

// recordStatements adds the queries of plain nouns.
func recordStatements(all map[string]string) {
	all["findUserBySubjectSQL"] = findUserBySubjectSQL
	accessors := reflect.ValueOf(recordTx{&tx{}})
	for i := range reflect.TypeFor[inventory.RecordTx]().NumMethod() {
		many := reflect.TypeFor[inventory.RecordTx]().Method(i).Name
		table := accessors.MethodByName(many).Call(nil)[0].Elem().FieldByName("table")
		if !table.IsValid() { // subnets embed no records
			continue
		}
		table = table.Elem()
		one, sql := table.FieldByName("Sample").Type().Name(), table.FieldByName("queries")
		for query, name := range map[string]string{"find": one, "list": many, "insert": one, "update": one, "delete": one} {
			all[query+name+"SQL"] = sql.FieldByName(query).String()
		}
		all[one+"VersionSQL"] = sql.FieldByName("version").String()
	}
}

// tableStatements adds the queries of other nouns that have a table.
func tableStatements(all map[string]string) {
	for one, q := range map[string]queries{
		"Machine": machines.queries, "Subnet": subnetTable.queries,
	} {
		all["find"+one+"SQL"], all["list"+one+"sSQL"], all[one+"VersionSQL"] = q.find, q.list, q.version
		all["insert"+one+"SQL"], all["update"+one+"SQL"], all["delete"+one+"SQL"] = q.insert, q.update, q.delete
	}
	all["findMachineByUIDSQL"], all["findMachineByOwnerSQL"], all["listDueMachinesSQL"] = findMachineByUIDSQL, findMachineByOwnerSQL, listDueMachinesSQL
	for suffix, f := range map[string]*family{"": ipv4, "6": ipv6} {
		for one, q := range map[string]addressQueries{"Reservation": f.reservations, "Lease": f.leases} {
			all["find"+one+suffix+"SQL"], all["list"+one+"s"+suffix+"SQL"] = q.find, q.list
			all["subnet"+one+"s"+suffix+"SQL"], all["delete"+one+suffix+"SQL"] = q.ofSubnet, q.delete
		}
		all["reservation"+suffix+"VersionSQL"], all["saveLease"+suffix+"SQL"] = f.reservationVersion, f.saveLease
		all["insertReservation"+suffix+"SQL"], all["updateReservation"+suffix+"SQL"] = f.insertReservation, f.updateReservation
		all["ranges"+suffix+"SQL"], all["allRanges"+suffix+"SQL"] = f.ranges, f.allRanges
		all["insertRange"+suffix+"SQL"], all["deleteRanges"+suffix+"SQL"] = f.insertRange, f.deleteRanges
		for i, q := range f.reservationBy {
			all[fmt.Sprintf("reservation%sBy%dSQL", suffix, i)] = q
		}
	}
}

// lifeStatements adds the queries that filters of machines and operations build.
func lifeStatements(all map[string]string) {
	for i := range 16 {
		var m inventory.MachineFilter
		var o inventory.OperationFilter
		for bit, set := range []func(){
			func() { m.Pool, o.HostID = "x", "x" }, func() { m.Phase, o.Machine = "x", "x" },
			func() { m.Profile, o.Kind = "x", "x" }, func() { m.Pool, o.IsOpen = inventory.DefaultPool, true },
		} {
			if i&(1<<bit) != 0 {
				set()
			}
		}
		all[fmt.Sprintf("machines by %+v", m)], _ = machinesSQL(m)
		m.OwnerPrefix = "x"
		all[fmt.Sprintf("machines by %+v", m)], _ = machinesSQL(m)
		all[fmt.Sprintf("operations by %+v", o)], _ = operationsSQL(o)
	}
	for _, pool := range []string{"", "x"} {
		for _, kind := range []inventory.OperationKind{"", "x"} {
			name := fmt.Sprintf("of pool %q, kind %q", pool, kind)
			all["grants "+name], _ = grantedSQL(pool, kind)
		}
	}
}

func TestEveryStatementFitsTheSchema(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "slipway.db"))
	all := statements(t)
	if len(all) < 100 {
		t.Fatalf("found only %d statements", len(all))
	}
	for name, sql := range all {
		if planOf(t, s, sql); t.Failed() {
			t.Fatalf("%s does not fit", name)
		}
	}
}

// TestEveryStatementIsPortable checks what can be seen in the text: the rules that PostgreSQL and SQLite share.
func TestEveryStatementIsPortable(t *testing.T) {
	placeholder := regexp.MustCompile(`\$(\d+)`)
	for name, sql := range statements(t) {
		for i, m := range placeholder.FindAllStringSubmatch(sql, -1) {
			if m[1] != strconv.Itoa(i+1) {
				t.Errorf("%s: $%s is placeholder number %d; the driver counts them as they come", name, m[1], i+1)
				break
			}
		}
		for _, no := range []string{"?", `"`, "rowid", "PRAGMA", "OR REPLACE", "OR IGNORE", "AUTOINCREMENT", "LIMIT -1", "strftime", "IFNULL", " IS $"} {
			if strings.Contains(sql, no) {
				t.Errorf("%s uses %s, which only SQLite knows", name, no)
			}
		}
	}
}

// TestLookupsUseIndexes fails when a lookup that happens per packet or per page reads a whole table.
func TestLookupsUseIndexes(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "slipway.db"))
	allowed := map[string]bool{ // small tables, or all of one is wanted
		"listSubnetsSQL": true, "allRangesSQL": true, "allRanges6SQL": true, "listAcceptRulesSQL": true, "listTokensSQL": true, "listIssuesSQL": true,
		"leaseMACsSQL":    true, // once, for the hints
		"leasesOfMACSQL":  true, // on PostgreSQL only, which has the index leases_by_mac
		"countInFileSQL":  true, // once, at a start
		"deleteSubnetSQL": true, // seldom, and its leases go with it
		"openIssuesSQL":   true, "overlapSQL": true, "listOpenSessionsSQL": true,
		"forgetEventsSQL": true, "forgetSessionsSQL": true, "forgetIssuesSQL": true, // a bounded piece from the old end
		"listJoinTargetsSQL": true, "secretUserSQL": true, "deleteSecretSQL": true, "listJoinTokensSQL": true, "listLocksSQL": true,
		"listPoolsSQL": true, "listClustersSQL": true, "listGoldensSQL": true,
		"listHeardSQL": true, "listAccessSQL": true, "listAllocationsSQL": true, "listHoldingsSQL": true, "heldTwiceSQL": true,
		"allocationSelect": true, "holdingSelect": true, // how others begin
		"lastAuditSQL":     true,                                             // one row, from the end
		"listInstancesSQL": true, "listDutiesSQL": true, "heldDutySQL": true, // a handful
		"listRacksSQL": true, "listClassesSQL": true, "listLoginsSQL": true, "forgetLoginsSQL": true,
		"layerKeysSQL": true, // read once and kept: see settings
		// Only what is open is in the index that they read; whoever has a bound asks by kind.
		`grants of pool "", kind ""`: true, `grants of pool "x", kind ""`: true,
	}
	for name, sql := range statements(t) {
		if allowed[name] || strings.HasPrefix(name, "count of ") { // counting is reading
			continue
		}
		for detail := range strings.Lines(planOf(t, s, sql)) {
			if strings.HasPrefix(detail, "SCAN") && !strings.Contains(detail, "CONSTANT ROW") {
				t.Errorf("%s: %s\n%s", name, detail, sql)
			}
		}
	}
}

func TestADatabaseOfANewerSlipwayIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slipway.db")
	s, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, s, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (299901010000, 1)`); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), Config{Path: path})
	wantError(t, err, inventory.Conflict, "newer Slipway")
}

func TestAFileThatIsNoDatabaseIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slipway.db")
	text := strings.Repeat("not a database\n", 100)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), Config{Path: path})
	wantError(t, err, inventory.Internal, "damaged")
	if got, _ := os.ReadFile(path); string(got) != text {
		t.Error("the file was changed")
	}
	_, err = Open(context.Background(), Config{Path: filepath.Join(t.TempDir(), "no", "slipway.db")})
	wantError(t, err, inventory.Unavailable, "cannot open")
}

func wantError(t *testing.T, err error, kind inventory.Kind, words string) {
	t.Helper()
	var e *inventory.Error
	if !errors.As(err, &e) || e.Kind != kind || !strings.Contains(e.Error(), words) {
		t.Fatalf("got %v, want %s with %q", err, kind, words)
	}
	if e.Hint == "" {
		t.Errorf("%v has no hint", err)
	}
}
