package sqlstore

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/storetest"
)

// TestAWholeListReadsWhatItShows names how the lists of all hosts that screens ask for are read: no sorting, and of the
// inspections nothing.
func TestAWholeListReadsWhatItShows(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "slipway.db"))
	for query, steps := range map[string][]string{
		listPlacesSQL: {"hosts USING INDEX hosts_by_name (name>?)"},
		listHeardSQL:  {"SCAN heard"},
	} {
		plan := planOf(t, s, query)
		for _, step := range steps {
			if !strings.Contains(plan, step) || strings.Contains(plan, "TEMP B-TREE") {
				t.Errorf("not %q, or sorted:\n%s\n%s", step, plan, query)
			}
		}
	}
}

// inspect10000 inspects ten thousand hosts twice, each with hardware of some kilobytes and two cables when they are heard.
func inspect10000(b *testing.B, isHeard bool) *Store {
	s := open10000(b)
	err := s.Write(b.Context(), func(tx inventory.Tx) error {
		for n := range 20_000 {
			i := storetest.Inspection(n % 10_000)
			for d := range 8 {
				i.Hardware.DIMMs = append(i.Hardware.DIMMs, inventory.DIMM{Slot: fmt.Sprintf("A%d", d), SizeBytes: 1 << 36})
				i.Hardware.Disks = append(i.Hardware.Disks, inventory.Disk{Name: fmt.Sprintf("nvme%dn1", d), Serial: fmt.Sprintf("S%d-%d", n, d), SizeBytes: 1 << 42})
				i.Hardware.PCI = append(i.Hardware.PCI, inventory.PCIDevice{})
			}
			i.Hardware.Ports = append(i.Hardware.Ports, i.Hardware.Ports[0])
			if !isHeard {
				for p := range i.Hardware.Ports {
					i.Hardware.Ports[p].Neighbour = nil
				}
			}
			if err := tx.SaveInspection(&i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func BenchmarkListPlaces(b *testing.B) {
	benchmarkRead(b, func(tx inventory.Tx, _ int) error {
		all, err := tx.ListPlaces()
		if len(all) != 10_000 {
			b.Fatalf("%d places", len(all))
		}
		return err
	})
}

func BenchmarkListHeard(b *testing.B) {
	for _, c := range []struct {
		name    string
		isHeard bool
	}{{"silent", false}, {"heard", true}} {
		b.Run(c.name, func(b *testing.B) {
			s := inspect10000(b, c.isHeard)
			b.ResetTimer()
			for b.Loop() {
				err := s.Read(b.Context(), func(tx inventory.Tx) error {
					_, err := tx.ListHeard()
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkAddEvents measures commits of a hundred events, with the index of their kinds and without.
func BenchmarkAddEvents(b *testing.B) {
	for _, isWithout := range []bool{false, true} {
		b.Run(map[bool]string{false: "by-kind", true: "without"}[isWithout], func(b *testing.B) {
			s := openTest(b, filepath.Join(b.TempDir(), "slipway.db"))
			if isWithout {
				if _, err := run(b, s, `DROP INDEX events_by_kind`); err != nil {
					b.Fatal(err)
				}
			}
			add := func(n int) {
				err := s.Write(b.Context(), func(tx inventory.Tx) error {
					for i := range n {
						if err := tx.AddEvent(eventOf(i)); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			add(100_000)
			for b.Loop() {
				add(100)
			}
		})
	}
}

// eventOf is an event of one in a thousand hosts and of one in forty kinds.
func eventOf(i int) *inventory.Event {
	return &inventory.Event{
		At: storetest.Now, Kind: fmt.Sprintf("dhcp.kind%d", i*7%40), HostID: storetest.Host(i % 1000).ID, MAC: storetest.MAC(i % 1000),
		Subject: "10.0.0.1", Detail: "offered 10.0.0.1 for 10m0s on eno1", Data: map[string]any{"address": "10.0.0.1", "arch": 7},
	}
}

// BenchmarkEventsOfABusyHost asks for the events of one kind of a host that has ten thousand: those of a kind that hardly
// ever happened to it, the last first.
func BenchmarkEventsOfABusyHost(b *testing.B) {
	s := openTest(b, filepath.Join(b.TempDir(), "slipway.db"))
	err := s.Write(b.Context(), func(tx inventory.Tx) error {
		for i := range 100_000 {
			e := eventOf(i)
			if i%10 == 0 {
				e.HostID = "busy"
			}
			if err := tx.AddEvent(e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, kind := range []string{"image.never", "image"} {
		b.Run(kind, func(b *testing.B) {
			for b.Loop() {
				err := s.Read(b.Context(), func(tx inventory.Tx) error {
					_, err := tx.ListEvents(inventory.EventFilter{HostID: "busy", Kind: kind, Before: 1 << 60}, 0, 100)
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
