// Command capi-validators runs the checks of Cluster API's own test framework on a cluster of the provider Slipway: that
// owner references and finalizers are as they should be, come back when they are lost, and that nothing is written while
// nothing changes.
//
//	capi-validators KUBECONFIG NAMESPACE CLUSTER owners|finalizers|stable...
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctl "sigs.k8s.io/cluster-api/cmd/clusterctl/client/cluster"
	"sigs.k8s.io/cluster-api/test/framework"
)

const infra = "infrastructure.cluster.x-k8s.io/v1alpha1"

var (
	cluster      = metav1.OwnerReference{Kind: "Cluster", APIVersion: clusterv1.GroupVersion.String()}
	machine      = metav1.OwnerReference{Kind: "Machine", APIVersion: clusterv1.GroupVersion.String(), Controller: new(true)}
	controlPlane = metav1.OwnerReference{Kind: "KubeadmControlPlane", APIVersion: controlplanev1.GroupVersion.String(), Controller: new(true)}
)

// owners says who owns our objects.
var owners = map[string]func(types.NamespacedName, []metav1.OwnerReference) error{
	"SlipwayCluster": func(_ types.NamespacedName, o []metav1.OwnerReference) error {
		return framework.HasOneOfExactOwners(o, []metav1.OwnerReference{cluster}, []metav1.OwnerReference{{Kind: cluster.Kind, APIVersion: cluster.APIVersion, Controller: new(true)}})
	},
	"SlipwayMachine": func(_ types.NamespacedName, o []metav1.OwnerReference) error {
		return framework.HasOneOfExactOwners(o, []metav1.OwnerReference{machine}, []metav1.OwnerReference{machine, controlPlane})
	},
	"SlipwayMachineTemplate": func(_ types.NamespacedName, o []metav1.OwnerReference) error {
		return framework.HasExactOwners(o, cluster)
	},
	"SlipwayRemediationTemplate": func(_ types.NamespacedName, o []metav1.OwnerReference) error {
		return framework.HasOneOfExactOwners(o, nil, []metav1.OwnerReference{cluster})
	},
}

// finalizers says what holds our objects.
var finalizers = map[string]func(types.NamespacedName) []string{
	"SlipwayCluster": func(types.NamespacedName) []string { return []string{"metal.slipway.dev/slipwaycluster"} },
	"SlipwayMachine": func(types.NamespacedName) []string { return []string{"metal.slipway.dev/slipwaymachine"} },
}

// failing is what ginkgo wants of a test.
type failing struct{ failed bool }

func (f *failing) Fail() { f.failed = true }

func main() {
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "capi-validators KUBECONFIG NAMESPACE CLUSTER owners|finalizers|stable...")
		os.Exit(2)
	}
	kubeconfig, namespace, name, what := os.Args[1], os.Args[2], os.Args[3], os.Args[4:]
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.Describe("the cluster "+name, ginkgo.Ordered, func() {
		var proxy framework.ClusterProxy
		ctx := context.Background()
		filter := func(unstructured.Unstructured) bool { return true }
		ginkgo.BeforeAll(func() {
			s := runtime.NewScheme()
			framework.TryAddDefaultSchemes(s)
			gomega.Expect(scheme.AddToScheme(s)).To(gomega.Succeed())
			proxy = framework.NewClusterProxy("test", kubeconfig, s)
			graph, err := clusterctl.GetOwnerGraph(ctx, namespace, kubeconfig, filter)
			gomega.Expect(err).NotTo(gomega.HaveOccurred())
			seen := map[string]bool{}
			for _, n := range graph {
				seen[n.Object.Kind] = true
			}
			for _, kind := range []string{"Cluster", "Machine", "KubeadmControlPlane", "SlipwayCluster", "SlipwayMachine", "SlipwayMachineTemplate"} {
				gomega.Expect(seen).To(gomega.HaveKey(kind), "the framework looks at nothing of this kind: its CRD lacks clusterctl's label")
			}
		})
		if slices.Contains(what, "owners") {
			ginkgo.It("has the owners that it should, and gets them back", func() {
				framework.ValidateOwnerReferencesResilience(ctx, proxy, namespace, name, filter, framework.CoreOwnerReferenceAssertion,
					framework.KubeadmBootstrapOwnerReferenceAssertions, framework.KubeadmControlPlaneOwnerReferenceAssertions(false),
					framework.KubernetesReferenceAssertions, owners)
				framework.ValidateOwnerReferencesOnUpdate(ctx, proxy, namespace, name, filter, framework.CoreOwnerReferenceAssertion,
					framework.KubeadmBootstrapOwnerReferenceAssertions, framework.KubeadmControlPlaneOwnerReferenceAssertions(false),
					framework.KubernetesReferenceAssertions, owners)
			})
		}
		if slices.Contains(what, "finalizers") {
			ginkgo.It("has the finalizers that it should, and gets them back", func() {
				framework.ValidateFinalizersResilience(ctx, proxy, namespace, name, filter, framework.CoreFinalizersAssertionWithLegacyClusters,
					framework.KubeadmControlPlaneFinalizersAssertion, finalizers)
			})
		}
		if slices.Contains(what, "stable") {
			ginkgo.It("is not written while nothing changes", func() {
				framework.ValidateResourceVersionStable(ctx, framework.ValidateResourceVersionStableInput{
					ClusterProxy: proxy, Namespace: namespace, OwnerGraphFilterFunction: filter,
					WaitToBecomeStable: []any{5 * time.Minute, 3 * time.Second}, WaitToRemainStable: []any{time.Minute, 3 * time.Second},
				})
			})
		}
	})
	os.Args = os.Args[:1]
	f := &failing{}
	if !ginkgo.RunSpecs(f, "checks of Cluster API's test framework") || f.failed {
		os.Exit(1)
	}
}
