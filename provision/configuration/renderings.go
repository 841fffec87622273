package configuration

import (
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/address"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/render"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/pxe"
)

// Rendered is what a host would be given, and what that was made from. One is kept for each host, so that it holds what
// decisions need of a configuration, and not the configuration.
type Rendered struct {
	Key      string // over everything that it depends on
	Profile  string
	revision int
	image    string
	Format   string
	Digest   inventory.Digest
	args     []string
	problem  *inventory.Error // why nothing can be given, nil if something can
	// waitsFor says where the bootstrap data come from that are not here yet, "" for none.
	WaitsFor string

	Names     []string // of its documents
	hasInitrd bool     // some of which come in an initrd
	HasSecret bool
	ReportsUp bool // the installed system does
	Role      machineconfig.Role
	Target    string       // that it joins, "" for none
	Addresses []netip.Addr // that it gives the host itself
	held      []inventory.Holding
	// lacksAddress says that the configuration wants an address, and none is kept yet.
	LacksAddress bool

	uses []inventory.Use // which parts of the configuration name what is in the documents

	// documents are nil in what was kept for long: the store has them.
	Documents []inventory.RenderedDocument
}

func newRendered(key string, in *render.Input, res *render.Result) *Rendered {
	own := &in.Profiles[len(in.Profiles)-1]
	r := &Rendered{
		Key: key, Profile: own.Name, revision: own.Revision, image: in.Image.Name,
		Format: res.Format, Digest: res.Digest, args: res.Args, Documents: res.Documents, uses: res.Uses,
	}
	if err := res.Findings.Err(); err != nil {
		r.problem = inventory.Errorf(inventory.Invalid, "the configuration of profile %s cannot be rendered: %s", r.Profile, ledger.PublicMessage(err))
		r.problem.Err, r.problem.Hint, r.problem.Refs = err, inventory.HintOf(err), inventory.RefsOf(err)
	}
	r.LacksAddress = slices.ContainsFunc(res.Findings, func(f machineconfig.Finding) bool {
		return f.Severity == machineconfig.SeverityError && strings.Contains(f.Message, address.Unkept)
	})
	if in.Machine != nil && in.Machine.Secret == "" {
		r.WaitsFor = in.Machine.BootstrapFrom
	}
	for _, d := range res.Documents {
		r.Names = append(r.Names, d.Name)
		r.hasInitrd = r.hasInitrd || d.Path != ""
		r.HasSecret = r.HasSecret || d.IsSecret
		r.ReportsUp = r.ReportsUp || late.RefersTo(d.Text, "session://report")
	}
	if res.Config == nil {
		return r
	}
	if b := res.Config.Bootstrap; b != nil {
		r.Role, r.Target = b.Role, b.Target
	}
	for _, text := range res.Config.Network.Addresses() {
		if p, err := netip.ParsePrefix(text); err == nil {
			r.Addresses = append(r.Addresses, p.Addr())
		}
	}
	return r
}

// offer is what a boot script has to know of a rendering.
func (r *Rendered) offer() *pxe.ConfigOffer {
	o := &pxe.ConfigOffer{Args: r.args, HasInitrd: r.hasInitrd}
	if len(r.Names) == 1 { // several are fetched from the folder that they share
		o.Name = r.Names[0]
	}
	return o
}

// stored is the rendering as it is kept.
func (r *Rendered) stored(h inventory.HostID, now time.Time) inventory.Rendering {
	return inventory.Rendering{
		Digest: r.Digest, HostID: h, Profile: r.Profile, Revision: r.revision, Image: r.image, Format: r.Format,
		Documents: r.Documents, Args: r.args, Uses: r.uses, CreatedAt: now,
	}
}

// Renderings remembers the latest rendering of each host, so that it is made before the transaction that decides a
// boot, and not twice. The documents are remembered for a while only, until the store has them.
type Renderings struct {
	mu        sync.Mutex
	byHost    map[inventory.HostID]*Rendered
	documents map[inventory.HostID][]inventory.RenderedDocument
	names     []string // of the latest rendering, whose documents mostly have the names of the next one's
}

// The memory is bounded: a rendering has some 1 KB, its documents have some 10 KB.
const (
	maxRendered  = 20_000
	MaxDocuments = 500
)

// of returns what was rendered for a host last, "" if that is not known.
func (c *Renderings) of(h inventory.HostID) inventory.Digest {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.byHost[h]; r != nil {
		return r.Digest
	}
	return ""
}

// get returns the rendering of a host, nil when it was made from something else, and whether its documents are available.
func (c *Renderings) get(h inventory.HostID, key string) (r *Rendered, isWhole bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.byHost[h]
	if kept == nil || kept.Key != key {
		return nil, false
	}
	whole := *kept
	whole.Documents, isWhole = c.documents[h]
	return &whole, isWhole
}

// Put remembers the rendering of a host in place of its latest, and its documents until others need the room.
func (c *Renderings) Put(h inventory.HostID, r *Rendered) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byHost == nil || len(c.byHost) >= maxRendered {
		c.byHost = map[inventory.HostID]*Rendered{}
	}
	if c.documents == nil || len(c.documents) >= MaxDocuments {
		c.documents = map[inventory.HostID][]inventory.RenderedDocument{}
	}
	kept := *r
	kept.Documents = nil
	if !slices.Equal(c.names, r.Names) {
		c.names = slices.Clip(r.Names)
	}
	kept.Names = c.names
	c.byHost[h], c.documents[h] = &kept, r.Documents
}

// Of returns the latest rendering of a host, without its documents; nil when there is none.
func (c *Renderings) Of(h inventory.HostID) *Rendered {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byHost[h]
}

// Addresses returns those that the latest rendering gives a host.
func (c *Renderings) Addresses(h inventory.HostID) []netip.Addr {
	if r := c.Of(h); r != nil {
		return r.Addresses
	}
	return nil
}
