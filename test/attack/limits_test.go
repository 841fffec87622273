package attack_test

import (
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/test/netlab"
	"slipway.dev/slipway/web/client"
)

const goodPassword = "gull-lantern-marble-47"

// TestGuessesLockOutNobodyWhoIsRight guesses tokens and a user's password from one address: guesses are slowed down, a valid
// token of the same address works, and the user still comes in from another address.
func TestGuessesLockOutNobodyWhoIsRight(t *testing.T) {
	a := victim(t)
	ctx := t.Context()
	name := "ann"
	as(a, name, inventory.Grant{Role: inventory.Viewer})
	if err := a.API.SetPassword(ctx, name, goodPassword); err != nil {
		t.Fatal(err)
	}
	valid, err := a.API.NewToken(ctx, client.TokenWish{Name: "valid", User: &name})
	if err != nil {
		t.Fatal(err)
	}

	const mine, others, guesser = "127.0.0.2", "127.0.0.3", "127.0.0.4"
	slowed := 0
	for range 60 {
		last := asksWith(a, mine, "slipway_0000000000000000000000000000000000000000000")
		if last != 401 && last != 429 {
			t.Fatalf("a wrong token: %d", last)
		}
		if last == 429 {
			slowed++
		}
	}
	if slowed == 0 {
		t.Error("60 wrong tokens were all looked at: nothing slows a guesser down")
	}
	for _, from := range []string{mine, others} {
		if code := asksWith(a, from, valid.Secret); code != 200 {
			t.Errorf("a valid token from %s, after 60 wrong ones from %s: %d", from, mine, code)
		}
	}

	for range 20 {
		if code := logsIn(a, guesser, name, "wrong-password-of-a-guesser"); code < 400 {
			t.Fatalf("a wrong password: %d", code)
		}
	}
	if code := logsIn(a, others, name, goodPassword); code != 201 {
		t.Errorf("the user's own login from another address: %d", code)
	}
	if code := asksWith(a, guesser, valid.Secret); code != 200 {
		t.Errorf("a valid token after the wrong passwords: %d", code)
	}
	boots(a, 7)
}

// asksWith asks the admin door who it is, from an address of the server's own loopback.
func asksWith(a *netlab.Appliance, from, token string) int {
	a.Lab.T.Helper()
	code, _ := ask(a, a.Net.Server, from, "http://"+adminDoor+"/api/v1/me", token, "")
	return code
}

func logsIn(a *netlab.Appliance, from, user, password string) int {
	a.Lab.T.Helper()
	code, _ := ask(a, a.Net.Server, from, "http://"+adminDoor+"/api/v1/logins", "", `{"user":"`+user+`","password":"`+password+`"}`)
	return code
}
