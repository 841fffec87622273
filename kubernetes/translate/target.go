package translate

import (
	"encoding/json"
	"fmt"
	"maps"
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

// KubeconfigName, PKIName and tokenName are the inventory's secrets of a join target.
func KubeconfigName(jt *v1alpha1.JoinTarget) string {
	return Name(jt.Namespace, jt.Name+"-kubeconfig")
}

// PKIName is the secret with the authorities of a cluster that Slipway makes.
func PKIName(jt *v1alpha1.JoinTarget) string { return Name(jt.Namespace, jt.Name+"-pki") }

func tokenName(jt *v1alpha1.JoinTarget) string { return Name(jt.Namespace, jt.Name+"-token") }

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

// SecretUse is a key of a Secret that is kept sealed in the inventory, under a name.
type SecretUse struct {
	Name                   string // in the inventory
	Namespace, Secret, Key string
	Encoding               string // that its value is written in
	Field                  string // that names it
}

// Value is the value to be sealed, of what the Secret holds under Key.
func (u SecretUse) Value(b []byte) ([]byte, error) {
	plain, err := decode(u.Encoding, b)
	if err != nil {
		return nil, invalid(u.Field, "the value in the Secret "+err.Error())
	}
	return plain, nil
}

// MachineSecrets are the Secrets that a MetalMachine's files and users name.
func MachineSecrets(mm *v1alpha1.MetalMachine, owner contract.Owner) []SecretUse {
	all := map[string]SecretUse{}
	add := func(ref *v1alpha1.SecretKeySelector, field, encoding string) {
		if ref == nil {
			return
		}
		name := secretName(owner, ref.Name, ref.Key)
		all[name] = SecretUse{Name: name, Namespace: mm.Namespace, Secret: ref.Name, Key: ref.Key, Encoding: encoding, Field: field}
	}
	for i := range mm.Spec.Files {
		f := &mm.Spec.Files[i]
		add(f.ContentFrom, "spec.files["+f.Path+"].contentFrom", f.Encoding)
	}
	for i := range mm.Spec.Users {
		add(mm.Spec.Users[i].PasswordHashFrom, "spec.users["+mm.Spec.Users[i].Name+"].passwordHashFrom", "")
	}
	var uses []SecretUse
	for _, k := range slices.Sorted(maps.Keys(all)) {
		uses = append(uses, all[k])
	}
	return uses
}

// TargetSecrets are the Secrets that a JoinTarget names. The kubeconfig of a cluster that is still to be made is written
// by Slipway.
func TargetSecrets(jt *v1alpha1.JoinTarget) []SecretUse {
	var uses []SecretUse
	if ref := jt.Spec.KubeconfigSecretRef; ref != nil {
		uses = append(uses, SecretUse{Name: KubeconfigName(jt), Namespace: jt.Namespace, Secret: ref.Name, Key: ref.Key, Field: "spec.kubeconfigSecretRef"})
	}
	if s := jt.Spec.StaticToken; s != nil {
		uses = append(uses, SecretUse{
			Name: tokenName(jt), Namespace: jt.Namespace, Secret: s.TokenSecretRef.Name, Key: s.TokenSecretRef.Key, Field: "spec.staticToken.tokenSecretRef",
		})
	}
	return uses
}

// DiskHint is a choice of a disk in the words of the inventory.
func DiskHint(r *v1alpha1.RootDevice) inventory.DiskHint {
	h := inventory.DiskHint{Serial: r.Serial, WWN: r.WWN, IsRotational: r.Rotational}
	switch path := r.DeviceName; {
	case strings.HasPrefix(path, "/dev/disk/by-path/"):
		h.ByPath = strings.TrimPrefix(path, "/dev/disk/by-path/")
	default:
		h.Name = strings.TrimPrefix(path, "/dev/")
	}
	if r.MinSize != nil {
		h.MinBytes = r.MinSize.Value()
	}
	return h
}
