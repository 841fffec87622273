// Package peertest has what tests of the link between instances share: keys, and a server that ends with its test.
package peertest

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"slipway.dev/slipway/cmd/slipway/serve/peer"
)

// Identity makes the keys that instances with one secret.key have. Another letter is another secret.key.
func Identity(t testing.TB, letter string) peer.Identity {
	t.Helper()
	i, err := peer.NewIdentity([]byte(strings.Repeat(letter, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// Serve serves the link of an instance until the test ends, and returns its address. Register adds what the instance answers.
// A clean-up that the test registers later still reaches the instance.
func Serve(t testing.TB, who peer.Identity, register func(*peer.Server)) string {
	t.Helper()
	s := peer.New(peer.Config{Identity: who, Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)})
	register(s)
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s.Addr().String()
}
