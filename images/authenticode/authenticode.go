// Package authenticode reads the Authenticode signatures of PE files: kernels, boot loaders, shims. It never verifies a
// signature, because the firmware does that. It predicts the firmware's answer, so that a boot script can avoid a refusal.
package authenticode

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"debug/pe"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"io"
	"math/big"
	"slices"

	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/sigdb"
)

// Bounds of what a signed file may hold; shim has two signatures, certificates have 2 KiB.
const (
	maxCertTable  = 256 << 10
	maxSignatures = 16
	maxHashed     = 256 << 20
)

// ErrNotPE is the error for a file that is no PE file, or a damaged one.
var ErrNotPE = errors.New("it is no PE file")

// Certificate table entries (PE format, "The Attribute Certificate Table").
const (
	certRevision2 = 0x0200
	certPKCS7     = 0x0002
)

// Signers returns the authors of the signatures in a PE file that cover its bytes. An unsigned file has none, and neither has a
// file that somebody changed after the signing. The error is ErrNotPE, or that of f.
func Signers(f io.ReaderAt, size int64) ([]pxe.Signer, error) {
	p, err := readPE(f, size)
	if err != nil || p.certSize == 0 {
		return nil, err
	}
	// The whole file is hashed, at most 256 MiB: some tenths of a second for a kernel. Callers keep the answer.
	digest, err := p.digest(f)
	if err != nil {
		return nil, err
	}
	table := make([]byte, p.certSize)
	// readPE has checked the place against the size that the caller named. A file that is shorter by now is damaged.
	if _, err := f.ReadAt(table, p.certAt); errors.Is(err, io.EOF) {
		return nil, ErrNotPE
	} else if err != nil {
		return nil, err
	}
	var out []pxe.Signer
	for n := 0; len(table) >= 8 && n < maxSignatures; n++ {
		// Each entry has a length, a revision and a type before its bytes, and begins at a multiple of eight.
		length := int(binary.LittleEndian.Uint32(table))
		if length < 8 || length > len(table) {
			break
		}
		if binary.LittleEndian.Uint16(table[4:]) == certRevision2 && binary.LittleEndian.Uint16(table[6:]) == certPKCS7 {
			if s, ok := signerOf(table[8:length], digest); ok && !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
		table = table[min(len(table), (length+7)&^7):]
	}
	return out, nil
}

// peLayout is where a PE file has what is not signed.
type peLayout struct {
	checksumAt, entryAt int64 // the checksum, and the directory's entry of the certificate table
	certAt, certSize    int64
}

func readPE(f io.ReaderAt, size int64) (p peLayout, err error) {
	head := make([]byte, 4096)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return p, err
	}
	head = head[:n]
	if len(head) < 64 || head[0] != 'M' || head[1] != 'Z' {
		return p, ErrNotPE
	}
	// e_lfanew at 0x3c of the DOS header leads to the PE header. An EFI stub kernel has it within its first page.
	at := int(binary.LittleEndian.Uint32(head[60:]))
	if at < 0 || at > len(head)-256 || string(head[at:at+4]) != "PE\x00\x00" {
		return p, ErrNotPE
	}
	optional := at + 24
	directory := optional + 112
	switch binary.LittleEndian.Uint16(head[optional:]) {
	// PE32+ (0x20b) and PE32 (0x10b) differ in the length of the fields before the data directories.
	case 0x20b:
	case 0x10b:
		directory = optional + 96
	default:
		return p, ErrNotPE
	}
	// The checksum is at 64 in both forms: PE32 has one more field of four bytes, and a shorter image base.
	p.checksumAt, p.entryAt = int64(optional+64), int64(directory+4*8)
	if int(p.entryAt)+8 > len(head) || binary.LittleEndian.Uint32(head[directory-4:]) < 5 {
		return p, ErrNotPE
	}
	// Directory 4 is the only one with a file offset in place of a virtual address.
	p.certAt, p.certSize = int64(binary.LittleEndian.Uint32(head[p.entryAt:])), int64(binary.LittleEndian.Uint32(head[p.entryAt+4:]))
	if p.certSize > maxCertTable || p.certSize > 0 && (p.certAt < p.entryAt+8 || p.certAt+p.certSize > size || p.certAt > maxHashed) {
		return p, ErrNotPE
	}
	return p, nil
}

// digest is the Authenticode hash: of everything before the signatures but the two fields that signing changes.
func (p peLayout) digest(f io.ReaderAt) ([]byte, error) {
	// Authenticode skips the checksum of the PE header, the directory entry of the certificate table, and the table
	// itself. A second signature therefore does not break the first.
	h := sha256.New()
	from := int64(0)
	for _, gap := range [][2]int64{{p.checksumAt, 4}, {p.entryAt, 8}, {p.certAt, 0}} {
		if _, err := io.Copy(h, io.NewSectionReader(f, from, gap[0]-from)); err != nil {
			return nil, err
		}
		from = gap[0] + gap[1] // the hash ends where the table begins
	}
	return h.Sum(nil), nil
}

type issuerAndSerial struct {
	Issuer asn1.RawValue
	Serial *big.Int
}

// signerOf reads a signature; ok is false when it is not about a file with that digest.
func signerOf(der, digest []byte) (s pxe.Signer, ok bool) {
	var outer struct {
		Type asn1.ObjectIdentifier
		Data asn1.RawValue
	}
	if _, err := asn1.Unmarshal(der, &outer); err != nil { // outer.Data is [0] around SignedData
		return s, false
	}
	var data asn1.RawValue
	if _, err := asn1.Unmarshal(outer.Data.Bytes, &data); err != nil {
		return s, false
	}
	// SignedData (RFC 2315 section 9.1): version, algorithms, content, certificates [0], lists of revoked ones [1], signers.
	var content, certs, signers asn1.RawValue
	for rest, n := data.Bytes, 0; len(rest) > 0; n++ {
		var field asn1.RawValue
		var err error
		if rest, err = asn1.Unmarshal(rest, &field); err != nil || n > 5 {
			return s, false
		}
		switch {
		case field.Class == asn1.ClassContextSpecific && field.Tag == 0:
			certs = field
		case field.Class == asn1.ClassUniversal && field.Tag == asn1.TagSequence:
			content = field
		case field.Class == asn1.ClassUniversal && field.Tag == asn1.TagSet:
			signers = field // the last one
		}
	}
	if !bytes.Contains(content.Bytes, digest) { // SpcIndirectDataContent ends in it
		return s, false
	}
	var first asn1.RawValue
	if _, err := asn1.Unmarshal(signers.Bytes, &first); err != nil {
		return s, false
	}
	var signer struct {
		Version int
		ID      issuerAndSerial
	}
	// The bag also has the authorities in between, in any order. Issuer and serial number name the signer among them.
	certificates, err := x509.ParseCertificates(certs.Bytes)
	if _, err2 := asn1.Unmarshal(firstOfSequence(first), &signer); err != nil || err2 != nil || len(certificates) > maxSignatures {
		return s, false
	}
	for _, c := range certificates {
		if c.SerialNumber.Cmp(signer.ID.Serial) == 0 && bytes.Equal(c.RawIssuer, signer.ID.Issuer.FullBytes) {
			return pxe.Signer{Name: sigdb.Name(c.Subject), Issuer: sigdb.Name(c.Issuer)}, true
		}
	}
	return s, false
}

// firstOfSequence cuts a SignerInfo after its first two fields, so that what follows need not be described.
func firstOfSequence(v asn1.RawValue) []byte {
	rest := v.Bytes
	for range 2 {
		var field asn1.RawValue
		var err error
		if rest, err = asn1.Unmarshal(rest, &field); err != nil {
			return nil
		}
	}
	out, err := asn1.Marshal(asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: v.Bytes[:len(v.Bytes)-len(rest)]})
	if err != nil {
		return nil
	}
	return out
}

// Trusts returns the names of the authorities that a shim was built to accept: its section .vendor_cert (shim's cert.S), which
// holds a certificate, or a list of them (UEFI 32.4.1). Any other file has none.
func Trusts(data []byte) (names []string) {
	f, err := pe.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil
	}
	defer f.Close()
	section := f.Section(".vendor_cert")
	if section == nil {
		return nil
	}
	b, err := section.Data()
	if err != nil || len(b) < 16 {
		return nil
	}
	size, at := uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[8:]))
	// Both numbers come from the file. As uint64 their sum cannot overflow.
	if size == 0 || at+size > uint64(len(b)) {
		return nil
	}
	b = b[at : at+size]
	if c, err := x509.ParseCertificate(b); err == nil {
		return []string{sigdb.Name(c.Subject)}
	}
	for _, c := range sigdb.Certificates(b) {
		names = append(names, sigdb.Name(c.Subject))
	}
	return names
}
