package node_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slipway.dev/slipway/inventory"
	metal "slipway.dev/slipway/kubernetes/v1alpha1"
)

// One control plane serves all stories; each has nodes, pods and budgets of its own names. The last one stops the API
// server.
func TestNodes(t *testing.T) {
	l := newLab(t)
	l.watchEarly()
	for _, s := range []struct {
		name string
		tell func(*lab)
	}{
		{"a node is emptied of what may go, and of nothing else", emptied},
		{"a budget that a node must keep is named", budgeted},
		{"two budgets for one pod are both named", twoBudgets},
		{"data in emptyDir volumes are given up only when that is wanted", localData},
		{"a node whose kubelet is lost is not waited for", lostKubelet},
		{"volumes are waited for, but for those of pods that stay", volumes},
		{"a node that is gone or foreign is empty, and stays as it is", foreign},
		{"the object of a node is deleted only when it is ours", forgotten},
		{"what nobody can speak to is not waited for", speechless},
		{"an account without the rights is told which ones it needs", unprivileged},
		{"a node gets what its machine wants, and keeps what others gave it", wanted},
		{"a node that registered without a provider id gets it once", adopted},
		{"how far a control plane is can be read", controlPlane},
		{"a taint for a while comes and goes", tainted},
		{"clusters that cannot be reached hold up nobody", unreachable},
	} {
		t.Run(s.name, func(t *testing.T) {
			before := l.t
			l.t = t
			defer func() { l.t = before }()
			s.tell(l)
		})
	}
}

func emptied(l *lab) {
	l.addNode("a1", providerID("a1"), nil)
	l.addNode("a2", providerID("a2"), nil)
	ds, err := l.admin.AppsV1().DaemonSets(ns).Create(l.t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: ns},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a-agent"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a-agent"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.invalid/none"}}},
			},
		},
	}, metav1.CreateOptions{})
	l.must(err)
	l.addPod("a-agent", "a1", func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}
	})
	l.addPod("a-static", "a1", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} })
	l.addPod("a-web", "a1")
	l.addPod("a-db", "a1")
	l.addPod("a-elsewhere", "a2")

	s := l.drain("a1")
	if s.IsDone || s.Reason != metal.ReasonDraining || s.Detail != "ending: work/a-db, work/a-web" {
		l.t.Errorf("said %+v", s)
	}
	if !l.node("a1").Spec.Unschedulable || l.node("a2").Spec.Unschedulable {
		l.t.Error("not exactly the node that goes is cordoned")
	}
	grace := *l.pod("a-web").DeletionGracePeriodSeconds
	if grace != 30 {
		l.t.Errorf("the pod was given %d s and not its own 30", grace)
	}
	if again := l.drain("a1"); again.Detail != s.Detail {
		l.t.Errorf("a second look says %q, the first %q", again.Detail, s.Detail)
	}
	l.end("a-db")
	if s = l.drain("a1"); s.Detail != "ending: work/a-web" {
		l.t.Errorf("said %+v", s)
	}
	l.end("a-web")
	if s = l.drain("a1"); !s.IsDone {
		l.t.Errorf("said %+v", s)
	}
	for _, name := range []string{"a-agent", "a-static", "a-elsewhere"} {
		if l.isLeaving(name) {
			l.t.Errorf("pod %s was asked to go", name)
		}
	}
}

func budgeted(l *lab) {
	l.addNode("b1", providerID("b1"), nil)
	l.addPod("b-shop", "b1", app("shop"))
	l.addPod("b-free", "b1")
	l.addBudget("shop", "shop", 1)
	s := l.drain("b1")
	if s.IsDone || s.Reason != metal.ReasonBlockedByPDB || len(s.BlockedBy) != 1 || s.BlockedBy[0] != "work/shop" ||
		s.Detail != "budget work/shop keeps work/b-shop; ending: work/b-free" {
		l.t.Errorf("said %+v", s)
	}
	if l.isLeaving("b-shop") || !l.isLeaving("b-free") {
		l.t.Error("the budget kept the wrong pod")
	}
	l.end("b-free")
	if s = l.drain("b1"); s.IsDone || s.Detail != "budget work/shop keeps work/b-shop" {
		l.t.Errorf("said %+v", s)
	}

	// Another pod comes up elsewhere, and the first may go.
	l.addPod("b-shop2", "", app("shop"))
	l.budget("shop", func(b *policyv1.PodDisruptionBudget) bool { return b.Status.DisruptionsAllowed > 0 })
	if s = l.drain("b1"); s.IsDone || s.Reason != metal.ReasonDraining {
		l.t.Errorf("said %+v", s)
	}
	l.end("b-shop")
	l.drained("b1")
}

func twoBudgets(l *lab) {
	l.addNode("c1", providerID("c1"), nil)
	l.addPod("c-shop", "c1", app("c-shop"))
	l.addBudget("c-one", "c-shop", 1)
	l.addBudget("c-two", "c-shop", 1)
	s := l.drain("c1")
	if s.IsDone || s.Reason != metal.ReasonBlockedByPDB || strings.Join(s.BlockedBy, " ") != "work/c-one work/c-two" {
		l.t.Errorf("said %+v", s)
	}
}

func localData(l *lab) {
	l.addNode("d1", providerID("d1"), nil)
	l.addPod("d-cache", "d1", func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	})
	l.addPod("d-web", "d1")
	s := l.drain("d1")
	if s.IsDone || s.Reason != metal.ReasonDraining || len(s.BlockedBy) != 1 || s.BlockedBy[0] != "work/d-cache" || !strings.Contains(s.Detail, "deleteEmptyDirData") {
		l.t.Errorf("said %+v", s)
	}
	if l.isLeaving("d-cache") || !l.isLeaving("d-web") {
		l.t.Error("the wrong pod stayed")
	}
	giveUp := func(d *inventory.Drain) { d.DeleteEmptyDirData, d.GraceSeconds = true, 7 }
	l.drain("d1", giveUp)
	if p := l.pod("d-cache"); p.DeletionTimestamp == nil || *p.DeletionGracePeriodSeconds != 7 {
		l.t.Errorf("the pod was given %v", p.DeletionGracePeriodSeconds)
	}
	l.end("d-cache", "d-web")
	l.drained("d1", giveUp)
}

func lostKubelet(l *lab) {
	l.addNode("e1", providerID("e1"), nil)
	l.addPod("e-web", "e1")
	l.beat("e1", corev1.ConditionUnknown)
	if s := l.drain("e1"); s.IsDone {
		l.t.Errorf("was empty at once: %+v", s)
	}
	l.drained("e1") // nobody ends the pod
	if p := l.pod("e-web"); p == nil || p.DeletionTimestamp == nil {
		l.t.Error("the pod was not asked to go")
	}
}

func volumes(l *lab) {
	l.addNode("f1", providerID("f1"), nil)
	ds, err := l.admin.AppsV1().DaemonSets(ns).Get(l.t.Context(), "agent", metav1.GetOptions{})
	l.must(err)
	claim := func(name string) func(p *corev1.Pod) {
		_, err := l.admin.CoreV1().PersistentVolumeClaims(ns).Create(l.t.Context(), &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeName: "pv-" + name,
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}, metav1.CreateOptions{})
		l.must(err)
		pv := "pv-" + name
		_, err = l.admin.StorageV1().VolumeAttachments().Create(l.t.Context(), &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: "att-" + name},
			Spec:       storagev1.VolumeAttachmentSpec{Attacher: "csi.example.com", NodeName: "f1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}},
		}, metav1.CreateOptions{})
		l.must(err)
		return func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
		}
	}
	l.addPod("f-agent", "f1", claim("agent"), func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}
	})
	l.addPod("f-db", "f1", claim("db"))
	wait := func(d *inventory.Drain) { d.VolumeTimeout = inventory.Duration(time.Hour) }
	if s := l.drain("f1", wait); s.Reason != metal.ReasonDraining {
		l.t.Errorf("said %+v", s)
	}
	l.end("f-db")
	s := l.drain("f1", wait)
	if s.IsDone || s.Reason != "WaitingForVolumes" || s.Detail != "volumes are still attached: pv-db" {
		l.t.Errorf("said %+v", s)
	}
	if s := l.drain("f1"); !s.IsDone {
		l.t.Errorf("without a time for it, volumes are waited for: %+v", s)
	}
	if s = l.drain("f1", wait); s.IsDone { // from here on the time counts
		l.t.Errorf("said %+v", s)
	}
	l.skip(2 * time.Hour)
	if s = l.drain("f1", wait); !s.IsDone || !strings.Contains(s.Detail, "pv-db") {
		l.t.Errorf("after the time for it: %+v", s)
	}
	l.must(l.admin.StorageV1().VolumeAttachments().Delete(l.t.Context(), "att-db", metav1.DeleteOptions{}))
	if s = l.drain("f1", wait); !s.IsDone || s.Detail != "" {
		l.t.Errorf("said %+v", s)
	}
}

func foreign(l *lab) {
	if s := l.drain("nobody"); !s.IsDone {
		l.t.Errorf("said %+v", s)
	}
	for name, provider := range map[string]string{"g1": "aws:///eu/i-1", "g2": providerID("g2") + "0", "g3": ""} {
		l.addNode(name, provider, nil)
		l.addPod(name+"-web", name)
		if s := l.drain(name); !s.IsDone {
			l.t.Errorf("%s: said %+v", provider, s)
		}
		if l.node(name).Spec.Unschedulable || l.isLeaving(name+"-web") {
			l.t.Errorf("a node with provider id %q was touched", provider)
		}
	}
}

func forgotten(l *lab) {
	for name, want := range map[string]struct {
		provider string
		labels   map[string]string
		isGone   bool
	}{
		"h1": {provider: providerID("h1"), isGone: true},
		"h2": {provider: "aws:///eu/i-2"},
		"h3": {labels: map[string]string{metal.LabelMachine: "h3"}, isGone: true},
		"h4": {},                           // only the name is the same
		"h5": {provider: providerID("h6")}, // of another machine of ours
	} {
		l.addNode(name, want.provider, want.labels)
		m, h := machine(name)
		for range 2 {
			l.must(l.nodes.Forget(l.t.Context(), m, h))
		}
		_, err := l.admin.CoreV1().Nodes().Get(l.t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) != want.isGone {
			l.t.Errorf("node %s: %v", name, err)
		}
	}
	// A node is found under another name as well.
	l.addNode("ip-10-0-0-1", providerID("h7"), nil)
	m, h := machine("h7")
	l.must(l.nodes.Forget(l.t.Context(), m, h))
	if _, err := l.admin.CoreV1().Nodes().Get(l.t.Context(), "ip-10-0-0-1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		l.t.Errorf("the node under another name: %v", err)
	}
}

func speechless(l *lab) {
	l.target("static", nil)
	for _, name := range []string{"static", "no-such-target"} {
		if s := l.drain("i1", func(d *inventory.Drain) { d.Target = name }); !s.IsDone || !strings.Contains(s.Detail, name) {
			l.t.Errorf("said %+v", s)
		}
		m, h := machine("i1")
		m.Drain.Target = name
		l.must(l.nodes.Forget(l.t.Context(), m, h))
	}
}

func unprivileged(l *lab) {
	l.addNode("j1", providerID("j1"), nil)
	l.target("poor", l.Kubeconfig("somebody"))
	m, h := machine("j1")
	m.Drain.Target = "poor"
	_, err := l.nodes.Drain(l.t.Context(), m, h, time.Now())
	var e *inventory.Error
	if !errors.As(err, &e) || e.Kind != inventory.Forbidden || !strings.Contains(e.Hint, "slipway target rbac poor --nodes") {
		l.t.Errorf("said %v", err)
	}
	if err := l.nodes.Forget(l.t.Context(), m, h); !errors.As(err, &e) || e.Kind != inventory.Forbidden {
		l.t.Errorf("said %v", err)
	}
}
