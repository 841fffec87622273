package storetest

import (
	"fmt"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// RunInstances runs the part of the suite about instances and duties. Simulations of several instances have a store with nothing else.
func RunInstances(t *testing.T, open func(t *testing.T) inventory.Store) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s inventory.Store)
	}{
		{"an instance comes back as it was stored", instances},
		{"a heartbeat counts for the run that beats", heartbeats},
		{"a duty comes back, with its epoch", duties},
		{"a failed write leaves duties as they were", dutiesUndone},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

// Instance returns a valid instance number n.
func Instance(n int) inventory.Instance {
	at := Now.Truncate(time.Millisecond)
	return inventory.Instance{
		ID: fmt.Sprintf("INSTANCE%02d", n), Name: fmt.Sprintf("server-%d", n), Run: fmt.Sprintf("RUN%02d", n),
		Addresses: []string{fmt.Sprintf("10.1.0.%d", n), "2001:db8::1"}, Version: "0.1.0",
		Links: []string{fmt.Sprintf("10.1.0.%d:8069", n), "[2001:db8::1]:8069"}, HeartbeatN: int64(n), StartedAt: at, SeenAt: at.Add(time.Second),
	}
}

func instances(t *testing.T, s inventory.Store) {
	first, second := Instance(1), Instance(2)
	second.IsDrained, second.Addresses, second.DrainedAt = true, nil, second.SeenAt.Add(time.Minute)
	second.Links, second.CutOff, second.CutOffAt = nil, "no answer", second.SeenAt
	write(t, s, func(tx inventory.Tx) error {
		if err := tx.SaveInstance(second); err != nil {
			return err
		}
		return tx.SaveInstance(first)
	})
	read(t, s, func(tx inventory.Tx) error {
		all, err := tx.ListInstances()
		same(t, "instances", []inventory.Instance{first, second}, all)
		if err != nil {
			return err
		}
		got, err := tx.FindInstance(second.ID)
		same(t, "by id", second, got)
		if err != nil {
			return err
		}
		got, err = tx.FindInstanceByName(first.Name)
		same(t, "by name", first, got)
		if err != nil {
			return err
		}
		_, err = tx.FindInstance("nothing")
		expect(t, err, inventory.NotFound, "instance nothing")
		_, err = tx.FindInstanceByName(first.ID)
		expect(t, err, inventory.NotFound, "instance "+first.ID)
		return nil
	})
	other := Instance(3)
	other.Name = first.Name
	refuses(t, s, inventory.Conflict, "instance "+first.Name, func(tx inventory.Tx) error { return tx.SaveInstance(other) })
	first.Name, first.Run, first.IsDrained, first.HeartbeatN = "renamed", "", true, 99
	first.Version, first.Addresses = "0.2.0", []string{"10.9.0.9"}
	first.StartedAt, first.SeenAt = first.StartedAt.Add(time.Hour), first.SeenAt.Add(2*time.Hour)
	write(t, s, func(tx inventory.Tx) error { return tx.SaveInstance(first) })
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindInstance(first.ID)
		same(t, "overwritten", first, got)
		return err
	})
	write(t, s, func(tx inventory.Tx) error {
		return tx.SaveDuty(inventory.Duty{Name: inventory.DutyEngine, Holder: first.ID, Epoch: 1, SinceAt: first.StartedAt})
	})
	refuses(t, s, inventory.Conflict, "instance holds duty engine", func(tx inventory.Tx) error { return tx.DeleteInstance(first.ID) })
	write(t, s, func(tx inventory.Tx) error { return tx.DeleteInstance(second.ID) })
	refuses(t, s, inventory.NotFound, "instance", func(tx inventory.Tx) error { return tx.DeleteInstance(second.ID) })
}

func heartbeats(t *testing.T, s inventory.Store) {
	i := Instance(1)
	at := Now.Truncate(time.Millisecond).Add(time.Minute)
	write(t, s, func(tx inventory.Tx) error { return tx.SaveInstance(i) })
	write(t, s, func(tx inventory.Tx) error { return tx.Heartbeat(i.ID, i.Run, at) })
	i.HeartbeatN, i.SeenAt = i.HeartbeatN+1, at
	write(t, s, func(tx inventory.Tx) error { return tx.Heartbeat(i.ID, "another", at.Add(time.Hour)) }) // changes nothing
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindInstance(i.ID)
		same(t, "after a heartbeat", i, got)
		if err != nil {
			return err
		}
		first, err := tx.DatabaseTime()
		if err != nil {
			return err
		}
		second, err := tx.DatabaseTime()
		if err == nil && (first.IsZero() || second.Before(first)) {
			t.Errorf("the time of the database is %v, then %v", first, second)
		}
		return err
	})
}

func duties(t *testing.T, s inventory.Store) {
	at := Now.Truncate(time.Millisecond)
	engine := inventory.Duty{Name: inventory.DutyEngine, Holder: Instance(1).ID, Epoch: 7, SinceAt: at, Reason: "instance b stopped"}
	engine.Former = "b"
	network := inventory.Duty{Name: inventory.NetworkDuty("rack1"), Epoch: 1, SinceAt: at.Add(time.Second)}
	refuses(t, s, inventory.Invalid, "duty engine instance "+engine.Holder, func(tx inventory.Tx) error { return tx.SaveDuty(engine) })
	write(t, s, func(tx inventory.Tx) error {
		if err := tx.SaveInstance(Instance(1)); err != nil {
			return err
		}
		if err := tx.SaveDuty(network); err != nil {
			return err
		}
		return tx.SaveDuty(engine)
	})
	read(t, s, func(tx inventory.Tx) error {
		all, err := tx.ListDuties()
		same(t, "duties", []inventory.Duty{engine, network}, all)
		if err != nil {
			return err
		}
		got, err := tx.FindDuty(network.Name)
		same(t, "duty", network, got)
		if err != nil {
			return err
		}
		_, err = tx.FindDuty("nothing")
		expect(t, err, inventory.NotFound, "duty nothing")
		return nil
	})
	engine.Holder, engine.Epoch, engine.SinceAt, engine.Reason, engine.Former = "", 8, at.Add(time.Hour), "instance a was drained", "a"
	write(t, s, func(tx inventory.Tx) error { return tx.SaveDuty(engine) })
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindDuty(engine.Name)
		same(t, "overwritten", engine, got)
		return err
	})
}

func dutiesUndone(t *testing.T, s inventory.Store) {
	i := Instance(1)
	write(t, s, func(tx inventory.Tx) error { return tx.SaveInstance(i) })
	refuses(t, s, inventory.Invalid, "enough", func(tx inventory.Tx) error {
		if err := tx.Heartbeat(i.ID, i.Run, Now); err != nil {
			return err
		}
		if err := tx.SaveDuty(inventory.Duty{Name: inventory.DutyEngine, Holder: i.ID, Epoch: 1}); err != nil {
			return err
		}
		return inventory.Errorf(inventory.Invalid, "enough")
	})
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindInstance(i.ID)
		same(t, "after an undone heartbeat", i, got)
		if err != nil {
			return err
		}
		all, err := tx.ListDuties()
		same(t, "duties", []inventory.Duty(nil), all)
		return err
	})
}
