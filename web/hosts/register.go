// Package hosts has the operations of the REST API on hosts: reading and editing, verbs for one or many, hardware and
// disks, and failed boots.
//
// Start reading at Register, then hosts.go.
package hosts

// Register adds the operations to the frame.
func Register(cfg Config) {
	s := &Server{cfg: cfg, rest: cfg.Frame}
	s.addHosts()
	s.addHostVerbs()
	s.addHostRows()
	s.addBulk()
	s.addHardware()
	s.addDisks()
	s.addDiagnoses()
	s.addExplanations()
	s.addStickers()
	s.rest.AddUndoer("host", s.undoHost)
}
