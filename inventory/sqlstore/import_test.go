package sqlstore

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/storetest"
	"slipway.dev/slipway/inventory/transfer"
)

// counter draws ids in order.
func counter() func() inventory.HostID {
	n := 0
	return func() inventory.HostID {
		n++
		return inventory.HostID(fmt.Sprintf("id-%06d", n))
	}
}

func apply(t testing.TB, s *Store, d transfer.Document, newID func() inventory.HostID) (diff transfer.Diff, err error) {
	t.Helper()
	err = s.Write(t.Context(), func(tx inventory.Tx) (err error) {
		diff, err = transfer.Apply(tx, d, storetest.Now, newID)
		return err
	})
	return diff, err
}

func TestAnImportIsWholeOrNothing(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "slipway.db"))
	const good = `
subnets:
- {name: rack1, cidr: 10.1.0.0/24, ranges: [10.1.0.10-10.1.0.99]}
reservations:
- {address: 10.1.0.5, subnet: rack1, mac: 52:54:00:00:00:01}
hosts:
- {name: a, macs: [52:54:00:00:00:01], accepted: true}
- {name: b, macs: [52:54:00:00:00:02, 52:54:00:00:00:03], labels: {role: db}}
`
	d, err := transfer.ReadYAML("rack.yaml", strings.NewReader(good))
	if err != nil {
		t.Fatal(err)
	}
	newID := counter()
	diff, err := apply(t, s, d, newID)
	if err != nil || diff.CountN(transfer.OpCreate) != 4 {
		t.Fatalf("first import: %v\n%s", err, diff)
	}
	diff, err = apply(t, s, d, newID)
	if err != nil || diff.CountN(transfer.OpUnchanged) != 4 || len(diff.Changes) != 4 {
		t.Fatalf("the same import again: %v\n%s", err, diff)
	}
	const bad = `
subnets:
- {name: rack2, cidr: 10.2.0.0/24}
- {name: rack1, cidr: 10.1.0.0/24, mtu: 9000}
hosts:
- {name: c, macs: [52:54:00:00:00:04]}
- {name: d, macs: [52:54:00:00:00:01, 52:54:00:00:00:02]}
`
	d, err = transfer.ReadYAML("bad.yaml", strings.NewReader(bad))
	if err != nil {
		t.Fatal(err)
	}
	_, err = apply(t, s, d, newID)
	var e *inventory.Error
	if !errors.As(err, &e) || !strings.HasPrefix(e.Msg, "bad.yaml:7: the MACs belong to two hosts, a and b") {
		t.Fatalf("got %v", err)
	}
	var c transfer.Current
	err = s.Read(t.Context(), func(tx inventory.Tx) (err error) { c, err = transfer.Load(tx); return err })
	if err != nil || len(c.Hosts) != 2 || len(c.Subnets) != 1 || c.Subnets[0].MTU != 0 {
		t.Errorf("the refused import left a trace: %+v, %v", c, err)
	}
	if c.Hosts[0].State != inventory.Available || c.Hosts[1].State != inventory.Discovered {
		t.Errorf("the hosts are %s and %s", c.Hosts[0].State, c.Hosts[1].State)
	}
}

// TestWhatHostsBecomeIsImported moves profiles, layers and targets to a store that has the image and the secret, and
// finds nothing to do in its own export.
func TestWhatHostsBecomeIsImported(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "slipway.db"))
	err := s.Write(t.Context(), func(tx inventory.Tx) error {
		sum := inventory.Digest("sha256:" + strings.Repeat("0", 64))
		return errors.Join(
			tx.SaveArtefact(inventory.Artefact{Digest: sum}),
			tx.Images().Create(&inventory.Image{Name: "flatcar", Files: []inventory.ImageArtefact{{Role: inventory.RoleKernel, Name: "k", Digest: sum}}}, storetest.Now),
			tx.Secrets().Create(&inventory.Secret{Name: "admin", Sealed: []byte("sealed")}, storetest.Now))
	})
	if err != nil {
		t.Fatal(err)
	}
	const file = `
secrets:
- {name: admin, about: of prod}
targets:
- {name: prod, endpoint: "10.0.0.9:6443", kubeconfig: admin}
profiles:
- {name: web, image: flatcar, extends: base, documentFormat: butane, document: "variant: flatcar\n"}
- name: base
  image: flatcar
  config: |
    host: {locale: C}
hosts:
- {name: a, macs: [52:54:00:00:00:01], profile: web}
layers:
- {layer: host/a, config: "host: {keymap: de}\n"}
- {layer: global, config: "time: {ntpServers: [10.0.0.1]}\n"}
`
	d, err := transfer.ReadYAML("configs.yaml", strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	diff, err := apply(t, s, d, counter())
	if err != nil || diff.CountN(transfer.OpCreate) != 6 || diff.CountN(transfer.OpUpdate) != 1 {
		t.Fatalf("%v\n%s", err, diff)
	}
	var c transfer.Current
	err = s.Read(t.Context(), func(tx inventory.Tx) (err error) {
		if x, err := tx.Secrets().Find("admin"); err != nil || string(x.Sealed) != "sealed" || x.About != "of prod" {
			t.Errorf("the secret is %+v, %v", x, err)
		}
		if l, err := tx.Layers().Find(inventory.LayerKey(inventory.ScopeHost, "id-000001")); err != nil || l.Config != "host: {keymap: de}\n" {
			t.Errorf("the host's layer is %+v, %v", l, err)
		}
		c, err = transfer.Load(tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := transfer.WriteYAML(&b, transfer.Export(c)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "sealed") {
		t.Errorf("the export has what is sealed:\n%s", b.String())
	}
	if d, err = transfer.ReadYAML("export.yaml", &b); err != nil {
		t.Fatal(err)
	}
	if diff, err = apply(t, s, d, counter()); err != nil || diff.CountN(transfer.OpUnchanged) != len(diff.Changes) {
		t.Errorf("%v\n%s", err, diff)
	}
}

// TestTenThousandHostsAreImportedInSeconds prints the times; the bound is generous because test machines are slow.
func TestTenThousandHostsAreImportedInSeconds(t *testing.T) {
	var c transfer.Current
	for n := range 10_000 {
		c.Hosts = append(c.Hosts, storetest.Host(n))
	}
	for _, format := range []string{"csv", "yaml"} {
		var b bytes.Buffer
		write := func() error { return transfer.WriteCSV(&b, transfer.Hosts, transfer.Export(c)) }
		read := func() (transfer.Document, error) { return transfer.ReadCSV("hosts.csv", &b) }
		if format == "yaml" {
			write = func() error { return transfer.WriteYAML(&b, transfer.Export(c)) }
			read = func() (transfer.Document, error) { return transfer.ReadYAML("hosts.yaml", &b) }
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
		size := b.Len()
		s := openTest(t, filepath.Join(t.TempDir(), "slipway.db"))
		start := time.Now()
		d, err := read()
		if err != nil {
			t.Fatal(err)
		}
		readFor := time.Since(start)
		start = time.Now()
		if _, err := apply(t, s, d, counter()); err != nil {
			t.Fatal(err)
		}
		applyFor := time.Since(start)
		start = time.Now()
		diff, err := apply(t, s, d, counter())
		if err != nil || diff.CountN(transfer.OpUnchanged) != 10_000 {
			t.Fatalf("again: %v, %d unchanged", err, diff.CountN(transfer.OpUnchanged))
		}
		t.Logf("10,000 hosts as %s (%d KiB): read %v, create %v, find unchanged %v", format, size>>10,
			readFor.Round(time.Millisecond), applyFor.Round(time.Millisecond), time.Since(start).Round(time.Millisecond))
		if total := readFor + applyFor; total > 30*time.Second {
			t.Errorf("the import took %v", total)
		}
	}
}

// TestPasswordsOfControllersDoNotTravel imports BMCs over some that are there: a password stays where it belongs, and
// goes to no other address or user.
func TestPasswordsOfControllersDoNotTravel(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "slipway.db"))
	err := s.Write(t.Context(), func(tx inventory.Tx) error {
		for n := range 4 {
			h := storetest.Host(n)
			b := inventory.BMC{HostID: h.ID, Driver: inventory.IPMI, Address: fmt.Sprintf("10.0.0.%d", n), Username: "admin", Sealed: []byte("sealed")}
			if err := errors.Join(tx.CreateHost(&h, storetest.Now), tx.SaveBMC(&b, storetest.Now)); err != nil {
				return err
			}
		}
		return tx.DeleteBMC(storetest.Host(3).ID)
	})
	if err != nil {
		t.Fatal(err)
	}
	const file = `
pools:
- {name: gpu, budget: {provision: 2, destroyInterval: 1m}, requirements: {memoryBytes: 5}}
goldens:
- {name: g, selector: mac, firmware: {bios: "1.2"}}
bmcs:
- {host: host-00000, mac: 52:54:00:00:00:09}
- {host: host-00001, address: 192.0.2.1}
- {host: host-00002, username: evil}
- {host: host-00003, driver: ipmi, address: 10.0.0.9, username: admin, options: {cipher: "17"}}
`
	d, err := transfer.ReadYAML("bmcs.yaml", strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	diff, err := apply(t, s, d, counter())
	if err != nil || diff.CountN(transfer.OpCreate) != 3 || diff.CountN(transfer.OpUpdate) != 3 {
		t.Fatalf("%v\n%s", err, diff)
	}
	if diff, err = apply(t, s, d, counter()); err != nil || diff.CountN(transfer.OpUnchanged) != 6 {
		t.Fatalf("the same import again: %v\n%s", err, diff)
	}
	err = s.Read(t.Context(), func(tx inventory.Tx) error {
		for n, want := range []string{"sealed", "", "", ""} {
			b, err := tx.FindBMC(storetest.Host(n).ID)
			if err != nil || string(b.Sealed) != want {
				t.Errorf("BMC %d has the password %q, want %q, %v", n, b.Sealed, want, err)
			}
		}
		p, err := tx.Pools().Find("gpu")
		if err != nil || p.Budget.DestroyInterval != inventory.Duration(time.Minute) || p.Requirements.MemoryBytes != 5 {
			t.Errorf("the pool is %+v, %v", p, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
