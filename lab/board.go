package lab

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// board turns events and hosts of the server into rows. It makes no requests and reads no clock. One goroutine uses
// it.
type board struct {
	startedAt time.Time
	filesN    int // artefacts that a boot takes
	rows      []*row
}

func newBoard(specs []Spec, filesN int, startedAt time.Time) *board {
	b := &board{startedAt: startedAt, filesN: filesN}
	for _, s := range specs {
		b.rows = append(b.rows, &row{Spec: s})
	}
	return b
}

// takeHosts takes over the hosts of the inventory. It returns the hosts of the lab that wait to be accepted.
func (b *board) takeHosts(hosts []inventory.Host) (toAccept []waiting) {
	for _, h := range hosts {
		r := b.byMAC(h.MACs()...)
		if r == nil {
			continue
		}
		r.HostID, r.Host, r.State = h.ID, h.Name, h.State
		if h.State == inventory.Failed {
			r.Problem = "quarantined: " + h.StateReason
		}
		if h.State == inventory.Discovered {
			toAccept = append(toAccept, waiting{h, r})
		}
	}
	return toAccept
}

// waiting is a host that waits to be accepted, with its row.
type waiting struct {
	host inventory.Host
	row  *row
}

func (b *board) byMAC(macs ...inventory.MAC) *row {
	for _, r := range b.rows {
		for _, m := range macs {
			if r.MAC == m {
				return r
			}
		}
	}
	return nil
}

func (b *board) find(ev inventory.Event) *row {
	if ev.MAC != "" {
		return b.byMAC(ev.MAC)
	}
	for _, r := range b.rows {
		if ev.HostID != "" && r.HostID == ev.HostID {
			return r
		}
	}
	return nil
}

// event takes over one event. It returns its row, or nil for another host, and the step that the event completes, or
// -1.
func (b *board) event(ev inventory.Event) (*row, step) {
	r := b.find(ev)
	if r == nil {
		return nil, -1
	}
	r.events = append(r.events, ev)
	r.HostID = cmp.Or(r.HostID, ev.HostID)
	if ev.SessionID != "" && ev.SessionID != r.session && !r.IsInstalled {
		r.newBoot(ev.SessionID)
	}
	r.Message = ev.Kind + ": " + ev.Detail
	s := r.stepOf(ev, b.filesN)
	if s < 0 || r.At[s] > 0 {
		return r, -1
	}
	r.At[s] = max(ev.At.Sub(b.startedAt), time.Millisecond)
	return r, s
}

// isDone reports whether every machine has arrived.
func (b *board) isDone() bool {
	return !slices.ContainsFunc(b.rows, func(r *row) bool { return !r.hasArrived() })
}

// problem returns the first machine that needs help to arrive, or nil.
func (b *board) problem() *row {
	for _, r := range b.rows {
		if r.Problem != "" {
			return r
		}
	}
	return nil
}

// takeLife takes over the machines and the operations on their hosts.
func (b *board) takeLife(machines []inventory.Machine, ops []inventory.Operation) {
	for _, r := range b.rows {
		r.Op, r.Phase = inventory.Operation{}, ""
		for _, o := range ops {
			if o.HostID == r.HostID {
				r.Op = o
			}
		}
		for _, m := range machines {
			if m.Name != r.MachineName() {
				continue
			}
			r.Phase = m.Phase
			if m.Phase == inventory.MachineFailed {
				r.Problem = strings.TrimSuffix("machine "+m.Name+" failed: "+m.Reason+"; "+m.Hint, "; ")
			}
		}
	}
}
