// Package hosts_test owns the tests of MetalHost and MetalPool on a real API server, with the engine, a store and
// machines that robots play. It never looks into the controllers.
package hosts_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/standalone"
	v1alpha1 "slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/test/kube/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

var ctx = context.Background()

// site is a rig with the words that these tests use.
type site struct{ *rig.Rig }

func newSite(t *testing.T, hosts int) site {
	t.Helper()
	return site{rig.New(t, rig.Options{Hosts: hosts, Setup: []rig.Setup{standalone.Setup}})}
}

func (s site) host(name string) (*v1alpha1.MetalHost, error) {
	mh := &v1alpha1.MetalHost{}
	return mh, s.Client.Get(ctx, client.ObjectKey{Name: name}, mh)
}

// patch changes an object as kubectl does.
func (s site) patch(t *testing.T, name, json string) {
	t.Helper()
	mh := &v1alpha1.MetalHost{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := s.Client.Patch(ctx, mh, client.RawPatch("application/merge-patch+json", []byte(json))); err != nil {
		t.Fatalf("patch %s: %v", name, err)
	}
}

func (s site) row(t *testing.T, id inventory.HostID) (h inventory.Host) {
	t.Helper()
	s.Read(t, func(tx inventory.Tx) (err error) {
		h, err = tx.FindHost(id)
		return err
	})
	return h
}

// edit changes a row as the UI does, with its event.
func (s site) edit(t *testing.T, id inventory.HostID, fn func(*inventory.Host)) {
	t.Helper()
	for {
		h := s.row(t, id)
		fn(&h)
		_, err := s.Engine().UpdateHost(ctx, h, ledger.By("a person"))
		if e := new(inventory.Error); errors.As(err, &e) && e.Kind == inventory.Conflict && strings.Contains(e.Msg, "meanwhile") {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
}

// shows waits until the object of a host is as it should be.
func (s site) shows(t *testing.T, name, what string, is func(*v1alpha1.MetalHost) bool) *v1alpha1.MetalHost {
	t.Helper()
	var last *v1alpha1.MetalHost
	s.WaitFor(t, what, func() error {
		mh, err := s.host(name)
		if err != nil {
			return err
		}
		if last = mh; !is(mh) {
			return fmt.Errorf("%s has labels %v, spec %+v, status %+v", name, mh.Labels, mh.Spec, mh.Status)
		}
		return nil
	})
	return last
}

// becomes waits until a row is as it should be.
func (s site) becomes(t *testing.T, id inventory.HostID, what string, is func(inventory.Host) bool) {
	t.Helper()
	s.WaitFor(t, what, func() error {
		if h := s.row(t, id); !is(h) {
			return fmt.Errorf("host %+v", h)
		}
		return nil
	})
}

func isTrue(mh *v1alpha1.MetalHost, kind string) bool {
	return apimeta.IsStatusConditionTrue(mh.Status.Conditions, kind)
}

func reason(mh *v1alpha1.MetalHost, kind string) string {
	if c := apimeta.FindStatusCondition(mh.Status.Conditions, kind); c != nil {
		return c.Reason
	}
	return ""
}

func TestMetalHosts(t *testing.T) {
	cases := []struct {
		name string
		run  func(*testing.T, site, *rig.Robot)
	}{
		{"a row is shown with all that is known of it", showsAll},
		{"what is said in the object is done to the host, and the other way round", bothWays},
		{"what the inventory refuses is told, and hurts nothing else", refused},
		{"an object that is deleted comes back while its host is there", comesBack},
		{"an object whose host is claimed stays until that ends", staysWhileClaimed},
		{"a host that is renamed gets a new object with all that was said", renamed},
		{"the object of a host that is forgotten goes", forgotten},
		{"a host is declared before its first boot", declared},
		{"a host that was discovered under another name is declared", declaredLate},
		{"a declaration that cannot be met says why", declaredBadly},
		{"two objects with one MAC both stay, and one says that the other has it", declaredTwice},
		{"how a host is powered comes with a Secret that is shown nowhere", powered},
		{"a power that no operator named is shown, and never written over", powerShown},
	}
	s := newSite(t, len(cases))
	t.Cleanup(func() {}) // subtests end before the rig does
	for i, c := range cases {
		robot := s.Machine(i)
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, s, robot)
		})
	}
}

func showsAll(t *testing.T, s site, b *rig.Robot) {
	mh := s.shows(t, b.Name(), "it is shown", func(mh *v1alpha1.MetalHost) bool { return isTrue(mh, v1alpha1.Ready) })
	hw := mh.Status.Hardware
	if mh.Spec.InventoryID != string(b.ID()) || mh.Status.Phase != v1alpha1.HostAvailable || mh.Status.BootMAC != string(b.MAC()) ||
		mh.Status.Power != v1alpha1.PowerOff || hw.CPU.Threads != 16 || hw.Memory.Value() != 8<<30 || len(hw.Disks) != 1 || hw.NICs[0].Switch != "tor-1" || hw.Firmware != v1alpha1.FirmwareUEFI {
		t.Errorf("shown as %+v %+v", mh.Spec, mh.Status)
	}
	for label, want := range map[string]string{
		v1alpha1.LabelSite: "hall", v1alpha1.LabelRow: "row-1", v1alpha1.LabelRack: "rack-1", v1alpha1.LabelUnit: "1",
		v1alpha1.LabelVendor: "ACME", v1alpha1.LabelModel: "R640", v1alpha1.LabelArch: "amd64",
	} {
		if mh.Labels[label] != want {
			t.Errorf("label %s is %q, want %q", label, mh.Labels[label], want)
		}
	}
	for _, kind := range []string{v1alpha1.Accepted, v1alpha1.Inspected, v1alpha1.PowerReachable, v1alpha1.Clean, v1alpha1.Available} {
		if !isTrue(mh, kind) {
			t.Errorf("%s is %+v", kind, apimeta.FindStatusCondition(mh.Status.Conditions, kind))
		}
	}
	for kind, want := range map[string]string{v1alpha1.Online: "PoweredOff", v1alpha1.Maintenance: "NoMaintenance", v1alpha1.ManualActionRequired: "NoAction"} {
		if isTrue(mh, kind) || reason(mh, kind) != want {
			t.Errorf("%s: %s, want %s", kind, reason(mh, kind), want)
		}
	}
	if len(mh.Finalizers) != 0 || mh.Spec.FailureDomain != "rack-1" {
		t.Errorf("finalizers %v, domain %q", mh.Finalizers, mh.Spec.FailureDomain)
	}
}

func bothWays(t *testing.T, s site, b *rig.Robot) {
	name, id := b.Name(), b.ID()
	s.shows(t, name, "it is shown", func(mh *v1alpha1.MetalHost) bool { return isTrue(mh, v1alpha1.Ready) })
	for _, c := range []struct {
		what  string
		patch string                            // of the object, or
		edit  func(*inventory.Host)             // of the row
		row   func(inventory.Host) bool         // becomes
		shown func(mh *v1alpha1.MetalHost) bool // becomes
	}{
		{
			what: "cordoned in the object", patch: `{"spec":{"cordoned":true}}`,
			row: func(h inventory.Host) bool { return h.IsCordoned }, shown: func(mh *v1alpha1.MetalHost) bool { return reason(mh, v1alpha1.Available) == "Cordoned" },
		},
		{
			what: "uncordoned in the inventory", edit: func(h *inventory.Host) { h.IsCordoned = false },
			row: func(h inventory.Host) bool { return !h.IsCordoned },
			shown: func(mh *v1alpha1.MetalHost) bool {
				return (mh.Spec.Cordoned == nil || !*mh.Spec.Cordoned) && isTrue(mh, v1alpha1.Available)
			},
		},
		{
			what: "maintenance in the object", patch: `{"spec":{"maintenance":{"reason":"new fans"}}}`,
			row: func(h inventory.Host) bool { return h.InMaintenance },
			shown: func(mh *v1alpha1.MetalHost) bool {
				c := apimeta.FindStatusCondition(mh.Status.Conditions, v1alpha1.Maintenance)
				return c.Status == metav1.ConditionTrue && c.Message == "new fans"
			},
		},
		{
			what: "the block of maintenance is removed", patch: `{"spec":{"maintenance":null}}`,
			row: func(h inventory.Host) bool { return !h.InMaintenance }, shown: func(mh *v1alpha1.MetalHost) bool { return !isTrue(mh, v1alpha1.Maintenance) },
		},
		{
			what: "protected in the object", patch: `{"spec":{"protected":true}}`,
			row: func(h inventory.Host) bool { return h.IsProtected }, shown: func(mh *v1alpha1.MetalHost) bool { return reason(mh, v1alpha1.Available) == "Protected" },
		},
		{
			what: "protection is taken back by leaving it out", patch: `{"spec":{"protected":null}}`,
			row: func(h inventory.Host) bool { return !h.IsProtected }, shown: func(mh *v1alpha1.MetalHost) bool { return isTrue(mh, v1alpha1.Available) },
		},
		{
			what: "its disks are to be kept, in the object", patch: `{"spec":{"reclaimPolicy":"Retain"}}`,
			row: func(h inventory.Host) bool { return h.IsRetained }, shown: func(mh *v1alpha1.MetalHost) bool { return mh.Spec.ReclaimPolicy == v1alpha1.ReclaimRetain },
		},
		{
			what: "its disks may go, in the inventory", edit: func(h *inventory.Host) { h.IsRetained = false },
			row: func(h inventory.Host) bool { return !h.IsRetained }, shown: func(mh *v1alpha1.MetalHost) bool { return mh.Spec.ReclaimPolicy == v1alpha1.ReclaimRecycle },
		},
		{
			what: "a label from each side", patch: `{"metadata":{"labels":{"zone":"a"}}}`, edit: func(h *inventory.Host) { h.Labels = map[string]string{"tier": "gold"} },
			row:   func(h inventory.Host) bool { return h.Labels["zone"] == "a" && h.Labels["tier"] == "gold" },
			shown: func(mh *v1alpha1.MetalHost) bool { return mh.Labels["zone"] == "a" && mh.Labels["tier"] == "gold" },
		},
		{
			what: "a label is removed in the object", patch: `{"metadata":{"labels":{"tier":null}}}`,
			row: func(h inventory.Host) bool { return h.Labels["zone"] == "a" && len(h.Labels) == 1 }, shown: func(mh *v1alpha1.MetalHost) bool { return mh.Labels["tier"] == "" },
		},
		{
			what: "a label is removed in the inventory", edit: func(h *inventory.Host) { h.Labels = nil },
			row: func(h inventory.Host) bool { return len(h.Labels) == 0 }, shown: func(mh *v1alpha1.MetalHost) bool { return mh.Labels["zone"] == "" },
		},
		{
			what: "a mirrored label cannot be changed", patch: `{"metadata":{"labels":{"metal.slipway.dev/vendor":"EMCA"}}}`,
			row: func(h inventory.Host) bool { return h.Manufacturer == "ACME" && len(h.Labels) == 0 }, shown: func(mh *v1alpha1.MetalHost) bool { return mh.Labels[v1alpha1.LabelVendor] == "ACME" },
		},
		{
			what: "taints, a root disk and a failure domain", patch: `{"spec":{"taints":[{"key":"gpu","value":"only"}],"rootDevice":{"serial":"S1","minSize":"100Gi"},"failureDomain":"rack-77"}}`,
			row: func(h inventory.Host) bool {
				return slices.Equal(h.Taints, []inventory.Taint{{Key: "gpu", Value: "only"}}) && h.RootDisk.Serial == "S1" && h.RootDisk.MinBytes == 100<<30 && h.Place.Rack == "rack-77"
			},
			shown: func(mh *v1alpha1.MetalHost) bool { return mh.Labels[v1alpha1.LabelRack] == "rack-77" },
		},
		{
			what: "all of them in the inventory", edit: func(h *inventory.Host) {
				h.Taints, h.RootDisk, h.Place.Rack = nil, inventory.DiskHint{Name: "sdb"}, "rack-78"
			},
			row: func(h inventory.Host) bool { return h.RootDisk.Name == "sdb" },
			shown: func(mh *v1alpha1.MetalHost) bool {
				return len(mh.Spec.Taints) == 0 && mh.Spec.RootDevice != nil && mh.Spec.RootDevice.DeviceName == "/dev/sdb" && mh.Spec.RootDevice.Serial == "" && mh.Spec.FailureDomain == "rack-78"
			},
		},
	} {
		if c.edit != nil {
			s.edit(t, id, c.edit)
		}
		if c.patch != "" {
			s.patch(t, name, c.patch)
		}
		s.becomes(t, id, c.what+": the row", c.row)
		s.shows(t, name, c.what+": the object", c.shown)
	}
}

func refused(t *testing.T, s site, b *rig.Robot) {
	s.shows(t, b.Name(), "it is shown", func(mh *v1alpha1.MetalHost) bool { return isTrue(mh, v1alpha1.Ready) })
	s.patch(t, b.Name(), `{"spec":{"cordoned":true,"taints":[{"key":"not a key"}]}}`)
	s.shows(t, b.Name(), "it says what is wrong", func(mh *v1alpha1.MetalHost) bool {
		c := apimeta.FindStatusCondition(mh.Status.Conditions, v1alpha1.Ready)
		return c.Status == metav1.ConditionFalse && c.Reason == "InvalidConfiguration" && strings.Contains(c.Message, "not a key")
	})
	if h := s.row(t, b.ID()); len(h.Taints) != 0 || h.IsCordoned {
		t.Errorf("half of it was taken over: %+v", h)
	}
	s.patch(t, b.Name(), `{"spec":{"taints":[{"key":"a-key"}]}}`)
	s.shows(t, b.Name(), "it is mended", func(mh *v1alpha1.MetalHost) bool { return isTrue(mh, v1alpha1.Ready) })
	s.becomes(t, b.ID(), "all is taken over", func(h inventory.Host) bool { return h.IsCordoned && len(h.Taints) == 1 })
}

func comesBack(t *testing.T, s site, b *rig.Robot) {
	mh := s.shows(t, b.Name(), "it is shown", func(mh *v1alpha1.MetalHost) bool { return isTrue(mh, v1alpha1.Ready) })
	s.patch(t, b.Name(), `{"spec":{"cordoned":true}}`)
	s.becomes(t, b.ID(), "it is cordoned", func(h inventory.Host) bool { return h.IsCordoned })
	if err := s.Client.Delete(ctx, mh); err != nil {
		t.Fatal(err)
	}
	again := s.shows(t, b.Name(), "it is back", func(now *v1alpha1.MetalHost) bool { return now.UID != mh.UID && len(now.Status.Conditions) > 0 })
	if again.Spec.InventoryID != string(b.ID()) || again.Spec.Cordoned == nil || !*again.Spec.Cordoned || !s.row(t, b.ID()).IsCordoned {
		t.Errorf("it came back as %+v", again.Spec)
	}
}

// claim has a machine take a host, which is held before it installs anything.
func (s site) claim(t *testing.T, b *rig.Robot) inventory.Machine {
	t.Helper()
	b.Hold(rig.Boot)
	m, err := s.Engine().CreateMachine(ctx, inventory.Machine{Name: "m-" + b.Name(), Profile: rig.DiskProfile, Placement: inventory.Placement{Host: b.Name()}}, ledger.By("a person"))
	if err != nil {
		t.Fatal(err)
	}
	s.becomes(t, b.ID(), "it is claimed", func(h inventory.Host) bool { return h.ClaimID != "" })
	return m
}

func staysWhileClaimed(t *testing.T, s site, b *rig.Robot) {
	m := s.claim(t, b)
	mh := s.shows(t, b.Name(), "its claim is shown", func(mh *v1alpha1.MetalHost) bool {
		return mh.Status.Claim != nil && mh.Status.Claim.Name == m.Name && mh.Status.Claim.Kind == "Machine" && len(mh.Finalizers) == 1 && mh.Status.Phase == v1alpha1.HostInstalling
	})
	if err := s.Client.Delete(ctx, mh); err != nil {
		t.Fatal(err)
	}
	b.Go(rig.Boot)
	running := s.shows(t, b.Name(), "the host goes on, and that is shown", func(mh *v1alpha1.MetalHost) bool { return mh.Status.Phase == v1alpha1.HostActive })
	if running.UID != mh.UID || running.DeletionTimestamp == nil || !(running.Spec.InventoryID == string(b.ID())) {
		t.Errorf("it is %+v", running.ObjectMeta)
	}
	if b.Counts().Wipes != 0 {
		t.Errorf("deleting an object had the host wiped")
	}
	if _, err := s.Engine().DeleteMachine(ctx, m.Name, false, ledger.By("a person")); err != nil {
		t.Fatal(err)
	}
	s.shows(t, b.Name(), "the host is free, and a new object shows it", func(now *v1alpha1.MetalHost) bool {
		return now.UID != mh.UID && now.Status.Phase == v1alpha1.HostAvailable && len(now.Finalizers) == 0 && now.Status.Claim == nil
	})
}

func renamed(t *testing.T, s site, b *rig.Robot) {
	s.shows(t, b.Name(), "it is shown", func(mh *v1alpha1.MetalHost) bool { return isTrue(mh, v1alpha1.Ready) })
	s.patch(t, b.Name(), `{"metadata":{"labels":{"zone":"z"},"annotations":{"example.com/note":"kept"}},"spec":{"maintenance":{"reason":"move"}}}`)
	s.becomes(t, b.ID(), "it is in maintenance", func(h inventory.Host) bool { return h.InMaintenance && h.Labels["zone"] == "z" })
	s.edit(t, b.ID(), func(h *inventory.Host) { h.Name = "renamed-1" })
	mh := s.shows(t, "renamed-1", "it has a new object", func(mh *v1alpha1.MetalHost) bool { return isTrue(mh, v1alpha1.Maintenance) })
	if mh.Spec.Maintenance.Reason != "move" || mh.Labels["zone"] != "z" || mh.Annotations["example.com/note"] != "kept" {
		t.Errorf("the new object: %+v %+v", mh.ObjectMeta, mh.Spec)
	}
	s.isGone(t, b.Name())
}

func (s site) isGone(t *testing.T, name string) {
	t.Helper()
	s.WaitFor(t, name+" is gone", func() error {
		if mh, err := s.host(name); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%v %+v", err, mh.ObjectMeta)
		}
		return nil
	})
}

func forgotten(t *testing.T, s site, b *rig.Robot) {
	s.shows(t, b.Name(), "it is shown", func(mh *v1alpha1.MetalHost) bool { return isTrue(mh, v1alpha1.Ready) })
	s.Write(t, func(tx inventory.Tx) error {
		return errors.Join(tx.DeleteHost(b.ID()),
			tx.AddEvent(&inventory.Event{At: s.Now(), Kind: inventory.EventHostDeleted, HostID: b.ID(), Subject: "host/" + b.Name(), Detail: "host deleted by a person"}))
	})
	s.isGone(t, b.Name())
}

func declared(t *testing.T, s site, _ *rig.Robot) {
	b := s.AddStranger()
	yes := true
	s.Must(t, &v1alpha1.MetalHost{
		ObjectMeta: metav1.ObjectMeta{Name: "declared-1", Labels: map[string]string{"zone": "d"}},
		Spec: v1alpha1.MetalHostSpec{
			BootMACs: []v1alpha1.MAC{v1alpha1.MAC(b.MAC())}, Accepted: &yes, FailureDomain: "hall/row-9/rack-9", Taints: []v1alpha1.HostTaint{{Key: "new"}},
		},
	})
	mh := s.shows(t, "declared-1", "it is in the inventory", func(mh *v1alpha1.MetalHost) bool { return mh.Spec.InventoryID != "" && isTrue(mh, v1alpha1.Accepted) })
	id := inventory.HostID(mh.Spec.InventoryID)
	if h := s.row(t, id); h.Name != "declared-1" || h.Labels["zone"] != "d" || h.Place.Rack != "rack-9" || h.Place.Site != "hall" || len(h.Taints) != 1 || h.NICs[0].MAC != b.MAC() {
		t.Errorf("host %+v", h)
	}
	b.Press(inventory.PowerOn) // its first boot
	s.shows(t, "declared-1", "it is recognised and inspected", func(mh *v1alpha1.MetalHost) bool {
		return isTrue(mh, v1alpha1.Inspected) && mh.Status.Hardware.CPU.Threads == 16 && mh.Status.Phase == v1alpha1.HostAvailable
	})
}

func declaredLate(t *testing.T, s site, _ *rig.Robot) {
	b := s.AddStranger()
	b.Press(inventory.PowerOn)
	var h inventory.Host
	s.WaitFor(t, "it is discovered", func() error {
		return s.Store.Read(ctx, func(tx inventory.Tx) (err error) {
			h, err = tx.FindHostByMAC(b.MAC())
			return err
		})
	})
	found := s.shows(t, h.Name, "it is shown", func(mh *v1alpha1.MetalHost) bool { return mh.Status.Phase == v1alpha1.HostDiscovered })
	if reason(found, v1alpha1.Ready) != "NotAccepted" {
		t.Errorf("Ready is %s", reason(found, v1alpha1.Ready))
	}
	s.Must(t, &v1alpha1.MetalHost{ObjectMeta: metav1.ObjectMeta{Name: "declared-2"}, Spec: v1alpha1.MetalHostSpec{BootMACs: []v1alpha1.MAC{v1alpha1.MAC(b.MAC())}}})
	mh := s.shows(t, "declared-2", "it is that host", func(mh *v1alpha1.MetalHost) bool {
		return mh.Spec.InventoryID == string(h.ID) && len(mh.Status.Conditions) > 1
	})
	if isTrue(mh, v1alpha1.Accepted) {
		t.Error("to declare a host accepted it")
	}
	s.isGone(t, h.Name)
	s.patch(t, "declared-2", `{"spec":{"accepted":true}}`)
	s.shows(t, "declared-2", "it is accepted", func(mh *v1alpha1.MetalHost) bool { return isTrue(mh, v1alpha1.Accepted) })
}

func declaredBadly(t *testing.T, s site, b *rig.Robot) {
	for name, c := range map[string]struct {
		macs []v1alpha1.MAC
		want string
	}{
		"no-macs":                  {nil, "name the MAC"},
		"not.a.label":              {[]v1alpha1.MAC{"02:00:00:00:00:01"}, "not a name for a host"},
		strings.Repeat("long", 20): {[]v1alpha1.MAC{"02:00:00:00:00:02"}, "not a name for a host"},
	} {
		s.Must(t, &v1alpha1.MetalHost{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.MetalHostSpec{BootMACs: c.macs}})
		s.shows(t, name, "it says why", func(mh *v1alpha1.MetalHost) bool {
			c2 := apimeta.FindStatusCondition(mh.Status.Conditions, v1alpha1.Ready)
			return c2 != nil && c2.Status == metav1.ConditionFalse && c2.Reason == "InvalidConfiguration" && strings.Contains(c2.Message, c.want) && mh.Spec.InventoryID == ""
		})
		s.deletes(t, name)
	}
	s.claim(t, b)
	s.Must(t, &v1alpha1.MetalHost{ObjectMeta: metav1.ObjectMeta{Name: "thief"}, Spec: v1alpha1.MetalHostSpec{BootMACs: []v1alpha1.MAC{v1alpha1.MAC(b.MAC())}}})
	s.shows(t, "thief", "it says whose the MAC is", func(mh *v1alpha1.MetalHost) bool {
		c := apimeta.FindStatusCondition(mh.Status.Conditions, v1alpha1.Ready)
		return c != nil && strings.Contains(c.Message, b.Name())
	})
	if h := s.row(t, b.ID()); h.Name != b.Name() {
		t.Errorf("the host is now called %s", h.Name)
	}
	s.deletes(t, "thief")
	b.Go(rig.Boot)
}

func (s site) deletes(t *testing.T, name string) {
	t.Helper()
	if err := s.Client.Delete(ctx, &v1alpha1.MetalHost{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	s.isGone(t, name)
}

func (s site) controller(t *testing.T, id inventory.HostID) (b inventory.BMC) {
	t.Helper()
	s.Read(t, func(tx inventory.Tx) (err error) {
		b, err = tx.FindBMC(id)
		return err
	})
	return b
}

func powered(t *testing.T, s site, b *rig.Robot) {
	ns := s.Namespace(t)
	s.shows(t, b.Name(), "it is shown", func(mh *v1alpha1.MetalHost) bool { return isTrue(mh, v1alpha1.Ready) })
	s.patch(t, b.Name(), fmt.Sprintf(`{"spec":{"power":{"driver":"Redfish","address":"https://10.9.0.1#sys-7","credentialsRef":{"namespace":%q,"name":"bmc"}}}}`, ns))
	s.shows(t, b.Name(), "it says that there is no Secret", func(mh *v1alpha1.MetalHost) bool {
		c := apimeta.FindStatusCondition(mh.Status.Conditions, v1alpha1.Ready)
		return c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "there is no Secret "+ns+"/bmc")
	})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "bmc"}, StringData: map[string]string{"username": "root", "password": "canary-1"}}
	s.Must(t, secret)
	s.shows(t, b.Name(), "it is taken over", func(mh *v1alpha1.MetalHost) bool { return isTrue(mh, v1alpha1.Ready) })
	first := s.controller(t, b.ID())
	if first.Driver != inventory.Redfish || first.Address != "https://10.9.0.1" || first.System != "sys-7" || first.Username != "root" || len(first.Sealed) == 0 || strings.Contains(string(first.Sealed), "canary") {
		t.Errorf("controller %+v", first)
	}
	s.Get(t, secret)
	secret.StringData = map[string]string{"password": "canary-2"}
	if err := s.Client.Update(ctx, secret); err != nil {
		t.Fatal(err)
	}
	s.WaitFor(t, "the new password is stored", func() error {
		if now := s.controller(t, b.ID()); string(now.Sealed) == string(first.Sealed) {
			return errors.New("it is the old one")
		}
		return nil
	})
	if mh, err := s.host(b.Name()); err != nil || strings.Contains(fmt.Sprintf("%+v", mh), "canary") {
		t.Errorf("%v: the object shows the password", err)
	}
	if strings.Contains(s.History(10_000), "canary") {
		t.Error("an event shows the password")
	}
}

func powerShown(t *testing.T, s site, b *rig.Robot) {
	was := s.controller(t, b.ID())
	s.shows(t, b.Name(), "it is shown", func(mh *v1alpha1.MetalHost) bool { return isTrue(mh, v1alpha1.Ready) })
	s.patch(t, b.Name(), `{"spec":{"cordoned":true}}`)
	s.becomes(t, b.ID(), "it is cordoned", func(h inventory.Host) bool { return h.IsCordoned })
	if now := s.controller(t, b.ID()); now.Driver != was.Driver || now.Address != was.Address || now.System != was.System {
		t.Errorf("controller %+v, was %+v", now, was)
	}
	b.Press(inventory.PowerOn)
	_, err := s.Engine().Power(ctx, b.ID(), "on", ledger.By("a person"))
	if err != nil {
		t.Fatal(err)
	}
	s.shows(t, b.Name(), "it is seen to be on", func(mh *v1alpha1.MetalHost) bool {
		return mh.Status.Power == v1alpha1.PowerOn && isTrue(mh, v1alpha1.Online)
	})
}

func TestHostsAreRightAgainAfterEverybodyWasAway(t *testing.T) {
	s := newSite(t, 3)
	a, b, c := s.Machine(0), s.Machine(1), s.Machine(2)
	for _, r := range []*rig.Robot{a, b, c} {
		s.shows(t, r.Name(), "it is shown", func(mh *v1alpha1.MetalHost) bool { return isTrue(mh, v1alpha1.Ready) })
	}
	s.StopAPI()
	s.edit(t, a.ID(), func(h *inventory.Host) { h.Labels = map[string]string{"seen": "later"} })
	s.Write(t, func(tx inventory.Tx) error { return tx.DeleteHost(b.ID()) }) // no event: whatever became of it
	s.StartAPI()
	s.shows(t, a.Name(), "what happened while the API server was away is shown", func(mh *v1alpha1.MetalHost) bool { return mh.Labels["seen"] == "later" })

	s.StopControllers()
	s.edit(t, a.ID(), func(h *inventory.Host) { h.IsCordoned = true })
	s.patch(t, c.Name(), `{"spec":{"cordoned":true},"metadata":{"labels":{"while":"away"}}}`)
	s.Restart()
	s.shows(t, a.Name(), "what happened while the controllers were away is shown", func(mh *v1alpha1.MetalHost) bool { return reason(mh, v1alpha1.Available) == "Cordoned" })
	s.becomes(t, c.ID(), "and done", func(h inventory.Host) bool { return h.IsCordoned && h.Labels["while"] == "away" })
	s.isGone(t, b.Name())
	s.Idle(t, 3*time.Second)
}
