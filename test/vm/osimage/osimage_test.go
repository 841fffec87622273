package osimage

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAptsMirrorsBecomeSources(t *testing.T) {
	for _, c := range []struct{ name, targets, want string }{
		{
			"Debian 12 with its updates and somebody else's packages",
			"http://m/debian/ bookworm main\nhttp://m/debian/ bookworm contrib\nhttp://m/debian/ bookworm-updates main\nhttp://s/ bookworm-security main\nhttps://n/ nodistro main\n",
			"deb http://m/debian/ bookworm main\ndeb http://m/debian/ bookworm-updates main\ndeb http://s/ bookworm-security main",
		},
		{"a newer Debian", "http://s/ trixie-security main\nhttp://m/debian/ trixie main\n", "deb http://m/debian/ bookworm main"},
		{"no list has been fetched", "http://m/debian/  main\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := pick(c.targets); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestTheKeyChangesWithTheMirrors(t *testing.T) {
	a, err := key("deb a bookworm main")
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := key("deb b bookworm main"); a == b || len(a) != 12 {
		t.Errorf("keys %s and %s", a, b)
	}
}

func TestABuildIsMadeOnceAndReplacesOlderOnes(t *testing.T) {
	b := builder{dir: t.TempDir(), key: "new"}
	for _, old := range []string{"base-old", "base-new.part", "ignition-old"} {
		if err := os.MkdirAll(filepath.Join(b.dir, old, "x"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for range 2 {
		if _, err := b.build(t.Context(), "base", func(string) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	left, _ := filepath.Glob(filepath.Join(b.dir, "*-*"))
	if n != 1 || len(left) != 2 || filepath.Base(left[0]) != "base-new" || filepath.Base(left[1]) != "ignition-old" {
		t.Errorf("made %d times; there are %q", n, left)
	}
	long := time.Now().Add(-2 * baseFor)
	if err := os.Chtimes(left[0], long, long); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(b.dir, "cloud-init-new"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(b.dir, "cloud-init-new"), long, long); err != nil {
		t.Fatal(err)
	}
	if _, err := b.build(t.Context(), "cloud-init", func(string) error { n++; return nil }); err != nil || n != 1 {
		t.Errorf("an old image: %v, made %d times", err, n)
	}
	if _, err := b.build(t.Context(), "base", func(string) error { n++; return io.ErrUnexpectedEOF }); err == nil || n != 2 {
		t.Errorf("an old base: %v, made %d times", err, n)
	}
	if left, _ := filepath.Glob(filepath.Join(b.dir, "base-*")); len(left) != 0 {
		t.Errorf("what failed is still there: %q", left)
	}
}

func TestAnotherBuildIsWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, path); err == nil {
		t.Error("it was taken twice")
	}
	unlock()
	if again, err := lock(t.Context(), path); err != nil {
		t.Error(err)
	} else {
		again()
	}
}

func TestABuildSaysWhyItFailed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("makes a mount namespace, which needs root; run it with: make test-vm")
	}
	err := builder{dir: t.TempDir()}.run(t.Context(), "nonsense", "out")
	if err == nil || !strings.Contains(err.Error(), "nonsense: command not found") {
		t.Errorf("%v", err)
	}
}

// maxUnpacked keeps machines at a gigabyte of memory.
const maxUnpacked = 350 << 20

func TestImagesAreSmallAndWhole(t *testing.T) {
	if os.Getenv("SLIPWAY_VM") == "" {
		t.Skip("builds operating systems, which needs root and minutes; run it with: make test-vm")
	}
	for kind, want := range map[Kind][]string{
		CloudInit: {"usr/bin/cloud-init", "usr/sbin/netplan", "usr/sbin/sshd", "init"},
		Ignition:  {"usr/bin/ignition", "usr/sbin/useradd", "init", "root.cpio"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			began := time.Now()
			img, err := Build(t.Context(), "../../../build/osimage", kind)
			if err != nil {
				t.Fatal(err)
			}
			took := time.Since(began)
			if again, err := Build(t.Context(), "../../../build/osimage", kind); err != nil || again != img {
				t.Errorf("the second time: %v, %v", again, err)
			}
			unpacked, err := exec.Command("zstd", "-dcq", img.Initrd).Output()
			if len(unpacked) == 0 { // zstd complains of the zeros at the end, after all it has written
				t.Fatal(err)
			}
			info, err := os.Stat(img.Initrd)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %.1f s, packed %d MiB, unpacked %d MiB", kind, took.Seconds(), info.Size()>>20, len(unpacked)>>20)
			if info.Size()%2 == 0 {
				t.Error("a RAM disk behind it would begin where the kernel takes a plain archive")
			}
			if len(unpacked) > maxUnpacked {
				t.Errorf("%d MiB unpacked", len(unpacked)>>20)
			}
			for _, path := range want {
				if !bytes.Contains(unpacked, []byte(path+"\x00")) {
					t.Errorf("no %s in it", path)
				}
			}
			if _, err := os.Stat(img.Kernel); err != nil {
				t.Error(err)
			}
		})
	}
}
