package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// Operation returns a valid open operation number n, on host number n.
func Operation(n int) inventory.Operation {
	return inventory.Operation{
		ID: fmt.Sprintf("01OPERATION%06d", n), Kind: inventory.OpInstall, HostID: Host(n).ID, Pool: inventory.DefaultPool,
		Step: inventory.StepBudget, State: inventory.OpRunning, AttemptN: 1,
	}
}

func createOperations(t *testing.T, s inventory.Store, operations ...inventory.Operation) {
	t.Helper()
	write(t, s, func(tx inventory.Tx) error {
		for _, o := range operations {
			if err := tx.CreateOperation(&o, Now); err != nil {
				return err
			}
		}
		return nil
	})
}

func operationRoundTrip(t *testing.T, s inventory.Store) {
	at := Now.Truncate(time.Millisecond)
	bare := Operation(1)
	write(t, s, func(tx inventory.Tx) error { return tx.CreateOperation(&bare, Now) })
	if bare.Version != 1 || !bare.StartedAt.Equal(at) || !bare.StepAt.Equal(at) || !bare.UpdatedAt.Equal(at) || !bare.EndedAt.IsZero() {
		t.Errorf("create filled in %+v", bare)
	}
	o := Operation(2)
	o.Machine, o.MachineUID, o.ClaimID, o.State = "web", "01M", "01C", inventory.OpWaiting
	o.Reason, o.Hint, o.Task, o.TaskN = "waits", "wait", "write", 3
	o.Progress = inventory.Progress{Detail: "sda", Bytes: 1 << 40, Total: 1 << 41, BytesPerSecond: 1.5}
	o.Params, o.Result, o.By = json.RawMessage(`{"a": "<b>"}`), json.RawMessage(`[]`), "token admin"
	o.StartedAt, o.GrantedAt, o.StepAt = at.Add(time.Second), at.Add(2*time.Second), at.Add(3*time.Second)
	o.DeadlineAt, o.NextAt = at.Add(4*time.Second), at.Add(5*time.Second)
	write(t, s, func(tx inventory.Tx) error { return tx.CreateOperation(&o, Now) })
	read(t, s, func(tx inventory.Tx) error {
		for _, want := range []inventory.Operation{bare, o} {
			got, err := tx.FindOperation(want.ID)
			same(t, "operation", want, got)
			if err != nil {
				return err
			}
			got, err = tx.FindOpenOperation(want.HostID)
			same(t, "open operation", want, got)
			if err != nil {
				return err
			}
		}
		_, err := tx.FindOperation("nothing")
		expect(t, err, inventory.NotFound, "operation nothing")
		_, err = tx.FindOpenOperation("nobody")
		expect(t, err, inventory.NotFound, "operation nobody")
		return nil
	})
	o.Step, o.State, o.Progress, o.Params = inventory.StepRest, inventory.OpDone, inventory.Progress{}, nil
	later := Now.Add(time.Hour)
	write(t, s, func(tx inventory.Tx) error { return tx.UpdateOperation(&o, later) })
	if want := later.Truncate(time.Millisecond); o.Version != 2 || !o.UpdatedAt.Equal(want) || !o.EndedAt.Equal(want) {
		t.Errorf("the end filled in version %d, updatedAt %v, endedAt %v", o.Version, o.UpdatedAt, o.EndedAt)
	}
	write(t, s, func(tx inventory.Tx) error { return tx.UpdateOperation(&o, later.Add(time.Hour)) })
	if !o.EndedAt.Equal(later.Truncate(time.Millisecond)) {
		t.Errorf("a later change moved the end to %v", o.EndedAt)
	}
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindOperation(o.ID)
		same(t, "ended operation", o, got)
		_, open := tx.FindOpenOperation(o.HostID)
		expect(t, open, inventory.NotFound, "operation")
		return err
	})
	o.Version = 2
	refuses(t, s, inventory.Conflict, "operation 3 2", func(tx inventory.Tx) error { return tx.UpdateOperation(&o, Now) })
	gone := Operation(9)
	gone.Version = 1
	refuses(t, s, inventory.NotFound, "operation", func(tx inventory.Tx) error { return tx.UpdateOperation(&gone, Now) })
	broken := Operation(9)
	broken.Params = json.RawMessage(`{`)
	refuses(t, s, inventory.Internal, "JSON", func(tx inventory.Tx) error { return tx.CreateOperation(&broken, Now) })
}

func oneOperation(t *testing.T, s inventory.Store) {
	createHosts(t, s, Host(1))
	createOperations(t, s, Operation(1))
	second := Operation(2)
	second.HostID, second.Kind = Host(1).ID, inventory.OpPower
	refuses(t, s, inventory.Conflict, "host-00001 01OPERATION000001 install", func(tx inventory.Tx) error { return tx.CreateOperation(&second, Now) })
	again := Operation(1)
	again.HostID = Host(2).ID
	refuses(t, s, inventory.Conflict, "01OPERATION000001", func(tx inventory.Tx) error { return tx.CreateOperation(&again, Now) })
	second.State = inventory.OpCancelled
	write(t, s, func(tx inventory.Tx) error { return tx.CreateOperation(&second, Now) }) // ended ones are many
	second.State = inventory.OpRunning
	refuses(t, s, inventory.Conflict, "host-00001 01OPERATION000001", func(tx inventory.Tx) error { return tx.UpdateOperation(&second, Now) })
	write(t, s, func(tx inventory.Tx) error {
		o, err := tx.FindOperation("01OPERATION000001")
		if err != nil {
			return err
		}
		o.State = inventory.OpFailed
		if err := tx.UpdateOperation(&o, Now); err != nil {
			return err
		}
		return tx.UpdateOperation(&second, Now)
	})
	// What is being done with a host is known at once to the transaction that began it, or took it up again.
	write(t, s, func(tx inventory.Tx) error {
		o := Operation(50)
		o.HostID = "begun"
		for _, begin := range []func() error{
			func() error { return tx.CreateOperation(&o, Now) },
			func() error { o.State = inventory.OpRunning; return tx.UpdateOperation(&o, Now) },
		} {
			_, err := tx.FindOpenOperation(o.HostID)
			expect(t, err, inventory.NotFound, "operation")
			if err := begin(); err != nil {
				return err
			}
			if _, err := tx.FindOpenOperation(o.HostID); err != nil {
				return err
			}
			o.State = inventory.OpDone
			if err := tx.UpdateOperation(&o, Now); err != nil {
				return err
			}
		}
		return nil
	})
	var won atomic.Int32
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			o := Operation(100 + n)
			o.HostID = "contended"
			if err := s.Write(t.Context(), func(tx inventory.Tx) error { return tx.CreateOperation(&o, Now) }); err == nil {
				won.Add(1)
			}
		})
	}
	all.Wait()
	same(t, "operations on one host", int32(1), won.Load())
}

func operationIDs(operations []inventory.Operation) (ids []string) {
	for _, o := range operations {
		ids = append(ids, o.ID[len(o.ID)-1:])
	}
	return ids
}

// operationLists has ten operations, started a minute after each other but 4 and 5, even ones ended; 0 to 4 are on host
// 0 and 5 to 9 on hosts of their own, but only one can be open there.
func operationLists(t *testing.T, s inventory.Store) {
	for n := range 10 {
		o := Operation(n)
		o.StartedAt = Now.Add(time.Duration(n) * time.Minute)
		if n == 5 {
			o.StartedAt = Now.Add(4 * time.Minute)
		}
		if n < 5 {
			o.HostID, o.Machine = Host(0).ID, "web"
		}
		if n != 3 && n < 5 || n%2 == 0 {
			o.State = inventory.OpDone
		}
		if n > 7 {
			o.Kind = inventory.OpClean
		}
		createOperations(t, s, o)
	}
	last := func(n int) string { return Operation(n).ID }
	read(t, s, func(tx inventory.Tx) error {
		for _, c := range []struct {
			filter inventory.OperationFilter
			page   inventory.Page
			want   []string
		}{
			{inventory.OperationFilter{}, inventory.Page{Limit: 3}, []string{"9", "8", "7"}},
			{inventory.OperationFilter{}, inventory.Page{After: last(5), Limit: 2}, []string{"4", "3"}},
			{inventory.OperationFilter{HostID: Host(0).ID}, inventory.Page{After: last(4)}, []string{"3", "2", "1", "0"}},
			{inventory.OperationFilter{Machine: "web", IsOpen: true}, inventory.Page{}, []string{"3"}},
			{inventory.OperationFilter{Kind: inventory.OpClean}, inventory.Page{}, []string{"9", "8"}},
			{inventory.OperationFilter{IsOpen: true}, inventory.Page{}, []string{"9", "7", "5", "3"}},
			{inventory.OperationFilter{IsOpen: true}, inventory.Page{After: last(7), Limit: 1}, []string{"5"}},
			{inventory.OperationFilter{HostID: "nobody"}, inventory.Page{}, nil},
		} {
			got, err := tx.ListOperations(c.filter, c.page)
			if err != nil {
				return err
			}
			same(t, fmt.Sprintf("operations by %+v, %+v", c.filter, c.page), c.want, operationIDs(got))
		}
		_, err := tx.ListOperations(inventory.OperationFilter{}, inventory.Page{After: "gone"})
		expect(t, err, inventory.NotFound, "operation gone")
		return nil
	})
}

func dueOperations(t *testing.T, s inventory.Store) {
	read(t, s, func(tx inventory.Tx) error {
		next, err := tx.NextDueAt()
		if !next.IsZero() {
			t.Errorf("an empty store has something to do at %v", next)
		}
		return err
	})
	for n, after := range []time.Duration{3, 1, 2, 2, -1, 9, 0} {
		o := Operation(n)
		if o.NextAt = Now.Add(after * time.Minute); after == 0 {
			o.NextAt = time.Time{} // nobody looks at it by itself
		}
		if after == -1 {
			o.State = inventory.OpDone
		}
		createOperations(t, s, o)
	}
	due := func(now time.Time, limit int, want ...string) {
		t.Helper()
		read(t, s, func(tx inventory.Tx) error {
			got, err := tx.ListDueOperations(now, limit)
			same(t, "due operations", want, operationIDs(got))
			return err
		})
	}
	due(Now, 0)
	due(Now.Add(time.Minute), 0, "1") // at its very moment
	due(Now.Add(3*time.Minute), 0, "1", "2", "3", "0")
	due(Now.Add(time.Hour), 3, "1", "2", "3")
	next := func(want time.Time) {
		t.Helper()
		read(t, s, func(tx inventory.Tx) error {
			got, err := tx.NextDueAt()
			same(t, "next due", want.Truncate(time.Millisecond), got)
			return err
		})
	}
	next(Now.Add(time.Minute))
	createProfile(t, s)
	m := Machine(1)
	m.NextAt = Now.Add(30 * time.Second)
	createMachines(t, s, m)
	next(m.NextAt)
	write(t, s, func(tx inventory.Tx) error {
		m.Version, m.NextAt = 1, Now.Add(time.Hour)
		return tx.UpdateMachine(&m, Now)
	})
	next(Now.Add(time.Minute))
	write(t, s, func(tx inventory.Tx) error {
		o, err := tx.FindOperation(Operation(1).ID)
		if err != nil {
			return err
		}
		o.NextAt = Now.Add(10 * time.Minute)
		return tx.UpdateOperation(&o, Now)
	})
	next(Now.Add(2 * time.Minute))
	due(Now.Add(time.Hour), 0, "2", "3", "0", "5", "1")
}

func countOperations(t *testing.T, s inventory.Store) {
	for n, c := range []struct {
		kind  inventory.OperationKind
		pool  string
		step  inventory.Step
		state inventory.OperationState
	}{
		{inventory.OpInstall, "a", inventory.StepBudget, inventory.OpWaiting},
		{inventory.OpInstall, "a", inventory.StepWrite, inventory.OpRunning},
		{inventory.OpInstall, "a", inventory.StepPreBoot, inventory.OpWaiting},
		{inventory.OpReinstall, "a", inventory.StepWrite, inventory.OpRunning},
		{inventory.OpInstall, "b", inventory.StepWrite, inventory.OpRunning},
		{inventory.OpClean, "a", inventory.StepWipe, inventory.OpDone},
		{inventory.OpClean, "b", inventory.StepWipe, inventory.OpRunning},
	} {
		o := Operation(n)
		o.Kind, o.Pool, o.Step, o.State = c.kind, c.pool, c.step, c.state
		if c.step != inventory.StepBudget {
			o.GrantedAt = Now.Add(time.Duration(n) * time.Minute)
		}
		createOperations(t, s, o)
	}
	read(t, s, func(tx inventory.Tx) error {
		for _, c := range []struct {
			pool  string
			kinds []inventory.OperationKind
			n     int
			last  int // the operation that was granted last, -1 for none
		}{
			{"a", []inventory.OperationKind{inventory.OpInstall}, 2, 2},
			{"a", []inventory.OperationKind{inventory.OpInstall, inventory.OpReinstall}, 3, 3},
			{"a", []inventory.OperationKind{inventory.OpClean, inventory.OpRelease}, 0, 5},
			{"b", []inventory.OperationKind{inventory.OpInstall}, 1, 4},
			{"", []inventory.OperationKind{inventory.OpInstall}, 3, 4},
			{"a", nil, 3, 5},
			{"", nil, 5, 6},
			{"c", []inventory.OperationKind{inventory.OpInstall}, 0, -1},
			{"a", []inventory.OperationKind{inventory.OpPower}, 0, -1},
		} {
			n, last, err := tx.CountOpenOperations(c.pool, c.kinds...)
			if err != nil {
				return err
			}
			about := fmt.Sprintf("pool %q, kinds %v: ", c.pool, c.kinds)
			same(t, about+"count", c.n, n)
			want := time.Time{}
			if c.last >= 0 {
				want = Now.Add(time.Duration(c.last) * time.Minute).Truncate(time.Millisecond)
			}
			same(t, about+"last grant", want, last)
		}
		return nil
	})
}

// forgettingLife ends an operation and inspects two hosts on each of twenty days, one of which is inspected three times
// only.
func forgettingLife(t *testing.T, s inventory.Store) {
	createHosts(t, s, Host(1), Host(2))
	day := func(n int) time.Time { return Now.Truncate(time.Millisecond).Add(time.Duration(n) * 24 * time.Hour) }
	for n := range 20 {
		o := Operation(n)
		o.HostID = Host(1).ID
		if o.State = inventory.OpDone; n == 0 {
			o.HostID, o.State = "other", inventory.OpRunning // without end
		}
		write(t, s, func(tx inventory.Tx) error {
			if err := tx.CreateOperation(&o, day(n)); err != nil {
				return err
			}
			r := inventory.Report{ID: o.ID + "/wipe", HostID: Host(1).ID, Kind: "wipe", Body: json.RawMessage(`[1]`), CreatedAt: day(n)}
			if err := tx.SaveReport(r); err != nil {
				return err
			}
			if n < 3 {
				if err := tx.SaveInspection(&inventory.Inspection{HostID: Host(2).ID, At: day(n)}); err != nil {
					return err
				}
			}
			return tx.SaveInspection(&inventory.Inspection{HostID: Host(1).ID, At: day(n)})
		})
	}
	forget := func(before time.Time, limit, want int) {
		t.Helper()
		write(t, s, func(tx inventory.Tx) error {
			n, err := tx.ForgetHistory(before, limit)
			same(t, "rows forgotten", want, n)
			return err
		})
	}
	forget(day(0), 100, 0)
	forget(day(3), 100, 5)  // operations 1 and 2, inspections 1 to 3
	forget(day(30), 4, 8)   // a piece of each
	forget(day(30), 90, 16) // operations 7 to 19; of the ten old inspections three are left
	forget(day(30), 90, 0)
	read(t, s, func(tx inventory.Tx) error {
		operations, err := tx.ListOperations(inventory.OperationFilter{}, inventory.Page{})
		same(t, "operations left", []string{"0"}, operationIDs(operations))
		if err != nil {
			return err
		}
		reports, err := tx.ListReports(Host(1).ID, "", 0)
		same(t, "reports left", 20, len(reports))
		if err != nil {
			return err
		}
		for host, want := range map[inventory.HostID][]int{
			Host(1).ID: {11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, Host(2).ID: {1, 2, 3},
		} {
			left, err := tx.ListInspections(host, 0)
			if err != nil {
				return err
			}
			var ns []int
			for _, i := range slices.Backward(left) {
				ns = append(ns, i.N)
			}
			same(t, "inspections left", want, ns)
		}
		return nil
	})
}
