package provision

import (
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/provision/ledger"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/address"
	"slipway.dev/slipway/machineconfig/render"
	"slipway.dev/slipway/pxe"
)

// rendered is what a host would be given, and what that was made from. One is kept for each host, so that it holds what
// decisions need of a configuration, and not the configuration.
type rendered struct {
	key      string // over everything that it depends on
	profile  string
	revision int
	image    string
	format   string
	digest   inventory.Digest
	args     []string
	problem  *inventory.Error // why nothing can be given, nil if something can
	// waitsFor says where the bootstrap data come from that are not here yet, "" for none.
	waitsFor string

	names     []string // of its documents
	hasInitrd bool     // some of which come in an initrd
	hasSecret bool
	reportsUp bool // the installed system does
	role      machineconfig.Role
	target    string       // that it joins, "" for none
	addresses []netip.Addr // that it gives the host itself
	held      []inventory.Holding
	// lacksAddress says that an address is asked for of which none is kept yet.
	lacksAddress bool

	uses []inventory.Use // which parts of the configuration name what stands in the documents

	// documents are nil in what was kept for long: the store has them.
	documents []inventory.RenderedDocument
}

func newRendered(key string, in *render.Input, res *render.Result) *rendered {
	own := &in.Profiles[len(in.Profiles)-1]
	r := &rendered{
		key: key, profile: own.Name, revision: own.Revision, image: in.Image.Name,
		format: res.Format, digest: res.Digest, args: res.Args, documents: res.Documents, uses: res.Uses,
	}
	if err := res.Findings.Err(); err != nil {
		r.problem = inventory.Errorf(inventory.Invalid, "the configuration of profile %s cannot be rendered: %s", r.profile, ledger.PublicMessage(err))
		r.problem.Err, r.problem.Hint = err, inventory.HintOf(err)
	}
	r.lacksAddress = slices.ContainsFunc(res.Findings, func(f machineconfig.Finding) bool {
		return f.Severity == machineconfig.SeverityError && strings.Contains(f.Message, address.Unkept)
	})
	if in.Machine != nil && in.Machine.Secret == "" {
		r.waitsFor = in.Machine.BootstrapFrom
	}
	for _, d := range res.Documents {
		r.names = append(r.names, d.Name)
		r.hasInitrd = r.hasInitrd || d.Path != ""
		r.hasSecret = r.hasSecret || d.IsSecret
		r.reportsUp = r.reportsUp || machineconfig.RefersTo(d.Text, "session://report")
	}
	if res.Config == nil {
		return r
	}
	if b := res.Config.Bootstrap; b != nil {
		r.role, r.target = b.Role, b.Target
	}
	for _, text := range res.Config.Network.Addresses() {
		if p, err := netip.ParsePrefix(text); err == nil {
			r.addresses = append(r.addresses, p.Addr())
		}
	}
	return r
}

// offer is what a boot script has to know of a rendering.
func (r *rendered) offer() *pxe.ConfigOffer {
	o := &pxe.ConfigOffer{Args: r.args, HasInitrd: r.hasInitrd}
	if len(r.names) == 1 { // several are fetched from the folder that they share
		o.Name = r.names[0]
	}
	return o
}

// stored is the rendering as it is kept.
func (r *rendered) stored(h inventory.HostID, now time.Time) inventory.Rendering {
	return inventory.Rendering{
		Digest: r.digest, HostID: h, Profile: r.profile, Revision: r.revision, Image: r.image, Format: r.format,
		Documents: r.documents, Args: r.args, Uses: r.uses, CreatedAt: now,
	}
}

// renderings remembers the latest rendering of each host, so that it is made before the transaction that decides a
// boot, and not twice. The documents are remembered for a while only, until the store has them.
type renderings struct {
	mu        sync.Mutex
	byHost    map[inventory.HostID]*rendered
	documents map[inventory.HostID][]inventory.RenderedDocument
	names     []string // of the latest rendering, whose documents mostly have the names of the next one's
}

// The memory is bounded: a rendering has some 1 KB, its documents have some 10 KB.
const (
	maxRendered  = 20_000
	maxDocuments = 500
)

// get returns the rendering of a host, nil when it was made from something else, and whether its documents are at hand.
func (c *renderings) get(h inventory.HostID, key string) (r *rendered, isWhole bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.byHost[h]
	if kept == nil || kept.key != key {
		return nil, false
	}
	whole := *kept
	whole.documents, isWhole = c.documents[h]
	return &whole, isWhole
}

func (c *renderings) put(h inventory.HostID, r *rendered) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byHost == nil || len(c.byHost) >= maxRendered {
		c.byHost = map[inventory.HostID]*rendered{}
	}
	if c.documents == nil || len(c.documents) >= maxDocuments {
		c.documents = map[inventory.HostID][]inventory.RenderedDocument{}
	}
	kept := *r
	kept.documents = nil
	if !slices.Equal(c.names, r.names) {
		c.names = slices.Clip(r.names)
	}
	kept.names = c.names
	c.byHost[h], c.documents[h] = &kept, r.documents
}

// addresses returns those that the latest rendering gives a host.
func (c *renderings) addresses(h inventory.HostID) []netip.Addr {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.byHost[h]; r != nil {
		return r.addresses
	}
	return nil
}
