// Package history has the operations of the REST API on what happened to hosts: boot sessions, issues, operations and the timeline.
//
// Start reading at Register, then timeline.go.
package history

// Register adds the operations to the frame.
func Register(cfg Config) {
	s := &Server{cfg: cfg, rest: cfg.Frame}
	s.addTimeline()
	s.addOperations()
	s.addSessions()
	s.addIssues()
}
