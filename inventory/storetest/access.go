package storetest

import (
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
		HostIDs: []inventory.HostID{"h1", "h2"}, Subnet: "rack1", Cause: "two hosts", Hint: "look",
	}
	other := inventory.Issue{Key: "boot-loop/h3", Type: inventory.IssueBootLoop, Severity: inventory.SeverityError, HostIDs: []inventory.HostID{"h3"}}
	if !open(&i, Now) || !open(&other, Now) {
		t.Error("a new issue was not reported as opened")
	}
	again := i
	again.ID, again.Cause, again.HostIDs = 0, "three hosts", []inventory.HostID{"h1", "h3"}
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
	k := inventory.Token{Name: "ci", Hash: strings.Repeat("ab", 32), ExpiresAt: Now.Truncate(time.Millisecond).Add(time.Hour)}
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
	refuses(t, s, inventory.NotFound, "token", func(tx inventory.Tx) error { return tx.TouchToken("nobody", Now) })
	write(t, s, func(tx inventory.Tx) error { return tx.DeleteToken("ci") })
	refuses(t, s, inventory.NotFound, "token ci", func(tx inventory.Tx) error { return tx.DeleteToken("ci") })
}

func acceptRules(t *testing.T, s inventory.Store) {
	r := inventory.AcceptRule{Name: "dell", Selector: "manufacturer=~Dell.*"}
	write(t, s, func(tx inventory.Tx) error { return tx.CreateAcceptRule(&r, Now) })
	refuses(t, s, inventory.Conflict, "dell", func(tx inventory.Tx) error {
		return tx.CreateAcceptRule(&inventory.AcceptRule{Name: "dell"}, Now)
	})
	r.Selector = "rack=r1"
	write(t, s, func(tx inventory.Tx) error { return tx.UpdateAcceptRule(&r, Now.Add(time.Second)) })
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindAcceptRule("dell")
		same(t, "rule", r, got)
		if err != nil {
			return err
		}
		all, err := tx.ListAcceptRules()
		same(t, "rules", []inventory.AcceptRule{r}, all)
		return err
	})
	stale := r
	stale.Version = 1
	refuses(t, s, inventory.Conflict, "dell", func(tx inventory.Tx) error { return tx.UpdateAcceptRule(&stale, Now) })
	write(t, s, func(tx inventory.Tx) error { return tx.DeleteAcceptRule("dell") })
	refuses(t, s, inventory.NotFound, "dell", func(tx inventory.Tx) error { return tx.DeleteAcceptRule("dell") })
}
