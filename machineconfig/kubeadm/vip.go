package kubeadm

import (
	"cmp"
	"regexp"
	"strconv"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
)

// DefaultVIPImage announces the virtual address when the join target names no image. It is pulled by the control planes,
// so a site without Internet access names its mirror in the target.
const DefaultVIPImage = "ghcr.io/kube-vip/kube-vip:v1.0.3"

// Kubeconfigs that kubeadm writes. From 1.29 on admin.conf may do nothing until kubeadm init has bound its group, so
// the first control plane starts with super-admin.conf (kubernetes #121305, kube-vip #684).
const (
	adminConf      = "/etc/kubernetes/admin.conf"
	superAdminConf = "/etc/kubernetes/super-admin.conf"
)

var (
	interfaceRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,14}$`)
	imageRE     = regexp.MustCompile(`^[a-z0-9][A-Za-z0-9._/:@-]{0,253}$`)
)

func (p *plan) checkVIP() error {
	if !p.hasVIP() {
		return nil
	}
	if !interfaceRE.MatchString(p.target.VIPInterface) {
		return inventory.Errorf(inventory.Invalid, "join target %s: %q is not the interface that carries %s", p.target.Name, p.target.VIPInterface, p.target.VIP).
			WithHint("set its vipInterface, such as eno1")
	}
	if !imageRE.MatchString(p.vipImage()) {
		return inventory.Errorf(inventory.Invalid, "join target %s: %q is not a container image", p.target.Name, p.target.VIPImage).
			WithHint("such as %s", DefaultVIPImage)
	}
	return nil
}

func (p *plan) vipImage() string {
	return cmp.Or(p.target.VIPImage, DefaultVIPImage)
}

// startsAsSuperAdmin reports whether the pod needs the other kubeconfig until the cluster is made.
func (p *plan) startsAsSuperAdmin() bool {
	return p.hasVIP() && p.role == machineconfig.Init && p.version.minor >= 29
}

// A static pod, as far as it is used here.
type (
	pod struct {
		typeMeta `yaml:",inline"`
		Metadata map[string]string `yaml:"metadata"`
		Spec     podSpec           `yaml:"spec"`
	}
	podSpec struct {
		Containers  []container `yaml:"containers"`
		HostAliases []hostAlias `yaml:"hostAliases"`
		HostNetwork bool        `yaml:"hostNetwork"`
		Priority    string      `yaml:"priorityClassName"`
		Volumes     []volume    `yaml:"volumes"`
	}
	container struct {
		Name            string   `yaml:"name"`
		Image           string   `yaml:"image"`
		ImagePullPolicy string   `yaml:"imagePullPolicy"`
		Args            []string `yaml:"args"`
		Env             []envVar `yaml:"env"`
		SecurityContext security `yaml:"securityContext"`
		VolumeMounts    []mount  `yaml:"volumeMounts"`
	}
	envVar struct {
		Name      string     `yaml:"name"`
		Value     string     `yaml:"value,omitempty"`
		ValueFrom *envSource `yaml:"valueFrom,omitempty"`
	}
	envSource struct {
		FieldRef map[string]string `yaml:"fieldRef"`
	}
	security struct {
		Capabilities map[string][]string `yaml:"capabilities"`
	}
	mount struct {
		Name      string `yaml:"name"`
		MountPath string `yaml:"mountPath"`
	}
	volume struct {
		Name     string            `yaml:"name"`
		HostPath map[string]string `yaml:"hostPath"`
	}
	hostAlias struct {
		IP        string   `yaml:"ip"`
		Hostnames []string `yaml:"hostnames"`
	}
)

// vipManifest is a static pod that announces the address by ARP or neighbour discovery from whichever control plane
// leads. It talks to its own API server as "kubernetes", a name in that server's certificate.
func (p *plan) vipManifest() (string, error) {
	prefix := strconv.Itoa(p.target.VIP.BitLen())
	conf, loopback := adminConf, "127.0.0.1"
	if p.startsAsSuperAdmin() {
		conf = superAdminConf
	}
	if p.target.VIP.Is6() {
		loopback = "::1"
	}
	env := []envVar{
		{Name: "vip_arp", Value: "true"},
		{Name: "port", Value: strconv.Itoa(p.bindPort())},
		{Name: "vip_nodename", ValueFrom: &envSource{map[string]string{"fieldPath": "spec.nodeName"}}},
		{Name: "vip_interface", Value: p.target.VIPInterface},
		{Name: "vip_cidr", Value: prefix}, // until kube-vip 0.8
		{Name: "vip_subnet", Value: prefix},
		{Name: "cp_enable", Value: "true"},
		{Name: "cp_namespace", Value: "kube-system"},
		{Name: "vip_leaderelection", Value: "true"},
		{Name: "vip_leasename", Value: "plndr-cp-lock"},
		{Name: "vip_leaseduration", Value: "5"},
		{Name: "vip_renewdeadline", Value: "3"},
		{Name: "vip_retryperiod", Value: "1"},
		{Name: "address", Value: p.target.VIP.String()},
	}
	return toYAML(pod{
		typeMeta: typeMeta{"v1", "Pod"},
		Metadata: map[string]string{"name": "kube-vip", "namespace": "kube-system"},
		Spec: podSpec{
			HostNetwork: true, Priority: "system-node-critical",
			HostAliases: []hostAlias{{loopback, []string{"kubernetes"}}},
			Volumes:     []volume{{"kubeconfig", map[string]string{"path": conf, "type": "File"}}},
			Containers: []container{{
				Name: "kube-vip", Image: p.vipImage(), ImagePullPolicy: "IfNotPresent", Args: []string{"manager"}, Env: env,
				SecurityContext: security{map[string][]string{"add": {"NET_ADMIN", "NET_RAW"}, "drop": {"ALL"}}},
				VolumeMounts:    []mount{{"kubeconfig", adminConf}},
			}},
		},
	})
}
