package instance

import (
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// TestAnInstanceOfAnotherSiteIsRefused: a site keeps its name while somebody goes by it.
func TestAnInstanceOfAnotherSiteIsRefused(t *testing.T) {
	s := newStore(t)
	write := func(fn func(inventory.Tx) error) {
		t.Helper()
		if err := s.Write(t.Context(), fn); err != nil {
			t.Fatal(err)
		}
	}
	a, b := t.TempDir(), t.TempDir()
	accepted := func(dir, site string) {
		t.Helper()
		if err := CheckSite(t.Context(), s, dir, site); err != nil {
			t.Error(err)
		}
	}
	refused := func(dir, site, why string) {
		t.Helper()
		err := CheckSite(t.Context(), s, dir, site)
		if !inventory.IsKind(err, inventory.Conflict) || !strings.Contains(err.Error(), why) {
			t.Errorf("site %q: %v, want a refusal with %q", site, err, why)
		}
	}
	accepted(a, "")
	accepted(b, "default")
	accepted(b, "fra") // nobody runs, and no machine has a host
	accepted(a, "fra")
	id, err := readID(a)
	if err != nil {
		t.Fatal(err)
	}
	write(func(tx inventory.Tx) error {
		return tx.SaveInstance(inventory.Instance{ID: id, Name: "a", Run: "x", StartedAt: time.Now(), SeenAt: time.Now()})
	})
	refused(b, "muc", "the database is of site fra, and this instance of site muc: instance a uses it as well")
	accepted(a, "muc") // it is started again with another name
	accepted(a, "fra")
	write(func(tx inventory.Tx) error {
		now, digest := time.Now(), inventory.Digest("sha256:"+strings.Repeat("ab", 32))
		if err := tx.SaveArtefact(inventory.Artefact{Digest: digest, SizeBytes: 1, CreatedAt: now}); err != nil {
			return err
		}
		image := inventory.Image{
			Name: "live", OS: "custom", Release: "1", Arch: inventory.X8664,
			Files: []inventory.ImageArtefact{{Role: inventory.RoleKernel, Name: "linux", Digest: digest}},
		}
		if err := tx.Images().Create(&image, now); err != nil {
			return err
		}
		if err := tx.Profiles().Create(&inventory.Profile{Name: "live", Image: "live"}, now); err != nil {
			return err
		}
		h := inventory.Host{ID: "h1", Name: "h1", State: inventory.Available, NICs: []inventory.NIC{{MAC: "52:54:00:00:00:01"}}}
		if err := tx.CreateHost(&h, now); err != nil {
			return err
		}
		m := inventory.Machine{Name: "m1", UID: "u1", Profile: "live", Phase: inventory.MachinePending}
		if err := tx.CreateMachine(&m, now); err != nil {
			return err
		}
		return tx.CreateClaim(&inventory.Claim{ID: "c1", MachineUID: "u1", Machine: "m1", HostID: "h1"}, now)
	})
	refused(a, "muc", "1 machines have hosts, and their provider ids begin with slipway://fra")
	accepted(a, "fra")
}
