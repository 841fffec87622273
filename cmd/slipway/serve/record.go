package serve

import (
	"context"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"slipway.dev/slipway/cmd/slipway/serve/lookup"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/record"
	"slipway.dev/slipway/pxe/tap"
	"slipway.dev/slipway/pxe/trace"
)

// newRecord returns the record of what machines say on the wire.
func (a *appliance) newRecord() *trace.Ring {
	var (
		mu   sync.Mutex
		at   time.Time
		ours []netip.Addr
	)
	logs := a.openRecordLogs()
	ring := trace.NewRing(trace.Config{
		Keep:  logs.add,
		Knows: a.networks.Known.HasMAC,
		IsOurs: func(x netip.Addr) bool { // an interface may get another address later
			mu.Lock()
			defer mu.Unlock()
			if now := time.Now(); now.Sub(at) > time.Second {
				at, ours = now, a.ourAddresses()
			}
			return slices.Contains(ours, x)
		},
	})
	// Restored before the first packet comes, so that the ring has the old frames before the new ones.
	logs.each(ring.Restore)
	a.recordLogs = logs
	return ring
}

// recordLogs keep the record on disk: known machines and strangers apart, so that a flood of invented MACs costs no
// known machine its record. Strangers are kept up to a rate.
type recordLogs struct {
	known, strangers *record.Log // nil when the data directory takes none
}

const (
	recordKnownBytes     = 48 << 20
	recordStrangersBytes = 16 << 20
	recordStrangersRate  = 200 // frames a second
)

// openRecordLogs opens the logs under the data directory; without them the record is in memory alone.
func (a *appliance) openRecordLogs() *recordLogs {
	open := func(name string, limit int64, perSecond int) *record.Log {
		l, err := record.OpenLog(record.LogConfig{Dir: filepath.Join(a.cfg.DataDir, "record"), Name: name, MaxBytes: limit, PerSecond: perSecond, Log: a.log})
		if err != nil {
			a.log.Warn("packets not kept on disk", "err", err)
			return nil
		}
		return l
	}
	return &recordLogs{known: open("known", recordKnownBytes, 0), strangers: open("strangers", recordStrangersBytes, recordStrangersRate)}
}

func (x *recordLogs) add(f trace.Frame, isKnown bool) {
	switch {
	case isKnown && x.known != nil:
		x.known.Add(f)
	case !isKnown && x.strangers != nil:
		x.strangers.Add(f)
	}
}

func (x *recordLogs) each(fn func(trace.Frame)) {
	for _, l := range []*record.Log{x.strangers, x.known} {
		if l != nil {
			l.Each(fn)
		}
	}
}

// serve writes the logs until ctx is done, and then what is left.
func (x *recordLogs) serve(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, l := range []*record.Log{x.strangers, x.known} {
		if l != nil {
			g.Go(func() error { return l.Serve(ctx) })
		}
	}
	<-ctx.Done()
	return g.Wait()
}

// tapDoor makes the part that captures the packets of boots for the record.
func (a *appliance) tapDoor() *tap.Server {
	ports := []int{a.cfg.BootPort}
	if a.cfg.BootTLSPort != 0 {
		ports = append(ports, a.cfg.BootTLSPort)
	}
	return tap.New(tap.Config{Interfaces: a.cfg.Interfaces, Ports: ports, Record: a.record.Add, Knows: a.networks.Known.Has, Now: time.Now, Log: a.log})
}

// unanswered keeps why a packet got no answer.
func (a *appliance) unanswered(u pxe.Unanswered) {
	// The record keeps every refusal: an admin reads it with explain.
	a.record.Tell(u.Client.MAC, trace.Note{At: u.At, Subnet: u.Client.Subnet, Reason: u.Reason})
	// Only a first message tells that a machine waits for an address. A REQUEST without an answer may accept the offer of
	// another server.
	if u.Type == "discover" || u.Type == "solicit" || u.Type == "" {
		a.engine.Unanswered(u.Client, u.Iface, u.Reason, u.IsMeant)
	}
}

// ourAddresses are the addresses of the boot interfaces, of both families.
func (a *appliance) ourAddresses() (all []netip.Addr) {
	for _, name := range a.cfg.Interfaces {
		for _, p := range lookup.PrefixesOf(name) {
			all = append(all, p.Addr().Unmap())
		}
	}
	return all
}
