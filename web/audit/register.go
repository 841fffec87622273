// Package audit shows who asked the REST API for what, checks that nobody has changed the entries since, and takes edits back.
// Package rest writes the entries.
//
// Start reading at Register, then Log.undo.
package audit

import "slipway.dev/slipway/web/rest"

// Register adds to the frame what can be read of the audit that the frame writes, and the undo.
func Register(frame *rest.Frame) {
	l := &Log{frame}
	l.addEntries()
	l.addUndo()
	l.addChain()
}
