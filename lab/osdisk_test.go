package lab

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/images/ramdisk"
)

func TestTheScriptOfTheInstalledSystemIsAShellScript(t *testing.T) {
	cmd := exec.Command("sh", "-n")
	cmd.Stdin = bytes.NewReader(diskInit)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// addSeed puts a seed behind the system, where the agent would.
func addSeed(t *testing.T, image string) {
	t.Helper()
	dir, start := t.TempDir(), (osDiskMiB-3)*2048
	m := diskMaker{ctx: t.Context(), dir: dir, image: image}
	m.write("meta-data", []byte("instance-id: i\nlocal-hostname: \"web-1\"\n"))
	m.write("user-data", []byte("#cloud-config\nwrite_files:\n- path: /run/slipway/report-url\n  permissions: \"0600\"\n  content: \"http://192.0.2.1/report\"\n"))
	m.run(fmt.Sprintf("start=%d, size=4096, name=CIDATA\n", start), "sfdisk", "--quiet", "--append", image)
	m.run("", "mkfs.vfat", "-n", "CIDATA", "--offset", fmt.Sprint(start), image, "2048")
	m.run("", "mcopy", "-i", fmt.Sprintf("%s@@%d", image, start*osSector), m.path("meta-data"), m.path("user-data"), "::")
	if m.err != nil {
		t.Fatal(m.err)
	}
}

func TestTheInstalledSystemStartsFromItsDiskAndReadsItsSeed(t *testing.T) {
	if os.Getenv("SLIPWAY_VM") == "" {
		t.Skip("boots virtual machines, which takes a minute; run it with: SLIPWAY_VM=1 go test ./lab")
	}
	dir := t.TempDir()
	kernel, modules, err := ramdisk.Installed("/")
	if err != nil {
		t.Fatal(err)
	}
	k, err := ramdisk.FromFiles(kernel, modules)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	image, err := writeOSDisk(t.Context(), dir, k)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("made in %s", time.Since(began))
	addSeed(t, image)
	vars, err := os.ReadFile(ovmfVars)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
	}{
		{"BIOS", nil},
		{"UEFI", []string{
			"-drive", "if=pflash,format=raw,readonly=on,file=" + ovmfCode,
			"-drive", "if=pflash,format=raw,file=" + filepath.Join(dir, "vars"),
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(dir, "vars"), vars, 0o644); err != nil {
				t.Fatal(err)
			}
			console := filepath.Join(t.TempDir(), "console")
			cmd := exec.CommandContext(t.Context(), emulator, append([]string{
				"-accel", "tcg", "-machine", "q35", "-m", "512", "-nodefaults", "-display", "none", "-serial", "file:" + console, "-snapshot",
				"-drive", "if=none,id=d,format=raw,file=" + image, "-device", "virtio-blk-pci,drive=d",
			}, c.args...)...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}()
			began := time.Now()
			for deadline := time.Now().Add(3 * time.Minute); ; {
				b, _ := os.ReadFile(console)
				if strings.Contains(string(b), "lab-os: web-1 has read its seed on /dev/vda3") {
					t.Logf("after %s", time.Since(began).Round(time.Second))
					return
				}
				if time.Now().After(deadline) {
					t.Fatalf("it does not start:\n%s", Readable(b, 40))
				}
				time.Sleep(200 * time.Millisecond)
			}
		})
	}
}
