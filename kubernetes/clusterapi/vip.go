package clusterapi

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"strconv"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	infrav1 "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/kubeadm"
)

// The annotations of a SlipwayCluster for the pod that announces its endpoint: the interface of the address, and the image
// of the pod. Without the first the pod takes the interface of the default route.
const (
	annotationVIPInterface = metalv1.Prefix + "vip-interface"
	annotationVIPImage     = metalv1.Prefix + "vip-image"
)

// The files of the pod. The first control plane starts with super-admin.conf, because admin.conf has no rights before
// kubeadm has given them (kubernetes #121305, kube-vip #684).
const (
	vipPath       = "/etc/kubernetes/manifests/kube-vip.yaml"
	adminConf     = "/etc/kubernetes/admin.conf"
	superConf     = "/etc/kubernetes/super-admin.conf"
	vipManifestIs = "the pod that announces the endpoint"
)

// vip adds the pod that announces the endpoint to a control plane, when its cluster asks for one.
func (r *machines) vip(ctx context.Context, p *pass, m *inventory.Machine) error {
	if p.Machine == nil || p.Cluster == nil || !isControlPlane(p.Machine) || p.Cluster.Spec.InfrastructureRef.Kind != infrav1.KindSlipwayCluster {
		return nil
	}
	sc, err := find(ctx, client.Reader(r.client), p.sm.Namespace, p.Cluster.Spec.InfrastructureRef.Name, &infrav1.SlipwayCluster{})
	if err != nil || sc == nil || sc.Spec.EndpointMode != infrav1.EndpointStaticPodVIP {
		return err
	}
	// What a machine was made with stays: it is the first one as long as it lives.
	isFirst := !isSet(p.Cluster.Status.Initialization.ControlPlaneInitialized)
	if p.view != nil && p.view.Machine.Config != "" && p.view.Claim != nil {
		m.Config = p.view.Machine.Config
		return nil
	}
	pod, err := vipPod(sc, isFirst)
	if err != nil {
		return err
	}
	m.Config, err = fileLayer(vipPath, pod)
	return err
}

// fileLayer writes a layer of configuration with one file.
func fileLayer(path, text string) (string, error) {
	layer := machineconfig.Config{Files: []machineconfig.File{{Path: path, Mode: 0o600, Content: machineconfig.Content{Text: text}}}}
	out, err := yaml.Marshal(layer)
	if err != nil {
		return "", fmt.Errorf("write the layer of %s: %w", path, err)
	}
	return string(out), nil
}

// vipPod returns the manifest of the pod that announces the endpoint of a cluster. The error is Invalid when the
// endpoint is no address.
func vipPod(sc *infrav1.SlipwayCluster, isFirst bool) (string, error) {
	e := sc.Spec.ControlPlaneEndpoint
	// The pod announces an address by ARP. It cannot do that for a name.
	if _, err := netip.ParseAddr(e.Host); err != nil {
		return "", inventory.Errorf(inventory.Invalid, "endpointMode StaticPodVIP: %q is not an address", inventory.Clean(e.Host, 80)).
			WithHint("set spec.controlPlaneEndpoint.host of SlipwayCluster %s to a free address of the nodes' network", sc.Name)
	}
	port := cmp.Or(e.Port, defaultPort)
	image := cmp.Or(sc.Annotations[annotationVIPImage], kubeadm.DefaultVIPImage)
	conf := adminConf
	if isFirst {
		conf = superConf
	}
	env := []map[string]any{
		{"name": "vip_nodename", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "spec.nodeName"}}},
		{"name": "vip_arp", "value": "true"},
		{"name": "address", "value": e.Host},
		{"name": "port", "value": strconv.Itoa(int(port))},
		{"name": "cp_enable", "value": "true"},
		{"name": "cp_namespace", "value": "kube-system"},
		{"name": "vip_leaderelection", "value": "true"},
		{"name": "vip_leaseduration", "value": "15"},
		{"name": "vip_renewdeadline", "value": "10"},
		{"name": "vip_retryperiod", "value": "2"},
	}
	if i := sc.Annotations[annotationVIPInterface]; i != "" {
		env = append(env, map[string]any{"name": "vip_interface", "value": i})
	}
	pod := map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": "kube-vip", "namespace": "kube-system"},
		"spec": map[string]any{
			"hostNetwork": true,
			"hostAliases": []any{map[string]any{"ip": "127.0.0.1", "hostnames": []string{"kubernetes"}}},
			"containers": []any{map[string]any{
				"name": "kube-vip", "image": image, "imagePullPolicy": "IfNotPresent", "args": []string{"manager"}, "env": env,
				"securityContext": map[string]any{"capabilities": map[string]any{"add": []string{"NET_ADMIN", "NET_RAW"}}},
				"volumeMounts":    []any{map[string]any{"mountPath": adminConf, "name": "kubeconfig"}},
			}},
			"volumes": []any{map[string]any{"name": "kubeconfig", "hostPath": map[string]any{"path": conf, "type": "FileOrCreate"}}},
		},
	}
	out, err := yaml.Marshal(pod)
	if err != nil {
		return "", fmt.Errorf("write %s: %w", vipManifestIs, err)
	}
	return string(out), nil
}
