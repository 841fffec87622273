package metal_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/test/kube/rig"
)

func init() {
	all["a machine that is paused and deleted says that it waits to be deleted, and not that it runs"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 1)
		s.machine("web")
		s.settled("web")
		s.change("web", annotate(v1alpha1.AnnotationPaused, "true"))
		s.is("web", v1alpha1.Paused, metav1.ConditionTrue, v1alpha1.ReasonPaused)
		s.delete("web")
		const how = "annotation " + v1alpha1.AnnotationPaused + "; remove it to go on"
		mm := s.is("web", v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonDeleting, how)
		paused := apimeta.FindStatusCondition(mm.Status.Conditions, v1alpha1.Paused)
		if mm.Status.Phase != v1alpha1.PhaseDeleting || !strings.Contains(paused.Message, "waits to be deleted") || !strings.Contains(paused.Message, how) {
			t.Errorf("phase %s: %s", mm.Status.Phase, conditions(mm))
		}
		if h := s.host(s.robots[0].ID()); h.State != inventory.Active {
			t.Errorf("the host is %s while the machine is paused", h.State)
		}
		s.change("web", annotate(v1alpha1.AnnotationPaused, ""))
		s.gone("web")
	}
	all["a request that no host will ever meet says what the nearest hosts lack"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 1)
		s.machine("first")
		s.settled("first")
		s.machine("huge", func(mm *v1alpha1.MetalMachine) {
			memory := resource.MustParse("64Gi")
			mm.Spec.Placement.Requirements = &v1alpha1.HardwareRequirements{MinMemory: &memory}
		})
		s.is("huge", v1alpha1.HostClaimed, metav1.ConditionFalse, v1alpha1.ReasonNoMatchingHost, "1 host fails only memory: 64 GiB asked, 8 GiB there")
		s.is("huge", v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonNoMatchingHost, "no host of the inventory meets it, free or in use")
		s.machine("second")
		s.is("second", v1alpha1.HostClaimed, metav1.ConditionFalse, v1alpha1.ReasonInsufficientResources)
	}
	all["a deletion that a dead controller blocks says so within a look, in its status and condition"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 1)
		s.machine("web")
		s.settled("web")
		controller := func(change func(*inventory.BMC)) {
			r.Write(t, func(tx inventory.Tx) error {
				b, err := tx.FindBMC(s.robots[0].ID())
				if err != nil {
					return err
				}
				change(&b)
				return tx.SaveBMC(&b, r.Now())
			})
		}
		controller(func(b *inventory.BMC) {
			b.IsReachable, b.Reason, b.Options = false, "no route to host", map[string]string{"delay": "3s"}
		})
		began := time.Now()
		s.delete("web")
		mm := s.is("web", v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonDeleting, "the controller of "+s.robots[0].Name(), "no route to host", "--confirm off")
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("that took %s", took)
		}
		if d := mm.Status.Deletion; d == nil || len(d.BlockedBy) != 1 || !strings.Contains(d.BlockedBy[0], "does not answer: no route to host") {
			t.Errorf("deletion is %+v", d)
		}
		controller(func(b *inventory.BMC) { b.Options = nil })
		s.gone("web")
	}
	all["a host whose power is a webhook lives its whole life by calls to it"] = webhookLife
}

// hook is a power strip that is switched over HTTPS. It wants an account and a header, and switches one robot.
type hook struct {
	robot *rig.Robot
	mu    sync.Mutex
	calls []string
	bad   []string
}

func (h *hook) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	user, password, _ := q.BasicAuth()
	h.mu.Lock()
	if user != "strip" || password != "canary-hook" || q.Header.Get("X-Strip") != "canary-header" {
		h.bad = append(h.bad, fmt.Sprintf("%s %s as %q, header %q", q.Method, q.URL.Path, user, q.Header.Get("X-Strip")))
		h.mu.Unlock()
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	call := q.Method + " " + q.URL.Path
	if len(h.calls) == 0 || h.calls[len(h.calls)-1] != call {
		h.calls = append(h.calls, call)
	}
	h.mu.Unlock()
	switch call {
	case "POST /outlets/7/on":
		h.robot.Press(inventory.PowerOn)
	case "POST /outlets/7/off":
		h.robot.Press(inventory.PowerOff)
	case "GET /outlets/7":
		fmt.Fprintf(w, `{"outlet":{"state":%q}}`, map[bool]string{true: "ON", false: "OFF"}[h.robot.IsOn()])
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (h *hook) seen() (calls, bad []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls), slices.Clone(h.bad)
}

func webhookLife(t *testing.T, r *rig.Rig) {
	s := newStage(t, r, 1)
	b := s.robots[0]
	h := &hook{robot: b}
	strip := httptest.NewTLSServer(h)
	t.Cleanup(strip.Close)
	sum := sha256.Sum256(strip.Certificate().Raw)
	s.Must(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "strip"},
		StringData: map[string]string{"username": "strip", "password": "canary-hook", "header.X-Strip": "canary-header"},
	})
	power := func(fingerprint string) {
		text := fmt.Sprintf(`{"spec":{"power":{"driver":"Webhook","address":"%s#7","fingerprint":%q,"credentialsRef":{"namespace":%q,"name":"strip"},"options":{
			"on.path":"/outlets/{{.System}}/on","off.path":"/outlets/{{.System}}/off","status.path":"/outlets/{{.System}}","status.pointer":"/outlet/state","pause":"10ms"}}}}`,
			strip.URL, fingerprint, s.ns)
		mh := &v1alpha1.MetalHost{ObjectMeta: metav1.ObjectMeta{Name: b.Name()}}
		s.WaitFor(t, "the host can be told how it is powered", func() error {
			return r.Client.Patch(t.Context(), mh, client.RawPatch(types.MergePatchType, []byte(text)))
		})
	}
	is := func(what string, ok func(inventory.BMC) bool) {
		s.WaitFor(t, what, func() (err error) {
			var c inventory.BMC
			r.Read(t, func(tx inventory.Tx) (err error) {
				c, err = tx.FindBMC(b.ID())
				return err
			})
			if !ok(c) {
				return fmt.Errorf("controller %+v", c)
			}
			return nil
		})
	}
	power(strings.Repeat("ab", 32)) // of another certificate
	is("the webhook is stored", func(c inventory.BMC) bool {
		return c.Driver == inventory.Webhook && c.System == "7" && len(c.Options) >= 5
	})
	_, err := r.Engine().Power(t.Context(), b.ID(), "on", ledger.By("a person"))
	if err != nil {
		t.Fatal(err)
	}
	is("a strip with another certificate is not spoken to", func(c inventory.BMC) bool { return !c.IsReachable && strings.Contains(c.Reason, "certificate") })
	if calls, bad := h.seen(); len(calls)+len(bad) > 0 {
		t.Errorf("it was called: %v %v", calls, bad)
	}
	power(hex.EncodeToString(sum[:]))
	is("the right certificate is stored", func(c inventory.BMC) bool { return strings.EqualFold(c.Fingerprint, hex.EncodeToString(sum[:])) })

	s.machine("web")
	s.ready("web")
	if calls, _ := h.seen(); !slices.Contains(calls, "POST /outlets/7/on") {
		t.Errorf("the machine runs, and nobody switched it on: %v", calls)
	}
	s.delete("web")
	s.gone("web")
	s.hostIs(b.ID(), inventory.Available)
	calls, bad := h.seen()
	if !slices.Contains(calls, "POST /outlets/7/off") || !slices.Contains(calls, "GET /outlets/7") || len(bad) > 0 {
		t.Errorf("calls %v, refused %v", calls, bad)
	}
	if n := b.Counts(); n.Writes != 1 || n.Wipes != 1 || n.Offs == 0 {
		t.Errorf("the machine: %+v", n)
	}
	if strings.Contains(r.History(10_000), "canary") {
		t.Error("an event shows a secret of the webhook")
	}
	mh := &v1alpha1.MetalHost{}
	if err := r.Client.Get(t.Context(), client.ObjectKey{Name: b.Name()}, mh); err != nil || strings.Contains(fmt.Sprintf("%+v", mh), "canary") {
		t.Errorf("%v: the object shows a secret", err)
	}
}
