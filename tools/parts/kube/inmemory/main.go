// Command capi-inmemory is a workload cluster without machines, for tests of Cluster API: the API server and etcd that
// Cluster API's own test module keeps in memory, behind a small HTTP door on loopback by which a test says which
// machines have come up and which have gone.
//
//	PUT    /clusters/C           {"host":…,"port":…} is where the API server of C will answer
//	PUT    /clusters/C/nodes/N   machine N has come up: a node, and a member of etcd when it is a control plane
//	DELETE /clusters/C/nodes/N   machine N is gone: its pods and its member of etcd with it; the node stays
//	DELETE /clusters/C           all of it is gone
package main

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	cloudv1 "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/cloud/api/v1alpha1"
	inmemory "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/runtime"
	"sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/server"
	"sigs.k8s.io/cluster-api/util/certs"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// node is a machine that has come up.
type node struct {
	ProviderID   string            `json:"providerID"`
	Version      string            `json:"version"`
	Labels       map[string]string `json:"labels"`
	ControlPlane bool              `json:"controlPlane"`
	CA           pair              `json:"ca"`   // of the cluster, for control planes
	EtcdCA       pair              `json:"etcd"` // of etcd, for control planes
}

// pair is a certificate and its key, PEM.
type pair struct {
	Cert []byte `json:"cert"`
	Key  []byte `json:"key"`
}

type door struct {
	ctx     context.Context
	mu      sync.Mutex // one change at a time
	manager inmemory.Manager
	mux     *server.WorkloadClustersMux
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctrl.SetLogger(klog.Background())
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, cloudv1.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(s); err != nil {
			log.Fatal(err)
		}
	}
	d := &door{ctx: ctx, manager: inmemory.NewManager(s)}
	if err := d.manager.Start(ctx); err != nil {
		log.Fatal(err)
	}
	var err error
	if d.mux, err = server.NewWorkloadClustersMux(d.manager, "127.0.0.1", server.CustomPorts{MinPort: 20000, MaxPort: 60000}); err != nil {
		log.Fatal(err)
	}
	routes := http.NewServeMux()
	routes.HandleFunc("PUT /clusters/{cluster}", answer(d.addCluster))
	routes.HandleFunc("DELETE /clusters/{cluster}", answer(d.dropCluster))
	routes.HandleFunc("PUT /clusters/{cluster}/nodes/{node}", answer(d.addNode))
	routes.HandleFunc("DELETE /clusters/{cluster}/nodes/{node}", answer(d.dropNode))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s\n", l.Addr())
	go func() {
		<-ctx.Done()
		_ = l.Close()
	}()
	if err := http.Serve(l, routes); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

func answer(do func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		out, err := do(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(out)
	}
}

func (d *door) addCluster(r *http.Request) (any, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := r.PathValue("cluster")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := free.Addr().(*net.TCPAddr).Port
	_ = free.Close()
	l, err := d.mux.InitWorkloadClusterListener(name, int32(port))
	if err != nil {
		return nil, err
	}
	d.manager.AddResourceGroup(name)
	if err := d.mux.RegisterResourceGroup(name, name); err != nil {
		return nil, err
	}
	return map[string]any{"host": l.Host(), "port": l.Port()}, nil
}

func (d *door) dropCluster(r *http.Request) (any, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := r.PathValue("cluster")
	err := d.mux.DeleteWorkloadClusterListener(name)
	d.manager.DeleteResourceGroup(name)
	return nil, err
}

func (d *door) addNode(r *http.Request) (any, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var n node
	if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
		return nil, err
	}
	cluster, name := r.PathValue("cluster"), r.PathValue("node")
	c := d.manager.GetResourceGroup(cluster).GetClient()
	if err := d.create(c, n.object(name)); err != nil {
		return nil, err
	}
	if !n.ControlPlane {
		return nil, nil
	}
	if err := d.addEtcd(c, cluster, name, n.EtcdCA); err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	for _, component := range []string{"kube-apiserver", "kube-scheduler", "kube-controller-manager"} {
		if err := d.create(c, pod(component, name, nil)); err != nil {
			return nil, err
		}
	}
	if err := d.create(c, kubeadmObjects(n.Version)...); err != nil {
		return nil, err
	}
	if member := "kube-apiserver-" + name; !d.mux.HasAPIServer(cluster, member) {
		cert, key, err := n.CA.read()
		if err != nil {
			return nil, err
		}
		return nil, d.mux.AddAPIServer(cluster, member, cert, key)
	}
	return nil, nil
}

func (d *door) dropNode(r *http.Request) (any, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	cluster, name := r.PathValue("cluster"), r.PathValue("node")
	c := d.manager.GetResourceGroup(cluster).GetClient()
	for _, component := range []string{"etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager"} {
		p := pod(component, name, nil)
		if err := c.Delete(d.ctx, p); err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	var errs []error
	if d.mux.HasEtcdMember(cluster, "etcd-"+name) {
		errs = append(errs, d.mux.DeleteEtcdMember(cluster, "etcd-"+name))
	}
	if d.mux.HasAPIServer(cluster, "kube-apiserver-"+name) {
		errs = append(errs, d.mux.DeleteAPIServer(cluster, "kube-apiserver-"+name))
	}
	return nil, errors.Join(errs...)
}

// addEtcd makes a member of etcd, which is a pod that says so.
func (d *door) addEtcd(c inmemory.Client, cluster, name string, ca pair) error {
	member := "etcd-" + name
	if d.mux.HasEtcdMember(cluster, member) {
		return nil
	}
	var pods corev1.PodList
	if err := c.List(d.ctx, &pods, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{"component": "etcd", "tier": "control-plane"}); err != nil {
		return err
	}
	note := map[string]string{cloudv1.EtcdMemberIDAnnotationName: strconv.FormatUint(uint64(rand.Uint32()|1), 10)}
	for _, p := range pods.Items {
		if _, removed := p.Annotations[cloudv1.EtcdMemberRemoved]; !removed {
			note[cloudv1.EtcdClusterIDAnnotationName] = p.Annotations[cloudv1.EtcdClusterIDAnnotationName]
		}
	}
	if note[cloudv1.EtcdClusterIDAnnotationName] == "" { // the first member leads
		note[cloudv1.EtcdClusterIDAnnotationName] = strconv.FormatUint(uint64(rand.Uint32()|1), 10)
		note[cloudv1.EtcdLeaderFromAnnotationName] = time.Now().Format(time.RFC3339)
	}
	if err := d.create(c, pod("etcd", name, note)); err != nil {
		return err
	}
	cert, key, err := ca.read()
	if err != nil {
		return err
	}
	return d.mux.AddEtcdMember(cluster, member, cert, key)
}

// create makes objects that are not there.
func (d *door) create(c inmemory.Client, objs ...client.Object) error {
	for _, o := range objs {
		if err := c.Create(d.ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

func (p pair) read() (*x509.Certificate, *rsa.PrivateKey, error) {
	cert, err := certs.DecodeCertPEM(p.Cert)
	if err != nil {
		return nil, nil, err
	}
	key, err := certs.DecodePrivateKeyPEM(p.Key)
	if err != nil {
		return nil, nil, err
	}
	private, ok := key.(*rsa.PrivateKey)
	if !ok {
		return nil, nil, errors.New("the key is not RSA")
	}
	return cert, private, nil
}

func (n node) object(name string) *corev1.Node {
	now := metav1.Now()
	o := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: n.Labels},
		Spec:       corev1.NodeSpec{ProviderID: n.ProviderID},
		Status: corev1.NodeStatus{
			NodeInfo: corev1.NodeSystemInfo{KubeletVersion: n.Version},
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastTransitionTime: now},
				{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory", LastTransitionTime: now},
				{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure", LastTransitionTime: now},
				{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID", LastTransitionTime: now},
			},
		},
	}
	if n.ControlPlane {
		if o.Labels == nil {
			o.Labels = map[string]string{}
		}
		o.Labels["node-role.kubernetes.io/control-plane"] = ""
		o.Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}
	}
	return o
}

// pod is a static pod of a control plane, as the API server mirrors it.
func pod(component, node string, note map[string]string) *corev1.Pod {
	if note == nil {
		note = map[string]string{}
	}
	note[corev1.MirrorPodAnnotationKey] = component
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: component + "-" + node, Annotations: note,
			Labels: map[string]string{"component": component, "tier": "control-plane"},
		},
		Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

// kubeadmObjects are what "kubeadm init" leaves in a cluster and Cluster API looks at.
func kubeadmObjects(version string) []client.Object {
	system := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name}
	}
	template := func(name, image string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: image}}}}
	}
	return []client.Object{
		&corev1.ConfigMap{ObjectMeta: system("kubeadm-config"), Data: map[string]string{"ClusterConfiguration": ""}},
		&corev1.ConfigMap{ObjectMeta: system("coredns"), Data: map[string]string{"Corefile": "."}},
		&appsv1.DaemonSet{ObjectMeta: system("kube-proxy"), Spec: appsv1.DaemonSetSpec{Template: template("kube-proxy", "registry.k8s.io/kube-proxy:"+version)}},
		&appsv1.Deployment{ObjectMeta: system("coredns"), Spec: appsv1.DeploymentSpec{Template: template("coredns", "registry.k8s.io/coredns/coredns:v1.10.1")}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "kubeadm:get-nodes"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"nodes"}}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "kubeadm:get-nodes"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kubeadm:get-nodes"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: "system:bootstrappers:kubeadm:default-node-token"}},
		},
	}
}
