package kubeadm

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/kubeadm/kubelet"
)

type discoveryKind string

const (
	discoveryFile  discoveryKind = "file"
	discoveryToken discoveryKind = "token"
)

// version is of Kubernetes.
type version struct {
	minor, patch int
	suffix       string // such as -rc.1
}

func (v version) String() string { return fmt.Sprintf("1.%d.%d%s", v.minor, v.patch, v.suffix) }

// isBeta3 reports whether that kubeadm does not read v1beta4 yet.
func (v version) isBeta3() bool { return v.minor < 31 }

var versionRE = regexp.MustCompile(`^v?1\.([0-9]{1,3})\.([0-9]{1,3})(-(?:alpha|beta|rc)\.[0-9]{1,3})?$`)

func parseVersion(s string) (version, error) {
	m := versionRE.FindStringSubmatch(s)
	if m == nil {
		return version{}, inventory.Errorf(inventory.Invalid, "/bootstrap/version: %q is not a version of Kubernetes", s).
			WithHint("write all of it, such as 1.35.0, here or in the join target")
	}
	var v version
	v.minor, _ = strconv.Atoi(m[1])
	v.patch, _ = strconv.Atoi(m[2])
	v.suffix = m[3]
	if v.minor < 22 {
		return v, inventory.Errorf(inventory.Invalid, "/bootstrap/version: kubeadm %s is too old", v).WithHint("1.22 and later read what Slipway writes")
	}
	return v, nil
}

// options are BootstrapSpec.Options, read.
type options struct {
	advertise, imageRepository, clusterName, dnsDomain string
	discovery                                          discoveryKind
	bindPort, tries                                    int
	hashes, certSANs, ignore, skipPhases               []string
	skipCA, serverTLS                                  bool
	patches                                            string
	gates                                              map[string]bool
	args                                               map[string]map[string]string // of a component
}

var (
	hashRE   = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	wordRE   = regexp.MustCompile(`^[A-Za-z0-9._:/-]{1,253}$`)
	checkRE  = regexp.MustCompile(`^[A-Za-z0-9._/-]{1,128}$`)
	gateRE   = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9]{0,127})=(true|false)$`)
	folderRE = regexp.MustCompile(`^/[A-Za-z0-9._/-]{1,253}$`)
	argRE    = regexp.MustCompile(`^[a-z][a-z0-9-]{0,127}$`)
)

// components are those whose arguments can be set.
var components = []string{"apiServer", "controllerManager", "etcd", "scheduler"}

// readArgument reads an option such as apiServer.audit-log-maxage; ok is false for other options.
func (o *options) readArgument(k, v string) (ok bool, err error) {
	component, arg, ok := strings.Cut(k, ".")
	if !ok || !slices.Contains(components, component) {
		return false, nil
	}
	if !argRE.MatchString(arg) {
		return true, fmt.Errorf("%q is not an argument: write it without --, as audit-log-maxage", arg)
	}
	v = strings.Join(machineconfig.OptionList(v), ",")
	if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return true, fmt.Errorf("%q holds a control character", v)
	}
	if o.args == nil {
		o.args = map[string]map[string]string{}
	}
	if o.args[component] == nil {
		o.args[component] = map[string]string{}
	}
	o.args[component][arg] = v
	return true, nil
}

// readers read each option.
var readers = map[string]func(o *options, v string) error{
	"advertiseAddress": func(o *options, v string) (err error) {
		o.advertise = v
		_, err = netip.ParseAddr(v)
		return err
	},
	"bindPort":     func(o *options, v string) (err error) { o.bindPort, err = number(v, 1, 65535); return err },
	"tries":        func(o *options, v string) (err error) { o.tries, err = number(v, 1, 100); return err },
	"caCertHashes": func(o *options, v string) (err error) { o.hashes, err = words(v, hashRE); return err },
	"certSANs":     func(o *options, v string) (err error) { o.certSANs, err = words(v, wordRE); return err },
	"ignorePreflightErrors": func(o *options, v string) (err error) {
		o.ignore, err = words(v, checkRE)
		return err
	},
	"skipPhases": func(o *options, v string) (err error) { o.skipPhases, err = words(v, checkRE); return err },
	"patches":    func(o *options, v string) error { o.patches = v; return match(v, folderRE) },
	"featureGates": func(o *options, v string) error {
		o.gates = map[string]bool{}
		for _, item := range machineconfig.OptionList(v) {
			m := gateRE.FindStringSubmatch(item)
			if m == nil {
				return fmt.Errorf("%q is not like NAME=true", item)
			}
			o.gates[m[1]] = m[2] == "true"
		}
		return nil
	},
	"clusterName":     func(o *options, v string) error { o.clusterName = v; return match(v, wordRE) },
	"dnsDomain":       func(o *options, v string) error { o.dnsDomain = v; return match(v, wordRE) },
	"imageRepository": func(o *options, v string) error { o.imageRepository = v; return match(v, wordRE) },
	"discovery": func(o *options, v string) error {
		o.discovery = discoveryKind(v)
		if o.discovery != discoveryFile && o.discovery != discoveryToken {
			return fmt.Errorf("%q is neither file nor token", v)
		}
		return nil
	},
	"unsafeSkipCAVerification": func(o *options, v string) (err error) { o.skipCA, err = strconv.ParseBool(v); return err },
	"serverTLSBootstrap":       func(o *options, v string) (err error) { o.serverTLS, err = strconv.ParseBool(v); return err },
}

func number(v string, least, most int) (int, error) {
	n, err := strconv.Atoi(v)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%q is not a number from %d to %d", v, least, most)
	}
	return n, nil
}

func match(v string, re *regexp.Regexp) error {
	if !re.MatchString(v) {
		return fmt.Errorf("%q is not like %s", v, re)
	}
	return nil
}

func words(v string, re *regexp.Regexp) ([]string, error) {
	all := machineconfig.OptionList(v)
	for i := range all {
		if err := match(all[i], re); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func readOptions(all map[string]string) (options, error) {
	o := options{tries: 3}
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if strings.HasPrefix(k, "install.") {
			continue
		}
		if ok, err := o.readArgument(k, all[k]); ok {
			if err != nil {
				return o, inventory.Errorf(inventory.Invalid, "/bootstrap/options/%s: %v", inventory.Clean(k, 60), err)
			}
			continue
		}
		read, ok := readers[k]
		if !ok {
			return o, inventory.Errorf(inventory.Invalid, "/bootstrap/options/%s: kubeadm has no such option", inventory.Clean(k, 60)).
				WithHint("it has %s, and %s.ARGUMENT", strings.Join(slices.Sorted(maps.Keys(readers)), ", "), strings.Join(components, ".ARGUMENT, "))
		}
		if err := read(&o, all[k]); err != nil {
			return o, inventory.Errorf(inventory.Invalid, "/bootstrap/options/%s: %v", k, err)
		}
	}
	return o, nil
}

// read checks what Emit was given.
func read(in machineconfig.BootstrapInput) (*plan, error) {
	in.Spec = kubelet.WithFields(in.Spec)
	p := &plan{in: in, role: in.Spec.Role}
	p.role = cmp.Or(p.role, machineconfig.Worker)
	if !slices.Contains([]machineconfig.Role{machineconfig.Worker, machineconfig.ControlPlane, machineconfig.Init}, p.role) {
		return nil, inventory.Errorf(inventory.Invalid, "/bootstrap/role: %q is not a role", p.role).WithHint("use worker, control-plane or init")
	}
	if in.Target == nil {
		return nil, inventory.Errorf(inventory.Invalid, "/bootstrap/target: kubeadm needs a join target").
			WithHint("make one with `slipway target add` and name it here")
	}
	p.target = *in.Target
	v := cmp.Or(in.Spec.Version, p.target.Kubernetes)
	var err error
	if p.version, err = parseVersion(v); err != nil {
		return nil, err
	}
	if p.node, err = kubelet.Read(in); err != nil {
		return nil, err
	}
	if p.o, err = readOptions(in.Spec.Options); err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(p.target.Endpoint)
	if _, portErr := number(port, 1, 65535); err != nil || portErr != nil || match(host, wordRE) != nil {
		return nil, inventory.Errorf(inventory.Invalid, "join target %s: %q is not host:port", p.target.Name, p.target.Endpoint).
			WithHint("write the API server as nodes reach it, such as 10.0.0.10:6443")
	}
	p.host, p.port = host, port
	if in.Spec.CRISocket != "" && !strings.HasPrefix(in.Spec.CRISocket, "unix:///") {
		return nil, inventory.Errorf(inventory.Invalid, "/bootstrap/criSocket: %q is not the URL of a socket", in.Spec.CRISocket).
			WithHint("such as %s", containerdSocket)
	}
	if p.role == machineconfig.Init {
		return p, p.checkInit()
	}
	return p, p.checkJoin()
}

func (p *plan) checkInit() error {
	if p.target.CA != "" && p.target.PKI == "" {
		return inventory.Errorf(inventory.Invalid, "join target %s has a CA but no PKI: kubeadm would make another CA", p.target.Name).
			WithHint("name the secret with the authorities in its pki, or take its CA out until the cluster is made")
	}
	return p.checkVIP()
}

func (p *plan) checkJoin() error {
	switch {
	case p.target.Kubeconfig == "" && p.target.Token == "":
		return inventory.Errorf(inventory.Invalid, "join target %s has neither a kubeconfig nor a token", p.target.Name).
			WithHint("with a kubeconfig Slipway mints a token per host")
	case p.role == machineconfig.ControlPlane && p.target.PKI == "" && p.target.CertificateKey == "":
		return inventory.Errorf(inventory.Invalid, "join target %s has neither PKI nor certificateKey: a control plane cannot join", p.target.Name).
			WithHint("name the secret with the cluster's authorities in its pki")
	}
	p.discovery = p.o.discovery
	if p.discovery == "" && p.target.CA != "" {
		p.discovery = discoveryFile
	}
	p.discovery = cmp.Or(p.discovery, discoveryToken)
	if p.target.CA == "" && (p.discovery == discoveryFile || len(p.o.hashes) == 0 && !p.o.skipCA) {
		return inventory.Errorf(inventory.Invalid, "join target %s has no CA: the machine could not tell its cluster from another", p.target.Name).
			WithHint("give the target the cluster's ca.crt, or set the option caCertHashes")
	}
	if p.target.CA != "" {
		if _, err := CAHash(p.target.CA); err != nil {
			return err
		}
	}
	return p.checkVIP()
}
