package web

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

// TestASecretGoesInAndNeverComesOut plants a canary and looks for it in everything that the door says and writes.
func TestASecretGoesInAndNeverComesOut(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	var said strings.Builder
	ask := func(want int, method, path, body string) answer {
		t.Helper()
		a := r.ask(method, path, body)
		if a.status != want {
			t.Errorf("%s %s: %d, want %d: %s", method, path, a.status, want, a.body)
		}
		for k, v := range a.header {
			said.WriteString(k + strings.Join(v, " "))
		}
		said.WriteString(a.body)
		return a
	}
	ask(422, "PUT", "/api/v1/secrets/db", `{"about":"no value yet"}`)
	ask(422, "PUT", "/api/v1/secrets/DB", `{"value":"`+canary+`"}`)
	ask(422, "PUT", "/api/v1/secrets/db", `{"value":"`+canary+`\u0000"}`)
	ask(422, "PUT", "/api/v1/secrets/db", `{"value":["`+canary+`"]}`)
	ask(422, "PUT", "/api/v1/secrets/db", `{"valeu":"`+canary+`"}`)
	ask(400, "PUT", "/api/v1/secrets/db", `{"value":"`+canary+`"`)
	ask(422, "PUT", "/api/v1/secrets/db", `{"value":""}`)
	ask(422, "PUT", "/api/v1/secrets/db", `{"value":"`+canary+`","about":"a\u0001"}`)
	ask(200, "PUT", "/api/v1/secrets/db?dryRun=true", `{"value":"`+canary+`"}`)
	ask(404, "GET", "/api/v1/secrets/db", "")
	ask(200, "PUT", "/api/v1/secrets/db", `{"value":"`+canary+`","about":"of the database"}`)
	ask(200, "PUT", "/api/v1/secrets/db", `{"value":"`+canary+`2"}`)
	a := ask(200, "PUT", "/api/v1/secrets/db", `{"about":"of the other database"}`)
	if !strings.Contains(a.body, `"version":3`) || !strings.Contains(a.body, "other database") {
		t.Errorf("secret %s", a.body)
	}
	ask(200, "PUT", "/api/v1/secrets/db?dryRun=true", `{"value":"`+canary+`3"}`)
	ask(200, "GET", "/api/v1/secrets/db", "")
	ask(200, "GET", "/api/v1/secrets", "")
	ask(200, "PUT", "/api/v1/profiles/worker", `{"image":"debian","selector":"rack=r1","config":"files: [{path: /etc/pw, secret: 'secret://db'}]\n"}`)
	ask(200, "GET", "/api/v1/hosts/r1-u01/render", "")
	ask(200, "POST", "/api/v1/profiles/worker/check", `{"image":"debian","selector":"rack=r1","config":"files: [{path: /etc/other, secret: 'secret://db'}]\n"}`)
	ask(200, "GET", "/api/v1/hosts/r1-u01/explain", "")
	ask(200, "GET", "/api/v1/hosts/r1-u01/script", "")
	ask(200, "GET", "/api/v1/transfer?noun=all", "")
	ask(200, "GET", "/api/v1/events?limit=1000", "")
	if a := ask(409, "DELETE", "/api/v1/secrets/db", ""); !strings.Contains(a.body, "profile worker") {
		t.Errorf("delete of one in use: %s", a.body)
	}
	wantOpen := func(want string) {
		t.Helper()
		var sealed []byte
		err := r.store.Read(t.Context(), func(tx inventory.Tx) error {
			x, err := tx.Secrets().Find("db")
			sealed = x.Sealed
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if plain, err := r.box.Open("db", sealed); err != nil || string(plain) != want {
			t.Errorf("the stored value is %q, %v", plain, err)
		}
	}
	wantOpen(canary + "2")

	backup := filepath.Join(t.TempDir(), "backup.db")
	if err := r.store.Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	disk, err := os.ReadFile(backup)
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{"answers": said.String(), "log": r.logged(), "database": string(disk)} {
		for _, form := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary))[:30]} {
			if strings.Contains(text, form) {
				i := strings.Index(text, form)
				t.Errorf("the secret stands in the %s: ...%q", where, text[max(0, i-100):i+10])
			}
		}
		if len(text) < 100 {
			t.Errorf("there is nothing in the %s", where)
		}
	}
}
