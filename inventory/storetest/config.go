package storetest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

func configRoundTrip(t *testing.T, s inventory.Store) {
	write(t, s, func(tx inventory.Tx) error { return createImage(tx, "flatcar", "base") })
	img := inventory.Image{}
	p := inventory.Profile{
		Name: "web", Image: "flatcar", Extends: "base", Config: "host: {locale: C.UTF-8}\n",
		Document: &inventory.Document{Format: inventory.DocButane, Text: "variant: flatcar\n"}, Format: "ignition",
		Accepts: []string{"/storage/lvm"}, Isolated: true, Parameters: map[string]string{"x": "y"},
	}
	write(t, s, func(tx inventory.Tx) (err error) {
		if img, err = tx.Images().Find("flatcar"); err != nil {
			return err
		}
		img.Configs = []inventory.ImageConfig{{Format: "ignition", Version: "3.4.0", InitrdPath: "/config.ign"}, {Format: "cloud-init", Version: "24.1"}}
		img.ConfigArgs = []string{"ignition.config.url=${config}"}
		img.DiskFormat, img.DiskBytes, img.SeedLabel = "raw.zst", 1<<40, "OEM"
		img.Remote = "oci://registry/flatcar@" + string(digest(3))
		if err := tx.Images().Update(&img, Now); err != nil {
			return err
		}
		twin := img
		twin.Name = "flatcar-2"
		if err := tx.Images().Create(&twin, Now); err != nil {
			return err
		}
		return tx.Profiles().Create(&p, Now)
	})
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.Images().Find("flatcar")
		if err != nil {
			return err
		}
		same(t, "image", img, got)
		twin, err := tx.Images().Find("flatcar-2")
		if err != nil {
			return err
		}
		same(t, "formats of a created image", img.Configs, twin.Configs)
		same(t, "arguments of a created image", img.ConfigArgs, twin.ConfigArgs)
		same(t, "disk of a created image", []any{img.DiskFormat, img.DiskBytes, img.Remote, img.SeedLabel},
			[]any{twin.DiskFormat, twin.DiskBytes, twin.Remote, twin.SeedLabel})
		gotP, err := tx.Profiles().Find("web")
		same(t, "profile", p, gotP)
		return err
	})
	p.Document, p.Extends, p.Accepts, p.Isolated = nil, "", nil, false
	write(t, s, func(tx inventory.Tx) error { return tx.Profiles().Update(&p, Now) })
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.Profiles().Find("web")
		same(t, "emptied profile", p, got)
		return err
	})
}

// numbers returns the numbers of the revisions, newest first.
func numbers(t *testing.T, s inventory.Store, k inventory.RevisionKind, name string, before, limit int) (ns []int) {
	t.Helper()
	read(t, s, func(tx inventory.Tx) error {
		list, err := tx.ListRevisions(k, name, before, limit)
		for _, r := range list {
			ns = append(ns, r.N)
		}
		return err
	})
	return ns
}

func profileRevisions(t *testing.T, s inventory.Store) {
	write(t, s, func(tx inventory.Tx) error { return createImage(tx, "debian-12", "web") })
	var p inventory.Profile
	update := func(config string) {
		t.Helper()
		write(t, s, func(tx inventory.Tx) (err error) {
			if p, err = tx.Profiles().Find("web"); err != nil {
				return err
			}
			p.Config, p.Revision = config, 99 // the store counts, not the caller
			p.Accepts = []string{}            // as good as none
			return tx.Profiles().Update(&p, Now.Add(time.Hour))
		})
	}
	update("")
	same(t, "revision and version after a save without a change", []int64{1, 2}, []int64{int64(p.Revision), p.Version})
	update("host: {locale: C}\n")
	update("host: {locale: C.UTF-8}\n")
	update("host: {locale: C}\n") // what was once is new again
	same(t, "revision after three changes", 4, p.Revision)
	of := inventory.RevisionOfProfile
	same(t, "revisions", []int{4, 3, 2, 1}, numbers(t, s, of, "web", 0, 0))
	same(t, "a page of revisions", []int{3, 2}, numbers(t, s, of, "web", 4, 2))
	same(t, "revisions of another", []int(nil), numbers(t, s, inventory.RevisionOfLayer, "web", 0, 0))
	read(t, s, func(tx inventory.Tx) error {
		stored, err := tx.Profiles().Find("web")
		if err != nil {
			return err
		}
		same(t, "the stored number", 4, stored.Revision)
		r, err := tx.FindRevision(of, "web", 3)
		if err != nil {
			return err
		}
		var was inventory.Profile
		if err := json.Unmarshal(r.Body, &was); err != nil {
			return err
		}
		same(t, "what the revision says", []any{"host: {locale: C.UTF-8}\n", 3, "debian-12"}, []any{was.Config, was.Revision, was.Image})
		same(t, "when it was made", Now.Add(time.Hour).Truncate(time.Millisecond), r.CreatedAt)
		_, err = tx.FindRevision(of, "web", 5)
		expect(t, err, inventory.NotFound, "revision 5 web")
		return nil
	})
	stale := p
	stale.Version, stale.Config = 1, "host: {}\n"
	write(t, s, func(tx inventory.Tx) error { // who goes on after the refusal finds no revision of it
		expect(t, tx.Profiles().Update(&stale, Now), inventory.Conflict, "profile web changed")
		return nil
	})
	same(t, "revisions after a refusal", []int{4, 3, 2, 1}, numbers(t, s, of, "web", 0, 0))
	write(t, s, func(tx inventory.Tx) error {
		if err := tx.Profiles().Delete("web"); err != nil {
			return err
		}
		again := inventory.Profile{Name: "web", Image: "debian-12", Selector: "mac"}
		err := tx.Profiles().Create(&again, Now)
		same(t, "revision of a profile that was deleted before", 5, again.Revision)
		return err
	})
	same(t, "revisions after all", []int{5, 4, 3, 2, 1}, numbers(t, s, of, "web", 0, 0))
}

func profileParents(t *testing.T, s inventory.Store) {
	write(t, s, func(tx inventory.Tx) error { return createImage(tx, "debian-12", "a") })
	create := func(name, extends string) func(tx inventory.Tx) error {
		return func(tx inventory.Tx) error {
			return tx.Profiles().Create(&inventory.Profile{Name: name, Image: "debian-12", Extends: extends}, Now)
		}
	}
	write(t, s, create("b", "a"))
	write(t, s, create("c", "b"))
	refuses(t, s, inventory.Invalid, "d nobody", create("d", "nobody"))
	refuses(t, s, inventory.Invalid, "circle d", create("d", "d"))
	refuses(t, s, inventory.Invalid, "a extends c extends b extends a", func(tx inventory.Tx) error {
		p, err := tx.Profiles().Find("a")
		if err != nil {
			return err
		}
		p.Extends = "c"
		return tx.Profiles().Update(&p, Now)
	})
	refuses(t, s, inventory.Conflict, "profile a used by profile b", func(tx inventory.Tx) error { return tx.Profiles().Delete("a") })
	write(t, s, func(tx inventory.Tx) error { return tx.Profiles().Delete("c") })
	same(t, "revisions of a refused profile", []int(nil), numbers(t, s, inventory.RevisionOfProfile, "d", 0, 0))
}

func pinnedRevision(t *testing.T, s inventory.Store) {
	write(t, s, func(tx inventory.Tx) error { return createImage(tx, "debian-12", "web") })
	h := Host(1)
	h.ProfileRevision = 1
	create := func(tx inventory.Tx) error { return tx.CreateHost(&h, Now) }
	refuses(t, s, inventory.Invalid, "host-00001 no profile", create)
	h.Profile, h.ProfileRevision = "web", 2
	refuses(t, s, inventory.Invalid, "host-00001 revision 2 web", create)
	h.ProfileRevision = -1
	refuses(t, s, inventory.Invalid, "revision -1", create)
	h.ProfileRevision = 1
	write(t, s, create)
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindHost(h.ID)
		same(t, "host", h, got)
		return err
	})
	h.ProfileRevision = 7
	refuses(t, s, inventory.Invalid, "revision 7", func(tx inventory.Tx) error { return tx.UpdateHost(&h, Now) })
	h.ProfileRevision = 0
	write(t, s, func(tx inventory.Tx) error { return tx.UpdateHost(&h, Now) })
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindHost(h.ID)
		same(t, "pin after it was taken off", 0, got.ProfileRevision)
		return err
	})
}

func layers(t *testing.T, s inventory.Store) {
	createHosts(t, s, Host(1))
	own := inventory.Layer{Scope: inventory.ScopeHost, Name: string(Host(1).ID), Config: "host: {}\n"}
	global := inventory.Layer{Scope: inventory.ScopeGlobal, Config: "host: {locale: C}\n"}
	rack := inventory.Layer{Scope: inventory.ScopeRack, Name: "r1"}
	write(t, s, func(tx inventory.Tx) error {
		for _, l := range []*inventory.Layer{&rack, &own, &global} {
			if err := tx.Layers().Create(l, Now); err != nil {
				return err
			}
		}
		return nil
	})
	refuses(t, s, inventory.Conflict, "layer rack/r1", func(tx inventory.Tx) error { l := rack; return tx.Layers().Create(&l, Now) })
	refuses(t, s, inventory.Invalid, "host nobody", func(tx inventory.Tx) error {
		return tx.Layers().Create(&inventory.Layer{Scope: inventory.ScopeHost, Name: "nobody"}, Now)
	})
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.Layers().Find(inventory.LayerKey(inventory.ScopeGlobal, ""))
		if err != nil {
			return err
		}
		same(t, "global layer", global, got)
		all, err := tx.Layers().List(inventory.Page{})
		if err != nil {
			return err
		}
		same(t, "layers", []inventory.Layer{global, own, rack}, all)
		page, err := tx.Layers().List(inventory.Page{After: "global", Limit: 1})
		same(t, "a page of layers", []inventory.Layer{own}, page)
		_, gone := tx.Layers().Find(inventory.LayerKey(inventory.ScopeSite, "r1"))
		expect(t, gone, inventory.NotFound, "layer site/r1")
		return err
	})
	rack.Config = "host: {locale: C}\n"
	write(t, s, func(tx inventory.Tx) error { return tx.Layers().Update(&rack, Now.Add(time.Second)) })
	write(t, s, func(tx inventory.Tx) error { return tx.Layers().Update(&rack, Now.Add(time.Minute)) })
	same(t, "revision and version", []int64{2, 3}, []int64{int64(rack.Revision), rack.Version})
	same(t, "revisions", []int{2, 1}, numbers(t, s, inventory.RevisionOfLayer, "rack/r1", 0, 0))
	stale := rack
	stale.Version, stale.Config = 1, "x"
	write(t, s, func(tx inventory.Tx) error {
		expect(t, tx.Layers().Update(&stale, Now), inventory.Conflict, "layer rack/r1 changed")
		return nil
	})
	same(t, "revisions after a refusal", []int{2, 1}, numbers(t, s, inventory.RevisionOfLayer, "rack/r1", 0, 0))
	write(t, s, func(tx inventory.Tx) error {
		if err := tx.Layers().Delete(inventory.LayerKey(inventory.ScopeRack, "r1")); err != nil {
			return err
		}
		again := inventory.Layer{Scope: inventory.ScopeRack, Name: "r1", Config: "new"}
		err := tx.Layers().Create(&again, Now)
		same(t, "revision of a layer that was deleted before", 3, again.Revision)
		if err != nil {
			return err
		}
		return tx.DeleteHost(Host(1).ID) // takes its layer with it
	})
	refuses(t, s, inventory.NotFound, "layer host/", func(tx inventory.Tx) error { return tx.Layers().Delete(inventory.LayerKey(own.Scope, own.Name)) })
}

func rendering(n int, host inventory.HostID) inventory.Rendering {
	return inventory.Rendering{
		Digest: digest(n), HostID: host, Profile: "web", Revision: 3, Image: "flatcar", Format: "ignition",
		Documents: []inventory.RenderedDocument{
			{Name: "config.ign", ContentType: "application/json", Text: `{"ignition":{}}`, Path: "/config.ign", IsSecret: true},
			{Name: "meta-data", ContentType: "text/plain"},
		},
		Args: []string{"console=ttyS0"}, CreatedAt: Now.Truncate(time.Millisecond),
	}
}

func renderings(t *testing.T, s inventory.Store) {
	one, two := rendering(1, "h1"), rendering(2, "h1")
	other := rendering(1, "h2")
	other.CreatedAt = other.CreatedAt.Add(time.Second)
	other.Args, other.Documents = nil, nil
	for _, r := range []inventory.Rendering{one, two, other} {
		write(t, s, func(tx inventory.Tx) error { return tx.SaveRendering(r) })
	}
	list := func(host inventory.HostID, limit int) (got []inventory.Rendering) {
		t.Helper()
		read(t, s, func(tx inventory.Tx) (err error) { got, err = tx.ListRenderings(host, limit); return err })
		return got
	}
	same(t, "renderings", []inventory.Rendering{two, one}, list("h1", 0))
	again := one
	again.CreatedAt, again.Profile = Now.Add(time.Hour), "later"
	write(t, s, func(tx inventory.Tx) error { return tx.SaveRendering(again) })
	same(t, "renderings after the first came again", []inventory.Rendering{one, two}, list("h1", 0))
	same(t, "the latest rendering", []inventory.Rendering{one}, list("h1", 1))
	same(t, "those of another host", []inventory.Rendering{other}, list("h2", 0))
	for _, c := range []struct {
		host inventory.HostID
		n    int
		want bool
	}{{"h1", 1, true}, {"h1", 2, true}, {"h2", 1, true}, {"h2", 2, false}, {"h3", 1, false}, {"h1", 3, false}} {
		read(t, s, func(tx inventory.Tx) error {
			got, err := tx.HasRendering(c.host, digest(c.n))
			same(t, fmt.Sprintf("host %s has rendering %d", c.host, c.n), c.want, got)
			return err
		})
	}
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindRendering(digest(2))
		same(t, "a rendering by digest", two, got)
		if err != nil {
			return err
		}
		got, err = tx.FindRendering(digest(1))
		same(t, "one that two hosts share", other, got)
		_, gone := tx.FindRendering(digest(3))
		expect(t, gone, inventory.NotFound, "rendering "+string(digest(3)))
		return err
	})
}
