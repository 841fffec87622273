package provision

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// sessions holds the running boot sessions by MAC, so that a packet finds its session without the store. What is
// decided in a session is in the store before the machine learns of it; what is only here is how far it came.
type sessions struct {
	now func() time.Time
	mu  sync.Mutex
	// byMAC is bounded: beyond maxSessions the longest silent one makes room.
	byMAC  map[inventory.MAC]*inventory.BootSession
	byAddr map[netip.Addr]inventory.MAC
	owners map[inventory.MAC]owner
	secure map[inventory.MAC]bool // whose iPXE speaks HTTPS, as its DHCP said
	steps  map[inventory.MAC]step
}

// step is when a boot came to its step, and the file that it fetches since.
type step struct {
	name     string
	session  inventory.SessionID
	stage    pxe.Stage // of whom asked for an address last: iPXE comes further than the firmware before it
	at       time.Time
	file     string // "" when none is being sent
	loadedAt time.Time
}

// owner is the host that a MAC belonged to when the store, or the discovery of it, said so.
type owner struct {
	host inventory.HostID
	at   time.Time
}

const (
	maxSessions = 50_000
	// silentFor is how long a session may be without any sign before it counts as abandoned: the slowest step, an
	// installer loading without a report, takes less.
	silentFor = 30 * time.Minute
	// retryWithin is how long firmware goes on asking in one attempt: EDK2 gives up 60 s after its first DISCOVER.
	retryWithin = 65 * time.Second
	// goneWithin is when a machine that got nothing of ours to run counts as gone to its own disk.
	goneWithin = 2 * time.Minute
	// discoveredWithin is how long a new host may take to its row; after that, one without a row was deleted.
	discoveredWithin = 5 * time.Second
)

func newSessions(now func() time.Time) *sessions {
	return &sessions{
		now: now, byMAC: map[inventory.MAC]*inventory.BootSession{}, byAddr: map[netip.Addr]inventory.MAC{},
		owners: map[inventory.MAC]owner{}, secure: map[inventory.MAC]bool{}, steps: map[inventory.MAC]step{},
	}
}

// stepIndex orders the steps of a boot; what is no step is -1.
func stepIndex(kind string) int { return slices.Index(inventory.Steps(), kind) }

// isNewBoot reports whether this sign of a machine begins another boot attempt than s.
func isNewBoot(s *inventory.BootSession, c pxe.Client, kind string, now time.Time) bool {
	if !s.EndedAt.IsZero() || now.Sub(s.LastAt) > silentFor {
		return true
	}
	if kind == inventory.EventScriptAsked { // without the session's URL: nobody goes on like that after its configuration
		return stepIndex(s.Step) >= stepIndex(inventory.EventConfigSent)
	}
	if kind != inventory.EventDHCPDiscover {
		return false
	}
	switch c.Stage {
	case pxe.StageFirmware:
		// Firmware that starts over after it was sent a loader, in another mode, or after it had given up.
		return stepIndex(s.Step) >= stepIndex(inventory.EventLoaderStarted) || s.Firmware != c.Firmware ||
			now.Sub(s.LastAt) > retryWithin
	case pxe.StageIPXE:
		// iPXE follows the firmware's loader in the same boot, but asks for an address only once.
		return stepIndex(s.Step) >= stepIndex(inventory.EventScriptAsked) || now.Sub(s.LastAt) > retryWithin
	}
	return false
}

// heard finds the session of a machine or begins one, and moves it to the step that kind names. It returns a copy,
// and the session that it replaced if a new one began while another was running.
func (t *sessions) heard(c pxe.Client, kind string) (s, replaced inventory.BootSession, isNew bool) {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	cur := t.byMAC[c.MAC]
	if cur == nil || isNewBoot(cur, c, kind, now) {
		if cur != nil && cur.EndedAt.IsZero() {
			replaced = *cur
		}
		t.makeRoom()
		cur = &inventory.BootSession{
			ID: newSessionID(now), MAC: c.MAC, HostID: t.owners[c.MAC].host, StartedAt: now,
			Step: inventory.EventSessionStarted,
		}
		t.byMAC[c.MAC] = cur
		isNew = true
	}
	cur.LastAt = now
	if c.Stage == pxe.StageIPXE && c.Identity == nil {
		t.secure[c.MAC] = c.IPXE.HasHTTPS
	}
	if stepIndex(kind) > stepIndex(cur.Step) {
		cur.Step = kind
	}
	t.learn(cur, c)
	t.came(cur, c.Stage)
	return *cur, replaced, isNew
}

// came takes note of when a session came to the step that it is at.
func (t *sessions) came(s *inventory.BootSession, stage pxe.Stage) {
	was := t.steps[s.MAC]
	if stage == "" && was.session == s.ID {
		stage = was.stage
	}
	if was.name != s.Step || was.session != s.ID || was.stage != stage {
		t.steps[s.MAC] = step{name: s.Step, session: s.ID, stage: stage, at: t.now()}
	}
}

// loadingFor bounds how long a file counts as being sent without a word of its end.
const loadingFor = 20 * time.Minute

// loading notes that a file is being sent in a session, and loaded that it is no more.
func (t *sessions) loading(s *inventory.BootSession, file string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if was, ok := t.steps[s.MAC]; ok && was.session == s.ID {
		was.file, was.loadedAt = file, t.now()
		t.steps[s.MAC] = was
	}
}

func (t *sessions) loaded(s *inventory.BootSession, file string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if was, ok := t.steps[s.MAC]; ok && was.file == file {
		was.file = ""
		t.steps[s.MAC] = was
	}
}

// isLoading reports whether a file is being sent.
func (x *step) isLoading(now time.Time) bool { return x.file != "" && now.Sub(x.loadedAt) < loadingFor }

// stepOf returns when a session came to its step; its zero value is for one that is not known here.
func (t *sessions) stepOf(s *inventory.BootSession) step {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.step(s)
}

func (t *sessions) step(s *inventory.BootSession) step {
	if x := t.steps[s.MAC]; x.session == s.ID && x.name == s.Step {
		return x
	}
	return step{}
}

// each calls fn for each session; fn must not keep what it is given, and must not call the sessions.
func (t *sessions) each(fn func(s *inventory.BootSession, at step)) {
	t.walk(func(_ inventory.MAC, s *inventory.BootSession) { fn(s, t.step(s)) })
}

// walkSteps is after how many sessions a walk lets others in: some 30 us.
const walkSteps = 64

// walk calls fn, which may drop the session, for each session. A machine that boots meanwhile waits for a few of them and
// not for all, so what fn sees is not of one moment.
func (t *sessions) walk(fn func(m inventory.MAC, s *inventory.BootSession)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for m, s := range t.byMAC {
		fn(m, s)
		if n++; n%walkSteps == 0 {
			t.mu.Unlock()
			runtime.Gosched()
			t.mu.Lock()
		}
	}
}

// learn takes over what the packet tells about the machine; iPXE does not take the firmware's place.
func (t *sessions) learn(s *inventory.BootSession, c pxe.Client) {
	if c.Arch != "" && (c.Stage == pxe.StageFirmware || s.Arch == "") {
		s.Arch = c.Arch
	}
	if c.Firmware != "" && (c.Stage == pxe.StageFirmware || s.Firmware == "") {
		s.Firmware = c.Firmware
	}
	if c.Subnet != "" {
		s.Subnet = c.Subnet
	}
	if c.Address.IsValid() && !c.Address.IsUnspecified() && s.Address != c.Address {
		delete(t.byAddr, s.Address)
		s.Address = c.Address
		t.byAddr[c.Address] = s.MAC
	}
}

// put replaces what is known of a session after a transaction has changed it.
func (t *sessions) put(s inventory.BootSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if cur := t.byMAC[s.MAC]; cur != nil && cur.ID != s.ID && cur.StartedAt.After(s.StartedAt) {
		return
	}
	t.makeRoom()
	t.byMAC[s.MAC] = &s
	t.came(&s, "")
	if s.HostID != "" {
		t.owners[s.MAC] = owner{s.HostID, t.now()}
	}
	if s.Address.IsValid() {
		t.byAddr[s.Address] = s.MAC
	}
}

// at returns the session of the machine that was given that address.
func (t *sessions) at(a netip.Addr) (inventory.BootSession, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.byMAC[t.byAddr[a]]; s != nil {
		return *s, true
	}
	return inventory.BootSession{}, false
}

// speaksTLS reports whether the machine's boot loader said so.
func (t *sessions) speaksTLS(m inventory.MAC) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.secure[m]
}

// of returns the running session of a MAC.
func (t *sessions) of(m inventory.MAC) (inventory.BootSession, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.byMAC[m]; s != nil {
		return *s, true
	}
	return inventory.BootSession{}, false
}

// hostOf returns the host that a MAC is known to belong to, "" if none.
func (t *sessions) hostOf(m inventory.MAC) inventory.HostID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.owners[m].host
}

// forgetOwner is called when the store knows no host with that MAC. A discovery still on its way to the store stays.
func (t *sessions) forgetOwner(m inventory.MAC) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o, ok := t.owners[m]; ok && t.now().Sub(o.at) > discoveredWithin {
		delete(t.owners, m)
	}
}

// setHost remembers whose MACs those are.
func (t *sessions) setHost(id inventory.HostID, macs ...inventory.MAC) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range macs {
		t.owners[m] = owner{id, t.now()}
		if s := t.byMAC[m]; s != nil {
			s.HostID = id
		}
	}
}

// silent removes and returns the sessions that have been without a sign for too long.
func (t *sessions) silent() (gone []inventory.BootSession) {
	now := t.now()
	t.walk(func(m inventory.MAC, s *inventory.BootSession) {
		patience := silentFor
		if s.Boot == string(pxe.BootDisk) || s.Boot == string(pxe.BootIgnore) {
			patience = goneWithin
		}
		if now.Sub(s.LastAt) > patience {
			if s.EndedAt.IsZero() {
				gone = append(gone, *s)
			}
			t.drop(m)
		}
	})
	return gone
}

// makeRoom drops the longest silent session when there are too many.
func (t *sessions) makeRoom() {
	if len(t.byMAC) < maxSessions {
		return
	}
	var oldest inventory.MAC
	for m, s := range t.byMAC {
		if oldest == "" || s.LastAt.Before(t.byMAC[oldest].LastAt) {
			oldest = m
		}
	}
	t.drop(oldest)
}

func (t *sessions) drop(m inventory.MAC) {
	if s := t.byMAC[m]; s != nil && t.byAddr[s.Address] == m {
		delete(t.byAddr, s.Address)
	}
	delete(t.byMAC, m)
	delete(t.owners, m)
	delete(t.secure, m)
	delete(t.steps, m)
}

// newSessionID returns 128 bits: the seconds of now, and 96 that nobody can guess. Boots of a time stand together in the
// store's indexes, so that a commit of many changes few pages.
func newSessionID(now time.Time) inventory.SessionID {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the program instead
	binary.BigEndian.PutUint32(b, uint32(now.Unix()))
	return inventory.SessionID(hex.EncodeToString(b))
}

func isKind(err error, k inventory.Kind) bool {
	var e *inventory.Error
	return errors.As(err, &e) && e.Kind == k
}
