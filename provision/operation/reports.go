package operation

import (
	"fmt"
	"strings"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/provision/strangers"
)

// ReportsConfig is what Reports need besides their Operator.
type ReportsConfig struct {
	*ledger.Ledger // with the store, the time and the log
	Sessions       *session.Table
	Recorder       *recorder.Recorder
	Gate           *strangers.Gate
	// AddNIC adds a MAC that a machine reported to its host. CheckHints opens issues about other hosts that report the same.
	AddNIC     func(inventory.Tx, *inventory.Host, inventory.MAC) error
	CheckHints func(inventory.Tx, *inventory.Host) error
}

// Reports are what our agent says of its tasks.
type Reports struct {
	*Operator
	cfg ReportsConfig
}

// NewReports returns the Reports that move the operations of an Operator on.
func NewReports(o *Operator, cfg ReportsConfig) *Reports { return &Reports{o, cfg} }

// reportStep is an operation at a step that our agent reports on.
type reportStep struct {
	agentStep
	r *Reports
}

// noteAgent adds an event to the session of an agent, behind its request.
func (o *Reports) noteAgent(s inventory.BootSession, kind, detail string, data map[string]any) {
	if session.StepIndex(kind) > session.StepIndex(s.Step) {
		s.Step = kind
	}
	o.cfg.Sessions.Put(s)
	o.cfg.Recorder.Take(recorder.Note{Session: s, Event: inventory.Event{
		At: o.cfg.Now(), Kind: kind, HostID: s.HostID, SessionID: s.ID, MAC: s.MAC, Detail: inventory.Clean(detail, 500), Data: data,
	}})
}

// progress notes how far a task is, and moves its deadline on: what moves is not stuck.
func (j reportStep) progress(s inventory.BootSession, r wire.Report) error {
	now := j.o.cfg.Now()
	p := inventory.Progress{Detail: inventory.Clean(r.Detail, 200)}
	if r.Progress != nil {
		p.Bytes, p.Total, p.BytesPerSecond = max(r.Progress.Bytes, 0), max(r.Progress.Total, 0), r.Progress.BytesPerSecond
	}
	if isMoving := p.Bytes > j.op.Progress.Bytes || p.Detail != j.op.Progress.Detail; isMoving || j.op.DeadlineAt.IsZero() {
		late := now.Add(j.o.cfg.Limits.Of(j.op.Step).Within)
		if last := j.lastEnd(); late.After(last) {
			late = last
		}
		if late.After(j.op.DeadlineAt) {
			j.op.DeadlineAt, j.op.NextAt = late, late
		}
	}
	if j.isUntouched() && j.op.Reason == awaitsAgent(&j.Host) {
		j.op.Reason, j.op.Hint = "", ""
	}
	isNews := p.Detail != j.op.Progress.Detail || now.Sub(j.op.UpdatedAt) > progressEvery
	j.op.Progress = p
	if isNews {
		j.r.noteAgent(s, inventory.EventAgentReported, progressLine(p), map[string]any{"bytes": p.Bytes, "total": p.Total, "bytesPerSecond": p.BytesPerSecond, "operation": j.op.ID})
	}
	return j.Tx.UpdateOperation(&j.op, now)
}

const (
	// slowest is the slowest that a disk is written or read on the whole, with several passes over it.
	slowest = 16 << 20
	// AtMost is how long a task may take in addition to that, whatever its agent reports.
	AtMost = 6 * time.Hour
)

// lastEnd is when a task has to be done, however much its agent says that it goes on. The time depends on the disks that the
// host is known to have, and on no word of this report.
func (j agentStep) lastEnd() time.Time {
	end := j.op.StepAt.Add(max(AtMost, 2*j.o.cfg.Limits.Of(j.op.Step).Within) + time.Duration(j.P.BurnInFor))
	hw, err := j.knownHardware()
	if err != nil || hw == nil {
		return end
	}
	var largest int64
	for _, d := range hw.Disks { // they are worked on at the same time
		largest = max(largest, min(d.SizeBytes, maxDiskBytes))
	}
	return end.Add(time.Duration(largest/slowest) * time.Second)
}

// maxDiskBytes bounds what a machine says of a disk of its own: 64 TB.
const maxDiskBytes = 64 << 40

// progressEvery is how often unchanged words with more bytes are worth a line in the timeline.
const progressEvery = 10 * time.Second

func progressLine(p inventory.Progress) string {
	line := p.Detail
	if p.Total > 0 {
		line += fmt.Sprintf(" %d%%", p.Bytes*100/p.Total)
	}
	if p.BytesPerSecond > 0 {
		line += fmt.Sprintf(" at %.0f MB/s", p.BytesPerSecond/1e6)
	}
	return strings.TrimSpace(line)
}

// CleanLog bounds the text of a report; line ends stay.
func CleanLog(s string) string { return inventory.CleanLines(s, 64<<10) }
