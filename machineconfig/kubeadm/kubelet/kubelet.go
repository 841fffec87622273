// Package kubelet owns what a kubelet says about its own node when it joins: name, labels, taints, arguments. It never
// knows which bootstrapper starts that kubelet.
package kubelet

import (
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/pointer"
)

// Flags that have a field of their own in a BootstrapSpec.
const (
	FlagLabels     = "node-labels"
	FlagNodeIP     = "node-ip"
	FlagProviderID = "provider-id"
)

// FlatcarVolumePlugins is where a kubelet on Flatcar looks for volume plugins: the default is on its read-only /usr.
const FlatcarVolumePlugins = "/opt/libexec/kubernetes/kubelet-plugins/volume/exec/"

// Node is what a kubelet registers.
type Node struct {
	Name string
	// Labels are those that a kubelet may set, as key=value, sorted.
	Labels []string
	// Refused are keys of labels that only the control plane may set; anyone who watches the cluster sets them when the
	// node has appeared.
	Refused []string
	// Args are the kubelet's arguments, labels and addresses among them, but not the taints.
	Args map[string]string
}

// WithFields returns a specification with node-ip in its own field, also if a user wrote it as an argument of the kubelet.
func WithFields(s machineconfig.BootstrapSpec) machineconfig.BootstrapSpec {
	if ip := s.KubeletArgs[FlagNodeIP]; ip != "" && s.NodeIP == "" {
		s.NodeIP, s.KubeletArgs = ip, maps.Clone(s.KubeletArgs)
		delete(s.KubeletArgs, FlagNodeIP)
	}
	return s
}

// Read checks what a specification says about a node and returns it in the kubelet's terms.
func Read(in machineconfig.BootstrapInput) (Node, error) {
	n := Node{Name: in.Spec.NodeName, Args: map[string]string{}}
	if n.Name == "" && in.Config != nil {
		n.Name = in.Config.Host.Hostname
	}
	if !isDNSName(n.Name) {
		return n, inventory.Errorf(inventory.Invalid, "/bootstrap/nodeName: %q cannot be the name of a node", n.Name).
			WithHint("small letters, digits, '-' and '.', beginning and ending with a letter or digit")
	}
	for _, check := range []func(machineconfig.BootstrapSpec) error{checkLabels, checkTaints, checkArgs, checkAddresses} {
		if err := check(in.Spec); err != nil {
			return n, err
		}
	}
	for k, v := range in.Spec.Labels {
		if MaySet(k) {
			n.Labels = append(n.Labels, k+"="+v)
		} else {
			n.Refused = append(n.Refused, k)
		}
	}
	slices.Sort(n.Labels)
	slices.Sort(n.Refused)
	if in.OS.OS == "flatcar" {
		n.Args["volume-plugin-dir"] = FlatcarVolumePlugins
	}
	for k, v := range in.Spec.KubeletArgs {
		n.Args[k] = v
	}
	for flag, v := range map[string]string{
		FlagLabels: strings.Join(n.Labels, ","), FlagNodeIP: in.Spec.NodeIP, FlagProviderID: in.Spec.ProviderID,
	} {
		if v != "" {
			n.Args[flag] = v
		}
	}
	return n, nil
}

// Findings are warnings about what Read leaves out.
func (n Node) Findings() machineconfig.Report {
	var r machineconfig.Report
	for _, k := range n.Refused {
		f := r.Warnf(pointer.Add("/bootstrap/labels", k), "controller-sets",
			"the API server lets no kubelet give its own node the label %s", k)
		f.Hint = "Slipway's controller sets it when the node has appeared, if the join target has a kubeconfig"
	}
	return r
}

// Taint returns a taint as the kubelet's arguments spell it.
func Taint(t machineconfig.Taint) string { return t.Key + "=" + t.Value + ":" + t.Effect }

// selfLabels are labels of Kubernetes' own namespaces that a kubelet may set (k8s.io/kubelet, well_known_labels.go).
var selfLabels = []string{
	"kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch",
	"topology.kubernetes.io/zone", "topology.kubernetes.io/region",
	"failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
	"beta.kubernetes.io/instance-type", "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
}

// MaySet reports whether a kubelet may give its own node that label. With another one it does not even start.
func MaySet(key string) bool {
	ns, _, ok := strings.Cut(key, "/")
	if !ok || !within(ns, "kubernetes.io") && !within(ns, "k8s.io") {
		return true
	}
	return slices.Contains(selfLabels, key) || within(ns, "kubelet.kubernetes.io") || within(ns, "node.kubernetes.io")
}

func within(ns, domain string) bool { return ns == domain || strings.HasSuffix(ns, "."+domain) }

var (
	dnsRE   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)
	nameRE  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)
	flagRE  = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,127}$`)
	valueRE = regexp.MustCompile(`^[^\x00-\x1f\x7f]*$`)
	idRE    = regexp.MustCompile(`^[a-z0-9.+-]+://[^\s,'"\\]{1,500}$`)
)

func isDNSName(s string) bool { return len(s) <= 253 && dnsRE.MatchString(s) }

// isKey reports whether s is the key of a label or taint: a name, with a DNS name in front or not.
func isKey(s string) bool {
	prefix, name, ok := strings.Cut(s, "/")
	if !ok {
		return nameRE.MatchString(s)
	}
	return isDNSName(prefix) && nameRE.MatchString(name)
}

func isValue(s string) bool { return s == "" || nameRE.MatchString(s) }

func checkLabels(s machineconfig.BootstrapSpec) error {
	for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
		if !isKey(k) || !isValue(s.Labels[k]) {
			return inventory.Errorf(inventory.Invalid, "/bootstrap/labels: %q: %q is not a label", k, s.Labels[k]).
				WithHint("a key such as example.com/rack, and a value of at most 63 letters, digits, '-', '_' and '.'")
		}
	}
	return nil
}

func checkTaints(s machineconfig.BootstrapSpec) error {
	for _, t := range s.Taints {
		if !isKey(t.Key) || !isValue(t.Value) || !slices.Contains([]string{"NoSchedule", "PreferNoSchedule", "NoExecute"}, t.Effect) {
			return inventory.Errorf(inventory.Invalid, "/bootstrap/taints/%s: %q is not a taint", t.Key, Taint(t)).
				WithHint("its effect is NoSchedule, PreferNoSchedule or NoExecute")
		}
	}
	return nil
}

func checkArgs(s machineconfig.BootstrapSpec) error {
	own := map[string]string{
		FlagLabels: "labels", FlagNodeIP: "nodeIP", FlagProviderID: "providerID",
		"register-with-taints": "taints", "hostname-override": "nodeName", "container-runtime-endpoint": "criSocket",
	}
	for _, k := range slices.Sorted(maps.Keys(s.KubeletArgs)) {
		if field, ok := own[k]; ok {
			return inventory.Errorf(inventory.Invalid, "/bootstrap/kubeletArgs/%s: has a field of its own", k).WithHint("use bootstrap.%s", field)
		}
		if !flagRE.MatchString(k) || len(s.KubeletArgs[k]) > 4096 || !valueRE.MatchString(s.KubeletArgs[k]) {
			return inventory.Errorf(inventory.Invalid, "/bootstrap/kubeletArgs: %q is not an argument of one line", k).
				WithHint("write its name without dashes in front")
		}
	}
	return nil
}

func checkAddresses(s machineconfig.BootstrapSpec) error {
	if s.NodeIP != "" {
		for _, ip := range strings.Split(s.NodeIP, ",") {
			if _, err := netip.ParseAddr(ip); err != nil {
				return inventory.Errorf(inventory.Invalid, "/bootstrap/nodeIP: %q is not an address", ip).
					WithHint("one address, or an IPv4 and an IPv6 one with a comma between them")
			}
		}
	}
	if s.ProviderID != "" && !idRE.MatchString(s.ProviderID) {
		return inventory.Errorf(inventory.Invalid, "/bootstrap/providerID: %q is not a provider id", s.ProviderID).
			WithHint("such as slipway://site/host/claim")
	}
	return nil
}
