// Package authenticode reads the Authenticode signatures of PE files: kernels, boot loaders, shims. It never verifies a
// signature, because the firmware does that. It predicts the firmware's answer, so that a boot script can avoid a refusal.
package authenticode

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"debug/pe"
	"encoding/binary"
	"errors"
	"io"
	"math/big"
	"slices"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

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

// signerOf reads a signature; ok is false when it is not about a file with that digest.
func signerOf(der, digest []byte) (s pxe.Signer, ok bool) {
	in := cryptobyte.String(der)
	var outer, inner, data, content, certs, signers, signer, name, issuer cryptobyte.String
	serial, context0, context1 := new(big.Int), asn1.Tag(0).ContextSpecific().Constructed(), asn1.Tag(1).ContextSpecific().Constructed()
	// ContentInfo is a type and [0] around SignedData (RFC 2315 section 9.1): version, algorithms, content, certificates [0],
	// lists of revoked ones [1], signers. A signer begins with its version, and the issuer and serial number of its certificate.
	isRead := in.ReadASN1(&outer, asn1.SEQUENCE) && outer.SkipASN1(asn1.OBJECT_IDENTIFIER) && outer.ReadASN1(&inner, context0) &&
		inner.ReadASN1(&data, asn1.SEQUENCE) && data.SkipASN1(asn1.INTEGER) && data.SkipASN1(asn1.SET) &&
		data.ReadASN1(&content, asn1.SEQUENCE) && data.ReadOptionalASN1(&certs, nil, context0) && data.SkipOptionalASN1(context1) &&
		data.ReadASN1(&signers, asn1.SET) && signers.ReadASN1(&signer, asn1.SEQUENCE) && signer.SkipASN1(asn1.INTEGER) &&
		signer.ReadASN1(&name, asn1.SEQUENCE) && name.ReadASN1Element(&issuer, asn1.SEQUENCE) && name.ReadASN1Integer(serial)
	if !isRead || !bytes.Contains(content, digest) { // SpcIndirectDataContent ends in it
		return s, false
	}
	// The bag also has the authorities in between, in any order. Issuer and serial number name the signer among them.
	certificates, err := x509.ParseCertificates(certs)
	if err != nil || len(certificates) > maxSignatures {
		return s, false
	}
	for _, c := range certificates {
		if c.SerialNumber.Cmp(serial) == 0 && bytes.Equal(c.RawIssuer, issuer) {
			return pxe.Signer{Name: sigdb.Name(c.Subject), Issuer: sigdb.Name(c.Issuer)}, true
		}
	}
	return s, false
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
