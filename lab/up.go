package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"slipway.dev/slipway/inventory"
)

// UpConfig describes a lab for a person, or a check.
type UpConfig struct {
	Config
	IsByHand bool          // machines are left to the person
	IsCheck  bool          // end when every machine has arrived, with a report
	Timeout  time.Duration // how long a check waits for them
}

// ErrNotArrived says that a machine did not arrive in a check. Up has printed the details before.
var ErrNotArrived = errors.New("not every machine arrived")

// Up opens a lab, switches the machines on, and shows their progress. It returns when ctx ends or, in a check, when
// all machines have arrived. It removes the lab before it returns. Ctrl-C is no error, except in a check.
func Up(ctx context.Context, cfg UpConfig) (err error) {
	defer func() {
		if !cfg.IsCheck && errors.Is(err, context.Canceled) {
			err = nil // Ctrl-C is how a lab ends
		}
	}()
	l, err := Open(ctx, cfg.Config)
	if err != nil {
		return err
	}
	defer func() {
		say(cfg.Out, "\nCleaning up ...")
		if closeErr := l.Close(); closeErr != nil {
			err = closeErr
		}
	}()
	url, token := l.URL()
	say(cfg.Out, "\nAPI:       %s\nToken:     %s\nWithout:   export SLIPWAY_SERVER=%s\nConsoles:  %s/*.console\nLog:       %s\n",
		url, cmp.Or(token, "-"), l.Socket(), l.Rack.Dir(), strings.Join(l.logs(), " "))
	u := &upRun{cfg: cfg, lab: l, screen: newScreen(cfg.Out)}
	if len(l.all) > 1 {
		u.introduceServers()
		if cfg.IsCheck {
			u.outage = &outage{lab: l}
		}
	}
	if cfg.IsByHand {
		u.introduce()
	}
	return u.run(ctx)
}

// errServerEnded says that the server ended by itself, which ends the lab.
var errServerEnded = errors.New("the server has ended")

// upRun is one run of a lab, with its screen.
type upRun struct {
	cfg    UpConfig
	lab    *Lab
	board  *board
	screen *screen
	// unwritten are machines that report up though nothing is on their disk.
	unwritten []string
	// outage is what a check with several servers does to the one that leads; nil for none.
	outage *outage
}

func (u *upRun) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, s := range u.lab.all {
		go func() {
			select {
			case <-s.ended:
				cancel(errServerEnded)
			case <-ctx.Done():
			}
		}()
	}
	u.board = newBoard(u.lab.Rack.cfg.Specs, filesN, time.Now())
	for _, r := range u.board.rows {
		// For a person, the BIOS machines stay, and the UEFI ones show the way back.
		r.IsLeaving = r.IsInstalled && (u.cfg.IsCheck || r.Firmware == inventory.UEFI)
	}
	first := u.lab.Rack.Machines()
	if u.outage != nil {
		first = first[:1] // it is to boot while its server is killed, and the others when nobody leads
	}
	for _, m := range first {
		if err := m.Start(); err != nil {
			return err
		}
	}
	err := u.watch(ctx)
	if errors.Is(context.Cause(ctx), errServerEnded) {
		return inventory.Errorf(inventory.Unavailable, "%w; the end of its log:\n%s", errServerEnded, u.lab.Log(15))
	}
	return err
}

// introduce prints what a person needs to accept the machines by hand.
func (u *upRun) introduce() {
	say(u.cfg.Out, "Controllers of the machines, driver libvirt, address %s:", u.lab.Rack.Controller())
	for _, m := range u.lab.Rack.Machines() {
		say(u.cfg.Out, "  %-12s %s  system %s", m.Name, m.MAC, m.Domain())
	}
	say(u.cfg.Out, "The machines are yours: accept them. The lab stays until Ctrl-C.")
}

// introduceServers prints what a person needs to kill a server.
func (u *upRun) introduceServers() {
	for _, s := range u.lab.all {
		say(u.cfg.Out, "Server %-6s %s, process %d, socket %s", s.name+":", s.seat.address.Addr(), s.pid(), s.socket())
	}
	say(u.cfg.Out, "A server that ends is started again after %s. Kill one and look: slipway instance list\n", awayFor)
}

// heard kills the server that leads when a machine has its first file from it. Then it switches the other machines on.
func (u *upRun) heard(ctx context.Context, ev inventory.Event) {
	if u.outage == nil || u.outage.killed != nil || ev.Kind != inventory.EventArtefactSent {
		return
	}
	if err := u.outage.strike(ctx); err != nil {
		u.screen.line(fmt.Sprintf("the server that leads was not killed: %v", err))
		return // the next event is a new try
	}
	u.screen.below(fmt.Sprintf("%7.1f s  server %s, which leads, was killed after it had sent %q to a machine that boots",
		time.Since(u.board.startedAt).Seconds(), u.outage.killed.name, ev.Detail))
	for _, m := range u.lab.Rack.Machines()[1:] {
		if err := m.Start(); err != nil {
			u.screen.line(err.Error()) // it does not arrive, and the check says so
		}
	}
}

func (u *upRun) watch(ctx context.Context) error {
	if u.cfg.IsByHand {
		<-ctx.Done()
		return ctx.Err()
	}
	u.draw()
	f := &follower{api: remote{u.lab.API, u.lab.Rack.Controller()}, board: u.board, reached: u.reached, changed: u.draw, heard: u.heard}
	if u.cfg.IsCheck {
		return u.check(ctx, f)
	}
	announced := false
	return f.follow(ctx, func() bool {
		if u.board.isDone() && !announced {
			announced = true
			u.screen.below("Every machine has arrived. The lab stays until Ctrl-C; try: slipway machine list")
			u.draw()
		}
		return false
	})
}

// check waits until all machines have arrived; otherwise it prints why one has not.
func (u *upRun) check(ctx context.Context, f *follower) error {
	waiting, cancel := context.WithTimeout(ctx, u.cfg.Timeout)
	defer cancel()
	err := f.follow(waiting, func() bool { return u.board.isDone() || u.board.problem() != nil })
	if ctx.Err() != nil {
		return ctx.Err()
	}
	u.draw()
	say(u.cfg.Out, "\n%s", strings.TrimRight(report(u.board.copy()), "\n"))
	if u.board.isDone() {
		return cmp.Or(u.checkOutage(ctx), u.checkDisks(ctx))
	}
	if err != nil {
		say(u.cfg.Out, "\nGiven up after %s.", u.cfg.Timeout)
	}
	for i, r := range u.board.rows {
		if r.hasArrived() {
			continue
		}
		console, _ := u.lab.Rack.Machines()[i].Console()
		say(u.cfg.Out, "\n%s did not arrive: %s", r.Name, lastWord(*r))
		say(u.cfg.Out, "Its timeline:\n%s\nThe end of its console:\n%s", u.board.timeline(r), Readable(console, 25))
	}
	say(u.cfg.Out, "\nThe end of the server's log:\n%s", u.lab.Log(15))
	return ErrNotArrived
}

func (u *upRun) draw() {
	u.screen.draw(func(width int) string { return table(u.board.copy(), width) })
}

// checkOutage says who has taken over from the server that was killed.
func (u *upRun) checkOutage(ctx context.Context) error {
	if u.outage == nil {
		return nil
	}
	err := u.outage.check(ctx)
	if err != nil {
		say(u.cfg.Out, "the death of a server: %v", err)
		err = ErrNotArrived
	}
	say(u.cfg.Out, "%s", u.lab.list(ctx, u.lab.all[0].executable))
	return err
}

// checkDisks reads the disks of the installed machines back.
func (u *upRun) checkDisks(ctx context.Context) (err error) {
	for _, m := range u.lab.Rack.Machines() {
		if !m.IsInstalled {
			continue
		}
		word, why := u.lab.certify(ctx, m)
		if slices.Contains(u.unwritten, m.Name) {
			why = errors.New("it reported up, and nothing was on its disk")
		}
		if why != nil {
			word, err = why.Error(), ErrNotArrived
		}
		say(u.cfg.Out, "%s: %s", m.Name, word)
	}
	return err
}

func (u *upRun) reached(r *row, s step) {
	if s == stepRunning {
		i := slices.Index(u.board.rows, r)
		if is, err := isInstalled(u.lab.Rack.Machines()[i].DiskPath()); err != nil || !is {
			u.unwritten = append(u.unwritten, r.Name)
		}
	}
	u.screen.line(fmt.Sprintf("%7.1f s  %-12s %-9s %s", r.At[s].Seconds(), r.Name, s, r.Message))
}

// outage is the death of the server that leads, while a machine boots.
type outage struct {
	lab    *Lab
	killed *server // nil before
	at     time.Time
}

// strike kills the server that leads.
func (o *outage) strike(ctx context.Context) error {
	all, err := o.lab.instances(ctx)
	if err != nil {
		return fmt.Errorf("find the server that leads: %w", err)
	}
	leads := leader(all)
	if leads == nil {
		return errors.New("no server leads")
	}
	for _, s := range o.lab.servers.all {
		if s.name == leads.Name {
			o.killed, o.at = s, time.Now()
			return s.kill()
		}
	}
	return fmt.Errorf("the server that leads, %s, is none of the lab", leads.Name)
}

// check says whether another server has taken what the killed one did, and waits until that is back.
func (o *outage) check(ctx context.Context) error {
	if o.killed == nil {
		return errors.New("no machine booted while its server was killed")
	}
	n := len(o.lab.servers.all)
	all, err := o.lab.await(ctx, 2*awayFor, "the killed server is back", areAlive(n))
	if err != nil {
		return err
	}
	if leads := leader(all); leads.Name == o.killed.name {
		return fmt.Errorf("server %s was killed, and leads again: no other one has taken over", o.killed.name)
	}
	return nil
}

// copy returns the rows as they are now.
func (b *board) copy() []row {
	rows := make([]row, len(b.rows))
	for i, r := range b.rows {
		rows[i] = *r
	}
	return rows
}

// screen shows a table that is drawn over itself on a terminal, and lines everywhere else.
type screen struct {
	out    io.Writer
	fd     int // of the terminal, -1 when it is none
	height int // lines of the table on the screen
	last   string
	under  string
}

func newScreen(out io.Writer) *screen {
	s := &screen{out: out, fd: -1}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.fd = int(f.Fd())
	}
	return s
}

// draw puts the table in the place of the one before.
func (s *screen) draw(table func(width int) string) {
	if s.fd < 0 {
		return
	}
	width, _, err := term.GetSize(s.fd)
	if err != nil {
		width = 120
	}
	text := table(width)
	if s.under != "" {
		text += "\n" + cut(s.under, width) + "\n"
	}
	if text == s.last {
		return
	}
	if s.height > 0 {
		fmt.Fprintf(s.out, "\x1b[%dA\x1b[J", s.height) // up that many lines, and clear from there
	}
	fmt.Fprint(s.out, text)
	s.last, s.height = text, strings.Count(text, "\n")
}

// line writes a line where there is no table.
func (s *screen) line(text string) {
	if s.fd < 0 {
		say(s.out, "%s", text)
	}
}

// below sets the line under the table.
func (s *screen) below(text string) {
	s.under = text
	s.line(text)
}
