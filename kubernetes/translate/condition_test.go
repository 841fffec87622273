package translate

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// view is a machine in the middle of its installation, changed.
func view(change ...func(*contract.View)) *contract.View {
	h := &inventory.Host{ID: "h1", Name: "node-1", State: inventory.Installing, Place: inventory.Place{Rack: "r1"}}
	v := &contract.View{
		Machine:   inventory.Machine{Name: "team-web", Hostname: "web", HostID: "h1", ClaimID: "c1", Phase: inventory.MachineProvisioning},
		Host:      h,
		Claim:     &inventory.Claim{ID: "c1"},
		Operation: &inventory.Operation{Kind: inventory.OpInstall, Step: inventory.StepPower, State: inventory.OpRunning, AttemptN: 1},
		Addresses: []string{"10.0.0.7"},
	}
	for _, c := range change {
		c(v)
	}
	return v
}

func at(step inventory.Step, change ...func(*inventory.Operation)) func(*contract.View) {
	return func(v *contract.View) {
		v.Operation.Step = step
		for _, c := range change {
			c(v.Operation)
		}
	}
}

func again(reason string) func(*inventory.Operation) {
	return func(o *inventory.Operation) { o.AttemptN, o.Reason = 2, reason }
}

func unclaimed(v *contract.View) {
	v.Host, v.Claim, v.Operation, v.Addresses = nil, nil, nil, nil
	v.Machine.HostID, v.Machine.ClaimID, v.Machine.Phase = "", "", inventory.MachinePending
}

func unseen(v *contract.View) { v.Delivered, v.IsUnseen = true, true }

func running(v *contract.View) {
	v.Operation, v.Delivered, v.IsUp = nil, true, true
	v.Host.State, v.Machine.Phase = inventory.Active, inventory.MachineRunning
}

func releasing(step inventory.Step) func(*contract.View) {
	return func(v *contract.View) {
		v.Operation.Kind, v.Operation.Step, v.Delivered = inventory.OpRelease, step, true
		v.Host.State, v.Machine.Phase = inventory.Releasing, inventory.MachineDeleting
		v.Machine.Drain.Target, v.Machine.DeletedAt = "lab", time.Unix(1, 0)
	}
}

func failed(reason string) func(*contract.View) {
	return func(v *contract.View) {
		v.Machine.Phase, v.Machine.Reason, v.Machine.Hint = inventory.MachineFailed, reason, "look"
	}
}

// cases has every reason of the conditions of a MetalMachine.
var cases = []struct {
	about   string
	facts   Facts
	kind    string
	status  metav1.ConditionStatus
	reason  string
	message string // part of it
	phase   v1alpha1.MachinePhase
}{
	{"nothing is asked for yet", Facts{}, v1alpha1.HostClaimed, "False", "WaitingForHost", "", "Pending"},
	{
		"nothing is asked for before its join target is there",
		Facts{Bootstrap: BootstrapFacts{IsWanted: true, Reason: "WaitingForBootstrapData", Message: "there is no JoinTarget lab"}},
		v1alpha1.Ready, "False", "WaitingForBootstrapData", "there is no JoinTarget lab", "Pending",
	},
	{
		"it is looked for",
		Facts{View: view(unclaimed, func(v *contract.View) { v.Machine.Reason = "waits for a host" })},
		v1alpha1.HostClaimed, "False", "WaitingForHost", "waits for a host", "Claiming",
	},
	{
		"there is no host, with causes sorted by number and name",
		Facts{View: view(unclaimed, func(v *contract.View) {
			v.Code = "InsufficientResources"
			v.Rejected = []contract.Rejection{{Cause: "b", N: 1}, {Cause: "a", N: 1}, {Cause: "is too small", N: 3}}
		})},
		v1alpha1.HostClaimed, "False", "InsufficientResources", "no host: 3 × is too small, 1 × a, 1 × b", "Claiming",
	},
	{
		"hosts stand elsewhere",
		Facts{View: view(unclaimed, func(v *contract.View) { v.Code = "NoMatchInFailureDomain" })},
		v1alpha1.HostClaimed, "False", "NoMatchInFailureDomain", "", "Claiming",
	},
	{
		"no host will ever do",
		Facts{View: view(unclaimed, func(v *contract.View) {
			v.Code, v.Machine.Reason, v.Machine.Hint = "NoMatchingHost", "no host of the inventory meets it, free or in use: 3 hosts fail only memory: 64 GiB asked, 32 GiB at most", "add one"
		})},
		v1alpha1.HostClaimed, "False", "NoMatchingHost", "3 hosts fail only memory: 64 GiB asked, 32 GiB at most (add one)", "Claiming",
	},
	{
		"its controller is silent while it is switched on",
		Facts{View: view(func(v *contract.View) {
			v.Operation.Reason, v.Operation.Hint = "the controller of node-1 does not answer: no route to host", "mend it"
		})},
		v1alpha1.OSInstalled, "False", "WaitingForPower", "the controller of node-1 does not answer: no route to host (mend it)", "Provisioning",
	},
	{"a dead controller blocks its end", Facts{IsDeleting: true, View: view(releasing(inventory.StepFence), func(v *contract.View) {
		v.Operation.Reason, v.Operation.Hint = "the controller of node-1 does not answer", "mend it"
	})}, v1alpha1.Ready, "False", "Deleting", "the machine is being deleted; fence: the controller of node-1 does not answer (mend it)", "Deleting"},
	{
		"the host it names is not to be had",
		Facts{View: view(unclaimed, func(v *contract.View) {
			v.Machine.Placement.Host, v.Machine.Reason = "h9", "host h9 is active for machine x"
		})},
		v1alpha1.HostClaimed, "False", "PinnedHostUnavailable", "host h9 is active for machine x", "Claiming",
	},
	{
		"the claim it names is gone",
		Facts{NoHostReason: v1alpha1.ReasonHostMissing, NoHost: "claim c is gone"},
		v1alpha1.HostClaimed, "False", "HostMissing", "claim c is gone", "Pending",
	},
	{"it has a host", Facts{View: view()}, v1alpha1.HostClaimed, "True", "Claimed", "node-1", "Provisioning"},
	{
		"its data are not there",
		Facts{View: view(at(inventory.StepPreBoot)), Bootstrap: BootstrapFacts{IsWanted: true, Reason: "WaitingForBootstrapData", Message: "there is no Secret x"}},
		v1alpha1.BootstrapDataAvailable, "False", "WaitingForBootstrapData", "Secret x", "WaitingForBootstrapData",
	},
	{
		"the control plane is not there",
		Facts{View: view(at(inventory.StepPreBoot)), Bootstrap: BootstrapFacts{IsWanted: true, Reason: "WaitingForControlPlaneInit"}},
		v1alpha1.OSInstalled, "False", "WaitingForControlPlaneInit", "", "WaitingForBootstrapData",
	},
	{
		"no token can be made",
		Facts{View: view(at(inventory.StepPreBoot)), Bootstrap: BootstrapFacts{IsWanted: true, Reason: "TokenMintFailed"}},
		v1alpha1.BootstrapDataAvailable, "False", "TokenMintFailed", "", "WaitingForBootstrapData",
	},
	{
		"others come first",
		Facts{View: view(at(inventory.StepPreBoot)), Waits: "20 workers join at a time", Bootstrap: BootstrapFacts{IsWanted: true, Reason: "WaitingForTurn"}},
		v1alpha1.OSInstalled, "False", "WaitingForTurn", "20 workers join at a time", "WaitingForBootstrapData",
	},
	{
		"its data are in a format nobody reads",
		Facts{View: view(at(inventory.StepPreBoot)), Bootstrap: BootstrapFacts{IsWanted: true, Reason: "UnsupportedFormat", Message: "talos"}},
		v1alpha1.Stalled, "True", "InvalidConfiguration", "talos", "Failed",
	},
	{
		"its data say what nobody can do",
		Facts{View: view(at(inventory.StepPreBoot)), Bootstrap: BootstrapFacts{IsWanted: true, Reason: "UnsupportedDirective"}},
		v1alpha1.BootstrapDataAvailable, "False", "UnsupportedDirective", "", "Failed",
	},
	{"its data are there", Facts{View: view(), Bootstrap: BootstrapFacts{IsWanted: true, IsReady: true}}, v1alpha1.BootstrapDataAvailable, "True", "Available", "", "Provisioning"},
	{"the pool allows no more", Facts{View: view(at(inventory.StepBudget))}, v1alpha1.OSInstalled, "False", "WaitingForBudget", "", "Provisioning"},
	{
		"a hook blocks it",
		Facts{View: view(at(inventory.StepPreBoot, func(o *inventory.Operation) { o.Reason = "hook pre-boot of dns" }))},
		v1alpha1.OSInstalled, "False", "WaitingForHook", "hook pre-boot of dns", "Provisioning",
	},
	{"it is switched on", Facts{View: view()}, v1alpha1.OSInstalled, "False", "WaitingForPower", "node-1", "Provisioning"},
	{
		"a person has to switch it on",
		Facts{View: view(at(inventory.StepPower, func(o *inventory.Operation) { o.State, o.Reason = inventory.OpWaiting, "switch node-1 on" }))},
		v1alpha1.OSInstalled, "False", "WaitingForPower", "switch node-1 on", "Provisioning",
	},
	{"it boots", Facts{View: view(at(inventory.StepNetboot))}, v1alpha1.OSInstalled, "False", "WaitingForPXE", "", "Provisioning"},
	{"it does not boot", Facts{View: view(at(inventory.StepNetboot, again("no DHCP")))}, v1alpha1.OSInstalled, "False", "BootTimeout", "no DHCP", "Provisioning"},
	{
		"it may not fetch", Facts{
			View: view(at(inventory.StepWrite), func(v *contract.View) {
				v.Issues = []inventory.Issue{{Type: inventory.IssueManual, Cause: "else"}, {Type: inventory.IssueSecretRefused, Cause: "its configuration is sealed", Hint: "look"}}
			}),
		}, v1alpha1.OSInstalled, "False", "Downloading", "secret-refused: its configuration is sealed (look)", "Provisioning",
	},
	{"it fetches", Facts{View: view(at(inventory.StepWrite))}, v1alpha1.OSInstalled, "False", "Downloading", "", "Provisioning"},
	{
		"it writes",
		Facts{View: view(at(inventory.StepWrite, func(o *inventory.Operation) { o.Progress.Bytes = 5 }))},
		v1alpha1.OSInstalled, "False", "Writing", "", "Provisioning",
	},
	{"writing failed", Facts{View: view(at(inventory.StepWrite, again("disk full")))}, v1alpha1.OSInstalled, "False", "InstallFailed", "disk full", "Provisioning"},
	{"it boots what was written", Facts{View: view(at(inventory.StepFirstBoot))}, v1alpha1.OSInstalled, "True", "Installed", "", "Booting"},
	{"and has not its configuration", Facts{View: view(at(inventory.StepFirstBoot))}, v1alpha1.ConfigDelivered, "False", "WaitingForFirstBoot", "", "Booting"},
	{"and does not come up", Facts{View: view(at(inventory.StepFirstBoot, again("silent")))}, v1alpha1.ConfigDelivered, "False", "BootTimeout", "silent", "Booting"},
	{"it was written, and its first boot has not happened", Facts{View: view(at(inventory.StepFirstBoot), unseen)}, v1alpha1.ConfigDelivered, "False", "WaitingForFirstBoot", "not reported up", "Booting"},
	{"nor is it ready then", Facts{View: view(at(inventory.StepFirstBoot), unseen)}, v1alpha1.Ready, "False", "WaitingForFirstBoot", "", "Booting"},
	{"its node is a sign of life", Facts{View: view(at(inventory.StepFirstBoot), unseen), Node: NodeFacts{IsWanted: true, IsJoined: true, IsHealthy: true}}, v1alpha1.ConfigDelivered, "True", "Delivered", "", "Running"},
	{"what reports nothing has not been seen", Facts{View: view(running, unseen)}, v1alpha1.ConfigDelivered, "Unknown", "WaitingForFirstBoot", "neither", "Booting"},
	{"and nobody says that it is ready", Facts{View: view(running, unseen)}, v1alpha1.Ready, "Unknown", "WaitingForFirstBoot", "", "Booting"},
	{"though it is installed", Facts{View: view(running, unseen)}, v1alpha1.OSInstalled, "True", "Installed", "", "Booting"},
	{"it runs", Facts{View: view(running)}, v1alpha1.ConfigDelivered, "True", "Delivered", "", "Running"},
	{"it is taken down to be installed anew", Facts{View: view(func(v *contract.View) {
		v.Operation.Kind, v.Operation.Step = inventory.OpReinstall, inventory.StepDrain
	})}, v1alpha1.OSInstalled, "False", "Reprovisioning", "", "Provisioning"},
	{"all is well", Facts{View: view(running)}, v1alpha1.Ready, "True", "Ready", "", "Running"},
	{
		"its node is not there",
		Facts{View: view(running), Node: NodeFacts{IsWanted: true}},
		v1alpha1.NodeJoined, "False", "WaitingForNode", "provider id", "Joining",
	},
	{
		"its node is another machine's",
		Facts{View: view(running), Node: NodeFacts{IsWanted: true, Reason: "NodeProviderIDMismatch", Message: "a, b"}},
		v1alpha1.NodeJoined, "False", "NodeProviderIDMismatch", "a, b", "Joining",
	},
	{
		"it could not join",
		Facts{View: view(running), Node: NodeFacts{IsWanted: true, Reason: "JoinFailed"}},
		v1alpha1.NodeJoined, "False", "JoinFailed", "", "Joining",
	},
	{
		"its system reported that it failed",
		Facts{View: view(running, func(v *contract.View) {
			v.Session = &inventory.BootSession{Outcome: inventory.OutcomeFailed}
		}), Node: NodeFacts{IsWanted: true, Reason: "WaitingForNode"}},
		v1alpha1.NodeJoined, "False", "JoinFailed", "node-1", "Joining",
	},
	{
		"its cluster does not answer",
		Facts{View: view(running), Node: NodeFacts{IsWanted: true, Reason: "WorkloadClusterUnreachable"}},
		v1alpha1.NodeJoined, "Unknown", "WorkloadClusterUnreachable", "", "Unknown",
	},
	{
		"its cluster does not answer any more",
		Facts{View: view(running), Node: NodeFacts{IsWanted: true, IsJoined: true, Reason: "WorkloadClusterUnreachable"}},
		v1alpha1.NodeHealthy, "Unknown", "WorkloadClusterUnreachable", "", "Running",
	},
	{
		"its node is not well",
		Facts{View: view(running), Node: NodeFacts{IsWanted: true, IsJoined: true, Reason: "NodeNotReady", Message: "no CNI"}},
		v1alpha1.NodeHealthy, "False", "NodeNotReady", "no CNI", "Running",
	},
	{
		"its node is well",
		Facts{View: view(running), Node: NodeFacts{IsWanted: true, IsJoined: true, IsHealthy: true}},
		v1alpha1.NodeHealthy, "True", "NodeReady", "", "Running",
	},
	{
		"its node never came",
		Facts{View: view(running), Node: NodeFacts{IsWanted: true, IsLate: true}},
		v1alpha1.Stalled, "True", "JoinTimeout", "", "Failed",
	},
	{"it is drained", Facts{IsDeleting: true, Node: NodeFacts{IsWanted: true}, View: view(releasing(inventory.StepDrain), func(v *contract.View) {
		v.Drain = &inventory.DrainState{Reason: "Draining", Detail: "3 pods are left"}
	})}, v1alpha1.Drained, "False", "Draining", "3 pods", "Draining"},
	{"a budget blocks the drain", Facts{IsDeleting: true, Node: NodeFacts{IsWanted: true}, View: view(releasing(inventory.StepDrain), func(v *contract.View) {
		v.Drain = &inventory.DrainState{Reason: "BlockedByPDB", BlockedBy: []string{"db/pdb"}}
	})}, v1alpha1.Drained, "False", "BlockedByPDB", "db/pdb", "Draining"},
	{"the drain takes too long", Facts{IsDeleting: true, Node: NodeFacts{IsWanted: true}, View: view(releasing(inventory.StepDrain), func(v *contract.View) {
		v.Drain = &inventory.DrainState{Reason: "DrainTimeout"}
	})}, v1alpha1.Drained, "False", "DrainTimeout", "", "Draining"},
	{"it is empty", Facts{IsDeleting: true, Node: NodeFacts{IsWanted: true}, View: view(releasing(inventory.StepFence))}, v1alpha1.Drained, "True", "Drained", "", "Deleting"},
	{"it is not to be drained", Facts{IsDeleting: true, Node: NodeFacts{IsWanted: true}, View: view(releasing(inventory.StepPreDrain), func(v *contract.View) {
		v.Machine.Drain.IsSkipped = true
	})}, v1alpha1.Drained, "True", "DrainSkipped", "", "Draining"},
	{"it goes", Facts{IsDeleting: true, View: view(releasing(inventory.StepWipe))}, v1alpha1.Ready, "False", "Deleting", "", "Deleting"},
	{"it is older than its spec", Facts{View: view(running), Changed: "os.profile"}, v1alpha1.UpToDate, "False", "SpecChanged", "os.profile", "Running"},
	{"and is ready all the same", Facts{View: view(running), Changed: "os.profile"}, v1alpha1.Ready, "True", "Ready", "", "Running"},
	{"it is as its spec says", Facts{View: view(running)}, v1alpha1.UpToDate, "True", "UpToDate", "", "Running"},
	{"nothing is wrong for good", Facts{View: view(running)}, v1alpha1.Stalled, "False", "NotStalled", "", "Running"},
	{"its spec is refused", Facts{Invalid: errors.New("no profile x")}, v1alpha1.Stalled, "True", "InvalidConfiguration", "no profile x", "Failed"},
	{"a change cannot be made", Facts{View: view(running), Unsupported: errors.New("spec.placement")}, v1alpha1.Stalled, "True", "UnsupportedChange", "spec.placement", "Running"},
	{"no host would have it", Facts{View: view(unclaimed, failed("failed on 3 hosts"))}, v1alpha1.Stalled, "True", "CreateError", "failed on 3 hosts (look)", "Failed"},
	{"no host would have it, told by its condition", Facts{View: view(unclaimed, failed("failed"))}, v1alpha1.OSInstalled, "False", "InstallFailed", "failed", "Failed"},
	{"installing it anew failed", Facts{View: view(func(v *contract.View) { v.Operation = nil }, failed("x"))}, v1alpha1.Stalled, "True", "UpdateError", "x", "Failed"},
	{"it cannot be wiped", Facts{IsDeleting: true, View: view(failed("disk"))}, v1alpha1.Stalled, "True", "DeleteError", "disk", "Deleting"},
	{"its host is protected", Facts{IsDeleting: true, View: view(running), Refused: "host node-1 is protected"}, v1alpha1.Stalled, "True", "DeleteError", "protected", "Deleting"},
}

func TestEveryReasonIsTold(t *testing.T) {
	for _, c := range cases {
		t.Run(c.about, func(t *testing.T) {
			told := StatusOf(c.facts)
			got := find(told.Conditions, c.kind)
			if got == nil {
				t.Fatalf("no condition %s among %v", c.kind, told.Conditions)
			}
			if got.Status != c.status || got.Reason != c.reason || !strings.Contains(got.Message, c.message) {
				t.Errorf("%s is %s/%s %q, want %s/%s %q", c.kind, got.Status, got.Reason, got.Message, c.status, c.reason, c.message)
			}
			if told.Phase != c.phase {
				t.Errorf("phase %s, want %s", told.Phase, c.phase)
			}
			if again := StatusOf(c.facts); !reflect.DeepEqual(told, again) {
				t.Errorf("it is told differently the second time: %+v and %+v", told, again)
			}
		})
	}
}

func TestAConditionOfAnApiServerIsAlwaysComplete(t *testing.T) {
	for _, c := range cases {
		for _, cond := range StatusOf(c.facts).Conditions {
			if cond.Reason == "" || cond.Status == "" || !slices.Contains(ours, cond.Type) {
				t.Errorf("%s: %+v", c.about, cond)
			}
		}
	}
}

func TestReadyHasTheFirstReasonThatFails(t *testing.T) {
	for about, c := range map[string]struct {
		facts  Facts
		reason string
	}{
		"no host":           {Facts{View: view(unclaimed)}, "WaitingForHost"},
		"no data":           {Facts{View: view(at(inventory.StepPreBoot)), Bootstrap: BootstrapFacts{IsWanted: true}}, "WaitingForBootstrapData"},
		"not installed":     {Facts{View: view(at(inventory.StepNetboot))}, "WaitingForPXE"},
		"no configuration":  {Facts{View: view(at(inventory.StepFirstBoot))}, "WaitingForFirstBoot"},
		"no node":           {Facts{View: view(running), Node: NodeFacts{IsWanted: true}}, "WaitingForNode"},
		"a terminal reason": {Facts{View: view(unclaimed), Invalid: errors.New("x")}, "InvalidConfiguration"},
	} {
		if got := find(StatusOf(c.facts).Conditions, v1alpha1.Ready); got.Status != "False" || got.Reason != c.reason {
			t.Errorf("%s: %s/%s", about, got.Status, got.Reason)
		}
	}
}

func TestProvisionedIsWhenTheInstalledSystemHasItsConfiguration(t *testing.T) {
	for about, c := range map[string]struct {
		v    *contract.View
		want bool
	}{
		"claimed":           {view(), false},
		"booting":           {view(at(inventory.StepFirstBoot)), false},
		"delivered":         {view(func(v *contract.View) { v.Delivered = true }), true},
		"written":           {view(at(inventory.StepFirstBoot), unseen), false},
		"silent":            {view(running, unseen), false},
		"up":                {view(running), true},
		"installed anew":    {view(func(v *contract.View) { v.Host.State = inventory.Active }), false},
		"without a host":    {view(unclaimed), false},
		"adopted, and runs": {view(running, func(v *contract.View) { v.Delivered, v.IsUp = false, false }), true},
	} {
		if got := StatusOf(Facts{View: c.v}).IsProvisioned; got != c.want {
			t.Errorf("%s: %v", about, got)
		}
	}
}

func TestAddressesAreTheHostNameAndWhatTheApplianceKnows(t *testing.T) {
	told := StatusOf(Facts{View: view(running)})
	want := []v1alpha1.Address{{Type: "Hostname", Address: "web"}, {Type: "InternalIP", Address: "10.0.0.7"}}
	if !reflect.DeepEqual(told.Addresses, want) || told.HostName != "node-1" || told.InventoryID != "h1" || told.FailureDomain != "r1" {
		t.Errorf("%+v", told)
	}
}

func TestMergeWritesOnlyWhatIsNew(t *testing.T) {
	now := time.Unix(1000, 5)
	first, isNew := MergeConditions(nil, StatusOf(Facts{View: view()}).Conditions, 1, now)
	if !isNew {
		t.Fatal("the first status is no news")
	}
	if _, isNew := MergeConditions(first, StatusOf(Facts{View: view()}).Conditions, 1, now.Add(time.Hour)); isNew {
		t.Error("the same again is news")
	}
	others := append(slices.Clone(first), metav1.Condition{Type: "Theirs", Status: "True", Reason: "X"})
	second, isNew := MergeConditions(others, StatusOf(Facts{View: view(running)}).Conditions, 1, now.Add(time.Hour))
	if !isNew || find(second, "Theirs") == nil {
		t.Errorf("news %v, conditions %v", isNew, second)
	}
	if c := find(second, v1alpha1.HostClaimed); !c.LastTransitionTime.Equal(&find(first, v1alpha1.HostClaimed).LastTransitionTime) {
		t.Error("what did not change has a new time")
	}
	if c := find(second, v1alpha1.Ready); c.LastTransitionTime.Time.Before(now.Add(time.Minute)) {
		t.Error("what changed has the old time")
	}
	if _, isNew := MergeConditions(second, StatusOf(Facts{View: view(running)}).Conditions, 2, now); !isNew {
		t.Error("a new generation is no news")
	}
}

func TestPauseWritesNothingElse(t *testing.T) {
	old, _ := MergeConditions(nil, StatusOf(Facts{View: view()}).Conditions, 1, time.Unix(1, 0))
	paused, isNew := Pause(old, true, "annotation x", 2, time.Unix(9, 0))
	if !isNew || find(paused, v1alpha1.Paused).Status != "True" {
		t.Fatalf("%v", paused)
	}
	for _, c := range old {
		if !reflect.DeepEqual(*find(paused, c.Type), c) {
			t.Errorf("%s changed", c.Type)
		}
	}
	if _, isNew := Pause(paused, true, "annotation x", 2, time.Unix(99, 0)); isNew {
		t.Error("the same pause again is news")
	}
}

func TestAMachineThatIsPausedAndDeletedIsNotReady(t *testing.T) {
	old, _ := MergeConditions(nil, StatusOf(Facts{View: view(running)}).Conditions, 1, time.Unix(1, 0))
	const by = "annotation x; remove it to go on"
	for about, was := range map[string][]metav1.Condition{"it ran": old, "nobody had looked at it": nil} {
		ended, isNew := PausedEnd(was, by, 2, time.Unix(9, 0))
		ready, paused := find(ended, v1alpha1.Ready), find(ended, v1alpha1.Paused)
		if !isNew || ready == nil || ready.Status != "False" || ready.Reason != "Deleting" || !strings.Contains(ready.Message, "waits to be deleted: "+by) {
			t.Errorf("%s: Ready is %+v", about, ready)
		}
		if paused == nil || paused.Status != "True" || !strings.Contains(paused.Message, by) || !ready.LastTransitionTime.Time.Equal(time.Unix(9, 0)) {
			t.Errorf("%s: %+v", about, ended)
		}
		if again, isNew := PausedEnd(ended, by, 2, time.Unix(99, 0)); isNew {
			t.Errorf("%s: the same again is news: %+v", about, again)
		}
	}
}
