package storetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

func issues(t *testing.T, s inventory.Store) {
	open := func(i *inventory.Issue, now time.Time) (opened bool) {
		write(t, s, func(tx inventory.Tx) (err error) {
			opened, err = tx.OpenIssue(i, now)
			return err
		})
		return opened
	}
	i := inventory.Issue{
		Key: "identity-conflict/u1", Type: inventory.IssueIdentityConflict, Severity: inventory.SeverityWarning,
		HostIDs: []inventory.HostID{"h1", "h2"}, Subnet: "rack1", Instance: "a", Cause: "two hosts", Hint: "look",
	}
	other := inventory.Issue{Key: "boot-loop/h3", Type: inventory.IssueBootLoop, Severity: inventory.SeverityError, HostIDs: []inventory.HostID{"h3"}}
	if !open(&i, Now) || !open(&other, Now) {
		t.Error("a new issue was not reported as opened")
	}
	again := i
	again.ID, again.Cause, again.Instance, again.HostIDs = 0, "three hosts", "b", []inventory.HostID{"h1", "h3"}
	if open(&again, Now.Add(time.Hour)) {
		t.Error("an open issue was opened twice")
	}
	if again.ID != i.ID || again.SeenN != 2 || !again.OpenedAt.Equal(i.OpenedAt) || !again.SeenAt.After(again.OpenedAt) {
		t.Errorf("seen again, the issue is %+v", again)
	}
	keys := func(all bool, host inventory.HostID) (keys []string) {
		read(t, s, func(tx inventory.Tx) error {
			list, err := tx.ListIssues(all, host)
			for _, i := range list {
				keys = append(keys, i.Key)
			}
			return err
		})
		return keys
	}
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindIssue(i.ID)
		same(t, "issue", again, got)
		_, gone := tx.FindIssue(99)
		expect(t, gone, inventory.NotFound, "issue 99")
		return err
	})
	same(t, "open issues", []string{other.Key, i.Key}, keys(false, ""))
	same(t, "issues of h3", []string{other.Key, i.Key}, keys(false, "h3"))
	same(t, "issues of h2, which is no longer involved", []string(nil), keys(true, "h2"))

	for _, want := range []bool{true, false} {
		write(t, s, func(tx inventory.Tx) error {
			closed, err := tx.CloseIssue(i.Key, Now.Add(2*time.Hour))
			same(t, "closed", want, closed)
			return err
		})
	}
	same(t, "open issues after one closed", []string{other.Key}, keys(false, ""))
	same(t, "all issues of h1", []string{i.Key}, keys(true, "h1"))
	reopened := i
	if !open(&reopened, Now.Add(3*time.Hour)) || reopened.ID == i.ID {
		t.Error("a closed issue came back instead of a new one")
	}
	same(t, "all issues", []string{i.Key, other.Key, i.Key}, keys(true, ""))
}

func tokens(t *testing.T, s inventory.Store) {
	k := inventory.Token{Name: "ci", Hash: strings.Repeat("ab", 32), ExpiresAt: Now.Truncate(time.Millisecond).Add(time.Hour), Grants: inventory.Grants{{Role: inventory.Operator, Pool: "web"}}}
	write(t, s, func(tx inventory.Tx) error { return tx.CreateToken(&k, Now) })
	refuses(t, s, inventory.Conflict, "token ci", func(tx inventory.Tx) error {
		return tx.CreateToken(&inventory.Token{Name: "ci", Hash: "other"}, Now)
	})
	refuses(t, s, inventory.Conflict, "", func(tx inventory.Tx) error {
		return tx.CreateToken(&inventory.Token{Name: "twin", Hash: k.Hash}, Now)
	})
	write(t, s, func(tx inventory.Tx) error { return tx.TouchToken("ci", Now.Add(time.Minute)) })
	k.LastUsedAt = Now.Truncate(time.Millisecond).Add(time.Minute)
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindTokenByHash(k.Hash)
		same(t, "token", k, got)
		_, gone := tx.FindTokenByHash("nothing")
		expect(t, gone, inventory.NotFound, "token")
		if gone != nil && strings.Contains(gone.Error(), "nothing") {
			t.Errorf("the error shows the hash: %v", gone)
		}
		all, _ := tx.ListTokens()
		same(t, "tokens", []inventory.Token{k}, all)
		return err
	})
	bound := inventory.Token{Name: "mgmt", Hash: strings.Repeat("cd", 32), Grants: inventory.Grants{}, Cluster: "u-a", Namespaces: []string{"team"}}
	write(t, s, func(tx inventory.Tx) error { return tx.CreateToken(&bound, Now) })
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindToken("mgmt")
		same(t, "token of a cluster", bound, got)
		return err
	})
	refuses(t, s, inventory.NotFound, "token", func(tx inventory.Tx) error { return tx.TouchToken("nobody", Now) })
	write(t, s, func(tx inventory.Tx) error { return tx.DeleteToken("ci") })
	refuses(t, s, inventory.NotFound, "token ci", func(tx inventory.Tx) error { return tx.DeleteToken("ci") })
}

func users(t *testing.T, s inventory.Store) {
	u := inventory.User{
		Name: "anna", DisplayName: "Anna", PasswordHash: "$argon2id$x", Issuer: "https://id.example", Subject: "42",
		Grants: inventory.Grants{{Role: inventory.Admin}, {Role: inventory.Viewer, Pool: "web"}},
	}
	write(t, s, func(tx inventory.Tx) error { return tx.Users().Create(&u, Now) })
	if !u.HasPassword || u.Version != 1 {
		t.Errorf("created as %+v", u)
	}
	refuses(t, s, inventory.Conflict, "user anna", func(tx inventory.Tx) error { return tx.Users().Create(&inventory.User{Name: "anna"}, Now) })
	refuses(t, s, inventory.Conflict, "user anna", func(tx inventory.Tx) error {
		return tx.Users().Create(&inventory.User{Name: "twin", Issuer: u.Issuer, Subject: u.Subject}, Now)
	})
	ben := inventory.User{Name: "ben", Grants: inventory.Grants{}}
	write(t, s, func(tx inventory.Tx) error { return tx.Users().Create(&ben, Now) })
	stale := u
	u.IsDisabled, u.Grants = true, inventory.Grants{{Role: inventory.Operator}}
	write(t, s, func(tx inventory.Tx) error { return tx.Users().Update(&u, Now.Add(time.Second)) })
	refuses(t, s, inventory.Conflict, "anna", func(tx inventory.Tx) error { return tx.Users().Update(&stale, Now) })
	write(t, s, func(tx inventory.Tx) error { return tx.NoteLogin("anna", Now) })
	refuses(t, s, inventory.NotFound, "user", func(tx inventory.Tx) error { return tx.NoteLogin("nobody", Now) })
	u.LoginAt = Now.Truncate(time.Millisecond)
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.Users().Find("anna")
		same(t, "user", u, got)
		if err != nil {
			return err
		}
		got, err = tx.FindUserBySubject(u.Issuer, u.Subject)
		same(t, "user by subject", u, got)
		if err != nil {
			return err
		}
		_, gone := tx.FindUserBySubject("", "")
		expect(t, gone, inventory.NotFound, "user")
		all, err := tx.Users().List(inventory.Page{})
		same(t, "users", []inventory.User{u, ben}, all)
		if err != nil {
			return err
		}
		rest, err := tx.Users().List(inventory.Page{After: "anna", Limit: 1})
		same(t, "the second page", []inventory.User{ben}, rest)
		return err
	})
}

func logins(t *testing.T, s inventory.Store) {
	at := Now.Truncate(time.Millisecond)
	write(t, s, func(tx inventory.Tx) error {
		return errors.Join(tx.Users().Create(&inventory.User{Name: "anna"}, Now), tx.Users().Create(&inventory.User{Name: "ben"}, Now),
			tx.CreateToken(&inventory.Token{Name: "ci", Hash: "c1", User: "anna", Grants: inventory.Grants{{Role: inventory.Viewer}}}, Now),
			tx.CreateToken(&inventory.Token{Name: "free", Hash: "f1", Grants: inventory.AdminEverywhere()}, Now))
	})
	refuses(t, s, inventory.NotFound, "user", func(tx inventory.Tx) error {
		return tx.CreateToken(&inventory.Token{Name: "x", Hash: "x", User: "nobody"}, Now)
	})
	all := []inventory.Login{
		{ID: "1", Hash: "h1", User: "anna", Source: "192.0.2.1", Agent: "Firefox", ExpiresAt: at.Add(time.Hour)},
		{ID: "2", Hash: "h2", User: "anna", ExpiresAt: at.Add(2 * time.Hour)},
		{ID: "3", Hash: "h3", Token: "ci", ExpiresAt: at.Add(3 * time.Hour)},
		{ID: "4", Hash: "h4", User: "ben", ExpiresAt: at.Add(4 * time.Hour)},
	}
	for i := range all {
		write(t, s, func(tx inventory.Tx) error { return tx.CreateLogin(&all[i], Now.Add(time.Duration(i)*time.Second)) })
	}
	refuses(t, s, inventory.Conflict, "", func(tx inventory.Tx) error { return tx.CreateLogin(&inventory.Login{ID: "5", Hash: "h1"}, Now) })
	write(t, s, func(tx inventory.Tx) error { return tx.TouchLogin("1", Now.Add(time.Minute)) })
	all[0].SeenAt = at.Add(time.Minute)
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindLoginByHash("h1")
		same(t, "login", all[0], got)
		if err != nil {
			return err
		}
		of, err := tx.ListLogins(inventory.LoginFilter{User: "anna"})
		same(t, "logins of anna", []inventory.Login{all[1], all[0]}, of)
		if err != nil {
			return err
		}
		of, err = tx.ListLogins(inventory.LoginFilter{Token: "ci"})
		same(t, "logins with ci", []inventory.Login{all[2]}, of)
		return err
	})
	forget := func(now, idle time.Time, want int) {
		t.Helper()
		write(t, s, func(tx inventory.Tx) error {
			n, err := tx.ForgetLogins(now, idle, 10)
			if n != want {
				t.Errorf("%d forgotten, want %d", n, want)
			}
			return err
		})
	}
	forget(at, at.Add(-time.Hour), 0)
	forget(at.Add(time.Hour), at.Add(-time.Hour), 1)    // the first has expired
	forget(at.Add(time.Hour), at.Add(2*time.Second), 1) // the second is idle
	write(t, s, func(tx inventory.Tx) error { return tx.Users().Delete("anna") })
	refuses(t, s, inventory.NotFound, "user anna", func(tx inventory.Tx) error { return tx.Users().Delete("anna") })
	read(t, s, func(tx inventory.Tx) error {
		left, err := tx.ListLogins(inventory.LoginFilter{})
		same(t, "logins after their user went", []inventory.Login{all[3]}, left)
		if err != nil {
			return err
		}
		tokens, err := tx.ListTokens()
		if len(tokens) != 1 || tokens[0].Name != "free" {
			t.Errorf("tokens after their user went: %+v", tokens)
		}
		return err
	})
	write(t, s, func(tx inventory.Tx) error { return tx.DeleteLogin("4") })
	refuses(t, s, inventory.NotFound, "login", func(tx inventory.Tx) error { return tx.DeleteLogin("4") })
}
