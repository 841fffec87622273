package contract

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/test/kube/rig"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

var templateRows = []row{
	{name: "InfraMachineTemplate: capacity, nodeInfo and counts come from real hosts", hosts: 2, run: func(s *stage) {
		t := &infrav1.SlipwayMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "t"}}
		t.Spec.Template.Spec.OS.Profile = rig.DiskProfile
		t.Spec.Template.Spec.Placement = &metalv1.Placement{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"for": s.ns}}}
		s.create(t)
		counts := func(matching, available int32) {
			s.until("its counts are right", func() error {
				s.get(t)
				st := t.Status
				return is(st.MatchingHosts != nil && *st.MatchingHosts == matching && *st.AvailableHosts == available, "it says %+v", st)
			})
		}
		counts(2, 2)
		if cpu, memory := t.Status.Capacity["cpu"], t.Status.Capacity["memory"]; cpu.String() != "16" || memory.String() != "8Gi" {
			s.Errorf("capacity %+v", t.Status.Capacity)
		}
		if t.Status.NodeInfo != (infrav1.NodeInfo{Architecture: metalv1.AMD64, OperatingSystem: "linux"}) {
			s.Errorf("nodeInfo %+v", t.Status.NodeInfo)
		}
		s.whole("m", nil)
		counts(2, 1)
	}},
	{name: "InfraMachineTemplate: one that no host matches says why", hosts: 0, run: func(s *stage) {
		t := &infrav1.SlipwayMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "t"}}
		t.Spec.Template.Spec.OS.Profile = "nowhere"
		s.create(t)
		s.until("it says so", func() error {
			s.get(t)
			c := conditionOf(t.Status.Conditions, metalv1.Ready)
			return is(c.Reason == string(metalv1.FailureInvalidConfiguration) && contains(c.Message, "nowhere"), "it says %+v", c)
		})
	}},
}

// remedy makes a remediation as a MachineHealthCheck does.
func (p *pair) remedy(steps ...infrav1.RemediationStep) *infrav1.SlipwayRemediation {
	p.Helper()
	return p.remedyAs(func(*infrav1.SlipwayRemediationSpec) {}, steps...)
}

func (p *pair) remedyAs(edit func(*infrav1.SlipwayRemediationSpec), steps ...infrav1.RemediationStep) *infrav1.SlipwayRemediation {
	p.Helper()
	r := &infrav1.SlipwayRemediation{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.ns, Name: p.m.Name, Labels: map[string]string{clusterv1.ClusterNameLabel: "c"},
			OwnerReferences: []metav1.OwnerReference{p.ownerRef("Machine", p.m)},
		},
		Spec: infrav1.SlipwayRemediationSpec{Steps: steps, RetryLimit: 1, TimeoutSeconds: 3600},
	}
	edit(&r.Spec)
	p.create(r)
	return r
}

// later lets the time of a remediation pass: what it waits for began an hour ago.
func (p *pair) later(r *infrav1.SlipwayRemediation) {
	p.Helper()
	past := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	p.edit(r, func() {
		if r.Status.LastAttempt != nil {
			r.Status.LastAttempt = &past
		}
		for i := range r.Status.Conditions {
			r.Status.Conditions[i].LastTransitionTime = past
		}
	}, true)
}

var remediationRows = []row{
	{name: "remediation: PowerCycle fences the host and starts it again", hosts: 1, run: func(s *stage) {
		p := s.whole("m", nil)
		was := p.robot().Counts()
		r := p.remedy(infrav1.StepPowerCycle, infrav1.StepReplace)
		s.until("it was off and is on again", func() error {
			now := p.robot().Counts()
			return is(now.Offs > was.Offs && p.robot().IsOn(), "it was %+v and is %+v", was, now)
		})
		s.until("the status says so", func() error {
			s.get(r)
			return is(r.Status.Step == infrav1.StepPowerCycle && r.Status.Retries == 1 && r.Status.LastAttempt != nil, "it says %+v", r.Status)
		})
		if now := p.robot().Counts(); now.Writes != was.Writes {
			s.Error("it was installed again")
		}
		if err := s.c.Delete(ctx, r); err != nil { // healthy again
			s.Fatal(err)
		}
	}},
	{name: "remediation: Reprovision installs the host anew under a new claim", hosts: 1, run: func(s *stage) {
		p := s.whole("m", nil)
		was, claim := p.robot().Counts(), p.sm.Spec.ClaimID
		p.remedy(infrav1.StepReprovision)
		s.until("it is installed again", func() error {
			p.read()
			return is(p.robot().Counts().Writes > was.Writes && p.sm.Spec.ClaimID != claim, "claim %s", p.sm.Spec.ClaimID)
		})
		p.untilIs(metalv1.Ready, metav1.ConditionTrue, "")
	}},
	{name: "remediation: Replace asks the Machine's owner", hosts: 1, run: func(s *stage) {
		p := s.whole("m", nil)
		p.remedy(infrav1.StepReplace)
		s.until("OwnerRemediated is False", func() error {
			s.get(p.m)
			c := conditionOf(p.m.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition)
			return is(c.Status == metav1.ConditionFalse && c.Reason == clusterv1.MachineOwnerRemediatedWaitingForRemediationReason, "it is %+v", c)
		})
		if !p.robot().IsOn() {
			s.Error("the host was switched off: that is for the deletion of the Machine")
		}
	}},
	{name: "remediation: a step is tried as often as it says, and the last one ends it", hosts: 1, run: func(s *stage) {
		p := s.whole("m", nil)
		start := p.robot().Counts()
		r := p.remedyAs(func(spec *infrav1.SlipwayRemediationSpec) { spec.RetryLimit = 2 }, infrav1.StepPowerCycle)
		tried := func(n int) {
			s.until(fmt.Sprintf("try %d", n), func() error {
				s.get(r)
				return is(r.Status.Step == infrav1.StepPowerCycle && int(r.Status.Retries) == n, "it says %+v", r.Status)
			})
			s.until("the host was off and is on again", func() error {
				now := p.robot().Counts()
				return is(now.Offs >= start.Offs+n && p.robot().IsOn(), "it was %+v and is %+v", start, now)
			})
		}
		tried(1)
		p.later(r)
		tried(2)
		was := p.robot().Counts()
		p.later(r)
		s.until("nothing is left to be tried", func() error {
			s.get(r)
			c := conditionOf(r.Status.Conditions, "Remediated")
			return is(c.Status == metav1.ConditionFalse && c.Reason == "Exhausted", "it says %+v", c)
		})
		if now := p.robot().Counts(); now.Offs != was.Offs || now.Writes != was.Writes {
			s.Errorf("something was done after the last try: it was %+v and is %+v", was, now)
		}
	}},
	{name: "remediation: with outOfServiceTaint the node is out of service while its host is off, and only then", hosts: 1, run: func(s *stage) {
		p := s.whole("m", nil)
		n, _ := p.workload()
		r := p.remedyAs(func(spec *infrav1.SlipwayRemediationSpec) { spec.OutOfServiceTaint = ptr(true) }, infrav1.StepPowerCycle)
		isOut := func() bool {
			s.get(n)
			return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
				return t.Key == corev1.TaintNodeOutOfService && t.Value == "nodeshutdown" && t.Effect == corev1.TaintEffectNoExecute
			})
		}
		s.until("its node is out of service", func() error { return is(isOut(), "it has the taints %+v", n.Spec.Taints) })
		if p.robot().IsOn() {
			s.Error("it is out of service while its host is on")
		}
		s.until("it says so", func() error {
			s.get(r)
			return is(conditionOf(r.Status.Conditions, "Fenced").Status == metav1.ConditionTrue, "it says %+v", r.Status)
		})
		p.later(r)
		s.until("its host is on again", func() error { return is(p.robot().IsOn(), "it is off") })
		if isOut() {
			s.Error("its host is on while it is out of service")
		}
		if err := s.c.Delete(ctx, r); err != nil { // healthy again
			s.Fatal(err)
		}
		s.until("the remediation is gone", func() error {
			err := s.c.Get(ctx, client.ObjectKeyFromObject(r), r)
			return is(apierrors.IsNotFound(err), "it is there: %v", err)
		})
	}},
	{name: "remediation: paused does nothing", hosts: 1, run: func(s *stage) {
		p := s.whole("m", nil)
		was := p.robot().Counts()
		s.pause(true)
		p.untilIs(metalv1.Paused, metav1.ConditionTrue, "")
		r := p.remedy(infrav1.StepPowerCycle)
		s.until("it is paused", func() error {
			s.get(r)
			return is(conditionOf(r.Status.Conditions, metalv1.Paused).Status == metav1.ConditionTrue, "it is %+v", r.Status)
		})
		if p.robot().Counts() != was || r.Status.Step != "" {
			s.Errorf("something was done: %+v", r.Status)
		}
	}},
}
