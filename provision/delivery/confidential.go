package delivery

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"

	"slipway.dev/slipway/ignition"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// Confidential makes a site send secrets over TLS only: level L2 of docs/secrets.md.
type Confidential struct {
	Port int           // of the boot listener over TLS
	CA   func() []byte // certificate that signs the door's, PEM; an admin may replace it
}

// base is our boot server over TLS, as it is reached at the address of the plain one.
func (c *Confidential) base(plain string) string {
	u, err := url.Parse(plain)
	if err != nil {
		return plain
	}
	a, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return plain
	}
	return pxe.SecureURL(a, c.Port)
}

// stages reports whether a request gets the first stage instead of the document: it is not for the open wire.
func (c *Confidential) stages(d *delivery) bool {
	return c != nil && !d.IsTLS && d.hasSecret() && d.rendering.Format == "ignition"
}

// firstStage is an Ignition configuration without any secret: it trusts our CA and fetches the document over TLS.
func (c *Confidential) firstStage(k Keys, d *delivery, doc inventory.RenderedDocument) ([]byte, error) {
	type source struct {
		Source string `json:"source"`
	}
	var out struct {
		Ignition struct {
			Version string `json:"version"`
			Config  struct {
				Merge []source `json:"merge"`
			} `json:"config"`
			Security struct {
				TLS struct {
					CertificateAuthorities []source `json:"certificateAuthorities"`
				} `json:"tls"`
			} `json:"security"`
		} `json:"ignition"`
	}
	// Ignition refuses a first stage of another version than it knows. That of the document is one that the image reads.
	out.Ignition.Version = ignition.SpecOf([]byte(doc.Text))
	out.Ignition.Config.Merge = []source{{k.ConfigURL(c.base(d.Base), &d.session, doc.Name)}}
	out.Ignition.Security.TLS.CertificateAuthorities = []source{
		{"data:;base64," + base64.StdEncoding.EncodeToString(c.CA())},
	}
	b, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encode the first stage: %w", err)
	}
	return b, nil
}
