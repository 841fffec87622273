package clusterapi

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/controllers"
	infrav1 "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	"slipway.dev/slipway/kubernetes/translate"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
)

// clusters reconciles SlipwayClusters: failure domains, the endpoint of the API server, and whether the
// infrastructure is ready.
type clusters struct {
	*kit
	proxies *proxies
}

func setupClusters(mgr manager.Manager, k *kit) error {
	r := &clusters{kit: k, proxies: newProxies(k)}
	if err := mgr.Add(r.proxies); err != nil {
		return err
	}
	return builder.ControllerManagedBy(mgr).Named("slipwaycluster").
		For(&infrav1.SlipwayCluster{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}, ownersChanged{}))).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster), builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&infrav1.SlipwayMachine{}, handler.EnqueueRequestsFromMapFunc(r.ofMachine)).
		WatchesRawSource(controllers.On(k.feed, calm, r.ofEvent)).
		WatchesRawSource(controllers.Once(k.feed, r.all)).
		WithOptions(options(2)).
		Complete(r)
}

func (r *clusters) ofCluster(_ context.Context, o client.Object) []reconcile.Request {
	c, ok := o.(*clusterv1.Cluster)
	if !ok || c.Spec.InfrastructureRef.Kind != infrav1.KindSlipwayCluster || c.Spec.InfrastructureRef.APIGroup != infrav1.Group {
		return nil
	}
	return request(c.Namespace, c.Spec.InfrastructureRef.Name)
}

// ofMachine returns the cluster of a machine when somebody deletes the cluster, or when its proxy may forward to the
// machine.
func (r *clusters) ofMachine(ctx context.Context, o client.Object) []reconcile.Request {
	name := o.GetLabels()[clusterv1.ClusterNameLabel]
	if name == "" {
		return nil
	}
	c, err := find(ctx, client.Reader(r.client), o.GetNamespace(), name, &clusterv1.Cluster{})
	if err != nil || c == nil {
		return nil
	}
	for _, req := range r.ofCluster(ctx, c) {
		sc, err := find(ctx, client.Reader(r.client), req.Namespace, req.Name, &infrav1.SlipwayCluster{})
		if err == nil && sc != nil && (!sc.DeletionTimestamp.IsZero() || sc.Spec.EndpointMode == infrav1.EndpointAppliance) {
			return []reconcile.Request{req}
		}
	}
	return nil
}

// ofEvent returns all clusters: any of them may count the host in one of its failure domains.
func (r *clusters) ofEvent(ev inventory.Event) []reconcile.Request {
	if !isAboutHosts(ev) {
		return nil
	}
	all, _ := r.all(context.Background()) // from the cache
	return all
}

// all returns all clusters, and has the hosts read again: what happened before it is in no event.
func (r *clusters) all(ctx context.Context) (all []reconcile.Request, err error) {
	r.yard.spoil()
	return controllers.Requests(ctx, r.client, &infrav1.SlipwayClusterList{})
}

// isManaged reports whether another program manages the infrastructure of a cluster. Cluster API has an annotation
// for that; older tools wrote a label.
func isManaged(o client.Object) bool {
	_, annotated := o.GetAnnotations()[clusterv1.ManagedByAnnotation]
	_, labelled := o.GetLabels()[clusterv1.ManagedByAnnotation]
	return annotated || labelled
}

// Reconcile implements reconcile.Reconciler.
func (r *clusters) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	sc, err := find(ctx, client.Reader(r.client), req.Namespace, req.Name, &infrav1.SlipwayCluster{})
	if err != nil {
		return reconcile.Result{}, err
	}
	if sc == nil {
		// The object is gone. Its port becomes free for another cluster.
		return reconcile.Result{}, r.proxies.set(req.NamespacedName, nil)
	}
	// The contract of Cluster API: a cluster that somebody else manages is not touched.
	if !r.isOurs(sc) || isManaged(sc) {
		return reconcile.Result{}, nil
	}
	sc = sc.DeepCopy()
	var cluster *clusterv1.Cluster
	ref := ownerRef(sc, "Cluster")
	if ref != nil {
		if cluster, err = find(ctx, client.Reader(r.client), sc.Namespace, ref.Name, &clusterv1.Cluster{}); err != nil {
			return reconcile.Result{}, err
		}
	}
	switch {
	case isPaused(cluster, sc):
		cs, isNew := translate.Pause(sc.Status.Conditions, true, pausedBy(cluster, sc), sc.Generation, time.Now())
		if !isNew {
			return reconcile.Result{}, nil
		}
		sc.Status.Conditions = cs
		return reconcile.Result{}, r.write(ctx, sc)
	case !sc.DeletionTimestamp.IsZero():
		return reconcile.Result{}, r.delete(ctx, sc, cluster)
	case cluster == nil:
		return reconcile.Result{}, nil // Cluster API has not put its owner in yet
	}
	return r.run(ctx, sc, cluster)
}

// write writes the whole status. A field that is not in it any more is removed.
func (r *clusters) write(ctx context.Context, sc *infrav1.SlipwayCluster) error {
	return controllers.ApplyStatus(ctx, r.client, sc, infrav1.GroupVersion.WithKind(infrav1.KindSlipwayCluster), ManagerCluster, &sc.Status)
}

// run writes the failure domains and the endpoint of a cluster. The finalizer comes first, so that a deletion waits
// for the machines.
func (r *clusters) run(ctx context.Context, sc *infrav1.SlipwayCluster, cluster *clusterv1.Cluster) (reconcile.Result, error) {
	if err := controllers.AddFinalizer(ctx, r.client, sc, metalv1.FinalizerSlipwayCluster, ManagerCluster); err != nil {
		return reconcile.Result{}, err
	}
	domains, err := r.domains(ctx, sc)
	if err != nil {
		return reconcile.Result{}, err
	}
	why, err := r.endpoint(ctx, sc, cluster)
	if err != nil {
		return reconcile.Result{}, err
	}
	was, st := &sc.Status, sc.Status.DeepCopy()
	st.FailureDomains = domains
	ready := metav1.Condition{Type: metalv1.Ready, Status: metav1.ConditionTrue, Reason: metalv1.ReasonReady}
	yes := true
	if why == "" {
		// Never back to false: Cluster API takes it as a fact for the life of the object.
		st.Initialization.Provisioned, st.Ready = &yes, &yes
	} else {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, reasonWaitingForEndpoint, why
	}
	return reconcile.Result{}, r.report(ctx, sc, was, st, ready)
}

// reasonWaitingForEndpoint says that no object names the address of the API server.
const reasonWaitingForEndpoint = "WaitingForControlPlaneEndpoint"

// report writes a status when it has changed.
func (r *clusters) report(ctx context.Context, sc *infrav1.SlipwayCluster, was, st *infrav1.SlipwayClusterStatus, ready metav1.Condition) error {
	now := time.Now()
	cs, isNew := translate.MergeConditions(was.Conditions, []metav1.Condition{ready}, sc.Generation, now)
	cs, isPauseNew := translate.Pause(cs, false, "", sc.Generation, now)
	if isNew || isPauseNew {
		st.Conditions = cs
	}
	st.ObservedGeneration = sc.Generation
	if equality.Semantic.DeepEqual(was, st) {
		return nil
	}
	sc.Status = *st
	return r.write(ctx, sc)
}

// domains returns the failure domains of the hosts that the namespace may use, ordered by name. Where the spec names
// domains, it returns only those.
func (r *clusters) domains(ctx context.Context, sc *infrav1.SlipwayCluster) ([]infrav1.FailureDomain, error) {
	// A domain in which this namespace may use no host would only attract machines that wait.
	pools, err := r.env.PoolsFor(ctx, r.client, r.direct, sc.Namespace)
	if err != nil {
		return nil, err
	}
	hosts, err := r.yard.all(ctx)
	if err != nil {
		return nil, fmt.Errorf("list hosts: %w", err)
	}
	total, free := map[string]int{}, map[string]int{}
	for _, d := range sc.Spec.FailureDomains {
		total[d] = 0
	}
	for i := range hosts {
		h := &hosts[i].Host
		// A host that nobody has accepted may never become one that machines get.
		if h.State == inventory.Discovered || !pools.MayUse(h) {
			continue
		}
		for _, d := range domainsOf(h, sc.Spec.FailureDomains) {
			total[d]++
			if h.State == inventory.Available && h.ClaimID == "" && !h.IsCordoned && !h.InMaintenance {
				free[d]++
			}
		}
	}
	return publish(total, free, sc.Spec.ControlPlaneFailureDomains), nil
}

// publish writes failure domains as Cluster API reads them, ordered by name, at most 100. Cluster API spreads control
// planes by how many are in each, and asks for no free host. So publish marks a domain without a free host as closed
// to control planes, unless none has one.
func publish(total, free map[string]int, planes []string) (all []infrav1.FailureDomain) {
	isFor := func(d string) bool { return len(planes) == 0 || slices.Contains(planes, d) }
	left := 0
	for d, n := range free {
		if isFor(d) {
			left += n
		}
	}
	for name, n := range total {
		isPlane := isFor(name) && (free[name] > 0 || left == 0)
		all = append(all, infrav1.FailureDomain{Name: name, ControlPlane: &isPlane, Attributes: map[string]string{"hosts": strconv.Itoa(n), "free": strconv.Itoa(free[name])}})
	}
	slices.SortFunc(all, func(a, b infrav1.FailureDomain) int { return strings.Compare(a.Name, b.Name) })
	const most = 100
	return all[:min(len(all), most)]
}

// domainsOf returns the failure domains that a host counts for.
func domainsOf(h *inventory.Host, named []string) (in []string) {
	if len(named) == 0 {
		if d := h.Place.Domain(); d != "" {
			return []string{d}
		}
		return nil
	}
	for _, d := range named {
		if h.Place.InDomain(d) {
			in = append(in, d)
		}
	}
	return in
}

// endpoint determines the address of the API server, and writes it into the spec. why says what is missing, "" when
// the address is known.
func (r *clusters) endpoint(ctx context.Context, sc *infrav1.SlipwayCluster, cluster *clusterv1.Cluster) (why string, err error) {
	own, theirs := sc.Spec.ControlPlaneEndpoint, cluster.Spec.ControlPlaneEndpoint
	switch {
	// Either object may name the endpoint. Cluster API copies ours into the Cluster later.
	case own.Host == "" && theirs.Host != "":
		own = infrav1.APIEndpoint{Host: theirs.Host, Port: theirs.Port}
	case own.Host != "" && own.Port == 0:
		own.Port = defaultPort
	}
	// Another mode has no proxy. The mode may have changed: then set closes the port.
	if sc.Spec.EndpointMode == infrav1.EndpointAppliance {
		if why, err = r.proxies.serve(ctx, sc, &own); err != nil || why != "" {
			return why, err
		}
	} else if err := r.proxies.set(client.ObjectKeyFromObject(sc), nil); err != nil {
		return "", err
	}
	if own.Host == "" {
		return "nobody has said where the API server will be: set spec.controlPlaneEndpoint of the SlipwayCluster or of the Cluster", nil
	}
	if own == sc.Spec.ControlPlaneEndpoint {
		return "", nil
	}
	spec := map[string]any{"controlPlaneEndpoint": map[string]any{"host": own.Host, "port": int64(own.Port)}}
	// A field manager of its own: the next apply of another concern does not remove the endpoint.
	if _, err := controllers.ApplySpec(ctx, r.client, sc, infrav1.GroupVersion.WithKind(infrav1.KindSlipwayCluster), ManagerCluster+"-endpoint", spec); err != nil {
		return "", fmt.Errorf("write the endpoint: %w", err)
	}
	sc.Spec.ControlPlaneEndpoint = own
	return "", nil
}

// delete waits until the machines of a cluster are gone, and then removes the proxy and the finalizer.
func (r *clusters) delete(ctx context.Context, sc *infrav1.SlipwayCluster, cluster *clusterv1.Cluster) error {
	if !controllerutil.ContainsFinalizer(sc, metalv1.FinalizerSlipwayCluster) {
		return nil
	}
	// The drain of a machine needs the endpoint of its cluster. So the cluster goes last.
	if n, err := r.machinesOf(ctx, sc, cluster); err != nil {
		return err
	} else if n > 0 {
		return r.report(ctx, sc, &sc.Status, sc.Status.DeepCopy(), metav1.Condition{
			Type: metalv1.Ready, Status: metav1.ConditionFalse, Reason: metalv1.ReasonDeleting, Message: "waits until its machines are gone",
		})
	}
	if err := r.proxies.set(client.ObjectKeyFromObject(sc), nil); err != nil {
		return err
	}
	return controllers.RemoveFinalizer(ctx, r.client, sc, metalv1.FinalizerSlipwayCluster, ManagerCluster)
}

// machinesOf counts the machines of a cluster, also after its Cluster is gone: then the label names it.
func (r *clusters) machinesOf(ctx context.Context, sc *infrav1.SlipwayCluster, cluster *clusterv1.Cluster) (int, error) {
	name := sc.Labels[clusterv1.ClusterNameLabel]
	if cluster != nil {
		name = cluster.Name
	}
	if name == "" {
		return 0, nil
	}
	var sms infrav1.SlipwayMachineList
	if err := r.client.List(ctx, &sms, client.InNamespace(sc.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: name}); err != nil {
		return 0, fmt.Errorf("list machines of cluster %s: %w", name, err)
	}
	return len(sms.Items), nil
}
