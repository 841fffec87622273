package provision

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/fake"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/pxe"
)

// A walk is a random history of a small rack: people, machines, controllers and the server itself do whatever they like
// in any order, and what must always be true is looked at after every step (walkcheck_test.go). A failure prints its
// seed and its steps; -rapid.checks=1000 walks further.
func TestRandomHistoriesBreakNoPromise(t *testing.T) {
	isAsked := false
	flag.Visit(func(f *flag.Flag) { isAsked = isAsked || f.Name == "rapid.checks" })
	if !isAsked {
		checks := flag.Lookup("rapid.checks")
		usual := checks.Value.String()
		_ = checks.Value.Set("12")
		t.Cleanup(func() { _ = checks.Value.Set(usual) })
	}
	rapid.Check(t, func(rt *rapid.T) {
		w := newWalk(t, rt)
		defer w.close()
		rt.Repeat(w.steps())
		w.calm()
	})
}

// walk is a life whose machines and people are at random. Its steps must not end the test by themselves: rapid makes
// them fewer when one fails.
type walk struct {
	*life
	rt     *rapid.T
	bodies map[string]*body
	names  []string // of machines
	// asked is whose end or new beginning somebody asked for since it last ran; killed says that the store fails.
	asked    map[string]bool
	isKilled bool
	// meanwhile happens while a controller is being spoken to, once.
	meanwhile func()
	problem   string
	log       []string
}

// body is what a walk knows of one machine besides its server.
type body struct {
	*server
	isQuick  bool   // it has booted before its controller has confirmed
	isHung   bool   // it does nothing until it is restarted
	owner    string // uid of the machine whose system is on its disk
	twice    bool   // its next report is sent twice
	isSilent bool   // its next report is sent much later: late, after lateIn moves
	late     func()
	lateIn   int
	next     *wire.Report
}

func newWalk(t *testing.T, rt *rapid.T) *walk {
	w := &walk{rt: rt, bodies: map[string]*body{}, asked: map[string]bool{}, names: []string{"m1", "m2", "m3", "m4"}}
	w.life = &life{machines: map[string]*server{}}
	w.bank = fake.New(fake.Options{Changed: w.changed})
	w.rack = newRack(t)
	w.open = w.bank.Open
	w.agentImage()
	for i, name := range []string{"a", "b", "c", "d"} {
		w.bodies[name] = &body{server: w.add(name, i != 3)} // the last one has no controller
	}
	w.begin()
	return w
}

func (w *walk) close() {
	_ = w.bank.Close()
	_ = w.store.Close()
}

// begin makes the engine anew on the same store, as after a kill.
func (w *walk) begin() {
	w.restart()
	w.engine.cfg.Log = slog.New(slog.DiscardHandler)
	w.engine.outfit()
	w.engine.recorder.Log = w.engine.cfg.Log
	w.engine.cfg.InstallsPerHour = 1000 // the loop breaker has its own test
	w.engine.outfit()
	w.isKilled = false
}

// mortal is a store that fails from a moment on: what a server that is killed there leaves behind.
type mortal struct {
	inventory.Store
	left int
}

var errKilled = errors.New("the server was killed")

func (m *mortal) Write(ctx context.Context, fn func(inventory.Tx) error) error {
	if m.left--; m.left < 0 {
		return errKilled
	}
	return m.Store.Write(ctx, fn)
}

func (w *walk) note(format string, args ...any) {
	w.log = append(w.log, w.clock.Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

// broken notes the first promise that was broken.
func (w *walk) broken(format string, args ...any) {
	if w.problem == "" {
		w.problem = fmt.Sprintf(format, args...)
	}
}

// verify fails the walk if a promise was broken, with all that happened.
func (w *walk) verify() {
	if w.problem == "" {
		w.promises()
	}
	if w.problem != "" {
		w.rt.Fatalf("%s\n%s\n%s", w.problem, strings.Join(w.log, "\n"), w.state())
	}
}

// told takes the answer to something that a person asked for: a refusal is fine, an internal error is not.
func (w *walk) told(what string, err error) {
	w.note("%s: %v", what, err)
	var e *inventory.Error
	if err != nil && !w.isKilled && (!errors.As(err, &e) || e.Kind == inventory.Internal) {
		w.broken("%s: %v is no error for people", what, err)
	}
}

// changed hears a controller.
func (w *walk) changed(system string, from, to inventory.PowerState, _ bmc.Boot) {
	b := w.bodies[system]
	w.note("%s: power %s → %s", system, from, to)
	if h, ok := w.hostOf(b); ok && from == inventory.PowerOn && b.runs == "disk" {
		if m, ok := w.machineNamed(h.Machine); ok && m.Phase == inventory.MachineRunning && !w.asked[m.UID] && !w.asked[b.name] {
			w.broken("%s was switched off or restarted while machine %s ran on it and nobody asked", system, m.Name)
		}
	}
	b.isOn, b.session, b.runs, b.isHung, b.next = to == inventory.PowerOn, "", "", false, nil
	if do := w.meanwhile; do != nil {
		w.meanwhile = nil
		do()
	}
	if b.isQuick && b.isOn {
		w.live(b)
		w.live(b)
	}
}

// drive does what is due, in order, so that a walk is the same each time.
func (w *walk) drive() {
	ctx, e := context.Background(), w.engine
	if err := e.Place(ctx); err != nil {
		w.told("place", err)
	}
	var due []inventory.Operation
	w.must(w.store.Read(ctx, func(tx inventory.Tx) (err error) {
		due, err = tx.ListDueOperations(w.clock, operation.DueAtOnce)
		return err
	}))
	for _, op := range due {
		e.Operator.Busy.Take(op.HostID)
		if err := e.Advance(ctx, op); err != nil {
			w.told(fmt.Sprintf("advance %s at %s", op.Kind, op.Step), err)
		}
		e.Operator.Busy.Leave(op.HostID)
	}
}

// pass lets some time pass: the engine does what is due, and each machine makes its next move.
func (w *walk) pass(d time.Duration) {
	w.clock = w.clock.Add(d)
	w.drive()
	for _, name := range w.order {
		w.live(w.bodies[name])
	}
	w.engine.recorder.Flush(context.Background())
	if err := sweep(w.engine); err != nil {
		w.told("sweep", err)
	}
}

// live is a machine's next move.
func (w *walk) live(b *body) {
	if b.late != nil {
		if b.lateIn--; b.lateIn <= 0 {
			late := b.late
			b.late = nil
			late()
		}
	}
	switch {
	case !b.isOn || b.isHung:
	case b.runs == "" || b.runs == "wait":
		w.boot(b)
	case b.runs == "agent":
		w.work(b)
	}
}

// boot plays a network boot up to what runs then.
func (w *walk) boot(b *body) {
	b.ask(pxe.StageFirmware)
	w.engine.Transferring(pxe.Transfer{Source: b.address(), Proto: "tftp", Name: "snponly.efi"})
	w.engine.Transferred(pxe.Transfer{Source: b.address(), Proto: "tftp", Name: "snponly.efi", Bytes: 5, Size: 5})
	reply := b.ask(pxe.StageIPXE)
	c := b.at(pxe.StageIPXE)
	c.Identity = &pxe.Identity{UUID: b.machine.uuid, Serial: fmt.Sprintf("SN%d", b.n), Manufacturer: "ACME", Product: "R640", MemoryMiB: 4096}
	id := sessionIn(reply.File)
	out, err := w.engine.Script(context.Background(), id, c, base)
	if err != nil {
		w.told(b.name+" asks for its script", err)
		return
	}
	switch script := string(out); {
	case strings.Contains(script, "slipway.session="):
		b.runs, b.session = "agent", id
		w.say(b, wire.Report{State: wire.Hello, Agent: &wire.AgentInfo{UUID: b.machine.uuid}})
	case strings.Contains(script, "kernel "):
		w.broken("%s was given an image, and there is none that boots from the network", b.name)
	case strings.Contains(script, "waits"), strings.Contains(script, "parked"):
		b.runs = "wait"
		return
	default:
		b.runs = "disk"
		if b.disk == "installed" && b.os != "" && !b.isMute {
			w.told(b.name+" reports up", w.engine.Report(context.Background(), b.os, b.address(), "", pxe.Report{Step: pxe.ReportUp}))
		}
	}
	w.note("%s boots: %s", b.name, b.runs)
}

// ask is machine.dhcp without an end of the test.
func (b *body) ask(s pxe.Stage) pxe.Reply {
	ctx, c := context.Background(), b.at(s)
	b.r.engine.Offer(ctx, c, base)
	b.r.engine.Note(ctx, c, inventory.EventDHCPDiscover, "")
	reply := b.r.engine.Offer(ctx, c, base)
	b.r.engine.Note(ctx, c, inventory.EventDHCPAck, "")
	b.r.engine.recorder.Flush(ctx)
	return reply
}

// say sends a report of the agent.
func (w *walk) say(b *body, r wire.Report) {
	r.Version = wire.Version
	if err := w.engine.AgentReport(context.Background(), b.session, b.address(), w.engine.AgentKey(b.session), r); err != nil {
		w.told(fmt.Sprintf("%s reports %s of %s", b.name, r.State, r.Task), err)
	}
}

// work is one round of the agent: it takes a task in one round, and has done it in the next.
func (w *walk) work(b *body) {
	if r := b.next; r != nil {
		b.next = nil
		w.note("%s reports %s of %s", b.name, r.State, r.Task)
		w.say(b, *r)
		if b.twice {
			b.twice = false
			w.say(b, *r)
		}
		return
	}
	t, err := w.engine.TaskNow(context.Background(), b.session, b.address(), w.engine.AgentKey(b.session), wire.Version, base)
	if err != nil {
		w.told(b.name+" asks for a task", err)
		b.runs, b.session = "", "" // as our agent does: it restarts
		return
	}
	r := wire.Report{Task: t.ID, State: wire.Done}
	switch t.Kind {
	case wire.Wait:
		return
	case wire.PowerOff:
		w.note("%s switches itself off", b.name)
		b.isOn, b.runs, b.session = false, "", ""
		return
	case wire.Reboot:
		w.say(b, r)
		w.note("%s restarts as it was told", b.name)
		b.runs, b.session = "", ""
		return
	case wire.Wipe, wire.Write:
		w.mayDestroy(b, t)
	}
	w.note("%s is told to %s as %s", b.name, t.Kind, t.ID)
	if len(b.faults) > 0 {
		r, b.faults = b.faults[0], b.faults[1:]
		r.Task = t.ID
	} else {
		w.finishTask(b, t, &r)
	}
	if b.isSilent { // the report of this task comes when the agent is long gone
		b.isSilent = false
		session := b.session
		b.lateIn, b.late = 4, func() {
			r.Version = wire.Version
			w.note("%s reports late %s of %s", b.name, r.State, r.Task)
			if err := w.engine.AgentReport(context.Background(), session, b.address(), w.engine.AgentKey(session), r); err != nil {
				w.told(b.name+" reports late", err)
			}
		}
		b.runs, b.session = "", ""
		return
	}
	b.next = &r
}

// finishTask does a task with success.
func (w *walk) finishTask(b *body, t wire.Task, r *wire.Report) {
	hw := b.hardware()
	switch t.Kind {
	case wire.Inspect:
		r.Hardware = &hw
	case wire.BurnIn:
		r.BurnIn = &inventory.BurnIn{}
	case wire.Wipe:
		b.wipes++
		b.disk, b.owner, b.os = "empty", "", ""
		r.Certificates = []inventory.WipeCertificate{{Disk: hw.Disks[0], Mode: t.Wipe.Mode, Method: "signatures"}}
	case wire.Write:
		b.writes++
		b.disk, b.os = "installed", b.session
		if h, ok := w.hostOf(b); ok {
			m, _ := w.machineNamed(h.Machine)
			b.owner = m.UID
		}
		r.Write = &wire.WriteResult{Disk: hw.Disks[0], Digest: t.Write.Image.Digest, IsWritten: true, IsSeeded: true}
	}
}

// pick draws one of the machines' names, bodies, or of anything.
func pick[T any](w *walk, what string, of []T) T { return rapid.SampledFrom(of).Draw(w.rt, what) }

func (w *walk) anyBody() *body { return w.bodies[pick(w, "host", w.order)] }

func (w *walk) anyName() string { return pick(w, "machine", w.names) }

// either does something now, or while the next controller is being spoken to.
func (w *walk) either(do func()) {
	if pick(w, "when", []string{"now", "now", "meanwhile"}) == "now" {
		do()
		return
	}
	w.meanwhile = do
}

// steps are all things that can happen.
func (w *walk) steps() map[string]func(*rapid.T) {
	all := map[string]func(){}
	maps.Copy(all, w.peopleSteps())
	maps.Copy(all, w.faultSteps())
	for _, name := range []string{"time", "time again", "time once more", "time and again"} {
		all[name] = func() {
			step := pick(w, "by", []time.Duration{time.Second, 5 * time.Second, 5 * time.Second, 20 * time.Second, 20 * time.Minute})
			for range pick(w, "rounds", []int{1, 5, 15}) {
				w.pass(step)
			}
		}
	}
	steps := map[string]func(*rapid.T){"": func(*rapid.T) { w.verify() }}
	for name, do := range all {
		steps[name] = func(rt *rapid.T) { w.rt = rt; do() }
	}
	return steps
}

// faultSteps are what goes wrong.
func (w *walk) faultSteps() map[string]func() {
	bad := wire.Report{State: wire.Failed, Error: "write to vda: input/output error"}
	return map[string]func(){
		"controller fails": func() {
			b, f := w.anyBody(), pick(w, "fault", []fake.Fault{fake.Fine, fake.Unreachable, fake.Ignored, fake.Lies, fake.Unauthorized, fake.HalfApplied, fake.Busy})
			w.note("controller of %s: %q from now on", b.name, f)
			w.bank.Break(b.name, f)
		},
		"controller stumbles": func() {
			b, f := w.anyBody(), pick(w, "fault", []fake.Fault{fake.Unreachable, fake.Ignored, fake.Lies, fake.HalfApplied, fake.Busy})
			w.note("controller of %s: %q once", b.name, f)
			w.bank.Script(b.name, f)
		},
		"agent fails": func() {
			b, r := w.anyBody(), bad
			r.IsLasting, r.Blame = rapid.Bool().Draw(w.rt, "lasting"), pick(w, "blame", []string{"", "", wire.BlameImage})
			b.faults = append(b.faults, r)
		},
		"agent is odd": func() {
			b := w.anyBody()
			switch pick(w, "how", []string{"twice", "late", "hangs", "restarts", "quick", "mute"}) {
			case "twice":
				b.twice = true
			case "late":
				b.isSilent = true
			case "hangs":
				w.note("%s hangs", b.name)
				b.isHung = true
			case "restarts":
				w.note("%s restarts by itself", b.name)
				b.runs, b.session, b.isHung, b.next = "", "", false, nil
			case "quick":
				b.isQuick = !b.isQuick
			case "mute":
				b.isMute = !b.isMute
			}
		},
		"server is killed": func() {
			w.note("the server is killed")
			w.begin()
		},
		"server is killed in the middle": func() {
			n := rapid.IntRange(0, 6).Draw(w.rt, "writes")
			w.note("the server is killed after %d writes", n)
			w.isKilled, w.engine.cfg.Store = true, &mortal{Store: w.store, left: n}
			w.engine.outfit()
			w.engine.recorder.Store = w.engine.cfg.Store
			w.pass(5 * time.Second)
			w.meanwhile = nil
			w.begin()
		},
	}
}

// ops lists the open operations.
func (w *walk) ops() (all []inventory.Operation) {
	w.must(w.store.Read(context.Background(), func(tx inventory.Tx) (err error) {
		all, err = tx.ListOperations(inventory.OperationFilter{IsOpen: true}, inventory.Page{})
		return err
	}))
	slices.SortFunc(all, func(a, b inventory.Operation) int { return strings.Compare(a.ID, b.ID) })
	return all
}
