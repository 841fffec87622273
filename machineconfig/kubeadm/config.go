package kubeadm

import (
	"cmp"
	"encoding/base64"
	"maps"
	"net"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// What kubeadm reads. v1beta3 and v1beta4 differ in the form of arguments (see extraArgs) only, as far as they are
// used here.
type (
	typeMeta struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
	}
	joinConfiguration struct {
		typeMeta         `yaml:",inline"`
		NodeRegistration nodeRegistration  `yaml:"nodeRegistration"`
		Discovery        discovery         `yaml:"discovery"`
		ControlPlane     *joinControlPlane `yaml:"controlPlane,omitempty"`
		SkipPhases       []string          `yaml:"skipPhases,omitempty"`
		Patches          *patches          `yaml:"patches,omitempty"`
	}
	initConfiguration struct {
		typeMeta         `yaml:",inline"`
		BootstrapTokens  []bootstrapToken `yaml:"bootstrapTokens"`
		NodeRegistration nodeRegistration `yaml:"nodeRegistration"`
		LocalAPIEndpoint localEndpoint    `yaml:"localAPIEndpoint"`
		CertificateKey   quotedMarker     `yaml:"certificateKey,omitempty"`
		SkipPhases       []string         `yaml:"skipPhases,omitempty"`
		Patches          *patches         `yaml:"patches,omitempty"`
	}
	clusterConfiguration struct {
		typeMeta             `yaml:",inline"`
		ClusterName          string          `yaml:"clusterName,omitempty"`
		KubernetesVersion    string          `yaml:"kubernetesVersion"`
		ControlPlaneEndpoint string          `yaml:"controlPlaneEndpoint"`
		ImageRepository      string          `yaml:"imageRepository,omitempty"`
		Networking           *networking     `yaml:"networking,omitempty"`
		APIServer            *component      `yaml:"apiServer,omitempty"`
		ControllerManager    *component      `yaml:"controllerManager,omitempty"`
		Scheduler            *component      `yaml:"scheduler,omitempty"`
		Etcd                 *etcd           `yaml:"etcd,omitempty"`
		FeatureGates         map[string]bool `yaml:"featureGates,omitempty"`
	}
	etcd struct {
		Local component `yaml:"local"`
	}
	patches struct {
		Directory string `yaml:"directory"`
	}
	kubeletConfiguration struct {
		typeMeta           `yaml:",inline"`
		CgroupDriver       string `yaml:"cgroupDriver"`
		ServerTLSBootstrap bool   `yaml:"serverTLSBootstrap,omitempty"`
	}
	nodeRegistration struct {
		Name             string   `yaml:"name"`
		CRISocket        string   `yaml:"criSocket"`
		Taints           *[]taint `yaml:"taints,omitempty"` // nil keeps kubeadm's own taint, empty takes it away
		KubeletExtraArgs any      `yaml:"kubeletExtraArgs,omitempty"`
		Ignore           []string `yaml:"ignorePreflightErrors,omitempty"`
	}
	taint struct {
		Key    string `yaml:"key"`
		Value  string `yaml:"value,omitempty"`
		Effect string `yaml:"effect"`
	}
	discovery struct {
		BootstrapToken    *tokenDiscovery `yaml:"bootstrapToken,omitempty"`
		File              *fileDiscovery  `yaml:"file,omitempty"`
		TLSBootstrapToken quotedMarker    `yaml:"tlsBootstrapToken,omitempty"`
	}
	tokenDiscovery struct {
		Token                    quotedMarker `yaml:"token"`
		APIServerEndpoint        string       `yaml:"apiServerEndpoint"`
		CACertHashes             []string     `yaml:"caCertHashes,omitempty"`
		UnsafeSkipCAVerification bool         `yaml:"unsafeSkipCAVerification,omitempty"`
	}
	fileDiscovery struct {
		KubeConfigPath string `yaml:"kubeConfigPath"`
	}
	joinControlPlane struct {
		LocalAPIEndpoint localEndpoint `yaml:"localAPIEndpoint"`
		CertificateKey   quotedMarker  `yaml:"certificateKey,omitempty"`
	}
	localEndpoint struct {
		AdvertiseAddress string `yaml:"advertiseAddress,omitempty"`
		BindPort         int    `yaml:"bindPort"`
	}
	bootstrapToken struct {
		TTL         string `yaml:"ttl"`
		Description string `yaml:"description"`
	}
	networking struct {
		PodSubnet     string `yaml:"podSubnet,omitempty"`
		ServiceSubnet string `yaml:"serviceSubnet,omitempty"`
		DNSDomain     string `yaml:"dnsDomain,omitempty"`
	}
	component struct {
		CertSANs  []string `yaml:"certSANs,omitempty"`
		ExtraArgs any      `yaml:"extraArgs,omitempty"`
	}
	nameValue struct {
		Name  string `yaml:"name"`
		Value string `yaml:"value"`
	}
)

// quotedMarker is a marker alone in a value. It stays raw, so that provisioners can encode it; quotes keep what replaces it a
// text, since a token such as 123456.0123456789012345 would be a number. Tokens and keys need no escape in quotes.
type quotedMarker string

// MarshalYAML writes the marker in double quotes.
func (l quotedMarker) MarshalYAML() (any, error) {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: string(l)}, nil
}

// IsZero reports whether there is none.
func (l quotedMarker) IsZero() bool { return l == "" }

// lateSecret is the marker of a secret, or nothing.
func lateSecret(name string) quotedMarker {
	if name == "" {
		return ""
	}
	return quotedMarker(late.Marker("secret://" + name))
}

// token is the marker of what the machine authenticates with.
func (p *plan) token() quotedMarker {
	if p.target.Kubeconfig != "" {
		return quotedMarker(late.Marker("join://" + p.target.Name + "/token"))
	}
	return lateSecret(p.target.Token)
}

func (p *plan) meta(kind string) typeMeta {
	if p.version.isBeta3() {
		return typeMeta{"kubeadm.k8s.io/v1beta3", kind}
	}
	return typeMeta{"kubeadm.k8s.io/v1beta4", kind}
}

// extraArgs are arguments as that kubeadm wants them: a map, from v1beta4 on a list.
func (p *plan) extraArgs(args map[string]string) any {
	switch {
	case len(args) == 0:
		return nil
	case p.version.isBeta3():
		return args
	}
	var list []nameValue
	for _, k := range slices.Sorted(maps.Keys(args)) {
		list = append(list, nameValue{k, args[k]})
	}
	return list
}

func (p *plan) registration() nodeRegistration {
	n := nodeRegistration{
		Name: p.node.Name, CRISocket: p.criSocket(), KubeletExtraArgs: p.extraArgs(p.node.Args), Ignore: slices.Clone(p.o.ignore),
	}
	if p.hasVIP() && p.role == machineconfig.ControlPlane {
		// Older versions of kubeadm join want no manifest to be there; ours has to be.
		n.Ignore = append(n.Ignore, "DirAvailable--etc-kubernetes-manifests")
	}
	if p.in.Spec.Taints != nil {
		all := []taint{}
		for _, t := range p.in.Spec.Taints {
			all = append(all, taint(t))
		}
		n.Taints = &all
	}
	return n
}

func (p *plan) bindPort() int {
	return cmp.Or(p.o.bindPort, 6443)
}

func (p *plan) localEndpoint() localEndpoint {
	e := localEndpoint{AdvertiseAddress: p.o.advertise, BindPort: p.bindPort()}
	if e.AdvertiseAddress == "" {
		e.AdvertiseAddress, _, _ = strings.Cut(p.in.Spec.NodeIP, ",")
	}
	return e
}

// config is the text of kubeadm's configuration.
func (p *plan) config() (string, error) {
	if p.role != machineconfig.Init {
		return toYAML(p.join())
	}
	return toYAML(p.init(), p.cluster(), kubeletConfiguration{
		typeMeta: typeMeta{"kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"}, CgroupDriver: "systemd", ServerTLSBootstrap: p.o.serverTLS,
	})
}

func (p *plan) join() joinConfiguration {
	j := joinConfiguration{typeMeta: p.meta("JoinConfiguration"), NodeRegistration: p.registration(), SkipPhases: p.o.skipPhases, Patches: p.patches()}
	if p.discovery == discoveryFile {
		j.Discovery = discovery{File: &fileDiscovery{discoverPath}, TLSBootstrapToken: p.token()}
	} else {
		d := &tokenDiscovery{Token: p.token(), APIServerEndpoint: p.target.Endpoint, CACertHashes: p.o.hashes}
		if p.target.CA != "" {
			hash, _ := CAHash(p.target.CA) // checked by read
			d.CACertHashes = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(d.CACertHashes), hash))))
		}
		d.UnsafeSkipCAVerification = p.o.skipCA && len(d.CACertHashes) == 0
		j.Discovery.BootstrapToken = d
	}
	if p.role == machineconfig.ControlPlane {
		j.ControlPlane = &joinControlPlane{LocalAPIEndpoint: p.localEndpoint()}
		if !p.shipsPKI() {
			j.ControlPlane.CertificateKey = lateSecret(p.target.CertificateKey)
		}
	}
	return j
}

// init says how the first control plane is made. kubeadm always makes a bootstrap token; a minute is the least that it
// is left with, since nobody is going to use it.
func (p *plan) init() initConfiguration {
	return initConfiguration{
		typeMeta: p.meta("InitConfiguration"), NodeRegistration: p.registration(), LocalAPIEndpoint: p.localEndpoint(),
		BootstrapTokens: []bootstrapToken{{TTL: "1m0s", Description: "made by kubeadm init, used by nobody"}},
		CertificateKey:  lateSecret(p.target.CertificateKey), SkipPhases: p.o.skipPhases, Patches: p.patches(),
	}
}

func (p *plan) patches() *patches {
	if p.o.patches == "" {
		return nil
	}
	return &patches{Directory: p.o.patches}
}

// component says what is set of one; nil for nothing.
func (p *plan) component(name string, sans []string, more map[string]string) *component {
	args := maps.Clone(p.o.args[name])
	if args == nil {
		args = map[string]string{}
	}
	for k, v := range more {
		if _, isSet := args[k]; !isSet {
			args[k] = v
		}
	}
	if len(args)+len(sans) == 0 {
		return nil
	}
	return &component{CertSANs: sans, ExtraArgs: p.extraArgs(args)}
}

func (p *plan) cluster() clusterConfiguration {
	c := clusterConfiguration{
		typeMeta: p.meta("ClusterConfiguration"), ClusterName: p.o.clusterName, KubernetesVersion: "v" + p.version.String(),
		ControlPlaneEndpoint: p.target.Endpoint, ImageRepository: p.o.imageRepository,
	}
	if n := (networking{p.target.PodCIDR, p.target.ServiceCIDR, p.o.dnsDomain}); n != (networking{}) {
		c.Networking = &n
	}
	sans := slices.Clone(p.o.certSANs)
	if p.target.VIP.IsValid() && p.target.VIP.String() != p.host {
		sans = append(sans, p.target.VIP.String())
	}
	c.APIServer = p.component("apiServer", sans, nil)
	var manager map[string]string
	if p.isFlatcar() {
		// kubeadm mounts the default of this folder into the pod, and Flatcar's /usr is read-only.
		manager = map[string]string{"flex-volume-plugin-dir": p.node.Args["volume-plugin-dir"]}
	}
	c.ControllerManager = p.component("controllerManager", nil, manager)
	c.Scheduler = p.component("scheduler", nil, nil)
	if local := p.component("etcd", nil, nil); local != nil {
		c.Etcd = &etcd{Local: *local}
	}
	c.FeatureGates = p.o.gates
	return c
}

// discoveryKubeconfig holds the cluster's CA and, for API servers without anonymous access, the token: kubeadm looks
// at cluster-info first and takes 403 for an answer, but not 401.
func (p *plan) discoveryKubeconfig() (string, error) {
	type named struct {
		Name    string         `yaml:"name"`
		Cluster map[string]any `yaml:"cluster,omitempty"`
		Context map[string]any `yaml:"context,omitempty"`
		User    map[string]any `yaml:"user,omitempty"`
	}
	name := "slipway"
	return toYAML(struct {
		typeMeta `yaml:",inline"`
		Clusters []named `yaml:"clusters"`
		Contexts []named `yaml:"contexts"`
		Current  string  `yaml:"current-context"`
		Users    []named `yaml:"users"`
	}{
		typeMeta: typeMeta{"v1", "Config"},
		Clusters: []named{{Name: name, Cluster: map[string]any{
			"certificate-authority-data": base64.StdEncoding.EncodeToString([]byte(p.target.CA)),
			"server":                     "https://" + net.JoinHostPort(p.host, p.port),
		}}},
		Contexts: []named{{Name: name, Context: map[string]any{"cluster": name, "user": name}}},
		Current:  name,
		Users:    []named{{Name: name, User: map[string]any{"token": p.token()}}},
	})
}

func toYAML(docs ...any) (string, error) {
	text, err := machineconfig.WriteYAML(docs...)
	return string(text), err
}
