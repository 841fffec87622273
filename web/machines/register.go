// Package machines has the operations of the REST API on machines: what somebody wants, and what is done to it.
//
// Start reading at Register, then machines.go.
package machines

// Register adds the operations to the frame.
func Register(cfg Config) {
	s := &Server{cfg: cfg, rest: cfg.Frame}
	s.addMachines()
	s.addMachineVerbs()
	s.addForesight()
	s.rest.AddUndoer("machine", s.undoMachine)
}
