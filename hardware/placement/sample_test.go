package placement

import (
	"fmt"
	"time"

	"slipway.dev/slipway/inventory"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const gib = int64(1) << 30

// machine wants any host with a disk of 10 GB.
func machine(name string, change func(m *inventory.Machine)) Demand {
	d := Demand{
		Now:     now,
		Machine: inventory.Machine{Name: name, UID: "01JD-" + name, Profile: "debian12", CreatedAt: now.Add(-time.Hour)},
		Image:   inventory.Image{Name: "debian-12", Arch: inventory.X8664, MemoryMiB: 1024, Remote: "oci://r/x@sha256:0", DiskBytes: 10e9},
	}
	if change != nil {
		change(&d.Machine)
	}
	return d
}

// host is an accepted, clean host with 16 threads, 64 GiB and one disk of 1 TB.
func host(name string, change func(c *Candidate)) Candidate {
	c := Candidate{
		HasPower: true,
		Host: inventory.Host{
			ID: inventory.HostID("id-" + name), Name: name, State: inventory.Available, Arch: inventory.X8664,
			Place: inventory.Place{Site: "ams1", Row: "a", Rack: "r1"}, Labels: map[string]string{}, NICs: []inventory.NIC{{MAC: "52:54:00:aa:00:01"}},
		},
		Hardware: &inventory.Hardware{
			CPU: inventory.CPU{Arch: inventory.X8664, Threads: 16}, MemoryBytes: 64 * gib,
			Disks: []inventory.Disk{{Name: "sda", Serial: "S1", SizeBytes: 1e12}},
		},
	}
	if change != nil {
		change(&c)
	}
	return c
}

// rack is n hosts alike.
func rack(n int, change func(i int, c *Candidate)) (all []Candidate) {
	for i := range n {
		all = append(all, host(fmt.Sprintf("h%05d", i), func(c *Candidate) {
			if change != nil {
				change(i, c)
			}
		}))
	}
	return all
}

func nameOf(c Choice) string {
	if c.Host == nil {
		return ""
	}
	return c.Host.Name
}
