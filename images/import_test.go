package images

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// netboot is where debian-installer-12-netboot-amd64 puts its files.
const netboot = "/usr/lib/debian-installer/images/12/amd64/text/debian-installer/amd64"

func TestDebianPackageBecomesAnImage(t *testing.T) {
	if _, err := os.Stat(netboot + "/linux"); err != nil {
		t.Skip("needs the package debian-installer-12-netboot-amd64 (make deps)")
	}
	for name, r := range map[string]ImportRequest{
		"by its folder":       {Name: "debian-12", OS: "debian", Release: "12", From: netboot, AllowLocal: true},
		"by the package name": {Name: "debian-12", OS: "debian", Release: "12", From: FromPackage},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			img, err := f.Import(t.Context(), r, nil)
			if err != nil {
				t.Fatal(err)
			}
			kernel, err := os.ReadFile(netboot + "/linux")
			if err != nil {
				t.Fatal(err)
			}
			initrd, err := os.ReadFile(netboot + "/initrd.gz")
			if err != nil {
				t.Fatal(err)
			}
			want := []inventory.ImageArtefact{
				{Role: inventory.RoleKernel, Name: "linux", Digest: sumOf(kernel)},
				{Role: inventory.RoleInitrd, Name: "initrd.gz", Digest: sumOf(initrd)},
			}
			if !slices.Equal(img.Files, want) || !img.IsInstaller || img.MemoryMiB != 1024 || img.Arch != inventory.X8664 {
				t.Errorf("got %+v", img)
			}
			f.wantArtefact(t, kernel)
			f.wantArtefact(t, initrd)
		})
	}
}

// folder makes a folder with the files of a small Debian image.
func folder(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func debianFrom(dir string) ImportRequest {
	return ImportRequest{Name: "debian-12", OS: "debian", Release: "12", From: dir, AllowLocal: true}
}

func sumsLine(name string, content []byte) []byte {
	return []byte(sumOf(content).Hex() + "  ./" + name + "\n")
}

func TestImportingTheSameAgainChangesNothing(t *testing.T) {
	f := newFixture(t)
	dir := folder(t, map[string][]byte{"linux": bytesOf(1, 9000), "initrd.gz": bytesOf(2, 9000)})
	first, err := f.Import(t.Context(), debianFrom(dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := f.Import(t.Context(), debianFrom(dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	if again.Version != 1 || !again.UpdatedAt.Equal(first.UpdatedAt) || len(f.store.artefacts) != 2 {
		t.Errorf("the second import made version %d with %d artefacts", again.Version, len(f.store.artefacts))
	}
}

func TestOtherContentUnderTheSameNameUpdatesTheImage(t *testing.T) {
	f := newFixture(t)
	first, err := f.Import(t.Context(), debianFrom(folder(t, map[string][]byte{"linux": bytesOf(1, 9000), "initrd.gz": bytesOf(2, 9000)})), nil)
	if err != nil {
		t.Fatal(err)
	}
	newer := bytesOf(3, 9000)
	second, err := f.Import(t.Context(), debianFrom(folder(t, map[string][]byte{"linux": newer, "initrd.gz": bytesOf(2, 9000)})), nil)
	if err != nil {
		t.Fatal(err)
	}
	if second.Version != 2 || !second.CreatedAt.Equal(first.CreatedAt) || second.Files[0].Digest != sumOf(newer) || len(f.store.images) != 1 {
		t.Errorf("got %+v", second)
	}
}

func TestAFolderWithAChecksumListIsCheckedAgainstIt(t *testing.T) {
	kernel, initrd := bytesOf(1, 5000), bytesOf(2, 5000)
	dir := folder(t, map[string][]byte{
		"netboot/debian-installer/amd64/linux": kernel, "netboot/debian-installer/amd64/initrd.gz": initrd,
		"SHA256SUMS": append(sumsLine("netboot/debian-installer/amd64/linux", kernel), sumsLine("netboot/debian-installer/amd64/initrd.gz", bytesOf(9, 5000))...),
	})
	f := newFixture(t)
	_, err := f.Import(t.Context(), debianFrom(dir), nil)
	wantError(t, err, inventory.Invalid, "initrd.gz has the wrong checksum")
	if len(f.store.artefacts)+len(f.store.images) > 0 {
		t.Error("something was registered")
	}
}

func TestTheRequestIsRefusedBeforeAnythingIsRead(t *testing.T) {
	dir := folder(t, map[string][]byte{"linux": bytesOf(1, 10), "initrd.gz": bytesOf(2, 10)})
	ok := func(alter func(*ImportRequest)) ImportRequest {
		r := debianFrom(dir)
		alter(&r)
		return r
	}
	own := func(source string) []ImportFile {
		return []ImportFile{{Role: inventory.RoleKernel, Name: "linux", Source: source}}
	}
	for name, c := range map[string]struct {
		r    ImportRequest
		kind inventory.Kind
		part string
	}{
		"local paths from the network":        {ok(func(r *ImportRequest) { r.AllowLocal = false }), inventory.Forbidden, "on the server itself"},
		"a local checksum list from there":    {ok(func(r *ImportRequest) { r.AllowLocal, r.From, r.Sums = false, "", "/etc/shadow" }), inventory.Forbidden, "on the server itself"},
		"a local file from there":             {ok(func(r *ImportRequest) { r.AllowLocal, r.From, r.Files = false, "", own("/etc/shadow") }), inventory.Forbidden, "on the server itself"},
		"a file: address":                     {ok(func(r *ImportRequest) { r.From = "file:///etc" }), inventory.Invalid, "file addresses"},
		"an ftp: address":                     {ok(func(r *ImportRequest) { r.Files = own("ftp://x/y") }), inventory.Invalid, "ftp addresses"},
		"a relative path":                     {ok(func(r *ImportRequest) { r.From = "files" }), inventory.Invalid, "not an absolute path"},
		"a bad image name":                    {ok(func(r *ImportRequest) { r.Name = "../x" }), inventory.Invalid, "for an image"},
		"an unknown system":                   {ok(func(r *ImportRequest) { r.OS = "beos" }), inventory.NotFound, "no operating system"},
		"an architecture it is not for":       {ok(func(r *ImportRequest) { r.Arch = inventory.I386 }), inventory.Invalid, "does not exist for"},
		"a release that is a path":            {ok(func(r *ImportRequest) { r.Release = "12.../../x" }), inventory.Invalid, "is not a release"},
		"a var that it has not":               {ok(func(r *ImportRequest) { r.Set = map[string]string{"x": "y"} }), inventory.Invalid, `no var "x"`},
		"a var that leaves the folder":        {ok(func(r *ImportRequest) { r.Set = map[string]string{"codename": "../.."} }), inventory.Invalid, "cannot be the value"},
		"an argument that breaks a line":      {ok(func(r *ImportRequest) { r.KernelArgs = []string{"a\nb"} }), inventory.Invalid, "control character"},
		"an argument the loader cannot pass":  {ok(func(r *ImportRequest) { r.KernelArgs = []string{"a=1 && b"} }), inventory.Invalid, "ends a command"},
		"an argument about a file it has not": {ok(func(r *ImportRequest) { r.KernelArgs = []string{"a=${file:x}"} }), inventory.Invalid, "file:x"},
		"a digest that is none":               {ok(func(r *ImportRequest) { r.Files = []ImportFile{{Role: "initrd", Source: "/x", SHA256: "12"}} }), inventory.Invalid, "not a sha256 digest"},
		"a file name with a slash":            {ok(func(r *ImportRequest) { r.Files = []ImportFile{{Role: "initrd", Name: "a/b", Source: "/x"}} }), inventory.Invalid, "not a file name"},
		"a package that does not exist":       {ok(func(r *ImportRequest) { r.OS, r.Release, r.From = "talos", "1.13.0", FromPackage }), inventory.Invalid, "no Debian package"},
		"a system that must be brought":       {ok(func(r *ImportRequest) { r.OS, r.Release, r.From = "leap-micro", "6.2", "" }), inventory.Invalid, "published in no form"},
		"a custom image without files":        {ImportRequest{Name: "x"}, inventory.Invalid, "no files are named"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			_, err := f.Import(t.Context(), c.r, nil)
			e, _ := err.(*inventory.Error)
			if e == nil || e.Kind != c.kind || !strings.Contains(e.Msg, c.part) {
				t.Fatalf("got %v, want %s with %q", err, c.kind, c.part)
			}
			f.wantNothing(t)
		})
	}
}

func TestAMissingFileNamesThePlacesAndThePackage(t *testing.T) {
	f := newFixture(t)
	_, err := f.Import(t.Context(), debianFrom(folder(t, map[string][]byte{"linux": bytesOf(1, 10)})), nil)
	e := wantError(t, err, inventory.NotFound, "there is no initrd.gz at ")
	if !strings.Contains(e.Msg, "netboot/debian-installer/amd64/initrd.gz") {
		t.Errorf("%q does not name where it looked", e.Msg)
	}
	_, err = f.Import(t.Context(), ImportRequest{Name: "debian-13", OS: "debian", Release: "13", From: FromPackage}, nil)
	if e := wantError(t, err, inventory.NotFound, "there is no linux"); e.Hint != "install it on the server with: apt install debian-installer-13-netboot-amd64" {
		t.Errorf("hint %q does not name the package", e.Hint)
	}
}

func TestAnythingButAFileIsRefused(t *testing.T) {
	dir := folder(t, map[string][]byte{"initrd.gz": bytesOf(2, 10)})
	if err := syscall.Mkfifo(filepath.Join(dir, "linux"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := newFixture(t)
	_, err := f.Import(t.Context(), debianFrom(dir), nil)
	if err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("a pipe gave %v", err)
	}
}

func TestNothingIsRegisteredWhenTheStoreFails(t *testing.T) {
	f := newFixture(t)
	f.store.fail = inventory.Errorf(inventory.Unavailable, "the disk is full")
	dir := folder(t, map[string][]byte{"linux": bytesOf(1, 10), "initrd.gz": bytesOf(2, 10)})
	if _, err := f.Import(t.Context(), debianFrom(dir), nil); err == nil {
		t.Fatal("the import succeeded")
	}
	if len(f.store.artefacts)+len(f.store.images) > 0 {
		t.Error("something was registered")
	}
	if _, err := f.Import(t.Context(), debianFrom(dir), nil); err != nil {
		t.Errorf("the next import: %v", err)
	}
}

func TestAWholeImportIsOneTransaction(t *testing.T) {
	f := newFixture(t)
	dir := folder(t, map[string][]byte{"linux": bytesOf(1, 10), "initrd.gz": bytesOf(2, 10)})
	if _, err := f.Import(t.Context(), debianFrom(dir), nil); err != nil {
		t.Fatal(err)
	}
	if f.store.writesN != 1 {
		t.Errorf("%d transactions", f.store.writesN)
	}
}

// The second download ends before anybody has put the first one in place. With one name for both, the first one was gone then.
func TestTwoDownloadsOfAURLHaveFilesOfTheirOwn(t *testing.T) {
	f := newFixture(t)
	srv := httptest.NewServer(http.FileServer(http.Dir(folder(t, map[string][]byte{"linux": bytesOf(1, 5000)}))))
	defer srv.Close()
	var temps []string
	for range 2 {
		temp, d, _, err := f.fetch(t.Context(), srv.URL+"/linux", "", newTracker(time.Now, nil, 1))
		if err != nil || d != sumOf(bytesOf(1, 5000)) {
			t.Fatal(d, err)
		}
		temps = append(temps, temp)
	}
	for _, temp := range temps {
		if err := f.place(t.Context(), temp, sumOf(bytesOf(1, 5000)), 5000); err != nil {
			t.Errorf("a finished download cannot be put in place: %v", err)
		}
	}
}

func TestManyImportsOfTheSameContentAgree(t *testing.T) {
	f := newFixture(t)
	kernel, initrd := bytesOf(1, 300_000), bytesOf(2, 300_000)
	dir := folder(t, map[string][]byte{"linux": kernel, "initrd.gz": initrd})
	srv := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer srv.Close()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			r := debianFrom(dir)
			if i%2 == 0 {
				r = ImportRequest{OS: "custom", Files: []ImportFile{{Role: "kernel", Source: srv.URL + "/linux"}, {Role: "initrd", Source: srv.URL + "/initrd.gz"}}}
			}
			r.Name = fmt.Sprintf("image-%d", i%4)
			if _, err := f.Import(t.Context(), r, nil); err != nil {
				t.Errorf("import %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	f.wantArtefact(t, kernel)
	f.wantArtefact(t, initrd)
	if found, err := f.onDisk(); err != nil || len(found) != 2 {
		t.Errorf("in the folder: %v %v", found, err)
	}
	left, err := os.ReadDir(f.PartialDir())
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v %v", left, err)
	}
	if len(f.pinned) > 0 || len(f.loading) > 0 {
		t.Errorf("still held: %v %v", f.pinned, f.loading)
	}
}

func TestImportRepairsADamagedArtefact(t *testing.T) {
	f := newFixture(t)
	kernel := bytesOf(1, 5000)
	dir := folder(t, map[string][]byte{"linux": kernel, "initrd.gz": bytesOf(2, 5000)})
	r := debianFrom(dir)
	r.Files = []ImportFile{{Role: "kernel", Name: "linux", Source: dir + "/linux", SHA256: sumOf(kernel)}}
	if _, err := f.Import(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	damage(t, f.path(sumOf(kernel)), func(b []byte) []byte { b[4999] ^= 1; return b })
	faults, err := f.Verify(t.Context())
	if err != nil || len(faults) != 1 || faults[0].Problem != "damaged" || !slices.Equal(faults[0].Images, []string{"debian-12"}) {
		t.Fatalf("verify: %+v %v", faults, err)
	}
	if _, err := f.Import(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	f.wantArtefact(t, kernel)
}

func damage(t *testing.T, name string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, change(b), 0o640); err != nil {
		t.Fatal(err)
	}
}

func TestVerifyFindsMissingAndTruncatedArtefacts(t *testing.T) {
	f := newFixture(t)
	kernel, initrd := bytesOf(1, 5000), bytesOf(2, 5000)
	if _, err := f.Import(t.Context(), debianFrom(folder(t, map[string][]byte{"linux": kernel, "initrd.gz": initrd})), nil); err != nil {
		t.Fatal(err)
	}
	if faults, err := f.Verify(t.Context()); err != nil || len(faults) > 0 {
		t.Fatalf("a healthy folder: %v %v", faults, err)
	}
	if err := os.Remove(f.path(sumOf(kernel))); err != nil {
		t.Fatal(err)
	}
	damage(t, f.path(sumOf(initrd)), func(b []byte) []byte { return b[:4000] })
	faults, err := f.Verify(t.Context())
	if err != nil || len(faults) != 2 {
		t.Fatalf("got %v %v", faults, err)
	}
	got := map[inventory.Digest]string{faults[0].Digest: faults[0].Problem, faults[1].Digest: faults[1].Problem}
	if got[sumOf(kernel)] != "missing" || got[sumOf(initrd)] != "damaged" {
		t.Errorf("got %v", got)
	}
	_, _, err = f.Open(sumOf(kernel))
	wantError(t, err, inventory.NotFound, "not in the artefact folder")
	if _, _, err := f.Open("sha256:../../../../etc/passwd"); err == nil {
		t.Error("a digest with a path was opened")
	}
}

func TestPruneKeepsWhatIsUsedRecentOrOnItsWay(t *testing.T) {
	now := time.Now()
	f := newFixture(t, func(c *Config) { c.Now = func() time.Time { return now } })
	kernel, initrd, newKernel := bytesOf(1, 5000), bytesOf(2, 5000), bytesOf(3, 5000)
	for _, k := range [][]byte{kernel, newKernel} {
		if _, err := f.Import(t.Context(), debianFrom(folder(t, map[string][]byte{"linux": k, "initrd.gz": initrd})), nil); err != nil {
			t.Fatal(err)
		}
	}
	unregistered := bytesOf(4, 700)
	stray := filepath.Join(f.PartialDir(), "stray")
	for name, content := range map[string][]byte{stray: unregistered, filepath.Join(f.PartialDir(), "old"): unregistered} {
		if err := os.WriteFile(name, content, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.place(t.Context(), stray, sumOf(unregistered), 700); err != nil {
		t.Fatal(err)
	}
	p, err := f.Prune(t.Context(), false)
	if err != nil || len(p.Removed) > 0 || !slices.Equal(p.Kept, []inventory.Digest{sumOf(kernel)}) {
		t.Fatalf("at once: %+v %v", p, err)
	}
	now = now.Add(2 * time.Hour)
	p, err = f.Prune(t.Context(), false)
	if err != nil || !slices.Equal(p.Removed, []inventory.Digest{sumOf(kernel)}) || p.FreedBytes != 5000 {
		t.Fatalf("two hours later: %+v %v", p, err)
	}
	f.unpin(sumOf(unregistered))
	now = now.Add(8 * 24 * time.Hour)
	p, err = f.Prune(t.Context(), false)
	if err != nil || !slices.Equal(p.Removed, []inventory.Digest{sumOf(unregistered)}) || p.FreedBytes != 1400 {
		t.Fatalf("eight days later: %+v %v", p, err)
	}
	f.wantArtefact(t, newKernel)
	f.wantArtefact(t, initrd)
}

func TestLeapMicroFilesAreFoundByPattern(t *testing.T) {
	f := newFixture(t)
	image := bytesOf(3, 100)
	dir := folder(t, map[string][]byte{
		"pxeboot.openSUSE-Leap-Micro.x86_64-6.2.kernel":     bytesOf(1, 100),
		"pxeboot.openSUSE-Leap-Micro.x86_64-6.2.initrd":     bytesOf(2, 100),
		"openSUSE-Leap-Micro.x86_64-6.2.xz":                 image,
		"openSUSE-Leap-Micro.x86_64-6.2.md5":                bytesOf(4, 100),
		"openSUSE-Leap-Micro.x86_64-6.2.initrd":             bytesOf(5, 100),
		"openSUSE-Leap-Micro.x86_64-6.2.kernel":             bytesOf(6, 100),
		"openSUSE-Leap-Micro.x86_64-6.2.config.bootoptions": bytesOf(7, 100),
		"openSUSE-Leap-Micro.x86_64-6.2.append":             bytesOf(8, 100),
	})
	img, err := f.Import(t.Context(), ImportRequest{Name: "leap", OS: "leap-micro", Release: "6.2", From: dir, AllowLocal: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]inventory.Digest{}
	for _, x := range img.Files {
		names[x.Name] = x.Digest
	}
	if len(names) != 7 || names["image.xz"] != sumOf(image) || names["image.kernel"] != sumOf(bytesOf(6, 100)) || names["linux"] != sumOf(bytesOf(1, 100)) {
		t.Errorf("got %v", img.Files)
	}
}

func TestAStoppedImportSaysSo(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.Import(ctx, debianFrom(folder(t, map[string][]byte{"linux": bytesOf(1, 10), "initrd.gz": bytesOf(2, 10)})), nil)
	wantError(t, err, inventory.Unavailable, "was stopped")
	f.wantNothing(t)
	if left, err := os.ReadDir(f.PartialDir()); err != nil || len(left) > 0 {
		t.Errorf("left over: %v %v", left, err)
	}
}

func TestAFileOfTheRequestTakesThePlaceOfTheEntrysFileOfThatRole(t *testing.T) {
	own := []ImportFile{{Role: "iso", Source: "/srv/u.iso"}, {Role: "initrd", Source: "/srv/driver-a.gz"}, {Role: "initrd", Source: "/srv/driver-b.gz"}, {Role: "kernel", Name: "k", Source: "/srv/l"}}
	entry := []File{{Role: "kernel", Name: "vmlinuz"}, {Role: "initrd", Name: "initrd"}, {Role: "iso", Name: "installer.iso"}}
	var got []string
	for _, f := range named(own, entry) {
		got = append(got, f.Name)
	}
	if want := []string{"installer.iso", "driver-a.gz", "driver-b.gz", "k"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestADiskOfALeapReadsCloudInit imports the one form of Leap 16 that takes a configuration.
func TestADiskOfALeapReadsCloudInit(t *testing.T) {
	f := newFixture(t)
	dir := folder(t, map[string][]byte{"leap.qcow2": qcow2Image(nil)})
	img, err := f.Import(t.Context(), ImportRequest{
		Name: "leap16", OS: "leap", Release: "16.0", AllowLocal: true,
		Files:   []ImportFile{{Role: inventory.RoleDisk, Name: "leap.qcow2", Source: filepath.Join(dir, "leap.qcow2")}},
		Configs: []inventory.ImageConfig{{Format: "cloud-init", Version: "25.1"}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if img.IsInstaller || img.DiskFormat != "qcow2" || len(img.Configs) != 1 || img.OS != "leap" || len(img.KernelArgs) > 0 || len(img.Files) != 1 {
		t.Errorf("got %+v", img)
	}
}
