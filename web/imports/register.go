// Package imports has the operations of the REST API on images and artefacts, and on the imports by which they come.
//
// Start reading at Register.
package imports

// Register adds the operations to the frame.
func Register(cfg Config) {
	s := &Server{cfg: cfg, rest: cfg.Frame}
	s.addArtefacts()
	s.addImages()
	s.addImports()
}
