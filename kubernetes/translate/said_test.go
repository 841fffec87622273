package translate

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

func TestWhoChangedLastWinsAndTheObjectWhenBothDid(t *testing.T) {
	a, b := inventory.Taint{Key: "a"}, inventory.Taint{Key: "b"}
	for _, c := range []struct {
		name                   string
		agreed, object, stored Said
		want                   Said
	}{
		{"nothing was said", Said{}, Said{}, Said{}, Said{}},
		{"the object says something for the first time", Said{}, Said{IsCordoned: true}, Said{}, Said{IsCordoned: true}},
		{"the inventory said it before there was an object", Said{}, Said{}, Said{IsCordoned: true, Domain: "r1"}, Said{IsCordoned: true, Domain: "r1"}},
		{"the object takes it back", Said{IsCordoned: true}, Said{}, Said{IsCordoned: true}, Said{}},
		{"the inventory takes it back", Said{IsCordoned: true}, Said{IsCordoned: true}, Said{}, Said{}},
		{"the block of maintenance is removed", Said{InMaintenance: true}, Said{}, Said{InMaintenance: true}, Said{}},
		{"maintenance begins in the inventory", Said{}, Said{}, Said{InMaintenance: true}, Said{InMaintenance: true}},
		{"both change the taints", Said{}, Said{Taints: []inventory.Taint{a}}, Said{Taints: []inventory.Taint{b}}, Said{Taints: []inventory.Taint{a}}},
		{"no taints and an empty list are the same", Said{}, Said{Taints: []inventory.Taint{}}, Said{Taints: []inventory.Taint{b}}, Said{Taints: []inventory.Taint{b}}},
		{"a failure domain cannot be taken away", Said{Domain: "r1"}, Said{}, Said{Domain: "r1"}, Said{Domain: "r1"}},
		{"a failure domain is changed in the object", Said{Domain: "r1"}, Said{Domain: "r2"}, Said{Domain: "r1"}, Said{Domain: "r2"}},
		{"protection and a disk, one on each side", Said{}, Said{IsProtected: true}, Said{Root: inventory.DiskHint{Serial: "x"}}, Said{IsProtected: true, Root: inventory.DiskHint{Serial: "x"}}},
		{
			"each label for itself",
			Said{Labels: map[string]string{"kept": "1", "objects": "1", "inventorys": "1", "gone-object": "1", "gone-inventory": "1", "both": "1"}},
			Said{Labels: map[string]string{"kept": "1", "objects": "2", "inventorys": "1", "gone-inventory": "1", "new-object": "1", "both": "2"}},
			Said{Labels: map[string]string{"kept": "1", "objects": "1", "inventorys": "3", "gone-object": "1", "new-inventory": "1", "both": "3"}},
			Said{Labels: map[string]string{"kept": "1", "objects": "2", "inventorys": "3", "new-object": "1", "new-inventory": "1", "both": "2"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Agree(c.agreed, c.object, c.stored)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if again := Agree(got, got, got); !cmp.Equal(again, got) {
				t.Errorf("what was agreed upon does not stay: %+v", again)
			}
		})
	}
}

func TestWhatIsSaidComesBackFromBothSides(t *testing.T) {
	yes := true
	size := resource.MustParse("100Gi")
	mh := &v1alpha1.MetalHost{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{
			"zone": "a", "example.com/x": "y", "metal.slipway.dev/rack": "r9", "app.kubernetes.io/managed-by": "git", "cluster.x-k8s.io/y": "1",
		}},
		Spec: v1alpha1.MetalHostSpec{
			Cordoned: &yes, Protected: &yes, FailureDomain: "hall/row/r1", Taints: []v1alpha1.HostTaint{{Key: "gpu", Value: "only"}},
			RootDevice:  &v1alpha1.RootDevice{DeviceName: "/dev/disk/by-path/pci-1", Serial: "S", WWN: "W", MinSize: &size, Rotational: &yes},
			Maintenance: &v1alpha1.HostMaintenance{Reason: "new fans"}, ReclaimPolicy: v1alpha1.ReclaimRetain,
		},
	}
	said := SaidOf(mh)
	if diff := cmp.Diff(map[string]string{"zone": "a", "example.com/x": "y"}, said.Labels); diff != "" {
		t.Errorf("labels of tools are a person's words: -want +got\n%s", diff)
	}
	h := said.Into(inventory.Host{Name: "node-1", Labels: map[string]string{"old": "1", "x.k8s.io/kept": "1"}})
	if want := (inventory.Place{Site: "hall", Row: "row", Rack: "r1"}); h.Place != want || h.Labels["old"] != "" || h.Labels["x.k8s.io/kept"] != "1" {
		t.Errorf("host %+v", h)
	}
	h.IsProtected, h.InMaintenance = true, true // verbs of their own
	if back := SaidIn(&h, said.Domain); !cmp.Equal(back, said) {
		t.Errorf("-want +got\n%s", cmp.Diff(said, back))
	}
	shown := &v1alpha1.MetalHost{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"old": "1", "metal.slipway.dev/rack": "r9"}}}
	said.Show(shown)
	if back := SaidOf(shown); !cmp.Equal(back, said) || shown.Labels["old"] != "" || shown.Labels["metal.slipway.dev/rack"] != "r9" {
		t.Errorf("labels %v, -want +got\n%s", shown.Labels, cmp.Diff(said, back))
	}
	same := mh.DeepCopy()
	said.Show(same)
	if diff := cmp.Diff(mh, same); diff != "" {
		t.Errorf("showing what stands there already rewrites it: %s", diff)
	}
	Said{}.Show(same)
	if !cmp.Equal(SaidOf(same), Said{}) || same.Spec.Maintenance != nil || same.Spec.ReclaimPolicy != v1alpha1.ReclaimRecycle {
		t.Errorf("taken back, it still says %+v", SaidOf(same))
	}
}

func TestAFailureDomainIsARackOrAPath(t *testing.T) {
	was := inventory.Place{Site: "s", Row: "w", Rack: "r", Unit: 3}
	for domain, want := range map[string]inventory.Place{
		"r": was, "w": was, "s": was, "s/r": was, "s/w/r": was, "": was,
		"r2": {Site: "s", Row: "w", Rack: "r2", Unit: 3}, "s2/r2": {Site: "s2", Row: "w", Rack: "r2", Unit: 3}, "a/b/c": {Site: "a", Row: "b", Rack: "c", Unit: 3},
	} {
		if got := (Said{Domain: domain}).Into(inventory.Host{Place: was}).Place; got != want {
			t.Errorf("%q: %+v, want %+v", domain, got, want)
		}
	}
	h := inventory.Host{Place: was}
	if got := SaidIn(&h, "w").Domain; got != "w" {
		t.Errorf("a host that was said to be in row w is said to be in %q", got)
	}
}

func TestAChoiceOfADiskThatAMetalHostHasNoWordsForStays(t *testing.T) {
	h := inventory.Host{RootDisk: inventory.DiskHint{Serial: "S", Model: "NVMe"}}
	mh := &v1alpha1.MetalHost{}
	said := Agree(Said{}, SaidOf(mh), SaidIn(&h, ""))
	said.Show(mh)
	said = Agree(said, SaidOf(mh), SaidIn(&h, ""))
	if got := said.Into(h); got.RootDisk != h.RootDisk || mh.Spec.RootDevice == nil || mh.Spec.RootDevice.Serial != "S" {
		t.Errorf("it became %+v, shown as %+v", got.RootDisk, mh.Spec.RootDevice)
	}
}

func TestAPowerDriverBecomesAController(t *testing.T) {
	for _, c := range []struct {
		power *v1alpha1.HostPower
		want  inventory.BMC
		ok    bool
	}{
		{nil, inventory.BMC{}, false},
		{&v1alpha1.HostPower{Driver: "Redfish", Address: "https://10.0.0.5#sys-2"}, inventory.BMC{HostID: "h", Driver: inventory.Redfish, Address: "https://10.0.0.5", System: "sys-2"}, true},
		{&v1alpha1.HostPower{Driver: "Libvirt", Address: "qemu:///system"}, inventory.BMC{HostID: "h", Driver: inventory.Libvirt, Address: "qemu:///system", System: "node-1"}, true},
		{&v1alpha1.HostPower{Driver: "WakeOnLAN"}, inventory.BMC{HostID: "h", Driver: inventory.WoL}, true},
		{
			&v1alpha1.HostPower{Driver: "Webhook", Address: "https://pdu/1#7", Fingerprint: "ab", Options: map[string]v1alpha1.PowerOption{"on.path": "/on"}},
			inventory.BMC{HostID: "h", Driver: inventory.Webhook, Address: "https://pdu/1", System: "7", Fingerprint: "ab", Options: map[string]string{"on.path": "/on"}},
			true,
		},
		{&v1alpha1.HostPower{Driver: "Manual"}, inventory.BMC{HostID: "h", Driver: inventory.Manual}, true},
	} {
		got, ok := BMC(&v1alpha1.MetalHost{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Spec: v1alpha1.MetalHostSpec{Power: c.power}}, "h")
		if diff := cmp.Diff(c.want, got); ok != c.ok || diff != "" {
			t.Errorf("%+v: %v %s", c.power, ok, diff)
		}
	}
}

func TestWhatIsSecretOfAControllerComesFromItsSecret(t *testing.T) {
	b := inventory.BMC{Options: map[string]string{"on.path": "/on"}}
	password, err := Account(&b, map[string][]byte{"username": []byte("pdu\n"), "password": []byte("pw\n"), "header.X-Key": []byte("k\n"), "note": []byte("x")})
	if err != nil || password != "pw" || b.Username != "pdu" || !reflect.DeepEqual(b.Options, map[string]string{"on.path": "/on", "header.X-Key": "k"}) {
		t.Errorf("%q %v %+v", password, err, b)
	}
	if _, err := Account(&b, map[string][]byte{"header.X-Key": []byte("k")}); err != nil {
		t.Errorf("a header alone: %v", err)
	}
	if _, err := Account(&b, map[string][]byte{"username": []byte("pdu")}); !IsInvalid(err) {
		t.Errorf("no password: %v", err)
	}
}
