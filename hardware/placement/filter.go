package placement

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/hardware/rootdisk"
	"slipway.dev/slipway/inventory"
)

// shape is everything about a demand but who asks and when. Machines of one set share one, so that ten thousand hosts are
// looked at once and not for each of them.
type shape struct {
	machine  *inventory.Machine
	image    *inventory.Image
	isPinned bool
	// needsInspection keeps hosts out that were never inspected.
	needsInspection bool

	poolName   string
	pool       []*memo    // selector and requirements of the pool
	labels     []labelled // selectors of the machine, with their texts
	barred     []bar
	walls      []bar // pools of which a host must be in one, when isWalled
	isWalled   bool
	filters    []*memo // selector and requirements of the machine
	disk       *memo   // nil when nothing is written to a disk
	preferred  []preference
	spare      *pool // nil when nothing is kept
	minSpare   int
	surplusOf  inventory.HardwareRequirements
	taints     map[inventory.Taint]*cause
	imageCause [3]*cause

	verdicts *memo   // of judge
	scores   []Score // by entry.n, where isScored
	isScored []bool
}

// bar keeps the hosts of a pool out.
type bar struct {
	pool []*memo
	no   *cause
}

type preference struct {
	weight int
	memo   *memo
}

// labelled is a selector with its text.
type labelled struct {
	text string
	memo *memo
}

// shapeOf returns the shape of a demand, or why its machine or pool cannot be read.
func (y *yard) shapeOf(d *Demand) (*shape, error) {
	p := d.Machine.Placement
	p.Reuse, p.ReuseKey, p.FailureDomain = "", "", "" // see query
	key, err := json.Marshal([]any{
		p, d.Pool.Name, d.Pool.Selector, d.Pool.Requirements, d.Pool.MinSpare, d.Barred, d.Walls, d.IsWalled, d.IsInspectionNeeded, d.Machine.RootDisk, d.Machine.KeepDisks,
		d.Image.Arch, d.Image.CPULevel, d.Image.MemoryMiB, d.Image.DiskBytes, d.Image.IsDisk(), d.Image.IsInstaller,
	})
	if err != nil {
		return nil, err
	}
	if s, ok := y.shapes[string(key)]; ok {
		return s, nil
	}
	s, err := y.newShape(d)
	if err != nil {
		return nil, err
	}
	y.shapes[string(key)] = s
	return s, nil
}

func (y *yard) newShape(d *Demand) (*shape, error) {
	p := &d.Machine.Placement
	s := &shape{
		machine: &d.Machine, image: &d.Image, isPinned: p.Host != "", needsInspection: d.IsInspectionNeeded, surplusOf: p.Requirements,
		poolName: d.Pool.Name, taints: map[inventory.Taint]*cause{}, minSpare: d.Pool.MinSpare,
		imageCause: [3]*cause{
			{phrase: fmt.Sprintf("is not of the image's architecture %s", d.Image.Arch), hint: "choose an image for the machines that you have: slipway image list"},
			{phrase: fmt.Sprintf("has less than the %d MiB of memory that the image needs", d.Image.MemoryMiB), hint: "choose a smaller image: slipway image list"},
			{phrase: fmt.Sprintf("has a processor below the level %s that the image needs", d.Image.CPULevel), hint: "choose an older release: slipway image list"},
		},
	}
	n := len(y.entries)
	s.verdicts, s.scores, s.isScored = &memo{ask: s.judge, answers: make([]*cause, n)}, make([]Score, n), make([]bool, n)
	if d.Image.IsDisk() || d.Image.IsInstaller {
		var err error
		if s.disk, err = y.rootDisk(d); err != nil {
			return nil, err
		}
	}
	for i := range d.Barred {
		b, err := y.bar(&d.Barred[i])
		if err != nil {
			return nil, err
		}
		s.barred = append(s.barred, b)
	}
	s.isWalled = d.IsWalled
	for i := range d.Walls {
		b, err := y.bar(&d.Walls[i])
		if err != nil {
			return nil, err
		}
		s.walls = append(s.walls, b)
	}
	if s.isPinned {
		return s, nil
	}
	return s, y.addFilters(s, d)
}

// bar reads a pool whose hosts are kept out.
func (y *yard) bar(p *inventory.Pool) (b bar, err error) {
	b.no = &cause{phrase: "is in pool " + p.Name + ", which the machine may not use", hint: "see who may: slipway pool show " + p.Name, isOutside: true}
	if p.Selector != "" {
		m, err := y.selector(p.Selector, b.no)
		if err != nil {
			return b, err
		}
		b.pool = append(b.pool, m)
	}
	if !p.Requirements.IsZero() {
		m, err := y.requirements(p.Requirements)
		if err != nil {
			return b, err
		}
		b.pool = append(b.pool, m)
	}
	return b, nil
}

// addFilters reads the selectors and requirements of a machine and its pool.
func (y *yard) addFilters(s *shape, d *Demand) error {
	p := &d.Machine.Placement
	outside := &cause{
		phrase: "is not in pool " + orDefault(d.Pool.Name), hint: "see what the pool selects: slipway pool show " + orDefault(d.Pool.Name), isOutside: true,
	}
	selectors := []struct {
		text string
		no   *cause
		to   *[]*memo
	}{
		{d.Pool.Selector, outside, &s.pool},
		{p.Selector, &cause{phrase: "does not match the selector " + inventory.Clean(p.Selector, 120), hint: "see what hosts are labelled with: slipway host show NAME"}, &s.filters},
	}
	for _, x := range selectors {
		if x.text != "" {
			m, err := y.selector(x.text, x.no)
			if err != nil {
				return err
			}
			*x.to = append(*x.to, m)
			if x.to == &s.filters {
				s.labels = append(s.labels, labelled{inventory.Clean(x.text, 120), m})
			}
		}
	}
	for _, x := range []struct {
		r  inventory.HardwareRequirements
		to *[]*memo
	}{{d.Pool.Requirements, &s.pool}, {p.Requirements, &s.filters}} {
		if !x.r.IsZero() {
			m, err := y.requirements(x.r)
			if err != nil {
				return err
			}
			*x.to = append(*x.to, m)
		}
	}
	for _, w := range p.Preferred {
		m, err := y.selector(w.Selector, notPreferred)
		if err != nil {
			return err
		}
		s.preferred = append(s.preferred, preference{w.Weight, m})
	}
	if d.Pool.MinSpare > 0 {
		key, err := json.Marshal([]any{d.Pool.Name, d.Pool.Selector, d.Pool.Requirements})
		if err != nil {
			return err
		}
		s.spare = y.poolOf(string(key), func(e *entry) bool { return all(s.pool, e) == nil })
	}
	return nil
}

// all returns the first cause that one of the memories knows.
func all(memos []*memo, e *entry) *cause {
	for _, m := range memos {
		if c := m.of(e); c != nil {
			return c
		}
	}
	return nil
}

func orDefault(pool string) string { return cmp.Or(pool, inventory.DefaultPool) }

// base returns what keeps a host from every machine.
func base(c *Candidate) *cause {
	h := &c.Host
	switch {
	case h.State == inventory.Discovered:
		return notAccepted
	case h.ClaimID != "":
		return claimed
	case h.IsAdopted:
		return adopted
	case h.State == inventory.Failed:
		return failed
	case h.State != inventory.Available:
		return busy[h.State]
	case h.InMaintenance:
		return inMaintenance
	case h.IsCordoned:
		return cordoned
	case h.IsProtected:
		return protected
	case h.IsDirty:
		return dirty
	case len(c.Faults) > 0:
		return faulty
	}
	return nil
}

// outsideWalls keeps the hosts out of a machine whose cluster is kept to pools.
var outsideWalls = &cause{
	phrase: "is in none of the pools that the machine's cluster may use", hint: "see which they are: slipway cluster access NAME", isOutside: true,
}

// judge returns what keeps a host from machines of this shape, nil for nothing. The cheap questions come first.
func (s *shape) judge(e *entry) *cause {
	if c := all(s.pool, e); c != nil {
		return c
	}
	for _, b := range s.barred {
		if all(b.pool, e) == nil {
			return b.no
		}
	}
	if s.isWalled && !slices.ContainsFunc(s.walls, func(b bar) bool { return all(b.pool, e) == nil }) {
		return outsideWalls
	}
	switch {
	case e.base != nil:
		return e.base
	case s.needsInspection && e.Hardware == nil:
		return neverInspected
	}
	if c := s.untolerated(e); c != nil {
		return c
	}
	if arch := hardware.Arch(&e.Host, e.Hardware); !runs(s.image.Arch, arch) {
		return s.imageCause[0]
	}
	if have := hardware.Memory(&e.Host, e.Hardware); have > 0 && have < int64(s.image.MemoryMiB)<<20 {
		return s.imageCause[1]
	}
	if e.Hardware != nil && inventory.IsBelow(inventory.CPULevelOf(&e.Hardware.CPU), s.image.CPULevel) {
		return s.imageCause[2]
	}
	if c := all(s.filters, e); c != nil {
		return c
	}
	if s.disk != nil && e.Hardware != nil {
		return s.disk.of(e)
	}
	return nil
}

// runs reports whether an image of one architecture runs on a machine of another; one that is not known may.
func runs(image, machine inventory.Arch) bool {
	return image == "" || machine == "" || image == machine || image == inventory.I386 && machine == inventory.X8664
}

// untolerated returns the cause for the first taint of a host that the machine does not tolerate.
func (s *shape) untolerated(e *entry) *cause {
	for _, t := range e.Host.Taints {
		if slices.ContainsFunc(s.machine.Placement.Tolerations, func(x inventory.Toleration) bool { return x.Tolerates(t) }) {
			continue
		}
		c := s.taints[t]
		if c == nil {
			text := t.Key
			if t.Value != "" {
				text += "=" + t.Value
			}
			c = &cause{phrase: "has the taint " + inventory.Clean(text, 120) + ", which the machine does not tolerate", hint: "add a toleration to the machine, or remove the taint from a host"}
			s.taints[t] = c
		}
		return c
	}
	return nil
}

// rootDisk returns the memory for whether a host has the disk that the operating system goes to.
func (y *yard) rootDisk(d *Demand) (*memo, error) {
	key, err := json.Marshal([]any{d.Machine.RootDisk, d.Machine.KeepDisks, d.Image.DiskBytes})
	if err != nil {
		return nil, err
	}
	m, minBytes := &d.Machine, d.Image.DiskBytes
	small := &cause{phrase: "has no disk of at least " + hardware.Bytes(minBytes) + " for the image", hint: "choose a smaller image, or another disk with --root-..."}
	return y.memo("disk\x00"+string(key), func() (func(*entry) *cause, error) {
		return func(e *entry) *cause {
			hint := m.RootDisk
			if hint.IsZero() {
				hint = e.Host.RootDisk
			}
			disks := e.Hardware.Disks
			if len(m.KeepDisks)+len(e.Host.KeepDisks) > 0 {
				disks = slices.DeleteFunc(slices.Clone(disks), func(x inventory.Disk) bool {
					keeps := func(h inventory.DiskHint) bool { return !h.IsZero() && h.Matches(x) }
					return slices.ContainsFunc(m.KeepDisks, keeps) || slices.ContainsFunc(e.Host.KeepDisks, keeps)
				})
			}
			return diskCause(disks, hint, minBytes, small)
		}, nil
	})
}

// diskCause asks the one function that knows, and puts what it says into a phrase that many hosts share.
func diskCause(disks []inventory.Disk, hint inventory.DiskHint, minBytes int64, small *cause) *cause {
	if len(disks) == 0 {
		return noDisk
	}
	_, err := rootdisk.Choose(disks, hint, minBytes)
	if err == nil {
		return nil
	}
	if isConflict(err) {
		return ambiguousDisk
	}
	if _, err := rootdisk.Choose(disks, hint, 0); err == nil || isConflict(err) {
		return small
	}
	return noSuchDisk
}

// query is one demand: its shape, and what is its own.
type query struct {
	*Demand
	shape       *shape
	key         string
	hash        uint64
	mustBeSame  bool
	isSpareLeft bool
}

func (y *yard) query(d *Demand, s *shape) *query {
	q := &query{Demand: d, shape: s, key: d.Machine.Placement.ReuseKey, hash: hash(d.Machine.UID)}
	q.key = cmp.Or(q.key, d.Machine.Name)
	// The first machine of its key takes any host: there is none that it had.
	q.mustBeSame = d.Machine.Placement.Reuse == inventory.ReuseRequire && y.keys[q.key]
	// Spares are for replacing a host that failed: a machine that has one to avoid may take them.
	q.isSpareLeft = s.spare == nil || s.spare.freeN > s.minSpare || len(d.Machine.Avoid) > 0
	return q
}

// refuses returns what keeps an eligible host from this machine now. Whether it is in the right place is asked
// last, so that such a cause means: but for that, it would serve.
func (q *query) refuses(e *entry) *cause {
	p := &q.Machine.Placement
	switch {
	case e.isTaken:
		return justTaken
	case slices.Contains(q.Machine.Avoid, e.Host.ID):
		return avoided
	case q.mustBeSame && e.Host.ReuseKey != q.key:
		return notTheSame
	case q.isHeld(e):
		return held
	case !q.isSpareLeft:
		return spare
	case p.FailureDomain != "" && !p.IsDomainPreferred && !e.Host.Place.InDomain(p.FailureDomain):
		return otherDomain
	}
	return nil
}

// isHeld reports whether a host was freed a short while ago by a machine that wants it again.
func (q *query) isHeld(e *entry) bool {
	k := e.Host.ReuseKey
	return k != "" && k != q.key && q.Now.Sub(e.Host.FreedAt) < HoldFor
}

// heldUntil returns when the first of the hosts that are held becomes free for all.
func (q *query) heldUntil(entries []*entry) (at time.Time) {
	for _, e := range entries {
		if q.shape.verdicts.of(e) != nil || q.refuses(e) != held {
			continue
		}
		if until := e.Host.FreedAt.Add(HoldFor); at.IsZero() || until.Before(at) {
			at = until
		}
	}
	return at
}
