package access

import (
	"fmt"
	"os"
	"strings"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// TLSCommand is slipway tls.
type TLSCommand struct {
	Show tlsShow `cmd:"" help:"Show the certificate of the admin listener."`
	Set  tlsSet  `cmd:"" help:"Upload a certificate for the admin listener; it is in force for the next connection."`
	Drop tlsDrop `cmd:"" help:"Take the certificate away that was set; this site's own authority signs again."`

	Rotate tlsRotate `cmd:"" help:"Replace this site's own authority of a listener, in two steps."`
}

type tlsShow struct {
	CA bool `name:"ca" help:"Only the certificate of this site's own authority, which other machines give to --ca-file."`
}

// Run shows the certificate.
func (c *tlsShow) Run(s *cli.Session, api *client.Client) error {
	t, err := api.TLS(s.Ctx)
	if err != nil {
		return err
	}
	if c.CA {
		if t.CA == "" {
			return inventory.Errorf(inventory.NotFound, "the admin listener shows no certificate of this site's own authority").WithHint("slipway tls show says what it shows")
		}
		_, err := fmt.Fprint(s.Out, t.CA)
		return err
	}
	return s.Show(t, func(w *cli.TableWriter) { showTLS(w, t) })
}

func showTLS(w *cli.TableWriter, t wire.TLSState) {
	if !t.IsOn {
		w.Text("the admin listener speaks without TLS, on loopback only")
		return
	}
	w.Field("from", t.From)
	w.Field("subject", t.Subject)
	w.Field("issuer", t.Issuer)
	w.Field("names", strings.Join(t.Names, " "))
	w.Field("since", cli.TimeText(t.NotBefore))
	w.Field("until", cli.TimeText(t.NotAfter))
	w.Field("sha256", t.Fingerprint)
	w.Field("refused", t.Refused)
}

type tlsSet struct {
	Cert string `required:"" help:"PEM file with the certificate and those between it and its authority." placeholder:"FILE"`
	Key  string `required:"" help:"PEM file with its key." placeholder:"FILE"`
}

// Run gives the admin listener a certificate.
func (c *tlsSet) Run(s *cli.Session, api *client.Client) error {
	cert, err := os.ReadFile(c.Cert)
	if err != nil {
		return inventory.Errorf(inventory.Invalid, "cannot read the certificate: %v", err)
	}
	key, err := os.ReadFile(c.Key)
	if err != nil {
		return inventory.Errorf(inventory.Invalid, "cannot read the key: %v", err)
	}
	return cli.Answered(api.SetTLS(s.Ctx, string(cert), string(key))).Show(s, showTLS)
}

type tlsDrop struct{}

// Run takes the certificate away.
func (*tlsDrop) Run(s *cli.Session, api *client.Client) error {
	return api.DropTLS(s.Ctx)
}

type tlsRotate struct {
	Door   string `enum:"admin,boot" default:"admin" help:"admin or boot."`
	Finish bool   `help:"Put the one in force that was made before."`
}

// Run makes the authority that comes after, or puts it in force.
func (c *tlsRotate) Run(s *cli.Session, api *client.Client) error {
	if err := api.RotateAuthority(s.Ctx, c.Door, c.Finish); err != nil {
		return err
	}
	switch {
	case c.Finish && c.Door == "boot":
		s.Say("the new authority signs for the boot listener")
	case c.Finish:
		s.Say("the new authority signs for the admin listener")
	case c.Door == "boot":
		s.Say("the new authority is next-ca.crt in the data directory: build boot loaders that trust both, then: slipway tls rotate --door boot --finish")
	default:
		s.Say("have clients trust both authorities, which these print: `slipway tls show --ca`; then: `slipway tls rotate --finish`")
	}
	return nil
}
