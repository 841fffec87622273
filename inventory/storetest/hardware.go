package storetest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// Inspection returns an inspection of host number n with hardware as machines in the field have.
func Inspection(n int) inventory.Inspection {
	return inventory.Inspection{
		HostID: Host(n).ID, At: Now.Truncate(time.Millisecond),
		Hardware: inventory.Hardware{
			CollectedAt: Now, Source: "agent", System: inventory.System{Manufacturer: "Dell Inc.", Serial: fmt.Sprintf("SN%06d", n)},
			Firmware: inventory.FirmwareInfo{Kind: inventory.UEFI, BootOrder: []inventory.BootEntry{{ID: "0001", Description: "debian", IsActive: true}}},
			CPU:      inventory.CPU{Arch: inventory.X8664, Threads: 64, Flags: []string{"sse2", "avx"}}, MemoryBytes: 1 << 38,
			DIMMs: []inventory.DIMM{{Slot: "A1", SizeBytes: 1 << 36}},
			Disks: []inventory.Disk{{Name: "sda", Serial: "S1", SizeBytes: 1 << 40, Erases: []string{"discard"}}},
			Ports: []inventory.Port{{Name: "eno1", MAC: MAC(2 * n), HasLink: true, Neighbour: &inventory.Neighbour{Chassis: "sw1", Port: "7"}}},
			TPM:   &inventory.TPM{Version: "2.0"}, BMC: &inventory.BMCFacts{Address: "10.0.0.9"},
		},
		Changes: []inventory.HardwareChange{{Kind: "added", What: "disk S1 (sda)", New: "1 TiB"}},
		Faults:  []string{"16 threads are missing"}, Golden: "r650", Operation: "01OP",
	}
}

// heardPorts are the ports of Inspection(n) that heard anything, as a list of cables has them.
func heardPorts(n int) []inventory.Port {
	p := Inspection(n).Hardware.Ports[0]
	return []inventory.Port{{Name: p.Name, MAC: p.MAC, Neighbour: p.Neighbour}}
}

// heardTwice follows what hosts hear from one inspection to the next.
func heardTwice(t *testing.T, s inventory.Store) {
	createHosts(t, s, Host(1))
	silent := Inspection(1)
	silent.Hardware.Ports[0].Neighbour = nil
	moved := Inspection(1)
	moved.Hardware.Ports[0].Neighbour = &inventory.Neighbour{Chassis: "sw2", Port: "8"}
	moved.Hardware.Ports = append(moved.Hardware.Ports, inventory.Port{Name: "eno2"})
	elsewhere := heardPorts(1)
	elsewhere[0].Neighbour = moved.Hardware.Ports[0].Neighbour
	for n, step := range []struct {
		i           inventory.Inspection
		now, before []inventory.Port
	}{
		{silent, nil, nil},
		{Inspection(1), heardPorts(1), nil},
		{Inspection(1), heardPorts(1), heardPorts(1)},
		{moved, elsewhere, heardPorts(1)},
		{silent, nil, elsewhere},
		{silent, nil, nil},
		{moved, elsewhere, nil},
	} {
		write(t, s, func(tx inventory.Tx) error { return tx.SaveInspection(&step.i) })
		read(t, s, func(tx inventory.Tx) error {
			all, err := tx.ListHeard()
			got, ok := all[Host(1).ID]
			same(t, fmt.Sprintf("whether anything was heard after %d", n+1), step.now != nil || step.before != nil, ok)
			same(t, fmt.Sprintf("heard in inspection %d", n+1), step.now, got.Now)
			same(t, fmt.Sprintf("heard before inspection %d", n+1), step.before, got.Before)
			return err
		})
	}
	write(t, s, func(tx inventory.Tx) error { return tx.DeleteHost(Host(1).ID) })
	read(t, s, func(tx inventory.Tx) error {
		all, err := tx.ListHeard()
		same(t, "heard by a deleted host", 0, len(all))
		return err
	})
}

func inspections(t *testing.T, s inventory.Store) {
	createHosts(t, s, Host(1), Host(2))
	first, second, other := Inspection(1), Inspection(1), Inspection(2)
	second.N = 99 // is filled in
	second.Hardware, second.Changes, second.Faults = inventory.Hardware{Source: "bmc"}, nil, nil
	first.Hardware.System.Product = `","ports":[{"name":"eno9","neighbour":{"port":"9"}}],"` // looks like a port
	second.Hardware.System.Product = first.Hardware.System.Product
	write(t, s, func(tx inventory.Tx) error {
		for _, i := range []*inventory.Inspection{&first, &other, &second} {
			if err := tx.SaveInspection(i); err != nil {
				return err
			}
		}
		return nil
	})
	same(t, "numbers", []int{1, 2, 1}, []int{first.N, second.N, other.N})
	read(t, s, func(tx inventory.Tx) error {
		for n, want := range []inventory.Inspection{second, first, second} {
			got, err := tx.FindInspection(Host(1).ID, n)
			same(t, fmt.Sprintf("inspection %d", n), want, got)
			if err != nil {
				return err
			}
		}
		for host, want := range map[inventory.HostID]int{Host(1).ID: 2, Host(2).ID: 1, "nobody": 0} {
			n, err := tx.LastInspection(host)
			same(t, "number of the newest inspection of "+string(host), want, n)
			if err != nil {
				return err
			}
		}
		all, err := tx.ListInspections(Host(1).ID, 0)
		same(t, "inspections", []inventory.Inspection{second, first}, all)
		if err != nil {
			return err
		}
		heard, err := tx.ListHeard()
		if err != nil {
			return err
		}
		at := Now.Truncate(time.Millisecond)
		same(t, "what was heard", map[inventory.HostID]inventory.Heard{
			Host(1).ID: {Before: heardPorts(1)}, // the newest heard nothing
			Host(2).ID: {At: at, Now: heardPorts(2)},
		}, heard)
		all, err = tx.ListInspections(Host(1).ID, 1)
		same(t, "newest inspection", []inventory.Inspection{second}, all)
		for host, n := range map[inventory.HostID]int{Host(1).ID: 3, "nobody": 0} {
			_, err := tx.FindInspection(host, n)
			expect(t, err, inventory.NotFound, "inspection")
		}
		return err
	})
	lost := Inspection(9)
	refuses(t, s, inventory.NotFound, "host", func(tx inventory.Tx) error { return tx.SaveInspection(&lost) })
	write(t, s, func(tx inventory.Tx) error { return tx.DeleteHost(Host(1).ID) })
	read(t, s, func(tx inventory.Tx) error {
		all, err := tx.ListInspections(Host(1).ID, 0)
		same(t, "inspections of a deleted host", 0, len(all))
		return err
	})
}

func reports(t *testing.T, s inventory.Store) {
	createHosts(t, s, Host(1))
	report := func(n int, kind string) inventory.Report {
		return inventory.Report{
			ID: fmt.Sprintf("01OP%d/%s", n, kind), HostID: Host(1).ID, Kind: kind, Machine: "web",
			Body: json.RawMessage(`{"n": 1, "s": "<&>"}`), CreatedAt: Now.Truncate(time.Millisecond).Add(time.Duration(n) * time.Minute),
		}
	}
	wipe, install, again := report(1, "wipe"), report(2, "install"), report(3, "wipe")
	other := report(4, "wipe")
	other.HostID = Host(2).ID
	bare := inventory.Report{ID: "bare", HostID: Host(3).ID}
	write(t, s, func(tx inventory.Tx) error {
		for _, r := range []inventory.Report{again, wipe, install, other, bare} {
			if err := tx.SaveReport(r); err != nil {
				return err
			}
		}
		wipe.Body, wipe.Machine = json.RawMessage(`[{"mode":"full"}]`), "db"
		return tx.SaveReport(wipe) // overwrites
	})
	write(t, s, func(tx inventory.Tx) error { return tx.DeleteHost(Host(1).ID) }) // reports stay
	read(t, s, func(tx inventory.Tx) error {
		for _, c := range []struct {
			host  inventory.HostID
			kind  string
			limit int
			want  []inventory.Report
		}{
			{Host(1).ID, "", 0, []inventory.Report{again, install, wipe}},
			{Host(1).ID, "", 2, []inventory.Report{again, install}},
			{Host(1).ID, "wipe", 0, []inventory.Report{again, wipe}},
			{Host(1).ID, "wipe", 1, []inventory.Report{again}},
			{Host(1).ID, "burn-in", 0, nil},
			{Host(3).ID, "", 0, []inventory.Report{bare}},
			{"nobody", "", 0, nil},
		} {
			got, err := tx.ListReports(c.host, c.kind, c.limit)
			if err != nil {
				return err
			}
			same(t, fmt.Sprintf("reports of %s, kind %q, limit %d", c.host, c.kind, c.limit), c.want, got)
		}
		return nil
	})
	broken := report(5, "wipe")
	broken.Body = json.RawMessage(`no`)
	refuses(t, s, inventory.Internal, "JSON", func(tx inventory.Tx) error { return tx.SaveReport(broken) })
}

func bmcs(t *testing.T, s inventory.Store) {
	for n := range 5 {
		createHosts(t, s, Host(n))
	}
	at := Now.Truncate(time.Millisecond)
	b := inventory.BMC{
		HostID: Host(1).ID, Driver: inventory.Redfish, Address: "https://10.0.0.1", Username: "admin", Sealed: []byte{0, 1, 2}, System: "1",
		InsecureSkipVerify: true, Fingerprint: "aa", MAC: MAC(77), Options: map[string]string{"mode": "x"}, Power: inventory.PowerOn, PowerAt: at,
		IsReachable: true, Reason: "why", Vendor: "Dell", Model: "iDRAC9", Firmware: "7.0", Capabilities: []string{"power", "boot"}, CheckedAt: at,
		LastCheck: &inventory.LastCheck{At: at, By: "user anna", IsGood: true, Detail: "power is on"},
		Others:    []inventory.OtherPassword{{Sealed: []byte{9, 8}, At: at, IsNext: true}},
	}
	bare := inventory.BMC{HostID: Host(0).ID, Driver: inventory.Manual}
	write(t, s, func(tx inventory.Tx) error {
		if err := tx.SaveBMC(&b, Now); err != nil {
			return err
		}
		return tx.SaveBMC(&bare, Now)
	})
	if b.Version != 1 || !b.CreatedAt.Equal(at) || !b.UpdatedAt.Equal(at) {
		t.Errorf("create filled in version %d, createdAt %v, updatedAt %v", b.Version, b.CreatedAt, b.UpdatedAt)
	}
	b.Power, b.Sealed, b.Options = inventory.PowerOff, []byte{3}, nil
	b.Others = append(b.Others, inventory.OtherPassword{Sealed: []byte{7}, At: at, IsRefused: true})
	write(t, s, func(tx inventory.Tx) error { return tx.SaveBMC(&b, Now.Add(time.Minute)) })
	same(t, "version after an update", int64(2), b.Version)
	read(t, s, func(tx inventory.Tx) error {
		for _, want := range []inventory.BMC{b, bare} {
			got, err := tx.FindBMC(want.HostID)
			same(t, "BMC", want, got)
			if err != nil {
				return err
			}
		}
		all, err := tx.ListBMCs(inventory.Page{})
		same(t, "BMCs", []inventory.BMC{bare, b}, all)
		if err != nil {
			return err
		}
		all, err = tx.ListBMCs(inventory.Page{After: string(Host(0).ID), Limit: 1})
		same(t, "second page of BMCs", []inventory.BMC{b}, all)
		_, missing := tx.FindBMC(Host(4).ID)
		expect(t, missing, inventory.NotFound, "bmc")
		return err
	})
	save := func(b inventory.BMC) func(inventory.Tx) error {
		return func(tx inventory.Tx) error { return tx.SaveBMC(&b, Now) }
	}
	thief := inventory.BMC{HostID: Host(2).ID, Driver: inventory.Redfish, Address: "https://10.0.0.1", System: "1"}
	refuses(t, s, inventory.Conflict, "https://10.0.0.1 host-00001", save(thief))
	thief.System = "2" // another machine behind the same address
	write(t, s, save(thief))
	write(t, s, save(inventory.BMC{HostID: Host(3).ID, Driver: inventory.Redfish, Address: "https://10.0.0.1", System: "0"}))
	thief.Version, thief.System = 1, "1"
	refuses(t, s, inventory.Conflict, "https://10.0.0.1 host-00001", save(thief))
	for n := range 5 {
		write(t, s, func(tx inventory.Tx) error { // nobody is behind the address of these: any number may share it
			for _, driver := range []inventory.BMCDriver{inventory.Manual, inventory.WoL} {
				if err := tx.DeleteBMC(Host(n).ID); err != nil {
					expect(t, err, inventory.NotFound, "bmc")
				}
				if err := save(inventory.BMC{HostID: Host(n).ID, Driver: driver})(tx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	refuses(t, s, inventory.Conflict, "host-00001", save(inventory.BMC{HostID: Host(1).ID, Driver: inventory.IPMI, Address: "10.0.0.7"}))
	refuses(t, s, inventory.NotFound, "host", save(inventory.BMC{HostID: "nobody", Driver: inventory.Manual}))
	refuses(t, s, inventory.Conflict, "bmc 1 7", save(inventory.BMC{HostID: Host(1).ID, Driver: inventory.Manual, Version: 7}))
	write(t, s, func(tx inventory.Tx) error { return tx.DeleteHost(Host(1).ID) })
	refuses(t, s, inventory.NotFound, "bmc", save(inventory.BMC{HostID: Host(1).ID, Driver: inventory.Manual, Version: 1}))
	refuses(t, s, inventory.NotFound, "bmc", func(tx inventory.Tx) error { return tx.DeleteBMC(Host(1).ID) })
}
