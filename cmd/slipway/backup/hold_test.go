package backup

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/moving"
	"slipway.dev/slipway/provision/duty"
	"slipway.dev/slipway/test/postgres"
)

// TestNothingGoesOnByItselfOnARestoredDatabase: what is free or under way in a backup may be something else by now.
func TestNothingGoesOnByItselfOnARestoredDatabase(t *testing.T) {
	cases := []struct {
		name   string
		host   inventory.Host
		op     inventory.OperationKind
		isHeld bool
	}{
		{"heard", inventory.Host{State: inventory.Discovered}, "", false},
		{"looked-at", inventory.Host{State: inventory.Inspecting}, inventory.OpInspect, true},
		{"free", inventory.Host{State: inventory.Available}, "", true},
		{"installing", inventory.Host{State: inventory.Installing}, inventory.OpInstall, true},
		{"running", inventory.Host{State: inventory.Active}, "", false},
		{"running-switched", inventory.Host{State: inventory.Active}, inventory.OpPower, true},
		{"running-armed", inventory.Host{State: inventory.Active, IsArmed: true}, "", true},
		{"adopted", inventory.Host{State: inventory.Active, IsAdopted: true}, "", false},
		{"wiping", inventory.Host{State: inventory.Cleaning}, inventory.OpClean, true},
		{"quarantined", inventory.Host{State: inventory.Failed}, "", true},
		{"kept", inventory.Host{State: inventory.Available, InMaintenance: true}, "", false},
	}
	dir, to := t.TempDir(), t.TempDir()
	s := seeded(t, dir)
	err := s.Write(t.Context(), func(tx inventory.Tx) error {
		for i, c := range cases {
			h := c.host
			h.ID, h.Name, h.StateSinceAt = inventory.HostID(fmt.Sprintf("00000000-0000-7000-8000-%012d", i)), c.name, now
			h.NICs = []inventory.NIC{{MAC: inventory.MAC(fmt.Sprintf("52:54:00:00:00:%02x", i))}}
			if err := tx.CreateHost(&h, now); err != nil {
				return err
			}
			if c.op == "" {
				continue
			}
			op := inventory.Operation{ID: fmt.Sprintf("01JD000000%016d", i), Kind: c.op, HostID: h.ID, State: inventory.OpRunning, Step: inventory.StepPower, AttemptN: 1, StartedAt: now, StepAt: now}
			if err := tx.CreateOperation(&op, now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	file := taken(t, s, dir)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := Restore(t.Context(), bytes.NewReader(file), Options{DataDir: to, Now: now.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	restored := openStore(t, to)
	defer restored.Close()
	err = restored.Read(t.Context(), func(tx inventory.Tx) error {
		for _, c := range cases {
			h, err := tx.FindHostByName(c.name)
			if err != nil {
				return err
			}
			if c.isHeld {
				want++
			}
			if h.InMaintenance != (c.isHeld || c.host.InMaintenance) || h.State != c.host.State {
				t.Errorf("%s is %s, in maintenance %v", c.name, h.State, h.InMaintenance)
			}
			events, err := tx.ListEvents(inventory.EventFilter{HostID: h.ID}, 0, 10)
			if err != nil {
				return err
			}
			if said := len(events) == 1 && strings.Contains(events[0].Detail, "from a backup of 2026-11-22"); said != c.isHeld {
				t.Errorf("%s: the timeline says %+v", c.name, events)
			}
		}
		return nil
	})
	if err != nil || out.HeldN != want {
		t.Errorf("%d held, want %d: %v", out.HeldN, want, err)
	}
}

// TestPostgreSQLAnInstanceFromBeforeARestoreWritesNothing restores the backup that was made while the same instance had the same duties.
func TestPostgreSQLAnInstanceFromBeforeARestoreWritesNothing(t *testing.T) {
	server := moving.Database{URL: postgres.Shared(t).Database(t)}
	dir := t.TempDir()
	s := onServer(t, server)
	lives := duty.New(duty.Config{Store: s, Instance: inventory.Instance{ID: "id-of-a", Name: "a"}})
	lives.Want(inventory.DutyEngine)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	if err := lives.Register(ctx); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- lives.Run(ctx) }()
	for !lives.Holds(inventory.DutyEngine) {
		time.Sleep(10 * time.Millisecond)
	}
	epoch, _ := lives.Epoch(inventory.DutyEngine)
	file := taken(t, s, dir)
	// The duty moves on after the backup.
	if err := s.Write(t.Context(), func(tx inventory.Tx) error {
		return tx.SaveDuty(inventory.Duty{Name: "network/later", Epoch: 5000, SinceAt: now})
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil { // it is cut off, and lives on
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), bytes.NewReader(file), Options{DataDir: dir, Server: server, Force: true, Now: now}); err != nil {
		t.Fatal(err)
	}
	restored := onServer(t, server)
	defer restored.Close()
	err := restored.Read(t.Context(), func(tx inventory.Tx) error {
		if err := lives.Check(tx, inventory.DutyEngine, epoch); !inventory.IsKind(err, inventory.Conflict) {
			t.Errorf("it may write under its duty: %v", err)
		}
		a, err := tx.FindInstance("id-of-a")
		if err != nil || a.Run != "" { // its next sign of life finds that it has lost its place
			t.Errorf("%+v: %v", a, err)
		}
		duties, err := tx.ListDuties()
		for _, d := range duties {
			if d.Holder != "" || d.Epoch <= epoch || d.Name == "network/later" && d.Epoch <= 5000 {
				t.Errorf("%+v", d)
			}
		}
		if len(duties) != 2 {
			t.Errorf("%d duties", len(duties))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	stop()
	<-ended
}
