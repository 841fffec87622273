// Package capisecret owns the bootstrap secrets of Cluster API: it makes a secret of any format boot an OS of any
// format. It never keeps what is in one: the rendering refers to the secret, or to what is to be made of it at delivery.
//
// A cloud-config goes unchanged to an OS that runs cloud-init. For an OS with Ignition it translates the data, as far as
// Cluster API's own bootstrap providers write them. It brings an Ignition configuration of any version to the one that the
// OS reads.
package capisecret

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// Kind is the bootstrapper's name in a configuration.
const Kind = "capi-secret"

// The values of the secret's key "format".
const (
	formatCloudConfig = "cloud-config" // also when the key is absent
	formatIgnition    = "ignition"
)

// sentinel is what Cluster API's contract for bootstrap providers asks to exist when a bootstrap has succeeded.
const sentinel = "/run/cluster-api/bootstrap-success.complete"

// zoneLabel is the label that holds a node's failure domain; a secret may ask for it.
const zoneLabel = "topology.kubernetes.io/zone"

// Bootstrapper implements machineconfig.Bootstrapper.
type Bootstrapper struct{}

// New returns the bootstrapper.
func New() *Bootstrapper { return &Bootstrapper{} }

// Kind implements machineconfig.Bootstrapper.
func (*Bootstrapper) Kind() string { return Kind }

// Emit implements machineconfig.Bootstrapper. It checks the content of the secret now, so that a boot does not fail on it.
func (*Bootstrapper) Emit(in machineconfig.BootstrapInput) (*machineconfig.Activation, machineconfig.Requirements, error) {
	a, err := emit(in)
	if err != nil {
		return nil, machineconfig.Requirements{}, err
	}
	return a, requirements(in.Spec.Version), nil
}

func emit(in machineconfig.BootstrapInput) (*machineconfig.Activation, error) {
	name, _, _ := strings.Cut(strings.TrimPrefix(in.Spec.Secret, "secret://"), "#")
	shown := inventory.Clean(name, 64)
	switch {
	case name == "":
		return nil, inventory.Errorf(inventory.Invalid, "bootstrap capi-secret names no secret").
			WithHint("write secret: NAME, with the value of the Cluster API secret stored under that name")
	case in.Secret == nil:
		return nil, inventory.Errorf(inventory.Invalid, "there is no secret %q to bootstrap from", shown).
			WithHint("make it with: slipway secret set %s", shown)
	}
	c := conversion{From: formatCloudConfig, Target: in.OS, Meta: metaOf(in)}
	switch f := in.Spec.SecretFormat; f {
	case "", formatCloudConfig:
	case formatIgnition:
		c.From = formatIgnition
	default:
		return nil, otherFormat("%q is not a format of bootstrap secrets", inventory.Clean(f, 40)).
			WithHint("Cluster API writes %s and %s", formatCloudConfig, formatIgnition)
	}
	if err := checkForm(in.Secret, c.From); err != nil {
		return nil, err
	}
	prelude := &machineconfig.Passthrough{Format: formatCloudConfig}
	switch in.Format {
	case "ignition":
		if _, err := c.ignition(in.Secret); err != nil {
			return nil, err
		}
		ref, err := json.Marshal(c)
		if err != nil {
			return nil, fmt.Errorf("encode what to make of secret %s: %w", shown, err)
		}
		prelude.Format, prelude.Data = formatIgnition, []byte(late.Marker("secret://"+name+"#"+Kind+":"+string(ref)))
	case "cloud-init", "autoinstall", "kickstart", "preseed":
		if c.From == formatIgnition {
			return nil, otherFormat("secret %s holds Ignition, and %s reads %s", shown, in.OS, in.Format).
				WithHint("let the bootstrap provider write format: cloud-config, or use an image that reads Ignition")
		}
		if err := checkPassthrough(in.Secret, c.Meta); err != nil {
			return nil, err
		}
		prelude.Data, prelude.Jinja = []byte(late.Marker("secret://"+name)), isJinja(in.Secret)
	default:
		return nil, otherFormat("a bootstrap secret of Cluster API cannot be given to %s, which reads %s", in.OS, in.Format).
			WithHint("use an image that reads cloud-init, Ignition, autoinstall, kickstart or preseed")
	}
	return &machineconfig.Activation{Kind: Kind, Sentinel: sentinel, Prelude: prelude}, nil
}

// requirements are those of kubeadm, when the configuration says which version it wants. Cluster API itself expects an
// image that has everything.
func requirements(version string) machineconfig.Requirements {
	if version == "" {
		return machineconfig.Requirements{}
	}
	return machineconfig.Requirements{
		Binaries: []string{"conntrack", "containerd", "crictl", "kubeadm", "kubectl", "kubelet", "socat"},
		Version:  version,
		Modules:  []string{"br_netfilter", "overlay"},
		Sysctl: map[string]string{
			"net.bridge.bridge-nf-call-ip6tables": "1", "net.bridge.bridge-nf-call-iptables": "1", "net.ipv4.ip_forward": "1",
		},
		NoSwap: true,
	}
}

// Findings are warnings about settings that have no effect, because the secret says it all.
func (*Bootstrapper) Findings(in machineconfig.BootstrapInput) (report machineconfig.Report) {
	s := in.Spec
	labels := len(s.Labels)
	if _, ok := s.Labels[zoneLabel]; ok {
		labels--
	}
	for _, f := range []struct {
		name  string
		isSet bool
	}{
		{"target", s.Target != ""},
		{"role", s.Role != ""},
		{"nodeName", s.NodeName != ""},
		{"labels", labels > 0},
		{"taints", len(s.Taints) > 0},
		{"kubeletArgs", len(s.KubeletArgs) > 0},
		{"nodeIP", s.NodeIP != ""},
		{"criSocket", s.CRISocket != ""},
		{"options", len(s.Options) > 0},
	} {
		if f.isSet {
			report.Warnf("/bootstrap/"+f.name, "no-effect", "has no effect: the bootstrap secret says it").Hint = "set it in Cluster API's own objects"
		}
	}
	return report
}

// Part makes of a secret's value what a reference asks for.
func (*Bootstrapper) Part(secret []byte, ref string) ([]byte, error) {
	var c conversion
	if err := json.Unmarshal([]byte(ref), &c); err != nil {
		return nil, inventory.Errorf(inventory.Internal, "a reference into a bootstrap secret cannot be read").
			WithHint("render the host again")
	}
	if err := checkForm(secret, c.From); err != nil {
		return nil, err
	}
	return c.ignition(secret)
}

// metaOf returns what a template in a secret may ask for: the same as the metadata that cloud-init is given.
func metaOf(in machineconfig.BootstrapInput) map[string]string {
	meta := map[string]string{"provider_id": in.Spec.ProviderID, "failure_domain": in.Spec.Labels[zoneLabel]}
	if in.Config != nil {
		h := in.Config.Host
		meta["local_hostname"], meta["hostname"] = h.Hostname, h.Hostname
		meta["instance_id"], meta["machine_id"] = h.InstanceID, h.MachineID
		for k, v := range h.MetaData {
			meta[strings.ReplaceAll(k, "-", "_")] = v
		}
	}
	return meta
}

// metaNames are the names that a template may use, for people.
func metaNames() string {
	meta := metaOf(machineconfig.BootstrapInput{Config: &machineconfig.Config{}})
	return strings.Join(slices.Sorted(maps.Keys(meta)), ", ")
}
