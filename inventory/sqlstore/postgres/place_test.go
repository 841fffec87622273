package postgres

import (
	"sync/atomic"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/test/postgres"
)

// The old primary is up again after a failover, takes writes, and comes first in the address. Nothing is stored there, whatever else fails.
func TestPostgresAnOldPrimaryIsRefused(t *testing.T) {
	a := postgres.Start(t, postgres.Options{})
	url := a.Database(t)
	b := a.Standby(t, nil)
	url = at(t, url, a.Address()+","+b.Address())
	var last atomic.Pointer[Place]
	d := open(t, url, func(c *Config) { c.Placed = func(p Place) { last.Store(&p) } })
	if err := put(t.Context(), d, "before", "1"); err != nil {
		t.Fatal(err)
	}
	first := *last.Load()
	time.Sleep(500 * time.Millisecond)
	a.Stop(t, postgres.Immediate)
	b.Promote(t)
	eventually(t, "it writes to the new primary", func() bool { return put(t.Context(), d, "after", "1") == nil })
	if now := *last.Load(); now.System != first.System || now.Timeline <= first.Timeline {
		t.Errorf("the place was %+v and is %+v", first, now)
	}
	a.StartAgain(t)

	end := `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'slipway'`
	ask(t, b, "postgres", end)
	eventually(t, "it writes again", func() bool { return put(t.Context(), d, "again", "1") == nil })
	wantThings(t, open(t, url, nil), map[string]string{"before": "1", "after": "1", "again": "1"}) // one that starts

	b.Stop(t, postgres.Immediate)
	ask(t, a, "postgres", end)
	var err error
	eventually(t, "it does not write to the old one", func() bool { err = put(t.Context(), d, "lost", "1"); return err != nil })
	time.Sleep(outageFor)
	wantError(t, put(t.Context(), d, "lost", "1"), inventory.Unavailable,
		a.Address()+" is an old primary: it writes timeline 1, and timeline 2 has begun elsewhere")
	// One that starts now, and knows of the last time.
	_, err = Open(t.Context(), Config{URL: url, Timeout: 2 * time.Second, Place: *last.Load()})
	wantError(t, err, inventory.Unavailable, a.Address()+" is an old primary")
	b.StartAgain(t)
	eventually(t, "it goes on", func() bool { return put(t.Context(), d, "end", "1") == nil })
	wantThings(t, d, map[string]string{"before": "1", "after": "1", "again": "1", "lost": "", "end": "1"})
	wantThings(t, open(t, at(t, url, a.Address()), nil), map[string]string{"before": "1", "after": "", "again": "", "lost": "", "end": ""})
}

// A standby is promoted, and the old primary goes on: its machine was cut off from those who decide. The connections to it still work.
func TestPostgresAnOldPrimaryThatGoesOnIsLeft(t *testing.T) {
	a := postgres.Start(t, postgres.Options{})
	url := a.Database(t)
	b := a.Standby(t, nil)
	d := open(t, at(t, url, a.Address()+","+b.Address()), nil)
	if err := put(t.Context(), d, "before", "1"); err != nil {
		t.Fatal(err)
	}
	get(t, d, "before")
	time.Sleep(500 * time.Millisecond)
	b.Promote(t)
	if err := d.survey(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := put(t.Context(), d, "after", "1"); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		wantThings(t, d, map[string]string{"before": "1", "after": "1"})
	}
	wantThings(t, open(t, at(t, url, b.Address()), nil), map[string]string{"before": "1", "after": "1"})
	if h, err := d.Health(t.Context()); err != nil || h.Server != b.Address() {
		t.Errorf("the health is of %s: %v", h.Server, err)
	}
}

// Two servers of an address are not copies of each other.
func TestPostgresAnotherClusterIsRefused(t *testing.T) {
	a, other := postgres.Start(t, postgres.Options{}), postgres.Start(t, postgres.Options{})
	url := a.Database(t)
	password, err := Password(url)
	if err != nil {
		t.Fatal(err)
	}
	ask(t, other, "postgres", `CREATE DATABASE `+nameOf(t, url)+` TEMPLATE template0`, `ALTER ROLE slipway PASSWORD '`+password+`'`)
	_, err = Open(t.Context(), Config{URL: at(t, url, a.Address()+","+other.Address()), Timeout: 2 * time.Second})
	wantError(t, err, inventory.Conflict, "the address names two databases: "+a.Address()+" has the system identifier")

	other.Stop(t, postgres.Fast)
	d := open(t, at(t, url, a.Address()+","+other.Address()), nil)
	if err := put(t.Context(), d, "x", "1"); err != nil {
		t.Fatal(err)
	}
	other.StartAgain(t)
	a.Stop(t, postgres.Immediate)
	eventually(t, "it finds out", func() bool { return put(t.Context(), d, "y", "1") != nil })
	time.Sleep(outageFor)
	wantError(t, put(t.Context(), d, "y", "1"), inventory.Unavailable, other.Address()+" is another database")
	// An admin has moved the inventory, and starts Slipway again.
	open(t, at(t, url, other.Address()), func(c *Config) { c.Place = d.placeNow() })
}
