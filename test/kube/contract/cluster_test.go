package contract

import (
	"io"
	"net"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	infrav1 "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
)

// infraIs waits until the SlipwayCluster is as check wants it.
func (s *stage) infraIs(what string, check func() error) {
	s.Helper()
	s.until(what, func() error {
		if err := s.c.Get(ctx, client.ObjectKeyFromObject(s.infra), s.infra); err != nil {
			return err
		}
		return check()
	})
}

func (s *stage) infraProvisioned() error {
	return is(isTrue(s.infra.Status.Initialization.Provisioned), "it is not: %+v", s.infra.Status.Conditions)
}

var clusterRows = []row{
	{name: "InfraCluster: the endpoint of its own is published, Ready and provisioned", hosts: 0, isBare: true, run: func(s *stage) {
		s.addCluster(func(c *infrav1.SlipwayCluster) { c.Spec.ControlPlaneEndpoint.Port = 0 })
		s.infraIs("it is provisioned", s.infraProvisioned)
		if s.infra.Spec.ControlPlaneEndpoint != (infrav1.APIEndpoint{Host: "10.9.9.9", Port: 6443}) || !isTrue(s.infra.Status.Ready) {
			s.Errorf("endpoint %+v, ready %v", s.infra.Spec.ControlPlaneEndpoint, s.infra.Status.Ready)
		}
		if c := conditionOf(s.infra.Status.Conditions, metalv1.Ready); c.Status != metav1.ConditionTrue {
			s.Errorf("Ready is %+v", c)
		}
	}},
	{name: "InfraCluster: without an endpoint it waits for the Cluster's", hosts: 0, isBare: true, run: func(s *stage) {
		s.addCluster(func(c *infrav1.SlipwayCluster) { c.Spec.ControlPlaneEndpoint = infrav1.APIEndpoint{} })
		s.infraIs("it says what it waits for", func() error {
			c := conditionOf(s.infra.Status.Conditions, metalv1.Ready)
			return is(c.Reason == "WaitingForControlPlaneEndpoint" && !isTrue(s.infra.Status.Initialization.Provisioned), "it says %+v", c)
		})
		s.edit(s.cluster, func() { s.cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "10.8.8.8", Port: 443} }, false)
		s.infraIs("it is provisioned", s.infraProvisioned)
		if s.infra.Spec.ControlPlaneEndpoint != (infrav1.APIEndpoint{Host: "10.8.8.8", Port: 443}) {
			s.Errorf("endpoint %+v", s.infra.Spec.ControlPlaneEndpoint)
		}
	}},
	{name: "InfraCluster: without a Cluster that owns it nothing is done", hosts: 0, isBare: true, run: func(s *stage) {
		alone := &infrav1.SlipwayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "alone"}}
		s.create(alone)
		s.addCluster(nil)
		s.infraIs("the one that comes after it is provisioned", s.infraProvisioned)
		s.get(alone)
		if len(alone.Finalizers) > 0 || len(alone.Status.Conditions) > 0 {
			s.Errorf("it was touched: %+v", alone)
		}
	}},
	{name: "InfraCluster: managed-by means hands off", hosts: 0, isBare: true, run: func(s *stage) {
		s.addCluster(func(c *infrav1.SlipwayCluster) {
			c.Annotations = map[string]string{clusterv1.ManagedByAnnotation: "somebody"}
		})
		other := bareStage(s.T, s.r, 0)
		other.addCluster(nil)
		other.infraIs("one that comes after it is provisioned", other.infraProvisioned)
		s.get(s.infra)
		if len(s.infra.Finalizers) > 0 || len(s.infra.Status.Conditions) > 0 {
			s.Errorf("it was touched: %+v", s.infra)
		}
	}},
	{name: "InfraCluster: paused writes only Paused", hosts: 0, isBare: true, run: func(s *stage) {
		s.addCluster(func(c *infrav1.SlipwayCluster) { c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} })
		s.infraIs("it is paused", func() error {
			return is(conditionOf(s.infra.Status.Conditions, metalv1.Paused).Status == metav1.ConditionTrue, "it is not")
		})
		if len(s.infra.Status.Conditions) != 1 || len(s.infra.Finalizers) > 0 || isTrue(s.infra.Status.Initialization.Provisioned) {
			s.Errorf("more was written: %+v", s.infra)
		}
		s.edit(s.infra, func() { s.infra.Annotations = nil }, false)
		s.infraIs("it is provisioned", s.infraProvisioned)
	}},
	{name: "InfraCluster: failure domains are those of hosts that the namespace may use", hosts: 3, isBare: true, run: func(s *stage) {
		s.place(0, "rack-a")
		s.place(1, "rack-b")
		s.place(2, "rack-c")
		s.r.Write(s.T, func(tx inventory.Tx) error {
			return tx.Pools().Create(&inventory.Pool{Name: "closed-" + s.ns, Selector: "rack=" + s.ns + "-rack-c", AllowedNamespaces: "team=other"}, time.Now())
		})
		s.addCluster(func(c *infrav1.SlipwayCluster) { c.Spec.ControlPlaneFailureDomains = []string{s.ns + "-rack-a"} })
		s.infraIs("it publishes them", func() error {
			all := map[string]infrav1.FailureDomain{}
			for _, d := range s.infra.Status.FailureDomains {
				all[d.Name] = d
			}
			a, b := all[s.ns+"-rack-a"], all[s.ns+"-rack-b"]
			_, isClosed := all[s.ns+"-rack-c"]
			return is(isTrue(a.ControlPlane) && b.Name != "" && !isTrue(b.ControlPlane) && !isClosed && a.Attributes["free"] == "1" && a.Attributes["hosts"] == "1",
				"they are %+v", s.infra.Status.FailureDomains)
		})
		s.edit(s.infra, func() { s.infra.Spec.FailureDomains = []string{"elsewhere", s.ns + "-rack-b"} }, false)
		s.infraIs("only those that are named are left", func() error {
			ds := s.infra.Status.FailureDomains
			return is(len(ds) == 2 && ds[0].Name == "elsewhere" && ds[0].Attributes["hosts"] == "0" && ds[1].Attributes["hosts"] == "1", "they are %+v", ds)
		})
	}},
	{name: "InfraCluster: a deletion waits for its machines", hosts: 1, run: func(s *stage) {
		p := s.whole("m", nil)
		if err := s.c.Delete(ctx, s.infra); err != nil {
			s.Fatal(err)
		}
		s.infraIs("it says so", func() error {
			c := conditionOf(s.infra.Status.Conditions, metalv1.Ready)
			return is(c.Reason == metalv1.ReasonDeleting, "it says %+v", c)
		})
		p.remove()
		p.untilGone()
		s.until("it is gone", func() error {
			err := s.c.Get(ctx, client.ObjectKeyFromObject(s.infra), s.infra)
			return is(apierrors.IsNotFound(err), "it is there: %v", err)
		})
	}},
	{name: "endpointMode StaticPodVIP: control planes get the pod, workers do not", hosts: 2, isBare: true, run: func(s *stage) {
		s.addCluster(func(c *infrav1.SlipwayCluster) { c.Spec.EndpointMode = infrav1.EndpointStaticPodVIP })
		s.infraIs("it is provisioned", s.infraProvisioned)
		s.provisioned()
		cp := s.whole("cp", func(m *clusterMachine, sm *slipwayMachine) {
			m.Labels = map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineControlPlaneLabel: ""}
			sm.Labels = m.Labels
		})
		worker := s.whole("w", nil)
		for _, want := range []string{"/etc/kubernetes/manifests/kube-vip.yaml", "10.9.9.9", "super-admin.conf", "canary-of-the-contract"} {
			if !contains(cp.userData(), want) {
				s.Errorf("the control plane has no %s: %s", want, cp.userData())
			}
		}
		if contains(worker.userData(), "kube-vip") {
			s.Error("the worker has the pod")
		}
	}},
	{name: "endpointMode Appliance: connections are served at the endpoint's port", hosts: 0, isBare: true, run: func(s *stage) {
		l, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free now
		if err != nil {
			s.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
		s.addCluster(func(c *infrav1.SlipwayCluster) {
			c.Spec.EndpointMode, c.Spec.ControlPlaneEndpoint = infrav1.EndpointAppliance, infrav1.APIEndpoint{Host: "127.0.0.1", Port: int32(port)}
		})
		s.infraIs("it is provisioned", s.infraProvisioned)
		c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			s.Fatal(err)
		}
		defer c.Close()
		if _, err := io.ReadAll(c); err != nil { // there is no control plane yet: it is closed
			s.Logf("closed with %v", err)
		}
		if err := s.c.Delete(ctx, s.infra); err != nil {
			s.Fatal(err)
		}
		s.until("the port is free again", func() error {
			c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
			if err == nil {
				_ = c.Close()
			}
			return is(err != nil, "it is served")
		})
	}},
}
