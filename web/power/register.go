// Package power has the operations of the REST API on the controllers of hosts (BMCs), and on the power of hosts.
//
// Start reading at Register, then bmcs.go.
package power

// Register adds the operations to the frame. Packages consoles and hosts reach controllers through the Server that it returns.
func Register(cfg Config) *Server {
	s := &Server{cfg: cfg, rest: cfg.Frame}
	s.addBMCs()
	s.addBMCVerbs()
	s.addScans()
	s.addPower()
	s.rest.AddUndoer("bmc", s.undoBMC)
	return s
}
