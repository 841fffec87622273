// Package events has the list and the stream of events.
//
// Start reading at Register, then events.go.
package events

import "slipway.dev/slipway/web/rest"

// Register adds the operations to the frame. Package clusters sends streams of its own through the Server that it returns.
func Register(cfg Config) *Server {
	s := &Server{cfg: cfg, rest: cfg.Frame, streams: rest.NewShares("event streams", streamsMax, streamsEach)}
	s.addEvents()
	return s
}
