package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// Machine returns a valid machine number n of the profile debian, which createMachines stores.
func Machine(n int) inventory.Machine {
	return inventory.Machine{
		Name: fmt.Sprintf("web-%05d", n), UID: fmt.Sprintf("01MACHINE%05d", n), Profile: "debian",
		Phase: inventory.MachinePending,
	}
}

// createProfile stores the profile debian and its image.
func createProfile(t *testing.T, s inventory.Store) {
	t.Helper()
	write(t, s, func(tx inventory.Tx) error { return createImage(tx, "debian-12", "debian") })
}

// createMachines stores machines, whose profile must be there.
func createMachines(t *testing.T, s inventory.Store, machines ...inventory.Machine) {
	t.Helper()
	write(t, s, func(tx inventory.Tx) error {
		for _, m := range machines {
			if err := tx.CreateMachine(&m, Now); err != nil {
				return err
			}
		}
		return nil
	})
}

func machineRoundTrip(t *testing.T, s inventory.Store) {
	createProfile(t, s)
	at, yes := Now.Truncate(time.Millisecond), true
	m := Machine(1)
	m.Owner, m.ProfileRevision, m.Pool = "prod/default/SlipwayMachine/web/1234", 1, inventory.DefaultPool
	m.Placement = inventory.Placement{
		Selector: "rack=r1", Requirements: inventory.HardwareRequirements{CPUThreads: 16, IsRotational: &yes, Expression: `host.x > 1 && "a" < "b"`},
		Preferred:   []inventory.Preference{{Weight: 10, Selector: "role=db"}},
		Tolerations: []inventory.Toleration{{Key: "gpu"}}, FailureDomain: "r1", IsDomainPreferred: true,
		Reuse: inventory.ReusePrefer, ReuseKey: "web",
	}
	m.Hostname, m.Parameters = "web.example", map[string]string{"url": "http://x/"}
	m.RootDisk, m.KeepDisks = inventory.DiskHint{Serial: "S1"}, []inventory.DiskHint{{WWN: "w"}, {MinBytes: 5}}
	m.Clean, m.ReleaseAfter = inventory.CleanFull, inventory.ReleaseCleaned
	m.Hooks = []inventory.Hook{{Step: inventory.PreBoot, Owner: "storage", AckedAt: at}}
	m.Reason, m.Hint, m.AttemptN, m.Avoid = "no host", "add one", 2, []inventory.HostID{"h1", "h2"}
	m.DeletedAt, m.IsForced, m.NextAt = at, true, at.Add(time.Minute)
	m.Placement.NotPools = []string{"gpu"}
	m.Image, m.KernelArgs, m.Config = "debian-12", []string{"quiet", "console=ttyS0"}, "host: {locale: C} # \"é\"\n"
	m.BootstrapFrom = "lab/default/web-bootstrap"
	m.Drain = inventory.Drain{
		Target: "prod", Node: "web", Timeout: inventory.Duration(5 * time.Minute), IsBlocking: true, GraceSeconds: -1, DeleteEmptyDirData: true,
		VolumeTimeout: inventory.Duration(time.Minute), ForgetTimeout: inventory.Duration(time.Hour),
	}
	write(t, s, func(tx inventory.Tx) error { return tx.CreateMachine(&m, Now) })
	if m.Version != 1 || !m.CreatedAt.Equal(at) || !m.UpdatedAt.Equal(at) {
		t.Errorf("create filled in version %d, createdAt %v, updatedAt %v", m.Version, m.CreatedAt, m.UpdatedAt)
	}
	bare := Machine(2)
	createMachines(t, s, bare)
	bare.CreatedAt, bare.UpdatedAt, bare.Version = at, at, 1
	read(t, s, func(tx inventory.Tx) error {
		for _, find := range []func() (inventory.Machine, error){
			func() (inventory.Machine, error) { return tx.FindMachine(m.Name) },
			func() (inventory.Machine, error) { return tx.FindMachineByUID(m.UID) },
			func() (inventory.Machine, error) { return tx.FindMachineByOwner(m.Owner) },
		} {
			got, err := find()
			same(t, "machine", m, got)
			if err != nil {
				return err
			}
		}
		got, err := tx.FindMachine(bare.Name)
		same(t, "machine without anything", bare, got)
		for _, find := range []func() (inventory.Machine, error){
			func() (inventory.Machine, error) { return tx.FindMachine("nobody") },
			func() (inventory.Machine, error) { return tx.FindMachineByUID("nobody") },
			func() (inventory.Machine, error) { return tx.FindMachineByOwner("nobody") },
			func() (inventory.Machine, error) { return tx.FindMachineByOwner("") }, // machine 2 has none either
		} {
			_, err := find()
			expect(t, err, inventory.NotFound, "machine")
		}
		return err
	})
	m.Hooks, m.Avoid, m.Phase, m.Pool = nil, nil, inventory.MachineFailed, ""
	m.NextAt = time.Time{}
	write(t, s, func(tx inventory.Tx) error { return tx.UpdateMachine(&m, Now.Add(time.Minute)) })
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindMachine(m.Name)
		same(t, "updated machine", m, got)
		return err
	})
	m.Version = 1
	refuses(t, s, inventory.Conflict, "machine web-00001 2 1", func(tx inventory.Tx) error { return tx.UpdateMachine(&m, Now) })
	gone := Machine(9)
	gone.Version = 1
	refuses(t, s, inventory.NotFound, "machine", func(tx inventory.Tx) error { return tx.UpdateMachine(&gone, Now) })
	refuses(t, s, inventory.NotFound, "machine nobody", func(tx inventory.Tx) error { return tx.DeleteMachine("nobody") })
}

func machineRefusals(t *testing.T, s inventory.Store) {
	createProfile(t, s)
	owned := Machine(1)
	owned.Owner = "prod/x"
	createMachines(t, s, owned, Machine(2), Machine(3)) // two have no owner: that is not one they share
	for _, c := range []struct {
		kind  inventory.Kind
		words string
		spoil func(*inventory.Machine)
	}{
		{inventory.Conflict, "machine web-00001", func(m *inventory.Machine) { m.Name = "web-00001" }},
		{inventory.Conflict, "prod/x web-00001", func(m *inventory.Machine) { m.Owner = "prod/x" }},
		{inventory.Conflict, "01MACHINE00001 web-00001", func(m *inventory.Machine) { m.UID = "01MACHINE00001" }},
		{inventory.Invalid, "profile nothing", func(m *inventory.Machine) { m.Profile = "nothing" }},
		{inventory.Invalid, "revision 7 profile debian", func(m *inventory.Machine) { m.ProfileRevision = 7 }},
		{inventory.Invalid, "pool gpu", func(m *inventory.Machine) { m.Pool = "gpu" }},
		{inventory.Invalid, "image nothing", func(m *inventory.Machine) { m.Image = "nothing" }},
	} {
		m := Machine(4)
		c.spoil(&m)
		refuses(t, s, c.kind, c.words, func(tx inventory.Tx) error { return tx.CreateMachine(&m, Now) })
		if m.Name != "web-00004" {
			continue
		}
		m.Name, m.Version = "web-00002", 1
		refuses(t, s, c.kind, c.words, func(tx inventory.Tx) error { return tx.UpdateMachine(&m, Now) })
	}
	refuses(t, s, inventory.Conflict, "profile debian machine web-00001", func(tx inventory.Tx) error { return tx.Profiles().Delete("debian") })
	write(t, s, func(tx inventory.Tx) error { return tx.DeleteMachine("web-00001") })
	heir := Machine(5)
	heir.Owner = "prod/x"
	createMachines(t, s, heir)
	write(t, s, func(tx inventory.Tx) error {
		if err := createImage(tx, "debian-13", "trixie"); err != nil {
			return err
		}
		if err := tx.Profiles().Delete("trixie"); err != nil {
			return err
		}
		m := Machine(6)
		m.Image = "debian-13"
		return tx.CreateMachine(&m, Now)
	})
	refuses(t, s, inventory.Conflict, "image debian-13 machine web-00006", func(tx inventory.Tx) error { return tx.Images().Delete("debian-13") })
	write(t, s, func(tx inventory.Tx) error {
		return errors.Join(tx.DeleteMachine("web-00006"), tx.Images().Delete("debian-13"))
	})
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.ListMachines(inventory.MachineFilter{}, inventory.Page{})
		same(t, "machines", []string{"web-00002", "web-00003", "web-00005"}, machineNames(got))
		return err
	})
}

func machineNames(machines []inventory.Machine) (names []string) {
	for _, m := range machines {
		names = append(names, m.Name)
	}
	return names
}

// machineLists has ten machines: even ones in pool gpu, the others in the default pool with and without its name.
func machineLists(t *testing.T, s inventory.Store) {
	createProfile(t, s)
	write(t, s, func(tx inventory.Tx) error {
		if err := tx.Pools().Create(&inventory.Pool{Name: "gpu"}, Now); err != nil {
			return err
		}
		return tx.Profiles().Create(&inventory.Profile{Name: "other", Image: "debian-12"}, Now)
	})
	for n := range 10 {
		m := Machine(n)
		switch {
		case n%2 == 0:
			m.Pool = "gpu"
		case n < 5:
			m.Pool = inventory.DefaultPool
		}
		if n > 7 {
			m.Phase, m.Profile = inventory.MachineRunning, "other"
		}
		m.Owner = []string{"", "c1/a/MetalMachine/x", "c1/ab/MetalMachine/x", "c2/a/MetalMachine/\u00fc"}[n%4]
		if m.Owner != "" {
			m.Owner += fmt.Sprint(n)
		}
		if n != 3 {
			m.NextAt = Now.Add(time.Duration(-n) * time.Minute)
		}
		createMachines(t, s, m)
	}
	read(t, s, func(tx inventory.Tx) error {
		for _, c := range []struct {
			filter inventory.MachineFilter
			page   inventory.Page
			want   []string
		}{
			{inventory.MachineFilter{}, inventory.Page{After: "web-00002", Limit: 2}, []string{"web-00003", "web-00004"}},
			{inventory.MachineFilter{Pool: "gpu"}, inventory.Page{Limit: 2}, []string{"web-00000", "web-00002"}},
			{inventory.MachineFilter{Pool: inventory.DefaultPool}, inventory.Page{After: "web-00001"}, []string{"web-00003", "web-00005", "web-00007", "web-00009"}},
			{inventory.MachineFilter{Phase: inventory.MachineRunning}, inventory.Page{}, []string{"web-00008", "web-00009"}},
			{inventory.MachineFilter{OwnerPrefix: "c1/"}, inventory.Page{}, []string{"web-00001", "web-00002", "web-00005", "web-00006", "web-00009"}},
			{inventory.MachineFilter{OwnerPrefix: "c1/a/"}, inventory.Page{Limit: 2}, []string{"web-00001", "web-00005"}},
			{inventory.MachineFilter{OwnerPrefix: "c1/a/", Pool: "gpu"}, inventory.Page{}, nil},
			{inventory.MachineFilter{OwnerPrefix: "c2/a/MetalMachine/\u00fc3"}, inventory.Page{}, []string{"web-00003"}},
			{inventory.MachineFilter{OwnerPrefix: "c3/"}, inventory.Page{}, nil},
			{inventory.MachineFilter{Profile: "other", Pool: "gpu"}, inventory.Page{}, []string{"web-00008"}},
		} {
			got, err := tx.ListMachines(c.filter, c.page)
			if err != nil {
				return err
			}
			same(t, fmt.Sprintf("machines by %+v, %+v", c.filter, c.page), c.want, machineNames(got))
		}
		got, err := tx.ListDueMachines(Now.Add(-5*time.Minute), 3)
		same(t, "due machines, the longest due first", []string{"web-00009", "web-00008", "web-00007"}, machineNames(got))
		if err != nil {
			return err
		}
		got, err = tx.ListDueMachines(Now.Add(time.Hour), 0)
		same(t, "machines that are due some time", 9, len(got))
		if err != nil {
			return err
		}
		next, err := tx.NextDueAt()
		same(t, "next due", Now.Add(-9*time.Minute).Truncate(time.Millisecond), next)
		return err
	})
}

func pools(t *testing.T, s inventory.Store) {
	createProfile(t, s)
	p := inventory.Pool{
		Name: "gpu", Selector: "role=gpu", Requirements: inventory.HardwareRequirements{Accelerators: 2, MemoryBytes: 1 << 40},
		Budget: inventory.Budget{Provision: 5, Destroy: 2, DestroyInterval: inventory.Duration(time.Minute)},
		Clean:  inventory.CleanSecure, MinSpare: 3, BurnInFor: inventory.Duration(time.Hour),
		AllowedNamespaces: "team in (a,b)", Owner: "c1//MetalPool/gpu/1",
	}
	write(t, s, func(tx inventory.Tx) error {
		if err := tx.Pools().Create(&inventory.Pool{Name: inventory.DefaultPool}, Now); err != nil {
			return err
		}
		return tx.Pools().Create(&p, Now)
	})
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.Pools().Find("gpu")
		same(t, "pool", p, got)
		if err != nil {
			return err
		}
		all, err := tx.Pools().List(inventory.Page{})
		same(t, "pools", 2, len(all))
		same(t, "second pool", p, all[1])
		_, missing := tx.Pools().Find("nothing")
		expect(t, missing, inventory.NotFound, "pool nothing")
		return err
	})
	refuses(t, s, inventory.Conflict, "pool gpu", func(tx inventory.Tx) error { return tx.Pools().Create(&inventory.Pool{Name: "gpu"}, Now) })
	p.MinSpare, p.Budget = 0, inventory.Budget{}
	write(t, s, func(tx inventory.Tx) error { return tx.Pools().Update(&p, Now.Add(time.Minute)) })
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.Pools().Find("gpu")
		same(t, "updated pool", p, got)
		return err
	})
	old := p
	old.Version = 1
	refuses(t, s, inventory.Conflict, "pool gpu 2 1", func(tx inventory.Tx) error { return tx.Pools().Update(&old, Now) })
	m := Machine(1)
	m.Pool = "gpu"
	createMachines(t, s, m)
	refuses(t, s, inventory.Conflict, "pool gpu machine web-00001", func(tx inventory.Tx) error { return tx.Pools().Delete("gpu") })
	write(t, s, func(tx inventory.Tx) error {
		if err := tx.DeleteMachine(m.Name); err != nil {
			return err
		}
		return tx.Pools().Delete("gpu")
	})
	refuses(t, s, inventory.NotFound, "pool gpu", func(tx inventory.Tx) error { return tx.Pools().Delete("gpu") })
	refuses(t, s, inventory.NotFound, "pool gpu", func(tx inventory.Tx) error { return tx.Pools().Update(&p, Now) })
}
