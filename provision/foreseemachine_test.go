package provision

import (
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/foresight"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
)

func TestTheEndOfAMachineIsForeseenAsItComes(t *testing.T) {
	for _, tc := range []struct {
		name string
		m    inventory.Machine
		host func(*inventory.Host)
		want string
	}{
		{"the pool's way", inventory.Machine{}, nil, "switches off host r1, wipes it (quick) and makes it free; all data on its disks is lost"},
		{"its own way", inventory.Machine{Clean: inventory.CleanSecure}, nil, "switches off host r1, wipes it (secure) and makes it free; all data on its disks is lost"},
		{"kept disks of the host", inventory.Machine{}, func(h *inventory.Host) { h.IsRetained = true }, "switches off host r1; its disks stay as they are, and no other machine takes the host before somebody wipes it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLife(t)
			s := l.add("r1", true)
			tc.m.Name = "web"
			l.create(tc.m)
			l.until("it runs", l.phase("web", inventory.MachineRunning))
			h := s.host()
			if tc.host != nil {
				tc.host(&h)
				l.write(func(tx inventory.Tx) error { return tx.UpdateHost(&h, l.clock) })
			}
			e, err := l.engine.ForeseeMachine(t.Context(), "web", "delete")
			l.must(err)
			if got := foresight.End(e); got != tc.want {
				t.Errorf("says %q\nwant %q", got, tc.want)
			}
			if m, _ := l.find("web"); m.Phase != inventory.MachineRunning {
				t.Fatal("it was only asked")
			}
			_, err = l.engine.DeleteMachine(t.Context(), "web", false, ledger.By("a test"))
			l.must(err)
			l.read(func(tx inventory.Tx) error {
				op, err := tx.FindOpenOperation(h.ID)
				if p := operation.ParamsOf(&op); p.Clean != e.Mode || p.StaysDirty != e.StaysDirty {
					t.Errorf("it comes as %s, %v and was foreseen as %s, %v", p.Clean, p.StaysDirty, e.Mode, e.StaysDirty)
				}
				return err
			})
		})
	}
}

func TestWhatIsRefusedIsNotForeseen(t *testing.T) {
	l := newLife(t)
	s := l.add("r1", true)
	l.create(inventory.Machine{Name: "web"})
	l.until("it runs", l.phase("web", inventory.MachineRunning))
	h := s.host()
	h.IsProtected = true
	l.write(func(tx inventory.Tx) error { return tx.UpdateHost(&h, l.clock) })
	for verb, want := range map[string]bool{"delete": true, "reinstall": true, "replace": true, "force": false, "power-cycle": false} {
		if _, err := l.engine.ForeseeMachine(t.Context(), "web", verb); inventory.IsKind(err, inventory.Forbidden) != want {
			t.Errorf("%s of a protected host: %v", verb, err)
		}
	}
}
