package translate

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"slipway.dev/slipway/machineconfig/layer"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// controlPlaneTaint is what kubeadm gives control planes by itself, as long as no taints are asked for.
const controlPlaneTaint = "node-role.kubernetes.io/control-plane"

// configOf is the configuration that a MetalMachine's own fields make.
func configOf(mm *v1alpha1.MetalMachine, o Options) (*machineconfig.Config, error) {
	var c machineconfig.Config
	var err error
	if c.Files, err = files(mm, o.Owner); err != nil {
		return nil, err
	}
	if c.Users, err = users(mm, o.Owner); err != nil {
		return nil, err
	}
	if err := versions(&mm.Spec.Versions, mm); err != nil {
		return nil, err
	}
	if !IsNode(mm) {
		return &c, plainServer(&mm.Spec)
	}
	if c.Bootstrap, err = bootstrap(mm, o); err != nil {
		return nil, err
	}
	j := mm.Spec.Bootstrap.Join
	c.Commands = append(commands(machineconfig.FirstBoot, j.PreCommands), commands(machineconfig.PostBootstrap, j.PostCommands)...)
	return &c, nil
}

// plainServer refuses what a server that joins no cluster cannot have: else it would be ready without it.
func plainServer(s *v1alpha1.MetalMachineSpec) error {
	const hint = " is for machines that join a cluster: give spec.bootstrap.join, or leave it out"
	switch {
	case s.Bootstrap != nil && s.Bootstrap.DataSecretName == "":
		return invalid("spec.bootstrap", "says neither dataSecretName nor join: a plain server has no bootstrap")
	case len(s.Roles) > 0:
		return invalid("spec.roles", string(s.Roles[0])+hint)
	case s.Versions != v1alpha1.WantedVersions{}:
		return invalid("spec.versions", "a version"+hint)
	case len(s.Node.Labels)+len(s.Node.Annotations)+len(s.Node.Taints) > 0:
		return invalid("spec.node", "it"+hint)
	}
	return nil
}

func files(mm *v1alpha1.MetalMachine, owner contract.Owner) (all []machineconfig.File, err error) {
	for _, f := range mm.Spec.Files {
		field := "spec.files[" + f.Path + "]"
		out := machineconfig.File{Path: f.Path, Append: f.Append != nil && *f.Append}
		out.Owner, out.Group, _ = strings.Cut(f.Owner, ":")
		if f.Permissions != "" {
			if err := out.Mode.UnmarshalText([]byte(f.Permissions)); err != nil {
				return nil, invalid(field+".permissions", err.Error())
			}
		}
		isTemplate := f.Template != nil && *f.Template
		switch {
		case (f.Content == nil) == (f.ContentFrom == nil):
			return nil, invalid(field, "say exactly one of content and contentFrom")
		case f.ContentFrom != nil && isTemplate:
			return nil, invalid(field+".template", "what is in a Secret is no template: its value is not known when the configuration is made")
		case f.ContentFrom != nil:
			out.Secret = "secret://" + secretName(owner, f.ContentFrom.Name, f.ContentFrom.Key)
		default:
			plain, err := decode(f.Encoding, []byte(*f.Content))
			if err != nil {
				return nil, invalid(field+".content", err.Error())
			}
			out.Content = content(plain, isTemplate)
		}
		all = append(all, out)
	}
	return all, nil
}

// content holds a file's bytes as text if they are one; what only looks like a template is kept from being one.
func content(plain []byte, isTemplate bool) machineconfig.Content {
	if len(plain) == 0 {
		return machineconfig.Content{Text: `{{ "" }}`} // an empty text would be no content
	}
	text := string(plain)
	isText := utf8.Valid(plain) && !strings.ContainsRune(text, 0) && !late.HasMarker(text)
	if isText && (isTemplate || !strings.Contains(text, "{{")) {
		return machineconfig.Content{Text: text}
	}
	return machineconfig.Content{Base64: base64.StdEncoding.EncodeToString(plain)}
}

func users(mm *v1alpha1.MetalMachine, owner contract.Owner) (all []machineconfig.User, err error) {
	for _, u := range mm.Spec.Users {
		out := machineconfig.User{Name: u.Name, SSHKeys: u.SSHAuthorizedKeys, Sudo: u.Sudo, Shell: u.Shell, Groups: u.Groups}
		if u.PasswordHashFrom != nil {
			out.PasswordHash = "secret://" + secretName(owner, u.PasswordHashFrom.Name, u.PasswordHashFrom.Key)
		}
		all = append(all, out)
	}
	return all, nil
}

func commands(phase machineconfig.Phase, texts []string) (all []machineconfig.Command) {
	for _, text := range texts {
		c := machineconfig.Command{Phase: phase, Shell: text}
		if strings.Contains(text, "{{") { // it is not our template
			c.Shell, c.Argv = "", []string{"/bin/sh", "-c", text}
		}
		all = append(all, c)
	}
	return all
}

var sockets = map[v1alpha1.RuntimeName]string{
	"": "", v1alpha1.RuntimeContainerd: "unix:///run/containerd/containerd.sock", v1alpha1.RuntimeCRIO: "unix:///run/crio/crio.sock",
	v1alpha1.RuntimeCRIDockerd: "unix:///run/cri-dockerd.sock",
}

func versions(v *v1alpha1.WantedVersions, mm *v1alpha1.MetalMachine) error {
	if _, ok := sockets[v.ContainerRuntime.Name]; !ok {
		return invalid("spec.versions.containerRuntime.name", fmt.Sprintf("%q is no runtime that Slipway knows: use containerd, cri-o or cri-dockerd", v.ContainerRuntime.Name))
	}
	if IsControlPlane(mm) && v.ControlPlane != "" && v.Kubelet != "" && bare(v.ControlPlane) != bare(v.Kubelet) {
		return invalid("spec.versions.controlPlane", "kubeadm installs a control plane and its kubelet in one version")
	}
	return nil
}

// bootstrap asks kubeadm to make the machine a node.
func bootstrap(mm *v1alpha1.MetalMachine, o Options) (*machineconfig.BootstrapSpec, error) {
	s := &mm.Spec
	if o.Target == nil {
		return nil, invalid("spec.bootstrap.join.targetRef", fmt.Sprintf("there is no JoinTarget %s in this namespace", s.Bootstrap.Join.TargetRef.Name))
	}
	for _, r := range s.Roles { // an object that an older API server took
		if r != v1alpha1.RoleControlPlane && r != v1alpha1.RoleNode {
			return nil, invalid("spec.roles", fmt.Sprintf("kubeadm joins no dedicated %s server: make it a plain server, or give it the role ControlPlane", r))
		}
	}
	b := &machineconfig.BootstrapSpec{
		Kind: "kubeadm", Target: Name(o.Target.Namespace, o.Target.Name), Role: o.Role, Version: bare(VersionOf(mm, o.Target)),
		CRISocket: sockets[s.Versions.ContainerRuntime.Name], Labels: maps.Clone(s.Node.Labels),
	}
	if b.Role == "" {
		b.Role = machineconfig.Worker
		if IsControlPlane(mm) {
			b.Role = machineconfig.ControlPlane
		}
	}
	for _, t := range s.Node.Taints {
		b.Taints = append(b.Taints, machineconfig.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
	}
	if IsControlPlane(mm) && len(b.Taints) > 0 { // else kubeadm would leave its own out
		own := machineconfig.Taint{Key: controlPlaneTaint, Effect: "NoSchedule"}
		if !slices.Contains(b.Taints, own) {
			b.Taints = append(b.Taints, own)
		}
	}
	for _, a := range s.Bootstrap.Join.KubeletExtraArgs {
		if b.KubeletArgs == nil {
			b.KubeletArgs = map[string]string{}
		}
		b.KubeletArgs[strings.TrimLeft(a.Name, "-")] = a.Value
	}
	var err error
	b.Options, err = targetOptions(o.Target, b.Role)
	return b, err
}

// provider is what no other field says.
func provider(m *inventory.Machine, p *v1alpha1.ProviderConfig) error {
	if p == nil {
		return nil
	}
	const field = "spec.providerConfig"
	if p.Value == nil || len(p.Value.Raw) == 0 {
		return nil
	}
	var s v1alpha1.SlipwayProviderConfig
	d := json.NewDecoder(bytes.NewReader(p.Value.Raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return invalid(field+".value", "is no SlipwayProviderConfig: "+strings.TrimPrefix(err.Error(), "json: "))
	}
	if s.Kind != "" && s.Kind != "SlipwayProviderConfig" {
		return invalid(field+".value.kind", fmt.Sprintf("%q is not SlipwayProviderConfig", s.Kind))
	}
	if s.RootDevice != nil {
		m.RootDisk = DiskHint(s.RootDevice)
	}
	for i := range s.KeepDisks {
		m.KeepDisks = append(m.KeepDisks, DiskHint(&s.KeepDisks[i]))
	}
	m.Config = s.Config
	return nil
}

// join writes the layer of a machine: what its fields say over what its provider config says.
func join(fields *machineconfig.Config, provider string) (string, error) {
	text := ""
	if b, err := yaml.Marshal(fields); err != nil {
		return "", fmt.Errorf("write configuration: %w", err) // plain data
	} else if string(b) != "{}\n" {
		text = string(b)
	}
	if provider == "" {
		return text, check("spec", text)
	}
	if err := check("spec.providerConfig.value.config", provider); err != nil {
		return "", err
	}
	if text == "" {
		return provider, nil
	}
	wide, _ := layer.Parse(provider, "spec.providerConfig")
	narrow, _ := layer.Parse(text, "spec")
	c, _ := layer.Merge(wide, narrow)
	b, err := yaml.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("write configuration: %w", err)
	}
	return string(b), check("spec", string(b))
}

func check(field, text string) error {
	_, report := layer.Parse(text, field)
	for _, f := range report {
		if f.Severity == machineconfig.SeverityError {
			return invalid(field, strings.TrimPrefix(f.Path+": "+f.Message, ": "))
		}
	}
	return nil
}
