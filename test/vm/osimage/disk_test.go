package osimage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The configurations that are put on the disks by hand. Each makes the system say on its console what became of it.
const (
	userData = `#cloud-config
hostname: web-1
runcmd:
  - echo "ARRIVED $(hostname) $(df --output=size -m / | tail -n 1 | tr -d ' ') MiB" >/dev/ttyS0
`
	metaData = "instance-id: i-1\n"

	configIgn = `{"ignition": {"version": "3.3.0"},
"passwd": {"users": [{"name": "core"}]},
"storage": {"files": [{"path": "/etc/hostname", "mode": 420, "contents": {"source": "data:,web-1"}}]},
"systemd": {"units": [{"name": "arrived.service", "enabled": true, "contents":
"[Unit]\nAfter=first-boot-done.service\n[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo ARRIVED $(hostname) $(id -un core) left: $(ls /boot/ignition) $(grep -o ignition.firstboot /proc/cmdline) >/dev/ttyS0; [ -e /var/again ] || { touch /var/again; reboot; }'\n[Install]\nWantedBy=multi-user.target\n"}]}}
`
)

// place puts files into the ext4 file system of a partition. Folders come before what is in them, with no content.
func place(t *testing.T, disk string, partition int, files ...[2]string) {
	t.Helper()
	f, err := os.Open(disk)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	entry := make([]byte, 128) // of the partition table (UEFI 5.3.3)
	if _, err := f.ReadAt(entry, int64(1024+128*(partition-1))); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var commands bytes.Buffer
	for i, file := range files {
		if file[1] == "" {
			fmt.Fprintf(&commands, "mkdir %s\n", file[0])
			continue
		}
		from := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(from, []byte(file[1]), 0o644); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&commands, "write %s %s\n", from, file[0])
	}
	cmd := exec.Command("debugfs", "-w", "-f", "/dev/stdin", fmt.Sprintf("%s?offset=%d", disk, binary.LittleEndian.Uint64(entry[32:])*512))
	cmd.Stdin = &commands
	if out, err := cmd.CombinedOutput(); err != nil || bytes.Contains(out, []byte("not found")) {
		t.Fatalf("%v\n%s", err, out)
	}
}

// copyOf returns a copy of a disk on one of 3 GiB.
func copyOf(t *testing.T, disk string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "disk")
	if out, err := exec.Command("cp", "--sparse=always", disk, path).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Truncate(path, 3<<30); err != nil {
		t.Fatal(err)
	}
	return path
}

// boot starts an emulated machine from a disk and returns what it says up to what is waited for.
func boot(t *testing.T, disk string, isUEFI bool, until *regexp.Regexp) string {
	t.Helper()
	console := filepath.Join(t.TempDir(), "console")
	args := []string{
		"-accel", "tcg,thread=multi", "-machine", "q35", "-cpu", "max", "-smp", "2", "-m", fmt.Sprint(MemoryMiB), "-display", "none", "-vga", "none", "-nodefaults",
		"-serial", "file:" + console, "-netdev", "user,id=n,restrict=on", "-device", "virtio-net-pci,netdev=n,romfile=",
		"-drive", "if=none,id=d,format=raw,cache=unsafe,file=" + disk, "-device", "virtio-blk-pci,drive=d",
	}
	if isUEFI {
		vars, err := os.ReadFile("/usr/share/OVMF/OVMF_VARS_4M.fd")
		if err != nil {
			t.Fatal(err)
		}
		own := filepath.Join(t.TempDir(), "vars")
		if err := os.WriteFile(own, vars, 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, "-drive", "if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd", "-drive", "if=pflash,format=raw,file="+own)
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "qemu-system-x86_64", args...)
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() {
		_ = cmd.Process.Kill()
		<-ended
	}()
	deadline := time.After(10 * time.Minute)
	for {
		text, err := os.ReadFile(console)
		if err == nil && until.Match(text) {
			return string(text)
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the machine ended: %v\n%s", err, said.String())
		case <-deadline:
			t.Fatalf("it does not say %s\n%s", until, tail(string(text), 30))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func TestDisksBootFromTheirConfiguration(t *testing.T) {
	if os.Getenv("SLIPWAY_VM") == "" || os.Getenv("SLIPWAY_LONG") == "" {
		t.Skip("boots each disk by itself, which takes a quarter of an hour; test/vm boots them after they were installed; run it with: make test-long")
	}
	for _, c := range []struct {
		kind      Kind
		partition int
		files     [][2]string
		want      []string // what it says, each on its own line, in this order
	}{
		{
			DiskCloudInit, 1,
			[][2]string{
				{"/var/lib/cloud", ""},
				{"/var/lib/cloud/seed", ""},
				{"/var/lib/cloud/seed/nocloud", ""},
				{"/var/lib/cloud/seed/nocloud/user-data", userData},
				{"/var/lib/cloud/seed/nocloud/meta-data", metaData},
			},
			[]string{`ARRIVED web-1 29\d\d MiB`},
		},
		{
			DiskIgnition, 3,
			[][2]string{{"/ignition/config.ign", configIgn}},
			[]string{`ARRIVED web-1 core left: ignition.firstboot`, `ARRIVED web-1 core left:`}, // on the first boot and the second
		},
	} {
		d, err := BuildDisk(t.Context(), "../../../build/osimage", c.kind)
		if err != nil {
			t.Fatal(err)
		}
		checkPacked(t, d)
		for _, isUEFI := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s uefi=%v", c.kind, isUEFI), func(t *testing.T) {
				t.Parallel()
				disk := copyOf(t, d.Raw)
				place(t, disk, c.partition, c.files...)
				began := time.Now()
				boot(t, disk, isUEFI, regexp.MustCompile(`(?s)`+strings.Join(c.want, `\s*\n.*`)+`\s*\n`))
				t.Logf("arrived %.0f s after power on", time.Since(began).Seconds())
			})
		}
	}
}

// checkPacked compares both forms of a disk.
func checkPacked(t *testing.T, d Disk) {
	t.Helper()
	info, err := os.Stat(d.Packed)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 200<<20 {
		t.Errorf("%s has %d MiB", d.Packed, info.Size()>>20)
	}
	out, err := exec.Command("bash", "-c", `zstd -dcq "$1" | cmp - "$0"`, d.Raw, d.Packed).CombinedOutput()
	if err != nil {
		t.Errorf("the packed disk is another: %v\n%s", err, out)
	}
}
