package installer

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/installer/autoinstall"
	"slipway.dev/slipway/machineconfig"
)

// section reads a document and returns what stands under autoinstall.
func section(t *testing.T, doc []byte) map[string]any {
	t.Helper()
	var top struct {
		Autoinstall map[string]any `yaml:"autoinstall"`
	}
	if err := yaml.Unmarshal(doc, &top); err != nil {
		t.Fatalf("%v\n%s", err, doc)
	}
	return top.Autoinstall
}

func TestCloudInitAndNetplanTakeWhatIsInAutoinstall(t *testing.T) {
	t.Parallel()
	judge(t, map[string]string{"cloud-init": "cloud-init", "netplan": "netplan.io", "/usr/bin/python3": "python3-yaml"})
	dir := t.TempDir()
	var cases []string // folders, named after their case
	each(t, autoinstall.New(), func(t *testing.T, target machineconfig.Target, _ *machineconfig.Config, r *machineconfig.Rendered) {
		if target.Release != "24.04" {
			return // the same version of cloud-init
		}
		c := filepath.Join(dir, filepath.Base(t.Name()))
		if err := os.MkdirAll(c+"/etc/netplan", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(c+"/autoinstall", inject(t, r.Documents[0].Data), 0o600); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	})
	// The installer reads the document and writes its parts anew, with the same library. Then the command "cloud-init schema" reads
	// them. All in one process, because Python takes longer to start than to do that.
	const judgeAll = `import sys, yaml
from cloudinit.config import schema
for d in sys.argv[1:]:
    print(d, flush=True)
    a = yaml.safe_load(open(d + "/autoinstall"))["autoinstall"]
    open(d + "/user-data", "w").write("#cloud-config\n" + yaml.safe_dump(a["user-data"]))
    if "network" in a: open(d + "/etc/netplan/50.yaml", "w").write(yaml.safe_dump({"network": a["network"]}))
    schema.handle_schema_args("schema", schema.get_parser().parse_args(["--config-file", d + "/user-data"]))
`
	out := run(t, "", "/usr/bin/python3", append([]string{"-c", judgeAll}, cases...)...)
	if n := strings.Count(out, "Valid cloud-config: "); n != len(cases) || n == 0 {
		t.Errorf("cloud-init accepts %d of %d documents:\n%s", n, len(cases), out)
	}
	for _, c := range cases {
		if _, err := os.Stat(c + "/etc/netplan/50.yaml"); err == nil {
			run(t, "", "netplan", "generate", "--root-dir", c)
		}
	}
}

func TestCommandsOfAutoinstallAreScripts(t *testing.T) {
	judge(t, map[string]string{"dash": "dash", "bash": "bash", "shellcheck": "shellcheck"})
	all := newShellScripts(t, "#!/bin/sh", []string{"dash", "-n"})
	each(t, autoinstall.New(), func(t *testing.T, _ machineconfig.Target, _ *machineconfig.Config, r *machineconfig.Rendered) {
		auto := section(t, inject(t, r.Documents[0].Data))
		for _, key := range []string{"early-commands", "late-commands", "error-commands"} {
			commands, _ := auto[key].([]any)
			for _, c := range commands {
				all.add(t, c.(string))
			}
		}
	})
	all.judge(t)
}

// TestTheEarlyCommandEditsTheDocument runs it on a document that was written as the installer writes it, on a machine
// that has one disk and boots by BIOS.
func TestTheEarlyCommandEditsTheDocument(t *testing.T) {
	judge(t, map[string]string{"unshare": "util-linux", "python3": "python3-yaml", "udevadm": "udev"})
	if os.Getuid() != 0 {
		t.Fatal("needs root for a /sys of its own")
	}
	c := &machineconfig.Config{Storage: machineconfig.Storage{
		Disks:       []machineconfig.Disk{{Name: "a", Device: machineconfig.DeviceSelector{Serial: "it's SN-1", MinGiB: 1}, WipeTable: true, Partitions: []machineconfig.Partition{{Label: "root"}}}},
		Filesystems: []machineconfig.Filesystem{{Device: "root", Format: "ext4", MountPoint: "/"}},
	}}
	r, report := autoinstall.New().Render(targets["autoinstall"][1], c)
	if report.HasErrors() {
		t.Fatal(report)
	}
	auto := section(t, r.Documents[0].Data)
	for _, firmware := range []string{"bios", "uefi"} {
		t.Run(firmware, func(t *testing.T) {
			root := t.TempDir()
			text, err := yaml.Marshal(auto)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(root, "autoinstall.yaml")
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			command := strings.ReplaceAll(auto["early-commands"].([]any)[0].(string), "/autoinstall.yaml", file)
			const script = `
set -e
mount -t tmpfs tmpfs /sys
for d in sda:0:1:other sdb:1:9999999:usb vdc:0:9999999:"it's SN-1" sdd:0:9999999:third; do
IFS=: read n r s i <<< "$d"; mkdir -p /sys/block/$n/device; echo $r > /sys/block/$n/removable; echo $s > /sys/block/$n/size; echo "$i" > /sys/block/$n/serial; done
if [ "$1" = uefi ]; then mkdir -p /sys/firmware/efi; fi
exec sh -c "$2"
`
			cmd := exec.Command("unshare", "--mount", "bash", "-c", script, "bash", firmware, command)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			got, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			isUEFI := firmware == "uefi"
			for text, want := range map[string]bool{
				"path: /dev/vdc": true, "/dev/slipway-a": strings.Contains(command, "never"), "id: disk-1-boot-if-bios": !isUEFI,
				"id: disk-1-esp-if-uefi": isUEFI, "path: /boot/efi": isUEFI, "grub_device: true": true,
			} {
				if section, _, _ := strings.Cut(string(got[strings.Index(string(got), "storage:"):]), "timezone:"); strings.Contains(section, text) != want {
					t.Errorf("%q in the document: %v, want %v\n%s", text, !want, want, section)
				}
			}
		})
	}
}

// TestAKeptPartitionKeepsItsNumber: curtin takes the number of a new partition for the place of one that has it.
func TestAKeptPartitionKeepsItsNumber(t *testing.T) {
	judge(t, map[string]string{"unshare": "util-linux", "python3": "python3-yaml"})
	if os.Getuid() != 0 {
		t.Fatal("needs root for a /sys of its own")
	}
	c := &machineconfig.Config{
		Boot: machineconfig.Boot{RootDevice: machineconfig.DeviceSelector{Path: "/dev/vda"}},
		Storage: machineconfig.Storage{
			Disks: []machineconfig.Disk{{Name: "a", Partitions: []machineconfig.Partition{
				{Label: "home", Keep: true}, {Label: "root", SizeMiB: 20_000}, {Label: "swap"},
			}}},
			Filesystems: []machineconfig.Filesystem{{Device: "root", Format: "ext4", MountPoint: "/"}, {Device: "home", Format: "ext4", MountPoint: "/home", Keep: true}},
		},
	}
	r, report := autoinstall.New().Render(targets["autoinstall"][1], c)
	if report.HasErrors() {
		t.Fatal(report)
	}
	auto := section(t, r.Documents[0].Data)
	text, err := yaml.Marshal(auto)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "autoinstall.yaml")
	command := strings.ReplaceAll(auto["early-commands"].([]any)[0].(string), "/autoinstall.yaml", file)
	const script = `
set -e
mount -t tmpfs tmpfs /sys
mount -t tmpfs tmpfs /dev
mkdir -p /dev/disk/by-partlabel /sys/class/block/vda1
touch /dev/vda1; mknod /dev/null c 1 3
if [ -n "$2" ]; then ln -s ../../vda1 /dev/disk/by-partlabel/$2; fi
echo 1 > /sys/class/block/vda1/partition; echo 409600 > /sys/class/block/vda1/size; echo 2048 > /sys/class/block/vda1/start
exec sh -c "$1"
`
	for label, want := range map[string]string{"home": "home 1 1048576, root 3 <nil>, swap 2 <nil>", "": "no disk has a partition with the label home"} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("unshare", "--mount", "bash", "-c", script, "bash", command, label).CombinedOutput()
		if label == "" {
			if err == nil || !strings.Contains(string(out), want) {
				t.Errorf("without the partition: %v\n%s", err, out)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var edited struct {
			Storage struct{ Config []map[string]any }
		}
		if err := yaml.Unmarshal(got, &edited); err != nil {
			t.Fatal(err)
		}
		var parts []string
		for _, a := range edited.Storage.Config {
			if a["type"] == "partition" && !strings.Contains(a["id"].(string), "boot") {
				name := a["partition_name"]
				if name == nil {
					name = label
				}
				parts = append(parts, fmt.Sprint(name, " ", a["number"], " ", a["offset"]))
			}
		}
		if all := strings.Join(parts, ", "); all != want {
			t.Errorf("partitions %s, want %s", all, want)
		}
	}
}
