package provision

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
)

// tallied counts what a transaction is asked for machine by machine, or holder by holder.
type tallied struct {
	inventory.Tx
	n *int
}

func (t tallied) FindHost(id inventory.HostID) (inventory.Host, error) {
	*t.n++
	return t.Tx.FindHost(id)
}

func (t tallied) FindMachine(name string) (inventory.Machine, error) {
	*t.n++
	return t.Tx.FindMachine(name)
}

func (t tallied) FindMachineByUID(uid string) (inventory.Machine, error) {
	*t.n++
	return t.Tx.FindMachineByUID(uid)
}

func (t tallied) ListMachines(f inventory.MachineFilter, p inventory.Page) ([]inventory.Machine, error) {
	all, err := t.Tx.ListMachines(f, p)
	*t.n += len(all)
	return all, err
}

func (t tallied) ListHosts(f inventory.HostFilter, p inventory.Page) ([]inventory.Host, error) {
	all, err := t.Tx.ListHosts(f, p)
	*t.n += len(all)
	return all, err
}

func (t tallied) FindHoldings(k inventory.HoldingKind, value string) ([]inventory.Holding, error) {
	*t.n++
	return t.Tx.FindHoldings(k, value)
}

func (t tallied) ListHoldings(f inventory.AddressFilter) ([]inventory.Holding, error) {
	all, err := t.Tx.ListHoldings(f)
	*t.n += 1 + len(all)
	return all, err
}

func (t tallied) SaveHoldings(h inventory.Holder, all []inventory.Holding) error {
	*t.n++
	return t.Tx.SaveHoldings(h, all)
}

// saved saves a profile as the door does: what came after its transaction is waited for. n, if not nil, becomes the statements of
// the transaction.
func (l *life) saved(p *inventory.Profile, n *int) error {
	l.t.Helper()
	var after func(context.Context, bool)
	err := l.store.Write(l.t.Context(), func(tx inventory.Tx) (err error) {
		if n != nil {
			tx = tallied{tx, n}
		}
		if err := tx.Profiles().Update(p, l.clock); err != nil {
			return err
		}
		after, err = l.engine.HoldConfigured(tx, p.Name, nil)
		return err
	})
	if after != nil {
		after(l.t.Context(), err == nil)
	}
	return err
}

func (l *life) profile(name string) (p inventory.Profile) {
	l.t.Helper()
	l.read(func(tx inventory.Tx) (err error) {
		p, err = tx.Profiles().Find(name)
		return err
	})
	return p
}

// withMachines is a rack with n machines that wait for hosts, of which an older version has noted nothing.
func withMachines(t *testing.T, n int) *life {
	t.Helper()
	l := addressed(t, "")
	l.write(func(tx inventory.Tx) error {
		for i := range n {
			m := inventory.Machine{Name: fmt.Sprintf("m-%05d", i), UID: fmt.Sprintf("01M%05d", i), Profile: "debian12", Phase: inventory.MachinePending}
			if err := tx.CreateMachine(&m, l.clock); err != nil {
				return err
			}
		}
		return nil
	})
	l.engine.HeldElsewhere()
	l.must(l.engine.clashes.Look(t.Context()))
	return l
}

func TestTheTransactionThatSavesAProfileIsAsLongForManyMachines(t *testing.T) {
	took := map[int]int{}
	for _, n := range []int{5, 80} {
		l := withMachines(t, n)
		p := l.profile("debian12")
		p.Config = "host: {domain: example.com}\n"
		i, err := l.engine.CheckProfile(t.Context(), &p)
		l.must(err)
		l.must(i.Err())
		inTx := 0
		l.must(l.saved(&p, &inTx))
		took[n] = inTx
		l.read(func(tx inventory.Tx) error {
			held, err := tx.ListHoldings(inventory.AddressFilter{})
			for _, h := range held {
				if h.Domain != "example.com" {
					t.Errorf("%d machines: %s is noted as %s.%s", n, h.Holder, h.Value, h.Domain)
				}
			}
			if len(held) != n {
				t.Errorf("%d machines hold %d names", n, len(held))
			}
			return err
		})
	}
	if took[5] != took[80] || took[80] > 10 {
		t.Errorf("statements by machines: %v", took)
	}
}

func TestWhatChangesWhileAProfileIsSavedIsLookedAtAnew(t *testing.T) {
	l := withMachines(t, 3)
	var p inventory.Profile
	check := func() {
		t.Helper()
		p = l.profile("debian12")
		p.Config = "host: {hostname: '{{ .Host.Name }}-web'}\n"
		i, err := l.engine.CheckProfile(t.Context(), &p)
		l.must(err)
		l.must(i.Err())
	}
	check()
	if err := l.wish(inventory.Machine{Name: "late", Config: "host: {hostname: m-00000-web}\n"}); err != nil {
		t.Fatal(err)
	}
	if err := l.saved(&p, nil); !inventory.IsKind(err, inventory.Invalid) || !strings.Contains(ledger.PublicMessage(err), "machine m-00000: the host name m-00000-web is that of machine late") {
		t.Errorf("a machine came meanwhile that has the name: %v", err)
	}
	l.rename("late", "host: {hostname: other}\n")
	check()
	l.rename("late", "")
	n := 0
	l.must(l.saved(&p, &n))
	l.read(func(tx inventory.Tx) error {
		held, err := tx.FindHoldings(inventory.HoldsName, "late-web")
		if len(held) != 1 {
			t.Errorf("the machine that changed meanwhile was not looked at anew: %+v", held)
		}
		return err
	})
}

func TestWhatIsAwaitedCountsAsHeld(t *testing.T) {
	l := withMachines(t, 3)
	p := l.profile("debian12")
	p.Config = "host: {hostname: '{{ .Host.Name }}-web'}\n"
	i, err := l.engine.CheckProfile(t.Context(), &p)
	l.must(err)
	l.must(i.Err())
	var after func(context.Context, bool)
	l.write(func(tx inventory.Tx) (err error) {
		if err := tx.Profiles().Update(&p, l.clock); err != nil {
			return err
		}
		after, err = l.engine.HoldConfigured(tx, p.Name, nil)
		return err
	})
	taken := inventory.Machine{Name: "taken", Config: "host: {hostname: m-00002-web}\n"}
	if err := l.wish(taken); !inventory.IsKind(err, inventory.Invalid) {
		t.Errorf("a name that is not noted yet was given away: %v", err)
	}
	after(t.Context(), false)
	if err := l.wish(taken); err != nil {
		t.Errorf("a name of what was not saved stays taken: %v", err)
	}
}

// rename gives a machine another configuration as people do.
func (l *life) rename(name, config string) {
	l.t.Helper()
	m, _ := l.find(name)
	m.Config = config
	_, err := l.engine.UpdateMachine(l.t.Context(), m, ledger.By("test"))
	l.must(err)
}
