package standalone

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/controllers"
	"slipway.dev/slipway/kubernetes/node"
	"slipway.dev/slipway/kubernetes/translate"
	"slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/machineconfig"
)

// bootstrap checks what must exist before the machine boots: Secrets, bootstrap data, and its turn to join. Then it
// acknowledges the hook PreBoot. If the process dies before the acknowledgement, the machine waits, and the next
// Reconcile repeats the checks.
func (r *machines) bootstrap(ctx context.Context, p *pass) error {
	b := &p.facts.Bootstrap
	if !needsHold(p.mm) || p.facts.Invalid != nil {
		return nil
	}
	b.IsWanted = true
	if isWritten(p) && !r.boots.IsAsked(client.ObjectKeyFromObject(p.mm)) {
		b.IsReady = true
		return nil
	}
	// The order is fixed. What can be refused for good comes before the turn, which others wait for.
	for _, step := range []func(context.Context, *pass) error{r.seal, r.give, r.turn} {
		if b.Reason != "" {
			return nil
		}
		if err := step(ctx, p); err != nil {
			return err
		}
	}
	if b.Reason != "" || p.view == nil || p.view.Machine.HostID == "" {
		return nil
	}
	b.IsReady = true
	if !translate.IsHeld(&p.view.Machine) {
		return nil
	}
	// From here on the machine boots, and nothing above can be taken back.
	if _, err := r.env.Appliance.AckHook(ctx, p.view.Machine.Name, inventory.PreBoot, translate.HoldOwner); err != nil {
		return fmt.Errorf("let %s boot: %w", p.view.Machine.Name, err)
	}
	return r.look(ctx, p)
}

// give hands the bootstrap data to the inventory. First it has the data checked only; when the host boots and asks,
// it hands them over. The data hold a join token, so the inventory has them in memory only, until the machine has
// fetched its configuration.
func (r *machines) give(ctx context.Context, p *pass) error {
	if p.mm.Spec.Bootstrap == nil || p.mm.Spec.Bootstrap.DataSecretName == "" {
		return nil
	}
	name := p.mm.Spec.Bootstrap.DataSecretName
	key := types.NamespacedName{Namespace: p.mm.Namespace, Name: name}
	version, err := secretVersion(ctx, r.client, r.env.Reach, key)
	if inventory.IsKind(err, inventory.Forbidden) {
		p.again = unreachableAgain
		p.wait(v1alpha1.ReasonWaitingForBootstrapData, "Secret %s: %s", name, controllers.Explain(err))
		return nil
	}
	if err != nil {
		return err
	}
	if version == "" {
		p.wait(v1alpha1.ReasonWaitingForBootstrapData, "there is no Secret %s", name)
		return nil
	}
	if p.view == nil {
		return nil
	}
	object, owner := client.ObjectKeyFromObject(p.mm), p.owner.String()
	isAsked := r.boots.IsAsked(object)
	// A check costs a read of the Secret. It is repeated only for a new version, or when the host asks.
	if !isAsked && r.boots.HasPassed(object, owner, version) {
		return nil
	}
	value, s, err := readSecret(ctx, r.client, key, "value")
	if err != nil {
		return err
	}
	if s == nil || len(value) == 0 {
		p.wait(v1alpha1.ReasonWaitingForBootstrapData, "Secret %s has no key value", name)
		return nil
	}
	// The data live in this call only. No field of the controller and no log has them.
	data := contract.Bootstrap{Value: value, Format: strings.TrimSpace(string(s.Data["format"]))}
	err = r.env.Appliance.GiveBootstrap(ctx, p.view.Machine.Name, data, !isAsked)
	if reason := contract.BootstrapReason(err); reason != "" {
		p.wait(reason, "Secret %s: %s", name, controllers.Explain(err))
		// The boot has its refusal. Without this, each pass would hand over the same data again.
		r.boots.Answered(object)
		return nil
	}
	if err != nil {
		return fmt.Errorf("hand over the bootstrap data of %s: %w", p.view.Machine.Name, err)
	}
	r.boots.Pass(object, owner, version)
	if isAsked {
		r.boots.Answered(object)
	}
	return nil
}

// turn waits until the machine may join its cluster, and writes the role of a control plane into its configuration.
// The inventory has the lock that decides; see turns.
func (r *machines) turn(ctx context.Context, p *pass) error {
	if p.target == nil || p.view == nil || p.view.Machine.HostID == "" || !translate.IsHeld(&p.view.Machine) {
		return nil
	}
	if err := r.turns.start(ctx); err != nil {
		return err
	}
	t := p.target
	rules := node.TurnRules{
		Workers: int(t.Spec.WorkerJoinParallelism), IsInit: translate.IsInit(t), IsInitialized: isTrue(t, v1alpha1.ControlPlaneInitialized),
	}
	if translate.CanLookInto(t) && !isTrue(t, v1alpha1.Reachable) && (!rules.IsInit || rules.IsInitialized) {
		message := "Slipway has not asked it yet"
		if c := apimeta.FindStatusCondition(t.Status.Conditions, v1alpha1.Reachable); c != nil && c.Message != "" {
			message = c.Message
		}
		p.wait(v1alpha1.ReasonTokenMintFailed, "JoinTarget %s cannot be reached, so that no token can be made: %s", t.Name, message)
		// If it had its turn, it gives the turn back: others can join while this machine cannot.
		r.turns.note(p.owner.String(), p.slot(node.StageWaiting))
		return nil
	}
	// Before take: a machine that has its turn keeps the others waiting, so that it must be able to go.
	if wait, err := r.quorum(ctx, p); err != nil || wait != "" {
		p.wait(v1alpha1.ReasonWaitingForTurn, "%s", wait)
		p.facts.Waits, p.again = wait, unreachableAgain
		return err
	}
	verdict := r.turns.take(p.owner.String(), p.slot(node.StageReady), rules)
	if verdict.Wait != "" {
		reason := v1alpha1.ReasonWaitingForTurn
		if verdict.IsInitMissing {
			reason = v1alpha1.ReasonWaitingForControlPlaneInit
		}
		p.wait(reason, "%s", verdict.Wait)
		p.facts.Waits = verdict.Wait
		return nil
	}
	role := machineconfig.Role("")
	if verdict.IsFirst {
		role = machineconfig.Init
	} else if translate.IsControlPlane(p.mm) {
		role = machineconfig.ControlPlane
	}
	if role == "" {
		return nil
	}
	m := p.view.Machine
	marks, config := splitMarks(m.Config)
	config, err := translate.WithRole(config, role)
	if err != nil {
		return fmt.Errorf("write the role of %s: %w", m.Name, err)
	}
	// The role is stored before the hook is acknowledged. So no machine boots with another role than its turn gave it.
	if m.Config == withMarks(config, marks) {
		return nil
	}
	m.Config = withMarks(config, marks)
	if _, err := r.env.Appliance.UpdateMachine(ctx, m); err != nil {
		return fmt.Errorf("write the role of %s: %w", m.Name, err)
	}
	return r.look(ctx, p)
}

// quorum returns why no other control plane may join, or "". A join while a member of etcd is down can cost the
// quorum. A cluster that does not answer is a reason to wait, and no error.
func (r *machines) quorum(ctx context.Context, p *pass) (wait string, err error) {
	if !translate.IsControlPlane(p.mm) || !translate.CanLookInto(p.target) || !isTrue(p.target, v1alpha1.ControlPlaneInitialized) {
		return "", nil
	}
	cluster, err := clusterOf(ctx, r.client, r.env.Reach, r.nodes, p.target)
	if err != nil {
		return "", err
	}
	plane, err := cluster.ControlPlane(ctx)
	if err != nil {
		return "the cluster does not answer how its etcd is: " + controllers.Explain(err), nil
	}
	if plane.Healthy < plane.Members {
		return fmt.Sprintf("%d of %d members of etcd are well: another control plane joins when all are", plane.Healthy, plane.Members), nil
	}
	return "", nil
}

// seed returns how far all machines of join targets are. It runs once after the start, before the first turn.
func (r *machines) seed(ctx context.Context) (map[string]slot, error) {
	views, err := r.env.Appliance.ListMachines(ctx, r.env.ClusterUID+"/")
	if err != nil {
		return nil, fmt.Errorf("list machines of the cluster: %w", err)
	}
	all := map[string]slot{}
	for i := range views {
		m := &views[i].Machine
		key, ok := r.env.ObjectOf(m.Owner, v1alpha1.KindMetalMachine)
		var mm v1alpha1.MetalMachine
		if !ok || r.client.Get(ctx, key, &mm) != nil || !translate.IsNode(&mm) || r.ownerOf(&mm).String() != m.Owner {
			continue
		}
		// What is not known to wait or to be done counts as joining: rather too few machines join at a time than too many.
		_, config := splitMarks(m.Config)
		s := slot{
			key: key, target: mm.Namespace + "/" + mm.Spec.Bootstrap.Join.TargetRef.Name, isPlane: translate.IsControlPlane(&mm),
			isFirst: translate.RoleOf(config) == machineconfig.Init, stage: node.StageJoining, createdAt: mm.CreationTimestamp.Time,
		}
		switch {
		case translate.IsHeld(m):
			s.stage = node.StageWaiting
		case apimeta.IsStatusConditionTrue(mm.Status.Conditions, v1alpha1.NodeJoined) || apimeta.IsStatusConditionTrue(mm.Status.Conditions, v1alpha1.Ready):
			s.stage = node.StageDone
		}
		all[m.Owner] = s
	}
	return all, nil
}

// noteTurn records how far the machine is, and so wakes machines that wait for it.
func (r *machines) noteTurn(p *pass) {
	if p.target == nil || p.view == nil || p.facts.IsDeleting {
		return
	}
	s := node.StageJoining
	switch {
	case p.view.Machine.HostID == "" || translate.IsHeld(&p.view.Machine):
		s = node.StageWaiting
	// A late machine does not keep the others waiting any longer. Where nobody can look into the cluster, the first sign of
	// life counts.
	case p.facts.Node.IsJoined || p.facts.Node.IsLate, !p.facts.Node.IsWanted && p.view.IsUp:
		s = node.StageDone
	}
	slot := p.slot(s)
	_, config := splitMarks(p.view.Machine.Config)
	slot.isFirst = translate.RoleOf(config) == machineconfig.Init
	r.turns.note(p.owner.String(), slot)
}

// joinWithin is how long a machine may take from its configuration to its node. Then it counts as late, and the next
// machine may join.
const joinWithin = 20 * time.Minute

// observe looks for the node of the machine in its cluster, and sets labels, annotations and taints on it. A cluster
// that does not answer changes nothing: the last known state stays.
func (r *machines) observe(ctx context.Context, p *pass) error {
	n := &p.facts.Node
	if p.target == nil || !n.IsWanted || p.view == nil || p.view.Claim == nil || p.facts.Invalid != nil {
		return nil
	}
	wasJoined := p.mm.Status.NodeRef != nil
	// Before its configuration is on disk the machine has no node. Its cluster need not be asked.
	if !isWritten(p) && !wasJoined {
		return nil
	}
	was := func(kind string) bool { return apimeta.IsStatusConditionTrue(p.mm.Status.Conditions, kind) }
	cluster, err := clusterOf(ctx, r.client, r.env.Reach, r.nodes, p.target)
	if err != nil {
		n.IsJoined, n.Reason, n.Message = wasJoined, v1alpha1.ReasonWorkloadClusterUnreachable, controllers.Explain(err)
		return nil
	}
	o, err := cluster.Observe(ctx, node.IdentityOf(p.view), wantedOn(p))
	if !o.IsKnown {
		// The nodes are not read yet, for example after a restart. Conditions must not turn false for that.
		n.IsJoined, n.IsHealthy, n.Reason, n.Message = was(v1alpha1.NodeJoined), was(v1alpha1.NodeHealthy), o.Reason, o.Message
		return err
	}
	p.node = &o
	n.IsJoined, n.IsHealthy, n.Reason, n.Message = o.Found, o.IsReady, o.Reason, o.Message
	if o.Reason == v1alpha1.ReasonWorkloadClusterUnreachable {
		// A node that has joined stays joined while its cluster does not answer.
		n.IsJoined = o.Found || wasJoined
	}
	if !n.IsJoined {
		r.lateness(p)
	}
	if len(o.Refused) > 0 {
		r.once(p, "refused", strings.Join(o.Refused, ", "), func() {
			r.tellf(p.mm, corev1.EventTypeWarning, "NotOurs", "on node %s others have given another value to: %s", o.Name, strings.Join(o.Refused, ", "))
		})
	}
	return err
}

// lateness marks the machine as late when its node should exist by now, and else sets the time of the next look.
func (r *machines) lateness(p *pass) {
	c := apimeta.FindStatusCondition(p.mm.Status.Conditions, v1alpha1.ConfigDelivered)
	if c == nil || c.Status != metav1.ConditionTrue {
		return
	}
	if left := joinWithin - r.now().Sub(c.LastTransitionTime.Time); left > 0 {
		// No event comes when a time is over. The second covers times that are cut to whole seconds.
		p.again = left + time.Second
		return
	}
	p.facts.Node.IsLate = true
}

// wantedOn returns what the node must carry: the labels of the object, and the place of the machine.
func wantedOn(p *pass) node.Wanted {
	s := &p.mm.Spec.Node
	w := node.Wanted{Labels: map[string]string{}, Annotations: s.Annotations}
	for k, v := range s.Labels {
		w.Labels[k] = v
	}
	w.Labels[v1alpha1.LabelMachine] = p.view.Machine.Name
	pool := cmp.Or(p.view.Machine.Pool, inventory.DefaultPool)
	w.Labels[v1alpha1.LabelPool] = pool
	if h := p.view.Host; h != nil {
		w.Labels[v1alpha1.LabelHost] = h.Name
		if d := h.Place.Domain(); d != "" && inventory.CheckLabels(map[string]string{v1alpha1.LabelFailureDomain: d}) == nil {
			w.Labels[v1alpha1.LabelFailureDomain] = d
		}
	}
	for _, t := range s.Taints {
		w.Taints = append(w.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	return w
}
