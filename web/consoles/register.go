// Package consoles has the serial consoles of hosts: for a connection of their own, for browsers, and recorded while something is done
// with their hosts.
//
// Start reading at Register, then Server.Console, then lines.go.
package consoles

import "slipway.dev/slipway/web/rest"

// Register adds the operations to the frame. The Server that it returns also has consoles that are no operation of the API, and
// records them.
func Register(cfg Config) *Server {
	s := &Server{
		cfg: cfg, rest: cfg.Frame, shares: rest.NewShares("consoles", consolesMax, consolesEach),
		lines: &lines{life: cfg.Life, power: cfg.Power, now: cfg.Frame.Now},
	}
	s.addConsoles()
	return s
}
