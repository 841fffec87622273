package storetest

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

func digest(n int) inventory.Digest {
	return inventory.Digest("sha256:" + fmt.Sprintf("%064x", n))
}

// createImage stores an image of two files and a profile for it.
func createImage(tx inventory.Tx, name, profile string) error {
	for n := range 2 {
		if err := tx.SaveArtefact(inventory.Artefact{Digest: digest(n), SizeBytes: 10, Source: "test", CreatedAt: Now.Truncate(time.Millisecond)}); err != nil {
			return err
		}
	}
	err := tx.Images().Create(&inventory.Image{
		Name: name, OS: "debian", Release: "12", Arch: inventory.X8664, MemoryMiB: 512, IsInstaller: true,
		KernelArgs: []string{"console=ttyS0", "quiet"},
		Files: []inventory.ImageArtefact{
			{Role: inventory.RoleKernel, Name: "linux", Digest: digest(0)}, {Role: inventory.RoleInitrd, Name: "initrd.gz", Digest: digest(1)},
		},
	}, Now)
	if err != nil {
		return err
	}
	return tx.Profiles().Create(&inventory.Profile{
		Name: profile, Image: name, Selector: "rack=r1", Priority: 5,
		KernelArgs: []string{"a=b"}, Parameters: map[string]string{"url": "http://x/"},
	}, Now)
}

func images(t *testing.T, s inventory.Store) {
	write(t, s, func(tx inventory.Tx) error { return createImage(tx, "debian-12", "debian") })
	write(t, s, func(tx inventory.Tx) error { // again is harmless
		return tx.SaveArtefact(inventory.Artefact{Digest: digest(0), SizeBytes: 10, Source: "elsewhere"})
	})
	var img inventory.Image
	var prof inventory.Profile
	read(t, s, func(tx inventory.Tx) (err error) {
		if img, err = tx.Images().Find("debian-12"); err != nil {
			return err
		}
		if prof, err = tx.Profiles().Find("debian"); err != nil {
			return err
		}
		if len(img.Files) != 2 || img.Files[1].Name != "initrd.gz" || !img.IsInstaller || img.Version != 1 {
			t.Errorf("image came back as %+v", img)
		}
		same(t, "kernel arguments", []string{"console=ttyS0", "quiet"}, img.KernelArgs)
		same(t, "parameters", map[string]string{"url": "http://x/"}, prof.Parameters)
		imgs, err := tx.Images().List(inventory.Page{})
		if err != nil {
			return err
		}
		same(t, "images", []inventory.Image{img}, imgs)
		profs, err := tx.Profiles().List(inventory.Page{Limit: 1})
		if err != nil {
			return err
		}
		same(t, "profiles", []inventory.Profile{prof}, profs)
		arts, err := tx.ListArtefacts(inventory.Page{After: string(digest(0))})
		if err != nil {
			return err
		}
		same(t, "artefacts", 1, len(arts))
		a, err := tx.FindArtefact(digest(0))
		same(t, "source of an artefact", "test", a.Source)
		return err
	})
	refuses(t, s, inventory.Conflict, "debian-12", func(tx inventory.Tx) error { return tx.DeleteArtefact(digest(1)) })
	refuses(t, s, inventory.Conflict, "debian-12 debian", func(tx inventory.Tx) error { return tx.Images().Delete("debian-12") })
	refuses(t, s, inventory.Conflict, "image debian-12", func(tx inventory.Tx) error { return createImage(tx, "debian-12", "other") })
	refuses(t, s, inventory.Conflict, "profile debian", func(tx inventory.Tx) error { return createImage(tx, "other", "debian") })
	refuses(t, s, inventory.Invalid, "broken linux", func(tx inventory.Tx) error {
		return tx.Images().Create(&inventory.Image{Name: "broken", Files: []inventory.ImageArtefact{{Role: inventory.RoleKernel, Name: "linux", Digest: digest(99)}}}, Now)
	})
	refuses(t, s, inventory.Invalid, "lost nothing", func(tx inventory.Tx) error {
		return tx.Profiles().Create(&inventory.Profile{Name: "lost", Image: "nothing"}, Now)
	})
	write(t, s, func(tx inventory.Tx) error {
		img.Files, img.KernelArgs = img.Files[:1], nil
		if err := tx.Images().Update(&img, Now); err != nil {
			return err
		}
		prof.Priority = 9
		if err := tx.Profiles().Update(&prof, Now); err != nil {
			return err
		}
		return tx.DeleteArtefact(digest(1)) // no longer in use
	})
	img.Version, prof.Version = 1, 1
	refuses(t, s, inventory.Conflict, "image", func(tx inventory.Tx) error { return tx.Images().Update(&img, Now) })
	refuses(t, s, inventory.Conflict, "profile", func(tx inventory.Tx) error { return tx.Profiles().Update(&prof, Now) })
	write(t, s, func(tx inventory.Tx) error {
		got, err := tx.Images().Find("debian-12")
		if err != nil {
			return err
		}
		if len(got.Files) != 1 || got.KernelArgs != nil || got.Version != 2 {
			t.Errorf("updated image came back as %+v", got)
		}
		if err := tx.Profiles().Delete("debian"); err != nil {
			return err
		}
		if err := tx.Images().Delete("debian-12"); err != nil {
			return err
		}
		return tx.DeleteArtefact(digest(0))
	})
	refuses(t, s, inventory.NotFound, "image", func(tx inventory.Tx) error { return tx.Images().Delete("debian-12") })
	refuses(t, s, inventory.NotFound, "profile", func(tx inventory.Tx) error { return tx.Profiles().Delete("debian") })
	refuses(t, s, inventory.NotFound, "artefact", func(tx inventory.Tx) error { return tx.DeleteArtefact(digest(0)) })
}

func session(n int, host inventory.HostID) inventory.BootSession {
	at := Now.Truncate(time.Millisecond).Add(time.Duration(n) * time.Second)
	return inventory.BootSession{
		ID: inventory.SessionID(fmt.Sprintf("%032x", 1000-n)), HostID: host, MAC: MAC(1), Address: netip.MustParseAddr("10.1.1.1"),
		Arch: inventory.X8664, Firmware: inventory.UEFI, Subnet: "rack1", Boot: "image", Reason: "profile debian matches",
		Profile: "debian", Image: "debian-12", Config: digest(7), Operation: "01OP", MachineUUID: "4c4c4544-0000-4000-8000-000000000001", Step: inventory.EventDHCPAck, StartedAt: at, LastAt: at,
	}
}

func sessions(t *testing.T, s inventory.Store) {
	old, b := session(1, "h1"), session(2, "h1")
	b.Address = netip.Addr{}
	write(t, s, func(tx inventory.Tx) error {
		if err := tx.SaveSession(old); err != nil {
			return err
		}
		return tx.SaveSession(b)
	})
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindSession(old.ID)
		same(t, "session", old, got)
		if err != nil {
			return err
		}
		got, err = tx.FindOpenSession(MAC(1))
		same(t, "latest open session", b, got)
		_, gone := tx.FindOpenSession(MAC(2))
		expect(t, gone, inventory.NotFound, "session")
		return err
	})
	b.Outcome, b.EndedAt, b.Config = inventory.OutcomeArrived, b.LastAt.Add(time.Second), digest(8)
	b.Operation = "01OTHER"
	write(t, s, func(tx inventory.Tx) error { return tx.SaveSession(b) })
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindOpenSession(MAC(1))
		same(t, "the older one, which is still open", old, got)
		if err != nil {
			return err
		}
		if got, err = tx.FindSession(b.ID); err != nil {
			return err
		}
		same(t, "ended session", b, got)
		for _, c := range []struct {
			before time.Time
			want   int
		}{{old.LastAt, 0}, {old.LastAt.Add(time.Millisecond), 1}, {b.LastAt.Add(time.Hour), 1}} {
			open, err := tx.ListOpenSessions(c.before)
			if err != nil {
				return err
			}
			same(t, "open sessions quiet since "+c.before.String(), c.want, len(open))
		}
		return nil
	})
}

// sessionFields saves a session again and again, each time with one more field of another value.
func sessionFields(t *testing.T, s inventory.Store) {
	b := session(1, "h1")
	later := b.LastAt.Add(time.Minute)
	for field, change := range []func(){
		func() {}, func() { b.HostID = "h2" }, func() { b.MAC = MAC(2) }, func() { b.Address = netip.MustParseAddr("10.1.1.2") },
		func() { b.Arch = inventory.ARM64 }, func() { b.Firmware = inventory.BIOS }, func() { b.Subnet = "rack2" }, func() { b.Boot = "disk" },
		func() { b.Reason = "installed" }, func() { b.Profile = "other" }, func() { b.Image = "debian-13" }, func() { b.Config = digest(9) },
		func() { b.Operation = "02OP" }, func() { b.Step = inventory.EventBootDecided }, func() { b.LastAt = later },
		func() { b.Outcome = inventory.OutcomeDisk }, func() { b.EndedAt = later }, func() { b.StartedAt = b.StartedAt.Add(-time.Minute) },
	} {
		change()
		write(t, s, func(tx inventory.Tx) error { return tx.SaveSession(b) })
		read(t, s, func(tx inventory.Tx) error {
			got, err := tx.FindSession(b.ID)
			same(t, fmt.Sprintf("session after change %d", field), b, got)
			return err
		})
	}
}

// eventIDs adds events alone and together: each is told its own id.
func eventIDs(t *testing.T, s inventory.Store) {
	var all []*inventory.Event
	for n := range 6 {
		e := event("server", "", "")
		e.Detail = fmt.Sprint("number ", n)
		all = append(all, e)
	}
	write(t, s, func(tx inventory.Tx) error {
		if err := tx.AddEvent(all[0]); err != nil {
			return err
		}
		return tx.AddEvent(all[1:]...)
	})
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.ListEvents(inventory.EventFilter{}, all[0].ID-1, 100)
		for i, e := range got {
			same(t, "id and text of an event", fmt.Sprint(all[i].ID, all[i].Detail), fmt.Sprint(e.ID, e.Detail))
		}
		same(t, "events", len(all), len(got))
		return err
	})
}

func sessionLists(t *testing.T, s inventory.Store) {
	write(t, s, func(tx inventory.Tx) error {
		for n := range 20 {
			b := session(n/2, inventory.HostID(fmt.Sprintf("h%d", n%2))) // two begin at each moment
			b.ID = inventory.SessionID(fmt.Sprintf("%032x", n))
			if err := tx.SaveSession(b); err != nil {
				return err
			}
		}
		return nil
	})
	read(t, s, func(tx inventory.Tx) error {
		for host, want := range map[inventory.HostID]int{"": 20, "h0": 10, "h2": 0} {
			var ids []string
			for after := ""; ; {
				page, err := tx.ListSessions(host, inventory.Page{After: after, Limit: 3})
				if err != nil {
					return err
				}
				for _, b := range page {
					ids = append(ids, string(b.ID))
				}
				if len(page) < 3 {
					break
				}
				after = ids[len(ids)-1]
			}
			same(t, "sessions of "+string(host), want, len(ids))
			for i := 1; i < len(ids); i++ {
				if ids[i] >= ids[i-1] {
					t.Errorf("sessions of %q are not latest first: %v", host, ids)
					break
				}
			}
		}
		_, err := tx.ListSessions("", inventory.Page{After: "nothing"})
		expect(t, err, inventory.NotFound, "session nothing")
		return nil
	})
}

func event(kind string, host inventory.HostID, session inventory.SessionID) *inventory.Event {
	return &inventory.Event{
		At: Now.Truncate(time.Millisecond), Kind: kind, HostID: host, SessionID: session, MAC: MAC(1), Subject: "subnet/rack1",
		Detail: "line", Data: map[string]any{"address": "10.1.1.1", "n": 2.0},
	}
}

func events(t *testing.T, s inventory.Store) {
	read(t, s, func(tx inventory.Tx) error {
		id, err := tx.LastEventID()
		same(t, "id of the newest of no events", int64(0), id)
		return err
	})
	var last int64
	for range 3 {
		var added []*inventory.Event
		write(t, s, func(tx inventory.Tx) error {
			for range 3 {
				e := event(inventory.EventDHCPOffer, "h1", "s1")
				if err := tx.AddEvent(e); err != nil {
					return err
				}
				added = append(added, e)
			}
			return nil
		})
		for _, e := range added {
			if e.ID <= last {
				t.Errorf("event id %d follows %d", e.ID, last)
			}
			last = e.ID
		}
	}
	read(t, s, func(tx inventory.Tx) error {
		id, err := tx.LastEventID()
		if err != nil {
			return err
		}
		same(t, "id of the newest event", last, id)
		all, err := tx.ListEvents(inventory.EventFilter{}, 0, 100)
		if err != nil {
			return err
		}
		same(t, "events", 9, len(all))
		want := *event(inventory.EventDHCPOffer, "h1", "s1")
		want.ID = last
		same(t, "event", want, all[8])
		page, err := tx.ListEvents(inventory.EventFilter{}, all[3].ID, 2)
		same(t, "a page of events", all[4:6], page)
		return err
	})
}

func eventFilters(t *testing.T, s inventory.Store) {
	write(t, s, func(tx inventory.Tx) error {
		for _, e := range []*inventory.Event{
			event("dhcp.offer", "h1", "s1"), event("dhcp.ack", "h2", "s2"), event("dhcpx.y", "h1", "s3"), event("server", "", ""),
			{At: Now, Kind: "server", Detail: "without anything"},
		} {
			if err := tx.AddEvent(e); err != nil {
				return err
			}
		}
		return nil
	})
	read(t, s, func(tx inventory.Tx) error {
		for _, c := range []struct {
			f    inventory.EventFilter
			want string
		}{
			{inventory.EventFilter{}, "dhcp.offer dhcp.ack dhcpx.y server server"},
			{inventory.EventFilter{HostID: "h1"}, "dhcp.offer dhcpx.y"},
			{inventory.EventFilter{SessionID: "s2"}, "dhcp.ack"},
			{inventory.EventFilter{Kind: "dhcp"}, "dhcp.offer dhcp.ack"},
			{inventory.EventFilter{Kind: "dhcp.ack"}, "dhcp.ack"},
			{inventory.EventFilter{Kind: "dhcp", Before: 1 << 60}, "dhcp.ack dhcp.offer"},
			{inventory.EventFilter{Kind: "dhcp", Before: 2}, "dhcp.offer"},
			{inventory.EventFilter{HostID: "h1", Kind: "dhcp", Before: 1 << 60}, "dhcp.offer"},
			{inventory.EventFilter{Kind: "server"}, "server server"},
			{inventory.EventFilter{Kind: "dhc"}, ""},
			{inventory.EventFilter{HostID: "h1", SessionID: "s1", Kind: "dhcp"}, "dhcp.offer"},
			{inventory.EventFilter{Before: 1 << 60}, "server server dhcpx.y dhcp.ack dhcp.offer"},
			{inventory.EventFilter{HostID: "h1", Before: 1 << 60}, "dhcpx.y dhcp.offer"},
			{inventory.EventFilter{Before: 1}, ""},
		} {
			got, err := tx.ListEvents(c.f, 0, 10)
			if err != nil {
				return err
			}
			var kinds []string
			for _, e := range got {
				kinds = append(kinds, e.Kind)
			}
			same(t, fmt.Sprintf("events by %+v", c.f), c.want, strings.Join(kinds, " "))
		}
		return nil
	})
}
