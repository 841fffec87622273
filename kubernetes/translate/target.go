package translate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/machineconfig"
)

// JoinTarget returns the join target that a JoinTarget describes; its CA comes from its kubeconfig and is left out. An
// error is an *Invalid.
func JoinTarget(jt *v1alpha1.JoinTarget, owner contract.Owner) (inventory.JoinTarget, error) {
	s := &jt.Spec
	t := inventory.JoinTarget{
		Name: Name(jt.Namespace, jt.Name), Owner: owner.String(), Endpoint: s.ControlPlaneEndpoint, Kubernetes: bare(s.KubernetesVersion),
		WorkerParallelism: int(s.WorkerJoinParallelism), TokenFor: inventory.Duration(time.Duration(s.TokenTTLSeconds) * time.Second),
	}
	if CanLookInto(jt) {
		t.Kubeconfig = KubeconfigName(jt)
	}
	if s.StaticToken != nil {
		t.Token = tokenName(jt)
	}
	if IsInit(jt) {
		t.PKI = PKIName(jt)
	}
	c, err := clusterConfiguration(jt)
	if err != nil {
		return t, err
	}
	t.PodCIDR, t.ServiceCIDR = c.Networking.PodSubnet, c.Networking.ServiceSubnet
	if err := t.Validate(); err != nil {
		return t, invalid("spec", err.Error())
	}
	return t, nil
}

// cluster is what of kubeadm's ClusterConfiguration is taken.
type cluster struct {
	APIVersion  string `json:"apiVersion,omitempty"`
	Kind        string `json:"kind,omitempty"`
	ClusterName string `json:"clusterName,omitempty"`
	Networking  struct {
		PodSubnet     string `json:"podSubnet,omitempty"`
		ServiceSubnet string `json:"serviceSubnet,omitempty"`
		DNSDomain     string `json:"dnsDomain,omitempty"`
	} `json:"networking,omitempty"`
	APIServer struct {
		CertSANs []string `json:"certSANs,omitempty"`
	} `json:"apiServer,omitempty"`
	ImageRepository string `json:"imageRepository,omitempty"`
}

func clusterConfiguration(jt *v1alpha1.JoinTarget) (c cluster, err error) {
	const field = "spec.clusterConfiguration"
	raw := jt.Spec.ClusterConfiguration
	if raw == nil || len(raw.Raw) == 0 {
		return c, nil
	}
	d := json.NewDecoder(strings.NewReader(string(raw.Raw)))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, invalid(field, strings.TrimPrefix(err.Error(), "json: ")+
			": clusterName, networking.{podSubnet,serviceSubnet,dnsDomain}, apiServer.certSANs and imageRepository are taken")
	}
	if c.Kind != "" && c.Kind != "ClusterConfiguration" {
		return c, invalid(field+".kind", fmt.Sprintf("%q is not ClusterConfiguration", c.Kind))
	}
	return c, nil
}

// targetOptions are what of a join target is in each machine's configuration.
func targetOptions(jt *v1alpha1.JoinTarget, role machineconfig.Role) (map[string]string, error) {
	o := map[string]string{}
	if s := jt.Spec.StaticToken; s != nil && jt.Spec.KubeconfigSecretRef == nil {
		var hashes []string
		for _, h := range s.CACertHashes {
			hashes = append(hashes, string(h))
		}
		slices.Sort(hashes)
		o["caCertHashes"] = strings.Join(hashes, ",")
	}
	if IsInit(jt) && isPlane(role) { // whichever makes the cluster
		c, err := clusterConfiguration(jt)
		if err != nil {
			return nil, err
		}
		for k, v := range map[string]string{
			"clusterName": c.ClusterName, "dnsDomain": c.Networking.DNSDomain, "imageRepository": c.ImageRepository,
			"certSANs": strings.Join(c.APIServer.CertSANs, ","),
		} {
			if v != "" {
				o[k] = v
			}
		}
	}
	if len(o) == 0 {
		return nil, nil
	}
	return o, nil
}
