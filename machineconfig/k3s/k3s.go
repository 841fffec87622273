// Package k3s owns how a machine joins or makes a k3s cluster: its config.yaml, its unit and one script that can be run
// again. It never sees the token, which is a marker of a late value.
//
// # Options
//
//	binarySHA256   checksum of the k3s binary; without it the image has to have k3s (install: none)
//	binaryURL      where the machine fetches it; the release on GitHub when empty
//	NAME           a setting of k3s's config.yaml, such as flannel-backend: none or disable: [traefik, servicelb]; commas
//	               make a list for settings that k3s repeats (disable, tls-san, kube-apiserver-arg, ...)
//	config.NAME    any setting, one that Slipway does not know too
//	token          name of the secret with the token, for specifications without secret and targets without token
//
// Options that begin with install. belong to package osadapter.
package k3s

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/kubeadm/kubelet"
	"slipway.dev/slipway/machineconfig/late"
)

// Bootstrapper emits what k3s needs.
type Bootstrapper struct{}

// New returns a Bootstrapper.
func New() *Bootstrapper { return &Bootstrapper{} }

// Kind is k3s.
func (*Bootstrapper) Kind() string { return "k3s" }

// Paths on the machine. k3s reads config.yaml and the token at every start, so both stay.
const (
	configPath = "/etc/rancher/k3s/config.yaml"
	tokenPath  = "/etc/rancher/k3s/token"
	scriptPath = "/etc/rancher/k3s/slipway.sh"
	donePath   = "/etc/rancher/k3s/slipway-joined"
	sentinel   = "/run/cluster-api/bootstrap-success.complete"
)

var versionRE = regexp.MustCompile(`^v?(1\.[0-9]{1,3}\.[0-9]{1,3})(-rc[0-9]{1,3})?(?:[+-](k3s[0-9]{1,3}))?$`)

// Emit returns the files and the script that make the machine a k3s node.
func (*Bootstrapper) Emit(in machineconfig.BootstrapInput) (*machineconfig.Activation, machineconfig.Requirements, error) {
	p, err := read(in)
	if err != nil {
		return nil, machineconfig.Requirements{}, err
	}
	config, err := p.config()
	if err != nil {
		return nil, machineconfig.Requirements{}, err
	}
	a := &machineconfig.Activation{
		Kind: "k3s", Exec: []string{"/bin/bash", scriptPath}, ReadyPath: donePath, Sentinel: sentinel,
		After: []string{"network-online.target"},
		Files: []machineconfig.File{
			{Path: configPath, Mode: 0o600, Content: machineconfig.Content{Text: config}},
			{Path: p.unitPath(), Mode: 0o644, Content: machineconfig.Content{Text: p.unit()}},
			{Path: scriptPath, Mode: 0o700, Content: machineconfig.Content{Text: p.script()}},
		},
	}
	if p.token != "" {
		a.Files = append(a.Files, machineconfig.File{
			Path: tokenPath, Mode: 0o600, Content: machineconfig.Content{Text: late.Marker("secret://" + p.token)},
		})
	}
	r := machineconfig.Requirements{
		Version: p.version, Modules: []string{"br_netfilter", "overlay"},
		Sysctl: map[string]string{"net.ipv4.ip_forward": "1", "net.bridge.bridge-nf-call-iptables": "1"},
		Ports:  []int{8472, 10250},
	}
	if p.isServer() {
		r.Ports = []int{2379, 2380, 6443, 8472, 10250}
	}
	if p.remote.URL == "" {
		r.Binaries = []string{"k3s"}
	} else {
		a.Files = append(a.Files, machineconfig.File{Path: p.binary(), Mode: 0o755, Content: machineconfig.Content{Remote: &p.remote}})
	}
	return a, r, nil
}

// Findings are warnings about a specification that Emit accepts.
func (*Bootstrapper) Findings(in machineconfig.BootstrapInput) machineconfig.Report {
	p, err := read(in)
	if err != nil {
		return nil
	}
	return p.node.Findings()
}

type plan struct {
	in      machineconfig.BootstrapInput
	role    machineconfig.Role
	node    kubelet.Node
	token   string // name of its secret
	version string // of Kubernetes
	remote  machineconfig.Remote
	extra   map[string]string
}

func (p *plan) isServer() bool { return p.role != machineconfig.Worker }

func (p *plan) verb() string {
	if p.isServer() {
		return "server"
	}
	return "agent"
}

func (p *plan) unitName() string {
	if p.isServer() {
		return "k3s.service"
	}
	return "k3s-agent.service"
}

func (p *plan) unitPath() string { return "/etc/systemd/system/" + p.unitName() }

// binary is where k3s is: /usr is read-only on Flatcar.
func (p *plan) binary() string {
	if p.in.OS.OS == "flatcar" {
		return "/opt/bin/k3s"
	}
	return "/usr/local/bin/k3s"
}

func read(in machineconfig.BootstrapInput) (*plan, error) {
	in.Spec = kubelet.WithFields(in.Spec)
	p := &plan{in: in, role: in.Spec.Role, extra: map[string]string{}}
	p.role = cmp.Or(p.role, machineconfig.Worker)
	if !slices.Contains([]machineconfig.Role{machineconfig.Worker, machineconfig.ControlPlane, machineconfig.Init}, p.role) {
		return nil, inventory.Errorf(inventory.Invalid, "/bootstrap/role: %q is not a role", p.role).WithHint("use worker, control-plane or init")
	}
	var err error
	if p.node, err = kubelet.Read(in); err != nil {
		return nil, err
	}
	p.token = in.Spec.Secret
	if t := in.Target; t != nil && p.token == "" {
		p.token = t.Token
	}
	for k, v := range in.Spec.Options {
		name, isConfig := strings.CutPrefix(k, "config.")
		switch {
		case slices.Contains(settings, k):
			p.extra[k] = v
		case isConfig && settingRE.MatchString(name) && !slices.Contains(ours, name):
			p.extra[name] = v
		case isConfig:
			return nil, inventory.Errorf(inventory.Invalid, "/bootstrap/options/%s: cannot be set here", inventory.Clean(k, 60)).
				WithHint("it is not a setting of k3s, or one that bootstrap has a field for")
		case k == "token" && p.token == "":
			p.token = v
		case !slices.Contains([]string{"binarySHA256", "binaryURL", "token"}, k) && !strings.HasPrefix(k, "install."):
			return nil, inventory.Errorf(inventory.Invalid, "/bootstrap/options/%s: k3s has no such option", inventory.Clean(k, 60)).
				WithHint("it has binarySHA256, binaryURL, token and the settings of k3s's config.yaml by their names; one that is newer than Slipway as config.NAME")
		}
	}
	if err := p.readTarget(); err != nil {
		return nil, err
	}
	return p, p.readBinary()
}

func (p *plan) readTarget() error {
	if p.role == machineconfig.Init {
		return nil
	}
	if p.in.Target == nil {
		return inventory.Errorf(inventory.Invalid, "/bootstrap/target: k3s needs a join target, but for init").
			WithHint("make one with `slipway target add` and name it here")
	}
	if host, _, err := net.SplitHostPort(p.in.Target.Endpoint); err != nil || host == "" {
		return inventory.Errorf(inventory.Invalid, "join target %s: %q is not host:port", p.in.Target.Name, p.in.Target.Endpoint).
			WithHint("write a k3s server as nodes reach it, such as 10.0.0.10:6443")
	}
	if p.token == "" {
		return inventory.Errorf(inventory.Invalid, "/bootstrap/secret: k3s needs a token to join").
			WithHint("store /var/lib/rancher/k3s/server/token as a secret and name it here, or in the join target's token")
	}
	return nil
}

var (
	sumRE     = regexp.MustCompile(`^[0-9a-f]{64}$`)
	settingRE = regexp.MustCompile(`^[a-z][a-z0-9-]{0,60}$`)
	// ours are settings that come from fields of the specification.
	ours = []string{
		"server", "token", "token-file", "node-name", "node-label", "node-taint", "kubelet-arg", "node-ip", "cluster-init",
		"container-runtime-endpoint",
	}
	// lists are settings that k3s repeats.
	lists = strings.Fields(`disable tls-san kube-apiserver-arg kube-controller-manager-arg kube-cloud-controller-manager-arg kube-scheduler-arg
		kube-proxy-arg etcd-arg cluster-dns node-external-ip cluster-cidr service-cidr node-internal-dns node-external-dns kubelet-arg`)
	// settings are those of k3s server and k3s agent, besides ours.
	settings = strings.Fields(`advertise-address advertise-port agent-token agent-token-file airgap-extra-registry bind-address cluster-cidr
		cluster-dns cluster-domain cluster-reset-restore-path datastore-cafile datastore-certfile datastore-endpoint datastore-keyfile
		data-dir debug default-local-storage-path default-runtime disable disable-agent disable-apiserver disable-apiserver-lb
		disable-cloud-controller disable-controller-manager disable-default-registry-endpoint disable-etcd disable-helm-controller
		disable-kube-proxy disable-network-policy disable-scheduler docker egress-selector-mode embedded-registry enable-pprof
		etcd-arg etcd-disable-snapshots etcd-expose-metrics etcd-s3 etcd-s3-bucket etcd-s3-endpoint etcd-s3-folder etcd-s3-region
		etcd-s3-skip-ssl-verify etcd-s3-timeout etcd-snapshot-compress etcd-snapshot-dir etcd-snapshot-name etcd-snapshot-retention
		etcd-snapshot-schedule-cron flannel-backend flannel-conf flannel-cni-conf flannel-external-ip flannel-iface flannel-ipv6-masq
		helm-job-image https-listen-port image-credential-provider-bin-dir image-credential-provider-config image-service-endpoint
		kine-tls kube-apiserver-arg kube-cloud-controller-manager-arg kube-controller-manager-arg kube-proxy-arg kube-scheduler-arg
		kubelet-certificate-renewal-warning-days lb-server-port log multi-cluster-cidr node-external-dns node-external-ip
		node-internal-dns nonroot-devices pause-image prefer-bundled-bin private-registry protect-kernel-defaults
		resolv-conf rootless secrets-encryption secrets-encryption-provider selinux service-cidr service-node-port-range
		servicelb-namespace snapshotter supervisor-metrics system-default-registry tls-san tls-san-security v vmodule vpn-auth
		vpn-auth-file with-node-id write-kubeconfig write-kubeconfig-group write-kubeconfig-mode`)
)

// readBinary finds out where k3s comes from.
func (p *plan) readBinary() error {
	o, v := p.in.Spec.Options, p.in.Spec.Version
	if v == "" && p.in.Target != nil {
		v = p.in.Target.Kubernetes
	}
	m := versionRE.FindStringSubmatch(v)
	if v != "" && m == nil {
		return inventory.Errorf(inventory.Invalid, "/bootstrap/version: %q is not a version of k3s", v).WithHint("such as 1.35.0+k3s1")
	}
	if m != nil {
		p.version = m[1]
	}
	switch {
	case p.in.Spec.Install == "none" || p.in.Spec.Install == "image":
		return nil
	case !sumRE.MatchString(o["binarySHA256"]):
		return inventory.Errorf(inventory.Invalid, "/bootstrap/options/binarySHA256: k3s is fetched with a checksum only").
			WithHint("take it from sha256sum-amd64.txt of the k3s release; or set install: none when the image has k3s")
	case o["binaryURL"] != "":
		u, err := url.Parse(o["binaryURL"])
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return inventory.Errorf(inventory.Invalid, "/bootstrap/options/binaryURL: %q is not an http or https URL", o["binaryURL"])
		}
		p.remote = machineconfig.Remote{URL: o["binaryURL"], SHA256: o["binarySHA256"]}
		return nil
	case m == nil || m[3] == "":
		return inventory.Errorf(inventory.Invalid, "/bootstrap/version: %q does not name a release of k3s", v).WithHint("such as 1.35.0+k3s1")
	}
	file := "k3s"
	if p.in.OS.Arch == inventory.ARM64 {
		file = "k3s-arm64"
	}
	p.remote = machineconfig.Remote{
		URL:    "https://github.com/k3s-io/k3s/releases/download/v" + m[1] + m[2] + "%2B" + m[3] + "/" + file,
		SHA256: o["binarySHA256"],
	}
	return nil
}

// config is k3s's config.yaml.
func (p *plan) config() (string, error) {
	c := map[string]any{"node-name": p.node.Name}
	for k, v := range p.extra {
		if items := machineconfig.OptionList(v); slices.Contains(lists, k) || strings.HasSuffix(v, "\n") {
			c[k] = items
		} else {
			c[k] = v
		}
	}
	if p.token != "" {
		c["token-file"] = tokenPath
	}
	if p.role == machineconfig.Init {
		c["cluster-init"] = true
	} else {
		c["server"] = "https://" + p.in.Target.Endpoint
	}
	if ip := p.in.Spec.NodeIP; ip != "" {
		c["node-ip"] = ip
	}
	if s := p.in.Spec.CRISocket; s != "" {
		c["container-runtime-endpoint"] = s
	}
	if len(p.node.Labels) > 0 {
		c["node-label"] = p.node.Labels
	}
	var taints, args []string
	for _, t := range p.in.Spec.Taints {
		taints = append(taints, kubelet.Taint(t))
	}
	if taints != nil {
		c["node-taint"] = taints
	}
	for _, k := range slices.Sorted(maps.Keys(p.node.Args)) {
		if k != kubelet.FlagLabels && k != kubelet.FlagNodeIP {
			args = append(args, k+"="+p.node.Args[k])
		}
	}
	if args != nil {
		c["kubelet-arg"] = args
	}
	if p.isServer() {
		p.serverConfig(c)
	}
	text, err := machineconfig.WriteYAML(c)
	return string(text), err
}

func (p *plan) serverConfig(c map[string]any) {
	t := p.in.Target
	if t == nil {
		return
	}
	var sans []string
	if all, ok := c["tls-san"].([]string); ok {
		sans = all
	}
	if host, _, err := net.SplitHostPort(t.Endpoint); err == nil {
		sans = append(sans, host)
	}
	if t.VIP.IsValid() {
		sans = append(sans, t.VIP.String())
	}
	slices.Sort(sans)
	c["tls-san"] = slices.Compact(sans)
	if t.PodCIDR != "" {
		c["cluster-cidr"] = t.PodCIDR
	}
	if t.ServiceCIDR != "" {
		c["service-cidr"] = t.ServiceCIDR
	}
}

// unit is what k3s's own install script writes, as far as it matters.
func (p *plan) unit() string {
	return fmt.Sprintf(`[Unit]
Description=Lightweight Kubernetes (%[1]s)
Documentation=https://k3s.io
Wants=network-online.target
After=network-online.target

[Service]
Type=%[2]s
EnvironmentFile=-/etc/default/%%N
EnvironmentFile=-/etc/sysconfig/%%N
KillMode=process
Delegate=yes
LimitNOFILE=1048576
LimitNPROC=infinity
LimitCORE=infinity
TasksMax=infinity
TimeoutStartSec=0
Restart=always
RestartSec=5s
ExecStartPre=-/sbin/modprobe br_netfilter
ExecStartPre=-/sbin/modprobe overlay
ExecStart=%[3]s %[1]s

[Install]
WantedBy=multi-user.target
`, p.verb(), map[bool]string{true: "notify", false: "exec"}[p.isServer()], p.binary())
}

// script starts k3s and waits until its kubelet has credentials, which only a server that knows the token gives.
func (p *plan) script() string {
	return fmt.Sprintf(`#!/bin/bash
# Starts k3s and waits until it is a node. Safe to run again.
set -euo pipefail
systemctl daemon-reload
systemctl enable --now --no-block %[1]s
for ((i = 0; i < 300; i++)); do
  if [ -s /var/lib/rancher/k3s/agent/kubelet.kubeconfig ] && systemctl is-active --quiet %[1]s; then
    touch %[2]s
    exit 0
  fi
  sleep 2
done
echo "k3s is not a node after 10 minutes: see journalctl -u %[1]s" >&2
exit 1
`, p.unitName(), donePath)
}
