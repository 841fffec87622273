package delivery

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"

	"slipway.dev/slipway/ignition"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/pxe"
)

// Confidential makes a site send secrets over TLS only: level L2 of docs/secrets.md.
type Confidential struct {
	Port int    // of the boot listener over TLS
	CA   []byte // certificate that signs the door's, PEM
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

// Confide finds the way on which a rendering with secrets reaches a machine unread, or says that there is none. A loader
// that speaks HTTPS fetches the initrd itself, if it was built to trust our CA. A first stage without secrets can tell
// Ignition which authority to trust, and where the rest is.
func (dl *Deliverer) Confide(p *pxe.Plan, r *configuration.Rendered, c pxe.Client, base string) {
	if dl.cfg.Confidential == nil || !r.HasSecret {
		return
	}
	switch {
	case p.Config.HasInitrd && dl.cfg.Sessions.SpeaksTLS(c.MAC):
		p.Config.Base = dl.cfg.Confidential.base(base)
	case r.Format == "ignition":
	default:
		p.Problem = inventory.Errorf(inventory.Conflict, "this site sends secrets over TLS only, and the boot loader of this machine does not speak it").
			WithHint("give it an iPXE with HTTPS that trusts our CA, see docs/secrets.md; or take the secrets out of profile %s", r.Profile)
	}
}

// isStaged reports whether a request gets the first stage instead of the document: it is not for the open wire.
func (dl *Deliverer) isStaged(d *delivery) bool {
	return dl.cfg.Confidential != nil && !d.IsTLS && d.hasSecret() && d.rendering.Format == "ignition"
}

// firstStage is an Ignition configuration without any secret: it trusts our CA and fetches the document over TLS.
func (dl *Deliverer) firstStage(d *delivery, doc inventory.RenderedDocument) ([]byte, error) {
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
	out.Ignition.Version = ignition.SpecOf([]byte(doc.Text))
	out.Ignition.Config.Merge = []source{{dl.ConfigURL(dl.cfg.Confidential.base(d.Base), &d.session, doc.Name)}}
	out.Ignition.Security.TLS.CertificateAuthorities = []source{
		{"data:;base64," + base64.StdEncoding.EncodeToString(dl.cfg.Confidential.CA)},
	}
	b, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encode the first stage: %w", err)
	}
	return b, nil
}
