package storetest

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

func secrets(t *testing.T, s inventory.Store) {
	x := inventory.Secret{Name: "db", About: "the database", Owner: "c1/default/Secret/db/1", Sealed: []byte("\x00sealed\xff")}
	other := inventory.Secret{Name: "api"}
	write(t, s, func(tx inventory.Tx) error {
		return errors.Join(tx.Secrets().Create(&x, Now), tx.Secrets().Create(&other, Now))
	})
	refuses(t, s, inventory.Conflict, "secret db", func(tx inventory.Tx) error {
		return tx.Secrets().Create(&inventory.Secret{Name: "db"}, Now)
	})
	x.Sealed = []byte("other")
	write(t, s, func(tx inventory.Tx) error { return tx.Secrets().Update(&x, Now.Add(time.Minute)) })
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.Secrets().Find("db")
		same(t, "secret", x, got)
		if err != nil {
			return err
		}
		listed := x
		listed.Sealed = nil
		all, err := tx.Secrets().List(inventory.Page{})
		same(t, "secrets", []inventory.Secret{other, listed}, all)
		if err != nil {
			return err
		}
		page, err := tx.Secrets().List(inventory.Page{After: "api", Limit: 1})
		same(t, "a page of secrets", []inventory.Secret{listed}, page)
		return err
	})
	stale := x
	stale.Version = 1
	refuses(t, s, inventory.Conflict, "secret db changed", func(tx inventory.Tx) error { return tx.Secrets().Update(&stale, Now) })
	write(t, s, func(tx inventory.Tx) error { return tx.Secrets().Delete("db") })
	refuses(t, s, inventory.NotFound, "secret db", func(tx inventory.Tx) error { return tx.Secrets().Delete("db") })
}

func joinTargets(t *testing.T, s inventory.Store) {
	for _, name := range []string{"admin", "boot", "pki", "certs"} {
		write(t, s, func(tx inventory.Tx) error { return tx.Secrets().Create(&inventory.Secret{Name: name}, Now) })
	}
	j := inventory.JoinTarget{
		Name: "prod", Endpoint: "10.0.0.9:6443", Kubernetes: "1.35.0", CA: "-----BEGIN CERTIFICATE-----\n",
		Kubeconfig: "admin", Token: "boot", PKI: "pki", CertificateKey: "certs", TokenFor: inventory.Duration(time.Hour),
		VIP: netip.MustParseAddr("10.0.0.9"), VIPInterface: "eno1", VIPImage: "vip:1", PodCIDR: "10.244.0.0/16", ServiceCIDR: "10.96.0.0/12",
		WorkerParallelism: 7, Owner: "c1/default/JoinTarget/prod/1",
	}
	bare := inventory.JoinTarget{Name: "bare", Endpoint: "k8s:6443", Kubernetes: "1.34.0"}
	write(t, s, func(tx inventory.Tx) error {
		return errors.Join(tx.JoinTargets().Create(&j, Now), tx.JoinTargets().Create(&bare, Now))
	})
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.JoinTargets().Find("prod")
		same(t, "join target", j, got)
		if err != nil {
			return err
		}
		all, err := tx.JoinTargets().List(inventory.Page{})
		same(t, "join targets", []inventory.JoinTarget{bare, j}, all)
		return err
	})
	refuses(t, s, inventory.Conflict, "target prod", func(tx inventory.Tx) error {
		return tx.JoinTargets().Create(&inventory.JoinTarget{Name: "prod"}, Now)
	})
	for _, name := range []string{"admin", "boot", "pki", "certs"} {
		refuses(t, s, inventory.Conflict, "secret "+name+" target prod", func(tx inventory.Tx) error { return tx.Secrets().Delete(name) })
	}
	refuses(t, s, inventory.Invalid, "lost nothing pki", func(tx inventory.Tx) error {
		return tx.JoinTargets().Create(&inventory.JoinTarget{Name: "lost", PKI: "nothing"}, Now)
	})
	j.Token, j.VIP, j.Kubernetes = "", netip.Addr{}, "1.35.1"
	write(t, s, func(tx inventory.Tx) error {
		if err := tx.JoinTargets().Update(&j, Now.Add(time.Second)); err != nil {
			return err
		}
		return tx.Secrets().Delete("boot")
	})
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.JoinTargets().Find("prod")
		same(t, "updated join target", j, got)
		return err
	})
	stale := j
	stale.Version = 1
	refuses(t, s, inventory.Conflict, "target prod changed", func(tx inventory.Tx) error { return tx.JoinTargets().Update(&stale, Now) })
	j.Kubeconfig = "nothing"
	refuses(t, s, inventory.Invalid, "prod nothing kubeconfig", func(tx inventory.Tx) error { return tx.JoinTargets().Update(&j, Now) })
	write(t, s, func(tx inventory.Tx) error { return tx.JoinTargets().Delete("prod") })
	refuses(t, s, inventory.NotFound, "target prod", func(tx inventory.Tx) error { return tx.JoinTargets().Delete("prod") })
}

func joinToken(id, target string, session inventory.SessionID, state inventory.JoinTokenState, n int) inventory.JoinToken {
	at := Now.Truncate(time.Millisecond).Add(time.Duration(n) * time.Second)
	return inventory.JoinToken{
		ID: id, Target: target, HostID: "h1", SessionID: session, NodeName: "node-1", Sealed: []byte("sealed"), State: state,
		CreatedAt: at, ExpiresAt: at.Add(time.Hour),
	}
}

func joinTokens(t *testing.T, s inventory.Store) {
	old := joinToken("aaaaaa", "prod", "s1", inventory.TokenSpent, 1)
	newer := joinToken("bbbbbb", "prod", "s1", inventory.TokenMinted, 2)
	revoked := joinToken("cccccc", "prod", "s1", inventory.TokenRevoked, 3)
	other := joinToken("dddddd", "test", "s1", inventory.TokenMinted, 4)
	for _, k := range []inventory.JoinToken{old, newer, revoked, other} {
		write(t, s, func(tx inventory.Tx) error { return tx.SaveJoinToken(k) })
	}
	ids := func(target string, states ...inventory.JoinTokenState) (ids []string) {
		t.Helper()
		read(t, s, func(tx inventory.Tx) error {
			list, err := tx.ListJoinTokens(target, states...)
			for _, k := range list {
				ids = append(ids, k.ID)
			}
			return err
		})
		return ids
	}
	same(t, "all tokens", []string{"dddddd", "cccccc", "bbbbbb", "aaaaaa"}, ids(""))
	same(t, "tokens of a target", []string{"cccccc", "bbbbbb", "aaaaaa"}, ids("prod"))
	same(t, "its live tokens", []string{"bbbbbb", "aaaaaa"}, ids("prod", inventory.TokenMinted, inventory.TokenSpent))
	same(t, "all revoked tokens", []string{"cccccc"}, ids("", inventory.TokenRevoked))
	of := func(session inventory.SessionID, target string) (k inventory.JoinToken, err error) {
		err = s.Read(t.Context(), func(tx inventory.Tx) error { k, err = tx.FindJoinTokenOf(session, target); return err })
		return k, err
	}
	got, err := of("s1", "prod")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the newest live token of a session", newer, got)
	newer.State, newer.CSR = inventory.TokenJoined, "uid"
	write(t, s, func(tx inventory.Tx) error { return tx.SaveJoinToken(newer) })
	if got, err = of("s1", "prod"); err != nil {
		t.Fatal(err)
	}
	same(t, "the one that was spent", old, got)
	_, err = of("s2", "prod")
	expect(t, err, inventory.NotFound, "token prod")
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindJoinToken("bbbbbb")
		same(t, "an overwritten token", newer, got)
		_, gone := tx.FindJoinToken("zzzzzz")
		expect(t, gone, inventory.NotFound, "token zzzzzz")
		return err
	})
}

func deliveriesAndLocks(t *testing.T, s inventory.Store) {
	at := Now.Truncate(time.Millisecond)
	d := inventory.Delivery{SessionID: "s1", Document: "config.ign", Source: netip.MustParseAddr("10.0.0.7"), FetchN: 1, FirstAt: at, LastAt: at}
	l := inventory.Lock{Name: "init/prod", HostID: "h1", SessionID: "s1", SinceAt: at}
	twin := inventory.Lock{Name: "init/a", HostID: "h1", SinceAt: at}
	save := func() {
		t.Helper()
		write(t, s, func(tx inventory.Tx) error {
			return errors.Join(tx.SaveDelivery(d), tx.SaveLock(l), tx.SaveLock(twin))
		})
		read(t, s, func(tx inventory.Tx) error {
			got, err := tx.FindDelivery("s1", "config.ign")
			same(t, "delivery", d, got)
			if err != nil {
				return err
			}
			held, err := tx.FindLock("init/prod")
			same(t, "lock", l, held)
			if err != nil {
				return err
			}
			all, err := tx.ListLocks()
			same(t, "locks", []inventory.Lock{twin, l}, all)
			return err
		})
	}
	save()
	d.FetchN, d.LastAt, d.IsBurnt, d.Source = 2, at.Add(time.Second), true, netip.Addr{}
	l.HostID, l.SessionID, l.SinceAt = "h2", "s2", at.Add(time.Minute)
	save()
	read(t, s, func(tx inventory.Tx) error {
		_, err := tx.FindDelivery("s1", "user-data")
		expect(t, err, inventory.NotFound, "user-data")
		_, err = tx.FindDelivery("s2", "config.ign")
		expect(t, err, inventory.NotFound, "config.ign")
		return nil
	})
	write(t, s, func(tx inventory.Tx) error { return tx.DeleteLock("init/prod") })
	refuses(t, s, inventory.NotFound, "lock init/prod", func(tx inventory.Tx) error { return tx.DeleteLock("init/prod") })
	refuses(t, s, inventory.NotFound, "lock init/prod", func(tx inventory.Tx) error { _, err := tx.FindLock("init/prod"); return err })
}

func siteKeys(t *testing.T, s inventory.Store) {
	k := inventory.SiteKey{Name: "boot", Public: "a certificate", Sealed: []byte("\x00sealed\xff"), SinceAt: Now.Truncate(time.Millisecond)}
	fingerprint := inventory.SiteKey{Name: "secret.key", Public: "0123", SinceAt: k.SinceAt}
	save := func() {
		t.Helper()
		write(t, s, func(tx inventory.Tx) error { return errors.Join(tx.SaveSiteKey(k), tx.SaveSiteKey(fingerprint)) })
		read(t, s, func(tx inventory.Tx) error {
			for _, want := range []inventory.SiteKey{k, fingerprint} {
				got, err := tx.FindSiteKey(want.Name)
				if len(got.Sealed) == 0 {
					got.Sealed = nil
				}
				same(t, "key "+want.Name, want, got)
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	save()
	k.Public, k.Sealed, k.SinceAt = "another", []byte{1}, k.SinceAt.Add(time.Hour)
	save()
	write(t, s, func(tx inventory.Tx) error { return tx.DeleteSiteKey("boot") })
	refuses(t, s, inventory.NotFound, "site key boot", func(tx inventory.Tx) error { return tx.DeleteSiteKey("boot") })
	refuses(t, s, inventory.NotFound, "site key boot", func(tx inventory.Tx) error { _, err := tx.FindSiteKey("boot"); return err })
}

// forgettingBoots keeps what sessions that are still there have, and the latest rendering of each host.
func forgettingBoots(t *testing.T, s inventory.Store) {
	createHosts(t, s, Host(1))
	id := Host(1).ID
	kept := session(1, id)
	kept.Config = digest(1)
	boots := func(session inventory.SessionID, token string) func(tx inventory.Tx) error {
		return func(tx inventory.Tx) error {
			return errors.Join(
				tx.SaveDelivery(inventory.Delivery{SessionID: session, Document: "config.ign", FetchN: 1, FirstAt: Now, LastAt: Now}),
				tx.SaveJoinToken(joinToken(token, "prod", session, inventory.TokenJoined, 1)))
		}
	}
	gone := session(2, id)
	gone.Outcome = inventory.OutcomeArrived
	write(t, s, func(tx inventory.Tx) error {
		return errors.Join(tx.SaveSession(kept), tx.SaveSession(gone), boots(kept.ID, "aaaaaa")(tx), boots(gone.ID, "bbbbbb")(tx))
	})
	for _, r := range []inventory.Rendering{
		rendering(1, id),      // a session names it
		rendering(2, id),      // nobody needs it
		rendering(3, id),      // the host's latest
		rendering(4, "0-old"), // of a host that is gone
	} {
		write(t, s, func(tx inventory.Tx) error { return tx.SaveRendering(r) })
	}
	forget := func(before time.Time, limit, want int) {
		t.Helper()
		write(t, s, func(tx inventory.Tx) error {
			n, err := tx.ForgetHistory(before, limit)
			same(t, "rows forgotten", want, n)
			return err
		})
	}
	forget(Now.Add(-time.Hour), 100, 0)
	forget(Now.Add(30*time.Minute), 100, 4) // a session, its delivery, two renderings; the token has not expired
	forget(Now.Add(2*time.Hour), 100, 1)    // the token
	forget(Now.Add(1000*time.Hour), 100, 0) // all that is left is in use
	if got := len(renderingsOf(t, s, id)); got != 2 {
		t.Errorf("%d renderings are left, want 2", got)
	}
	read(t, s, func(tx inventory.Tx) error {
		_, d := tx.FindDelivery(kept.ID, "config.ign")
		_, k := tx.FindJoinToken("aaaaaa")
		_, r := tx.FindRendering(digest(1))
		return errors.Join(d, k, r)
	})
}

func renderingsOf(t *testing.T, s inventory.Store, host inventory.HostID) (list []inventory.Rendering) {
	t.Helper()
	read(t, s, func(tx inventory.Tx) (err error) { list, err = tx.ListRenderings(host, 0); return err })
	return list
}
