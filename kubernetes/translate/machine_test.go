package translate

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/validation"
)

func ptr[T any](v T) *T { return &v }

func metalMachine(change func(*v1alpha1.MetalMachineSpec)) *v1alpha1.MetalMachine {
	mm := &v1alpha1.MetalMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", UID: "u1"}}
	mm.Spec.OS.Profile = "debian"
	if change != nil {
		change(&mm.Spec)
	}
	return mm
}

var owner = contract.Owner{ClusterUID: "c", Namespace: "team", Kind: "MetalMachine", Name: "web", UID: "u1"}

func joinTarget(change func(*v1alpha1.JoinTargetSpec)) *v1alpha1.JoinTarget {
	jt := &v1alpha1.JoinTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "lab"}}
	jt.Spec = v1alpha1.JoinTargetSpec{
		ControlPlaneEndpoint: "10.0.0.9:6443", KubernetesVersion: "v1.36.3", WorkerJoinParallelism: 20,
		KubeconfigSecretRef: &v1alpha1.SecretKeySelector{Name: "lab-admin", Key: "value"},
	}
	if change != nil {
		change(&jt.Spec)
	}
	return jt
}

func joining(roles ...v1alpha1.MachineRole) func(*v1alpha1.MetalMachineSpec) {
	return func(s *v1alpha1.MetalMachineSpec) {
		s.Roles = roles
		s.Bootstrap = &v1alpha1.Bootstrap{Join: &v1alpha1.Join{TargetRef: v1alpha1.TargetReference{Name: "lab"}}}
	}
}

func TestAMachineOfNothingButAProfileIsAPlainServer(t *testing.T) {
	m, err := MetalMachine(metalMachine(nil), Options{Owner: owner})
	if err != nil {
		t.Fatal(err)
	}
	want := inventory.Machine{Name: "team-web", Owner: owner.String(), Profile: "debian", Hostname: "web"}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("got  %+v\nwant %+v", m, want)
	}
	if err := m.Validate(); err != nil {
		t.Errorf("the inventory refuses it: %v", err)
	}
}

func TestEachFieldReachesTheInventory(t *testing.T) {
	for _, c := range []struct {
		about string
		spec  func(*v1alpha1.MetalMachineSpec)
		opts  func(*Options)
		check func(m inventory.Machine) (got, want any)
	}{
		{"image", func(s *v1alpha1.MetalMachineSpec) { s.OS.Version = "debian-12" }, nil, func(m inventory.Machine) (any, any) { return m.Image, "debian-12" }},
		{
			"variables", func(s *v1alpha1.MetalMachineSpec) { s.OS.Variables = map[string]string{"zone": "a"} }, nil,
			func(m inventory.Machine) (any, any) { return m.Parameters["zone"], "a" },
		},
		{
			"kernel arguments", func(s *v1alpha1.MetalMachineSpec) { s.OS.KernelArgs = []string{"quiet"} }, nil,
			func(m inventory.Machine) (any, any) { return m.KernelArgs, []string{"quiet"} },
		},
		{"host name", func(s *v1alpha1.MetalMachineSpec) { s.Hostname = "front" }, nil, func(m inventory.Machine) (any, any) { return m.Hostname, "front" }},
		{
			"pinned host", func(s *v1alpha1.MetalMachineSpec) {
				s.Placement, s.FailureDomain = &v1alpha1.Placement{HostName: "h1"}, "r1"
			}, nil,
			func(m inventory.Machine) (any, any) { return m.Placement, inventory.Placement{Host: "h1"} },
		},
		{
			"pool and failure domain", func(s *v1alpha1.MetalMachineSpec) {
				s.Placement = &v1alpha1.Placement{Pool: "gpu", FailureDomainPolicy: v1alpha1.FailureDomainPreferred}
				s.FailureDomain = "r1"
			}, nil,
			func(m inventory.Machine) (any, any) {
				return []any{m.Pool, m.Placement.FailureDomain, m.Placement.IsDomainPreferred}, []any{"gpu", "r1", true}
			},
		},
		{
			"requirements", func(s *v1alpha1.MetalMachineSpec) {
				s.Placement = &v1alpha1.Placement{Requirements: &v1alpha1.HardwareRequirements{
					Architecture: v1alpha1.AMD64, MinCPUThreads: 8, MinMemory: ptr(resource.MustParse("64Gi")), MinDiskSize: ptr(resource.MustParse("1T")),
				}}
			}, nil,
			func(m inventory.Machine) (any, any) {
				return m.Placement.Requirements, inventory.HardwareRequirements{Arch: inventory.X8664, CPUThreads: 8, MemoryBytes: 64 << 30, DiskBytes: 1e12}
			},
		},
		{
			"tolerations", func(s *v1alpha1.MetalMachineSpec) {
				s.Placement = &v1alpha1.Placement{Tolerations: []v1alpha1.Toleration{{Key: "gpu", Operator: "Exists"}, {Key: "team", Value: "a"}}}
			}, nil,
			func(m inventory.Machine) (any, any) {
				return m.Placement.Tolerations, []inventory.Toleration{{Key: "gpu"}, {Key: "team", Value: "a"}}
			},
		},
		{
			"reuse by what it was cloned from", func(s *v1alpha1.MetalMachineSpec) { s.Placement = &v1alpha1.Placement{Reuse: v1alpha1.ReusePrefer} },
			func(o *Options) { o.ReuseKey = "set-a" },
			func(m inventory.Machine) (any, any) {
				return []any{m.Placement.Reuse, m.Placement.ReuseKey}, []any{inventory.ReusePrefer, "set-a"}
			},
		},
		{
			"pools it may not use", nil, func(o *Options) { o.NotPools = []string{"theirs"} },
			func(m inventory.Machine) (any, any) { return m.Placement.NotPools, []string{"theirs"} },
		},
		{
			"deletion", func(s *v1alpha1.MetalMachineSpec) {
				s.Deletion.Clean, s.Deletion.ReleaseAfter = v1alpha1.CleanSecure, v1alpha1.ReleaseCleaned
			}, nil,
			func(m inventory.Machine) (any, any) {
				return []any{m.Clean, m.ReleaseAfter}, []any{inventory.CleanSecure, inventory.ReleaseCleaned}
			},
		},
		{
			"where bootstrap data come from", nil, func(o *Options) { o.BootstrapFrom = "prod/team/web-data" },
			func(m inventory.Machine) (any, any) { return m.BootstrapFrom, "prod/team/web-data" },
		},
		{
			"the provider's own words", func(s *v1alpha1.MetalMachineSpec) {
				s.ProviderConfig = &v1alpha1.ProviderConfig{Value: &runtime.RawExtension{Raw: []byte(
					`{"rootDevice":{"deviceName":"/dev/disk/by-path/pci-1"},"keepDisks":[{"serial":"S1"}],"config":"host: {timezone: Europe/Berlin}"}`)}}
			}, nil,
			func(m inventory.Machine) (any, any) {
				return []any{m.RootDisk.ByPath, m.KeepDisks[0].Serial, m.Config}, []any{"pci-1", "S1", "host: {timezone: Europe/Berlin}"}
			},
		},
		{
			"the drain of a node", joining(v1alpha1.RoleNode), func(o *Options) { o.Target = joinTarget(nil) },
			func(m inventory.Machine) (any, any) {
				return m.Drain, inventory.Drain{Target: "team-lab", Node: "web", Timeout: 300e9, GraceSeconds: -1, VolumeTimeout: 300e9, ForgetTimeout: 60e9}
			},
		},
		{
			"the drain as it is wanted", func(s *v1alpha1.MetalMachineSpec) {
				joining()(s)
				s.Deletion.Drain = v1alpha1.Drain{
					Enabled: ptr(false), TimeoutSeconds: ptr(int32(0)), OnTimeout: v1alpha1.DrainBlock, GracePeriodSeconds: ptr(int32(0)),
					DeleteEmptyDirData: ptr(true), VolumeDetachTimeoutSeconds: ptr(int32(5)),
				}
				s.Deletion.NodeDeletionTimeoutSeconds = ptr(int32(0))
			}, func(o *Options) { o.Target = joinTarget(nil) },
			func(m inventory.Machine) (any, any) {
				return m.Drain, inventory.Drain{
					Target: "team-lab", Node: "web", IsSkipped: true, IsBlocking: true, GraceSeconds: 1, DeleteEmptyDirData: true, VolumeTimeout: 5e9,
				}
			},
		},
		{
			"no drain where nobody can look", joining(v1alpha1.RoleNode), func(o *Options) {
				o.Target = joinTarget(func(s *v1alpha1.JoinTargetSpec) {
					s.KubeconfigSecretRef, s.StaticToken = nil, &v1alpha1.StaticToken{CACertHashes: []v1alpha1.CACertHash{"sha256:b", "sha256:a"}}
				})
			},
			func(m inventory.Machine) (any, any) {
				return []any{m.Drain, parse(m.Config).Bootstrap.Options["caCertHashes"]}, []any{inventory.Drain{}, "sha256:a,sha256:b"}
			},
		},
	} {
		t.Run(c.about, func(t *testing.T) {
			o := Options{Owner: owner}
			if c.opts != nil {
				c.opts(&o)
			}
			m, err := MetalMachine(metalMachine(c.spec), o)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := c.check(m); !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestWhatCannotBeCarriedOutNamesItsField(t *testing.T) {
	for _, c := range []struct {
		field string
		spec  func(*v1alpha1.MetalMachineSpec)
	}{
		{"spec.os.profile", func(s *v1alpha1.MetalMachineSpec) { s.OS.Profile = "" }},
		{"spec.placement.requirements", func(s *v1alpha1.MetalMachineSpec) {
			s.Placement = &v1alpha1.Placement{Requirements: &v1alpha1.HardwareRequirements{Architecture: "s390x"}}
		}},
		{"spec.placement.selector", func(s *v1alpha1.MetalMachineSpec) {
			s.Placement = &v1alpha1.Placement{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": strings.Repeat("x", 1100)}}}
		}},
		{"spec.placement.tolerations[0]", func(s *v1alpha1.MetalMachineSpec) {
			s.Placement = &v1alpha1.Placement{Tolerations: []v1alpha1.Toleration{{Key: "gpu"}}}
		}},
		{"spec.placement.tolerations[0]", func(s *v1alpha1.MetalMachineSpec) {
			s.Placement = &v1alpha1.Placement{Tolerations: []v1alpha1.Toleration{{Operator: "Exists", Value: "x"}}}
		}},
		{"spec.files[/a].content", func(s *v1alpha1.MetalMachineSpec) {
			s.Files = []v1alpha1.File{{Path: "/a", Encoding: "base64", Content: ptr("%%%")}}
		}},
		{"spec.files[/a].content", func(s *v1alpha1.MetalMachineSpec) {
			s.Files = []v1alpha1.File{{Path: "/a", Encoding: "gzip+base64", Content: ptr("aGFsbG8=")}}
		}},
		{"spec.files[/a]", func(s *v1alpha1.MetalMachineSpec) { s.Files = []v1alpha1.File{{Path: "/a"}} }},
		{"spec.files[/a].template", func(s *v1alpha1.MetalMachineSpec) {
			s.Files = []v1alpha1.File{{Path: "/a", Template: ptr(true), ContentFrom: &v1alpha1.SecretKeySelector{Name: "s", Key: "k"}}}
		}},
		{"spec.versions.containerRuntime.name", func(s *v1alpha1.MetalMachineSpec) { s.Versions.ContainerRuntime.Name = "rkt" }},
		{"spec.versions", func(s *v1alpha1.MetalMachineSpec) { s.Versions.Kubelet = "v1.36.3" }},
		{"spec.roles", func(s *v1alpha1.MetalMachineSpec) { s.Roles = []v1alpha1.MachineRole{v1alpha1.RoleControlPlane} }},
		{"spec.roles", func(s *v1alpha1.MetalMachineSpec) {
			s.Roles, s.Bootstrap = []v1alpha1.MachineRole{v1alpha1.RoleControlPlane}, &v1alpha1.Bootstrap{DataSecretName: "s"}
		}},
		{"spec.node", func(s *v1alpha1.MetalMachineSpec) { s.Node.Labels = map[string]string{"a": "b"} }},
		{"spec.bootstrap", func(s *v1alpha1.MetalMachineSpec) { s.Bootstrap = &v1alpha1.Bootstrap{} }},
		{"spec.versions.controlPlane", func(s *v1alpha1.MetalMachineSpec) {
			joining(v1alpha1.RoleControlPlane)(s)
			s.Versions.ControlPlane, s.Versions.Kubelet = "1.35.0", "1.36.0"
		}},
		{"spec.bootstrap.join.targetRef", joining()},
		{"spec.providerConfig.value", func(s *v1alpha1.MetalMachineSpec) {
			s.ProviderConfig = &v1alpha1.ProviderConfig{Value: &runtime.RawExtension{Raw: []byte(`{"nonsense":1}`)}}
		}},
		{"spec.providerConfig.value.config", func(s *v1alpha1.MetalMachineSpec) {
			s.ProviderConfig = &v1alpha1.ProviderConfig{Value: &runtime.RawExtension{Raw: []byte(`{"config":"nonsense: 1"}`)}}
		}},
	} {
		_, err := MetalMachine(metalMachine(c.spec), Options{Owner: owner})
		var e *Invalid
		if !errors.As(err, &e) || e.Field != c.field || !IsInvalid(err) {
			t.Errorf("%s: got %v", c.field, err)
		}
	}
	mm := metalMachine(joining("Etcd"))
	if _, err := MetalMachine(mm, Options{Owner: owner, Target: joinTarget(nil)}); !IsInvalid(err) || !strings.Contains(err.Error(), "spec.roles") {
		t.Errorf("a dedicated etcd server was let in: %v", err)
	}
}

func TestFilesAndUsersBecomeALayer(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte("packed {{ text }}"))
	_ = z.Close()
	mm := metalMachine(func(s *v1alpha1.MetalMachineSpec) {
		s.Files = []v1alpha1.File{
			{Path: "/plain", Content: ptr("hello\n"), Permissions: "0600", Owner: "www:web", Append: ptr(true)},
			{Path: "/templated", Content: ptr("I am {{ .Host.Name }}"), Template: ptr(true)},
			{Path: "/like-a-template", Content: ptr("{{ .not }} mine")},
			{Path: "/packed", Content: ptr(base64.StdEncoding.EncodeToString(packed.Bytes())), Encoding: "gzip+base64"},
			{Path: "/empty", Content: ptr("")},
			{Path: "/secret", ContentFrom: &v1alpha1.SecretKeySelector{Name: "keys", Key: "tls.key"}},
		}
		s.Users = []v1alpha1.User{{
			Name: "ops", SSHAuthorizedKeys: []string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEHasJsr56icBPpkxIC163jwdebO8K5wlUEQ4Uwu79tJ"}, Sudo: "ALL=(ALL) NOPASSWD:ALL",
			PasswordHashFrom: &v1alpha1.SecretKeySelector{Name: "keys", Key: "hash"},
		}}
	})
	m, err := MetalMachine(mm, Options{Owner: owner})
	if err != nil {
		t.Fatal(err)
	}
	c := parse(m.Config)
	uses := MachineSecrets(mm, owner)
	if len(uses) != 2 {
		t.Fatalf("secrets: %+v", uses)
	}
	byKey := map[string]SecretUse{uses[0].Key: uses[0], uses[1].Key: uses[1]}
	want := map[string]machineconfig.File{
		"/plain":     {Path: "/plain", Mode: 0o600, Owner: "www", Group: "web", Append: true, Content: machineconfig.Content{Text: "hello\n"}},
		"/templated": {Path: "/templated", Content: machineconfig.Content{Text: "I am {{ .Host.Name }}"}},
		"/like-a-template": {Path: "/like-a-template", Content: machineconfig.Content{
			Base64: base64.StdEncoding.EncodeToString([]byte("{{ .not }} mine")),
		}},
		"/packed": {Path: "/packed", Content: machineconfig.Content{Base64: base64.StdEncoding.EncodeToString([]byte("packed {{ text }}"))}},
		"/empty":  {Path: "/empty", Content: machineconfig.Content{Text: `{{ "" }}`}},
		"/secret": {Path: "/secret", Content: machineconfig.Content{Secret: "secret://" + byKey["tls.key"].Name}},
	}
	for _, f := range c.Files {
		if !reflect.DeepEqual(f, want[f.Path]) {
			t.Errorf("%s: got %+v, want %+v", f.Path, f, want[f.Path])
		}
		delete(want, f.Path)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	if u := c.Users[0]; u.PasswordHash != "secret://"+byKey["hash"].Name || u.SSHKeys[0] != "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEHasJsr56icBPpkxIC163jwdebO8K5wlUEQ4Uwu79tJ" {
		t.Errorf("user: %+v", u)
	}
	if r := validation.Validate(&c); len(r) > 0 {
		for _, f := range r {
			if f.Severity == machineconfig.SeverityError {
				t.Errorf("the configuration is refused: %s", f)
			}
		}
	}
	for _, u := range uses {
		if inventory.CheckName("secret", u.Name) != nil {
			t.Errorf("%q is no name", u.Name)
		}
	}
	other := owner
	other.UID = "u2"
	if MachineSecrets(mm, other)[0].Name == uses[0].Name {
		t.Error("two owners share a sealed secret")
	}
}

func TestTheJoinPlanSaysRoleVersionLabelsAndTaints(t *testing.T) {
	mm := metalMachine(func(s *v1alpha1.MetalMachineSpec) {
		joining(v1alpha1.RoleControlPlane)(s)
		s.Node = v1alpha1.NodeMeta{Labels: map[string]string{"tier": "a"}, Taints: []v1alpha1.NodeTaint{{Key: "x", Effect: "NoExecute"}}}
		s.Bootstrap.Join.KubeletExtraArgs = []v1alpha1.Arg{{Name: "--max-pods", Value: "50"}}
		s.Bootstrap.Join.PreCommands, s.Bootstrap.Join.PostCommands = []string{"echo {{ a }}"}, []string{"echo b"}
		s.Versions.ContainerRuntime.Name = "cri-o"
	})
	m, err := MetalMachine(mm, Options{Owner: owner, Target: joinTarget(nil)})
	if err != nil {
		t.Fatal(err)
	}
	c := parse(m.Config)
	b := *c.Bootstrap
	want := machineconfig.BootstrapSpec{
		Kind: "kubeadm", Target: "team-lab", Role: machineconfig.ControlPlane, Version: "1.36.3", CRISocket: "unix:///run/crio/crio.sock",
		Labels: map[string]string{"tier": "a"}, KubeletArgs: map[string]string{"max-pods": "50"},
		Taints: []machineconfig.Taint{{Key: "x", Effect: "NoExecute"}, {Key: "node-role.kubernetes.io/control-plane", Effect: "NoSchedule"}},
	}
	if !reflect.DeepEqual(b, want) {
		t.Errorf("got  %+v\nwant %+v", b, want)
	}
	if len(c.Commands) != 2 || c.Commands[0].Argv == nil || c.Commands[1].Phase != machineconfig.PostBootstrap || c.Commands[1].Shell != "echo b" {
		t.Errorf("commands: %+v", c.Commands)
	}
	for role, want := range map[v1alpha1.MachineRole]machineconfig.Role{v1alpha1.RoleNode: machineconfig.Worker, v1alpha1.RoleControlPlane: machineconfig.ControlPlane} {
		m, err := MetalMachine(metalMachine(joining(role)), Options{Owner: owner, Target: joinTarget(nil)})
		if err != nil || RoleOf(m.Config) != want || len(parse(m.Config).Bootstrap.Taints) > 0 {
			t.Errorf("%s: %v, %v", role, RoleOf(m.Config), err)
		}
	}
	text, err := WithRole(m.Config, machineconfig.Init)
	if err != nil || RoleOf(text) != machineconfig.Init {
		t.Errorf("role %v, %v", RoleOf(text), err)
	}
}

func TestATermThatExcludesNothingIsRefused(t *testing.T) {
	for _, e := range []metav1.LabelSelectorRequirement{
		{Key: "a", Operator: "NotIn"},
		{Key: "a", Operator: "In"},
		{Key: "a", Operator: "Exists", Values: []string{"b"}},
		{Key: "a", Operator: "DoesNotExist", Values: []string{"b"}},
		{Key: "a", Operator: "Gt", Values: []string{"1"}},
	} {
		if text, err := Selector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{e}}); err == nil {
			t.Errorf("%v becomes %q", e, text)
		}
	}
}

func TestSelectorsMatchAsKubernetesMatchesThem(t *testing.T) {
	host := func(labels map[string]string) *inventory.Host {
		return &inventory.Host{Name: "h", Labels: labels, Place: inventory.Place{Rack: "r1"}, Arch: inventory.X8664}
	}
	for _, c := range []struct {
		about string
		sel   metav1.LabelSelector
		yes   []map[string]string
		no    []map[string]string
	}{
		{"a label", metav1.LabelSelector{MatchLabels: map[string]string{"a": "1"}}, []map[string]string{{"a": "1"}}, []map[string]string{{"a": "2"}, {}}},
		{
			"In",
			metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "In", Values: []string{"1.5", "2"}}}},
			[]map[string]string{{"a": "1.5"}, {"a": "2"}},
			[]map[string]string{{"a": "1x5"}, {}, {"a": "22"}},
		},
		{
			"NotIn",
			metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "NotIn", Values: []string{"1", "2"}}}},
			[]map[string]string{{"a": "3"}, {}},
			[]map[string]string{{"a": "1"}, {"a": "2"}},
		},
		{
			"Exists",
			metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "example.com/a", Operator: "Exists"}}},
			[]map[string]string{{"example.com/a": ""}},
			[]map[string]string{{}},
		},
		{
			"DoesNotExist",
			metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "DoesNotExist"}}},
			[]map[string]string{{}, {"b": "1"}},
			[]map[string]string{{"a": ""}, {"a": "1"}},
		},
		{
			"facts",
			metav1.LabelSelector{MatchLabels: map[string]string{"metal.slipway.dev/rack": "r1", "metal.slipway.dev/arch": "amd64"}},
			[]map[string]string{{}},
			nil,
		},
		{"another rack", metav1.LabelSelector{MatchLabels: map[string]string{"metal.slipway.dev/rack": "r2"}}, nil, []map[string]string{{}}},
	} {
		text, err := Selector(&c.sel)
		if err != nil {
			t.Fatalf("%s: %v", c.about, err)
		}
		sel, err := inventory.ParseSelector(text)
		if err != nil {
			t.Fatalf("%s: %q: %v", c.about, text, err)
		}
		for _, l := range c.yes {
			if !sel.Matches(host(l)) {
				t.Errorf("%s: %q does not match %v", c.about, text, l)
			}
		}
		for _, l := range c.no {
			if sel.Matches(host(l)) {
				t.Errorf("%s: %q matches %v", c.about, text, l)
			}
		}
	}
}

func TestNamesFitAndDiffer(t *testing.T) {
	long := strings.Repeat("x", 60)
	for _, c := range []struct{ ns, name, want string }{
		{"team", "web", "team-web"},
		{"team", "web.1", "team-web-1-" + hash("team/web.1")[:6]},
	} {
		if got := Name(c.ns, c.name); got != c.want {
			t.Errorf("%s/%s: got %s", c.ns, c.name, got)
		}
	}
	for _, name := range []string{Name("team", long), NameFor("team", "web", "uid"), NameFor("team", long, "uid")} {
		if err := inventory.CheckName("machine", name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if Name("team", long) == Name("team", long+"y") || Name("team", "a.b") == Name("team", "a-b") || NameFor("a", "b", "1") == NameFor("a", "b", "2") {
		t.Error("two objects have one name")
	}
}

func TestHooksAreReadFromAnnotations(t *testing.T) {
	got, err := hooksOf(map[string]string{
		"pre-drain.hook.metal.slipway.dev/storage": "", "pre-boot.hook.metal.slipway.dev/dns": "please", "metal.slipway.dev/paused": "",
	}, true)
	want := []inventory.Hook{{Step: inventory.PreBoot, Owner: "dns"}, {Step: inventory.PreBoot, Owner: HoldOwner}, {Step: inventory.PreDrain, Owner: "storage"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"pre-lunch.hook.metal.slipway.dev/x", "pre-boot.hook.metal.slipway.dev/kubernetes", "pre-boot.hook.metal.slipway.dev/X_Y"} {
		if _, err := Hooks(map[string]string{bad: ""}); !IsInvalid(err) {
			t.Errorf("%s was let in: %v", bad, err)
		}
	}
}

func TestApplyChangesOnlyWhatMayChange(t *testing.T) {
	make := func(change func(*v1alpha1.MetalMachineSpec)) inventory.Machine {
		m, err := MetalMachine(metalMachine(change), Options{Owner: owner, Target: joinTarget(nil)})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	stored := make(joining(v1alpha1.RoleNode))
	stored.UID, stored.HostID, stored.ClaimID, stored.Version, stored.AttemptN = "U", "h", "c", 7, 2
	stored.Hooks = []inventory.Hook{{Step: inventory.PreBoot, Owner: "dns", AckedAt: metav1.Now().Time}}
	wanted := make(func(s *v1alpha1.MetalMachineSpec) {
		joining(v1alpha1.RoleNode)(s)
		s.OS.Profile, s.Deletion.Clean = "other", v1alpha1.CleanFull
		s.Node.Labels = map[string]string{"a": "b"}
	})
	wanted.Hooks = []inventory.Hook{{Step: inventory.PreBoot, Owner: "dns"}, {Step: inventory.PreDrain, Owner: "x"}}

	live, changed := Apply(stored, wanted, false)
	if !changed || live.Profile != "debian" || live.Clean != inventory.CleanFull || live.Version != 7 || live.AttemptN != 2 {
		t.Errorf("live: %+v", live)
	}
	if live.Hooks[0].AckedAt.IsZero() || !live.Hooks[1].AckedAt.IsZero() {
		t.Errorf("hooks: %+v", live.Hooks)
	}
	anew, _ := Apply(stored, wanted, true)
	if anew.Profile != "other" || anew.HostID != "h" {
		t.Errorf("anew: %+v", anew)
	}
	if _, changed := Apply(live, wanted, false); changed {
		t.Error("applying twice is a change")
	}
	if got := Changed(stored, wanted); got != "the installed system does not have the wanted os.profile" {
		t.Errorf("labels are live, the profile is not: %q", got)
	}
	if got := Changed(stored, stored); got != "" {
		t.Errorf("nothing changed: %q", got)
	}
	for about, c := range map[string]struct {
		change func(*v1alpha1.MetalMachineSpec)
		field  string
	}{
		"files":    {func(s *v1alpha1.MetalMachineSpec) { s.Files = []v1alpha1.File{{Path: "/a", Content: ptr("x")}} }, "files"},
		"users":    {func(s *v1alpha1.MetalMachineSpec) { s.Users = []v1alpha1.User{{Name: "a"}} }, "users"},
		"versions": {func(s *v1alpha1.MetalMachineSpec) { s.Versions.Kubelet = "v1.35.0" }, "bootstrap"},
		"image":    {func(s *v1alpha1.MetalMachineSpec) { s.OS.Version = "other" }, "os.version"},
	} {
		w := make(func(s *v1alpha1.MetalMachineSpec) { joining(v1alpha1.RoleNode)(s); c.change(s) })
		if got := Changed(stored, w); got != "the installed system does not have the wanted "+c.field {
			t.Errorf("%s: %q", about, got)
		}
	}
}

func TestWhatIsFrozenOnceAHostIsClaimed(t *testing.T) {
	stored, _ := MetalMachine(metalMachine(joining(v1alpha1.RoleNode)), Options{Owner: owner, Target: joinTarget(nil)})
	for field, change := range map[string]func(*v1alpha1.MetalMachineSpec){
		"spec.placement": func(s *v1alpha1.MetalMachineSpec) { s.FailureDomain = "r2" },
		"spec.hostname":  func(s *v1alpha1.MetalMachineSpec) { s.Hostname = "b" },
		"spec.roles":     func(s *v1alpha1.MetalMachineSpec) { s.Roles = []v1alpha1.MachineRole{v1alpha1.RoleControlPlane} },
	} {
		wanted, err := MetalMachine(metalMachine(func(s *v1alpha1.MetalMachineSpec) { joining(v1alpha1.RoleNode)(s); change(s) }), Options{Owner: owner, Target: joinTarget(nil)})
		if err != nil {
			t.Fatal(err)
		}
		if err := Frozen(stored, wanted); err != nil {
			t.Errorf("%s without a host: %v", field, err)
		}
		claimed := stored
		claimed.HostID = "h"
		var e *Invalid
		if err := Frozen(claimed, wanted); !errors.As(err, &e) || e.Field != field {
			t.Errorf("%s with a host: %v", field, err)
		}
	}
}

func TestAJoinTargetIsMirroredWithoutItsSecrets(t *testing.T) {
	jt := joinTarget(func(s *v1alpha1.JoinTargetSpec) {
		s.Init, s.TokenTTLSeconds = ptr(true), 600
		s.ClusterConfiguration = &runtime.RawExtension{Raw: []byte(
			`{"clusterName":"lab","networking":{"podSubnet":"10.1.0.0/16","serviceSubnet":"10.2.0.0/16"},"apiServer":{"certSANs":["lab.example"]}}`)}
	})
	got, err := JoinTarget(jt, owner)
	if err != nil {
		t.Fatal(err)
	}
	want := inventory.JoinTarget{
		Name: "team-lab", Owner: owner.String(), Endpoint: "10.0.0.9:6443", Kubernetes: "1.36.3", Kubeconfig: "team-lab-kubeconfig", PKI: "team-lab-pki",
		PodCIDR: "10.1.0.0/16", ServiceCIDR: "10.2.0.0/16", WorkerParallelism: 20, TokenFor: 600e9,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	first, err := MetalMachine(metalMachine(joining(v1alpha1.RoleControlPlane)), Options{Owner: owner, Target: jt, Role: machineconfig.Init})
	if o := parse(first.Config).Bootstrap.Options; err != nil || o["clusterName"] != "lab" || o["certSANs"] != "lab.example" {
		t.Errorf("options of the first: %v, %v", o, err)
	}
	for about, bad := range map[string]func(*v1alpha1.JoinTargetSpec){
		"an unknown setting": func(s *v1alpha1.JoinTargetSpec) {
			s.ClusterConfiguration = &runtime.RawExtension{Raw: []byte(`{"scheduler":{}}`)}
		},
		"an endpoint that is none": func(s *v1alpha1.JoinTargetSpec) { s.ControlPlaneEndpoint = "x:99999" },
		"another kind": func(s *v1alpha1.JoinTargetSpec) {
			s.ClusterConfiguration = &runtime.RawExtension{Raw: []byte(`{"kind":"X"}`)}
		},
	} {
		if _, err := JoinTarget(joinTarget(bad), owner); !IsInvalid(err) {
			t.Errorf("%s: %v", about, err)
		}
	}
	b, _ := json.Marshal(got)
	if strings.Contains(string(b), "lab-admin") {
		t.Error("the name of the Secret leaks into the inventory for nothing")
	}
}
