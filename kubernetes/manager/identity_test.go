package manager

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
)

// TestADetachedClusterIsNotAnybodyWhoSaysItsUID: its machines, and what an admin let it do, are kept under the UID, which an API
// server says of itself.
func TestADetachedClusterIsNotAnybodyWhoSaysItsUID(t *testing.T) {
	const uid = "aaaaaaaa-0000-4000-8000-000000000001"
	ca, renewed, hostile := testCA(t), testCA(t), testCA(t)
	of := func(pems string) []string {
		return authorityOf(&rest.Config{Host: "https://10.0.0.1:6443", TLSClientConfig: rest.TLSClientConfig{CAData: []byte(pems)}})
	}
	machine := func(tx inventory.Tx) error {
		digest := inventory.Digest("sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
		i := inventory.Image{Name: "debian", OS: "debian", Release: "12", Arch: inventory.X8664, Files: []inventory.ImageArtefact{{Role: inventory.RoleKernel, Name: "linux", Digest: digest}}}
		return errors.Join(tx.SaveArtefact(inventory.Artefact{Digest: digest, SizeBytes: 3, Source: "http://example.com/linux", CreatedAt: time.Now()}),
			tx.Images().Create(&i, time.Now()), tx.Profiles().Create(&inventory.Profile{Name: "worker", Image: "debian"}, time.Now()),
			tx.CreateMachine(&inventory.Machine{Name: "web", UID: "u", Profile: "worker", Phase: inventory.MachinePending, Owner: uid + "/prod/MetalMachine/web/u"}, time.Now()))
	}
	for _, c := range []struct {
		name     string
		before   string // authority of the attachment that was detached; "" for none
		kept     func(tx inventory.Tx) error
		now      string
		takeOver bool
		isFirst  bool // the attachment is from before authorities were kept, and has the UID
		want     inventory.Kind
	}{
		{name: "the same authority", before: ca, kept: machine, now: ca},
		{name: "another authority", before: ca, kept: machine, now: hostile, want: inventory.Conflict},
		{name: "another authority, and only grants", before: ca, now: hostile, want: inventory.Conflict},
		{name: "an authority that is being replaced", before: ca + renewed, kept: machine, now: renewed},
		{name: "an admin's word", before: ca, kept: machine, now: hostile, takeOver: true},
		{name: "no authority is known, and it has machines", kept: machine, now: hostile, want: inventory.Conflict},
		{name: "its controllers run inside of it", kept: func(tx inventory.Tx) error {
			return tx.CreateToken(&inventory.Token{Name: "mgmt", Hash: "h", Cluster: uid}, time.Now())
		}, now: hostile, want: inventory.Conflict},
		{name: "nothing is kept for it", now: ca},
		{name: "it is attached since before an upgrade", kept: machine, now: ca, isFirst: true},
		{name: "the authorities of the system, another server", before: "none", kept: machine, now: hostile, want: inventory.Conflict},
	} {
		t.Run(c.name, func(t *testing.T) {
			store, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(t.TempDir(), "db")})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			a := New(Config{Store: store})
			write := func(fn func(tx inventory.Tx) error) {
				t.Helper()
				if err := store.Write(t.Context(), fn); err != nil {
					t.Fatal(err)
				}
			}
			attach := func(row inventory.Cluster) inventory.Cluster {
				row.Kubeconfig, row.State = "k", inventory.ClusterAttaching
				write(func(tx inventory.Tx) error {
					return errors.Join(tx.Clusters().Create(&row, time.Now()), tx.NoteCluster(&row))
				})
				return row
			}
			write(func(tx inventory.Tx) error {
				return tx.Secrets().Create(&inventory.Secret{Name: "k", Sealed: []byte("x")}, time.Now())
			})
			if c.kept != nil {
				write(c.kept)
			}
			if c.before != "" {
				old := attach(inventory.Cluster{Name: "old", TakesOver: true})
				if err := a.take(t.Context(), old, uid, of(c.before)); err != nil {
					t.Fatal(err)
				}
				write(func(tx inventory.Tx) error { return tx.Clusters().Delete("old") })
			}
			row := inventory.Cluster{Name: "new", TakesOver: c.takeOver}
			if c.isFirst {
				row.UID = uid
			}
			row = attach(row)
			if err := a.take(t.Context(), row, uid, of(c.now)); inventory.KindOf(err) != c.want {
				t.Fatalf("%v, want %q", err, c.want)
			}
			write(func(tx inventory.Tx) error {
				is, err := tx.Clusters().Find("new")
				known, failed := tx.FindClusterAccess(uid)
				if c.want != "" {
					if is.UID != "" || c.before != "" && !slices.Equal(known.Authority, of(c.before)) {
						t.Errorf("it was refused, and stored is %+v %+v", is, known)
					}
					return errors.Join(err, failed)
				}
				if is.UID != uid || is.TakesOver || !slices.Equal(known.Authority, of(c.now)) {
					t.Errorf("stored is %+v %+v", is, known)
				}
				return errors.Join(err, failed)
			})
			if c.takeOver { // the word counts once
				if err := a.take(t.Context(), row, uid, of(ca)); inventory.KindOf(err) != inventory.Conflict {
					t.Errorf("a third authority: %v", err)
				}
			}
		})
	}
}
