package validation

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

var (
	versionRE    = regexp.MustCompile(`^\d+\.\d+(\.\d+)?([-+][A-Za-z0-9.+-]{1,60})?$`)
	nodeNameRE   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)
	labelNameRE  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)
	kubeletRE    = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)
	providerIDRE = regexp.MustCompile(`^[a-z0-9][a-z0-9.+-]*://[A-Za-z0-9_.:/@%+-]{0,240}$`)
	socketRE     = regexp.MustCompile(`^unix:///[A-Za-z0-9_./-]{1,100}$`)
	optionRE     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,62}$`)
)

// bootstrap checks what all bootstrappers have in common; each of them checks the rest itself.
type bootstrap struct{ *checker }

func (v bootstrap) check() {
	b := v.c.Bootstrap
	if b == nil {
		return
	}
	const at = "/bootstrap"
	if b.Kind == "" {
		v.r.Errorf(at+"/kind", "missing", "is needed").Hint = "use kubeadm, k3s, microk8s, talos, capi-secret or none"
	} else {
		v.name(at+"/kind", "bootstrapper", b.Kind)
	}
	v.name(at+"/target", "join target", b.Target)
	v.name(at+"/install", "way to install", b.Install)
	if s, ok := strings.CutPrefix(b.Secret, "secret://"); ok {
		v.invalid(at+"/secret", "write "+inventory.Clean(s, 63), "is the name of a secret here, without secret://")
	} else {
		v.name(at+"/secret", "secret", b.Secret)
	}
	if b.Role != "" {
		v.oneOf(at+"/role", string(b.Role), string(machineconfig.Worker), string(machineconfig.ControlPlane), string(machineconfig.Init))
	}
	if b.SecretFormat != "" {
		v.oneOf(at+"/secretFormat", b.SecretFormat, "cloud-config", "ignition")
	}
	v.form(at+"/version", strings.TrimSpace(b.Version), versionRE, "a version", "write it as 1.35.0, without v")
	v.form(at+"/nodeName", b.NodeName, nodeNameRE, "the name of a node", "use a-z, 0-9, - and .")
	v.form(at+"/providerID", b.ProviderID, providerIDRE, "a provider id", "write it as slipway://site/host")
	v.form(at+"/criSocket", b.CRISocket, socketRE, "a socket", "write it as unix:///run/containerd/containerd.sock")
	if len(b.NodeName) > 253 {
		v.invalid(at+"/nodeName", "", "is longer than 253 letters")
	}
	v.nodeIP(at+"/nodeIP", b.NodeIP)
	v.nodeMaps(at, b)
	v.taints(at+"/taints", b.Taints)
}

func (v bootstrap) nodeIP(at, s string) {
	if s == "" {
		return
	}
	for _, one := range strings.SplitN(s, ",", 3) {
		if a, err := netip.ParseAddr(one); err != nil || a.Zone() != "" {
			v.invalid(at, "write an address, or an IPv4 and an IPv6 one with a comma", "%s is not an address", shown(one))
		}
	}
}

func (v bootstrap) nodeMaps(at string, b *machineconfig.BootstrapSpec) {
	v.atMost(at+"/labels", len(b.Labels), 256)
	v.atMost(at+"/kubeletArgs", len(b.KubeletArgs), 256)
	v.atMost(at+"/options", len(b.Options), 256)
	for _, k := range slices.Sorted(maps.Keys(b.Labels)) {
		p := pointer.Add(at+"/labels", k)
		v.labelKey(p, k)
		v.labelValue(p, b.Labels[k])
	}
	for _, k := range slices.Sorted(maps.Keys(b.KubeletArgs)) {
		p := pointer.Add(at+"/kubeletArgs", k)
		v.match(p, k, kubeletRE, "an argument of the kubelet", "write it without the leading --, as max-pods")
		v.oneLine(p, b.KubeletArgs[k], 4096)
	}
	for _, k := range slices.Sorted(maps.Keys(b.Options)) {
		p := pointer.Add(at+"/options", k)
		v.match(p, k, optionRE, "the name of an option", "see the bootstrapper's documentation")
		if strings.ContainsRune(b.Options[k], 0) {
			v.invalid(p, "", "holds a NUL character")
		}
	}
}

const labelHint = "use letters, digits, -, _ and ., up to 63; a key may have a prefix such as example.com/"

func (v bootstrap) labelKey(p, key string) {
	prefix, name, ok := strings.Cut(key, "/")
	if !ok {
		prefix, name = "", key
	}
	if ok && (!nodeNameRE.MatchString(prefix) || len(prefix) > 253) || !labelNameRE.MatchString(name) {
		v.invalid(p, labelHint, "%s is not a key of a label", shown(key))
	}
}

func (v bootstrap) labelValue(p, s string) {
	if s != "" && !labelNameRE.MatchString(s) {
		v.invalid(p, labelHint, "%s is not a value of a label", shown(s))
	}
}

func (v bootstrap) taints(at string, taints []machineconfig.Taint) {
	v.atMost(at, len(taints), 64)
	var keys []string
	for _, t := range taints {
		p := pointer.Add(at, t.PathKey())
		keys = append(keys, t.PathKey())
		v.labelKey(pointer.Add(p, "key"), t.Key)
		v.labelValue(pointer.Add(p, "value"), t.Value)
		v.oneOf(pointer.Add(p, "effect"), t.Effect, "NoSchedule", "PreferNoSchedule", "NoExecute")
	}
	v.duplicates(at, keys)
}
