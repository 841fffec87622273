package serve

import (
	"context"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"slipway.dev/slipway/cmd/slipway/serve/lookup"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/record"
	"slipway.dev/slipway/pxe/trace"
)

// newRecord returns the record of what machines say on the wire. others are the addresses of other instances, to which machines speak, too.
func newRecord(cfg *Config, others func() []netip.Addr, knows func(inventory.MAC) bool, log *slog.Logger) (*trace.Ring, *recordLogs) {
	var (
		mu   sync.Mutex
		at   time.Time
		ours []netip.Addr
	)
	logs := openRecordLogs(cfg.DataDir, log)
	ring := trace.NewRing(trace.Config{
		Keep:  logs.add,
		Knows: knows,
		IsOurs: func(x netip.Addr) bool { // an interface may get another address later
			mu.Lock()
			defer mu.Unlock()
			if now := time.Now(); now.Sub(at) > time.Second {
				at, ours = now, append(ourAddresses(cfg.Interfaces), others()...)
			}
			return slices.Contains(ours, x)
		},
	})
	// Restored before the first packet comes, so that the ring has the old frames before the new ones.
	logs.each(ring.Restore)
	return ring, logs
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
func openRecordLogs(dataDir string, log *slog.Logger) *recordLogs {
	open := func(name string, limit int64, perSecond int) *record.Log {
		l, err := record.OpenLog(record.LogConfig{Dir: filepath.Join(dataDir, "record"), Name: name, MaxBytes: limit, PerSecond: perSecond, Log: log})
		if err != nil {
			log.Warn("packets not kept on disk", "err", err)
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

// ourAddresses are the addresses of the boot interfaces, of both families.
func ourAddresses(interfaces []string) (all []netip.Addr) {
	for _, name := range interfaces {
		for _, p := range lookup.PrefixesOf(name) {
			all = append(all, p.Addr().Unmap())
		}
	}
	return all
}
