package join

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	certsv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"slipway.dev/slipway/inventory"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// makeCSR returns a request as a kubelet makes it, changed by change.
func makeCSR(t testing.TB, change func(*x509.CertificateRequest)) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signCSR(t, key, change)
}

func signCSR(t testing.TB, key any, change func(*x509.CertificateRequest)) []byte {
	t.Helper()
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:web-1", Organization: []string{"system:nodes"}}}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// rightCase is a request that is approved and the facts for it.
func rightCase(t testing.TB) (*certsv1.CertificateSigningRequest, Facts) {
	return &certsv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "csr-1", UID: types.UID("uid-1")},
		Spec: certsv1.CertificateSigningRequestSpec{
			Request: makeCSR(t, nil), SignerName: certsv1.KubeAPIServerClientKubeletSignerName,
			Usages:   []certsv1.KeyUsage{certsv1.UsageDigitalSignature, certsv1.UsageClientAuth},
			Username: "system:bootstrap:abcdef", Groups: []string{"system:bootstrappers", Group, "system:authenticated"},
		},
	}, Facts{
		Target: "prod", Host: &inventory.Host{ID: "host-1", Name: "web-1"},
		Token: &inventory.JoinToken{
			ID: "abcdef", Target: "prod", HostID: "host-1", NodeName: "web-1", State: inventory.TokenMinted,
			CreatedAt: noon.Add(-time.Minute), ExpiresAt: noon.Add(29 * time.Minute),
		},
	}
}

func TestDecide(t *testing.T) {
	type request = certsv1.CertificateSigningRequest
	csr := func(change func(*x509.CertificateRequest)) func(*request, *Facts) {
		return func(r *request, _ *Facts) { r.Spec.Request = makeCSR(t, change) }
	}
	token := func(change func(*inventory.JoinToken)) func(*request, *Facts) {
		return func(_ *request, f *Facts) { change(f.Token) }
	}
	usages := func(u ...certsv1.KeyUsage) func(*request, *Facts) {
		return func(r *request, _ *Facts) { r.Spec.Usages = u }
	}
	for _, tt := range []struct {
		name   string
		change func(*request, *Facts)
		want   Verdict
		reason string
	}{
		{"the right host is approved", nil, Approve, "minted for host web-1"},
		{"usages may come in any order, with key encipherment", usages("key encipherment", "client auth", "digital signature"), Approve, ""},
		{"the same request again is approved while its token is spent", token(func(k *inventory.JoinToken) { k.State, k.CSR = inventory.TokenSpent, "uid-1" }), Approve, ""},
		{"and when its node has joined", token(func(k *inventory.JoinToken) { k.State, k.CSR = inventory.TokenJoined, "uid-1" }), Approve, ""},
		{"a node of that name that is alive and the host's own", func(_ *request, f *Facts) { f.IsNodeReady, f.Owner = true, "host-1" }, Approve, ""},
		{"a retry after the node came to life", func(_ *request, f *Facts) {
			f.IsNodeReady = true
			f.Token.State, f.Token.CSR = inventory.TokenSpent, "uid-1"
		}, Approve, ""},
		{"a clock that was set back a little since", token(func(k *inventory.JoinToken) {
			k.CreatedAt, k.ExpiresAt = noon.Add(4*time.Minute), noon.Add(34*time.Minute)
		}), Approve, ""},

		{"a token that is none of ours", func(_ *request, f *Facts) { f.Token = nil }, Ignore, "not made with a token of ours"},
		{"a token of another cluster", func(_ *request, f *Facts) { f.Target = "other" }, Ignore, ""},
		{"a user who only looks like a token", func(r *request, _ *Facts) { r.Spec.Username = "abcdef" }, Ignore, ""},
		{"another token's row", func(r *request, _ *Facts) { r.Spec.Username = "system:bootstrap:zzzzzz" }, Ignore, ""},
		{"a node that renews", func(r *request, _ *Facts) { r.Spec.Username = "system:node:web-1" }, Ignore, ""},
		{"another signer", func(r *request, _ *Facts) { r.Spec.SignerName = "kubernetes.io/kube-apiserver-client" }, Report, "signer kubernetes.io/kube-apiserver-client"},
		{"another signer with a spent token", func(r *request, f *Facts) {
			r.Spec.SignerName, f.Token.State = "example.com/x", inventory.TokenRevoked
		}, Report, ""},

		{"a wrong name", csr(func(c *x509.CertificateRequest) { c.Subject.CommonName = "system:node:web-2" }), Deny, `may only be "system:node:web-1"`},
		{"a name with the right beginning", csr(func(c *x509.CertificateRequest) { c.Subject.CommonName += "0" }), Deny, "may only be"},
		{"no name", csr(func(c *x509.CertificateRequest) { c.Subject.CommonName = "" }), Deny, "may only be"},
		{"a name that is no node's", csr(func(c *x509.CertificateRequest) { c.Subject.CommonName = "web-1" }), Deny, "may only be"},
		{"two names", csr(func(c *x509.CertificateRequest) {
			c.Subject.ExtraNames = []pkix.AttributeTypeAndValue{{Type: []int{2, 5, 4, 3}, Value: "system:node:web-2"}, {Type: []int{2, 5, 4, 3}, Value: "system:node:web-1"}}
			c.Subject.CommonName = ""
		}), Deny, "says more"},
		{"an extra organisation", csr(func(c *x509.CertificateRequest) {
			c.Subject.Organization = append(c.Subject.Organization, "system:masters")
		}), Deny, "system:masters"},
		{"another organisation", csr(func(c *x509.CertificateRequest) { c.Subject.Organization = []string{"system:masters"} }), Deny, "groups"},
		{"no organisation", csr(func(c *x509.CertificateRequest) { c.Subject.Organization = nil }), Deny, "groups"},
		{"an organisational unit", csr(func(c *x509.CertificateRequest) { c.Subject.OrganizationalUnit = []string{"x"} }), Deny, "says more"},
		{"a DNS name", csr(func(c *x509.CertificateRequest) { c.DNSNames = []string{"kubernetes"} }), Deny, "names, addresses or extensions"},
		{"an address", csr(func(c *x509.CertificateRequest) { c.IPAddresses = []net.IP{{10, 0, 0, 1}} }), Deny, "extensions"},
		{"an e-mail address", csr(func(c *x509.CertificateRequest) { c.EmailAddresses = []string{"a@b"} }), Deny, "extensions"},
		{"a URI", csr(func(c *x509.CertificateRequest) { c.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} }), Deny, "extensions"},
		{"an extension that makes a CA", csr(func(c *x509.CertificateRequest) {
			c.ExtraExtensions = []pkix.Extension{{Id: []int{2, 5, 29, 19}, Value: []byte{0x30, 3, 1, 1, 0xff}}}
		}), Deny, "extensions"},

		{"server auth as well", usages("client auth", "digital signature", "server auth"), Deny, "server auth"},
		{"server auth instead", usages("server auth", "digital signature"), Deny, "key usages"},
		{"client auth alone", usages("client auth"), Deny, "key usages"},
		{"a usage twice", usages("client auth", "client auth", "digital signature"), Deny, "key usages"},
		{"no usage", usages(), Deny, "key usages"},

		{"a second request with a spent token", token(func(k *inventory.JoinToken) { k.State, k.CSR = inventory.TokenSpent, "uid-0" }), Deny, "used before"},
		{"a second request after its node has joined", token(func(k *inventory.JoinToken) { k.State, k.CSR = inventory.TokenJoined, "uid-0" }), Deny, "used before"},
		{"a spent token that does not say for what", func(r *request, f *Facts) { f.Token.State, r.UID = inventory.TokenSpent, "" }, Deny, "used before"},
		{"a revoked token", token(func(k *inventory.JoinToken) { k.State = inventory.TokenRevoked }), Deny, "revoked"},
		{"a revoked token and the same request", token(func(k *inventory.JoinToken) { k.State, k.CSR = inventory.TokenRevoked, "uid-1" }), Deny, "revoked"},
		{"an expired token", token(func(k *inventory.JoinToken) { k.ExpiresAt = noon }), Deny, "expired at 2026-11-21 12:00:00"},
		{"an expired token and the same request", token(func(k *inventory.JoinToken) { k.State, k.CSR, k.ExpiresAt = inventory.TokenSpent, "uid-1", noon }), Deny, "expired"},
		{"a token from the future", token(func(k *inventory.JoinToken) {
			k.CreatedAt, k.ExpiresAt = noon.Add(6*time.Minute), noon.Add(36*time.Minute)
		}), Deny, "future"},
		{"a host that is gone", func(_ *request, f *Facts) { f.Host = nil }, Deny, "not in the inventory"},
		{"another host than the token's", func(_ *request, f *Facts) { f.Host.ID = "host-2" }, Deny, "not in the inventory"},
		{"a node that belongs to another host", func(_ *request, f *Facts) { f.Owner = "host-2" }, Deny, "belongs to another host"},
		{"a live node that nobody let in", func(_ *request, f *Facts) { f.IsNodeReady = true }, Deny, "did not let in"},
		{"a token that lost its group", func(r *request, _ *Facts) { r.Spec.Groups = []string{"system:bootstrappers", Group + "x"} }, Deny, "lost its group"},

		{"garbage", func(r *request, _ *Facts) { r.Spec.Request = []byte("garbage") }, Deny, "PEM"},
		{"nothing", func(r *request, _ *Facts) { r.Spec.Request = nil }, Deny, "PEM"},
		{"garbage in PEM", func(r *request, _ *Facts) {
			r.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("garbage")})
		}, Deny, "not a certificate request"},
		{"another kind of PEM", func(r *request, _ *Facts) {
			r.Spec.Request = []byte(strings.ReplaceAll(string(r.Spec.Request), "CERTIFICATE REQUEST", "CERTIFICATE"))
		}, Deny, "PEM"},
		{"two requests in one", func(r *request, _ *Facts) { r.Spec.Request = append(r.Spec.Request, r.Spec.Request...) }, Deny, "not one"},
		{"a huge request", func(r *request, _ *Facts) {
			r.Spec.Request = append(r.Spec.Request, strings.Repeat("\n", maxRequestBytes)...)
		}, Deny, "larger"},
		{"a request that somebody has changed", func(r *request, _ *Facts) {
			block, _ := pem.Decode(r.Spec.Request)
			block.Bytes[len(block.Bytes)-1] ^= 1
			r.Spec.Request = pem.EncodeToMemory(block)
		}, Deny, "not signed"},
		{"a weak key", func(r *request, _ *Facts) {
			key, err := rsa.GenerateKey(rand.Reader, 1024)
			if err != nil {
				t.Fatal(err)
			}
			r.Spec.Request = signCSR(t, key, nil)
		}, Deny, "2048"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, f := rightCase(t)
			if tt.change != nil {
				tt.change(r, &f)
			}
			got := Decide(r, f, noon)
			if got.Verdict != tt.want || !strings.Contains(got.Reason, tt.reason) || got.Reason == "" {
				t.Errorf("got %+v, want %s with %q", got, tt.want, tt.reason)
			}
		})
	}
}

func TestDecideServing(t *testing.T) {
	type request = certsv1.CertificateSigningRequest
	csr := func(change func(*x509.CertificateRequest)) func(*request, *Facts) {
		return func(r *request, _ *Facts) {
			r.Spec.Request = makeCSR(t, func(c *x509.CertificateRequest) { serves(c); change(c) })
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*request, *Facts)
		want   Verdict
	}{
		{"a node with its own names and addresses is approved", nil, Approve},
		{"an address alone is enough", csr(func(c *x509.CertificateRequest) { c.DNSNames = nil }), Approve},
		{"a spent token is as good as a joined one", func(_ *request, f *Facts) { f.Token.State = inventory.TokenSpent }, Approve},
		{"a name that is not the host's", csr(func(c *x509.CertificateRequest) { c.DNSNames = append(c.DNSNames, "kubernetes") }), Ignore},
		{"a name of its domain that is not its", csr(func(c *x509.CertificateRequest) { c.DNSNames = []string{"web-2.example.com"} }), Ignore},
		{"an address that is not the host's", csr(func(c *x509.CertificateRequest) { c.IPAddresses = append(c.IPAddresses, net.IP{10, 0, 0, 2}) }), Ignore},
		{"neither names nor addresses", csr(func(c *x509.CertificateRequest) { c.DNSNames, c.IPAddresses = nil, nil }), Ignore},
		{"a URI", csr(func(c *x509.CertificateRequest) { c.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} }), Ignore},
		{"a kind of name that Go does not know", csr(func(c *x509.CertificateRequest) {
			c.DNSNames, c.IPAddresses = nil, nil
			c.ExtraExtensions = []pkix.Extension{{Id: oidSubjectAltName, Value: sanWithOtherName(t)}}
		}), Ignore},
		{"an extension beside the names", csr(func(c *x509.CertificateRequest) {
			c.ExtraExtensions = []pkix.Extension{{Id: []int{2, 5, 29, 19}, Value: []byte{0x30, 3, 1, 1, 0xff}}}
		}), Ignore},
		{"another node's name", csr(func(c *x509.CertificateRequest) { c.Subject.CommonName = "system:node:web-2" }), Ignore},
		{"another group", csr(func(c *x509.CertificateRequest) { c.Subject.Organization = []string{"system:masters"} }), Ignore},
		{"client auth", func(r *request, _ *Facts) { r.Spec.Usages[0] = certsv1.UsageClientAuth }, Ignore},
		{"another node asks", func(r *request, _ *Facts) { r.Spec.Username = "system:node:web-2" }, Ignore},
		{"no node asks", func(r *request, _ *Facts) { r.Spec.Username = "web-1" }, Ignore},
		{"the one who asks is not in the nodes' group", func(r *request, _ *Facts) { r.Spec.Groups = nil }, Ignore},
		{"another signer", func(r *request, _ *Facts) { r.Spec.SignerName = certsv1.KubeAPIServerClientSignerName }, Ignore},
		{"a node that did not join through us", func(_ *request, f *Facts) { f.Token = nil }, Ignore},
		{"a node whose token was not used", func(_ *request, f *Facts) { f.Token.State = inventory.TokenMinted }, Ignore},
		{"a node of another cluster", func(_ *request, f *Facts) { f.Target = "other" }, Ignore},
		{"a host that is gone", func(_ *request, f *Facts) { f.Host = nil }, Ignore},
		{"garbage", func(r *request, _ *Facts) { r.Spec.Request = []byte("x") }, Ignore},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, f := servingCase(t)
			if tt.change != nil {
				tt.change(r, &f)
			}
			if got := DecideServing(r, f); got.Verdict != tt.want || got.Reason == "" {
				t.Errorf("got %+v, want %s", got, tt.want)
			}
		})
	}
}

func serves(c *x509.CertificateRequest) {
	c.DNSNames, c.IPAddresses = []string{"web-1", "web-1.example.com"}, []net.IP{{10, 0, 0, 1}}
}

func servingCase(t testing.TB) (*certsv1.CertificateSigningRequest, Facts) {
	r, f := rightCase(t)
	r.Spec.SignerName = certsv1.KubeletServingSignerName
	r.Spec.Username, r.Spec.Groups = "system:node:web-1", []string{"system:nodes", "system:authenticated"}
	r.Spec.Usages = []certsv1.KeyUsage{certsv1.UsageServerAuth, certsv1.UsageDigitalSignature}
	r.Spec.Request = makeCSR(t, serves)
	f.Token.State = inventory.TokenJoined
	f.Names, f.Addresses = []string{"web-1", "web-1.example.com"}, []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	return r, f
}

// sanWithOtherName has a good DNS name, and a name of a kind that only few know.
func sanWithOtherName(t testing.TB) []byte {
	t.Helper()
	der, err := asn1.Marshal([]asn1.RawValue{
		{Class: asn1.ClassContextSpecific, Tag: 2, Bytes: []byte("web-1")},
		{Class: asn1.ClassContextSpecific, Tag: 0, IsCompound: true, Bytes: []byte{6, 3, 42, 3, 4, 0xa0, 2, 5, 0}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func FuzzParseRequest(f *testing.F) {
	f.Add(makeCSR(f, nil))
	f.Add(makeCSR(f, serves))
	f.Add(makeCSR(f, func(c *x509.CertificateRequest) {
		c.ExtraExtensions = []pkix.Extension{{Id: oidSubjectAltName, Value: sanWithOtherName(f)}}
	}))
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n"))
	r, facts := rightCase(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		r := r.DeepCopy()
		r.Spec.Request = text
		d := Decide(r, facts, noon)
		s, err := parseRequest(text)
		if d.Verdict == Approve && (err != nil || s.commonName != "system:node:web-1" || len(s.extensions) > 0 || s.others != 0) {
			t.Errorf("approved %q: %+v", text, s)
		}
		if len(d.Reason) > 2000 {
			t.Errorf("a reason of %d bytes", len(d.Reason))
		}
	})
}

func FuzzIsPlain(f *testing.F) {
	f.Add(sanWithOtherName(f))
	f.Add([]byte{0x30, 0})
	f.Fuzz(func(_ *testing.T, der []byte) { isPlain(der) })
}
