// Package kubeadm owns how a machine joins or makes a Kubernetes cluster with kubeadm. It writes the configuration in
// kubeadm's version, the cluster's certificate authorities, the virtual address, and one script that can run again. It
// never sees a token or a key: those are markers of late values.
//
// Start reading at Emit, then config.go (what kubeadm reads) and script.go (what the machine runs).
//
// # The secret of a cluster's authorities
//
// JoinTarget.PKI names a secret whose value is a YAML map of file name to PEM text with the keys of PKIFiles; NewPKI
// makes one.
//
// # Options
//
// A value may be a list of YAML where commas are allowed.
//
//	advertiseAddress        address that a control plane's API server tells others; the first of nodeIP when empty
//	bindPort                port of a control plane's API server, 6443
//	caCertHashes            sha256:... of the cluster's CA, with commas, for targets without CA
//	certSANs                more names and addresses in the API server's certificate, with commas
//	clusterName             name of the cluster (init)
//	discovery               file or token; file when the target has a CA
//	dnsDomain               domain of services (init)
//	ignorePreflightErrors   names of kubeadm's checks, with commas
//	featureGates            of kubeadm, as NAME=true, with commas (init); those of a component are among its arguments
//	patches                 folder with patches of kubeadm's manifests, such as /etc/kubernetes/patches: write them as files
//	apiServer.ARG           argument of the API server, without --, such as apiServer.audit-log-maxage: 30 (init)
//	controllerManager.ARG   argument of the controller manager (init)
//	scheduler.ARG           argument of the scheduler (init)
//	etcd.ARG                argument of etcd (init)
//	imageRepository         where control plane images come from (init)
//	serverTLSBootstrap      true: kubelets ask the cluster for their serving certificates (init)
//	skipPhases              phases of kubeadm that are left out, with commas
//	tries                   how often the script tries before it gives up, 3
//	unsafeSkipCAVerification  true: trust anyone who answers, for targets without CA
//
// Options that begin with install. belong to package osadapter.
package kubeadm

import (
	"cmp"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/kubeadm/kubelet"
	"slipway.dev/slipway/machineconfig/late"
)

// Bootstrapper emits what kubeadm needs.
type Bootstrapper struct{}

// New returns a Bootstrapper.
func New() *Bootstrapper { return &Bootstrapper{} }

// Kind is kubeadm.
func (*Bootstrapper) Kind() string { return "kubeadm" }

// Paths on the machine. The folder survives reboots, so that a machine that loses power on its way in tries again.
const (
	folder       = "/etc/kubernetes/slipway"
	configPath   = folder + "/kubeadm.yaml"
	discoverPath = folder + "/discovery.conf"
	scriptPath   = folder + "/kubeadm.sh"
	vipPath      = folder + "/kube-vip.yaml"
	pkiFolder    = folder + "/pki"
	donePath     = folder + "/joined"
	kubeletConf  = "/etc/kubernetes/kubelet.conf"

	sentinel         = "/run/cluster-api/bootstrap-success.complete"
	containerdSocket = "unix:///run/containerd/containerd.sock"
)

// Emit returns the files and the script that make the machine a node. The ready path of a worker is its kubelet.conf,
// which exists from when the cluster has signed its certificate. A control plane has kubelet.conf long before it is
// one, so its script writes a file of its own at the end.
func (*Bootstrapper) Emit(in machineconfig.BootstrapInput) (*machineconfig.Activation, machineconfig.Requirements, error) {
	p, err := read(in)
	if err != nil {
		return nil, machineconfig.Requirements{}, err
	}
	a := &machineconfig.Activation{
		Kind: "kubeadm", Exec: []string{"/bin/bash", scriptPath}, ReadyPath: donePath, Sentinel: sentinel,
		After: []string{p.runtimeUnit(), "network-online.target"},
	}
	if p.role == machineconfig.Worker {
		a.ReadyPath = kubeletConf
	}
	secret := func(path, text string) {
		a.Files = append(a.Files, file(path, 0o600, text))
		a.Cleanup = append(a.Cleanup, path)
	}
	text, err := p.config()
	if err != nil {
		return nil, machineconfig.Requirements{}, err
	}
	secret(configPath, text)
	if p.discovery == discoveryFile && p.role != machineconfig.Init {
		text, err := p.discoveryKubeconfig()
		if err != nil {
			return nil, machineconfig.Requirements{}, err
		}
		secret(discoverPath, text)
	}
	if p.shipsPKI() {
		for _, name := range PKIFiles() {
			secret(pkiFolder+"/"+pkiPath(name), late.Marker("secret://"+p.target.PKI+"#"+name))
		}
	}
	if p.hasVIP() {
		text, err := p.vipManifest()
		if err != nil {
			return nil, machineconfig.Requirements{}, err
		}
		a.Files = append(a.Files, file(vipPath, 0o600, text))
	}
	a.Files = append(a.Files, file(scriptPath, 0o700, p.script()))
	return a, p.requirements(), nil
}

// Findings are warnings about a specification that Emit accepts.
func (*Bootstrapper) Findings(in machineconfig.BootstrapInput) machineconfig.Report {
	p, err := read(in)
	if err != nil {
		return nil
	}
	r := p.node.Findings()
	if p.role == machineconfig.Init && !p.shipsPKI() {
		f := r.Warnf("/bootstrap/target", "no-pki", "join target %s has no PKI: kubeadm makes authorities that Slipway does not know", p.target.Name)
		f.Hint = "give it one with `slipway target set`, or write the new cluster's CA into it before others join"
	}
	if p.o.skipCA {
		r.Warnf("/bootstrap/options/unsafeSkipCAVerification", "unverified", "the machine will trust any server at %s", p.target.Endpoint)
	}
	return r
}

func file(path string, mode machineconfig.Mode, text string) machineconfig.File {
	return machineconfig.File{Path: path, Mode: mode, Content: machineconfig.Content{Text: text}}
}

// plan is a specification that has been read and checked.
type plan struct {
	in         machineconfig.BootstrapInput
	role       machineconfig.Role
	target     inventory.JoinTarget
	version    version
	node       kubelet.Node
	o          options
	discovery  discoveryKind
	host, port string // of the target's endpoint
}

func (p *plan) isControlPlane() bool { return p.role != machineconfig.Worker }
func (p *plan) shipsPKI() bool       { return p.isControlPlane() && p.target.PKI != "" }
func (p *plan) hasVIP() bool         { return p.isControlPlane() && p.target.VIP.IsValid() }
func (p *plan) isFlatcar() bool      { return p.in.OS.OS == "flatcar" }

func (p *plan) criSocket() string {
	return cmp.Or(p.in.Spec.CRISocket, containerdSocket)
}

func (p *plan) runtimeUnit() string {
	for _, name := range []string{"crio", "cri-dockerd", "containerd"} {
		if strings.Contains(p.criSocket(), name) {
			return strings.Replace(name, "cri-dockerd", "cri-docker", 1) + ".service"
		}
	}
	return "containerd.service"
}

func (p *plan) requirements() machineconfig.Requirements {
	r := machineconfig.Requirements{
		Binaries: []string{"conntrack", "crictl", "kubeadm", "kubectl", "kubelet", "socat"},
		Version:  p.version.String(),
		Modules:  []string{"br_netfilter", "overlay"},
		Sysctl: map[string]string{
			"net.bridge.bridge-nf-call-ip6tables": "1",
			"net.bridge.bridge-nf-call-iptables":  "1",
			"net.ipv4.ip_forward":                 "1",
		},
		Ports:  []int{10250},
		NoSwap: true,
	}
	if p.runtimeUnit() == "containerd.service" {
		r.Binaries = append([]string{"containerd"}, r.Binaries...)
		slices.Sort(r.Binaries)
	}
	if strings.Contains(p.target.PodCIDR+p.target.ServiceCIDR, ":") {
		r.Sysctl["net.ipv6.conf.all.forwarding"] = "1"
	}
	if p.isControlPlane() {
		r.Ports = append(r.Ports, p.bindPort(), 2379, 2380, 10257, 10259)
		slices.Sort(r.Ports)
	}
	return r
}
