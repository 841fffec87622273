package hosts_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/test/kube/rig"
)

// declaredTwice applies twenty pairs in one go, as kubectl does with one file.
func declaredTwice(t *testing.T, s site, _ *rig.Robot) {
	const pairs = 20
	name := func(i int, half string) string { return fmt.Sprintf("twice-%02d-%s", i, half) }
	yes := true
	for i := range pairs {
		mac := v1alpha1.MAC(fmt.Sprintf("52:54:00:77:00:%02x", i))
		for _, half := range []string{"a", "b"} {
			s.Must(t, &v1alpha1.MetalHost{ObjectMeta: metav1.ObjectMeta{Name: name(i, half)}, Spec: v1alpha1.MetalHostSpec{Accepted: &yes, BootMACs: []v1alpha1.MAC{mac}}})
		}
	}
	check := func() error {
		for i := range pairs {
			bound, refused := 0, 0
			for _, half := range []string{"a", "b"} {
				mh, err := s.host(name(i, half))
				if err != nil {
					return err
				}
				if mh.Spec.InventoryID != "" {
					bound++
				}
				c := apimeta.FindStatusCondition(mh.Status.Conditions, v1alpha1.Ready)
				if c != nil && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "declares one of these MACs") {
					refused++
				}
			}
			if bound != 1 || refused != 1 {
				return fmt.Errorf("pair %d: %d are hosts, %d say that the other is; want one each", i, bound, refused)
			}
		}
		return nil
	}
	s.WaitFor(t, "of each pair one is the host, and the other says so", check)
	time.Sleep(3 * time.Second)
	if err := check(); err != nil {
		t.Errorf("it did not stay so: %v", err)
	}
}
