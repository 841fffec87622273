package postgres

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
)

func TestAnAddressSaysWhoCanListen(t *testing.T) {
	far, a, here := []string{"db.example"}, []string{"a.example"}, []string{"localhost"}
	v4, v6, socket := []string{"127.0.0.1"}, []string{"::1"}, []string{"/run/postgresql"}
	for url, want := range map[string]Address{
		"postgres://u@db.example:5433/d?sslmode=verify-full":                {URL: "postgres://u@db.example:5433/d", ServerN: 1},
		"postgres://u@db.example/d?sslmode=verify-ca":                       {URL: "postgres://u@db.example:5432/d", ServerN: 1},
		"postgres://u@db.example/d?sslmode=require":                         {URL: "postgres://u@db.example:5432/d", ServerN: 1, Unverified: far},
		"postgres://u@db.example/d?sslmode=disable":                         {URL: "postgres://u@db.example:5432/d", ServerN: 1, Plain: far},
		"postgresql://u@db.example/d":                                       {URL: "postgres://u@db.example:5432/d", ServerN: 1, Plain: far, Unverified: far},
		"postgres://u@127.0.0.1:6000/d?sslmode=disable":                     {URL: "postgres://u@127.0.0.1:6000/d", ServerN: 1, Local: v4},
		"postgres://u@a.example:1,b.example:2/d?sslmode=verify-full":        {URL: "postgres://u@a.example:1,b.example:2/d", ServerN: 2},
		"postgres://u@a.example,localhost/d?sslmode=disable":                {URL: "postgres://u@a.example:5432,localhost:5432/d", ServerN: 2, Plain: a, Local: here},
		"postgres://u:p@[::1]/d?sslmode=disable":                            {URL: "postgres://u@[::1]:5432/d", ServerN: 1, HasPassword: true, Local: v6},
		"postgres://u@localhost/d?sslmode=disable&password=p":               {URL: "postgres://u@localhost:5432/d", ServerN: 1, HasPassword: true, Local: here},
		"postgres://u@/d?host=/run/postgresql&port=5432&sslmode=disable":    {URL: "postgres://u@/run/postgresql:5432/d", ServerN: 1, Local: socket},
		"host=db.example user=u password=hidden":                            {},
		"postgres://u:hidden@db.example:port/d":                             {},
		"postgres://u:hid/den@db.example/d?sslmode=verify-full":             {},
		"postgres://u@db.example/d?sslmode=wrong&password=hidden":           {},
		"postgres://u@db.example/d?sslmode=verify-full&sslrootcert=/no/way": {},
	} {
		if want.URL != "" {
			want.Database = "d"
		}
		got, err := ReadAddress(url)
		if want.URL == "" {
			if !inventory.IsKind(err, inventory.Invalid) || strings.Contains(err.Error(), "hid") {
				t.Errorf("%s: %+v, %v", url, got, err)
			}
			continue
		}
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", url, err, d)
		}
	}
}

// Servers before PostgreSQL 14 refuse a connection with a setting that they do not know. They have to be asked for their version first.
func TestTheFirstConnectionHasNoSettingsOfNewServers(t *testing.T) {
	s, err := newServer(Config{URL: "postgres://slipway@127.0.0.1/slipway?work_mem=8MB"})
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(s.first.RuntimeParams)); !slices.Equal(got, []string{"application_name", "work_mem"}) {
		t.Errorf("the first connection has %q", got)
	}
	if !strings.Contains(s.setting(), "client_connection_check_interval") {
		t.Error("the others do not have the settings of Slipway")
	}
}

func TestAServerIsNewWhenNoTestHasRunOnIt(t *testing.T) {
	for number, want := range map[int]string{
		140000: "", 150018: "", 180004: "", 190001: "PostgreSQL 19 is newer than those that Slipway is tested with, 14 to 18",
	} {
		if got := isNew(number); got != want {
			t.Errorf("%d: %q, want %q", number, got, want)
		}
	}
}
