// Package strangers bounds what machines make the server store. Each machine has a budget of rows and bytes. Machines that nobody
// has accepted are listed up to a limit, and are forgotten when they have been silent for long.
package strangers

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/provision/allowance"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/pxe"
)

// Config is everything a Gate needs.
type Config struct {
	Store    inventory.Store
	Now      func() time.Time
	Log      *slog.Logger
	Recorder *recorder.Recorder
	// Knows says whether a MAC belongs to an accepted host or a reservation. nil: everybody is known, and nothing is bounded.
	Knows func(inventory.MAC) bool
	// Logs keep the logs that machines send; nil: they are in the events.
	Logs Logs
	// KeepStrangers is how long a silent host stays that nobody has accepted; 0 means without end.
	KeepStrangers time.Duration
}

// Gate decides what is stored of a machine. Its methods may be called from many goroutines, once it is configured.
type Gate struct {
	cfg       Config
	newHosts  *rate.Limiter
	budget    *allowance.Book
	shed      shedding
	StrangerN atomic.Int64 // hosts that nobody has accepted, about
	expiredAt time.Time    // the sweep's own
}

// New returns a Gate that is to be configured.
func New() *Gate {
	return &Gate{
		// A row of racks at once is listed with its first packets; a flood of invented MACs fills neither disk nor list.
		newHosts: rate.NewLimiter(50, 1000),
		budget:   allowance.New(allowance.Default()),
	}
}

// Configure gives a Gate what it needs.
func (g *Gate) Configure(cfg Config) { g.cfg = cfg }

// HeardFirst is why a host is in state discovered that nobody has said anything of.
const HeardFirst = "heard for the first time; not accepted yet"

// Logs keep the logs of machines, next to the database.
type Logs interface {
	// Add keeps the text of a host's log, or of a stranger's without one, and returns what it is found by.
	Add(host, text string) (ref string, err error)
}

const (
	// StrangersAtMost is how many hosts that nobody has accepted are listed.
	StrangersAtMost = 20_000
	// strangersRestFor is how long one of too many was silent at least before it is forgotten.
	strangersRestFor = 10 * time.Minute
	expireEvery      = time.Minute
	// rowBytes is about what a row costs in addition to its text.
	rowBytes = 250
	// hostRows is about what a new host costs: its row, its card, its session and their events.
	hostRows = 8
	// StrangerNICs is how many cards a host that nobody has accepted has: it is believed only as far as that.
	StrangerNICs = 16
)

// Shed counts what was not stored, because a sender had spent its budget, or the disk is nearly full.
type Shed struct {
	OverBudget uint64 // events and reports of machines
	DiskFull   uint64 // events
	HostN      uint64 // machines that were not listed
	QueueFull  uint64 // events, because the store did not keep up
}

// shedding counts what is shed.
type shedding struct {
	isTight                    atomic.Bool
	overBudget, diskFull, host atomic.Uint64
}

// Shed returns what was not stored since the start.
func (g *Gate) Shed() Shed {
	return Shed{OverBudget: g.shed.overBudget.Load(), DiskFull: g.shed.diskFull.Load(), HostN: g.shed.host.Load(), QueueFull: g.cfg.Recorder.LostN()}
}

// DiskIsTight says whether the disk is nearly full: then no events are stored, so that leases still are.
func (g *Gate) DiskIsTight(is bool) { g.shed.isTight.Store(is) }

// IsStranger reports whether a MAC belongs to no accepted host. Without Knows every machine counts as known.
func (g *Gate) IsStranger(m inventory.MAC) bool { return g.cfg.Knows != nil && !g.cfg.Knows(m) }

// Pays takes rows and bytes from the budget of a machine; it reports false when that has spent its own.
func (g *Gate) Pays(s inventory.SessionID, m inventory.MAC, port string, rows, bytes int) bool {
	if g.cfg.Knows == nil {
		return true
	}
	who := allowance.Who{Session: string(s), MAC: string(m), Port: port, IsKnown: g.cfg.Knows(m)}
	if g.budget.Spend(g.cfg.Now(), who, rows, rows*rowBytes+bytes) {
		return true
	}
	g.shed.overBudget.Add(1)
	return false
}

// MayStore decides whether a note of the recorder is stored. A change of a host is always stored.
func (g *Gate) MayStore(n *recorder.Note) bool {
	if n.Do != nil {
		return true
	}
	if g.shed.isTight.Load() {
		g.shed.diskFull.Add(1)
		return false
	}
	mac := n.Event.MAC
	return mac == "" || g.Pays(n.Event.SessionID, mac, "", 1, len(n.Event.Detail))
}

// OverBudget is the answer to a machine that has made the server store too much.
func OverBudget() error {
	return inventory.Errorf(inventory.Unavailable, "this machine has sent more than is kept of one").WithHint("Slipway accepts its packets again in some minutes")
}

// MayAdd reports whether one more machine that nobody knows is listed.
func (g *Gate) MayAdd(c pxe.Client) bool {
	if g.cfg.Knows == nil {
		return true
	}
	ok := !g.shed.isTight.Load() && g.StrangerN.Load() < StrangersAtMost && g.Pays("", c.MAC, c.Port, hostRows, 0)
	if !ok {
		g.shed.host.Add(1)
		return false
	}
	g.StrangerN.Add(1)
	return true
}

// MayDiscover is mayAdd for a packet, whose sender may be invented.
func (g *Gate) MayDiscover(c pxe.Client) bool { return g.newHosts.Allow() && g.MayAdd(c) }

// KeptLog puts the text of a log where logs are kept, and returns what the event says of it.
func (g *Gate) KeptLog(data map[string]any, host inventory.HostID, m inventory.MAC, log string) map[string]any {
	if g.cfg.Logs == nil || log == "" {
		data["log"] = log
		return data
	}
	data["logBytes"] = len(log)
	ring := string(host)
	if g.IsStranger(m) {
		ring = ""
	}
	if g.shed.isTight.Load() {
		return data
	}
	ref, err := g.cfg.Logs.Add(ring, log)
	if err != nil {
		g.cfg.Log.Warn("log of a machine not kept", "mac", m, "err", err)
		return data
	}
	data["logRef"] = ref
	return data
}

// ExpireStrangers forgets hosts that are known from packets only and have been silent for long, and the longest silent ones
// while there are too many.
func (g *Gate) ExpireStrangers(ctx context.Context) error {
	now := g.cfg.Now()
	if g.cfg.Knows == nil && g.cfg.KeepStrangers == 0 || now.Sub(g.expiredAt) < expireEvery {
		return nil
	}
	g.expiredAt = now
	var old, resting []inventory.Host
	n := 0
	for after := ""; ; {
		page, err := inventory.Read(ctx, g.cfg.Store, func(tx inventory.Tx) ([]inventory.Host, error) {
			return tx.ListHosts(inventory.HostFilter{State: inventory.Discovered}, inventory.Page{After: after, Limit: 500})
		})
		if err != nil {
			return fmt.Errorf("read strangers: %w", err)
		}
		for i := range page {
			h := &page[i]
			switch silent := now.Sub(h.LastSeenAt); {
			case !IsUntouchedStranger(h):
				continue
			case g.cfg.KeepStrangers > 0 && silent >= g.cfg.KeepStrangers:
				old = append(old, *h)
			case silent >= strangersRestFor:
				resting = append(resting, *h)
			}
			n++
		}
		if len(page) < 500 {
			break
		}
		after = page[len(page)-1].Name
	}
	why := "not accepted, and silent for " + inventory.Duration(g.cfg.KeepStrangers).String()
	if most := StrangersAtMost * 9 / 10; n-len(old) > most {
		slices.SortFunc(resting, func(a, b inventory.Host) int { return a.LastSeenAt.Compare(b.LastSeenAt) })
		old, why = append(old, resting[:min(len(resting), n-len(old)-most)]...), "not accepted, silent, and one of too many"
	}
	gone, err := g.forgetStrangers(ctx, old, why)
	g.StrangerN.Store(int64(n - gone))
	return err
}

// IsUntouchedStranger reports whether a host is known from its packets only, and no person has edited it.
func IsUntouchedStranger(h *inventory.Host) bool {
	return h.State == inventory.Discovered && h.StateReason == HeardFirst && !h.LastSeenAt.IsZero() && len(h.NICs) > 0 && isNamedByMAC(h) &&
		len(h.Labels) == 0 && h.Profile == "" && h.Port == "" && h.DiskBoot == "" && h.Place == (inventory.Place{}) && len(h.Taints) == 0 &&
		len(h.KeepDisks) == 0 && h.RootDisk == (inventory.DiskHint{}) && h.ClaimID == "" && !h.IsArmed &&
		!h.InMaintenance && !h.IsProtected && !h.IsAdopted && !h.IsCordoned && !h.IsRetained
}

func isNamedByMAC(h *inventory.Host) bool {
	return slices.ContainsFunc(h.NICs, func(n inventory.NIC) bool { return h.Name == NameOf(n.MAC) })
}

// NameOf returns the name of a host that is known by a MAC only.
func NameOf(m inventory.MAC) string { return "host-" + strings.ReplaceAll(string(m), ":", "") }

// forgetStrangers deletes hosts, each unless something has changed since it was read.
func (g *Gate) forgetStrangers(ctx context.Context, all []inventory.Host, why string) (n int, err error) {
	for some := range slices.Chunk(all, ledger.ForgetAtOnce) {
		gone := 0
		err := g.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
			gone = 0
			for i := range some {
				h, err := tx.FindHost(some[i].ID)
				if err == nil {
					_, err = tx.FindBMC(h.ID)
					if inventory.IsKind(err, inventory.NotFound) && IsUntouchedStranger(&h) && h.LastSeenAt.Equal(some[i].LastSeenAt) {
						err = g.forgetStranger(tx, &h, why)
						gone++
					}
				}
				if err != nil && !inventory.IsKind(err, inventory.NotFound) {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return n, fmt.Errorf("forget strangers: %w", err)
		}
		n += gone
		if sleep.For(ctx, ledger.ForgetOnAfter/10) != nil {
			break
		}
	}
	return n, nil
}

func (g *Gate) forgetStranger(tx inventory.Tx, h *inventory.Host, why string) error {
	if err := tx.DeleteHost(h.ID); err != nil {
		return err
	}
	return tx.AddEvent(&inventory.Event{
		At: g.cfg.Now(), Kind: inventory.EventHostDeleted, HostID: h.ID, Subject: "host/" + h.Name, Detail: "host " + h.Name + " forgotten: " + why,
	})
}
