package redfish

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
)

// Found describes a Redfish service as it shows itself to everybody.
type Found struct {
	Address     string // URL, as inventory.BMC.Address wants it
	Vendor      string // "" when it does not tell
	Product     string
	Name        string
	UUID        string // of the service, lower case
	Version     string // of Redfish
	Fingerprint string // hex SHA-256 of its certificate, "" without TLS
}

// ProbeClient returns a client for Probe: it accepts every certificate, for there is nothing to compare it with yet,
// and nothing secret is sent.
func ProbeClient(timeout time.Duration, policy *egress.Policy) *http.Client {
	return &http.Client{
		Timeout: timeout, CheckRedirect: sameHost,
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			DialContext:     policy.Dialer(timeout).DialContext,
			// A scan asks each address once. Kept connections would use up the file descriptors of the server.
			DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10,
		},
	}
}

// Probe asks an address for its service root, without a login. It asks port 80 in plain text, and all others by TLS.
// The error is NotFound if the answer is not Redfish, and Unavailable if nothing answers.
func Probe(ctx context.Context, addr netip.AddrPort, c *http.Client) (Found, error) {
	base := url.URL{Scheme: "https", Host: addr.String()}
	switch addr.Port() {
	case 80:
		base.Scheme = "http"
	case 443:
		base.Host = host(addr.Addr())
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.String()+rootPath, nil)
	if err != nil {
		return Found{}, inventory.Errorf(inventory.Invalid, "%s is not an address to look at", addr)
	}
	req.Header.Set("Accept", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		return Found{}, unfound(addr, err)
	}
	defer resp.Body.Close()
	// A truncated body is no JSON, so that a larger answer counts as something else than Redfish.
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return Found{}, unfound(addr, err)
	}
	var root serviceRoot
	if resp.StatusCode != http.StatusOK || decode(body, &root) != nil || root.RedfishVersion == "" {
		return Found{}, inventory.Errorf(inventory.NotFound, "what answers at %s is no Redfish service", addr)
	}
	final := resp.Request.URL
	found := Found{
		Address: (&url.URL{Scheme: final.Scheme, Host: final.Host}).String(), Vendor: vendorOf(&root, ""), Product: clean(root.Product), Name: clean(root.Name),
		UUID: lower(root.UUID), Version: inventory.Clean(root.RedfishVersion, 20),
	}
	if resp.TLS != nil && len(resp.TLS.PeerCertificates) > 0 {
		found.Fingerprint = fingerprint(resp.TLS.PeerCertificates[0].Raw)
	}
	return found, nil
}

// host writes an address as URLs do.
func host(a netip.Addr) string {
	if a.Is6() {
		return "[" + a.String() + "]"
	}
	return a.String()
}

func unfound(addr netip.AddrPort, err error) error {
	var (
		elsewhere *redirectError
		record    tls.RecordHeaderError
	)
	if errors.As(err, &elsewhere) || errors.As(err, &record) || errors.Is(err, http.ErrSchemeMismatch) {
		return inventory.Errorf(inventory.NotFound, "what answers at %s is no Redfish service", addr)
	}
	return &inventory.Error{Kind: inventory.Unavailable, Msg: "nothing answers at " + addr.String(), Err: plain(err)}
}
