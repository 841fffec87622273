// Package osimage owns small operating systems for tests, made of Debian's packages: one with cloud-init, and one that
// Ignition prepares, each as a RAM disk and as a disk. It never configures one: what they become is what the tests look
// at.
package osimage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Kind is one of the operating systems.
type Kind string

// The kinds that Build makes. Both run in RAM, have Linux with virtio drivers, systemd, systemd-networkd, sshd, sudo and curl, and write
// to the console that the kernel is told.
const (
	// CloudInit is Debian 12 with its cloud-init (22.4.2) and netplan. Its one RAM disk is its root, so a seed for
	// NoCloud may lie in a second one under /var/lib/cloud/seed/nocloud.
	CloudInit Kind = "cloud-init"
	// Ignition is Debian 12 with its Ignition (2.14, spec 3.3.0) in a RAM disk made by dracut. It runs with the argument
	// ignition.firstboot, on ignition.config.url or on /config.ign in a second RAM disk.
	Ignition Kind = "ignition"
)

// The kinds that BuildDisk makes: the same systems on disks that boot with BIOS and with UEFI, from a disk on virtio, SCSI
// (virtio) or NVMe.
const (
	// DiskCloudInit is partitioned as Debian's cloud images are. Its root is partition 1, named cloudimg-rootfs, which
	// cloud-init grows over the rest of the disk. A seed for NoCloud is a file system named CIDATA on any disk, or lies
	// below /var/lib/cloud/seed/nocloud.
	DiskCloudInit Kind = "disk-cloud-init"
	// DiskIgnition is partitioned as Fedora CoreOS is: partition 3 is named boot and 4 is named root, both ext4. On its first
	// boot Ignition runs on ignition/config.ign in partition boot, which is removed then, as is the file
	// ignition.firstboot that made it the first.
	DiskIgnition Kind = "disk-ignition"
)

// MemoryMiB is what a machine needs to boot an image: its packed RAM disk, and twice what is in it.
const MemoryMiB = 1024

// Image is what a machine boots, as paths of files.
type Image struct{ Kernel, Initrd string }

// Disk is a disk for a machine, as paths of files: as it is, with holes where nothing is, and packed with zstd.
type Disk struct{ Raw, Packed string }

//go:embed build.sh cloud.cfg ssh-keys.conf image.preset dracut disk
var ours embed.FS

const (
	suite = "bookworm"
	// baseFor is how long the tree that images are made of is fit for adding packages to: apt's lists in it grow old.
	baseFor = 24 * time.Hour
)

// programs are what building takes, with the packages that have them.
var programs = map[string]string{
	"mmdebstrap": "mmdebstrap", "cpio": "cpio", "zstd": "zstd", "unshare": "util-linux", "mount": "mount", "dpkg-deb": "dpkg", "apt-get": "apt",
}

// Build returns the image of a kind out of the folder dir, where it is built first unless that has been done from the
// same inputs. It needs root, Debian's mirror that apt uses, and about a minute. Many may call it at once.
func Build(ctx context.Context, dir string, kind Kind) (Image, error) {
	if kind != CloudInit && kind != Ignition {
		return Image{}, fmt.Errorf("there is no image %q", kind)
	}
	made, err := build(ctx, dir, kind)
	if err != nil {
		return Image{}, err
	}
	return Image{Kernel: filepath.Join(made, "kernel"), Initrd: filepath.Join(made, "initrd")}, nil
}

// BuildDisk returns the disk of a kind, under the same terms as Build. Its files are shared: machines write to copies.
func BuildDisk(ctx context.Context, dir string, kind Kind) (Disk, error) {
	if kind != DiskCloudInit && kind != DiskIgnition {
		return Disk{}, fmt.Errorf("there is no disk %q", kind)
	}
	made, err := build(ctx, dir, kind)
	if err != nil {
		return Disk{}, err
	}
	return Disk{Raw: filepath.Join(made, "raw"), Packed: filepath.Join(made, "raw.zst")}, nil
}

// build returns the folder in which a kind is.
func build(ctx context.Context, dir string, kind Kind) (string, error) {
	if err := checkMachine(); err != nil {
		return "", err
	}
	b := builder{dir: dir}
	var err error
	if b.sources, err = sources(ctx); err != nil {
		return "", err
	}
	if b.key, err = key(b.sources); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return b.build(ctx, string(kind), func(out string) error {
		base, err := b.build(ctx, "base", func(out string) error { return b.run(ctx, "base", out) })
		if err != nil {
			return err
		}
		return b.run(ctx, string(kind), out, base)
	})
}

func checkMachine() error {
	var missing []string
	for program, pkg := range programs {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, pkg)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("building an image needs Debian packages %s", strings.Join(missing, " "))
	}
	if os.Geteuid() != 0 {
		return errors.New("building an image needs root: packages are installed into a tree of their own")
	}
	return nil
}

// sources returns the lines of a sources.list for the suite, with the mirrors that apt has on this machine.
func sources(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)",
		"Created-By: Packages", "Origin: Debian").Output()
	if err != nil {
		return "", fmt.Errorf("ask apt for its mirrors: %w", err)
	}
	lines := pick(string(out))
	if lines == "" {
		return "", fmt.Errorf("apt knows no Debian mirror on this machine; run: apt-get update")
	}
	return lines, nil
}

// pick makes a sources.list of what apt says. Where apt has another suite, as on a newer Debian, its mirror has ours too.
func pick(targets string) string {
	var lines []string
	mirror := ""
	for line := range strings.Lines(targets) {
		f := strings.Fields(line)
		if len(f) != 3 || f[2] != "main" {
			continue
		}
		if f[1] == suite || strings.HasPrefix(f[1], suite+"-") {
			lines = append(lines, "deb "+strings.Join(f, " "))
		}
		if mirror == "" && !strings.Contains(f[1], "-") {
			mirror = f[0]
		}
	}
	if len(lines) == 0 && mirror != "" {
		lines = append(lines, "deb "+mirror+" "+suite+" main")
	}
	return strings.Join(lines, "\n")
}

// key names what images are made from: our own files and the mirrors. A newer package on a mirror does not change it.
func key(sources string) (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, sources)
	err := fs.WalkDir(ours, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := ours.ReadFile(path)
		fmt.Fprintf(sum, "%s %d\n%s", path, len(b), b)
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)[:6]), err
}

// builder makes the parts of an image below its folder, each in a folder name-key.
type builder struct{ dir, sources, key string }

// build returns the folder of a part and makes it with fn if it is not there. Another process may want the same.
func (b builder) build(ctx context.Context, name string, fn func(out string) error) (string, error) {
	dir := filepath.Join(b.dir, name+"-"+b.key)
	unlock, err := lock(ctx, filepath.Join(b.dir, name+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if info, err := os.Stat(dir); err == nil && (name != "base" || time.Since(info.ModTime()) < baseFor) {
		return dir, nil
	}
	old, err := filepath.Glob(filepath.Join(b.dir, name+"-*")) // of other inputs, and what a killed build has left
	if err != nil {
		return "", err
	}
	for _, path := range old {
		if err := os.RemoveAll(path); err != nil {
			return "", fmt.Errorf("remove an older build: %w", err)
		}
	}
	out := dir + ".part"
	if err := os.Mkdir(out, 0o755); err != nil {
		return "", err
	}
	if err := fn(out); err != nil {
		return "", errors.Join(err, os.RemoveAll(out))
	}
	return dir, os.Rename(out, dir)
}

// lock takes a lock between processes and goroutines; it is given back by the function it returns.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// run runs a part of build.sh in a mount namespace of its own, so that nothing stays mounted whatever happens.
func (b builder) run(ctx context.Context, args ...string) error {
	files, err := os.MkdirTemp("", "osimage-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(files)
	if err := os.CopyFS(files, ours); err != nil {
		return fmt.Errorf("write the build's files: %w", err)
	}
	for i, a := range args[1:] {
		if args[i+1], err = filepath.Abs(a); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, "unshare", append([]string{
		"--mount", "--propagation", "private", "bash", filepath.Join(files, "build.sh"),
	}, args...)...)
	cmd.Env = append(os.Environ(), "SOURCES="+b.sources, "FILES="+files)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", args[0], errors.Join(err, ctx.Err()), tail(out.String(), 15))
	}
	return nil
}

// tail returns the last lines of text.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
