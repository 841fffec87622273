// Package net_test owns the tests that run real clients against our doors in network namespaces. They need root and
// are switched on by SLIPWAY_NET=1, as make test-net does; nothing they send leaves the namespaces.
package net_test

import (
	"os"
	"testing"

	"slipway.dev/slipway/test/netlab"
)

// children are the programs that this test binary turns into when it starts itself inside a namespace.
func children() map[string]func() error {
	return map[string]func() error{
		"dhcp": serveDHCP, "dhcp6": serveDHCP6, "boot": serveBoot, "serve": serveAll, "flood": sendFlood, "doctor": runDoctor,
		"join": joinOne, "relay": relay,
	}
}

func TestMain(m *testing.M) { netlab.Main(m, children()) }

// lab is a set of namespaces of one test, with the servers and clients of others that these tests run in them.
type lab struct{ *netlab.Lab }

func newLab(t *testing.T, programs ...string) *lab {
	t.Helper()
	return &lab{netlab.New(t, "make test-net", programs...)}
}

// of returns the same namespaces for a test of their test.
func (l *lab) of(t *testing.T) *lab {
	return &lab{&netlab.Lab{T: t, Prefix: l.Prefix, Dir: l.Dir}}
}

// needsLong skips a test that takes some time, where nobody wants those.
func needsLong(t *testing.T, takes string) {
	t.Helper()
	if os.Getenv("SLIPWAY_LONG") == "" {
		t.Skipf("takes %s; run: make test-long RUN=%s", takes, t.Name())
	}
}

type process = netlab.Process
