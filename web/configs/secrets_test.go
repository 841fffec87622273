package configs

import "testing"

func TestOfASecretTheUsersAreFound(t *testing.T) {
	for text, is := range map[string]bool{
		"secret: 'secret://db'": true, "secret: secret://db": true, "x: secret://db#key": true, `{{ secret "db" }}`: true, "{{secret `db`}}": true,
		"bootstrap: {secret: db}": true, "secret: db": true, `secret: "db"`: true, "{{ secret\t\"db\" }}": true,
		"secret://db-2": false, "secret://mydb": false, `{{ secret "db2" }}`: false, "secret: dbx": false, "db": false, "": false,
	} {
		if secretRE("db").MatchString(text) != is {
			t.Errorf("%q: %v is wrong", text, !is)
		}
	}
	for text, is := range map[string]bool{
		"bootstrap: {kind: kubeadm, target: prod}": true, "  target: prod\n": true, `target: "prod"`: true, `"target":"prod"`: true,
		"target: prod-2": false, "target: preprod": false, "prod": false,
	} {
		if TargetRE("prod").MatchString(text) != is {
			t.Errorf("%q: %v is wrong", text, !is)
		}
	}
}
