package cli

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"

	"slipway.dev/slipway/inventory"
)

// Trusting is how to speak to a server with https whose certificate an authority of its own signed; nil for the usual
// authorities.
func Trusting(server, caFile string) (*tls.Config, error) {
	if caFile == "" || !strings.HasPrefix(server, "https://") {
		return nil, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, inventory.Errorf(inventory.Invalid, "cannot read the certificate authority: %v", err)
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(bytes.TrimSpace(pem)) > 0 { // a Secret without an authority is mounted as an empty file: the system's are good
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, inventory.Errorf(inventory.Invalid, "there is no certificate in %s", caFile)
		}
	}
	return conf, nil
}
