// Package kubectl is the plugin of kubectl, with its command line: kubectl slipway. It shows machines and hosts as their
// custom resources describe them, and says in words why one waits. It asks for a reboot or a new installation by
// annotation. It needs access to the custom resources of a cluster and to nothing else; it never speaks to the appliance.
//
// Start reading at Run; Plugin holds what the commands do.
package kubectl

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	infra "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// Flags are those that kubectl has as well.
type Flags struct {
	Kubeconfig, Context, Namespace string
	IsEverywhere                   bool // all namespaces
	As                             string
}

// Plugin speaks to one cluster.
type Plugin struct {
	client    client.Client
	namespace string // "" for all
}

// New connects as kubectl does: --kubeconfig, KUBECONFIG, ~/.kube/config, the account of a pod.
func New(f Flags) (*Plugin, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	o := &clientcmd.ConfigOverrides{CurrentContext: f.Context, Context: clientcmdapi.Context{Namespace: f.Namespace}}
	o.AuthInfo.Impersonate = f.As
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, o)
	cfg, err := loaded.ClientConfig()
	if err != nil {
		return nil, inventory.Errorf(inventory.Invalid, "no cluster to speak to: %v", err).WithHint("give --kubeconfig FILE or --context NAME, as with kubectl")
	}
	p := &Plugin{}
	if !f.IsEverywhere {
		if p.namespace, _, err = loaded.Namespace(); err != nil {
			return nil, inventory.Errorf(inventory.Invalid, "no namespace: %v", err)
		}
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme, infra.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	if p.client, err = client.New(cfg, client.Options{Scheme: scheme}); err != nil {
		return nil, explained(err)
	}
	return p, nil
}

// explained says what an API server's refusal means here.
func explained(err error) error {
	switch {
	case err == nil:
		return nil
	case apimeta.IsNoMatchError(err):
		return &inventory.Error{Kind: inventory.NotFound, Msg: "this cluster has none of Slipway's kinds", Hint: "attach it with slipway cluster attach, or apply slipway manifests", Err: err}
	case apierrors.IsForbidden(err):
		return &inventory.Error{Kind: inventory.Forbidden, Msg: "the cluster does not allow it: " + err.Error(), Hint: "kubectl auth can-i --list shows what you may do", Err: err}
	case apierrors.IsNotFound(err):
		return &inventory.Error{Kind: inventory.NotFound, Msg: err.Error(), Hint: "kubectl slipway machines -A and kubectl slipway hosts list what there is; -n NAME looks in another namespace", Err: err}
	case apierrors.IsUnauthorized(err):
		return &inventory.Error{Kind: inventory.Unauthorized, Msg: "the cluster does not know you", Hint: "give --kubeconfig FILE or --context NAME, as with kubectl", Err: err}
	}
	return &inventory.Error{Kind: inventory.Unavailable, Msg: "the cluster does not answer as it should: " + err.Error(), Hint: "is its API server up, and is it the right one? kubectl cluster-info", Err: err}
}

// Machine is a line of the list of machines: a MetalMachine or a SlipwayMachine.
type Machine struct {
	Kind      string      `json:"kind"`
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	Phase     string      `json:"phase,omitempty"`
	Host      string      `json:"host,omitempty"`
	Node      string      `json:"node,omitempty"`
	Profile   string      `json:"profile"`
	IsReady   bool        `json:"isReady"`
	Waits     string      `json:"waits,omitempty"` // why it is not ready
	CreatedAt metav1.Time `json:"createdAt"`
}

// Machines lists machines of both kinds.
func (p *Plugin) Machines(ctx context.Context) ([]Machine, error) {
	all := []Machine{}
	var mms v1alpha1.MetalMachineList
	err := p.client.List(ctx, &mms, client.InNamespace(p.namespace))
	if err != nil && !apimeta.IsNoMatchError(err) {
		return nil, explained(err)
	}
	hasNone := err != nil
	for i := range mms.Items {
		m := &mms.Items[i]
		one := Machine{
			Kind: v1alpha1.KindMetalMachine, Namespace: m.Namespace, Name: m.Name, Phase: string(m.Status.Phase), Profile: m.Spec.OS.Profile, CreatedAt: m.CreationTimestamp,
		}
		if m.Status.HostRef != nil {
			one.Host = m.Status.HostRef.Name
		}
		if m.Status.NodeRef != nil {
			one.Node = m.Status.NodeRef.Name
		}
		all = append(all, one.told(m.Status.Conditions))
	}
	var sms infra.SlipwayMachineList
	err = p.client.List(ctx, &sms, client.InNamespace(p.namespace))
	switch {
	case apimeta.IsNoMatchError(err) && hasNone:
		return nil, explained(err)
	case err != nil && !apimeta.IsNoMatchError(err) && !apierrors.IsForbidden(err):
		return nil, explained(err)
	}
	var owners map[string]theirs
	if len(sms.Items) > 0 {
		owners = p.theirs(ctx)
	}
	for i := range sms.Items {
		m := &sms.Items[i]
		of := owners[m.Namespace+"/"+m.Name]
		one := Machine{
			Kind: "SlipwayMachine", Namespace: m.Namespace, Name: m.Name, Phase: of.phase, Node: of.node, Profile: m.Spec.OS.Profile, CreatedAt: m.CreationTimestamp,
		}
		if m.Status.HostRef != nil {
			one.Host = m.Status.HostRef.Name
		}
		all = append(all, one.told(m.Status.Conditions))
	}
	slices.SortFunc(all, func(a, b Machine) int { return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	return all, nil
}

// theirs is what Cluster API says of a SlipwayMachine in the Machine that owns it.
type theirs struct{ phase, node string }

// theirs reads them by namespace and name of the SlipwayMachine. Who may not read Machines sees nothing of them.
func (p *Plugin) theirs(ctx context.Context) map[string]theirs {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "MachineList"})
	if err := p.client.List(ctx, list, client.InNamespace(p.namespace)); err != nil {
		return nil
	}
	all := map[string]theirs{}
	for _, m := range list.Items {
		text := func(fields ...string) string {
			s, _, _ := unstructured.NestedString(m.Object, fields...)
			return s
		}
		if text("spec", "infrastructureRef", "kind") == "SlipwayMachine" {
			all[m.GetNamespace()+"/"+text("spec", "infrastructureRef", "name")] = theirs{text("status", "phase"), text("status", "nodeRef", "name")}
		}
	}
	return all
}

// told adds what the conditions say.
func (m Machine) told(cs []metav1.Condition) Machine {
	ready := apimeta.FindStatusCondition(cs, v1alpha1.Ready)
	switch {
	case ready == nil:
		m.Waits = "no controller has read it yet"
	case ready.Status == metav1.ConditionTrue:
		m.IsReady = true
	default:
		m.Waits = ready.Reason
		if ready.Message != "" {
			m.Waits += ": " + ready.Message
		}
	}
	return m
}

// Host is a line of the list of hosts.
type Host struct {
	Name    string `json:"name"`
	Phase   string `json:"phase,omitempty"`
	Power   string `json:"power,omitempty"`
	Claim   string `json:"claim,omitempty"`
	Domain  string `json:"domain,omitempty"`
	Address string `json:"address,omitempty"`
	Problem string `json:"problem,omitempty"` // the first condition that is not as it should be
}

// Hosts lists hosts.
func (p *Plugin) Hosts(ctx context.Context) ([]Host, error) {
	var list v1alpha1.MetalHostList
	if err := p.client.List(ctx, &list); err != nil {
		return nil, explained(err)
	}
	all := []Host{}
	for i := range list.Items {
		h := &list.Items[i]
		one := Host{Name: h.Name, Phase: string(h.Status.Phase), Power: string(h.Status.Power), Domain: h.Spec.FailureDomain}
		if c := h.Status.Claim; c != nil {
			one.Claim = strings.TrimPrefix(c.Namespace+"/"+c.Name, "/")
		}
		if len(h.Status.Addresses) > 0 {
			one.Address = h.Status.Addresses[0].Address
		}
		for _, c := range h.Status.Conditions {
			isBad := c.Type == v1alpha1.ManualActionRequired && c.Status == metav1.ConditionTrue || c.Type == v1alpha1.PowerReachable && c.Status == metav1.ConditionFalse
			if isBad && one.Problem == "" {
				one.Problem = c.Reason + ": " + c.Message
			}
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Host) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// annotate asks a controller for something by an annotation with the time.
func (p *Plugin) annotate(ctx context.Context, name, annotation string, now time.Time) error {
	mm := &v1alpha1.MetalMachine{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.home()}}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, annotation, now.UTC().Format(time.RFC3339))
	return explained(p.client.Patch(ctx, mm, client.RawPatch("application/merge-patch+json", []byte(patch)), client.FieldOwner("kubectl-slipway")))
}

// Reprovision installs a machine again: Slipway drains its node, and it gets a new provider ID.
func (p *Plugin) Reprovision(ctx context.Context, name string, now time.Time) error {
	return p.annotate(ctx, name, v1alpha1.AnnotationReprovisionAt, now)
}

// Reboot has the host of a machine switched off and on.
func (p *Plugin) Reboot(ctx context.Context, name string, now time.Time) error {
	return p.annotate(ctx, name, v1alpha1.AnnotationRebootAt, now)
}

// home is the namespace that a name without one is in.
func (p *Plugin) home() string {
	if p.namespace == "" {
		return metav1.NamespaceDefault
	}
	return p.namespace
}

// Cordon keeps new machines away from a host, or ends that.
func (p *Plugin) Cordon(ctx context.Context, name string, on bool) error {
	mh := &v1alpha1.MetalHost{ObjectMeta: metav1.ObjectMeta{Name: name}}
	patch := fmt.Sprintf(`{"spec":{"cordoned":%t}}`, on)
	return explained(p.client.Patch(ctx, mh, client.RawPatch("application/merge-patch+json", []byte(patch)), client.FieldOwner("kubectl-slipway")))
}
