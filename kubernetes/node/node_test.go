package node

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	metal "slipway.dev/slipway/kubernetes/v1alpha1"
)

const (
	ours  = "slipway://fra/h1/01CLAIM"
	other = "slipway://fra/h1/01EARLIER"
	uuid  = "4c4c4544-0051-3510-8052-b4c04f4e3732"
	// The same, as kernels that swap the first fields say it.
	uuidSwapped = "44454c4c-5100-1035-8052-b4c04f4e3732"
)

var claimed = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func me() Identity {
	return Identity{ProviderID: ours, Machine: "lab-web-1", SystemUUID: uuid, Hostname: "web-1", ClaimedAt: claimed}
}

// aNode makes a node that registered after the claim.
func aNode(name string, with ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-" + "x", CreationTimestamp: metav1.NewTime(claimed.Add(10 * time.Minute))}}
	for _, f := range with {
		f(n)
	}
	return n
}

func provider(id string) func(*corev1.Node) { return func(n *corev1.Node) { n.Spec.ProviderID = id } }

func label(k, v string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels[k] = v
	}
}

func system(u string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.NodeInfo.SystemUUID = u }
}

func created(at time.Time) func(*corev1.Node) {
	return func(n *corev1.Node) { n.CreationTimestamp = metav1.NewTime(at) }
}

func TestANodeIsFoundByWhatOnlyItsMachineHas(t *testing.T) {
	labelled := label(metal.LabelMachine, "lab-web-1")
	tests := []struct {
		name    string
		nodes   []*corev1.Node
		want    string // node
		foreign string
		older   string
		twins   int
	}{
		{name: "there is no node"},
		{name: "a node of another machine is not looked at", nodes: []*corev1.Node{aNode("x", provider("slipway://fra/h2/01X"), system("aaaa4544-0051-3510-8052-b4c04f4e3732"))}},
		{name: "its provider id is all it needs", nodes: []*corev1.Node{aNode("whatever", provider(ours))}, want: "whatever"},
		{name: "its provider id counts even on a node that is older", nodes: []*corev1.Node{aNode("whatever", provider(ours), created(claimed.Add(-time.Hour)))}, want: "whatever"},
		{name: "its provider id is better than its label on another node", nodes: []*corev1.Node{aNode("a", labelled), aNode("b", provider(ours))}, want: "b"},
		{name: "without a provider id the label decides", nodes: []*corev1.Node{aNode("a", labelled), aNode("b", system(uuid)), aNode("web-1")}, want: "a"},
		{name: "then the hardware", nodes: []*corev1.Node{aNode("web-1"), aNode("b", system(uuid))}, want: "b"},
		{name: "in capital letters", nodes: []*corev1.Node{aNode("b", system(strings.ToUpper(uuid)))}, want: "b"},
		{name: "in the other byte order", nodes: []*corev1.Node{aNode("b", system(uuidSwapped))}, want: "b"},
		{name: "then the name", nodes: []*corev1.Node{aNode("web-1"), aNode("web-2")}, want: "web-1"},
		{name: "two nodes on the same hardware are both left alone", nodes: []*corev1.Node{aNode("a", system(uuid)), aNode("b", system(uuid))}},
		{name: "two nodes with its provider id are both left alone", nodes: []*corev1.Node{aNode("a", provider(ours)), aNode("b", provider(ours))}, twins: 2},
		{name: "an earlier claim of the host is foreign", nodes: []*corev1.Node{aNode("web-1", provider(other), labelled)}, foreign: "web-1"},
		{name: "another cloud's node of that name is foreign", nodes: []*corev1.Node{aNode("web-1", provider("aws:///eu/i-1"))}, foreign: "web-1"},
		{name: "a node that was there before the machine is not ours", nodes: []*corev1.Node{aNode("web-1", created(claimed.Add(-time.Hour)))}, older: "web-1"},
		{name: "not even with its hardware", nodes: []*corev1.Node{aNode("b", system(uuid), created(claimed.Add(-time.Hour)))}, older: "b"},
		{name: "clocks may differ a little", nodes: []*corev1.Node{aNode("web-1", created(claimed.Add(-time.Minute)))}, want: "web-1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 { // in either order
				f := match(me(), tt.nodes)
				if got := named(f.node); got != tt.want || named(f.foreign) != tt.foreign || named(f.older) != tt.older || len(f.twins) != tt.twins {
					t.Errorf("found %q, foreign %q, older %q, twins %v", got, named(f.foreign), named(f.older), f.twins)
				}
				slices.Reverse(tt.nodes)
			}
		})
	}
}

func TestWithoutTheTimeOfTheClaimANameAloneIsNotEnough(t *testing.T) {
	id := me()
	id.ClaimedAt = time.Time{}
	if f := match(id, []*corev1.Node{aNode("web-1")}); f.node != nil {
		t.Errorf("took %s for ours by its name", f.node.Name)
	}
	if f := match(id, []*corev1.Node{aNode("web-1", system(uuid))}); f.node == nil {
		t.Error("did not find the node on its hardware")
	}
}

func TestUUIDsThatManySystemsHaveSayNothing(t *testing.T) {
	for _, u := range []string{
		"", "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "03000200-0400-0500-0006-000700080009", "To be filled by O.E.M.",
	} {
		if sameSystem(u, u) {
			t.Errorf("%q was taken for one system", u)
		}
	}
}

func named(n *corev1.Node) string {
	if n == nil {
		return ""
	}
	return n.Name
}

func TestWhatIsSaidOfANode(t *testing.T) {
	ready := func(s corev1.ConditionStatus, reason, message string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: s, Reason: reason, Message: message}}
		}
	}
	tests := []struct {
		name    string
		node    *corev1.Node
		found   bool
		isReady bool
		reason  string
		says    string
	}{
		{name: "none yet", reason: metal.ReasonWaitingForNode, says: "no node with provider id " + ours + " yet"},
		{name: "one that is ready", node: aNode("web-1", provider(ours), ready("True", "KubeletReady", "")), found: true, isReady: true, reason: metal.ReasonNodeReady},
		{name: "one that has not spoken", node: aNode("web-1", provider(ours)), found: true, reason: metal.ReasonNodeNotReady, says: "the kubelet has not said yet how it is"},
		{
			name: "one whose kubelet is lost", node: aNode("web-1", provider(ours), ready("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")),
			found: true, reason: metal.ReasonNodeNotReady, says: "its cluster does not hear of the kubelet: NodeStatusUnknown",
		},
		{
			name: "how long ago something was is left out", node: aNode("web-1", provider(ours), ready("False", "KubeletNotReady", "PLEG is not healthy: pleg was last seen active 3m2.153s ago; threshold is 3m0s")),
			found: true, reason: metal.ReasonNodeNotReady, says: "KubeletNotReady: PLEG is not healthy: pleg was last seen active some time ago; threshold is some time",
		},
		{
			name: "a foreign one is told with both provider ids", node: aNode("web-1", provider(other)),
			reason: metal.ReasonNodeProviderIDMismatch, says: "node web-1 has provider id " + other + ", and the machine " + ours + "; if that node is gone for good, delete it",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var nodes []*corev1.Node
			if tt.node != nil {
				nodes = append(nodes, trim(tt.node))
			}
			id := me()
			f := match(id, nodes)
			o := describe(&f, &id)
			if o.Found != tt.found || o.IsReady != tt.isReady || o.Reason != tt.reason || o.Message != tt.says {
				t.Errorf("said %+v", o)
			}
		})
	}
}

func taint(key, value string, effect corev1.TaintEffect) corev1.Taint {
	return corev1.Taint{Key: key, Value: value, Effect: effect}
}

// life is a node that is changed by us and by others in turn.
type life struct {
	t *testing.T
	n *corev1.Node
}

// apply does to the node what the API server does with our patch, and returns what was refused.
func (l *life) apply(w Wanted) []string {
	l.t.Helper()
	c := plan(l.n, ours, w)
	body, err := c.patch("7")
	if err != nil {
		l.t.Fatal(err)
	}
	var doc struct {
		Metadata struct {
			ResourceVersion     string
			Labels, Annotations map[string]*string
		}
		Spec struct {
			ProviderID *string
			Taints     *[]corev1.Taint
		}
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		l.t.Fatal(err)
	}
	if doc.Metadata.ResourceVersion != "7" {
		l.t.Errorf("the patch holds for version %q", doc.Metadata.ResourceVersion)
	}
	merge := func(have *map[string]string, change map[string]*string) {
		if *have == nil {
			*have = map[string]string{}
		}
		for k, v := range change {
			if v == nil {
				delete(*have, k)
			} else {
				(*have)[k] = *v
			}
		}
	}
	merge(&l.n.Labels, doc.Metadata.Labels)
	merge(&l.n.Annotations, doc.Metadata.Annotations)
	if doc.Spec.ProviderID != nil {
		l.n.Spec.ProviderID = *doc.Spec.ProviderID
	}
	if doc.Spec.Taints != nil {
		l.n.Spec.Taints = *doc.Spec.Taints
	}
	if again := plan(l.n, ours, w); !again.isEmpty() {
		l.t.Errorf("a second look changes something again: %v %v", again.metadata, again.spec)
	}
	return c.refused
}

func (l *life) has(labels map[string]string, taints ...corev1.Taint) {
	l.t.Helper()
	for k, v := range labels {
		if got, ok := l.n.Labels[k]; got != v || ok != (v != "") {
			l.t.Errorf("label %s is %q, want %q", k, got, v)
		}
	}
	if !slices.Equal(l.n.Spec.Taints, taints) {
		l.t.Errorf("taints are %v, want %v", l.n.Spec.Taints, taints)
	}
}

func TestOthersThingsOnANodeStayTheirs(t *testing.T) {
	theirs := taint("example.com/theirs", "", corev1.TaintEffectNoExecute)
	mine := taint("example.com/mine", "1", corev1.TaintEffectNoSchedule)
	l := &life{t: t, n: aNode("web-1", label("theirs", "a"))}
	l.n.Spec.Taints = []corev1.Taint{theirs}

	l.apply(Wanted{Labels: map[string]string{"mine": "1"}, Annotations: map[string]string{"note": "x"}, Taints: []corev1.Taint{mine}})
	if l.n.Spec.ProviderID != ours || l.n.Annotations["note"] != "x" {
		t.Errorf("the node has provider id %q and annotations %v", l.n.Spec.ProviderID, l.n.Annotations)
	}
	l.has(map[string]string{"mine": "1", "theirs": "a"}, theirs, mine)

	// What is ours is put back.
	delete(l.n.Labels, "mine")
	l.n.Spec.Taints = []corev1.Taint{theirs}
	l.apply(Wanted{Labels: map[string]string{"mine": "1"}, Taints: []corev1.Taint{mine}})
	l.has(map[string]string{"mine": "1", "theirs": "a"}, theirs, mine)
	if _, ok := l.n.Annotations["note"]; ok {
		t.Error("an annotation that is not wanted any more has stayed")
	}

	// A value that is ours changes with what is wanted.
	mine.Value = "2"
	l.apply(Wanted{Labels: map[string]string{"mine": "2"}, Taints: []corev1.Taint{mine}})
	l.has(map[string]string{"mine": "2"}, theirs, mine)

	// Somebody else comes, and then we want the same key.
	l.n.Labels["late"] = "b"
	late := taint("example.com/late", "b", corev1.TaintEffectNoSchedule)
	l.n.Spec.Taints = append(l.n.Spec.Taints, late)
	refused := l.apply(Wanted{Labels: map[string]string{"late": "c"}, Taints: []corev1.Taint{taint("example.com/late", "c", corev1.TaintEffectNoSchedule)}})
	l.has(map[string]string{"late": "b", "mine": "", "theirs": "a"}, theirs, late)
	want := []string{
		`label late is "b", set by somebody else; wanted is "c"`,
		`taint example.com/late:NoSchedule is "b", set by somebody else; wanted is "c"`,
	}
	if !slices.Equal(refused, want) {
		t.Errorf("refused %q", refused)
	}

	// Even the same value stays theirs.
	l.apply(Wanted{Labels: map[string]string{"late": "b"}})
	l.apply(Wanted{})
	l.has(map[string]string{"late": "b", "theirs": "a"}, theirs, late)
}

func TestWhatANodeRegisteredWithIsOurs(t *testing.T) {
	own := taint("example.com/mine", "", corev1.TaintEffectNoSchedule)
	kubeadm := taint("node-role.kubernetes.io/control-plane", "", corev1.TaintEffectNoSchedule)
	l := &life{t: t, n: aNode("cp-1", provider(ours), label("mine", "1"))}
	l.n.Spec.Taints = []corev1.Taint{kubeadm, own}
	l.apply(Wanted{Labels: map[string]string{"mine": "1"}, Taints: []corev1.Taint{own, kubeadm}})
	l.apply(Wanted{})
	l.has(map[string]string{"mine": ""}, kubeadm) // kubeadm's own taint stays, although the machine wanted it too
}

func TestKubernetesOwnThingsAreNeverTouched(t *testing.T) {
	lost := taint("node.kubernetes.io/unreachable", "", corev1.TaintEffectNoExecute)
	l := &life{t: t, n: aNode("web-1", provider(ours), label(corev1.LabelHostname, "web-1"))}
	l.n.Spec.Taints = []corev1.Taint{lost}
	refused := l.apply(Wanted{Labels: map[string]string{corev1.LabelHostname: "x"}, Taints: []corev1.Taint{taint("node.kubernetes.io/not-ready", "", corev1.TaintEffectNoExecute)}})
	if len(refused) != 2 {
		t.Errorf("refused %q", refused)
	}
	l.has(map[string]string{corev1.LabelHostname: "web-1"}, lost)
	if len(l.n.Annotations) != 0 {
		t.Errorf("wrote annotations %v", l.n.Annotations)
	}
}

func TestSpoiltBooksTakeNothingAway(t *testing.T) {
	l := &life{t: t, n: aNode("web-1", provider(ours), label("theirs", "a"))}
	l.n.Annotations = map[string]string{AnnotationOwned: "{"}
	l.apply(Wanted{Labels: map[string]string{"mine": "1"}})
	l.has(map[string]string{"mine": "1", "theirs": "a"})
}

func TestAHeartbeatIsNoNews(t *testing.T) {
	beat := func(at time.Time, message string) *corev1.Node {
		n := aNode("web-1", provider(ours))
		n.ResourceVersion = at.String()
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: "False", Message: message, LastHeartbeatTime: metav1.NewTime(at)}}
		n.Status.Images = []corev1.ContainerImage{{SizeBytes: at.Unix()}}
		return trim(n)
	}
	if isNews(beat(claimed, "seen 3s ago"), beat(claimed.Add(time.Minute), "seen 4s ago")) {
		t.Error("a heartbeat was taken for news")
	}
	if !isNews(beat(claimed, "no network"), beat(claimed, "no runtime")) {
		t.Error("another message was not taken for news")
	}
}

func TestWhatSomebodyElseHadSetIsLeftAtTheFirstLook(t *testing.T) {
	n := &corev1.Node{}
	n.Name = "web-1"
	n.Labels = map[string]string{"team": "theirs", "zone": "z"}
	n.Annotations = map[string]string{"note": "theirs"}
	n.Spec.Taints = []corev1.Taint{{Key: "for", Value: "theirs", Effect: corev1.TaintEffectNoSchedule}}
	c := plan(n, "slipway://lab/h/c", Wanted{
		Labels: map[string]string{"team": "ours", "zone": "z", "rack": "r"}, Annotations: map[string]string{"note": "ours"},
		Taints: []corev1.Taint{{Key: "for", Value: "ours", Effect: corev1.TaintEffectNoSchedule}},
	})
	if len(c.refused) != 3 {
		t.Errorf("refused: %q, want the label, the annotation and the taint", c.refused)
	}
	labels, _ := c.metadata["labels"].(map[string]any)
	if len(labels) != 1 || labels["rack"] != "r" {
		t.Errorf("labels are written: %v, want rack only", labels)
	}
	annotations, _ := c.metadata["annotations"].(map[string]any)
	if _, isWritten := annotations["note"]; isWritten || annotations[AnnotationOwned] != `{"labels":["rack","zone"]}` {
		t.Errorf("annotations are written: %v", annotations)
	}
	if taints, isWritten := c.spec["taints"]; isWritten {
		t.Errorf("taints are written: %v", taints)
	}
}
