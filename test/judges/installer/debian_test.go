package installer

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/installer/preseed"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

const netboot = "/usr/lib/debian-installer/images/12/amd64/text/debian-installer/amd64"

// TestDebiansInstallerReadsThePreseedFile boots the installer with our documents in its initrd, has it say what it has
// understood, look for the disk, and run the late command, all with its own programs.
func TestDebiansInstallerReadsThePreseedFile(t *testing.T) {
	t.Parallel() // with the other long one: the other packages of judges end sooner
	judge(t, map[string]string{"qemu-system-x86_64": "qemu-system-x86", "cpio": "cpio", "gzip": "gzip"})
	if _, err := os.Stat(netboot + "/initrd.gz"); err != nil {
		t.Fatalf("%v: apt-get install debian-installer-12-netboot-amd64", err)
	}
	uid := 1001
	c := &machineconfig.Config{
		Host: machineconfig.HostIdentity{Hostname: "node-7", Domain: "lab.example", Locale: "de_DE.UTF-8", Keymap: "de", Timezone: "Europe/Berlin"},
		Boot: machineconfig.Boot{RootDevice: machineconfig.DeviceSelector{Serial: "SLIPWAY-B", MaxGiB: 2}, PowerAfter: machineconfig.PowerOff},
		Network: machineconfig.Network{DNS: []string{"192.0.2.53"}, Interfaces: []machineconfig.Interface{{Name: "eno1", MAC: "52:54:00:12:34:56", L3: machineconfig.L3{
			Addresses: []string{"192.0.2.7/24"}, Routes: []machineconfig.Route{{To: "0.0.0.0/0", Via: "192.0.2.1"}},
		}}}},
		Storage: machineconfig.Storage{
			Disks:       []machineconfig.Disk{{Name: "root", WipeTable: true, Partitions: []machineconfig.Partition{{Label: "boot", SizeMiB: 512}, {Label: "pv"}}}},
			LVM:         []machineconfig.VolumeGroup{{Name: "vg0", Devices: []string{"pv"}, LVs: []machineconfig.LogicalVolume{{Name: "root"}}}},
			Filesystems: []machineconfig.Filesystem{{Device: "boot", Format: "ext4", MountPoint: "/boot"}, {Device: "vg0/root", Format: "xfs", MountPoint: "/", MountOptions: []string{"noatime"}}},
		},
		Users:     []machineconfig.User{{Name: "ada", Gecos: "Ada L", UID: &uid, Groups: []string{"sudo", "adm"}, PasswordHash: "secret://ada", SSHKeys: []string{"ssh-ed25519 AAAA ada"}}},
		Files:     []machineconfig.File{{Path: "/etc/motd", Content: machineconfig.Content{Text: "it's a \"test\"\n"}}},
		Kernel:    machineconfig.Kernel{Args: []string{"console=ttyS0,115200", "panic=30"}},
		Packages:  machineconfig.Packages{Install: []string{"curl", "tmux"}},
		PhoneHome: machineconfig.PhoneHome{URL: late.Marker("session://report")},
	}
	r, report := preseed.New().Render(machineconfig.Target{OS: "debian", Release: "12", Arch: inventory.X8664, InitrdPath: "/preseed.cfg"}, c)
	if report.HasErrors() {
		t.Fatal(report)
	}
	want := answers(inject(t, r.Documents[0].Data))
	var questions []string
	for q := range want {
		if !strings.HasSuffix(q, "_command") && q != "partman-auto/expert_recipe" && want[q] != "" {
			questions = append(questions, q)
		}
	}
	log := bootInstaller(t, r, questions)
	for _, q := range questions {
		if !strings.Contains(log, fmt.Sprintf("ANSWER %s=%s.\n", q, want[q])) {
			t.Errorf("the installer has another answer to %s than %q", q, want[q])
		}
	}
	for _, d := range r.Documents[1:] {
		sum := fmt.Sprintf("%x", md5.Sum(inject(t, d.Data)))
		if !strings.Contains(log, sum+"  /target/var/lib/cloud/seed/nocloud/"+strings.TrimPrefix(d.Name, "seed-")) {
			t.Errorf("%s did not come through", d.Name)
		}
	}
	for _, line := range []string{
		"ID_SERIAL_SHORT=SLIPWAY-B\n", "BOOTDEV=DISK.", "EARLY 0.", "LATE 0.",
		"RECIPE slipway :: 1 1 1 free $iflabel{ gpt } $reusemethod{ } method{ biosgrub } . 537 537 537 ext4",
		"SEED datasource_list: [ NoCloud ]", "NET iface lo inet loopback",
	} {
		if !strings.Contains(log, line) {
			t.Errorf("the installer did not say %q", line)
		}
	}
	if t.Failed() {
		t.Logf("%s", log)
	}
}

// TestTheInstallersDebconfKeepsEveryAnswer has the programs of the installer's initrd read every case, without a boot.
func TestTheInstallersDebconfKeepsEveryAnswer(t *testing.T) {
	judge(t, map[string]string{"chroot": "coreutils", "cpio": "cpio", "gzip": "gzip"})
	if _, err := os.Stat(netboot + "/initrd.gz"); err != nil {
		t.Fatalf("%v: apt-get install debian-installer-12-netboot-amd64", err)
	}
	root := t.TempDir()
	run(t, "", "bash", "-ec", `cd $1; gzip -dc $2/initrd.gz | cpio -id --quiet -f 'lib/modules/*'; [ -c dev/null ] || mknod dev/null c 1 3
mkdir -p var/lib/preseed var/lib/cdebconf; DEBIAN_FRONTEND=none chroot . /bin/sh -c 'debconf-loadtemplate d-i /var/lib/dpkg/info/*.templates'; cp -r var/lib/cdebconf fresh`, "bash", root, netboot)
	each(t, preseed.New(), func(t *testing.T, target machineconfig.Target, _ *machineconfig.Config, r *machineconfig.Rendered) {
		_, name, _ := strings.Cut(t.Name(), "/"+strings.ReplaceAll(target.String(), " ", "_")+"_")
		if target.Release != "12" || !slices.Contains([]string{"kernel-remove-args", "network-static", "root-device-match", "storage-lvm", "web-server"}, name) {
			return // each takes many seconds
		}
		doc := inject(t, r.Documents[0].Data)
		if err := os.WriteFile(root+"/preseed.cfg", doc, 0o600); err != nil {
			t.Fatal(err)
		}
		want, asked := answers(doc), map[string]bool{}
		script := "rm -rf /var/lib/cdebconf; cp -r /fresh /var/lib/cdebconf; export DEBIAN_FRONTEND=none; debconf-set-selections /preseed.cfg || echo FAILED\n"
		for q := range want {
			if !strings.Contains(q, "command") && !strings.Contains(q, "recipe") && !strings.Contains(q, "opts") && !strings.Contains(q, "user") {
				continue // the others are asked for in the machine that boots
			}
			asked[q] = true
			script += "echo \"ANSWER " + q + "=$(debconf-get " + q + ").\"\n"
		}
		if err := os.WriteFile(root+"/ask.sh", []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		got := run(t, "", "chroot", root, "/bin/sh", "/ask.sh")
		for q := range asked {
			a := want[q]
			for strings.Contains(a, "  ") { // where a line was continued
				a = strings.ReplaceAll(a, "  ", " ")
			}
			if !strings.Contains(got, "ANSWER "+q+"="+a+".\n") {
				t.Errorf("the installer has another answer to %s than %q:\n%s", q, a, got)
			}
		}
	})
}

// bootInstaller runs Debian's installer on two disks until our command has spoken, and returns what it said.
func bootInstaller(t *testing.T, r *machineconfig.Rendered, questions []string) string {
	t.Helper()
	dir := t.TempDir()
	early := "( echo EARLY-STARTS; modprobe ehci-pci; modprobe xhci-pci; modprobe usb-storage; modprobe sd_mod; " +
		"for i in 1 2 3 4 5 6 7 8 9 10; do test -e /sys/block/sdb || sleep 3; done; udevadm settle; " +
		"for q in " + strings.Join(questions, " ") + "; do echo \"ANSWER $q=$(debconf-get $q).\"; done; " +
		"sh -c \"$(debconf-get partman/early_command)\"; echo \"EARLY $?.\"; " +
		"d=$(debconf-get partman-auto/disk); udevadm info -q property -n $d | grep ID_SERIAL_SHORT; test \"$d\" = \"$(debconf-get grub-installer/bootdev)\" && echo BOOTDEV=DISK.; echo \"RECIPE $(debconf-get partman-auto/expert_recipe)\"; " +
		"mkdir -p /target/etc/cloud/cloud.cfg.d /target/etc/network; sh -c \"$(debconf-get preseed/late_command)\"; echo \"LATE $?.\"; " +
		"md5sum /target/var/lib/cloud/seed/nocloud/*; sed 's/^/SEED /' /target/etc/cloud/cloud.cfg.d/*; sed 's/^/NET /' /target/etc/network/interfaces; " +
		"echo THE-END ) > /dev/ttyS0 2>&1; sync; poweroff -f"
	extra := filepath.Join(dir, "extra")
	for i, d := range r.Documents {
		text := inject(t, d.Data)
		if i == 0 {
			text = append(text, "d-i preseed/early_command string "+early+"\n"...)
		}
		p := filepath.Join(extra, d.Path)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, "", "bash", "-ec", "cd $1; find . | cpio -o -H newc --owner 0:0 --quiet | gzip -1 > ../extra.gz; cd ..; cat $2/initrd.gz extra.gz > initrd; truncate -s 1G a.img b.img", "bash", extra, netboot)
	serial := filepath.Join(dir, "serial")
	cmd := exec.Command("qemu-system-x86_64", "-m", "1024", "-accel", "tcg", "-cpu", "max", "-display", "none", "-serial", "file:"+serial,
		"-no-reboot", "-nic", "none", "-kernel", netboot+"/linux", "-initrd", dir+"/initrd", "-device", "usb-ehci",
		"-drive", "if=none,id=a,format=raw,file="+dir+"/a.img", "-device", "usb-storage,drive=a,serial=SLIPWAY-A",
		"-drive", "if=none,id=b,format=raw,file="+dir+"/b.img", "-device", "usb-storage,drive=b,serial=SLIPWAY-B",
		"-append", "console=ttyS0 auto=true priority=critical DEBIAN_FRONTEND=text ---")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case <-done:
	case <-time.After(14 * time.Minute):
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		<-done
	}
	log, err := os.ReadFile(serial)
	if err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	text := strings.ReplaceAll(string(log), "\r", "")
	if !strings.Contains(text, "THE-END\n") {
		t.Fatalf("the installer did not get to the end: %s\n%s", text[max(0, len(text)-3000):], out.String())
	}
	return text
}
