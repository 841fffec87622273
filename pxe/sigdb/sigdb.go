// Package sigdb owns the reading of UEFI's signature databases (UEFI 2.10 section 32.4.1). These name the signers that a
// firmware accepts (db), those that it refuses (dbx), and those that a shim accepts. It never judges a signature.
package sigdb

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"slipway.dev/slipway/inventory"
)

// Bounds of what is read: databases have some kilobytes, and dbx some hundred hashes.
const (
	maxBytes        = 1 << 20
	maxCertificates = 64
	listHeader      = 28 // GUID of the type, sizes of list, header and signature
	ownerSize       = 16
)

// certX509 is EFI_CERT_X509_GUID as it lies in memory.
var certX509, _ = hex.DecodeString("a159c0a5e494a74a87b5ab155c2bf072")

// Certificates returns the certificates in a database. A truncated or malformed part ends it: the good part before counts.
func Certificates(b []byte) (certs []*x509.Certificate) {
	if len(b) > maxBytes {
		return nil
	}
	for len(b) >= listHeader {
		size, header, each := binary.LittleEndian.Uint32(b[16:]), binary.LittleEndian.Uint32(b[20:]), binary.LittleEndian.Uint32(b[24:])
		if size < listHeader || uint64(size) > uint64(len(b)) || each <= ownerSize || uint64(header) > uint64(size)-listHeader {
			return certs
		}
		if bytes.Equal(b[:16], certX509) {
			for rest := b[listHeader+header : size]; uint64(len(rest)) >= uint64(each) && len(certs) < maxCertificates; rest = rest[each:] {
				if c, err := x509.ParseCertificate(rest[ownerSize:each]); err == nil {
					certs = append(certs, c)
				}
			}
		}
		b = b[size:]
	}
	return certs
}

// Trusted returns the certificates of db that are not in dbx, in the words of the inventory.
func Trusted(db, dbx []byte) (all []inventory.Certificate) {
	revoked := Certificates(dbx)
	for _, c := range Certificates(db) {
		if !slices.ContainsFunc(revoked, c.Equal) {
			all = append(all, Of(c))
		}
	}
	return all
}

// Of describes a certificate.
func Of(c *x509.Certificate) inventory.Certificate {
	return inventory.Certificate{Name: Name(c.Subject), EndsAt: c.NotAfter.UTC()}
}

// Name is what people call the owner of a certificate.
func Name(n pkix.Name) string {
	return inventory.Clean(cmp.Or(n.CommonName, n.String()), 120)
}
