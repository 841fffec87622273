package noun

import (
	"net/netip"
	"reflect"
	"time"

	"slipway.dev/slipway/inventory"
)

// The plain nouns.
var (
	Secrets = Noun[inventory.Secret]{
		Facts: Facts{
			One: "secret", Many: "secrets", Article: "a", Table: "secrets", Needs: inventory.Admin, ReadNeeds: inventory.Operator,
			Gone: "the value of {name} is lost, and nobody can undo that; machines that already have it keep it",
			Screen: &Screen{
				About: "Slipway stores a value encrypted, and gives it only to machines whose configuration names it. A field names it as " +
					"`secret://NAME`, a text as `{{ secret \"NAME\" }}`.",
				Add: "Store a secret", Verb: "Store", Edit: "Change", Save: "Change", Cmds: [2]string{"set", "set"},
				Empty:  "No secret is stored yet",
				Hint:   "Password hashes, join tokens, disk keys: what a machine needs and nobody should read.",
				Fields: []Field{named, {Name: "about", Label: "What it is for"}},
				Columns: []Column{
					{Name: "Name", Fields: []string{"name"}},
					{Name: "About", Fields: []string{"about", "owner"}},
					{Name: "For", Fields: []string{"consumers"}},
					{Name: "Used by", Fields: []string{"name"}},
					{Name: "Set", Kind: Time, Fields: []string{"updatedAt"}},
				},
			},
		},
		Records:  inventory.RecordTx.Secrets,
		Name:     func(s *inventory.Secret) *string { return &s.Name },
		Stamps:   func(s *inventory.Secret) Stamps { return Stamps{&s.CreatedAt, &s.UpdatedAt, &s.Version} },
		Validate: (*inventory.Secret).Validate,
		Sample:   inventory.Secret{Name: "sample", Sealed: []byte{1}},
	}

	Pools = Noun[inventory.Pool]{
		Facts: Facts{
			One: "pool", Many: "pools", Article: "a", Table: "pools", Needs: inventory.Admin, Scope: OfPools,
			Gone:     "pool {name} is deleted, with its budgets and its wipe mode; nothing changes on {host} in it, and machines of other pools may claim there",
			Optional: []string{"name", "requirements", "budget"},
			Screen: &Screen{
				Add: "Create a pool", Verb: "Create", Cmds: [2]string{"create", "set"},
				Fields: []Field{
					{Name: "name", Label: "Name", IsMust: true, Help: "default is the pool of machines that name none."},
					{
						Name: "selector", Label: "Hosts that match", Example: "rack=r1", Flag: "selector",
						Help: "A selector, all hosts when empty. A host may be in several pools.",
					},
					{
						Name: "minSpare", Label: "Spare hosts", Kind: Number, Help: "This number of hosts stays free, to replace failed hosts.",
						Flag: "min-spare",
					},
					{Name: "budget.provision", Label: "Installations at once", Kind: Number, Help: "Any number when empty", Flag: "max-provision"},
					{Name: "budget.destroy", Label: "Wipes at once", Kind: Number, Help: "Any number when empty", Flag: "max-destroy"},
					{Name: "budget.destroyInterval", Label: "Between the starts of two wipes", Example: "5m", Flag: "destroy-interval"},
					{Name: "clean", Label: "Disks of hosts that are released", Kind: Choice, Flag: "clean", Choices: [][2]string{
						{"", "quick wipe (default)"}, {"none", "leave them"}, {"quick", "quick wipe"}, {"full", "full wipe"}, {"secure", "secure erase"},
					}},
					{Name: "burnInFor", Label: "Burn-in of new hosts", Example: "2h", Help: "None when empty", Flag: "burn-in"},
					{Name: "requirements.cpuThreads", Label: "CPU threads at least", Kind: Number, Flag: "require cpu={}"},
					{Name: "requirements.memoryBytes", Label: "Memory at least, GiB", Kind: GiB, Flag: "require memory={}G"},
					{
						Name: "requirements.expression", Label: "More conditions", Kind: LongText, Rows: 2, Flag: "require expression={}",
						Help: `In CEL, such as host.cpu.threads > 16 && host.labels["zone"] == "a"`,
					},
				},
			},
			Files: []string{"name", "selector", "requirements", "budget", "clean", "minSpare", "allowedNamespaces", "burnInFor"},
		},
		Records:  inventory.RecordTx.Pools,
		Name:     func(p *inventory.Pool) *string { return &p.Name },
		Stamps:   func(p *inventory.Pool) Stamps { return Stamps{&p.CreatedAt, &p.UpdatedAt, &p.Version} },
		Validate: (*inventory.Pool).Validate,
		Sample:   inventory.Pool{Name: "sample", Selector: "rack=r9"},
	}

	Users = Noun[inventory.User]{
		Facts: Facts{
			One: "user", Many: "users", Article: "a", Table: "users", Needs: inventory.Admin, ReadNeeds: inventory.Admin,
			Gone:     "user {name} cannot log in any more; {token} and {login} end at once; the user's actions stay in the timeline and the audit",
			Optional: []string{"name", "grants"},
			Screen: &Screen{
				Add: "Add a user", Verb: "Add", Edit: "Change", Cmds: [2]string{"create"},
				Empty: "There is no user yet",
				Hint: "Anyone with the first token of the server can do everything. With a user for each person, the timeline shows who did what, " +
					"and each user has suitable roles.",
				Fields: []Field{
					named,
					{Name: "displayName", Label: "Full name", Flag: "full-name"},
					{Name: "grants", Label: "Roles", Kind: Roles},
				},
				Columns: []Column{
					{Name: "Name", Fields: []string{"name"}},
					{Name: "Roles", Kind: Roles, Fields: []string{"grants"}},
					{Name: "State", Fields: []string{"isDisabled", "issuer", "hasPassword"}},
					{Name: "Last login", Kind: Time, Fields: []string{"loginAt"}},
				},
			},
		},
		Records:  inventory.RecordTx.Users,
		Name:     func(u *inventory.User) *string { return &u.Name },
		Stamps:   func(u *inventory.User) Stamps { return Stamps{&u.CreatedAt, &u.UpdatedAt, &u.Version} },
		Validate: (*inventory.User).Validate,
		Sample:   inventory.User{Name: "sample", Grants: inventory.Grants{}},
	}

	AcceptRules = Noun[inventory.AcceptRule]{
		Facts: Facts{
			One: "acceptrule", Many: "acceptrules", Article: "an", Table: "accept_rules", Needs: inventory.Admin,
			Gone:     "rule {name} accepts no more machines; hosts that it has accepted stay accepted",
			Optional: []string{"name"},
			Screen: &Screen{
				Called: "rule", Tab: "Accept rules",
				About: "If a discovered host matches a rule, Slipway accepts it the next time that it asks for its boot. " +
					"From then on, Slipway may install and wipe it. Other hosts wait for a person.",
				Add: "Add a rule", Verb: "Add", Edit: "Edit", Cmds: [2]string{"create"},
				Empty: "Every host waits for a person",
				Hint:  "With a rule such as rack=r1, Slipway accepts the hosts of a rack that you trust.",
				Below: "The hosts above wait now. The rule accepts each one the next time that it asks for its boot.",
				Fields: []Field{
					named,
					{Name: "selector", Label: "Selector", Kind: Selector, IsMust: true, State: "discovered", Flag: "selector"},
				},
				Columns: []Column{
					{Name: "Name", Fields: []string{"name"}},
					{Name: "Selector", Kind: Selector, Fields: []string{"selector"}},
					{Name: "Changed", Kind: Time, Fields: []string{"updatedAt"}},
				},
			},
		},
		Records:  inventory.RecordTx.AcceptRules,
		Name:     func(r *inventory.AcceptRule) *string { return &r.Name },
		Stamps:   func(r *inventory.AcceptRule) Stamps { return Stamps{&r.CreatedAt, &r.UpdatedAt, &r.Version} },
		Validate: (*inventory.AcceptRule).Validate,
		Sample:   inventory.AcceptRule{Name: "sample", Selector: "manufacturer=ACME"},
	}

	Classes = Noun[inventory.Class]{
		Facts: Facts{
			One: "class", Many: "classes", Article: "a", Table: "classes", Needs: inventory.Admin, Scope: OfNobody,
			Gone:     "clients of class {name} get the options of their subnet only, from their next lease on",
			Optional: []string{"name"},
			Screen: &Screen{
				About: "A class matches clients by their packets, such as phones and switches, and gives them options of their own.",
				Add:   "Add a class", Verb: "Save", Edit: "Edit", Cmds: [2]string{"create", "update"},
				Fields: []Field{
					named,
					{
						Name: "vendorClasses", Label: "Vendor classes", Kind: Lines, Rows: 2, Flag: "vendor-class",
						Help: "Option 60, one in a line; * stands for any text, as in onie_vendor:*",
					},
					{Name: "userClasses", Label: "User classes", Kind: Lines, Rows: 2, Help: "Option 77", Flag: "user-class"},
					{Name: "macPrefixes", Label: "MAC prefixes", Kind: Words, Help: "such as 00:04:f2", Flag: "mac-prefix"},
					{Name: "archs", Label: "Architectures", Kind: Numbers, Help: "Numbers of option 93", Says: "architecture {}", Flag: "arch"},
					{Name: "priority", Label: "Priority", Kind: Number, Flag: "priority"},
					{Name: "options", Label: "DHCP options", Kind: Options, Flag: "option"},
					{Name: "options6", Label: "IPv6 options", Kind: Options, Flag: "option6"},
				},
				Columns: []Column{
					{Name: "Name", Fields: []string{"name"}},
					{Name: "Clients", Kind: Words, Fields: []string{"vendorClasses", "userClasses", "macPrefixes", "archs"}},
					{Name: "Options", Kind: Number, Fields: []string{"options", "options6"}},
				},
			},
			Files: []string{"name", "vendorClasses", "userClasses", "archs", "macPrefixes", "priority", "options", "options6"},
		},
		Records:  inventory.RecordTx.Classes,
		Name:     func(c *inventory.Class) *string { return &c.Name },
		Stamps:   func(c *inventory.Class) Stamps { return Stamps{&c.CreatedAt, &c.UpdatedAt, &c.Version} },
		Validate: (*inventory.Class).Validate,
		Sample:   inventory.Class{Name: "sample", VendorClasses: []string{"acme*"}},
	}

	Goldens = Noun[inventory.Golden]{
		Facts: Facts{
			One: "golden", Many: "goldens", Article: "a", Table: "goldens", Needs: inventory.Admin, Scope: OfNobody,
			Gone:     "Slipway no longer compares hosts with {name}, and opens no issue about missing parts",
			Optional: []string{"name", "requirements", "isStrict"},
			Screen: &Screen{
				Called: "golden hardware", Tab: "Golden hardware",
				About: "The hardware that every host of a kind must have. If an inspection does not find a part, Slipway opens an issue. " +
					"With “strict” no machine can claim such a host.",
				Add: "Describe a kind of host", Verb: "Save", Edit: "Edit", Cmds: [2]string{"create", "set"},
				Empty: "Nothing is required yet",
				Hint:  "Without it, Slipway compares a host only with its own last inspection. It cannot know that a new host lacks a disk or a DIMM.",
				Fields: []Field{
					named,
					{Name: "selector", Label: "Selector", Kind: Selector, IsMust: true, Flag: "selector"},
					{Name: "diskN", Label: "Disks, exactly", Kind: Number, Says: "{} disks", Flag: "disks"},
					{Name: "dimmN", Label: "DIMMs, exactly", Kind: Number, Says: "{} DIMMs", Flag: "dimms"},
					{Name: "portN", Label: "Network ports, exactly", Kind: Number, Says: "{} ports", Flag: "ports"},
					{Name: "requirements.memoryBytes", Label: "Memory in GiB, at least", Kind: GiB, Says: "{} memory", Flag: "require memory={}G"},
					{Name: "requirements.cpuThreads", Label: "CPU threads, at least", Kind: Number, Says: "{} threads", Flag: "require cpu={}"},
					{Name: "requirements.accelerators", Kind: Number, Says: "{} accelerators"},
					{
						Name: "firmware", Label: "Firmware", Kind: Pairs, Rows: 3, Flag: "firmware",
						Help: "PART=VERSION, one in a line: bios=2.1.0, bmc=5.10, disk:MODEL=…, port:DRIVER=…",
					},
					{
						Name: "requirements.expression", Label: "Expression", Says: "that {}", Flag: "require expression={}",
						Help: "Other conditions, in CEL (docs/machines.md).",
					},
					{Name: "isStrict", Label: "Strict", Kind: Flag, Help: "No machine can claim a host that lacks something.", Flag: "strict"},
				},
				Columns: []Column{
					{Name: "Name", Fields: []string{"name"}},
					{Name: "Hosts", Kind: Selector, Fields: []string{"selector"}},
					{Name: "Must have", Kind: Words, Fields: []string{
						"diskN", "dimmN", "portN", "requirements.memoryBytes", "requirements.cpuThreads", "requirements.accelerators",
						"requirements.expression", "firmware",
					}},
					{Name: "Strict", Kind: Flag, Fields: []string{"isStrict"}},
				},
			},
			Files: []string{"name", "selector", "requirements", "firmware", "diskN", "portN", "dimmN", "isStrict"},
		},
		Records:  inventory.RecordTx.Goldens,
		Name:     func(g *inventory.Golden) *string { return &g.Name },
		Stamps:   func(g *inventory.Golden) Stamps { return Stamps{&g.CreatedAt, &g.UpdatedAt, &g.Version} },
		Validate: (*inventory.Golden).Validate,
		Sample:   inventory.Golden{Name: "sample", Selector: "product=R650", Firmware: map[string]string{"bios": "1.2.3"}, DiskN: 2},
	}

	Racks = Noun[inventory.Rack]{
		Facts: Facts{
			One: "rack", Many: "racks", Article: "a", Table: "racks", Scope: OfPools,
			Gone:     "the height, the notes and the planned cables of rack {name} are lost; nothing changes on {host} in it",
			Optional: []string{"name", "height", "numbering"},
		},
		Records:  inventory.RecordTx.Racks,
		ID:       func(r *inventory.Rack) string { return r.ID() },
		Stamps:   func(r *inventory.Rack) Stamps { return Stamps{&r.CreatedAt, &r.UpdatedAt, &r.Version} },
		Validate: (*inventory.Rack).Validate,
		Sample:   inventory.Rack{Site: "fra1", Row: "a", Name: "sample", Height: 42, Numbering: inventory.FromBottom},
	}

	Subnets = Noun[inventory.Subnet]{
		Facts: Facts{
			One: "subnet", Many: "subnets", Article: "a", Table: "subnets", Needs: inventory.Admin, Scope: OfNobody,
			Gone: "nobody in subnet {name} gets an address or a boot from this server any more; {reservation} and {lease} are lost; " +
				"machines there keep their addresses until their leases end",
			Optional: []string{"name", "mode", "leaseFor", "bootLeaseFor", "unknown"},
		},
		Records:  inventory.RecordTx.Subnets,
		Name:     func(n *inventory.Subnet) *string { return &n.Name },
		Stamps:   func(n *inventory.Subnet) Stamps { return Stamps{&n.CreatedAt, &n.UpdatedAt, &n.Version} },
		Validate: (*inventory.Subnet).Validate,
		Sample: inventory.Subnet{
			Name: "sample", CIDR: netip.MustParsePrefix("10.77.0.0/24"), Mode: inventory.ModeFull, Unknown: inventory.UnknownDisk,
			LeaseFor: inventory.Duration(time.Hour), BootLeaseFor: inventory.Duration(time.Minute),
		},
	}

	Images = Noun[inventory.Image]{
		Facts: Facts{
			One: "image", Many: "images", Article: "an", Table: "images", Scope: OfNobody,
			Gone: "no host boots or installs {name} any more; installed systems continue to run; its files stay until the next prune",
		},
		Records:  inventory.RecordTx.Images,
		Name:     func(i *inventory.Image) *string { return &i.Name },
		Stamps:   func(i *inventory.Image) Stamps { return Stamps{&i.CreatedAt, &i.UpdatedAt, &i.Version} },
		Validate: (*inventory.Image).Validate,
		Sample:   inventory.Image{Name: "sample", OS: "custom", Arch: inventory.X8664, Files: []inventory.ImageArtefact{}},
	}

	Profiles = Noun[inventory.Profile]{
		Facts: Facts{
			One: "profile", Many: "profiles", Article: "a", Table: "profiles", Scope: OfNobody,
			Gone: "{host} pinned to profile {name} and {machine} of it get no configuration any more; hosts that it selects get another profile or " +
				"wait; running systems continue; its revisions stay, so that a rollback brings it back",
			Optional: []string{"name", "priority"},
		},
		Records:  inventory.RecordTx.Profiles,
		Name:     func(p *inventory.Profile) *string { return &p.Name },
		Stamps:   func(p *inventory.Profile) Stamps { return Stamps{&p.CreatedAt, &p.UpdatedAt, &p.Version} },
		Validate: (*inventory.Profile).Validate,
		Sample:   inventory.Profile{Name: "sample", Image: Images.Sample.Name},
	}

	Layers = Noun[inventory.Layer]{
		Facts: Facts{
			One: "layer", Many: "layers", Article: "a", Table: "layers", Scope: OfPools,
			Gone:     "hosts lose the values of layer {name} at their next boot or installation; its revisions stay, so that a rollback brings it back",
			Optional: []string{"scope"},
		},
		Records:  inventory.RecordTx.Layers,
		ID:       func(l *inventory.Layer) string { return l.Key() },
		Stamps:   func(l *inventory.Layer) Stamps { return Stamps{&l.CreatedAt, &l.UpdatedAt, &l.Version} },
		Validate: (*inventory.Layer).Validate,
		Sample:   inventory.Layer{Scope: inventory.ScopeSite, Name: "sample", Config: "host: {locale: C}\n"},
	}

	JoinTargets = Noun[inventory.JoinTarget]{
		Facts: Facts{
			One: "target", Many: "targets", Article: "a", Table: "join_targets", Needs: inventory.Admin, Scope: OfNobody,
			Gone:     "no machine joins {name} any more; its cluster continues to run, with {node} of Slipway's machines",
			Optional: []string{"name", "kubernetes"},
			Screen: &Screen{
				Add: "Add a join target", Verb: "Add", Cmds: [2]string{"add", "set"},
				Fields: []Field{
					named,
					{
						Name: "endpoint", Label: "Endpoint", IsMust: true, Example: "10.0.0.9:6443", Help: "The API server as nodes reach it",
						Flag: "endpoint",
					},
					{Name: "kubernetes", Label: "Kubernetes", Example: "1.35.0", Help: "The version that nodes get", Flag: "kubernetes"},
					{
						Name: "ca", Label: "Certificate authority", Kind: LongText, Rows: 4, Flag: "ca",
						Help: "The text of /etc/kubernetes/pki/ca.crt",
					},
					{
						Name: "kubeconfig", Label: "Kubeconfig of Slipway's account", Kind: Sealed, Flag: "kubeconfig",
						Help: "A secret, under Settings. With it, Slipway makes a token for each host.",
					},
					{Name: "token", Label: "Or a token made elsewhere", Kind: Sealed, Flag: "token"},
					{Name: "pki", Label: "Certificate authorities for control planes", Kind: Sealed, Flag: "pki"},
					{Name: "tokenFor", Label: "Token lifetime", Example: "30m", Flag: "token-for"},
				},
			},
		},
		Records:  inventory.RecordTx.JoinTargets,
		Name:     func(j *inventory.JoinTarget) *string { return &j.Name },
		Stamps:   func(j *inventory.JoinTarget) Stamps { return Stamps{&j.CreatedAt, &j.UpdatedAt, &j.Version} },
		Validate: (*inventory.JoinTarget).Validate,
		Sample:   inventory.JoinTarget{Name: "sample", Endpoint: "10.0.0.9:6443", Kubernetes: "1.35.0", Kubeconfig: Secrets.Sample.Name},
	}

	Clusters = Noun[inventory.Cluster]{
		Facts: Facts{
			One: "cluster", Many: "clusters", Article: "a", Table: "clusters", Needs: inventory.Admin,
			Gone: "objects of cluster {name} have no effect here any more; {machine} of it stay here with their hosts and systems, until somebody " +
				"deletes them here; Slipway removes its finalizers from its objects",
			Optional: []string{"name"},
		},
		Records:  inventory.RecordTx.Clusters,
		Name:     func(c *inventory.Cluster) *string { return &c.Name },
		Stamps:   func(c *inventory.Cluster) Stamps { return Stamps{&c.CreatedAt, &c.UpdatedAt, &c.Version} },
		Validate: (*inventory.Cluster).Validate,
		Sample:   inventory.Cluster{Name: "sample", Kubeconfig: Secrets.Sample.Name},
	}
)

// All returns the plain nouns. One whose sample names that of another comes after it.
func All() []Any {
	return []Any{Secrets, Pools, Users, AcceptRules, Classes, Goldens, Racks, Subnets, Images, Profiles, Layers, JoinTargets, Clusters}
}

// Of returns the plain noun whose records have a type. It panics without one: code asks for nouns of the table only.
func Of[R any]() Noun[R] {
	for _, n := range All() {
		if n, ok := n.(Noun[R]); ok {
			return n
		}
	}
	panic("no plain noun has records of type " + reflect.TypeFor[R]().String())
}

// Gone returns what the deletion of a noun takes away; "" for one that is not in the table.
func Gone(one string) string {
	for _, n := range All() {
		if f := n.About(); f.One == one {
			return f.Gone
		}
	}
	return ""
}

// Optional returns the fields of a noun, by the name of its type, that a request may leave out.
func Optional(of string) []string {
	for _, n := range All() {
		if n.Type() == of {
			return n.About().Optional
		}
	}
	return nil
}
