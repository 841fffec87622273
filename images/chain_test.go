package images

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

func TestWhatAnImportSaysOfTheChain(t *testing.T) {
	debian := []pxe.Signer{{Name: "Debian Secure Boot Signer 2022 - linux", Issuer: "Debian Secure Boot CA"}}
	own := &Loaders{byName: map[string]Loader{"shimx64.efi": {Trusts: []string{"Debian Secure Boot CA"}}, "grubx64.efi": {}}}
	enrolled := &Loaders{trusted: []string{"Debian Secure Boot CA"}}
	for _, c := range []struct {
		name    string
		chain   *Chain
		signers []pxe.Signer
		arch    inventory.Arch
		loaders *Loaders
		want    string
	}{
		{"the catalogue does not know", nil, debian, inventory.X8664, own, ""},
		{"as named, and the shim is here", &Chain{SignedBy: []string{"Debian Secure Boot CA"}}, debian, inventory.X8664, own, "the kernel is signed by Debian Secure Boot Signer 2022 - linux"},
		{"as named, and its authority is enrolled", &Chain{SignedBy: []string{"Debian Secure Boot CA"}}, debian, inventory.X8664, enrolled, "the kernel is signed by Debian Secure Boot Signer 2022 - linux"},
		{
			"as named, and there is no shim", &Chain{SignedBy: []string{"Debian Secure Boot CA"}}, debian, inventory.X8664, nil,
			"the kernel is signed by Debian Secure Boot Signer 2022 - linux: machines with Secure Boot on need shimx64.efi and grubx64.efi in a folder of --loaders",
		},
		{
			"another architecture's shim", &Chain{SignedBy: []string{"Debian Secure Boot CA"}, Loaders: "ubuntu"}, debian, inventory.ARM64, own,
			"the kernel is signed by Debian Secure Boot Signer 2022 - linux: machines with Secure Boot on need ubuntu/shimaa64.efi and ubuntu/grubaa64.efi in a folder of --loaders",
		},
		{
			"by another", &Chain{SignedBy: []string{"Canonical"}}, debian, inventory.X8664, own,
			"the kernel is signed by Debian Secure Boot Signer 2022 - linux, and the catalogue expects Canonical: machines with Secure Boot on may not start it",
		},
		{
			"by nobody", &Chain{SignedBy: []string{"A", "B"}}, nil, inventory.X8664, own,
			"nobody signed the kernel, and the catalogue expects A or B: machines with Secure Boot on may not start it",
		},
		{"nobody ever does", &Chain{}, nil, inventory.X8664, own, "nobody signed the kernel: machines with Secure Boot on do not start it"},
	} {
		if got := c.chain.line(c.signers, c.arch, c.loaders); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestAnImportChecksTheSigner imports Debian's signed kernel, and one from which the signature was taken off.
func TestAnImportChecksTheSigner(t *testing.T) {
	kernel := readDebian(t, "/boot/vmlinuz-*-amd64", "linux-image-amd64")
	for name, c := range map[string]struct {
		kernel []byte
		want   string
	}{
		"signed":   {kernel, "the kernel is signed by Debian Secure Boot"},
		"unsigned": {unsign(t, kernel), "nobody signed the kernel, and the catalogue expects Debian Secure Boot CA"},
	} {
		t.Run(name, func(t *testing.T) {
			f, dir := newFixture(t), t.TempDir()
			for file, data := range map[string][]byte{"linux": c.kernel, "initrd.gz": []byte("initrd")} {
				if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			last := ""
			_, err := f.Import(t.Context(), ImportRequest{Name: "debian-12", OS: "debian", Release: "12", From: dir, AllowLocal: true}, func(p Progress) { last = p.Note })
			if err != nil || !strings.HasPrefix(last, c.want) {
				t.Errorf("its last word is %q, %v; want %q", last, err, c.want)
			}
		})
	}
}

func TestTheCatalogueNamesChains(t *testing.T) {
	c, err := BuiltinCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	for os, want := range map[string]string{"debian": "", "ubuntu": "ubuntu", "fedora-coreos": "fedora", "leap-micro": "opensuse"} {
		n := 0
		for _, e := range c.Entries() {
			if e.OS == os && e.Chain != nil && len(e.Chain.SignedBy) > 0 && e.Chain.Loaders == want {
				n++
			}
		}
		if n == 0 {
			t.Errorf("%s has no chain with the loaders %q", os, want)
		}
	}
	for name, text := range map[string]string{
		"a folder that there is not": "chain: {signedBy: [X], loaders: arch}",
		"a certificate without name": `chain: {signedBy: [""]}`,
	} {
		entry := "version: 1\nentries:\n  - os: x\n    releases: ['1']\n    title: X\n    arch: {x86_64: amd64}\n    " + text + "\n"
		if _, err := ReadCatalogue(strings.NewReader(entry), "test"); err == nil || !strings.Contains(err.Error(), "chain") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// readDebian returns a file of a Debian package; the test is skipped where that is not installed.
func readDebian(t *testing.T, pattern, pkg string) []byte {
	t.Helper()
	found, _ := filepath.Glob(pattern)
	if len(found) == 0 {
		t.Skipf("needs package %s", pkg)
	}
	data, err := os.ReadFile(found[len(found)-1])
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// unsign returns a PE32+ file without its certificate table, which entry 4 of its data directory leads to.
func unsign(t *testing.T, data []byte) []byte {
	t.Helper()
	if len(data) < 512 {
		t.Fatal("it is no kernel")
	}
	at := int(binary.LittleEndian.Uint32(data[60:])) + 24 + 112 + 4*8
	out := slices.Clone(data[:binary.LittleEndian.Uint32(data[at:])])
	binary.LittleEndian.PutUint64(out[at:], 0)
	return out
}
