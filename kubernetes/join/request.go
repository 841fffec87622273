package join

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"net/netip"
)

// maxRequestBytes is far more than a kubelet's request has.
const maxRequestBytes = 16 << 10

// subject is what a certificate request says of whom it is for.
type subject struct {
	commonName    string
	organizations []string
	others        int // further attributes of the subject
	extensions    []asn1.ObjectIdentifier
	names         []string
	addresses     []netip.Addr
	isOdd         bool // has names that are neither DNS names nor addresses
}

var oidSubjectAltName = asn1.ObjectIdentifier{2, 5, 29, 17}

// parseRequest reads a PKCS#10 request, and checks that its author holds the key (RFC 2986 section 4.2). The errors
// are in words for a condition in the cluster, and quote nothing of the request.
func parseRequest(text []byte) (*subject, error) {
	if len(text) > maxRequestBytes {
		return nil, errors.New("it is larger than a certificate request of a kubelet")
	}
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(block.Headers) > 0 || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("it is not one certificate request in PEM")
	}
	r, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, errors.New("it is not a certificate request")
	}
	if r.CheckSignature() != nil {
		return nil, errors.New("it is not signed by the key that it is for")
	}
	if k, ok := r.PublicKey.(*rsa.PublicKey); ok && k.N.BitLen() < 2048 {
		return nil, errors.New("its RSA key is shorter than 2048 bits")
	}
	s := &subject{
		commonName: r.Subject.CommonName, organizations: r.Subject.Organization,
		// A common name and the organizations are expected; what is left over would be in the certificate as well.
		others: len(r.Subject.Names) - len(r.Subject.Organization) - 1,
		names:  r.DNSNames, isOdd: len(r.EmailAddresses) > 0 || len(r.URIs) > 0,
	}
	for _, ip := range r.IPAddresses {
		a, ok := netip.AddrFromSlice(ip)
		s.isOdd = s.isOdd || !ok
		s.addresses = append(s.addresses, a.Unmap())
	}
	for _, e := range r.Extensions {
		s.extensions = append(s.extensions, e.Id)
		if e.Id.Equal(oidSubjectAltName) && !isPlain(e.Value) {
			s.isOdd = true
		}
	}
	return s, nil
}

// isPlain reports whether a subjectAltName holds nothing but DNS names and addresses (RFC 5280 section 4.2.1.6).
// crypto/x509 ignores kinds of names that it does not know, and an approver must not.
func isPlain(der []byte) bool {
	var names asn1.RawValue
	if rest, err := asn1.Unmarshal(der, &names); err != nil || len(rest) > 0 {
		return false
	}
	const dnsName, ipAddress = 2, 7
	for rest := names.Bytes; len(rest) > 0; {
		var name asn1.RawValue
		var err error
		if rest, err = asn1.Unmarshal(rest, &name); err != nil {
			return false
		}
		if name.Class != asn1.ClassContextSpecific || name.Tag != dnsName && name.Tag != ipAddress {
			return false
		}
	}
	return true
}
