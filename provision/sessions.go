package provision

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/netip"
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
	// byMAC is bounded: beyond maxSessions one that has long been silent makes room.
	byMAC  map[inventory.MAC]*entry
	byAddr map[netip.Addr]inventory.MAC
	byHost map[inventory.HostID][]*entry
	owners map[inventory.MAC]owner
	agenda agenda
	// deadline is until when something more should be heard in a session, if anything has to be.
	deadline func(s *inventory.BootSession, at step) (by time.Time, waits bool)
}

// entry is what is known of the boots of a MAC.
type entry struct {
	inventory.BootSession
	at       step
	address  netip.Addr // that it is found by: of the boot before until this one has one
	isSecure bool       // its iPXE speaks HTTPS, as its DHCP said
	due      time.Time  // when it is to be looked at
	index    int        // in the agenda
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

func newSessions(now func() time.Time, deadline func(*inventory.BootSession, step) (time.Time, bool)) *sessions {
	return &sessions{
		now: now, deadline: deadline, byMAC: map[inventory.MAC]*entry{}, byAddr: map[netip.Addr]inventory.MAC{},
		byHost: map[inventory.HostID][]*entry{}, owners: map[inventory.MAC]owner{},
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
	if stepIndex(kind) > stepIndex(x.Step) {
		x.Step = kind
	}
	t.learn(x, c)
	x.came(c.Stage, now)
	t.plan(x)
	return x.BootSession, replaced, isNew
}

// set makes s the session of its MAC.
func (t *sessions) set(s inventory.BootSession) *entry {
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

// ofHost keeps the index after a session has got another host than it had, and atAddress after it has got an address.
func (t *sessions) ofHost(x *entry, was inventory.HostID) {
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

func (t *sessions) atAddress(x *entry) {
	if !x.Address.IsValid() {
		return
	}
	if x.address != x.Address && t.byAddr[x.address] == x.MAC {
		delete(t.byAddr, x.address)
	}
	x.address = x.Address
	t.byAddr[x.address] = x.MAC
}

// came takes note of when a session came to the step that it is at.
func (x *entry) came(stage pxe.Stage, now time.Time) {
	isSame := x.at.session == x.ID
	if stage == "" && isSame {
		stage = x.at.stage
	}
	if !isSame || x.at.name != x.Step || x.at.stage != stage {
		x.at = step{name: x.Step, session: x.ID, stage: stage, at: now}
	}
}

// loadingFor bounds how long a file counts as being sent without a word of its end.
const loadingFor = 20 * time.Minute

// loading notes that a file is being sent in a session, and loaded that it is no more.
func (t *sessions) loading(s *inventory.BootSession, file string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.byMAC[s.MAC]; x != nil && x.at.session == s.ID {
		x.at.file, x.at.loadedAt = file, t.now()
		t.plan(x)
	}
}

func (t *sessions) loaded(s *inventory.BootSession, file string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.byMAC[s.MAC]; x != nil && x.at.file == file {
		x.at.file = ""
		t.plan(x)
	}
}

// isLoading reports whether a file is being sent.
func (x *step) isLoading(now time.Time) bool { return x.file != "" && now.Sub(x.loadedAt) < loadingFor }

// stepOf returns when a session came to its step; its zero value is for one that is not known here.
func (t *sessions) stepOf(s *inventory.BootSession) step {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.byMAC[s.MAC]; x != nil && x.at.session == s.ID && x.at.name == s.Step {
		return x.at
	}
	return step{}
}

// learn takes over what the packet tells about the machine; iPXE does not take the firmware's place.
func (t *sessions) learn(x *entry, c pxe.Client) {
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

// put replaces what is known of a session after a transaction has changed it.
func (t *sessions) put(s inventory.BootSession) {
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

// at returns the session of the machine that was given that address.
func (t *sessions) at(a netip.Addr) (inventory.BootSession, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.byMAC[t.byAddr[a]]; x != nil {
		return x.BootSession, true
	}
	return inventory.BootSession{}, false
}

// speaksTLS reports whether the machine's boot loader said so.
func (t *sessions) speaksTLS(m inventory.MAC) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.byMAC[m]
	return x != nil && x.isSecure
}

// of returns the running session of a MAC.
func (t *sessions) of(m inventory.MAC) (inventory.BootSession, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.byMAC[m]; x != nil {
		return x.BootSession, true
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
		if x := t.byMAC[m]; x != nil {
			was := x.HostID
			x.HostID = id
			t.ofHost(x, was)
			t.plan(x)
		}
	}
}

// boots returns the sessions of a host's MACs.
func (t *sessions) boots(h inventory.HostID) (all []running) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range t.byHost[h] {
		all = append(all, running{x.BootSession, x.at.stage})
	}
	return all
}

// roomAmong is among how many sessions the longest silent one makes room: to look at all for each new one would let a flood
// stop everybody.
const roomAmong = 64

// makeRoom drops a session when there are too many.
func (t *sessions) makeRoom() {
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

func (t *sessions) drop(x *entry) {
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

func isKind(err error, k inventory.Kind) bool {
	var e *inventory.Error
	return errors.As(err, &e) && e.Kind == k
}
