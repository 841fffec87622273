package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// Reasons that are told besides those of package v1alpha1.
const (
	ReasonAvailable        = "Available"        // of BootstrapDataAvailable
	ReasonWaitingForBudget = "WaitingForBudget" // of its pool
	ReasonReprovisioning   = "Reprovisioning"   // the old system is taken down first
	ReasonDrainSkipped     = "DrainSkipped"

	ReasonInvalidBootstrapData = "InvalidBootstrapData" // they cannot be read
)

// Facts is what is known of a machine.
type Facts struct {
	View        *contract.View // nil: the appliance has no machine for it
	IsDeleting  bool
	Invalid     error // refused before anything was done
	Unsupported error // a change that cannot be made
	Bootstrap   BootstrapFacts
	Node        NodeFacts
	// Changed is what of the spec the installed system does not have, "" when it runs what the spec says.
	Changed string
	// Refused says why the machine cannot be deleted, "" when it can.
	Refused string
	// NoHost overrides why there is no host, with a reason; it does not count once there is one.
	NoHost, NoHostReason string
	// Waits says which others of its cluster come first, "" for none.
	Waits string
}

// BootstrapFacts is how far the bootstrap data are.
type BootstrapFacts struct {
	IsWanted bool
	IsReady  bool
	Reason   string // of §3.8, while not ready
	Message  string
}

// NodeFacts is what the workload cluster says.
type NodeFacts struct {
	IsWanted  bool // the machine becomes a node that we can look at
	IsJoined  bool
	IsHealthy bool
	Reason    string // why it has not joined, or is not healthy
	Message   string
	// IsLate says that it did not join within the time that is given.
	IsLate bool
}

// Status is what a status says.
type Status struct {
	Conditions     []metav1.Condition // without generations and times; see Merge
	Phase          v1alpha1.MachinePhase
	Addresses      []v1alpha1.Address
	FailureReason  v1alpha1.FailureReason // terminal only
	FailureMessage string
	HostName       string
	InventoryID    string
	FailureDomain  string
	IsProvisioned  bool // the installed system has fetched its configuration
}

type teller struct {
	f Facts
	v *contract.View // never nil
}

func yes(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

func no(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

func unknown(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: reason, Message: message}
}

func (t *teller) hostName() string {
	if t.v.Host == nil {
		return ""
	}
	return t.v.Host.Name
}

// claimed is the condition HostClaimed.
func (t *teller) claimed() metav1.Condition {
	const kind = v1alpha1.HostClaimed
	m := &t.v.Machine
	switch {
	case t.f.Invalid != nil && t.v.Claim == nil:
		return no(kind, v1alpha1.ReasonWaitingForHost, "Slipway looks for no host: it refuses the specification")
	case t.v.Claim != nil:
		return yes(kind, v1alpha1.ReasonClaimed, "host "+t.hostName())
	case t.f.NoHostReason != "":
		return no(kind, t.f.NoHostReason, t.f.NoHost)
	case t.f.View == nil && t.f.Bootstrap.IsWanted && !t.f.Bootstrap.IsReady && t.f.Bootstrap.Message != "": // so that Ready names it
		return no(kind, t.f.Bootstrap.Reason, "Slipway does not look for a host yet: "+t.f.Bootstrap.Message)
	case t.f.View == nil:
		return no(kind, v1alpha1.ReasonWaitingForHost, "Slipway does not look for a host yet")
	case m.Placement.Host != "":
		return no(kind, v1alpha1.ReasonPinnedHostUnavailable, whyNoHost(t.v))
	case t.v.Code != "":
		return no(kind, t.v.Code, whyNoHost(t.v))
	}
	return no(kind, v1alpha1.ReasonWaitingForHost, whyNoHost(t.v))
}

// whyNoHost sums up why there is no host: the causes with the number of hosts that each keeps out, the most frequent
// first, then by name.
func whyNoHost(v *contract.View) string {
	causes := slices.Clone(v.Rejected)
	slices.SortStableFunc(causes, func(a, b contract.Rejection) int {
		return cmp.Or(b.N-a.N, strings.Compare(a.Cause, b.Cause))
	})
	var parts []string
	for _, r := range causes {
		parts = append(parts, fmt.Sprintf("%d × %s", r.N, r.Cause))
	}
	if len(parts) == 0 {
		return sentence(cmp.Or(v.Machine.Reason, "waits for a host"), v.Machine.Hint)
	}
	return sentence("no host: "+strings.Join(parts, ", "), v.Machine.Hint)
}

// sentence joins what is with what to do about it.
func sentence(what, hint string) string {
	if hint == "" {
		return what
	}
	return what + " (" + hint + ")"
}

// data is the condition BootstrapDataAvailable.
func (t *teller) data() metav1.Condition {
	const kind = v1alpha1.BootstrapDataAvailable
	b := &t.f.Bootstrap
	switch {
	case t.isWritten():
		return yes(kind, ReasonAvailable, "delivered")
	case b.IsReady:
		return yes(kind, ReasonAvailable, b.Message)
	}
	return no(kind, cmp.Or(b.Reason, v1alpha1.ReasonWaitingForBootstrapData), b.Message)
}

// isInstalling reports whether the open operation brings an operating system onto the host.
func (t *teller) isInstalling() bool {
	op := t.v.Operation
	return op != nil && (op.Kind == inventory.OpInstall || op.Kind == inventory.OpReinstall)
}

// isWritten reports whether the system of this claim is installed with its configuration.
func (t *teller) isWritten() bool {
	if t.v.Claim == nil || t.v.Host == nil {
		return false
	}
	return t.v.Delivered || t.v.IsUp || t.v.Host.State == inventory.Active && !t.isInstalling()
}

// isDelivered reports whether the system of this claim has booted with its configuration: it gave a sign of life, or its
// node is there.
func (t *teller) isDelivered() bool {
	return t.isWritten() && (!t.v.IsUnseen || t.f.Node.IsJoined)
}

// isRetried reports whether a step is tried again because it took too long or failed.
func isRetried(op *inventory.Operation) bool { return op.AttemptN > 1 && op.Reason != "" }

// installed is the condition OSInstalled.
func (t *teller) installed() metav1.Condition {
	const kind = v1alpha1.OSInstalled
	v := t.v
	switch {
	case v.Claim == nil && v.Machine.Phase == inventory.MachineFailed:
		return no(kind, v1alpha1.ReasonInstallFailed, sentence(v.Machine.Reason, v.Machine.Hint))
	case v.Claim == nil:
		return no(kind, v1alpha1.ReasonWaitingForHost, "waits for a host")
	case t.isWritten():
		return yes(kind, v1alpha1.ReasonInstalled, "installed on "+t.hostName())
	case !t.isInstalling():
		if v.Machine.Phase == inventory.MachineFailed || v.Host != nil && v.Host.State == inventory.Failed {
			return no(kind, v1alpha1.ReasonInstallFailed, sentence(v.Machine.Reason, v.Machine.Hint))
		}
		return no(kind, v1alpha1.ReasonWaitingForPower, cmp.Or(v.Machine.Reason, "the installation has not begun"))
	}
	return t.step(v.Operation)
}

// step says what an installation is at.
func (t *teller) step(op *inventory.Operation) metav1.Condition {
	const kind = v1alpha1.OSInstalled
	host := t.hostName()
	reason, message := "", ""
	switch op.Step {
	case inventory.StepPreDrain, inventory.StepDrain, inventory.StepPreFence, inventory.StepFence, inventory.StepForget:
		reason, message = ReasonReprovisioning, "the old system of "+host+" is being taken down: "+string(op.Step)
		if op.State == inventory.OpWaiting {
			message = cmp.Or(op.Reason, message)
		}
		return no(kind, reason, message)
	case inventory.StepBudget:
		return no(kind, ReasonWaitingForBudget, cmp.Or(op.Reason, "waits for the budget of its pool"))
	case inventory.StepPreBoot:
		switch {
		case t.f.Waits != "":
			return no(kind, v1alpha1.ReasonWaitingForTurn, t.f.Waits)
		case t.f.Bootstrap.IsWanted && !t.f.Bootstrap.IsReady:
			return no(kind, cmp.Or(t.f.Bootstrap.Reason, v1alpha1.ReasonWaitingForBootstrapData), t.f.Bootstrap.Message)
		}
		return no(kind, v1alpha1.ReasonWaitingForHook, cmp.Or(op.Reason, "waits for a hook"))
	case inventory.StepPower:
		reason, message = v1alpha1.ReasonWaitingForPower, host+" is being switched on"
	case inventory.StepNetboot:
		reason, message = v1alpha1.ReasonWaitingForPXE, host+" is switched on; it has not booted from the network yet"
	case inventory.StepWrite:
		reason, message = v1alpha1.ReasonWriting, "the system is being written to "+host
		if op.Progress.Bytes == 0 {
			reason, message = v1alpha1.ReasonDownloading, host+" is fetching what it installs"
		}
	case inventory.StepReboot, inventory.StepFirstBoot, inventory.StepPostJoin:
		return yes(kind, v1alpha1.ReasonInstalled, "installed on "+host)
	default:
		reason, message = v1alpha1.ReasonDownloading, host+": "+string(op.Step)
	}
	switch {
	case op.State == inventory.OpWaiting: // for a person, as a rule
		message = sentence(cmp.Or(op.Reason, message), op.Hint)
	case isRetried(op) && (op.Step == inventory.StepPower || op.Step == inventory.StepNetboot):
		reason, message = v1alpha1.ReasonBootTimeout, "tried again: "+op.Reason
	case isRetried(op):
		reason, message = v1alpha1.ReasonInstallFailed, "tried again: "+op.Reason
	case op.Step == inventory.StepPower && op.Reason != "": // its controller does not answer
		message = sentence(op.Reason, op.Hint)
	default:
		message = cmp.Or(t.refused(), message)
	}
	return no(kind, reason, message)
}

// refused is what an open issue says keeps the host from getting what it installs, "" when none does.
func (t *teller) refused() string {
	for _, kind := range []string{inventory.IssueReplaced, inventory.IssueBootRefused, inventory.IssueSecretRefused, inventory.IssueBootLoop} {
		for _, i := range t.v.Issues {
			if i.Type == kind {
				return sentence(kind+": "+i.Cause, i.Hint)
			}
		}
	}
	return ""
}

// delivered is the condition ConfigDelivered.
func (t *teller) delivered() metav1.Condition {
	const kind = v1alpha1.ConfigDelivered
	switch {
	case t.isDelivered():
		return yes(kind, v1alpha1.ReasonDelivered, "the installed system has its configuration")
	case t.isInstalling() && isRetried(t.v.Operation) && t.v.Operation.Step == inventory.StepFirstBoot:
		return no(kind, v1alpha1.ReasonBootTimeout, "tried again: "+t.v.Operation.Reason)
	case t.isInstalling() && slices.Contains([]inventory.Step{inventory.StepReboot, inventory.StepFirstBoot}, t.v.Operation.Step):
		return no(kind, v1alpha1.ReasonWaitingForFirstBoot, "the installed system has not reported up yet")
	case t.isWritten():
		return unknown(kind, v1alpha1.ReasonWaitingForFirstBoot, "what was installed reports nothing by itself, and has neither booted by the network nor asked for an address since "+
			"(a profile with a configuration reports up)")
	}
	return no(kind, v1alpha1.ReasonWaitingForFirstBoot, "the system is not installed yet")
}

func (t *teller) joined() metav1.Condition {
	const kind = v1alpha1.NodeJoined
	n := &t.f.Node
	switch {
	case n.IsJoined:
		return yes(kind, v1alpha1.ReasonJoined, "")
	case t.f.View != nil && t.v.JoinFailure != "":
		return no(kind, v1alpha1.ReasonJoinFailed, "its installation is tried again: "+t.v.JoinFailure)
	case !t.isWritten():
		return no(kind, v1alpha1.ReasonWaitingForNode, "the machine is not installed yet")
	case n.Reason == v1alpha1.ReasonWorkloadClusterUnreachable:
		return unknown(kind, n.Reason, n.Message)
	}
	waits := n.Reason == "" || n.Reason == v1alpha1.ReasonWaitingForNode
	if s := t.v.Session; waits && s != nil && s.Outcome == inventory.OutcomeFailed {
		return no(kind, v1alpha1.ReasonJoinFailed, "the installed system reported that its first boot failed: see the events of host "+t.hostName())
	}
	return no(kind, cmp.Or(n.Reason, v1alpha1.ReasonWaitingForNode), cmp.Or(n.Message, "no node with our provider id yet"))
}

func (t *teller) healthy() metav1.Condition {
	const kind = v1alpha1.NodeHealthy
	n := &t.f.Node
	switch {
	case n.Reason == v1alpha1.ReasonWorkloadClusterUnreachable:
		return unknown(kind, n.Reason, n.Message)
	case !n.IsJoined:
		return unknown(kind, v1alpha1.ReasonWaitingForNode, "there is no node yet")
	case n.IsHealthy:
		return yes(kind, v1alpha1.ReasonNodeReady, "")
	}
	return no(kind, cmp.Or(n.Reason, v1alpha1.ReasonNodeNotReady), n.Message)
}

// drained is the condition Drained of a machine that goes.
func (t *teller) drained() metav1.Condition {
	const kind = v1alpha1.Drained
	op := t.v.Operation
	if d := t.v.Drain; d != nil {
		if d.IsDone {
			return yes(kind, v1alpha1.ReasonDrained, d.Detail)
		}
		return no(kind, cmp.Or(d.Reason, v1alpha1.ReasonDraining), drainText(d))
	}
	switch {
	case t.f.View == nil || t.v.Claim == nil:
		return yes(kind, v1alpha1.ReasonDrained, "there is nothing to drain")
	case t.v.Machine.Drain.Target == "" || t.v.Machine.Drain.IsSkipped || t.v.Machine.IsForced:
		return yes(kind, ReasonDrainSkipped, "the node is not drained")
	case op == nil || op.Kind != inventory.OpRelease:
		return no(kind, v1alpha1.ReasonDraining, "draining has not begun")
	case op.Step == inventory.StepBudget || op.Step == inventory.StepPreDrain || op.Step == inventory.StepDrain:
		return no(kind, v1alpha1.ReasonDraining, cmp.Or(op.Reason, "draining has not begun"))
	}
	return yes(kind, v1alpha1.ReasonDrained, "")
}

func drainText(d *inventory.DrainState) string {
	if len(d.BlockedBy) == 0 || strings.Contains(d.Detail, d.BlockedBy[0]) {
		return d.Detail
	}
	return strings.TrimPrefix(d.Detail+": "+strings.Join(d.BlockedBy, ", "), ": ")
}

func (t *teller) upToDate() metav1.Condition {
	const kind = v1alpha1.UpToDate
	if t.f.Changed != "" {
		return no(kind, v1alpha1.ReasonSpecChanged, t.f.Changed)
	}
	return yes(kind, v1alpha1.ReasonUpToDate, "")
}

// unusable are the reasons of bootstrap data that no machine boots with.
var unusable = []string{v1alpha1.ReasonUnsupportedFormat, v1alpha1.ReasonUnsupportedDirective, ReasonInvalidBootstrapData}

// failure is the terminal problem, recomputed each time. Nothing that goes away by itself is one.
func (t *teller) failure() (reason v1alpha1.FailureReason, message string) {
	m := &t.v.Machine
	switch {
	case t.f.Invalid != nil:
		return v1alpha1.FailureInvalidConfiguration, t.f.Invalid.Error()
	case slices.Contains(unusable, t.f.Bootstrap.Reason) && !t.isWritten():
		return v1alpha1.FailureInvalidConfiguration, t.f.Bootstrap.Message
	case t.f.View != nil && t.v.Code == string(v1alpha1.FailureInvalidConfiguration) && t.v.Claim == nil:
		return v1alpha1.FailureInvalidConfiguration, sentence(m.Reason, m.Hint)
	}
	if t.f.Unsupported != nil {
		return v1alpha1.FailureUnsupportedChange, t.f.Unsupported.Error()
	}
	if t.f.Refused != "" {
		return v1alpha1.FailureDeleteError, t.f.Refused
	}
	if t.f.View != nil && m.Phase == inventory.MachineFailed {
		switch {
		case t.f.IsDeleting || !m.DeletedAt.IsZero():
			return v1alpha1.FailureDeleteError, sentence(m.Reason, m.Hint)
		case m.HostID == "":
			return v1alpha1.FailureCreateError, sentence(m.Reason, m.Hint)
		}
		return v1alpha1.FailureUpdateError, sentence(m.Reason, m.Hint)
	}
	if t.f.Node.IsWanted && t.f.Node.IsLate && !t.f.Node.IsJoined {
		return v1alpha1.FailureJoinTimeout, cmp.Or(t.f.Node.Message, "its node has not appeared in time")
	}
	return "", ""
}

func (t *teller) stalled(told Status) metav1.Condition {
	const kind = v1alpha1.Stalled
	if told.FailureReason != "" {
		return yes(kind, string(told.FailureReason), told.FailureMessage)
	}
	return no(kind, v1alpha1.ReasonNotStalled, "")
}

// ready sums up: the terminal problem, the deletion, or else the first condition that does not hold. What the machine
// runs being older than its spec does not make it unready.
func (t *teller) ready(told Status, cs []metav1.Condition) metav1.Condition {
	const kind = v1alpha1.Ready
	if told.FailureReason != "" && told.FailureReason != v1alpha1.FailureUnsupportedChange {
		return no(kind, string(told.FailureReason), told.FailureMessage)
	}
	if t.f.IsDeleting {
		text := "the machine is being deleted"
		if op := t.v.Operation; op != nil && op.Kind == inventory.OpRelease && op.Reason != "" {
			text += "; " + string(op.Step) + ": " + sentence(op.Reason, op.Hint)
		}
		return no(kind, v1alpha1.ReasonDeleting, text)
	}
	for _, c := range cs {
		if c.Status != metav1.ConditionTrue {
			return metav1.Condition{Type: kind, Status: c.Status, Reason: c.Reason, Message: strings.TrimSuffix(c.Type+": "+c.Message, ": ")}
		}
	}
	return yes(kind, v1alpha1.ReasonReady, "")
}
