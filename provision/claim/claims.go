package claim

// Claims are the machines and their claims on hosts, by nouns. Their methods may be called from many goroutines, once they are
// configured; Place may not.
type Claims struct {
	*Placer
	*Machines
	*Remedies
	*Takeovers
	*Viewer
	cfg Config
}

// New returns Claims that are to be configured, and their Viewer too.
func New() *Claims {
	c := &Claims{}
	c.Placer = &Placer{cfg: &c.cfg}
	c.Machines = &Machines{cfg: &c.cfg, rejections: &c.Placer.rejections}
	c.Remedies = &Remedies{cfg: &c.cfg, placer: c.Placer}
	c.Takeovers = &Takeovers{cfg: &c.cfg}
	c.Viewer = &Viewer{rejections: &c.Placer.rejections}
	return c
}

// Configure gives Claims what they need, but for their Viewer.
func (c *Claims) Configure(cfg Config) { c.cfg = cfg }
