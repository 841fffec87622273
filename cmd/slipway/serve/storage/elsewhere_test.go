package storage

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

func TestAnotherMachineReachesTheSameDatabase(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "password")
	if err := os.WriteFile(file, []byte("of the file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pgpass := filepath.Join(dir, "pgpass")
	if err := os.WriteFile(pgpass, []byte("*:*:*:*:of-pgpass\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ url, file, want, password string }{
		{"postgres://u@db:1,db2:2/d?sslmode=disable", file, "postgres://u@db:1,db2:2/d?sslmode=disable", "of the file"},
		{"postgres://u:in%20it@db/d?sslmode=disable", "", "postgres://u@db/d?sslmode=disable", "in it"},
		{"postgres://u@db/d?password=in-it&sslmode=disable", "", "postgres://u@db/d?sslmode=disable", "in-it"},
		{"postgres://u@db/d?sslmode=disable&passfile=" + pgpass, "", "postgres://u@db/d?sslmode=disable", "of-pgpass"},
		{"postgres://u@db/d?sslmode=disable&application_name=a%20b", "", "postgres://u@db/d?sslmode=disable&application_name=a+b", ""},
		{"postgres://u@db/d", "", "postgres://u@db/d", ""},
	} {
		url, password, err := Settings{URL: c.url, PasswordFile: c.file}.Elsewhere()
		if err != nil || url != c.want || password != c.password {
			t.Errorf("%s: %s with %q, %v", c.url, url, password, err)
		}
	}
	for url, want := range map[string]string{
		"postgres://u@/d?host=/run/postgresql":                     "names /run/postgresql, which no other machine reaches",
		"postgres://u@localhost/d":                                 "names localhost",
		"postgres://u@127.0.0.1:5432/d":                            "names 127.0.0.1",
		"postgres://u@[::1]/d":                                     "names ::1",
		"postgres://u@db,127.0.0.1/d":                              "names 127.0.0.1",
		"postgres:///d":                                            "which no other machine reaches",
		"postgres://u@db/d?sslmode=disable&sslpassword=hidden-one": "has the option sslpassword",
	} {
		_, _, err := Settings{URL: url}.Elsewhere()
		if !inventory.IsKind(err, inventory.Conflict) || !strings.Contains(err.Error(), want) || inventory.HintOf(err) == "" ||
			strings.Contains(err.Error(), "hidden-one") {
			t.Errorf("%s: %v", url, err)
		}
	}
	t.Setenv("PGSSLMODE", "disable")
	if _, _, err := (Settings{URL: "postgres://u@db/d"}).Elsewhere(); err == nil || !strings.Contains(err.Error(), "PGSSLMODE") {
		t.Errorf("with a variable: %v", err)
	}
}

func TestFilesOfAnAddress(t *testing.T) {
	address := "postgres://u@a:1,b:2/d?sslmode=verify-full&sslrootcert=/etc/ca%20of%20it.crt&sslcert=/etc/c&sslkey=/etc/k&target_session_attrs=read-write"
	want := map[string]string{"database-ca.crt": "/etc/ca of it.crt", "database.crt": "/etc/c", "database.key": "/etc/k"}
	if got := FilesOf(address); !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	for _, none := range []string{"postgres://u@a/d", "postgres://u@a/d?sslrootcert=system", "postgres://u@a/d?sslrootcert="} {
		if got := FilesOf(none); len(got) != 0 {
			t.Errorf("%s: %v", none, got)
		}
	}
	got := WithFiles(address, map[string]string{"database-ca.crt": "/x/y z&.crt", "database.key": "/x/k"})
	if !strings.HasSuffix(got, "?sslmode=verify-full&sslrootcert=/x/y+z%26.crt&sslcert=/etc/c&sslkey=/x/k&target_session_attrs=read-write") {
		t.Error(got)
	}
	if FilesOf(got)["database-ca.crt"] != "/x/y z&.crt" {
		t.Errorf("%v", FilesOf(got))
	}
}

func TestADirectoryWithAnotherInventoryIsNotUsed(t *testing.T) {
	dir := t.TempDir()
	s := Settings{URL: "postgres://u@db:5432/d?sslmode=disable", DataDir: dir}
	if err := s.MayUse(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Note(); err != nil {
		t.Fatal(err)
	}
	if err := s.MayUse(t.Context()); err != nil {
		t.Errorf("with the same: %v", err)
	}
	s.URL = "postgres://u@other:5432/d?sslmode=disable"
	if err := s.MayUse(t.Context()); !inventory.IsKind(err, inventory.Conflict) || !strings.Contains(err.Error(), "postgres://u@db:5432/d") {
		t.Errorf("with another: %v", err)
	}
}
