package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ref"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

func TestStatementsThatChangeSettingsAreKnown(t *testing.T) {
	for query, want := range map[string]bool{
		profileTable.insert: true, profileTable.update: true, profileTable.delete: true, imageTable.insert: true, insertImageFileSQL: true,
		deleteImageFilesSQL: true, layerTable.insert: true, layerTable.update: true, layerTable.delete: true, subnetTable.insert: true, ipv4.insertRange: true,
		ipv6.insertRange: true, ipv4.deleteRanges: true, acceptRules.insert: true, secrets.insert: true, secrets.update: true,
		joinTargets.insert: true, joinTargets.delete: true, pools.insert: true, pools.update: true, pools.delete: true,
		clusters.insert: true, clusters.update: true, clusters.delete: true, noteClusterSQL: true, saveDutySQL: true,
		profileTable.find: false, subnetTable.list: false, addEventSQL: false, saveSessionSQL: false, updateHostKeys.Query: false, deleteHostSQL: false,
		ipv4.saveLease: false, saveJoinTokenSQL: false, `BEGIN IMMEDIATE`: false, `COMMIT`: false,
	} {
		if got := database.Changes(query, settingTables); got != want {
			t.Errorf("%t: %.60s", got, query)
		}
	}
}

func settingsStore(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{Path: filepath.Join(t.TempDir(), "slipway.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	must(t, s.Write(t.Context(), func(tx inventory.Tx) error {
		if err := tx.Images().Create(&inventory.Image{Name: "a", Arch: inventory.X8664, KernelArgs: []string{"quiet"}}, time.Now()); err != nil {
			return err
		}
		return tx.Profiles().Create(&inventory.Profile{Name: "p", Image: "a", Parameters: map[string]string{"n": "0"}}, time.Now())
	}))
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func setN(tx inventory.Tx, n int) error {
	p, err := tx.Profiles().Find("p")
	if err != nil {
		return err
	}
	p.Parameters = map[string]string{"n": fmt.Sprint(n)}
	if err := tx.Profiles().Update(&p, time.Now()); err != nil {
		return err
	}
	return tx.SaveSession(inventory.BootSession{ID: "s", Reason: fmt.Sprint(n)}) // what no memory keeps
}

func TestWhatIsReadOfSettingsIsTheCallersOwn(t *testing.T) {
	s := settingsStore(t)
	for range 2 {
		must(t, s.Write(t.Context(), func(tx inventory.Tx) error {
			p, err := tx.Profiles().Find("p")
			if err != nil || p.Parameters["n"] != "0" {
				t.Errorf("%v, %v", p.Parameters, err)
			}
			p.Parameters["n"] = "spoilt"
			all, err := tx.Profiles().List(inventory.Page{})
			if err != nil || all[0].Parameters["n"] != "0" {
				t.Errorf("%v, %v", all, err)
			}
			all[0].Parameters["n"] = "spoilt"
			i, err := tx.Images().Find("a")
			if err != nil || !slices.Equal(i.KernelArgs, []string{"quiet"}) {
				t.Errorf("%v, %v", i.KernelArgs, err)
			}
			i.KernelArgs[0] = "spoilt"
			return nil
		}))
	}
	if n := s.settings.Len(); n != 3 {
		t.Errorf("%d things are kept", n)
	}
}

func TestAChangeOfSettingsIsSeenAtOnceAndOneThatIsUndoneNever(t *testing.T) {
	s := settingsStore(t)
	read := func(tx inventory.Tx) string {
		p, err := tx.Profiles().Find("p")
		must(t, err)
		return p.Parameters["n"]
	}
	failed := errors.New("on purpose")
	err := s.Write(t.Context(), func(tx inventory.Tx) error {
		read(tx)
		must(t, setN(tx, 1))
		if got := read(tx); got != "1" {
			t.Errorf("its own change reads %s", got)
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}
	must(t, s.Write(t.Context(), func(tx inventory.Tx) error {
		if got := read(tx); got != "0" {
			t.Errorf("an undone change reads %s", got)
		}
		if _, err := tx.Profiles().Find("q"); !inventory.IsKind(err, inventory.NotFound) {
			t.Error(err)
		}
		return nil
	}))
	must(t, s.Write(t.Context(), func(tx inventory.Tx) error {
		return tx.Profiles().Create(&inventory.Profile{Name: "q", Image: "a"}, time.Now())
	}))
	must(t, s.Read(t.Context(), func(tx inventory.Tx) error {
		_, err := tx.Profiles().Find("q")
		return err
	}))
}

// TestAReadSeesOneStateOfSettingsAndTheRest changes a profile and a session together while many read both.
func TestAReadSeesOneStateOfSettingsAndTheRest(t *testing.T) {
	s := settingsStore(t)
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for i := range 4 {
		readers.Go(func() {
			for ctx.Err() == nil {
				err := s.Read(ctx, func(tx inventory.Tx) error {
					var profile, session string
					look := []func() error{
						func() error { p, err := tx.Profiles().Find("p"); profile = p.Parameters["n"]; return err },
						func() error { b, err := tx.FindSession("s"); session = b.Reason; return err },
					}
					if i%2 == 1 {
						slices.Reverse(look)
					}
					for _, l := range look {
						if err := l(); err != nil {
							return nil // not there yet
						}
					}
					if profile != session {
						t.Errorf("profile %s beside session %s", profile, session)
					}
					return nil
				})
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	for n := range 300 {
		must(t, s.Write(t.Context(), func(tx inventory.Tx) error { return setN(tx, n) }))
	}
	stop()
	readers.Wait()
}

func TestAReferenceHasThePoolsOfItsMoment(t *testing.T) {
	s := settingsStore(t)
	now := time.Now()
	must(t, s.Write(t.Context(), func(tx inventory.Tx) error {
		if err := tx.Pools().Create(&inventory.Pool{Name: "b"}, now); err != nil {
			return err
		}
		m := inventory.Machine{Name: "m", UID: "u", Profile: "p", Phase: inventory.MachinePending}
		h := inventory.Host{ID: "h", Name: "h", State: inventory.Available}
		steps := []struct {
			do   func() error
			ref  inventory.Ref
			want string
		}{
			{func() error { return tx.CreateMachine(&m, now) }, inventory.MachineRef("m"), "default"},
			{func() error { m.Pool = "b"; return tx.UpdateMachine(&m, now) }, inventory.MachineRef("m"), "b"},
			{func() error { return tx.DeleteMachine("m") }, inventory.MachineRef("m"), ref.NoPool},
			{func() error { return tx.CreateHost(&h, now) }, inventory.HostRef("h"), "b,default"},
			{func() (err error) { h, err = tx.FindHost("h"); return err }, inventory.HostRef("h"), "b,default"},
			{func() error { return tx.DeleteHost("h") }, inventory.HostRef("h"), ref.NoPool},
		}
		for i, x := range steps {
			if err := x.do(); err != nil {
				return err
			}
			e := inventory.Event{At: now, Kind: "test", Detail: x.ref.Name, Refs: []inventory.Ref{x.ref}}
			if err := tx.AddEvent(&e); err != nil {
				return err
			}
			if len(e.Refs) != 1 || e.Refs[0].Pools != x.want {
				t.Errorf("step %d: %+v, want pools %q", i, e.Refs, x.want)
			}
		}
		return nil
	}))
}
