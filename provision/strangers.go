package provision

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/allowance"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/pxe"
)

// Logs keep the logs of machines, next to the database.
type Logs interface {
	// Add keeps the text of a host's log, or of a stranger's without one, and returns what it is found by.
	Add(host, text string) (ref string, err error)
}

const (
	// strangersAtMost is how many hosts that nobody has accepted are listed.
	strangersAtMost = 20_000
	// strangersRestFor is how long one of too many was silent at least before it is forgotten.
	strangersRestFor = 10 * time.Minute
	expireEvery      = time.Minute
	// rowBytes is about what a row costs beside its text.
	rowBytes = 250
	// hostRows is about what a new host costs: its row, its card, its session and their events.
	hostRows = 8
	// strangerNICs is how many cards a host that nobody has accepted has: it is believed only as far as that.
	strangerNICs = 16
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
func (e *Engine) Shed() Shed {
	return Shed{OverBudget: e.shed.overBudget.Load(), DiskFull: e.shed.diskFull.Load(), HostN: e.shed.host.Load(), QueueFull: e.recorder.LostN()}
}

// DiskIsTight says whether the disk is nearly full: then no events are stored, so that leases still are.
func (e *Engine) DiskIsTight(is bool) { e.shed.isTight.Store(is) }

// isStranger reports whether a MAC belongs to no accepted host. Without Knows nobody is a stranger.
func (e *Engine) isStranger(m inventory.MAC) bool { return e.cfg.Knows != nil && !e.cfg.Knows(m) }

// pays takes rows and bytes from the budget of a machine; it reports false when that has spent its own.
func (e *Engine) pays(s inventory.SessionID, m inventory.MAC, port string, rows, bytes int) bool {
	if e.cfg.Knows == nil {
		return true
	}
	who := allowance.Who{Session: string(s), MAC: string(m), Port: port, IsKnown: e.cfg.Knows(m)}
	if e.budget.Spend(e.cfg.Now(), who, rows, rows*rowBytes+bytes) {
		return true
	}
	e.shed.overBudget.Add(1)
	return false
}

// mayStore decides whether a note of the recorder is stored. What changes a host always is.
func (e *Engine) mayStore(n *recorder.Note) bool {
	if n.Do != nil {
		return true
	}
	if e.shed.isTight.Load() {
		e.shed.diskFull.Add(1)
		return false
	}
	mac := n.Event.MAC
	return mac == "" || e.pays(n.Event.SessionID, mac, "", 1, len(n.Event.Detail))
}

// overBudget is the answer to a machine that has made the server store too much.
func overBudget() error {
	return inventory.Errorf(inventory.Unavailable, "this machine has sent more than is kept of one").WithHint("Slipway accepts its packets again in some minutes")
}

// mayAdd reports whether one more machine that nobody knows is listed.
func (e *Engine) mayAdd(c pxe.Client) bool {
	if e.cfg.Knows == nil {
		return true
	}
	ok := !e.shed.isTight.Load() && e.strangerN.Load() < strangersAtMost && e.pays("", c.MAC, c.Port, hostRows, 0)
	if !ok {
		e.shed.host.Add(1)
		return false
	}
	e.strangerN.Add(1)
	return true
}

// mayDiscover is mayAdd for a packet, whose sender may be invented.
func (e *Engine) mayDiscover(c pxe.Client) bool { return e.newHosts.Allow() && e.mayAdd(c) }

// keptLog puts the text of a log where logs are kept, and returns what the event says of it.
func (e *Engine) keptLog(data map[string]any, host inventory.HostID, m inventory.MAC, log string) map[string]any {
	if e.cfg.Logs == nil || log == "" {
		data["log"] = log
		return data
	}
	data["logBytes"] = len(log)
	ring := string(host)
	if e.isStranger(m) {
		ring = ""
	}
	if e.shed.isTight.Load() {
		return data
	}
	ref, err := e.cfg.Logs.Add(ring, log)
	if err != nil {
		e.cfg.Log.Warn("log of a machine not kept", "mac", m, "err", err)
		return data
	}
	data["logRef"] = ref
	return data
}

// expireStrangers forgets hosts that were heard, that nobody has accepted or said anything of, and that have been silent for long;
// and the longest silent while there are too many.
func (e *Engine) expireStrangers(ctx context.Context) error {
	now := e.cfg.Now()
	if e.cfg.Knows == nil && e.cfg.KeepStrangers == 0 || now.Sub(e.expiredAt) < expireEvery {
		return nil
	}
	e.expiredAt = now
	var old, resting []inventory.Host
	n := 0
	for after := ""; ; {
		var page []inventory.Host
		err := e.cfg.Store.Read(ctx, func(tx inventory.Tx) (err error) {
			page, err = tx.ListHosts(inventory.HostFilter{State: inventory.Discovered}, inventory.Page{After: after, Limit: 500})
			return err
		})
		if err != nil {
			return fmt.Errorf("read strangers: %w", err)
		}
		for i := range page {
			h := &page[i]
			switch silent := now.Sub(h.LastSeenAt); {
			case !IsUntouchedStranger(h):
				continue
			case e.cfg.KeepStrangers > 0 && silent >= e.cfg.KeepStrangers:
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
	why := "not accepted, and silent for " + inventory.Duration(e.cfg.KeepStrangers).String()
	if most := strangersAtMost * 9 / 10; n-len(old) > most {
		slices.SortFunc(resting, func(a, b inventory.Host) int { return a.LastSeenAt.Compare(b.LastSeenAt) })
		old, why = append(old, resting[:min(len(resting), n-len(old)-most)]...), "not accepted, silent, and one of too many"
	}
	gone, err := e.forgetStrangers(ctx, old, why)
	e.strangerN.Store(int64(n - gone))
	return err
}

// IsUntouchedStranger reports whether a host is known from its packets only, and no person has edited it.
func IsUntouchedStranger(h *inventory.Host) bool {
	return h.State == inventory.Discovered && h.StateReason == heardFirst && !h.LastSeenAt.IsZero() && len(h.NICs) > 0 && isNamedByMAC(h) &&
		len(h.Labels) == 0 && h.Profile == "" && h.Port == "" && h.DiskBoot == "" && h.Place == (inventory.Place{}) && len(h.Taints) == 0 &&
		len(h.KeepDisks) == 0 && h.RootDisk == (inventory.DiskHint{}) && h.ClaimID == "" && !h.IsArmed &&
		!h.InMaintenance && !h.IsProtected && !h.IsAdopted && !h.IsCordoned && !h.IsRetained
}

func isNamedByMAC(h *inventory.Host) bool {
	return slices.ContainsFunc(h.NICs, func(n inventory.NIC) bool { return h.Name == nameOf(n.MAC) })
}

func nameOf(m inventory.MAC) string { return "host-" + strings.ReplaceAll(string(m), ":", "") }

// forgetStrangers deletes hosts, each unless something has changed since it was read.
func (e *Engine) forgetStrangers(ctx context.Context, all []inventory.Host, why string) (n int, err error) {
	for some := range slices.Chunk(all, ledger.ForgetAtOnce) {
		gone := 0
		err := e.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
			gone = 0
			for i := range some {
				h, err := tx.FindHost(some[i].ID)
				if err == nil {
					_, err = tx.FindBMC(h.ID)
					if inventory.IsKind(err, inventory.NotFound) && IsUntouchedStranger(&h) && h.LastSeenAt.Equal(some[i].LastSeenAt) {
						err = e.forgetStranger(tx, &h, why)
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
		if !ledger.IsAfter(ctx, ledger.ForgetOnAfter/10) {
			break
		}
	}
	return n, nil
}

func (e *Engine) forgetStranger(tx inventory.Tx, h *inventory.Host, why string) error {
	if err := tx.DeleteHost(h.ID); err != nil {
		return err
	}
	return tx.AddEvent(&inventory.Event{
		At: e.cfg.Now(), Kind: inventory.EventHostDeleted, HostID: h.ID, Subject: "host/" + h.Name, Detail: "host " + h.Name + " forgotten: " + why,
	})
}
