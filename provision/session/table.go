// Package session owns the running boot sessions. It knows which boot a machine's signs belong to, how far it has come,
// where the machine is, and when its next check is due. It never reads or writes the store, and never says what a machine
// boots.
//
// Start reading at Table.Heard. agenda.go has what is kept of each boot, in the order of the next check.
package session

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"slices"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// Table holds the running boot sessions by MAC, so that a packet finds its session without the store. Decisions of a
// session are in the store before the machine learns of them. Only the progress is here alone.
type Table struct {
	now func() time.Time
	mu  sync.Mutex
	// byMAC is bounded: beyond maxSessions one that has long been silent makes room.
	byMAC  map[inventory.MAC]*entry
	byAddr map[netip.Addr]inventory.MAC
	byHost map[inventory.HostID][]*entry
	owners map[inventory.MAC]owner
	agenda agenda
	// deadline is when the next sign of a session is late, if one has to come.
	deadline func(s *inventory.BootSession, at Step) (by time.Time, waits bool)
}

// owner is the host that a MAC belonged to when the store, or the discovery of it, said so.
type owner struct {
	host inventory.HostID
	at   time.Time
}

const (
	maxSessions = 50_000
	// retryWithin is how long firmware goes on asking in one attempt: EDK2 gives up 60 s after its first DISCOVER.
	retryWithin = 65 * time.Second
	// discoveredWithin is how long a new host may take to its row; after that, one without a row was deleted.
	discoveredWithin = 5 * time.Second
)

// New returns a Table without boots. deadline returns when the next step of a boot is late; false: it waits for none.
func New(now func() time.Time, deadline func(*inventory.BootSession, Step) (time.Time, bool)) *Table {
	return &Table{
		now: now, deadline: deadline, byMAC: map[inventory.MAC]*entry{}, byAddr: map[netip.Addr]inventory.MAC{},
		byHost: map[inventory.HostID][]*entry{}, owners: map[inventory.MAC]owner{},
	}
}

// StepIndex orders the steps of a boot; it returns -1 for any other kind.
func StepIndex(kind string) int { return slices.Index(inventory.Steps(), kind) }

// isNewBoot reports whether this sign of a machine begins another boot attempt than s.
func isNewBoot(s *inventory.BootSession, c pxe.Client, kind string, now time.Time) bool {
	if !s.EndedAt.IsZero() || now.Sub(s.LastAt) > SilentFor {
		return true
	}
	if kind == inventory.EventScriptAsked { // without the session's URL: nobody goes on like that after its configuration
		return StepIndex(s.Step) >= StepIndex(inventory.EventConfigSent)
	}
	if kind != inventory.EventDHCPDiscover {
		return false
	}
	switch c.Stage {
	case pxe.StageFirmware:
		// Firmware that starts over after it was sent a loader, in another mode, or after it had given up.
		return StepIndex(s.Step) >= StepIndex(inventory.EventLoaderStarted) || s.Firmware != c.Firmware ||
			now.Sub(s.LastAt) > retryWithin
	case pxe.StageIPXE:
		// iPXE follows the firmware's loader in the same boot, but asks for an address only once.
		return StepIndex(s.Step) >= StepIndex(inventory.EventScriptAsked) || now.Sub(s.LastAt) > retryWithin
	}
	return false
}

// Heard finds the session of a machine or begins one, and moves it to the step that kind names. It returns a copy,
// and the session that it replaced if a new one began while another was running.
func (t *Table) Heard(c pxe.Client, kind string) (s, replaced inventory.BootSession, isNew bool) {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.byMAC[c.MAC]
	if x == nil || isNewBoot(&x.BootSession, c, kind, now) {
		if x != nil && x.EndedAt.IsZero() {
			replaced = x.BootSession
		}
		x = t.set(inventory.BootSession{
			ID: newSessionID(now), MAC: c.MAC, HostID: t.owners[c.MAC].host, StartedAt: now, Step: inventory.EventSessionStarted,
		})
		isNew = true
	}
	x.LastAt = now
	if c.Stage == pxe.StageIPXE && c.Identity == nil {
		x.isSecure = c.IPXE.HasHTTPS
	}
	if StepIndex(kind) > StepIndex(x.Step) {
		x.Step = kind
	}
	t.learn(x, c)
	x.came(c.Stage, now)
	t.plan(x)
	return x.BootSession, replaced, isNew
}

// set makes s the session of its MAC.
func (t *Table) set(s inventory.BootSession) *entry {
	x := t.byMAC[s.MAC]
	if x == nil {
		t.makeRoom()
		x = &entry{index: -1}
		t.byMAC[s.MAC] = x
	}
	was := x.HostID
	x.BootSession = s
	t.ofHost(x, was)
	t.atAddress(x)
	return x
}

// dueAt is when the next check of a session is due: when it is past the time that it has.
func (t *Table) dueAt(x *entry) time.Time {
	due := silentAt(&x.BootSession)
	by, waits := t.deadline(&x.BootSession, x.at)
	if waits && x.at.IsLoading(t.now()) {
		by = x.at.LoadedAt.Add(LoadingFor) // and the deadline of its step then
	}
	if waits && by.Before(due) {
		due = by
	}
	return due.Add(1)
}

// plan is called after each change of a session. One that only has more time keeps its place until that check.
func (t *Table) plan(x *entry) {
	if due := t.dueAt(x); x.index < 0 || due.Before(x.due) {
		t.agenda.set(x, due)
	}
}

// ofHost keeps the index after a session has got another host than it had, and atAddress after it has got an address.
func (t *Table) ofHost(x *entry, was inventory.HostID) {
	if was == x.HostID {
		return
	}
	if rest := slices.DeleteFunc(t.byHost[was], func(o *entry) bool { return o == x }); len(rest) > 0 {
		t.byHost[was] = rest
	} else {
		delete(t.byHost, was)
	}
	if x.HostID != "" {
		t.byHost[x.HostID] = append(t.byHost[x.HostID], x)
	}
}

func (t *Table) atAddress(x *entry) {
	if !x.Address.IsValid() {
		return
	}
	if x.address != x.Address && t.byAddr[x.address] == x.MAC {
		delete(t.byAddr, x.address)
	}
	x.address = x.Address
	t.byAddr[x.address] = x.MAC
}

// Loading notes that a file is being sent in a session. The step is not late while it is sent; see LoadingFor.
func (t *Table) Loading(s *inventory.BootSession, file string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.byMAC[s.MAC]; x != nil && x.at.Session == s.ID {
		x.at.File, x.at.LoadedAt = file, t.now()
		t.plan(x)
	}
}

// Loaded notes that the file of Loading is sent, or that sending it has ended early.
func (t *Table) Loaded(s *inventory.BootSession, file string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.byMAC[s.MAC]; x != nil && x.at.File == file {
		x.at.File = ""
		t.plan(x)
	}
}

// StepOf returns when a session came to its step; its zero value is for one that is not known here.
func (t *Table) StepOf(s *inventory.BootSession) Step {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.byMAC[s.MAC]; x != nil && x.at.Session == s.ID && x.at.Name == s.Step {
		return x.at
	}
	return Step{}
}

// learn takes over what the packet tells about the machine; iPXE does not take the firmware's place.
func (t *Table) learn(x *entry, c pxe.Client) {
	if c.Arch != "" && (c.Stage == pxe.StageFirmware || x.Arch == "") {
		x.Arch = c.Arch
	}
	if c.Firmware != "" && (c.Stage == pxe.StageFirmware || x.Firmware == "") {
		x.Firmware = c.Firmware
	}
	if c.Subnet != "" {
		x.Subnet = c.Subnet
	}
	if c.Port != "" {
		x.Port = inventory.Clean(c.Port, 1024)
	}
	if c.Address.IsValid() && !c.Address.IsUnspecified() {
		x.Address = c.Address
		t.atAddress(x)
	}
}

// Put replaces what is known of a session after a transaction has changed it.
func (t *Table) Put(s inventory.BootSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.byMAC[s.MAC]; x != nil && x.ID != s.ID && x.StartedAt.After(s.StartedAt) {
		return
	}
	if x := t.byMAC[s.MAC]; x != nil && x.ID == s.ID && s.MachineUUID == "" { // s was read before the agent said it
		s.MachineUUID = x.MachineUUID
	}
	now := t.now()
	x := t.set(s)
	x.came("", now)
	t.plan(x)
	if s.HostID != "" {
		t.owners[s.MAC] = owner{s.HostID, now}
	}
}

// At returns the session of the machine that was given that address.
func (t *Table) At(a netip.Addr) (inventory.BootSession, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.byMAC[t.byAddr[a]]; x != nil {
		return x.BootSession, true
	}
	return inventory.BootSession{}, false
}

// SpeaksTLS reports whether the machine's boot loader announced HTTPS.
func (t *Table) SpeaksTLS(m inventory.MAC) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.byMAC[m]
	return x != nil && x.isSecure
}

// Of returns the running session of a MAC.
func (t *Table) Of(m inventory.MAC) (inventory.BootSession, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.byMAC[m]; x != nil {
		return x.BootSession, true
	}
	return inventory.BootSession{}, false
}

// HostOf returns the host that a MAC is known to belong to, "" if none.
func (t *Table) HostOf(m inventory.MAC) inventory.HostID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.owners[m].host
}

// ForgetOwner is called when the store knows no host with that MAC. A discovery still on its way to the store stays.
func (t *Table) ForgetOwner(m inventory.MAC) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o, ok := t.owners[m]; ok && t.now().Sub(o.at) > discoveredWithin {
		delete(t.owners, m)
	}
}

// SetHost remembers whose MACs those are.
func (t *Table) SetHost(id inventory.HostID, macs ...inventory.MAC) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range macs {
		t.owners[m] = owner{id, t.now()}
		if x := t.byMAC[m]; x != nil {
			was := x.HostID
			x.HostID = id
			t.ofHost(x, was)
			t.plan(x)
		}
	}
}

// Boots returns the sessions of a host's MACs.
func (t *Table) Boots(h inventory.HostID) (all []Running) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range t.byHost[h] {
		all = append(all, Running{x.BootSession, x.at.Stage})
	}
	return all
}

// roomAmong is among how many sessions the longest silent one makes room: to look at all for each new one would let a flood
// stop everybody.
const roomAmong = 64

// makeRoom drops a session when there are too many.
func (t *Table) makeRoom() {
	if len(t.byMAC) < maxSessions {
		return
	}
	var oldest *entry
	n := 0
	for _, x := range t.byMAC { // in an order that nobody outside can know
		if oldest == nil || x.LastAt.Before(oldest.LastAt) {
			oldest = x
		}
		if n++; n == roomAmong {
			break
		}
	}
	t.drop(oldest)
}

func (t *Table) drop(x *entry) {
	delete(t.byMAC, x.MAC)
	delete(t.owners, x.MAC)
	if t.byAddr[x.address] == x.MAC {
		delete(t.byAddr, x.address)
	}
	was := x.HostID
	x.HostID = ""
	t.ofHost(x, was)
	t.agenda.remove(x)
}

// newSessionID returns 128 bits: the seconds of now, and 96 that nobody can guess. Boots of a time stand together in the
// store's indexes, so that a commit of many changes few pages.
func newSessionID(now time.Time) inventory.SessionID {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the program instead
	binary.BigEndian.PutUint32(b, uint32(now.Unix()))
	return inventory.SessionID(hex.EncodeToString(b))
}

// Running is a boot with the stage that it is in.
type Running struct {
	inventory.BootSession
	Stage pxe.Stage
}

// BindTo gives a boot that still runs the address that its machine has by now.
func (t *Table) BindTo(m inventory.MAC, id inventory.SessionID, a netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.byMAC[m]; x != nil && x.ID == id && x.Address != a {
		x.Address = a
		t.atAddress(x)
	}
}

// vouchedFor is how long a boot keeps its address from a machine that only says that it was given it.
const vouchedFor = time.Minute

// Bind gives the running session of a MAC its address; isNew is false when nothing changed.
func (t *Table) Bind(m inventory.MAC, a netip.Addr, isSure bool) (s inventory.BootSession, isNew bool) {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	cur := t.byMAC[m]
	if cur == nil || !cur.EndedAt.IsZero() || !a.IsValid() || a.IsUnspecified() || cur.Address == a {
		return s, false
	}
	if other := t.byMAC[t.byAddr[a]]; other != nil && other.MAC != m && !isSure && other.EndedAt.IsZero() && now.Sub(other.LastAt) < vouchedFor {
		return s, false
	}
	cur.Address = a
	t.atAddress(cur)
	return cur.BootSession, true
}

// Close marks a boot as over for those who look at what runs.
func (t *Table) Close(m inventory.MAC, id inventory.SessionID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.byMAC[m]; x != nil && x.ID == id {
		x.EndedAt = t.now()
		t.plan(x)
	}
}

// Prove takes a person's word for a boot that goes on.
func (t *Table) Prove(m inventory.MAC, id inventory.SessionID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.byMAC[m]; x != nil && x.ID == id {
		x.Proof = inventory.ProofPerson
	}
}

// LookAgain makes the session of a MAC due at a time, if it is not due before.
func (t *Table) LookAgain(m inventory.MAC, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.byMAC[m]; x != nil && at.Before(x.due) {
		t.agenda.set(x, at)
	}
}

const (
	// TakeAtOnce is how many late and silent sessions one check takes. It takes one more for each second that it is behind,
	// up to takeAtMost, because boots wait while their events are written.
	TakeAtOnce = 4
	takeAtMost = 64
	// passAtOnce is how many sessions one look passes over, which only have more time by now.
	passAtOnce = 256
)

// Take looks at sessions that are due. It returns the sessions whose next sign is late, each once until it changes. It
// removes and returns those that were silent for too long. hasMore says that others are due as well.
func (t *Table) Take() (late []Running, silent []inventory.BootSession, hasMore bool) {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.agenda) == 0 {
		return nil, nil, false
	}
	limit := min(TakeAtOnce+max(0, int(now.Sub(t.agenda[0].due)/time.Second)), takeAtMost)
	for passed := 0; len(t.agenda) > 0 && !now.Before(t.agenda[0].due); {
		x := t.agenda[0]
		if len(late)+len(silent) == limit || passed == passAtOnce {
			return late, silent, true
		}
		by, waits := t.deadline(&x.BootSession, x.at)
		switch gone := silentAt(&x.BootSession); {
		case now.After(gone):
			if x.EndedAt.IsZero() {
				silent = append(silent, x.BootSession)
			}
			t.drop(x)
		case waits && now.After(by):
			late = append(late, Running{x.BootSession, x.at.Stage})
			t.agenda.set(x, gone.Add(1))
		default:
			t.agenda.set(x, t.dueAt(x))
			passed++
		}
	}
	return late, silent, false
}
