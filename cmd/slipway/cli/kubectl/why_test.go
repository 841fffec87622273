package kubectl

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slipway.dev/slipway/kubernetes/v1alpha1"
)

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

func TestAMachinesWaitIsSaidInOneLine(t *testing.T) {
	now := metav1.Now()
	for _, tc := range []struct {
		name     string
		deleting bool
		cs       []metav1.Condition
		text     string
		hint     string // part of it
	}{
		{"nobody has looked", false, nil, "no controller has read it yet", "slipway cluster list"},
		{"ready", false, []metav1.Condition{condition(v1alpha1.Ready, metav1.ConditionTrue, "Ready", ""), condition(v1alpha1.UpToDate, metav1.ConditionFalse, "SpecChanged", "x")}, "it is ready", ""},
		{
			"what Ready sums up is said by the condition that knows", false,
			[]metav1.Condition{condition(v1alpha1.HostClaimed, metav1.ConditionFalse, "WaitingForHost", "3 hosts: 2 cordoned, 1 claimed"), condition(v1alpha1.Ready, metav1.ConditionFalse, "WaitingForHost", "")},
			"it waits: WaitingForHost: 3 hosts: 2 cordoned, 1 claimed", "accept or add hosts",
		},
		{
			"a stall comes before what Ready says", false,
			[]metav1.Condition{condition(v1alpha1.Ready, metav1.ConditionFalse, "WaitingForHost", ""), condition(v1alpha1.Stalled, metav1.ConditionTrue, "InvalidConfiguration", "spec.os.profile: there is none")},
			"it is stuck until its spec, or what that names, changes: InvalidConfiguration: spec.os.profile: there is none", "",
		},
		{"a stall that is over is not said", false, []metav1.Condition{condition(v1alpha1.Stalled, metav1.ConditionFalse, "NotStalled", ""), condition(v1alpha1.Ready, metav1.ConditionTrue, "Ready", "")}, "it is ready", ""},
		{"a pause", false, []metav1.Condition{condition(v1alpha1.Paused, metav1.ConditionTrue, "Paused", "annotation x"), condition(v1alpha1.Ready, metav1.ConditionFalse, "Writing", "")}, "it is paused: Paused: annotation x", "take the annotation off"},
		{"a deletion that is held up", true, []metav1.Condition{condition(v1alpha1.Drained, metav1.ConditionFalse, "BlockedByPDB", "default/web"), condition(v1alpha1.Ready, metav1.ConditionFalse, "BlockedByPDB", "")}, "it is being deleted: BlockedByPDB: default/web", "PodDisruptionBudget"},
		{
			"a deletion that a dead controller blocks", true,
			[]metav1.Condition{condition(v1alpha1.Ready, metav1.ConditionFalse, "Deleting", "the machine is being deleted; fence: the controller of r1-u01 does not answer: no route to host (mend it)")},
			"the machine is being deleted; fence: the controller of r1-u01 does not answer: no route to host (mend it)", "",
		},
		{
			"a deletion that waits for the end of a pause", true,
			[]metav1.Condition{condition(v1alpha1.Ready, metav1.ConditionFalse, "Deleting", "x"), condition(v1alpha1.Paused, metav1.ConditionTrue, "Paused", "the machine is paused and waits to be deleted: annotation x; remove it to go on")},
			"it is paused: Paused: the machine is paused and waits to be deleted: annotation x; remove it to go on", "take the annotation off",
		},
		{
			"a request that no host will ever meet", false,
			[]metav1.Condition{condition(v1alpha1.HostClaimed, metav1.ConditionFalse, "NoMatchingHost", "no host of the inventory meets it, free or in use: 3 hosts fail only memory: 64 GiB asked, 32 GiB at most"), condition(v1alpha1.Ready, metav1.ConditionFalse, "NoMatchingHost", "")},
			"it waits: NoMatchingHost: no host of the inventory meets it, free or in use: 3 hosts fail only memory: 64 GiB asked, 32 GiB at most", "waiting does not help",
		},
		{"Ready alone", false, []metav1.Condition{condition(v1alpha1.Ready, metav1.ConditionUnknown, "WaitingForNode", "")}, "it waits: WaitingForNode", "kubelet"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			mm := &v1alpha1.MetalMachine{}
			if tc.deleting {
				mm.DeletionTimestamp = &now
			}
			text, hint := summary(mm, tc.cs)
			if text != tc.text || !strings.Contains(hint, tc.hint) || tc.hint == "" && hint != "" {
				t.Errorf("said %q, %q", text, hint)
			}
		})
	}
}

func TestAListSaysWhyAMachineWaits(t *testing.T) {
	for _, tc := range []struct {
		name  string
		cs    []metav1.Condition
		ready bool
		waits string
	}{
		{"no conditions", nil, false, "no controller has read it yet"},
		{"ready", []metav1.Condition{condition(v1alpha1.Ready, metav1.ConditionTrue, "Ready", "x")}, true, ""},
		{"not ready", []metav1.Condition{condition(v1alpha1.Ready, metav1.ConditionFalse, "Writing", "40 %")}, false, "Writing: 40 %"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if m := (Machine{}).told(tc.cs); m.IsReady != tc.ready || m.Waits != tc.waits {
				t.Errorf("%+v", m)
			}
		})
	}
}
