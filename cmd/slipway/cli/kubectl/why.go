package kubectl

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	infra "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// Why explains one object.
type Why struct {
	Object     string      `json:"object"` // kind, namespace and name
	Summary    string      `json:"summary"`
	Hint       string      `json:"hint,omitempty"`
	Host       string      `json:"host,omitempty"`
	Conditions []Condition `json:"conditions"`
	Events     []Event     `json:"events"` // newest last
}

// Condition is one condition.
type Condition struct {
	Type    string    `json:"type"`
	Status  string    `json:"status"`
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since"`
}

// Event is something that was noted of the object.
type Event struct {
	At     time.Time `json:"at"`
	Type   string    `json:"type"` // Normal or Warning
	Reason string    `json:"reason"`
	Text   string    `json:"text"`
}

// negative are the conditions that are good when False.
var negative = []string{v1alpha1.Stalled, v1alpha1.Paused, v1alpha1.Maintenance, v1alpha1.ManualActionRequired}

// hints say what a person can do about a reason.
var hints = map[string]string{
	v1alpha1.ReasonWaitingForHost:             "the message counts what keeps hosts away; accept or add hosts, or ask for less in spec.placement",
	v1alpha1.ReasonInsufficientResources:      "the message says what keeps hosts away: change that, add hosts, or delete a machine",
	v1alpha1.ReasonNoMatchInFailureDomain:     "no suitable host is in that failure domain: name another, or set placement.failureDomainPolicy: Preferred",
	v1alpha1.ReasonNoMatchingHost:             "waiting does not help: add a host that meets the spec, or ask for less in spec.placement; the message says what the nearest hosts lack",
	v1alpha1.ReasonPinnedHostUnavailable:      "kubectl slipway why host/NAME says what keeps the named host",
	v1alpha1.ReasonHostMissing:                "its host was deleted from the inventory: delete the machine and create it again",
	v1alpha1.ReasonWaitingForInfrastructure:   "look at the SlipwayCluster: kubectl get slipwaycluster",
	v1alpha1.ReasonWaitingForBootstrapData:    "look at what writes the data: the Secret, the KubeadmConfig, or the JoinTarget",
	v1alpha1.ReasonWaitingForControlPlaneInit: "the first control plane has to come up first: kubectl slipway machines",
	v1alpha1.ReasonWaitingForTurn:             "nothing to do: machines of a cluster join one after the other",
	v1alpha1.ReasonTokenMintFailed:            "look whether Slipway's account may make tokens: slipway target check NAME",
	v1alpha1.ReasonUnsupportedFormat:          "the profile cannot carry this format of bootstrap data: use cloud-config or Ignition, or a profile that passes it through",
	v1alpha1.ReasonUnsupportedDirective:       "take the directive out of the bootstrap configuration, or use another profile",
	v1alpha1.ReasonWaitingForPower:            "look at the host's controller: kubectl slipway why host/NAME; a host that is powered by hand has to be switched on",
	v1alpha1.ReasonWaitingForPXE:              "the host has not asked for its boot: is it on, and does it boot from the network?",
	v1alpha1.ReasonInstallFailed:              "the message says what failed; slipway machine events NAME on the server shows all steps",
	v1alpha1.ReasonBootTimeout:                "look at the host's console: slipway host console NAME",
	v1alpha1.ReasonWaitingForHook:             "the owner of the hook acknowledges it by removing the annotation",
	v1alpha1.ReasonWaitingForBudget:           "the budget of its pool lets so many be installed at a time",
	v1alpha1.ReasonWaitingForFirstBoot:        "the installed system has not come up yet: look at its console",
	v1alpha1.ReasonWaitingForNode:             "the kubelet has not registered: look at its log on the machine's console",
	v1alpha1.ReasonNodeProviderIDMismatch:     "another system registered under this name: delete that Node",
	v1alpha1.ReasonJoinFailed:                 "the message has the end of the join's log",
	v1alpha1.ReasonWorkloadClusterUnreachable: "look whether the API server of the JoinTarget answers: slipway target check NAME",
	v1alpha1.ReasonNodeNotReady:               "kubectl describe node says why; often the network add-on is missing",
	v1alpha1.ReasonDraining:                   "pods are being evicted; see spec.deletion.drain for the limit",
	v1alpha1.ReasonBlockedByPDB:               "a PodDisruptionBudget forbids an eviction: add replicas, or lift it",
	v1alpha1.ReasonDrainTimeout:               "drain.onTimeout is Block: delete the pods that are left, or set it to Force",
	v1alpha1.ReasonSpecChanged:                "it runs what its spec said before: delete it and create it again, or kubectl slipway reprovision NAME",
	v1alpha1.ReasonPaused:                     "take the annotation off, or unpause the Cluster",
}

// Why explains a machine (NAME or machine/NAME) or a host (host/NAME).
func (p *Plugin) Why(ctx context.Context, ref string) (*Why, error) {
	kind, name, isRef := strings.Cut(ref, "/")
	if !isRef {
		kind, name = "machine", ref
	}
	switch strings.ToLower(kind) {
	case "host", "mh", "metalhost":
		var h v1alpha1.MetalHost
		if err := p.client.Get(ctx, client.ObjectKey{Name: name}, &h); err != nil {
			return nil, explained(err)
		}
		return p.explain(ctx, v1alpha1.KindMetalHost, &h, h.Status.Conditions, h.Name), nil
	case "machine", "mm", "metalmachine", "slipwaymachine", "slm":
	default:
		return nil, inventory.Errorf(inventory.Invalid, "%q is neither a machine nor a host", inventory.Clean(ref, 80)).WithHint("write NAME, machine/NAME or host/NAME")
	}
	key := client.ObjectKey{Namespace: p.home(), Name: name}
	var mm v1alpha1.MetalMachine
	err := p.client.Get(ctx, key, &mm)
	if err == nil {
		host := ""
		if mm.Status.HostRef != nil {
			host = mm.Status.HostRef.Name
		}
		return p.explain(ctx, v1alpha1.KindMetalMachine, &mm, mm.Status.Conditions, host), nil
	}
	if !apierrors.IsNotFound(err) && !apimeta.IsNoMatchError(err) {
		return nil, explained(err)
	}
	var sm infra.SlipwayMachine
	if second := p.client.Get(ctx, key, &sm); second != nil {
		if apimeta.IsNoMatchError(second) || apierrors.IsNotFound(second) {
			second = err
		}
		return nil, explained(second)
	}
	host := ""
	if sm.Status.HostRef != nil {
		host = sm.Status.HostRef.Name
	}
	return p.explain(ctx, "SlipwayMachine", &sm, sm.Status.Conditions, host), nil
}

func (p *Plugin) explain(ctx context.Context, kind string, o client.Object, cs []metav1.Condition, host string) *Why {
	w := &Why{Object: strings.ReplaceAll(kind+" "+o.GetNamespace()+"/"+o.GetName(), " /", " "), Host: host, Conditions: []Condition{}, Events: []Event{}}
	for _, c := range cs {
		w.Conditions = append(w.Conditions, Condition{Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.UTC()})
	}
	w.Summary, w.Hint = summary(o, cs)
	w.Events = p.events(ctx, o)
	return w
}

// summary says in one line how an object is, and what to do about it.
func summary(o client.Object, cs []metav1.Condition) (text, hint string) {
	if len(cs) == 0 {
		return "no controller has read it yet", "is the cluster attached, or the manager running? slipway cluster list shows it on the server"
	}
	bad := cause(cs)
	state := "waits"
	if o.GetDeletionTimestamp() != nil {
		state = "is being deleted"
	}
	switch {
	case bad == nil && o.GetDeletionTimestamp() != nil:
		return "it is being deleted", ""
	case bad == nil:
		return "it is ready", ""
	case bad.Reason == v1alpha1.ReasonDeleting && bad.Message != "": // which says where it is at, and what blocks it
		return bad.Message, hints[bad.Reason]
	case bad.Type == v1alpha1.Stalled:
		state = "is stuck until its spec, or what that names, changes"
	case bad.Type == v1alpha1.Paused:
		state = "is paused"
	}
	text = "it " + state + ": " + bad.Reason
	if bad.Message != "" {
		text += ": " + bad.Message
	}
	return text, hints[bad.Reason]
}

// cause returns the condition that says most: a stall, a pause, then what Ready sums up.
func cause(cs []metav1.Condition) *metav1.Condition {
	for _, t := range []string{v1alpha1.Stalled, v1alpha1.ManualActionRequired, v1alpha1.Paused} {
		if c := apimeta.FindStatusCondition(cs, t); c != nil && c.Status == metav1.ConditionTrue {
			return c
		}
	}
	ready := apimeta.FindStatusCondition(cs, v1alpha1.Ready)
	if ready != nil && ready.Status == metav1.ConditionTrue {
		return nil
	}
	if ready != nil { // its reason is that of another condition, which may say more
		for i := range cs {
			if cs[i].Type != v1alpha1.Ready && cs[i].Reason == ready.Reason && !slices.Contains(negative, cs[i].Type) {
				return &cs[i]
			}
		}
	}
	return ready
}

// events returns the newest events of an object. That they may not be read hides nothing else.
func (p *Plugin) events(ctx context.Context, o client.Object) []Event {
	namespace := o.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault // where events of objects without one are
	}
	var list corev1.EventList
	if p.client.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{"involvedObject.uid": string(o.GetUID())}) != nil {
		return []Event{}
	}
	all := []Event{}
	for _, e := range list.Items {
		at := e.LastTimestamp.Time
		if at.IsZero() {
			at = e.EventTime.Time
		}
		if e.Series != nil {
			at = e.Series.LastObservedTime.Time
		}
		all = append(all, Event{At: at.UTC(), Type: e.Type, Reason: e.Reason, Text: e.Message})
	}
	slices.SortStableFunc(all, func(a, b Event) int { return a.At.Compare(b.At) })
	return all[max(0, len(all)-10):]
}
