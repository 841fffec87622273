// Command capi-secrets prints bootstrap secrets as stock Cluster API makes them, with its own renderers: a JSON list of
// name, format and value. They judge Slipway's importer.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/blang/semver/v4"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/cloudinit"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/ignition"
	"sigs.k8s.io/cluster-api/util/secret"
)

type secretValue struct {
	Name   string `json:"name"`
	Format string `json:"format"`
	Value  string `json:"value"`
}

const join = `apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  bootstrapToken:
    apiServerEndpoint: 10.0.0.10:6443
    caCertHashes:
    - sha256:7c2e69131a36ae2a042a339b33381c6d0d43887e2de83720eff5359e26aec866
    token: abcdef.0123456789abcdef
nodeRegistration:
  kubeletExtraArgs:
  - name: provider-id
    value: 'slipway://{{ ds.meta_data.instance_id }}'
  name: '{{ ds.meta_data.local_hostname }}'
  taints: []
`

const initConfig = `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
nodeRegistration:
  name: '{{ ds.meta_data.local_hostname }}'
`

const cluster = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
controlPlaneEndpoint: 10.0.0.10:6443
kubernetesVersion: v1.35.0
`

// onIgnition is base in the words of format ignition, which takes the partition's device and mounts by a bare label.
func onIgnition(b cloudinit.BaseUserData) cloudinit.BaseUserData {
	if b.DiskSetup != nil {
		b.DiskSetup.Filesystems[0].Device, b.DiskSetup.Filesystems[0].Partition = "/dev/vdb1", ""
		b.Mounts = []bootstrapv1.MountPoints{{"etcd_disk", "/var/lib/etcddisk"}}
	}
	return b
}

// base is what both plain and rich secrets share; rich ones use everything that a KubeadmConfig can say.
func base(isRich bool) cloudinit.BaseUserData {
	b := cloudinit.BaseUserData{KubernetesVersion: semver.MustParse("1.35.0"), KubeadmVerbosity: "--v 5"}
	if !isRich {
		return b
	}
	yes := true
	no := false
	b.BootCommands = []string{"echo booting > /dev/kmsg"}
	b.PreKubeadmCommands = []string{"echo \"before 'kubeadm'\" > /var/log/before", "sysctl -w net.ipv4.ip_forward=1"}
	b.PostKubeadmCommands = []string{"echo after > /var/log/after"}
	b.AdditionalFiles = []bootstrapv1.File{
		{Path: "/etc/example.conf", Owner: "root:root", Permissions: "0640", Content: "key = \"value\"\nother = 'x'\n"},
		{Path: "/etc/encoded", Owner: "root:root", Permissions: "0600", Encoding: bootstrapv1.Base64, Content: "aGVsbG8gd29ybGQK"},
		{Path: "/etc/appended", Owner: "root:root", Permissions: "0644", Append: &yes, Content: "one more line\n"},
	}
	b.Users = []bootstrapv1.User{{
		Name: "admin", Gecos: "An admin", Groups: "sudo, users", HomeDir: "/home/admin", Shell: "/bin/bash", LockPassword: &no,
		Passwd: "$6$abcdefgh$M1A5vPGBWKDaMUCnTeMQ4Ev5Vb/YPOaIPyo3RSoFVpmK9YX3bvU2AD6nxDH5a5DG4VEKVHzqZVa4i8sdGm6Aj1",
		Sudo:   "ALL=(ALL) NOPASSWD:ALL",
		SSHAuthorizedKeys: []string{
			"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl admin@example",
		},
	}}
	b.NTP = &bootstrapv1.NTP{Enabled: &yes, Servers: []string{"ntp1.example.com", "ntp2.example.com"}}
	b.DiskSetup = &bootstrapv1.DiskSetup{
		Partitions: []bootstrapv1.Partition{{Device: "/dev/vdb", Layout: &yes, Overwrite: &no, TableType: "gpt"}},
		Filesystems: []bootstrapv1.Filesystem{{
			Device: "/dev/vdb", Filesystem: "ext4", Label: "etcd_disk", Partition: "1", Overwrite: &no, ExtraOpts: []string{"-E", "lazy_itable_init=1"},
		}},
	}
	b.Mounts = []bootstrapv1.MountPoints{{"LABEL=etcd_disk", "/var/lib/etcddisk"}}
	return b
}

func all() (out []secretValue, err error) {
	for _, isRich := range []bool{false, true} {
		kind := "plain"
		if isRich {
			kind = "rich"
		}
		certificates := secret.NewCertificatesForInitialControlPlane(nil)
		if err := certificates.Generate(); err != nil {
			return nil, err
		}
		add := func(role, format string, value []byte, err error) error {
			out = append(out, secretValue{Name: kind + "-" + role + "-" + format, Format: format, Value: string(value)})
			return err
		}
		worker := func() *cloudinit.NodeInput {
			return &cloudinit.NodeInput{BaseUserData: base(isRich), JoinConfiguration: join}
		}
		plane := func() *cloudinit.ControlPlaneJoinInput {
			return &cloudinit.ControlPlaneJoinInput{BaseUserData: base(isRich), Certificates: certificates, JoinConfiguration: join}
		}
		first := func() *cloudinit.ControlPlaneInput {
			return &cloudinit.ControlPlaneInput{BaseUserData: base(isRich), Certificates: certificates, ClusterConfiguration: cluster, InitConfiguration: initConfig}
		}
		for _, make := range []func() (string, string, []byte, error){
			func() (string, string, []byte, error) {
				v, err := cloudinit.NewNode(worker())
				return "worker", "cloud-config", v, err
			},
			func() (string, string, []byte, error) {
				v, err := cloudinit.NewJoinControlPlane(plane())
				return "control-plane", "cloud-config", v, err
			},
			func() (string, string, []byte, error) {
				v, err := cloudinit.NewInitControlPlane(first())
				return "init", "cloud-config", v, err
			},
			func() (string, string, []byte, error) {
				in := worker()
				in.BaseUserData = onIgnition(in.BaseUserData)
				v, _, err := ignition.NewNode(&ignition.NodeInput{NodeInput: in, Ignition: &bootstrapv1.IgnitionSpec{}})
				return "worker", "ignition", v, err
			},
			func() (string, string, []byte, error) {
				in := plane()
				in.BaseUserData = onIgnition(in.BaseUserData)
				v, _, err := ignition.NewJoinControlPlane(&ignition.ControlPlaneJoinInput{ControlPlaneJoinInput: in, Ignition: &bootstrapv1.IgnitionSpec{}})
				return "control-plane", "ignition", v, err
			},
			func() (string, string, []byte, error) {
				in := first()
				in.BaseUserData = onIgnition(in.BaseUserData)
				v, _, err := ignition.NewInitControlPlane(&ignition.ControlPlaneInput{ControlPlaneInput: in, Ignition: &bootstrapv1.IgnitionSpec{}})
				return "init", "ignition", v, err
			},
		} {
			role, format, value, err := make()
			if err := add(role, format, value, err); err != nil {
				return nil, fmt.Errorf("%s %s %s: %w", kind, role, format, err)
			}
		}
	}
	return out, nil
}

func main() {
	secrets, err := all()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(secrets)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "capi-secrets:", err)
		os.Exit(1)
	}
}
