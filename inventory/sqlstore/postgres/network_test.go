package postgres

import (
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/database"
	"slipway.dev/slipway/test/postgres"
)

// startSilent starts a server that accepts connections and never answers.
func startSilent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String() // the kernel accepts
}

// One direction of the network fails at the moment of a commit. Write finds out what became of it.
func TestPostgresANetworkThatFailsInACommit(t *testing.T) {
	s := postgres.Shared(t)
	url := s.Database(t)
	p := startProxy(t, s.Address())
	d := open(t, p.url(t, url), func(c *Config) {
		c.Timeout = time.Second
		c.Lost = func(n int64) { t.Errorf("%d commits are said to be lost", n) }
	})
	try := func(name string, fail func()) error {
		return d.Write(t.Context(), func(tx *database.Tx) error {
			if err := adds(name)(tx); err != nil {
				return err
			}
			fail() // what comes next is COMMIT
			return nil
		})
	}
	for i := range 2 {
		if err := try(fmt.Sprint("answer ", i), func() { p.stop(false, true) }); err != nil {
			t.Errorf("the answer to a commit is lost: %v", err)
		}
		wantError(t, try(fmt.Sprint("question ", i), func() { p.stop(true, false) }), inventory.Unavailable, "")
		cut := func() { p.each(func(k *link) { k.client.Close(); k.server.Close() }) }
		wantError(t, try(fmt.Sprint("cut ", i), cut), inventory.Unavailable, "")
		wantThings(t, d, map[string]string{fmt.Sprint("answer ", i): "1", fmt.Sprint("question ", i): "", fmt.Sprint("cut ", i): ""})
	}
	if err := put(t.Context(), d, "afterwards", "1"); err != nil {
		t.Error(err)
	}
}

// A server of several that accepts connections and never answers keeps nobody from the next one.
func TestPostgresTheNextServerIsTriedInTime(t *testing.T) {
	s := postgres.Shared(t)
	url := s.Database(t)
	d := open(t, at(t, url, startSilent(t)+","+s.Address()), nil)
	if err := put(t.Context(), d, "x", "1"); err != nil {
		t.Error(err)
	}
}

// A server that accepts and never answers ends a start with an error.
func TestPostgresAStartThatGetsNoAnswer(t *testing.T) {
	url := postgres.Shared(t).Database(t)
	began := time.Now()
	_, err := Open(t.Context(), Config{URL: at(t, url, startSilent(t)), Timeout: time.Second})
	wantError(t, err, inventory.Unavailable, "in time")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// The connection that hears of other instances dies without a word. It is made again.
func TestPostgresAConnectionThatListensAndDies(t *testing.T) {
	s := postgres.Shared(t)
	url := s.Database(t)
	p := startProxy(t, s.Address())
	a, b := open(t, p.url(t, url), func(c *Config) { c.Timeout = time.Second }), open(t, url, nil)
	var woken atomic.Int64
	a.OnCommit(func() { woken.Add(1) })
	wake := func() bool {
		if err := b.Write(t.Context(), func(tx *database.Tx) error { tx.Wake(); return nil }); err != nil {
			t.Error(err)
		}
		return woken.Load() > 0
	}
	eventually(t, "it is woken", wake)
	p.stop(true, true)
	time.Sleep(100 * time.Millisecond)
	woken.Store(0)
	eventually(t, "it is woken again", wake)
}

// With 200 ms to the server all works. A write takes few ways.
func TestPostgresAServerFarAway(t *testing.T) {
	s := postgres.Shared(t)
	url := s.Database(t)
	p := startProxy(t, s.Address())
	p.slow(100 * time.Millisecond)
	d := open(t, p.url(t, url), func(c *Config) { c.Timeout = 5 * time.Second })
	for i := range 3 {
		began := time.Now()
		if err := put(t.Context(), d, fmt.Sprint(i), "1"); err != nil {
			t.Error(err)
		}
		wrote := time.Now()
		get(t, d, fmt.Sprint(i))
		t.Logf("write %v, read %v", wrote.Sub(began).Round(time.Millisecond), time.Since(wrote).Round(time.Millisecond))
	}
}
