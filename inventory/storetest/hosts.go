package storetest

import (
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

func createHosts(t *testing.T, s inventory.Store, hosts ...inventory.Host) {
	t.Helper()
	write(t, s, func(tx inventory.Tx) error {
		for _, h := range hosts {
			if err := tx.CreateHost(&h, Now); err != nil {
				return err
			}
		}
		return nil
	})
}

func names(hosts []inventory.Host) (names []string) {
	for _, h := range hosts {
		names = append(names, h.Name)
	}
	return names
}

func hostRoundTrip(t *testing.T, s inventory.Store) {
	h := Host(1)
	h.IsCordoned, h.IsRetained = true, true
	h.StateReason, h.InMaintenance, h.IsProtected, h.IsAdopted, h.IsArmed = "because it's \"new\"; é", true, true, true, true
	h.AssetTag, h.DiskBoot = "A-1", inventory.DiskExit
	h.Taints = []inventory.Taint{{Key: "gpu", Value: "a100"}, {Key: "slow"}}
	h.RootDisk, h.KeepDisks = inventory.DiskHint{Serial: "S1"}, []inventory.DiskHint{{WWN: "w1"}, {WWN: "w2"}}
	h.IsDirty, h.FailureN, h.ReuseKey, h.FreedAt = true, 2, "web", Now.Truncate(time.Millisecond)
	h.LastSeenAt = Now.Truncate(time.Millisecond).Add(time.Hour)
	write(t, s, func(tx inventory.Tx) error { return tx.CreateHost(&h, Now) })
	if h.Version != 1 || !h.CreatedAt.Equal(Now.Truncate(time.Millisecond)) || !h.UpdatedAt.Equal(h.CreatedAt) {
		t.Errorf("create filled in version %d, createdAt %v, updatedAt %v", h.Version, h.CreatedAt, h.UpdatedAt)
	}
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindHost(h.ID)
		same(t, "host", h, got)
		if !got.IdentifiedAt.IsZero() {
			t.Errorf("a time that was never set came back as %v", got.IdentifiedAt)
		}
		return err
	})
	bare := inventory.Host{ID: "bare", Name: "bare", State: inventory.Discovered, NICs: []inventory.NIC{{MAC: MAC(99)}}}
	createHosts(t, s, bare)
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindHost("bare")
		bare.CreatedAt, bare.UpdatedAt, bare.Version = h.CreatedAt, h.CreatedAt, 1
		same(t, "host without anything", bare, got)
		return err
	})
}

func hostLookups(t *testing.T, s inventory.Store) {
	twin := Host(3)
	twin.UUID = Host(1).UUID // duplicates exist in the field
	blank := Host(4)
	blank.UUID, blank.Serial = "", ""
	createHosts(t, s, Host(1), Host(2), twin, blank)
	read(t, s, func(tx inventory.Tx) error {
		for _, find := range []func() (inventory.Host, error){
			func() (inventory.Host, error) { return tx.FindHost(Host(2).ID) },
			func() (inventory.Host, error) { return tx.FindHostByName("host-00002") },
			func() (inventory.Host, error) { return tx.FindHostByMAC(MAC(4)) },
			func() (inventory.Host, error) { return tx.FindHostByMAC(MAC(5)) },
		} {
			got, err := find()
			if err != nil {
				return err
			}
			same(t, "NICs", Host(2).NICs, got.NICs)
			same(t, "name", "host-00002", got.Name)
		}
		for _, find := range []func() (inventory.Host, error){
			func() (inventory.Host, error) { return tx.FindHost("nobody") },
			func() (inventory.Host, error) { return tx.FindHostByName("nobody") },
			func() (inventory.Host, error) { return tx.FindHostByMAC(MAC(4000)) },
		} {
			_, err := find()
			expect(t, err, inventory.NotFound, "host")
		}
		for _, hint := range []struct {
			uuid, serial string
			want         []string
		}{
			{Host(1).UUID, "", []string{"host-00001", "host-00003"}},
			{"", Host(2).Serial, []string{"host-00002"}},
			{Host(1).UUID, Host(2).Serial, []string{"host-00001", "host-00002", "host-00003"}},
			{"", "", nil},
		} {
			got, err := tx.FindHostsByHint(hint.uuid, hint.serial)
			if err != nil {
				return err
			}
			same(t, "hosts by hint", hint.want, names(got))
			for _, h := range got {
				if len(h.NICs) != 2 {
					t.Errorf("%s came without its NICs", h.Name)
				}
			}
		}
		return nil
	})
}

func hostConflicts(t *testing.T, s inventory.Store) {
	createHosts(t, s, Host(1), Host(2))
	thief := Host(3)
	thief.NICs[1].MAC = MAC(2)
	refuses(t, s, inventory.Conflict, "52:54:00:00:00:02 host-00001", func(tx inventory.Tx) error { return tx.CreateHost(&thief, Now) })
	namesake := Host(3)
	namesake.Name = "host-00002"
	refuses(t, s, inventory.Conflict, "host-00002", func(tx inventory.Tx) error { return tx.CreateHost(&namesake, Now) })
	refuses(t, s, inventory.Conflict, "52:54:00:00:00:05 host-00002", func(tx inventory.Tx) error {
		h, err := tx.FindHostByName("host-00001")
		if err != nil {
			return err
		}
		h.NICs = append(h.NICs, inventory.NIC{MAC: MAC(5)})
		return tx.UpdateHost(&h, Now)
	})
	refuses(t, s, inventory.Conflict, "host-00002", func(tx inventory.Tx) error {
		h, err := tx.FindHostByName("host-00001")
		if err != nil {
			return err
		}
		h.Name = "host-00002"
		return tx.UpdateHost(&h, Now)
	})
	refuses(t, s, inventory.Conflict, "", func(tx inventory.Tx) error {
		h := Host(1)
		h.Name, h.NICs = "other", []inventory.NIC{{MAC: MAC(77)}}
		return tx.CreateHost(&h, Now)
	})
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.ListHosts(inventory.HostFilter{}, inventory.Page{})
		same(t, "hosts after the refusals", []string{"host-00001", "host-00002"}, names(got))
		return err
	})
}

func hostVersions(t *testing.T, s inventory.Store) {
	createHosts(t, s, Host(1))
	h := Host(1)
	h.Version, h.MemoryMiB = 1, 1
	later := Now.Add(time.Minute)
	write(t, s, func(tx inventory.Tx) error { return tx.UpdateHost(&h, later) })
	if h.Version != 2 || !h.UpdatedAt.Equal(later.Truncate(time.Millisecond)) {
		t.Errorf("update filled in version %d, updatedAt %v", h.Version, h.UpdatedAt)
	}
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindHost(h.ID)
		h.CreatedAt = Now.Truncate(time.Millisecond)
		same(t, "updated host", h, got)
		return err
	})
	h.Version = 1
	refuses(t, s, inventory.Conflict, "host 2 1", func(tx inventory.Tx) error { return tx.UpdateHost(&h, later) })
	gone := Host(9)
	gone.Version = 1
	refuses(t, s, inventory.NotFound, "host", func(tx inventory.Tx) error { return tx.UpdateHost(&gone, later) })
}

// hostFields changes one field after another: each is written, and what finds the host by it finds it.
func hostFields(t *testing.T, s inventory.Store) {
	h := Host(1)
	createHosts(t, s, h)
	write(t, s, func(tx inventory.Tx) error { return createImage(tx, "debian-12", "web") })
	h.Version, h.CreatedAt = 1, Now.Truncate(time.Millisecond)
	for _, tc := range []struct {
		name   string
		change func()
		filter inventory.HostFilter
	}{
		{"name", func() { h.Name = "renamed" }, inventory.HostFilter{Search: "renamed"}},
		{"state", func() { h.State = inventory.Failed }, inventory.HostFilter{State: inventory.Failed}},
		{"uuid", func() { h.UUID = "4c4c4544-0000-4000-8000-00000000abcd" }, inventory.HostFilter{Search: "8000-00000000abcd"}},
		{"serial", func() { h.Serial = "other-7" }, inventory.HostFilter{Search: "other-7"}},
		{"rack", func() { h.Place.Rack = "r77" }, inventory.HostFilter{Rack: "r77"}},
		{"profile", func() { h.Profile = "web" }, inventory.HostFilter{}},
		{"no profile", func() { h.Profile = "" }, inventory.HostFilter{}},
		{"port", func() { h.Port = "5@sw1" }, inventory.HostFilter{}},
		{"memory", func() { h.MemoryMiB++ }, inventory.HostFilter{}},
		{"reason", func() { h.StateReason = "for no reason" }, inventory.HostFilter{}},
	} {
		tc.change()
		write(t, s, func(tx inventory.Tx) error { return tx.UpdateHost(&h, Now) })
		read(t, s, func(tx inventory.Tx) error {
			got, err := tx.ListHosts(tc.filter, inventory.Page{})
			same(t, "hosts after a change of "+tc.name, []inventory.Host{h}, got)
			return err
		})
	}
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindHostsByHint(h.UUID, "")
		same(t, "hosts with that UUID", []string{"renamed"}, names(got))
		if err != nil {
			return err
		}
		byPort, err := tx.FindHostByPort("5@sw1")
		same(t, "host at that port", h.ID, byPort.ID)
		return err
	})
}

func hostNICsAndLabels(t *testing.T, s inventory.Store) {
	createHosts(t, s, Host(1))
	h := Host(1)
	h.Version = 1
	h.NICs = []inventory.NIC{{MAC: MAC(500), Name: "new"}, h.NICs[0]} // one gone, one new, another order
	h.Labels = map[string]string{"role": "control", "zone": "b"}
	write(t, s, func(tx inventory.Tx) error { return tx.UpdateHost(&h, Now) })
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindHostByMAC(MAC(500))
		if err != nil {
			return err
		}
		same(t, "NICs", h.NICs, got.NICs)
		same(t, "labels", h.Labels, got.Labels)
		_, err = tx.FindHostByMAC(MAC(3))
		expect(t, err, inventory.NotFound, "52:54:00:00:00:03")
		for label, want := range map[string]int{"role=control": 1, "role=worker": 0, "slot": 0, "zone": 1} {
			n, err := tx.CountHosts(inventory.HostFilter{Label: label})
			if err != nil {
				return err
			}
			if n != want {
				t.Errorf("label %s is on %d hosts, want %d", label, n, want)
			}
		}
		return nil
	})
	h.Labels = nil
	write(t, s, func(tx inventory.Tx) error { return tx.UpdateHost(&h, Now) })
	write(t, s, func(tx inventory.Tx) error { // MACs may move between hosts within one transaction
		h.NICs = h.NICs[:1]
		if err := tx.UpdateHost(&h, Now); err != nil {
			return err
		}
		heir := Host(2)
		heir.NICs = append(heir.NICs, inventory.NIC{MAC: MAC(2)})
		return tx.CreateHost(&heir, Now)
	})
}

func hostLists(t *testing.T, s inventory.Store) {
	var all []inventory.Host
	for n := range 250 {
		h := Host(n)
		if n%50 == 0 {
			h.State = inventory.Failed
		}
		if n == 7 {
			h.Serial, h.Product = `100%_\x`, "ProLiant Größe"
		}
		all = append(all, h)
	}
	createHosts(t, s, all...)
	read(t, s, func(tx inventory.Tx) error {
		for _, c := range []struct {
			about string
			f     inventory.HostFilter
			want  int
		}{
			{"no filter", inventory.HostFilter{}, 250},
			{"state", inventory.HostFilter{State: inventory.Failed}, 5},
			{"rack", inventory.HostFilter{Rack: "r01"}, 40},
			{"label key", inventory.HostFilter{Label: "slot"}, 250},
			{"label value", inventory.HostFilter{Label: "slot=3"}, 7},
			{"rack and label", inventory.HostFilter{Rack: "r01", Label: "slot=3"}, 1},
			{"all at once", inventory.HostFilter{State: inventory.Failed, Rack: "r01", Label: "role=worker", Search: "poweredge"}, 1},
			{"part of a name in any case", inventory.HostFilter{Search: "HOST-0001"}, 10},
			{"serial", inventory.HostFilter{Search: "sn000249"}, 1},
			{"MAC with dashes", inventory.HostFilter{Search: "52-54-00-00-00-0E"}, 1},
			{"part of a MAC", inventory.HostFilter{Search: "00:00:0e"}, 1},
			{"percent is itself", inventory.HostFilter{Search: "0%_"}, 1},
			{"underscore is itself", inventory.HostFilter{Search: "host_"}, 0},
			{"backslash is itself", inventory.HostFilter{Search: `\x`}, 1},
			{"quote is itself", inventory.HostFilter{Search: `'`}, 0},
			{"letters beyond ASCII", inventory.HostFilter{Search: "GRÖSSE"}, 0},
			{"letters beyond ASCII in any case", inventory.HostFilter{Search: "GRÖ"}, 1},
		} {
			n, err := tx.CountHosts(c.f)
			if err != nil {
				return err
			}
			got, err := tx.ListHosts(c.f, inventory.Page{})
			if err != nil {
				return err
			}
			if n != c.want || len(got) != c.want {
				t.Errorf("%s: counted %d, listed %d, want %d", c.about, n, len(got), c.want)
			}
		}
		var paged []inventory.Host
		for after := ""; ; {
			page, err := tx.ListHosts(inventory.HostFilter{Label: "role=worker"}, inventory.Page{After: after, Limit: 60})
			if err != nil {
				return err
			}
			paged = append(paged, page...)
			if len(page) < 60 {
				break
			}
			after = page[59].Name
		}
		same(t, "hosts page by page", names(all), names(paged))
		for i, h := range paged {
			same(t, "NICs of "+h.Name, all[i].NICs, h.NICs)
			same(t, "labels of "+h.Name, all[i].Labels, h.Labels)
		}
		return nil
	})
}

func pinnedProfile(t *testing.T, s inventory.Store) {
	h := Host(1)
	h.Profile = "debian"
	refuses(t, s, inventory.Invalid, "host-00001 debian", func(tx inventory.Tx) error { return tx.CreateHost(&h, Now) })
	write(t, s, func(tx inventory.Tx) error { return createImage(tx, "debian-12", "debian") })
	createHosts(t, s, h)
	refuses(t, s, inventory.Conflict, "debian host-00001", func(tx inventory.Tx) error { return tx.Profiles().Delete("debian") })
	write(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindHost(h.ID)
		if err != nil {
			return err
		}
		same(t, "profile", "debian", got.Profile)
		got.Profile = ""
		if err := tx.UpdateHost(&got, Now); err != nil {
			return err
		}
		return tx.Profiles().Delete("debian")
	})
}

func hostDelete(t *testing.T, s inventory.Store) {
	createHosts(t, s, Host(1))
	write(t, s, func(tx inventory.Tx) error { return tx.DeleteHost(Host(1).ID) })
	refuses(t, s, inventory.NotFound, "host", func(tx inventory.Tx) error { return tx.DeleteHost(Host(1).ID) })
	again := Host(1)
	again.ID = "0193-again"
	createHosts(t, s, again)
}
