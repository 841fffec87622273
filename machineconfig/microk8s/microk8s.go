// Package microk8s owns how a machine joins or makes a MicroK8s cluster: the snap, the arguments of its kubelet, and one
// script that can run again. It never sees the token, which is a marker of a late value.
//
// The token is the secret that the specification or the join target names. It is what `microk8s add-node` prints after the
// slash, or all of it, such as 10.0.0.10:25000/TOKEN/HASH. On the first node (init) it is a token of 32 letters and digits
// that others will join with, and may be absent.
//
// # Options
//
//	channel    of the snap; MAJOR.MINOR/stable of the version when empty
//	addons     that init enables, with commas
//	joinPort   of the node that is joined, 25000
//	tokenTTL   seconds that the token of init is good for, 86400
//
// Options that begin with install. belong to package osadapter.
package microk8s

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/kubeadm/kubelet"
	"slipway.dev/slipway/machineconfig/late"
)

// Bootstrapper emits what MicroK8s needs.
type Bootstrapper struct{}

// New returns a Bootstrapper.
func New() *Bootstrapper { return &Bootstrapper{} }

// Kind is microk8s.
func (*Bootstrapper) Kind() string { return "microk8s" }

// Paths on the machine.
const (
	folder     = "/etc/slipway/microk8s"
	scriptPath = folder + "/join.sh"
	argsPath   = folder + "/kubelet-args"
	tokenPath  = folder + "/token"
	donePath   = folder + "/joined"
	sentinel   = "/run/cluster-api/bootstrap-success.complete"
)

// Emit returns the files and the script that make the machine a MicroK8s node.
func (*Bootstrapper) Emit(in machineconfig.BootstrapInput) (*machineconfig.Activation, machineconfig.Requirements, error) {
	p, err := read(in)
	if err != nil {
		return nil, machineconfig.Requirements{}, err
	}
	a := &machineconfig.Activation{
		Kind: "microk8s", Exec: []string{"/bin/bash", scriptPath}, ReadyPath: donePath, Sentinel: sentinel,
		After: []string{"network-online.target", "snapd.seeded.service"},
		Files: []machineconfig.File{
			{Path: argsPath, Mode: 0o644, Content: machineconfig.Content{Text: p.args()}},
			{Path: scriptPath, Mode: 0o700, Content: machineconfig.Content{Text: p.script()}},
		},
	}
	if p.token != "" {
		a.Files = append(a.Files, machineconfig.File{
			Path: tokenPath, Mode: 0o600, Content: machineconfig.Content{Text: late.Marker("secret://" + p.token)},
		})
		a.Cleanup = []string{tokenPath}
	}
	return a, machineconfig.Requirements{
		Binaries: []string{"snap"}, Version: p.version, Modules: []string{"br_netfilter", "overlay"},
		Sysctl: map[string]string{"net.ipv4.ip_forward": "1"}, Ports: []int{10250, 16443, 19001, 25000},
	}, nil
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
	in       machineconfig.BootstrapInput
	role     machineconfig.Role
	node     kubelet.Node
	token    string // name of its secret
	version  string
	channel  string
	addons   []string
	joinAt   string // host:port
	tokenTTL int
}

var (
	versionRE = regexp.MustCompile(`^v?(1\.[0-9]{1,3})(\.[0-9]{1,3})?$`)
	channelRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9./_-]{0,60}$`)
	hostRE    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.:-]{0,252}$`)
)

func read(in machineconfig.BootstrapInput) (*plan, error) {
	in.Spec = kubelet.WithFields(in.Spec)
	p := &plan{in: in, role: in.Spec.Role, token: in.Spec.Secret}
	p.role = cmp.Or(p.role, machineconfig.Worker)
	if !slices.Contains([]machineconfig.Role{machineconfig.Worker, machineconfig.ControlPlane, machineconfig.Init}, p.role) {
		return nil, inventory.Errorf(inventory.Invalid, "/bootstrap/role: %q is not a role", p.role).WithHint("use worker, control-plane or init")
	}
	var err error
	if p.node, err = kubelet.Read(in); err != nil {
		return nil, err
	}
	if in.Spec.CRISocket != "" {
		return nil, inventory.Errorf(inventory.Invalid, "/bootstrap/criSocket: MicroK8s brings its own container runtime").WithHint("leave it out")
	}
	v := in.Spec.Version
	if in.Target != nil {
		v = cmp.Or(v, in.Target.Kubernetes)
		p.token = cmp.Or(p.token, in.Target.Token)
	}
	m := versionRE.FindStringSubmatch(v)
	if m == nil && v != "" {
		return nil, inventory.Errorf(inventory.Invalid, "/bootstrap/version: %q is not a version of MicroK8s", v).WithHint("such as 1.35")
	}
	if m != nil {
		p.version, p.channel = m[1], m[1]+"/stable"
	}
	if err := p.readOptions(in.Spec.Options); err != nil {
		return nil, err
	}
	return p, p.check()
}

func (p *plan) readOptions(all map[string]string) error {
	port := 25000
	p.tokenTTL = 86400
	for _, k := range slices.Sorted(maps.Keys(all)) {
		v, ok := all[k], true
		switch k {
		case "channel":
			p.channel, ok = v, channelRE.MatchString(v)
		case "addons":
			p.addons = machineconfig.OptionList(v)
			ok = !slices.ContainsFunc(p.addons, func(a string) bool { return !channelRE.MatchString(a) })
		case "joinPort":
			port, ok = number(v, 65535)
		case "tokenTTL":
			p.tokenTTL, ok = number(v, 1<<30)
		default:
			if strings.HasPrefix(k, "install.") {
				continue
			}
			return inventory.Errorf(inventory.Invalid, "/bootstrap/options/%s: microk8s has no such option", inventory.Clean(k, 60)).
				WithHint("it has addons, channel, joinPort and tokenTTL")
		}
		if !ok {
			return inventory.Errorf(inventory.Invalid, "/bootstrap/options/%s: %q is not possible", k, v)
		}
	}
	if p.in.Target != nil {
		host, _, err := net.SplitHostPort(p.in.Target.Endpoint)
		if err != nil || !hostRE.MatchString(host) {
			return inventory.Errorf(inventory.Invalid, "join target %s: %q is not host:port", p.in.Target.Name, p.in.Target.Endpoint)
		}
		p.joinAt = net.JoinHostPort(host, strconv.Itoa(port))
	}
	return nil
}

func number(v string, most int) (int, bool) {
	n, err := strconv.Atoi(v)
	return n, err == nil && n > 0 && n <= most
}

func (p *plan) check() error {
	switch {
	case p.channel == "":
		return inventory.Errorf(inventory.Invalid, "/bootstrap/version: MicroK8s of which version?").WithHint("such as 1.35, or set the option channel")
	case p.role == machineconfig.Init:
		return nil
	case p.in.Target == nil:
		return inventory.Errorf(inventory.Invalid, "/bootstrap/target: microk8s needs a join target, but for init").
			WithHint("make one with `slipway target add` and name it here")
	case p.token == "":
		return inventory.Errorf(inventory.Invalid, "/bootstrap/secret: microk8s needs a token to join").
			WithHint("store what `microk8s add-node` printed as a secret and name it here")
	}
	return nil
}

// args are lines that the script adds to the kubelet's arguments.
func (p *plan) args() string {
	all := maps.Clone(p.node.Args)
	if p.in.Spec.NodeName != "" {
		all["hostname-override"] = p.node.Name
	}
	var taints []string
	for _, t := range p.in.Spec.Taints {
		taints = append(taints, kubelet.Taint(t))
	}
	if taints != nil {
		all["register-with-taints"] = strings.Join(taints, ",")
	}
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(all)) {
		b.WriteString("--" + k + "=" + all[k] + "\n")
	}
	return b.String()
}

func (p *plan) script() string {
	var b strings.Builder
	fmt.Fprintf(&b, scriptHead, folder, p.channel)
	switch p.role {
	case machineconfig.Init:
		if p.token != "" {
			fmt.Fprintf(&b, "microk8s add-node --token \"$(cat \"$folder/token\")\" --token-ttl %d >/dev/null\n", p.tokenTTL)
		}
		for _, a := range p.addons {
			fmt.Fprintf(&b, "microk8s enable %s\n", a)
		}
	case machineconfig.Worker:
		fmt.Fprintf(&b, scriptJoin, p.joinAt, " --worker")
	case machineconfig.ControlPlane:
		fmt.Fprintf(&b, scriptJoin, p.joinAt, "")
	}
	b.WriteString("touch \"$folder/joined\"\n")
	return b.String()
}

const (
	scriptHead = `#!/bin/bash
# Makes this machine a MicroK8s node. Safe to run again.
set -euo pipefail
export PATH="$PATH:/snap/bin"
folder=%[1]s
if [ -e "$folder/joined" ]; then
  exit 0
fi
snap wait system seed.loaded
snap list microk8s >/dev/null 2>&1 || snap install microk8s --classic --channel=%[2]s
microk8s status --wait-ready --timeout 600 >/dev/null
args=/var/snap/microk8s/current/args/kubelet
while IFS= read -r line; do
  grep -qxF -e "$line" "$args" || printf '%%s\n' "$line" >>"$args"
done <"$folder/kubelet-args"
snap restart microk8s.daemon-kubelite
microk8s status --wait-ready --timeout 600 >/dev/null
`
	scriptJoin = `token=$(cat "$folder/token")
case "$token" in
*/*) ;;
*) token="%[1]s/$token" ;;
esac
microk8s join "$token"%[2]s
`
)
