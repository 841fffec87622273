package leader

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/cmd/slipway/serve/peer"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/trace"
)

// Config is everything a Remote needs.
type Config struct {
	Client *peer.Client
	// Leader returns the addresses of the instance that has the engine, each with the port of its link; none: nobody has it.
	Leader func() []string
	// Neighbour returns the MAC that uses an address on a network of this instance.
	Neighbour func(netip.Addr) (inventory.MAC, bool)
	// Offer decides for DHCP while the leader does not answer. A machine that boots waits for some seconds only.
	Offer func(ctx context.Context, c pxe.Client, base string) pxe.Reply
	// Heard is called every few seconds with nil if the leader answers, and with the reason if it does not.
	Heard func(err error)
	Now   func() time.Time
	Log   *slog.Logger
}

// Remote is the engine of another instance. Many goroutines may use it. Serve must run for its notes to get there.
type Remote struct {
	cfg   Config
	queue chan note
	lost  atomic.Int64 // notes since the last that got there
	// silentUntil is when Offer asks again, in nanoseconds since 1970. Without it each packet of a rack would wait for a leader that is gone.
	silentUntil atomic.Int64
	answered    atomic.Pointer[string] // the address of the leader that has answered last
}

const (
	// offerFor is how long DHCP waits for the leader. Firmware repeats a DISCOVER after 1 to 4 seconds.
	offerFor = 500 * time.Millisecond
	// silentFor is how long DHCP decides by itself after the leader did not answer.
	silentFor = time.Second
	// greetEvery is how often the leader is asked for nothing, and greetFor is how long an answer may take.
	greetEvery = 2 * time.Second
	greetFor   = 4 * time.Second
)

// New returns a Remote.
func New(cfg Config) *Remote { return &Remote{cfg: cfg, queue: make(chan note, notesWaiting)} }

// Offer implements Engine.
func (r *Remote) Offer(ctx context.Context, c pxe.Client, base string) pxe.Reply {
	now := r.cfg.Now().UnixNano()
	if now >= r.silentUntil.Load() {
		asking, cancel := context.WithTimeout(ctx, offerFor)
		defer cancel()
		reply, err := ask[pxe.Reply](asking, r, askOffer, clientQuestion{machine{Base: base}, c})
		if err == nil {
			return reply
		}
		r.silentUntil.Store(now + int64(silentFor))
		r.cfg.Log.Warn("the instance with the engine does not answer: boots are decided without it", "mac", c.MAC, "err", err)
	}
	return r.cfg.Offer(ctx, c, base)
}

// Ask implements Engine.
func (r *Remote) Ask(ctx context.Context, s inventory.SessionID, source netip.Addr, base string) ([]byte, error) {
	return ask[[]byte](ctx, r, askAsk, r.machine(s, source, "", base))
}

// Script implements Engine.
func (r *Remote) Script(ctx context.Context, s inventory.SessionID, c pxe.Client, base string) ([]byte, error) {
	return ask[[]byte](ctx, r, askScript, clientQuestion{r.machine(s, c.Address, "", base), c})
}

// Report implements Engine.
func (r *Remote) Report(ctx context.Context, s inventory.SessionID, source netip.Addr, key string, report pxe.Report) error {
	_, err := ask[nothing](ctx, r, askReport, reportQuestion{r.machine(s, source, key, ""), report})
	return err
}

// Document implements Engine.
func (r *Remote) Document(ctx context.Context, q pxe.ConfigRequest) (pxe.ConfigDocument, error) {
	return ask[pxe.ConfigDocument](ctx, r, askDocument, documentQuestion{r.machine(q.Session, q.Source, "", ""), q})
}

// Artefact implements Engine.
func (r *Remote) Artefact(
	ctx context.Context, s inventory.SessionID, source netip.Addr, d inventory.Digest, name string,
) (inventory.Digest, error) {
	return ask[inventory.Digest](ctx, r, askArtefact, artefactQuestion{r.machine(s, source, "", ""), d, name})
}

// Initrds implements Engine.
func (r *Remote) Initrds(ctx context.Context, s inventory.SessionID, source netip.Addr) ([]inventory.ImageArtefact, bool, error) {
	i, err := ask[initrdsAnswer](ctx, r, askInitrds, r.machine(s, source, "", ""))
	return i.Files, i.HasConfig, err
}

// AgentTask implements Engine.
func (r *Remote) AgentTask(
	ctx context.Context, s inventory.SessionID, source netip.Addr, key string, version int, base string,
) (wire.Task, error) {
	return ask[wire.Task](ctx, r, askTask, taskQuestion{r.machine(s, source, key, base), version})
}

// AgentReport implements Engine.
func (r *Remote) AgentReport(ctx context.Context, s inventory.SessionID, source netip.Addr, key string, report wire.Report) error {
	_, err := ask[nothing](ctx, r, askAgent, agentQuestion{r.machine(s, source, key, ""), report})
	return err
}

func (r *Remote) machine(s inventory.SessionID, source netip.Addr, key, base string) machine {
	mac, _ := r.cfg.Neighbour(source)
	return machine{Session: s, Source: source, Neighbour: mac, Key: key, Base: base}
}

// Note implements Engine.
func (r *Remote) Note(_ context.Context, c pxe.Client, kind, detail string) {
	r.take(note{Event: &eventNote{c, kind, detail}})
}

// Conflict implements Engine.
func (r *Remote) Conflict(a netip.Addr, subnet string, who inventory.MAC, detail string) {
	r.take(note{Conflict: &conflictNote{a, subnet, detail, who}})
}

// Exhausted implements Engine.
func (r *Remote) Exhausted(subnet string) { r.take(note{Exhausted: subnet}) }

// Beside implements Engine.
func (r *Remote) Beside(c pxe.Client, isHeard bool) { r.take(note{Beside: &besideNote{c, isHeard}}) }

// Foreign implements Engine.
func (r *Remote) Foreign(f pxe.ForeignServer) { r.take(note{Foreign: &f}) }

// ForeignGone implements Engine.
func (r *Remote) ForeignGone(noticed []pxe.ForeignServer, subnets []string, listened time.Duration) {
	r.take(note{Gone: &goneNote{noticed, subnets, listened}})
}

// Unanswered implements Engine.
func (r *Remote) Unanswered(c pxe.Client, iface, reason string, isMeant bool) {
	r.take(note{Unanswered: &unansweredNote{c, iface, reason, isMeant}})
}

// Transferring implements Engine.
func (r *Remote) Transferring(t pxe.Transfer) { r.transfer(t, false) }

// Transferred implements Engine.
func (r *Remote) Transferred(t pxe.Transfer) { r.transfer(t, true) }

func (r *Remote) transfer(t pxe.Transfer, isOver bool) {
	n := transferNote{Transfer: t, IsOver: isOver}
	if t.Err != nil {
		n.Err, n.Transfer.Err = t.Err.Error(), nil
	}
	n.Neighbour, _ = r.cfg.Neighbour(t.Source)
	r.take(note{Transfer: &n})
}

// Add implements Record.
func (r *Remote) Add(f trace.Frame) {
	f.Bytes = slices.Clone(f.Bytes) // the buffer of the caller gets the next packet
	r.take(note{Frame: &f})
}

// Tell implements Record.
func (r *Remote) Tell(mac inventory.MAC, n trace.Note) {
	r.take(note{RecordNote: &n, RecordOfMAC: mac})
}

// take queues a note, or counts it as lost.
func (r *Remote) take(n note) {
	select {
	case r.queue <- n:
	default:
		r.lost.Add(1)
	}
}

// Link returns the link of the leader: the one that has answered last, or the first. ok is false if nobody has the engine.
func (r *Remote) Link() (link string, ok bool) {
	links := r.links()
	if len(links) == 0 {
		return "", false
	}
	return links[0], true
}

// links returns the links of the leader, that which has answered last before the others.
func (r *Remote) links() []string {
	links := slices.Clone(r.cfg.Leader())
	if last := r.answered.Load(); last != nil {
		slices.SortStableFunc(links, func(a, b string) int { return cmp.Compare(after(a, *last), after(b, *last)) })
	}
	return links
}

// Serve sends the notes until ctx is done. While no leader answers they wait. Notes that find the queue full are lost, and the
// leader logs how many.
func (r *Remote) Serve(ctx context.Context) error {
	var greeting sync.WaitGroup
	defer greeting.Wait()
	greeting.Go(func() { // also while notes wait for an answer
		for sleep.For(ctx, greetEvery) == nil {
			err := r.Greet(ctx)
			if ctx.Err() != nil {
				return
			}
			if r.cfg.Heard(err); err != nil {
				r.cfg.Log.Warn("the instance with the engine does not answer", "err", err)
			}
		}
	})
	for {
		select {
		case <-ctx.Done():
			return nil
		case first := <-r.queue:
			r.send(ctx, r.more(first))
		}
	}
}

// Greet finds a link of the leader that works. An instance may have addresses that others do not reach. The error names all that it has
// tried.
func (r *Remote) Greet(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, greetFor)
	defer cancel()
	links := r.links()
	if len(links) == 0 {
		return inventory.Errorf(inventory.Unavailable, "no instance has the engine at the moment")
	}
	type answer struct {
		link string
		err  error
	}
	answers := make(chan answer, len(links))
	for _, link := range links {
		go func() {
			_, err := peer.Call[nothing](asking, r.cfg.Client.HTTP, "https://"+link+root+tellNotes, notes{Now: r.cfg.Now()})
			answers <- answer{link, err}
		}()
	}
	var failed []string
	for range links {
		a := <-answers
		if a.err == nil {
			r.answered.Store(&a.link)
			return nil
		}
		failed = append(failed, a.link+" ("+peer.Reason(a.err)+")")
	}
	slices.Sort(failed)
	return inventory.Errorf(inventory.Unavailable, "no answer from %s", strings.Join(failed, ", "))
}

// more returns a note with those behind it.
func (r *Remote) more(first note) []note {
	all := []note{first}
	for len(all) < notesPerCall {
		select {
		case n := <-r.queue:
			all = append(all, n)
		default:
			return all
		}
	}
	return all
}

// send sends notes until a leader has them. If only its answer was lost, the leader gets them twice: an event twice is better than none.
func (r *Remote) send(ctx context.Context, all []note) {
	for ctx.Err() == nil {
		lost := r.lost.Load()
		asking, cancel := context.WithTimeout(ctx, answerOfNotes)
		_, err := ask[nothing](asking, r, tellNotes, notes{Now: r.cfg.Now(), LostN: int(lost), Notes: all})
		cancel()
		if err == nil {
			r.lost.Add(-lost)
			return
		}
		if !inventory.IsKind(err, inventory.Unavailable) { // a leader that cannot read them will never be able to
			r.cfg.Log.Error("notes not taken by the instance with the engine", "count", len(all), "err", err)
			r.lost.Add(int64(len(all)))
			return
		}
		_ = sleep.For(ctx, silentFor)
	}
}

// Call asks the leader at a path of its link for something that needs no question.
func (r *Remote) Call(ctx context.Context, path string, answer any) error {
	text, err := Ask[json.RawMessage](ctx, r, path, struct{}{})
	if err == nil {
		err = json.Unmarshal(text, answer)
	}
	return err
}

func ask[A any](ctx context.Context, r *Remote, path string, question any) (A, error) {
	return Ask[A](ctx, r, root+path, question)
}

// Ask asks the leader at a path of its link. It tries the address that answered last first. It goes on to the next one only if a connection
// could not be made: the engine must not act twice on one question.
func Ask[A any](ctx context.Context, r *Remote, path string, question any) (a A, err error) {
	links := r.links()
	if len(links) == 0 {
		return a, inventory.Errorf(inventory.Unavailable, "no instance has the engine at the moment").
			WithHint("another takes it within seconds; slipway instance list shows the instances")
	}
	for _, at := range links {
		if a, err = peer.Call[A](ctx, r.cfg.Client.HTTP, "https://"+at+path, question); !peer.IsNotConnected(err) {
			if !inventory.IsKind(err, inventory.Unavailable) {
				r.answered.Store(&at)
			}
			return a, err
		}
	}
	return a, err
}

// after orders the address that answered last before the others.
func after(at, last string) int {
	if at == last {
		return 0
	}
	return 1
}
