package authenticode

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"slipway.dev/slipway/pxe"
)

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

func TestTheSignerOfAKernelIsRead(t *testing.T) {
	kernel := readDebian(t, "/boot/vmlinuz-*-amd64", "linux-image-amd64")
	got, err := Signers(bytes.NewReader(kernel), int64(len(kernel)))
	if err != nil || len(got) != 1 || got[0].Issuer != "Debian Secure Boot CA" {
		t.Fatalf("signers %v, %v", got, err)
	}
	t.Run("one that was changed after it was signed has none", func(t *testing.T) {
		changed := slices.Clone(kernel)
		changed[len(changed)/2] ^= 1
		if got, err := Signers(bytes.NewReader(changed), int64(len(changed))); err != nil || len(got) != 0 {
			t.Errorf("signers %v, %v", got, err)
		}
	})
	t.Run("one whose signature was taken off has none", func(t *testing.T) {
		bare := unsign(t, kernel)
		if got, err := Signers(bytes.NewReader(bare), int64(len(bare))); err != nil || len(got) != 0 {
			t.Errorf("signers %v, %v", got, err)
		}
	})
}

func unsign(t *testing.T, data []byte) []byte {
	t.Helper()
	p, err := readPE(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	out := slices.Clone(data[:p.certAt])
	binary.LittleEndian.PutUint64(out[p.entryAt:], 0)
	return out
}

func TestAShimSaysWhomItTrusts(t *testing.T) {
	shim := readDebian(t, "/usr/lib/shim/shimx64.efi.signed", "shim-signed")
	if got := Trusts(shim); !slices.Equal(got, []string{"Debian Secure Boot CA"}) {
		t.Errorf("trusts %v", got)
	}
	signers, err := Signers(bytes.NewReader(shim), int64(len(shim)))
	if err != nil || !slices.ContainsFunc(signers, func(s pxe.Signer) bool { return s.Issuer != "" }) {
		t.Errorf("signers %v, %v", signers, err)
	}
}

func TestWhatIsNoPEFileIsToldAsSuch(t *testing.T) {
	for name, data := range map[string][]byte{"empty": nil, "text": []byte("#!ipxe\n"), "MZ alone": append([]byte("MZ"), make([]byte, 100)...)} {
		if _, err := Signers(bytes.NewReader(data), int64(len(data))); err == nil {
			t.Errorf("%s is a PE file", name)
		}
	}
}

func FuzzSigners(f *testing.F) {
	head := make([]byte, 1024)
	copy(head, "MZ")
	head[60] = 64
	copy(head[64:], "PE\x00\x00")
	binary.LittleEndian.PutUint16(head[88:], 0x20b)
	binary.LittleEndian.PutUint32(head[196:], 16)
	binary.LittleEndian.PutUint32(head[232:], 512)
	binary.LittleEndian.PutUint32(head[236:], 64)
	copy(head[512:], []byte{64, 0, 0, 0, 0, 2, 2, 0, 0x30, 0x20})
	f.Add(head)
	f.Add([]byte("MZ"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = Signers(bytes.NewReader(data), int64(len(data)))
		Trusts(data)
	})
}
