package invite

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/wire"
)

// Config is what a Book needs.
type Config struct {
	// Pack makes what a new machine gets. The error says why no machine can become an instance of this database, and what to do.
	Pack func() (HandOver, error)
	Pin  string // of the instances: peer.Identity.Pin
	// Links are the addresses with ports at which a new machine may ask; the leader's come first.
	Links func(ctx context.Context) ([]string, error)
	// MayBe refuses the name of an instance that runs, or may run.
	MayBe func(ctx context.Context, name string) error
	// Keep stores the text of all invitations, which Load reads after a takeover. With a note it stores an event in the same transaction.
	// Nothing is handed over without it.
	Keep func(ctx context.Context, text string, note *Note) error
	Now  func() time.Time
	Log  *slog.Logger
}

// Note is an event about an instance.
type Note struct{ Instance, Detail string }

// Book has the invitations of the leader. It keeps the hashes of their secrets only, here and in the database. Many goroutines may use it.
type Book struct {
	cfg     Config
	keeping sync.Mutex // one at a time stores

	mu    sync.Mutex
	all   []*invitation // the oldest first
	tries tries
}

// NewBook returns a Book without invitations.
func NewBook(cfg Config) *Book { return &Book{cfg: cfg, tries: tries{}} }

// Load takes over the invitations of the leader before, as Config.Keep has stored them last.
func (b *Book) Load(text string) error {
	all, err := readAll(text)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = all
	return nil
}

// keep stores all invitations, with an event unless note is nil. The last one to write has what all before have changed.
func (b *Book) keep(ctx context.Context, note *Note) error {
	b.keeping.Lock()
	defer b.keeping.Unlock()
	b.mu.Lock()
	text, err := textOf(b.all)
	b.mu.Unlock()
	if err == nil {
		err = b.cfg.Keep(ctx, text, note)
	}
	if err != nil {
		return fmt.Errorf("store the invitations: %w", err)
	}
	return nil
}

// Invite makes an invitation. Name is what the new instance must be called, "" leaves that to the new machine. The code is good for life:
// 0 is 15 minutes.
func (b *Book) Invite(ctx context.Context, name, by string, life time.Duration) (out wire.NewInvitation, err error) {
	if life = cmp.Or(life, lives); life < livesLeast || life > livesMost {
		return out, inventory.Errorf(inventory.Invalid, "an invitation cannot be good for %s", inventory.Duration(life)).At("for").
			WithHint("choose between %s and %s", inventory.Duration(livesLeast), inventory.Duration(livesMost))
	}
	if _, err := b.cfg.Pack(); err != nil {
		return out, err
	}
	if name != "" {
		if err := b.mayBe(ctx, name); err != nil {
			return out, err
		}
	}
	links, err := b.cfg.Links(ctx)
	if err != nil {
		return out, err
	}
	code, err := newCode(b.cfg.Pin)
	if err != nil {
		return out, err
	}
	now := b.cfg.Now().UTC().Round(0)
	i := &invitation{id: code.ID(), hash: code.hash(), name: name, by: by, madeAt: now, expiresAt: now.Add(life)}
	if err := b.add(i, now); err != nil {
		return out, err
	}
	if err := b.keep(ctx, nil); err != nil {
		b.remove(i)
		return out, err
	}
	return wire.NewInvitation{
		Invitation: i.shown(now), Code: code.Text(), Addresses: links,
		Command: "sudo slipway instance join " + strings.Join(links, ","),
	}, nil
}

func (b *Book) add(i *invitation, now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.prune(now)
	openN := 0
	for _, i := range b.all {
		if i.state(now) == Open {
			openN++
		}
	}
	if openN >= mostOpen {
		return inventory.Errorf(inventory.Conflict, "%d invitations are open", openN).
			WithHint("withdraw one, or wait until they expire: slipway instance invitations")
	}
	b.all = append(b.all, i)
	return nil
}

func (b *Book) remove(i *invitation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = slices.DeleteFunc(b.all, func(o *invitation) bool { return o == i })
}

func (b *Book) mayBe(ctx context.Context, name string) error {
	if err := inventory.CheckName("instance", name); err != nil {
		return err
	}
	return b.cfg.MayBe(ctx, name)
}

// prune forgets invitations that ended long ago. b.mu is locked.
func (b *Book) prune(now time.Time) {
	b.all = slices.DeleteFunc(b.all, func(i *invitation) bool { return !now.Before(i.expiresAt.Add(keepsFor)) })
	for n := 0; n < len(b.all) && len(b.all) >= mostKept; {
		if b.all[n].state(now) == Open || b.all[n].isBusy {
			n++
			continue
		}
		b.all = slices.Delete(b.all, n, n+1)
	}
}

// Invitations lists them, the newest first.
func (b *Book) Invitations() []wire.Invitation {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.cfg.Now()
	b.prune(now)
	all := make([]wire.Invitation, 0, len(b.all))
	for _, i := range slices.Backward(b.all) {
		all = append(all, i.shown(now))
	}
	return all
}

// Withdraw ends an invitation, also for the machine that has used it. After an error of the database it has ended until a takeover only.
func (b *Book) Withdraw(ctx context.Context, id string) (wire.Invitation, error) {
	out, err := b.withdraw(id)
	if err == nil {
		err = b.keep(ctx, nil)
	}
	return out, err
}

func (b *Book) withdraw(id string) (wire.Invitation, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.cfg.Now()
	i := b.find(id)
	if i == nil {
		return wire.Invitation{}, inventory.Errorf(inventory.NotFound, "there is no invitation %q", inventory.Clean(id, 20)).
			WithHint("slipway instance invitations lists them")
	}
	if state := i.state(now); state == Expired || state == Refused || !now.Before(i.expiresAt) {
		return i.shown(now), inventory.Errorf(inventory.Conflict, "invitation %s has ended: it is %s", i.id, state).
			WithHint("nobody can use it any more")
	}
	i.isWithdrawn = true
	return i.shown(now), nil
}

// find returns an invitation, nil if there is none. b.mu is locked.
func (b *Book) find(id string) *invitation {
	n := slices.IndexFunc(b.all, func(i *invitation) bool { return i.id == id })
	if n < 0 {
		return nil
	}
	return b.all[n]
}

// HandOver answers a machine at an address. It refuses a wrong code, and then everybody at that address who shows too many of them. A
// refusal for another reason, such as a name that is taken, does not use up the code.
func (b *Book) HandOver(ctx context.Context, source netip.Addr, r Request) (out HandOver, err error) {
	i, hasEnded, err := b.take(source, r)
	if hasEnded { // for a new leader, too
		if err := b.keep(ctx, nil); err != nil {
			b.cfg.Log.Warn("a new leader will not know that an invitation has ended", "err", err)
		}
	}
	if err != nil {
		return HandOver{}, err
	}
	defer func() {
		b.put(i)
		if err != nil {
			b.cfg.Log.Warn("a machine with a right code was refused", "from", source, "invitation", i.id, "err", err)
		}
	}()
	if i.name != "" && r.Name != "" && r.Name != i.name {
		return HandOver{}, inventory.Errorf(inventory.Conflict, "the invitation is for an instance with the name %s", i.name).
			WithHint("leave --name out, or make another invitation: slipway instance invite --name NAME")
	}
	r.Name = cmp.Or(r.Name, i.name, r.Host)
	if err := b.mayBe(ctx, r.Name); err != nil {
		return HandOver{}, err
	}
	if out, err = b.cfg.Pack(); err != nil {
		return HandOver{}, err
	}
	out.Name = r.Name
	// The event comes first, and that the code is used up: nothing leaves this machine without a trace, and no new leader hands it over again.
	undo := b.bind(i, source, &r)
	err = b.keep(ctx, &Note{r.Name, fmt.Sprintf("the machine at %s was handed secret.key and the password of the database, to become "+
		"instance %s, by invitation %s of %s", source, r.Name, i.id, i.by)})
	if err != nil {
		undo()
		return HandOver{}, err
	}
	b.cfg.Log.Info("a machine was handed secret.key, to become an instance", "instance", r.Name, "from", source, "invitation", i.id, "of",
		i.by,
		"version", inventory.Clean(r.Version, 40))
	return out, nil
}

// take returns the invitation of a request, which nobody else gets until put. hasEnded says that
// this was one wrong code too many.
func (b *Book) take(source netip.Addr, r Request) (is *invitation, hasEnded bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.cfg.Now()
	if wait := b.tries.wait(source, now); wait > 0 {
		return nil, false, inventory.Errorf(inventory.Forbidden, "too many wrong codes came from %s", source).
			WithHint("wait %s", max(wait.Round(time.Second), time.Second))
	}
	i, hash := b.find(r.ID), sha256.Sum256(r.Secret)
	if i == nil || subtle.ConstantTimeCompare(hash[:], i.hash[:]) != 1 {
		b.tries.wrong(source, now)
		known := "none"
		if i != nil {
			i.wrongN++
			known = i.id
		}
		b.cfg.Log.Warn("a machine has shown a wrong code to become an instance", "from", source, "invitation", known)
		return nil, i != nil && i.wrongN == mostWrong, inventory.Errorf(inventory.Forbidden, "no invitation has this code").
			WithHint("it is too old, or is that of another site: slipway instance invite makes another")
	}
	if len(r.Proof) != proofBytes {
		return nil, false, inventory.Errorf(inventory.Invalid, "the proof of the new machine is not %d bytes", proofBytes).
			WithHint("install the version of this instance there")
	}
	if i.isBusy { // whether it is used will be known soon
		return nil, false, inventory.Errorf(inventory.Unavailable, "the code is being used at this moment").WithHint("try again in some seconds")
	}
	if err := i.over(sha256.Sum256(r.Proof), now); err != nil {
		b.cfg.Log.Warn("a machine has shown a code that is good no more", "from", source, "invitation", i.id, "state", i.state(now))
		return nil, false, err
	}
	i.isBusy = true
	return i, false, nil
}

// put ends what take began.
func (b *Book) put(i *invitation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i.isBusy = false
}

// bind notes that an invitation is used by a machine. If that cannot be stored, undo takes it back.
func (b *Book) bind(i *invitation, source netip.Addr, r *Request) (undo func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := i.use
	if !i.isUsed() {
		i.proof, i.usedAt, i.usedFrom = sha256.Sum256(r.Proof), b.cfg.Now().UTC().Round(0), source
	}
	i.usedAs = r.Name
	i.givenN++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		i.use = was
	}
}

func (i *invitation) shown(now time.Time) wire.Invitation {
	return wire.Invitation{
		ID: i.id, Name: i.name, By: i.by, MadeAt: i.madeAt, ExpiresAt: i.expiresAt, State: string(i.state(now)),
		UsedAt: i.usedAt, UsedFrom: i.usedFrom, UsedAs: i.usedAs,
	}
}
