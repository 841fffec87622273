// Package files has the operations of the REST API that write the inventory into files and read it from them: backup, export and import.
//
// Start reading at Register.
package files

// Register adds the operations to the frame.
func Register(cfg Config) {
	s := &Server{cfg: cfg, rest: cfg.Frame}
	s.addTransfer()
	s.addBackup()
}
