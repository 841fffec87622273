package keys

import (
	"crypto/x509"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/system"
)

const (
	renewAdmin  = "renew it: slipway tls set --cert FILE --key FILE, or write the files that the settings name"
	rotateAdmin = "slipway tls rotate makes another, which browsers and programs must trust; --finish puts it in force"
)

// Check says how the certificate of the admin listener is. Asked are the names by which people reach it, as far as somebody has said.
func (t *AdminTLS) Check(asked []string) doctor.Check {
	s, now := t.TLSState(), t.Now()
	authority, _, _ := t.Site.Trusted()
	k := doctor.Check{Name: "admin TLS", Status: doctor.OK, Detail: fmt.Sprintf("certificate of %s, until %s", s.From, day(s.NotAfter))}
	what, ends, begins, hint := "the certificate", s.NotAfter, s.NotBefore, renewAdmin
	if s.From == system.TLSSite { // the authority signs certificates for this machine by itself
		what, ends, begins, hint = "the authority", authority.NotAfter, authority.NotBefore, rotateAdmin
	}
	other := slices.IndexFunc(asked, func(name string) bool { return s.From != system.TLSSite && !isFor(s.Names, name) })
	switch {
	// A refused file comes first, because an admin believes that it is in force.
	case s.Refused != "":
		k.Status, k.Detail = doctor.Failed, "the newest certificate is not in force: "+s.Refused
		k.Hint = "give a certificate and the key it was made for"
	case now.After(ends):
		k.Status, k.Detail, k.Hint = doctor.Failed, what+" has ended on "+day(ends), hint
	case now.Before(begins):
		k.Status, k.Detail = doctor.Failed, what+" is not valid before "+begins.UTC().Format(time.RFC3339)
		k.Hint = "look at the clock of this machine, or give a certificate that is valid now"
	case ends.Sub(now) < doctor.CertificateEndsSoon:
		k.Status, k.Hint = doctor.Warning, hint
		k.Detail = fmt.Sprintf("%s ends on %s, in %d days", what, day(ends), int(ends.Sub(now).Hours()/24))
	case other >= 0:
		k.Status, k.Hint = doctor.Warning, "give a certificate with that name, or change externalURL and adminHosts in the configuration"
		k.Detail = "the certificate is not for " + inventory.Clean(asked[other], 100) + ", by which people come: browsers refuse it"
	}
	return k
}

// isFor reports whether a certificate with some names is good for another one. A name may begin with *. and stands for one label more then.
func isFor(names []string, name string) bool {
	if at, err := netip.ParseAddr(name); err == nil {
		return slices.Contains(names, at.String())
	}
	return (&x509.Certificate{DNSNames: names}).VerifyHostname(name) == nil
}

// Check says how the certificate of an authority is.
func (a *Authority) Check(now time.Time) doctor.Check {
	cert, _, _ := a.Trusted()
	return doctor.Certificate(a.of.Files.Cert, cert, now)
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }
