package lab

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// step is one stage in the boot or the life of a machine; the table has a column for it.
type step int

// The steps in the order in which a machine usually passes them.
const (
	stepHeard    step = iota // its first packet was heard
	stepAccepted             // the lab has accepted the host
	stepAddress              // DHCP acknowledged an address
	stepLoader               // the boot loader was sent; none for an iPXE in the network card
	stepScript               // it asked what to boot
	stepFiles                // kernel and RAM disks were sent
	stepBooted               // the booted system reported

	// Those of an installed machine follow heard and accepted.
	stepInspected // our agent has reported the hardware
	stepClaimed   // the machine has its host
	stepAgent     // our agent runs on it
	stepWritten   // the operating system is on its disk
	stepRunning   // that has started from the disk and reported up
	stepFenced    // the machine goes: its system cannot run any more
	stepWiped     // our agent has wiped every disk
	stepFree      // the host is available again
	stepCount
)

// The steps of both kinds of machines, in order.
var (
	bootSteps = []step{stepHeard, stepAccepted, stepAddress, stepLoader, stepScript, stepFiles, stepBooted}
	lifeSteps = []step{stepHeard, stepAccepted, stepInspected, stepClaimed, stepAgent, stepWritten, stepRunning, stepFenced, stepWiped, stepFree}
)

func (s step) String() string {
	return [stepCount]string{
		"heard", "accepted", "address", "loader", "script", "files", "booted",
		"inspected", "claimed", "agent", "written", "running", "fenced", "wiped", "free",
	}[s]
}

// row is the state of one machine.
type row struct {
	Spec
	HostID  inventory.HostID
	Host    string // its name in the inventory
	State   inventory.State
	Profile string
	At      [stepCount]time.Duration // since it was switched on; 0 while not reached
	FilesN  int                      // artefacts sent in this boot
	Message string                   // the latest thing that happened, for people
	Problem string                   // why it will not arrive by itself; "" while it may
	session inventory.SessionID
	events  []inventory.Event

	// Of an installed machine.
	Op        inventory.Operation    // what is being done with its host, if anything
	Phase     inventory.MachinePhase // of the machine, "" while there is none
	IsLeaving bool                   // the lab ends it once it runs
	isWanted  bool                   // the lab has asked for it
	isEnded   bool                   // the lab has asked for its end
}

// goal returns the last step to which the lab brings the machine.
func (r row) goal() step {
	switch {
	case !r.IsInstalled:
		return stepBooted
	case r.IsLeaving:
		return stepFree
	}
	return stepRunning
}

// hasArrived reports whether the machine has reached its goal.
func (r row) hasArrived() bool { return r.At[r.goal()] > 0 }

// steps returns the steps that the machine passes.
func (r row) steps() []step {
	if r.IsInstalled {
		return lifeSteps
	}
	return bootSteps
}

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

// newBoot clears the steps of an earlier boot: firmware may boot again before its machine arrives.
func (r *row) newBoot(id inventory.SessionID) {
	if r.session != "" {
		for s := stepAddress; s <= stepBooted; s++ {
			r.At[s] = 0
		}
		r.FilesN = 0
	}
	r.session = id
}

func (r *row) stepOf(ev inventory.Event, filesN int) step {
	if r.IsInstalled {
		return r.lifeStep(ev)
	}
	switch ev.Kind {
	case inventory.EventHostDiscovered, inventory.EventSessionStarted, inventory.EventDHCPDiscover:
		return stepHeard
	case inventory.EventStateChanged:
		if strings.HasPrefix(ev.Detail, string(inventory.Discovered)) {
			return stepAccepted
		}
	case inventory.EventDHCPAck:
		return stepAddress
	case inventory.EventLoaderSent:
		return stepLoader
	case inventory.EventScriptAsked:
		return stepScript
	case inventory.EventArtefactSent:
		if r.FilesN++; r.FilesN >= filesN {
			return stepFiles
		}
	case inventory.EventReported:
		if strings.HasPrefix(ev.Detail, "up:") {
			return stepBooted
		}
	}
	return -1
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

// column is one column of the table.
type column struct {
	head    string
	cell    func(row) string
	isRight bool // numbers stand on the right
	spare   int  // in a narrow terminal, columns are left out in this order; 0 never
}

func columns(steps []step) []column {
	cs := []column{
		{head: "MACHINE", cell: func(r row) string { return r.Name }},
		{head: "MAC", cell: func(r row) string { return string(r.MAC) }, spare: 3},
		{head: "FIRMWARE", cell: func(r row) string { return string(r.Firmware) }, spare: 1},
		{head: "STATE", cell: func(r row) string { return cmp.Or(string(r.State), "-") }},
		{head: "PROFILE", cell: func(r row) string { return cmp.Or(r.Profile, "-") }, spare: 2},
	}
	for _, s := range steps {
		c := column{head: strings.ToUpper(s.String()), cell: func(r row) string { return seconds(r.At[s]) }, isRight: true}
		if s == stepClaimed || s == stepAgent {
			c.spare = 4
		}
		cs = append(cs, c)
	}
	return cs
}

// table draws the rows as text, with two lines for each row, none longer than width columns (0: no limit). The first
// line has the times of the steps, in seconds since power-on; the second has the latest event. Installed machines
// come first, with their own steps.
func table(rows []row, width int) string {
	isLive := func(r row) bool { return !r.IsInstalled }
	live, installed := slices.Clone(rows), slices.DeleteFunc(slices.Clone(rows), isLive)
	live = slices.DeleteFunc(live, func(r row) bool { return r.IsInstalled })
	switch {
	case len(installed) == 0:
		return part(live, bootSteps, width)
	case len(live) == 0:
		return part(installed, lifeSteps[1:], width)
	}
	return part(installed, lifeSteps[1:], width) + "\n" + part(live, bootSteps, width)
}

// part draws the rows of one kind.
func part(rows []row, steps []step, width int) string {
	var lines []string
	cs := columns(steps)
	for out := 0; ; out++ {
		cs = slices.DeleteFunc(cs, func(c column) bool { return c.spare > 0 && c.spare == out })
		lines = align(cs, rows)
		if out == 4 || width <= 0 || len(lines[0]) <= width {
			break
		}
	}
	var b strings.Builder
	for i, line := range lines {
		b.WriteString(cut(line, width) + "\n")
		if i > 0 {
			b.WriteString(cut("  "+lastWord(rows[i-1]), width) + "\n")
		}
	}
	return b.String()
}

// align sets the head and the rows in columns.
func align(cs []column, rows []row) []string {
	lines := make([]string, len(rows)+1)
	for i, c := range cs {
		cells := []string{c.head}
		for _, r := range rows {
			cells = append(cells, c.cell(r))
		}
		widest := 0
		for _, text := range cells {
			widest = max(widest, len(text))
		}
		for n, text := range cells {
			gap := strings.Repeat(" ", widest-len(text))
			if c.isRight {
				text = gap + text
			} else {
				text += gap
			}
			if i > 0 {
				text = "  " + text
			}
			lines[n] += text
		}
	}
	return lines
}

func lastWord(r row) string {
	switch {
	case r.IsInstalled:
		return lifeWord(r)
	case r.Problem != "":
		return "stopped: " + r.Problem
	case r.hasArrived():
		return "booted: " + strings.TrimPrefix(reportLine(r), "up: ")
	case r.Message != "":
		return r.Message
	}
	return "switched on, nothing heard yet"
}

// reportLine is what the booted system said when it arrived.
func reportLine(r row) string {
	for _, ev := range r.events {
		if ev.Kind == inventory.EventReported && strings.HasPrefix(ev.Detail, "up:") {
			return ev.Detail
		}
	}
	return ""
}

func seconds(d time.Duration) string {
	if d <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", d.Seconds())
}

// cut shortens a line to width columns; 0 means no limit.
func cut(line string, width int) string {
	r := []rune(line)
	if width <= 0 || len(r) <= width {
		return line
	}
	return string(r[:max(width-1, 0)]) + "…"
}
