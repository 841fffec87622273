package vm

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/images/ramdisk"
)

// guestModules are what a guest needs of its kernel: this machine's files, and networks in namespaces.
var guestModules = []string{"virtio_pci", "9p", "9pnet_virtio", "veth", "bridge", "8021q"}

// guestInit runs a script in a root that is this machine's, which it cannot write to but for /run, and says with which
// code it ended.
const guestInit = `#!/bin/busybox sh
exec 2>&1
busybox mkdir -p /proc /root
busybox mount -t proc none /proc
for m in $(busybox sed 's/.*modules=\([^ ]*\).*/\1/; s/,/ /g' /proc/cmdline); do busybox modprobe $m; done
busybox mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=262144 host /root
for m in proc:proc sysfs:sys devtmpfs:dev tmpfs:run; do busybox mount -t ${m%:*} none /root/${m#*:}; done
busybox chroot /root /bin/sh "$(busybox sed 's/.*script=//' /proc/cmdline)"
echo "ENDED $?"
busybox poweroff -f
`

// guest runs a shell script of this machine as root under the newest kernel that is installed here, which need not be the
// one that runs, and returns what it says.
func guest(t *testing.T, script string) string {
	t.Helper()
	needVM(t)
	dir := t.TempDir()
	path, initrd := filepath.Join(dir, "script"), filepath.Join(dir, "initrd")
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	kernel, modules, err := ramdisk.Installed("/")
	if err != nil {
		t.Fatal(explain(err))
	}
	k, err := ramdisk.FromFiles(kernel, modules)
	if err != nil {
		t.Fatal(explain(err))
	}
	busybox, err := os.ReadFile("/bin/busybox")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(initrd)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const isFile, isLink = 0o100000, 0o120000
	_, err = ramdisk.Write(t.Context(), f, ramdisk.Recipe{
		Kernel: k, Agent: busybox,
		Exclude: []string{"*"}, Include: guestModules,
		Extra: []ramdisk.File{
			{Name: "bin/busybox", Mode: isLink | 0o777, Data: []byte("/init")},
			{Name: "etc/inittab", Mode: isFile | 0o644, Data: []byte("::sysinit:/etc/guest\n")},
			{Name: "etc/guest", Mode: isFile | 0o755, Data: []byte(guestInit)},
		},
	})
	if err != nil {
		t.Fatal(explain(err))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-machine", "q35", "-cpu", "max", "-smp", "2", "-m", "1024",
		"-display", "none", "-vga", "none", "-serial", "stdio", "-no-reboot", "-nodefaults",
		"-kernel", kernel, "-initrd", initrd, "-append", "console=ttyS0 quiet panic=-1 modules="+strings.Join(guestModules, ",")+" script="+path,
		"-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap", "-device", "virtio-rng-pci")
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the guest: %v\n%s", err, said)
	}
	return string(said)
}

// TestVLANInterface runs, under Debian's kernel, the one test of test/net that needs VLAN interfaces: the kernel of many a
// build machine has none.
func TestVLANInterface(t *testing.T) {
	needVM(t)
	program := filepath.Join(t.TempDir(), "net.test")
	if out, err := exec.Command("go", "test", "-c", "-ldflags", "-s -w", "-o", program, "../net").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	folder, err := filepath.Abs("../net")
	if err != nil {
		t.Fatal(err)
	}
	said := guest(t, "cd '"+folder+"' && PATH=/usr/sbin:/usr/bin:/sbin:/bin TMPDIR=/run SLIPWAY_NET=1 "+program+" -test.v -test.run '^TestAVLANInterface$'\n")
	if !strings.Contains(said, "--- PASS: TestAVLANInterface") || !strings.Contains(said, "ENDED 0") {
		t.Error(said)
	}
}
