package standalone

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/controllers"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// scribe is an appliance that notes in which order a host is changed.
type scribe struct {
	contract.Appliance
	done  []string
	fails string
	host  inventory.Host
}

func (s *scribe) do(what string) error {
	if s.fails == what {
		return inventory.Errorf(inventory.Unavailable, "the store is away")
	}
	s.done = append(s.done, what)
	return nil
}

func (s *scribe) Accept(context.Context, inventory.HostID) error {
	s.host.State = inventory.Inspecting
	return s.do("accept")
}

func (s *scribe) Maintain(_ context.Context, _ inventory.HostID, on bool) error {
	s.host.InMaintenance = on
	return s.do("maintain")
}

func (s *scribe) Protect(_ context.Context, _ inventory.HostID, on bool) error {
	s.host.IsProtected = on
	return s.do("protect")
}

func (s *scribe) FindHost(context.Context, inventory.HostID) (contract.HostView, error) {
	return contract.HostView{Host: s.host}, nil
}

func (s *scribe) UpdateHost(_ context.Context, h inventory.Host) (inventory.Host, error) {
	return h, s.do("update")
}

// TestAHostIsProtectedBeforeItIsAccepted: accepting begins an inspection, which restarts the host, and then it may be
// installed. A host that runs something says so in the same object.
func TestAHostIsProtectedBeforeItIsAccepted(t *testing.T) {
	yes := true
	for name, c := range map[string]struct {
		fails string
		want  []string
	}{
		"all goes well":                 {"", []string{"maintain", "protect", "accept"}},
		"it cannot be protected":        {"protect", []string{"maintain"}},
		"it cannot be left alone":       {"maintain", nil},
		"accepting it is what does not": {"accept", []string{"maintain", "protect"}},
	} {
		s := &scribe{fails: c.fails, host: inventory.Host{ID: "h", Name: "db-1", State: inventory.Discovered}}
		r := &hosts{env: controllers.Env{Appliance: s}, log: slog.New(slog.DiscardHandler)}
		mh := &v1alpha1.MetalHost{ObjectMeta: metav1.ObjectMeta{Name: "db-1"}}
		mh.Spec.Accepted, mh.Spec.Protected, mh.Spec.Maintenance = &yes, &yes, &v1alpha1.HostMaintenance{Reason: "it runs a database"}
		v, _ := s.FindHost(t.Context(), "h")
		_, err := r.hear(t.Context(), mh, &v)
		done := slices.DeleteFunc(s.done, func(what string) bool { return what == "update" })
		if !slices.Equal(done, c.want) || (err != nil) != (c.fails != "") || err != nil && !errors.As(err, new(*inventory.Error)) {
			t.Errorf("%s: %v, %v", name, done, err)
		}
	}
}
