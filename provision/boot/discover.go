package boot

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/provision/strangers"
	"slipway.dev/slipway/pxe"
)

// Registry stores what machines say of themselves, and the switch ports that relays name: machines become hosts here.
type Registry struct {
	Frame
	newID    func() inventory.HostID
	vendor   func(m inventory.MAC) string
	operator *operation.Operator
}

// discover notes an unknown machine as a host in state discovered; it is a row as soon as the recorder commits, which
// takes milliseconds.
func (r *Registry) discover(c pxe.Client) {
	// The table of sessions has the owner at once. The next packet, some milliseconds later, then begins no second host.
	h := r.newHost(c, r.newID())
	r.Sessions.SetHost(h.ID, c.MAC)
	r.Recorder.Take(recorder.Note{Do: func(tx inventory.Tx) error {
		err := r.discoverHost(tx, &h, c)
		// Two packets of one machine may both have found no host. The second creation fails on the MAC, and takes over the first.
		if inventory.IsKind(err, inventory.Conflict) {
			return r.remember(tx, c.MAC) // somebody was faster
		}
		return err
	}})
}

// newHost is the host that one packet of an unknown machine tells about.
func (r *Registry) newHost(c pxe.Client, id inventory.HostID) inventory.Host {
	now := r.Now()
	return inventory.Host{
		ID: id, Name: strangers.NameOf(c.MAC), State: inventory.Discovered, StateSinceAt: now,
		StateReason: strangers.HeardFirst, Arch: c.Arch, Firmware: c.Firmware, UUID: c.UUID, LastSeenAt: now,
		NICs: []inventory.NIC{{MAC: c.MAC, Vendor: r.vendor(c.MAC), IsBoot: true, Port: accessPort(c.Port)}}, Facts: withPort(nil, c),
	}
}

// discoverHost stores a new host with the event and the issues that it brings, and accepts it if a rule says so.
func (r *Registry) discoverHost(tx inventory.Tx, h *inventory.Host, c pxe.Client) error {
	now := r.Now()
	others, err := r.hinted(tx, h)
	if err != nil {
		return err
	}
	if err := tx.CreateHost(h, now); err != nil {
		return err
	}
	ev := inventory.Event{
		At: now, Kind: inventory.EventHostDiscovered, HostID: h.ID, MAC: c.MAC,
		Detail: fmt.Sprintf("%s heard %s: %s", h.Name, where(c), describe(c)), Refs: inventory.HostRef(h.Name).References(),
	}
	if err := tx.AddEvent(&ev); err != nil {
		return err
	}
	// A rule may accept a machine that claims the serial of another. The issue about both is open before that.
	if err := r.openAll(tx, others); err != nil {
		return err
	}
	rule, err := ruleFor(tx, h)
	if err != nil || rule == "" {
		return err
	}
	return r.acceptBy(tx, h, rule)
}

// where says where a machine was heard.
func where(c pxe.Client) string {
	if c.Subnet == "" {
		return "at " + c.Address.String() + ", outside of every subnet"
	}
	return "on subnet " + c.Subnet
}

// remember puts the owner of a MAC into the sessions' memory.
func (r *Registry) remember(tx inventory.Tx, mac inventory.MAC) error {
	h, err := tx.FindHostByMAC(mac)
	if err == nil {
		r.Sessions.SetHost(h.ID, mac)
	}
	// Without this the next packet would discover the machine again.
	return err
}

// SeenEvery is how often a host's row says again that it was seen.
const SeenEvery = time.Minute

// seen notes that a host sent a packet, for those that never ask for a script; it does not wait for the store.
func (r *Registry) seen(h *inventory.Host) {
	now, id := r.Now(), h.ID
	if now.Sub(h.LastSeenAt) < SeenEvery {
		return
	}
	r.Recorder.Take(recorder.Note{Do: func(tx inventory.Tx) error {
		// Read again in the recorder's transaction: the host may be gone, or another packet was written first.
		h, err := tx.FindHost(id)
		if inventory.IsKind(err, inventory.NotFound) || err == nil && now.Sub(h.LastSeenAt) < SeenEvery {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read host %s: %w", id, err)
		}
		h.LastSeenAt = now
		return tx.UpdateHost(&h, now)
	}})
}

// learnt is what a machine says of itself that its host did not have.
type learnt struct {
	isNew     bool              // the host has to be stored
	conflicts []inventory.Issue // what another host has as well
}

// identify puts into h what a machine says of itself; it only reads the store. MACs that belong to another host stay there:
// hints never move an identity, and the conflict becomes an issue that names both.
func (r *Registry) identify(tx inventory.Tx, h *inventory.Host, c pxe.Client) (l learnt, err error) {
	// The old lists are copied, because the loops below write into the new ones.
	before := *h
	before.NICs, before.Facts = slices.Clone(h.NICs), maps.Clone(h.Facts)
	now := r.Now()
	if c.Arch != "" {
		h.Arch = c.Arch
	}
	if c.Firmware != "" {
		h.Firmware = c.Firmware
	}
	// The port that asks is the one that boots. The others are no boot ports any more.
	for i := range h.NICs {
		h.NICs[i].IsBoot = h.NICs[i].MAC == c.MAC
	}
	if id := c.Identity; id != nil {
		for _, f := range []struct {
			field *string
			said  string
		}{{&h.UUID, id.UUID}, {&h.Serial, id.Serial}, {&h.AssetTag, id.AssetTag}, {&h.Manufacturer, id.Manufacturer}, {&h.Product, id.Product}} {
			// An empty value is no news: many firmwares leave the serial or the asset tag out.
			if f.said != "" {
				*f.field = f.said
			}
		}
		if id.MemoryMiB > 0 {
			h.MemoryMiB = id.MemoryMiB
		}
		h.Facts = facts(h.Facts, id)
		for _, m := range id.MACs {
			issue, err := r.addNIC(tx, h, m)
			if err != nil {
				return l, err
			}
			if issue != nil {
				l.conflicts = append(l.conflicts, *issue)
			}
		}
	}
	// Written when something differs, and at least once a minute, so that the host does not seem gone.
	l.isNew = !sameIdentity(&before, h) || before.IdentifiedAt.IsZero() || now.Sub(before.LastSeenAt) >= SeenEvery
	if l.isNew {
		h.LastSeenAt = now
		if c.Identity != nil {
			h.IdentifiedAt = now
		}
	}
	return l, nil
}

// learn stores what identify has put into a host.
func (r *Registry) learn(tx inventory.Tx, h *inventory.Host, l learnt) error {
	// The conflicts are noted even if the host itself is as before.
	if err := r.openAll(tx, l.conflicts); err != nil || !l.isNew {
		return err
	}
	if err := tx.UpdateHost(h, r.Now()); err != nil {
		return fmt.Errorf("store host %s: %w", h.Name, err)
	}
	return r.CheckHints(tx, h)
}

func (r *Registry) openAll(tx inventory.Tx, all []inventory.Issue) error {
	for _, i := range all {
		if err := r.Ledger.OpenIssue(tx, i); err != nil {
			return err
		}
	}
	return nil
}

func sameIdentity(a, b *inventory.Host) bool {
	return a.UUID == b.UUID && a.Serial == b.Serial && a.AssetTag == b.AssetTag && a.Manufacturer == b.Manufacturer &&
		a.Product == b.Product && a.MemoryMiB == b.MemoryMiB && a.Arch == b.Arch && a.Firmware == b.Firmware &&
		slices.Equal(a.NICs, b.NICs) && maps.Equal(a.Facts, b.Facts)
}

// facts merges what iPXE reported beyond the host's own fields; they can be selected as fact:cpu and the like.
func facts(old map[string]string, id *pxe.Identity) map[string]string {
	f := maps.Clone(old)
	if f == nil {
		f = map[string]string{}
	}
	for k, v := range map[string]string{
		"boardSerial": id.BoardSerial, "platform": id.Platform, "buildArch": id.BuildArch, "cpu": id.CPU,
		"ipxe": id.Version,
	} {
		if v != "" {
			f[k] = v
		}
	}
	return f
}

// AddNIC adds a MAC that the machine reported, unless another host owns it: that is an issue.
func (r *Registry) AddNIC(tx inventory.Tx, h *inventory.Host, m inventory.MAC) error {
	issue, err := r.addNIC(tx, h, m)
	if err != nil || issue == nil {
		return err
	}
	return r.Ledger.OpenIssue(tx, *issue)
}

func (r *Registry) addNIC(tx inventory.Tx, h *inventory.Host, m inventory.MAC) (*inventory.Issue, error) {
	// A real server has few ports. Without a bound one machine could claim as many MACs as it likes.
	most := 64
	if h.State == inventory.Discovered {
		most = strangers.StrangerNICs
	}
	if slices.Contains(h.MACs(), m) || len(h.NICs) >= most {
		return nil, nil
	}
	// A MAC belongs to one host. Taking it over would let a machine become another one by its own word.
	owner, err := tx.FindHostByMAC(m)
	switch {
	case inventory.IsKind(err, inventory.NotFound):
		h.NICs = append(h.NICs, inventory.NIC{MAC: m, Vendor: r.vendor(m)})
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read owner of %s: %w", m, err)
	}
	issue := conflict(h, &owner, "MAC "+string(m))
	return &issue, nil
}

// CheckHints opens an issue for each other host that has the same UUID or serial. Which host boots is decided by MAC
// alone, so nothing moves; a person finds out which of the two is wrong.
func (r *Registry) CheckHints(tx inventory.Tx, h *inventory.Host) error {
	issues, err := r.hinted(tx, h)
	if err != nil {
		return err
	}
	return r.openAll(tx, issues)
}

// hinted returns the issues of CheckHints.
func (r *Registry) hinted(tx inventory.Tx, h *inventory.Host) (issues []inventory.Issue, err error) {
	others, err := tx.FindHostsByHint(h.UUID, h.Serial)
	if err != nil {
		return nil, fmt.Errorf("read hosts with the hints of %s: %w", h.Name, err)
	}
	for _, o := range others {
		if o.ID == h.ID {
			continue
		}
		what := "serial " + h.Serial
		if h.UUID != "" && h.UUID == o.UUID {
			what = "UUID " + h.UUID
		}
		issues = append(issues, conflict(h, &o, what))
	}
	return issues, nil
}

// conflict is the issue that two hosts claim the same thing; its key does not depend on which of them came first.
func conflict(a, b *inventory.Host, what string) inventory.Issue {
	// Sorted, so that the same two hosts always lead to the same issue.
	ids := []inventory.HostID{a.ID, b.ID}
	slices.Sort(ids)
	return inventory.Issue{
		Key: fmt.Sprintf("%s/%s/%s", inventory.IssueIdentityConflict, ids[0], ids[1]), Type: inventory.IssueIdentityConflict,
		Severity: inventory.SeverityWarning, HostIDs: ids,
		Cause: fmt.Sprintf("%s and %s both report %s", a.Name, b.Name, what), Refs: []inventory.Ref{inventory.HostRef(a.Name), inventory.HostRef(b.Name)},
		Hint: "each still boots by its own MACs; if they are one machine, delete one of the hosts and add its MACs to the other",
	}
}

// ruleFor returns the name of the accept rule that matches a discovered host, "" for none.
func ruleFor(tx inventory.Tx, h *inventory.Host) (string, error) {
	if h.State != inventory.Discovered {
		return "", nil
	}
	rules, err := tx.AcceptRules().List(inventory.Page{})
	if err != nil {
		return "", fmt.Errorf("read accept rules: %w", err)
	}
	// The rules are tried in the order of their names. One with a selector that cannot be read matches nothing.
	for _, r := range rules {
		if sel, err := inventory.ParseSelector(r.Selector); err == nil && sel.Matches(h) {
			return r.Name, nil
		}
	}
	return "", nil
}

// acceptBy accepts a discovered host by a rule.
func (r *Registry) acceptBy(tx inventory.Tx, h *inventory.Host, rule string) error {
	if err := r.Ledger.Move(tx, h, inventory.Accept, "", "accepted by rule "+rule); err != nil {
		return err
	}
	return r.operator.InspectAccepted(tx, h, "rule "+rule)
}
