package bootstrap

import (
	"fmt"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/talos"
)

// metal is how Talos validates on real machines.
type metal struct{}

func (metal) String() string        { return "metal" }
func (metal) RequiresInstall() bool { return true }
func (metal) InContainer() bool     { return false }

// generated is what `talosctl gen config` makes for a release.
func generated(t *testing.T, release string, kind machine.Type) []byte {
	t.Helper()
	contract, err := config.ParseContractFromVersion(release)
	if err != nil {
		t.Fatal(err)
	}
	in, err := generate.NewInput("prod", "https://10.0.0.10:6443", "1.35.0", generate.WithVersionContract(contract), generate.WithInstallDisk("/dev/sda"))
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := in.Config(kind)
	if err != nil {
		t.Fatal(err)
	}
	text, err := cfg.EncodeBytes(encoder.WithComments(encoder.CommentsAll))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func loaded(t *testing.T, text []byte) config.Provider {
	t.Helper()
	cfg, err := configloader.NewFromBytes(text)
	if err != nil {
		t.Fatalf("Talos does not load it: %v\n%s", err, text)
	}
	if warnings, err := cfg.Validate(metal{}); err != nil {
		t.Fatalf("Talos does not take it: %v %v\n%s", err, warnings, text)
	}
	return cfg
}

func yes() *bool { b := true; return &b }
func no() *bool  { b := false; return &b }

func ca() string { return pki()["ca.crt"] }

// everything is all that a plain machine configuration can take.
func everything() *machineconfig.Config {
	return &machineconfig.Config{
		Host: machineconfig.HostIdentity{Hostname: "node-1", Domain: "example.com"},
		Boot: machineconfig.Boot{RootDevice: machineconfig.DeviceSelector{Serial: "S3", MinGiB: 100, WWN: "0x5000c500a1b2c3d4"}},
		Network: machineconfig.Network{
			Interfaces: []machineconfig.Interface{
				{Name: "eno1", MAC: "52:54:00:aa:00:01", L3: machineconfig.L3{
					Addresses: []string{"10.0.0.21/24", "fd00::21/64"}, MTU: 9000, DNS: []string{"10.0.0.1"},
					Routes: []machineconfig.Route{{To: "0.0.0.0/0", Via: "10.0.0.1", Metric: 100}, {To: "10.9.0.0/16", Via: "192.0.2.1", OnLink: true}},
				}},
				{Name: "enp2s0", L3: machineconfig.L3{DHCP4: true, AcceptRA: no()}},
				{Name: "enp3s0", MAC: "52:54:00:aa:00:03"},
				{Name: "enp4s0", MAC: "52:54:00:aa:00:04"},
			},
			Bonds: []machineconfig.Bond{
				{Name: "bond0", Mode: "802.3ad", Members: []string{"enp3s0", "enp4s0"}, MIIMonMS: 100, LACPRate: "fast", HashPolicy: "layer3+4", L3: machineconfig.L3{DHCP6: true}},
				{Name: "bond1", Mode: "active-backup", Members: []string{"enp5s0", "enp6s0"}, Primary: "enp5s0"},
			},
			VLANs: []machineconfig.VLAN{
				{Name: "storage", Parent: "bond0", ID: 100, L3: machineconfig.L3{Addresses: []string{"10.1.0.21/24"}, MTU: 1500}},
				{Name: "guests", Parent: "enp7s0", ID: 200},
			},
			Bridges: []machineconfig.Bridge{{Name: "br0", Members: []string{"enp8s0", "guests"}, STP: yes(), L3: machineconfig.L3{Addresses: []string{"10.2.0.21/24"}}}},
			DNS:     []string{"10.0.0.2"}, Search: []string{"example.com"},
		},
		Time: machineconfig.Time{NTPServers: []string{"ntp1.example.com", "10.0.0.5"}, Enabled: yes()},
		Kernel: machineconfig.Kernel{
			Args: []string{"console=ttyS1,115200"}, RemoveArgs: []string{"quiet"}, Modules: []string{"drbd"}, Sysctl: map[string]string{"vm.nr_hugepages": "8"},
		},
		Files: []machineconfig.File{
			{Path: "/var/lib/a", Mode: 0o600, Content: machineconfig.Content{Text: "one\ntwo\n"}},
			{Path: "/var/lib/b", Content: machineconfig.Content{Base64: "aMOp"}},
			{Path: "/var/lib/c", Content: machineconfig.Content{Secret: "secret://pki#ca.key"}},
			{Path: "/var/lib/d", Content: machineconfig.Content{Text: "x"}, Append: true},
		},
		Trust: machineconfig.Trust{CAs: []string{ca()}},
		Bootstrap: &machineconfig.BootstrapSpec{
			Kind: "talos", Labels: map[string]string{"rack": "r1"}, Taints: []machineconfig.Taint{{Key: "a", Value: "b", Effect: "NoSchedule"}, {Key: "c", Effect: "NoExecute"}},
			KubeletArgs: map[string]string{"v": "2"}, NodeIP: "10.0.0.21", ProviderID: "slipway://ams/node-1/x",
		},
	}
}

var releases = []string{"v1.6", "v1.9", "v1.11", "v1.12", "v1.13"}

func TestTalosTakesItsOwnConfigurationsWithOursMergedIn(t *testing.T) {
	judges(t)
	for _, release := range releases {
		for _, kind := range []machine.Type{machine.TypeControlPlane, machine.TypeWorker} {
			t.Run(release+" "+kind.String(), func(t *testing.T) {
				base := generated(t, release, kind)
				// From 1.12 on the generator takes kernel arguments from the image, which ours contradict.
				base = []byte(strings.ReplaceAll(string(base), "grubUseUKICmdline: true", "grubUseUKICmdline: false"))
				c := everything()
				c.Document = &machineconfig.Passthrough{Format: string(inventory.DocTalos), Data: base}
				out, report := talos.NewProvisioner().Render(machineconfig.Target{OS: "talos", Release: release}, c)
				if out == nil {
					t.Fatal(report)
				}
				text := inject(t, string(out.Documents[0].Data))
				check(t, loaded(t, []byte(text)), kind)
			})
		}
	}
}

// check looks for what was merged through Talos' own eyes.
func check(t *testing.T, cfg config.Provider, kind machine.Type) {
	t.Helper()
	name := cfg.NetworkHostnameConfig().Hostname()
	if name != "node-1.example.com" {
		t.Errorf("host name %q", name)
	}
	m := cfg.Machine()
	if m.Type() != kind || m.Sysctls()["vm.nr_hugepages"] != "8" || m.Sysctls()["net.ipv6.conf.enp2s0.accept_ra"] != "0" {
		t.Errorf("type %s, sysctls %v", m.Type(), m.Sysctls())
	}
	raw := cfg.RawV1Alpha1()
	//lint:ignore SA1019 our documents for older releases use it
	kernelArgs := raw.MachineConfig.MachineInstall.InstallExtraKernelArgs
	got := words(cfg.NetworkTimeSyncConfig().Servers(), cfg.NetworkResolverConfig().Resolvers(), cfg.NetworkResolverConfig().SearchDomains(),
		raw.MachineConfig.MachineNodeLabels["rack"], raw.MachineConfig.MachineNodeTaints, raw.MachineConfig.MachineKubelet.KubeletNodeIP.KubeletNodeIPValidSubnets,
		kernelArgs, raw.MachineConfig.MachineInstall.InstallDisk, raw.MachineConfig.MachineInstall.InstallDiskSelector.Serial)
	want := "[ntp1.example.com 10.0.0.5] [10.0.0.2 10.0.0.1] [example.com] r1 map[a:b:NoSchedule c:NoExecute] [10.0.0.21/32] [-quiet console=ttyS1,115200]  S3"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	files := map[string]string{}
	all, err := m.Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		files[f.Path()] = fmt.Sprintf("%s %v %s", f.Op(), f.Permissions(), f.Content())
	}
	for path, want := range map[string]string{
		"/var/lib/a": "create -rw------- one\ntwo\n", "/var/lib/b": "create -rw-r--r-- hé", "/var/lib/c": "create -rw-r--r-- " + pki()["ca.key"], "/var/lib/d": "append -rw-r--r-- x",
	} {
		if files[path] != want {
			t.Errorf("%s: got %q, want %q", path, files[path], want)
		}
	}
	if roots := cfg.TrustedRoots().ExtraTrustedRootCertificates(); len(roots) != 1 || !strings.Contains(roots[0], ca()) {
		t.Errorf("%d authorities", len(roots))
	}
	checkNetwork(t, raw)
}

// words puts one space between values.
func words(values ...any) string { return strings.TrimSuffix(fmt.Sprintln(values...), "\n") }

func checkNetwork(t *testing.T, raw *v1alpha1.Config) {
	t.Helper()
	var devices []string
	//lint:ignore SA1019 our documents for older releases use it
	for _, d := range raw.MachineConfig.MachineNetwork.NetworkInterfaces {
		line := d.DeviceInterface
		if d.DeviceSelector != nil {
			line = d.DeviceSelector.NetworkDeviceHardwareAddress
		}
		line += " " + words(d.DeviceAddresses, d.DeviceMTU, d.DHCP())
		for _, r := range d.DeviceRoutes {
			line += fmt.Sprintf(" %s>%s/%d", r.RouteNetwork, r.RouteGateway, r.RouteMetric)
		}
		for _, v := range d.DeviceVlans {
			line += " vlan " + words(v.VlanID, v.VlanAddresses, v.VlanMTU)
		}
		if b := d.DeviceBond; b != nil {
			line += " bond " + words(b.BondMode, b.BondInterfaces, len(b.BondDeviceSelectors), b.BondMIIMon, b.BondLACPRate, b.BondHashPolicy, b.BondPrimary)
		}
		if b := d.DeviceBridge; b != nil {
			line += " bridge " + words(b.BridgedInterfaces, *b.BridgeSTP.STPEnabled)
		}
		devices = append(devices, line)
	}
	wantDevices := `52:54:00:aa:00:01 [10.0.0.21/24 fd00::21/64] 9000 false 0.0.0.0/0>10.0.0.1/100 192.0.2.1/32>/0 10.9.0.0/16>192.0.2.1/0
enp2s0 [] 0 true
bond0 [] 0 true vlan 100 [10.1.0.21/24] 1500 bond 802.3ad [] 2 100 fast layer3+4 
bond1 [] 0 false bond active-backup [enp5s0 enp6s0] 0 0   enp5s0
br0 [10.2.0.21/24] 0 false bridge [enp8s0 enp7s0.200] true
enp7s0 [] 0 false vlan 200 [] 0`
	if got := strings.Join(devices, "\n"); got != wantDevices {
		t.Errorf("got\n%s\nwant\n%s", got, wantDevices)
	}
}

func TestTalosTakesASecretConfigurationAsItIs(t *testing.T) {
	judges(t)
	for _, release := range releases {
		for _, kind := range []machine.Type{machine.TypeControlPlane, machine.TypeWorker} {
			secret := generated(t, release, kind)
			role := machineconfig.ControlPlane
			if kind == machine.TypeWorker {
				role = machineconfig.Worker
			}
			a, _, err := talos.New().Emit(machineconfig.BootstrapInput{
				Config: &machineconfig.Config{}, Spec: machineconfig.BootstrapSpec{Kind: "talos", Secret: "m", Role: role}, Secret: secret,
			})
			if err != nil {
				t.Fatalf("%s %s: %v", release, kind, err)
			}
			c := &machineconfig.Config{Host: machineconfig.HostIdentity{Hostname: "n"}, Activation: a, Trust: machineconfig.Trust{CAs: []string{ca()}}}
			out, report := talos.NewProvisioner().Render(machineconfig.Target{OS: "talos"}, c)
			if out == nil {
				t.Fatal(report)
			}
			text, err := late.Inject(out.Documents[0].Data, func(string) ([]byte, error) { return secret, nil })
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(text), string(secret)) {
				t.Error("the secret is not at the beginning as it is")
			}
			loaded(t, text)
		}
	}
}

func TestTalosRefusesWhatWeRefuse(t *testing.T) {
	judges(t)
	base := string(generated(t, "v1.13", machine.TypeWorker))
	for old, bad := range map[string]string{
		"machine:\n":       "machines:\n",
		"    type: worker": "    type: workers",
		"    token: ":      "    tokens: ",
		"cluster:\n":       "cluster:\n    nonsense: 1\n",
		"    endpoint: ":   "    #endpoint: ",
	} {
		text := strings.Replace(base, old, bad, 1)
		if text == base {
			t.Errorf("%q is not in the document", old)
		}
		cfg, err := configloader.NewFromBytes([]byte(text))
		if err == nil {
			_, err = cfg.Validate(metal{})
		}
		_, _, ours := talos.New().Emit(machineconfig.BootstrapInput{Spec: machineconfig.BootstrapSpec{Secret: "m"}, Secret: []byte(text)})
		if err == nil || ours == nil {
			t.Errorf("%q for %q: Talos says %v, we say %v", bad, old, err, ours)
		}
	}
}
