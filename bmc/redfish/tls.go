package redfish

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// newTransport talks to one controller: HTTP/1.1, no proxy, and a certificate that is verified or pinned.
func newTransport(t bmc.Target) (*http.Transport, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	switch {
	case t.Fingerprint != "":
		pin, err := hex.DecodeString(strings.ReplaceAll(t.Fingerprint, ":", ""))
		if err != nil || len(pin) != sha256.Size {
			return nil, inventory.Errorf(inventory.Invalid, "the fingerprint of the controller at %s is not a SHA-256", inventory.Clean(t.Address, 80)).
				WithHint("64 hex digits: openssl x509 -fingerprint -sha256")
		}
		conf.InsecureSkipVerify = true // the pin is stricter: it names one certificate
		// VerifyConnection also runs for resumed sessions, which VerifyPeerCertificate does not.
		conf.VerifyConnection = func(s tls.ConnectionState) error { return checkPin(s, pin) }
	case t.InsecureSkipVerify:
		conf.InsecureSkipVerify = true
	}
	return &http.Transport{
		TLSClientConfig:     conf,
		DialContext:         t.Egress.DialContext,
		TLSHandshakeTimeout: 15 * time.Second, // a controller without a crypto engine takes seconds
		// Together with slots of the connection: a small controller stops answering when it gets more connections.
		MaxConnsPerHost:        2,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}, nil
}

// pinError says which certificate came instead of the pinned one.
type pinError struct{ got string }

func (e *pinError) Error() string { return "the certificate is " + e.got }

// checkPin compares the leaf; it is called for resumed connections too.
func checkPin(s tls.ConnectionState, pin []byte) error {
	if len(s.PeerCertificates) == 0 {
		return &pinError{"missing"}
	}
	sum := sha256.Sum256(s.PeerCertificates[0].Raw)
	if subtle.ConstantTimeCompare(sum[:], pin) != 1 {
		return &pinError{hex.EncodeToString(sum[:])}
	}
	return nil
}

// redirectError is a redirect that is not followed.
type redirectError struct{ why string }

func (e *redirectError) Error() string { return e.why }

// sameHost follows redirects to the same host only, and never from HTTPS to HTTP. It does not follow one that would
// turn an order into a GET: the controller would answer with 200 and ignore the order.
func sameHost(req *http.Request, via []*http.Request) error {
	first := via[0]
	to := inventory.Clean(req.URL.Host, 80)
	switch {
	// http.Client drops Authorization on the way to another host, but not X-Auth-Token. The token must not leave the controller.
	case req.URL.Hostname() != first.URL.Hostname() || req.URL.Port() != first.URL.Port() && !isUpgrade(first.URL, req.URL):
		return &redirectError{"to another host, " + to}
	case first.URL.Scheme == "https" && req.URL.Scheme != "https":
		return &redirectError{"to plain HTTP"}
	case req.Method != first.Method || first.Method != http.MethodGet && first.URL.Scheme != req.URL.Scheme:
		return &redirectError{"an order"}
	case len(via) >= 4:
		return &redirectError{"in circles"}
	case req.URL.User != nil:
		return errors.New("a redirect with a user in it")
	}
	return nil
}

// isUpgrade reports whether a redirect goes from HTTP to HTTPS.
func isUpgrade(from, to *url.URL) bool { return from.Scheme == "http" && to.Scheme == "https" }
