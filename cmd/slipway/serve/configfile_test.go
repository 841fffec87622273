package serve

import (
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// filled gives a value other than its default to each setting of the file.
func filled(t *testing.T) Config {
	t.Helper()
	c := Default()
	v := reflect.ValueOf(&c).Elem()
	for i := range v.NumField() {
		f, field := v.Field(i), v.Type().Field(i)
		if field.Tag.Get("yaml") == "-" {
			continue
		}
		switch f.Kind() {
		case reflect.String:
			f.SetString("x-" + strings.ToLower(field.Name))
		case reflect.Bool:
			f.SetBool(!f.Bool())
		case reflect.Int, reflect.Int64:
			f.SetInt(int64(77 * time.Minute))
		case reflect.Slice:
			if f.Type().Elem().Kind() == reflect.String {
				f.Set(reflect.ValueOf([]string{"x", "y"}))
			}
		}
	}
	c.Database = "postgres://u@db/d?sslmode=disable"
	c.BootPort, c.BootTLSPort = 8080, 8443
	c.Egress.Allow = []string{"10.0.0.0/8"}
	c.Quirks = []Quirk{{Vendor: "ACME", Product: "Blade 7*", Firmware: "uefi", DiskBoot: "sanboot", Why: "a: b"}}
	c.Deadlines = map[string]inventory.Duration{"netboot": inventory.Duration(20 * time.Minute)}
	c.OIDC = &OIDC{
		Issuer: "https://id", ClientID: "slipway", ClientSecretFile: "/s", CAFile: "/c", Scopes: []string{"a"},
		Groups: map[string]inventory.Grants{"ops": {{Role: inventory.Operator, Pool: "p"}, {Role: inventory.Viewer}}},
	}
	return c
}

// TestAllInstancesGetTheSharedSettings sends each setting to another instance, except those that an instance has for itself.
func TestAllInstancesGetTheSharedSettings(t *testing.T) {
	c := filled(t)
	text, err := c.shared()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseSettings([]byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	a, b, usual := reflect.ValueOf(c), reflect.ValueOf(got), reflect.ValueOf(Default())
	var own []string
	for i := range a.NumField() {
		key := a.Type().Field(i).Tag.Get("yaml")
		if key == "-" {
			continue
		}
		switch was, is := a.Field(i).Interface(), b.Field(i).Interface(); {
		case reflect.DeepEqual(was, usual.Field(i).Interface()):
			t.Errorf("the test leaves %s at its default", key)
		case slices.Contains(ownKeys, key):
			own = append(own, key)
			if !reflect.DeepEqual(is, usual.Field(i).Interface()) {
				t.Errorf("%s is an instance's own, and was sent as %v", key, is)
			}
		case !reflect.DeepEqual(was, is):
			t.Errorf("%s was %v, and came as %v", key, was, is)
		}
	}
	if len(own) != len(ownKeys) {
		t.Errorf("of the keys %q only %q are settings", ownKeys, own)
	}
	if _, err := ParseSettings([]byte("nothingLikeThis: 1\n")); !inventory.IsKind(err, inventory.Invalid) || !strings.Contains(err.Error(), "nothingLikeThis") {
		t.Errorf("an unknown key: %v", err)
	}
	usualOnes := Default()
	if text, err := usualOnes.shared(); err != nil || strings.TrimSpace(text) != "{}" {
		t.Errorf("the defaults are sent: %s %v", text, err)
	}
}

func TestFilesOfSharedSettingsMove(t *testing.T) {
	c := filled(t)
	c.Database += "&sslrootcert=/ca"
	want := map[string]string{"catalogue.yaml": "x-catalogue", "oidc-secret": "/s", "oidc-ca.crt": "/c", "database-ca.crt": "/ca"}
	if got := c.SharedFiles(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	for name := range want {
		want[name] = "/etc/slipway/" + name
	}
	moved := c.WithFiles(want)
	if got := moved.SharedFiles(); !reflect.DeepEqual(got, want) || c.OIDC.CAFile != "/c" {
		t.Errorf("%v; before: %v", got, c.SharedFiles())
	}
}

func TestAServerOnSQLiteHandsNothingOver(t *testing.T) {
	a := &appliance{cfg: Default(), log: slog.New(slog.DiscardHandler)}
	made, err := a.newBook().Invite(t.Context(), "", "alice", 0)
	if !inventory.IsKind(err, inventory.Conflict) || !strings.Contains(err.Error(), "file of SQLite") ||
		!strings.Contains(inventory.HintOf(err), "slipway database move") || made.Code != "" {
		t.Errorf("%+v, %v", made, err)
	}
}

func TestWhatAnotherMachineMayListenOn(t *testing.T) {
	for listen, want := range map[string]string{
		":8069": ":8069", "0.0.0.0:8067": "0.0.0.0:8067", "[::]:8067": "[::]:8067", "127.0.0.1:8068": "127.0.0.1:8068", "192.0.2.1:8067": "",
		"fd:3": "", "node1:8069": "",
	} {
		if got := everywhere(listen); got != want {
			t.Errorf("%s: %q", listen, got)
		}
	}
}
