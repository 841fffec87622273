package lab

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// verdictPath caches whether KVM works, together with the boot id of this machine: a reboot may change the answer.
const verdictPath = "/run/slipway-lab.accel"

// probeFor is how long a kernel under KVM may take to its first output. A working KVM needs less than a second.
const probeFor = 10 * time.Second

// chooseAccel decides whether machines can run under KVM. It starts a kernel without a root file system, and waits
// for its panic. A /dev/kvm that opens is not enough: guests hang on some nested hypervisors. why is a sentence for
// people.
func chooseAccel(ctx context.Context, kernel string) (a Accel, why string) {
	if _, err := os.Stat("/dev/kvm"); err != nil {
		return AccelTCG, "this machine has no /dev/kvm"
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	id := strings.TrimSpace(string(boot))
	if cached, err := os.ReadFile(verdictPath); err == nil && id != "" {
		if was, verdict, _ := strings.Cut(strings.TrimSpace(string(cached)), " "); was == id {
			return verdictOf(verdict == string(AccelKVM))
		}
	}
	works := kvmWorks(ctx, kernel)
	a, why = verdictOf(works)
	if ctx.Err() == nil {
		_ = os.WriteFile(verdictPath, []byte(id+" "+string(a)+"\n"), 0o644)
	}
	return a, why
}

func verdictOf(works bool) (Accel, string) {
	if works {
		return AccelKVM, "/dev/kvm works"
	}
	return AccelTCG, "/dev/kvm is there, but a kernel started with it says nothing within " + probeFor.String()
}

// kvmWorks starts the kernel under KVM and reports whether it comes as far as its panic.
func kvmWorks(ctx context.Context, kernel string) bool {
	dir, err := os.MkdirTemp("", "slipway-lab-kvm")
	if err != nil {
		return false
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(ctx, probeFor)
	defer cancel()
	console := filepath.Join(dir, "console")
	cmd := exec.CommandContext(ctx, emulator, "-accel", "kvm", "-m", "256", "-nodefaults", "-no-user-config", "-display", "none",
		"-no-reboot", "-serial", "file:"+console, "-kernel", kernel, "-append", "console=ttyS0 panic=-1")
	cmd.WaitDelay = time.Second
	_ = cmd.Run() // how it ended shows in the console
	b, _ := os.ReadFile(console)
	return sawKernelEnd(b)
}

// sawKernelEnd reports whether a console shows a kernel that found no root file system.
func sawKernelEnd(console []byte) bool { return strings.Contains(string(console), "Kernel panic") }
