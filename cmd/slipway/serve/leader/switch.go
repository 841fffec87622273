package leader

import (
	"context"
	"net/netip"
	"sync/atomic"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// Switch is the engine that the listeners of an instance ask: that of the leader, and their own once this instance leads. The
// listeners go on meanwhile. It repeats the methods of Engine, so that no listener knows that there are instances. Each listener
// asks one small interface, which the engine of a server alone implements, too.
type Switch struct{ engine atomic.Pointer[Engine] }

// NewSwitch returns a Switch that leads to an engine.
func NewSwitch(e Engine) *Switch {
	s := &Switch{}
	s.Set(e)
	return s
}

// Set has all further calls go to an engine.
func (s *Switch) Set(e Engine) { s.engine.Store(&e) }

func (s *Switch) now() Engine { return *s.engine.Load() }

// Offer implements Engine.
func (s *Switch) Offer(ctx context.Context, c pxe.Client, base string) pxe.Reply {
	return s.now().Offer(ctx, c, base)
}

// Ask implements Engine.
func (s *Switch) Ask(ctx context.Context, id inventory.SessionID, source netip.Addr, base string) ([]byte, error) {
	return s.now().Ask(ctx, id, source, base)
}

// Script implements Engine.
func (s *Switch) Script(ctx context.Context, id inventory.SessionID, c pxe.Client, base string) ([]byte, error) {
	return s.now().Script(ctx, id, c, base)
}

// Report implements Engine.
func (s *Switch) Report(ctx context.Context, id inventory.SessionID, source netip.Addr, key string, r pxe.Report) error {
	return s.now().Report(ctx, id, source, key, r)
}

// Document implements Engine.
func (s *Switch) Document(ctx context.Context, r pxe.ConfigRequest) (pxe.ConfigDocument, error) {
	return s.now().Document(ctx, r)
}

// Artefact implements Engine.
func (s *Switch) Artefact(
	ctx context.Context, id inventory.SessionID, source netip.Addr, d inventory.Digest, name string,
) (inventory.Digest, error) {
	return s.now().Artefact(ctx, id, source, d, name)
}

// Initrds implements Engine.
func (s *Switch) Initrds(ctx context.Context, id inventory.SessionID, source netip.Addr) ([]inventory.ImageArtefact, bool, error) {
	return s.now().Initrds(ctx, id, source)
}

// AgentTask implements Engine.
func (s *Switch) AgentTask(
	ctx context.Context, id inventory.SessionID, source netip.Addr, key string, version int, base string,
) (wire.Task, error) {
	return s.now().AgentTask(ctx, id, source, key, version, base)
}

// AgentReport implements Engine.
func (s *Switch) AgentReport(ctx context.Context, id inventory.SessionID, source netip.Addr, key string, r wire.Report) error {
	return s.now().AgentReport(ctx, id, source, key, r)
}

// Note implements Engine.
func (s *Switch) Note(ctx context.Context, c pxe.Client, kind, detail string) {
	s.now().Note(ctx, c, kind, detail)
}

// Conflict implements Engine.
func (s *Switch) Conflict(a netip.Addr, subnet string, who inventory.MAC, detail string) {
	s.now().Conflict(a, subnet, who, detail)
}

// Exhausted implements Engine.
func (s *Switch) Exhausted(subnet string) {
	s.now().Exhausted(subnet)
}

// Beside implements Engine.
func (s *Switch) Beside(c pxe.Client, isHeard bool) {
	s.now().Beside(c, isHeard)
}

// Foreign implements Engine.
func (s *Switch) Foreign(f pxe.ForeignServer) {
	s.now().Foreign(f)
}

// ForeignGone implements Engine.
func (s *Switch) ForeignGone(noticed []pxe.ForeignServer, subnets []string, listened time.Duration) {
	s.now().ForeignGone(noticed, subnets, listened)
}

// Unanswered implements Engine.
func (s *Switch) Unanswered(c pxe.Client, iface, reason string, isMeant bool) {
	s.now().Unanswered(c, iface, reason, isMeant)
}

// Transferring implements Engine.
func (s *Switch) Transferring(t pxe.Transfer) {
	s.now().Transferring(t)
}

// Transferred implements Engine.
func (s *Switch) Transferred(t pxe.Transfer) {
	s.now().Transferred(t)
}
