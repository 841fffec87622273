package cloudinit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/test/corpus"
)

// TestSubvolumesAreMadeOnARealDisk runs the commands of a rendering that make a file system and its subvolumes, on a loop device, and
// mounts what its fstab lines say. Subvolumes that are there stay as they are when they are made once more.
func TestSubvolumesAreMadeOnARealDisk(t *testing.T) {
	if os.Getenv("SLIPWAY_JUDGES") == "" {
		t.Skip("disks are made by make test-judges")
	}
	if known, err := os.ReadFile("/proc/filesystems"); err != nil || !strings.Contains(string(known), "\tbtrfs\n") {
		t.Skipf("this kernel has no btrfs (%v): run make test-judges where it has", err)
	}
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	rendered, report := cloudinit.New().Render(machineconfig.Target{OS: "debian", Release: "12", Tool: "22.4.2", Arch: "x86_64"}, corpus.Config("storage-subvolumes"))
	if rendered == nil {
		t.Fatal(report)
	}
	var doc struct {
		Bootcmd [][]string
		Mounts  [][]string
	}
	if err := yaml.Unmarshal(rendered.Documents[0].Data, &doc); err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(t.TempDir(), "disk")
	run("truncate", "-s", "200M", image)
	device := run("losetup", "--find", "--show", image)
	t.Cleanup(func() { run("losetup", "--detach", device) })
	const partition = "/dev/disk/by-partlabel/data"
	commands := func(prefix string) (n int) {
		for _, c := range doc.Bootcmd {
			if len(c) < 4 || !strings.HasPrefix(c[2], prefix) {
				continue
			}
			n++
			args := append([]string{}, c[3:]...)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], partition, device)
			}
			run(args...)
		}
		return n
	}
	if commands("slipway-format") != 1 || commands("slipway-subvolumes") != 1 {
		t.Fatalf("the rendering has other commands: %v", doc.Bootcmd)
	}
	root := filepath.Join(t.TempDir(), "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, m := range doc.Mounts {
		if m[0] != partition {
			continue
		}
		var options []string
		for o := range strings.SplitSeq(m[3], ",") {
			if o != "nofail" && !strings.HasPrefix(o, "x-systemd.") {
				options = append(options, o)
			}
		}
		run("mount", "-t", m[2], "-o", strings.Join(options, ","), device, root)
		kept := filepath.Join(root, "kept")
		if err := os.WriteFile(kept, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		list := run("btrfs", "subvolume", "list", root)
		run("umount", root)
		commands("slipway-subvolumes")
		run("mount", "-t", m[2], "-o", strings.Join(options, ","), device, root)
		if _, err := os.Stat(kept); err != nil {
			t.Errorf("what stood in the subvolume is gone: %v", err)
		}
		run("umount", root)
		for _, want := range []string{"path @home", "path snapshots"} {
			if !strings.Contains(list, want) {
				t.Errorf("%s is not in %s", want, list)
			}
		}
	}
}
