package noun

import "slipway.dev/slipway/inventory"

// Screen says how people read and write a noun. The description of the API has it as x-noun, and the web UI draws the table and the
// form of the noun from it.
type Screen struct {
	Called  string    `json:"called,omitempty"`  // in sentences, where that is not its name
	Tab     string    `json:"tab,omitempty"`     // among the settings; "" for a noun that has another screen
	About   string    `json:"about,omitempty"`   // above the table
	Key     string    `json:"key,omitempty"`     // the field that names one in paths, where that is not name
	InPools bool      `json:"inPools,omitempty"` // a role in one pool may be enough to write it
	Add     string    `json:"add"`               // the button that opens an empty form; "" for no button
	Verb    string    `json:"verb"`              // the button that saves a new one
	Edit    string    `json:"edit,omitempty"`    // the button that opens one; without it the table opens none
	Save    string    `json:"save,omitempty"`    // the button that saves a change, where that is not Save
	Drop    string    `json:"drop,omitempty"`    // the button that deletes one, where that is not Delete
	Cmds    [2]string `json:"cmds"`              // the commands for a new one and for a change
	Empty   string    `json:"empty,omitempty"`   // in place of a table without rows
	Hint    string    `json:"hint,omitempty"`    // below Empty
	Below   string    `json:"below,omitempty"`   // below the form
	Fields  []Field   `json:"fields"`
	Columns []Column  `json:"columns,omitempty"`
}

// Field is a field of a noun.
type Field struct {
	Name    string      `json:"name"`            // as the API has it; a dot is before a field of an object
	Label   string      `json:"label,omitempty"` // in the form; "" keeps it out of that
	Kind    Kind        `json:"kind,omitempty"`
	Help    string      `json:"help,omitempty"`
	Example string      `json:"example,omitempty"` // in an empty field
	First   string      `json:"first,omitempty"`   // in the form of a new one
	Rows    int         `json:"rows,omitempty"`
	IsMust  bool        `json:"isMust,omitempty"`
	Choices [][2]string `json:"choices,omitempty"` // value and label
	State   string      `json:"state,omitempty"`   // a selector counts only hosts in this state
	Says    string      `json:"says,omitempty"`    // in a column, with {} for the value
	Flag    string      `json:"flag,omitempty"`    // of the commands; its value may follow, with {} for that of the field
}

// Column is a column of the table.
type Column struct {
	Name   string   `json:"name"`
	Kind   Kind     `json:"kind,omitempty"`
	Fields []string `json:"fields"`
	None   string   `json:"none,omitempty"` // in place of empty fields
	Min    int      `json:"min,omitempty"`  // least width in rem; 8
	Grow   int      `json:"grow,omitempty"` // its share of the width that is left; 1
}

// Kind says how a field is edited, or how a column shows fields.
type Kind string

// Kinds. A column of kind Words shows all its fields, each as Says has it; one of kind Number counts their entries; one of kind
// Which has the label of the first field that is filled. Other columns show that field.
const (
	Text     Kind = ""
	LongText Kind = "long"
	Words    Kind = "words" // a list, with spaces or commas between
	Numbers  Kind = "numbers"
	Lines    Kind = "lines" // a list, one in a line
	Pairs    Kind = "pairs" // a map, KEY=VALUE in a line
	Options  Kind = "options"
	Selector Kind = "selector"
	Number   Kind = "number"
	GiB      Kind = "gib" // stored in bytes
	Flag     Kind = "flag"
	Choice   Kind = "choice"
	Sealed   Kind = "secret" // the name of a secret
	Time     Kind = "time"
	Expiry   Kind = "expiry" // a time, chosen as hours from now
	Roles    Kind = "roles"  // words ROLE or ROLE@POOL
	Which    Kind = "which"
)

// named is the name of a noun in its form.
var named = Field{Name: "name", Label: "Name", IsMust: true}

var acceptRuleScreen = Screen{
	Called: "rule", Tab: "Accept rules",
	About: "If a discovered host matches a rule, Slipway accepts it the next time that it asks for its boot. From then on, Slipway may install " +
		"and wipe it. Other hosts wait for a person.",
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
}

var goldenScreen = Screen{
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
}

var classScreen = Screen{
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
}

var poolScreen = Screen{
	Add: "Create a pool", Verb: "Create", Cmds: [2]string{"create", "set"},
	Fields: []Field{
		{Name: "name", Label: "Name", IsMust: true, Help: "default is the pool of machines that name none."},
		{
			Name: "selector", Label: "Hosts that match", Example: "rack=r1", Flag: "selector",
			Help: "A selector, all hosts when empty. A host may be in several pools.",
		},
		{Name: "minSpare", Label: "Spare hosts", Kind: Number, Help: "This number of hosts stays free, to replace failed hosts.", Flag: "min-spare"},
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
}

var targetScreen = Screen{
	Add: "Add a join target", Verb: "Add", Cmds: [2]string{"add", "set"},
	Fields: []Field{
		named,
		{Name: "endpoint", Label: "Endpoint", IsMust: true, Example: "10.0.0.9:6443", Help: "The API server as nodes reach it", Flag: "endpoint"},
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
}

var userScreen = Screen{
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
}

var secretScreen = Screen{
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
}

var tokenScreen = Screen{
	InPools: true,
	About:   "A token lets a program act in your name, with the roles that you choose. It can never do more than you can.",
	Add:     "Make a token", Verb: "Make", Cmds: [2]string{"create"},
	Empty: "No token",
	Hint:  "A script or another machine needs one to use the API over the network.",
	Fields: []Field{
		named,
		{
			Name: "expiresAt", Label: "Valid for", Kind: Expiry, First: "720", Flag: "expires-in {}h",
			Choices: [][2]string{{"24", "a day"}, {"720", "30 days"}, {"8760", "a year"}, {"", "until it is deleted"}},
		},
		{Name: "grants", Label: "Roles", Kind: Roles, IsMust: true},
	},
	Columns: []Column{
		{Name: "Name", Fields: []string{"name"}},
		{Name: "User", Fields: []string{"user"}, None: "nobody"},
		{Name: "Roles", Kind: Roles, Fields: []string{"grants"}},
		{Name: "Expires", Kind: Time, Fields: []string{"expiresAt"}},
		{Name: "Last used", Kind: Time, Fields: []string{"lastUsedAt"}},
	},
}

var reservationScreen = Screen{
	Called: "the reservation of", Key: "address", InPools: true,
	Add: "Reserve an address", Verb: "Reserve", Edit: "Edit", Save: "Reserve", Cmds: [2]string{"create"},
	Empty: "No address is reserved",
	Hint:  "A reservation gives one machine a permanent address, inside or outside of the ranges. Add one here, or from a lease.",
	Fields: []Field{
		{Name: "address", Label: "Address", IsMust: true},
		{Name: "mac", Label: "MAC", IsMust: true, Flag: "mac"},
		{Name: "uuid", Label: "UUID", IsMust: true, Flag: "uuid"},
		{Name: "clientID", Label: "Client id", IsMust: true, Flag: "client-id"},
		{Name: "port", Label: "Switch port", IsMust: true, Flag: "port"},
		{Name: "hostname", Label: "Host name", Flag: "hostname"},
		{Name: "options", Label: "DHCP options", Kind: Options, Flag: "option"},
	},
	Columns: []Column{
		{Name: "Address", Fields: []string{"address"}},
		{Name: "Machine", Fields: []string{"mac", "uuid", "clientID", "port"}, Min: 14, Grow: 2},
		{Name: "Identified by", Kind: Which, Fields: []string{"mac", "uuid", "clientID", "port"}},
		{Name: "Host name", Fields: []string{"hostname"}},
	},
}

var leaseScreen = Screen{
	Called: "the lease of", Key: "address", InPools: true, Drop: "Forget", Fields: []Field{},
	Columns: []Column{
		{Name: "Address", Fields: []string{"address"}, Min: 7},
		{Name: "State", Fields: []string{"state"}, Min: 6},
		{Name: "MAC", Fields: []string{"mac"}, Min: 9},
		{Name: "Host", Fields: []string{"mac"}, Min: 9},
		{Name: "Switch port", Fields: []string{"port"}},
		{Name: "Host name", Fields: []string{"hostname"}, Min: 7},
		{Name: "For", Fields: []string{"isBoot"}, Min: 4},
		{Name: "Until", Kind: Time, Fields: []string{"expiresAt"}, Min: 6},
	},
}

// Seen is a noun that has a screen.
type Seen struct {
	Facts
	Type string
}

// Screens returns the nouns that have a screen. Tokens, reservations and leases have tables of their own in the store, so that they
// are not in All.
func Screens() []Seen {
	all := []Seen{
		{Facts{One: "token", Many: "tokens", Needs: inventory.Viewer, Screen: &tokenScreen}, "Token"},
		{Facts{One: "reservation", Many: "reservations", Needs: inventory.Admin, Screen: &reservationScreen}, "Reservation"},
		{Facts{One: "lease", Many: "leases", Needs: inventory.Admin, Screen: &leaseScreen}, "Lease"},
	}
	for _, n := range All() {
		if n.About().Screen != nil {
			all = append(all, Seen{n.About(), n.Type()})
		}
	}
	return all
}
