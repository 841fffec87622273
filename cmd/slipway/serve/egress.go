package serve

import (
	"slipway.dev/slipway/inventory/egress"
)

// Egress says which addresses the server connects to on behalf of others, as the file has it.
type Egress struct {
	Allow []string `yaml:"allow"` // networks that are refused otherwise, such as 127.0.0.0/8
}

// egressPolicy is what imports, controllers, webhooks, scans, the provider of identities and clusters connect through.
// The ports of our own doors stay closed to them whatever is allowed.
func (a *appliance) egressPolicy() (*egress.Policy, error) {
	allow, err := egress.ParseAllow(a.cfg.Egress.Allow)
	if err != nil {
		return nil, err
	}
	return egress.New(egress.Config{Allow: allow, Doors: func() (ports []uint16) {
		for _, port := range []int{a.cfg.BootPort, a.cfg.BootTLSPort, int(a.adminPort.Load())} {
			if port > 0 {
				ports = append(ports, uint16(port))
			}
		}
		return ports
	}}), nil
}
