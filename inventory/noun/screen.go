package noun

// Screen says how people read and write a noun. The description of the API has it as x-noun, and the web UI draws the table and the
// form of the noun from it.
type Screen struct {
	Called  string    `json:"called,omitempty"` // in sentences, where that is not its name
	Tab     string    `json:"tab,omitempty"`    // among the settings; "" for a noun that has another screen
	About   string    `json:"about,omitempty"`  // above the table
	Add     string    `json:"add"`              // the button that opens an empty form
	Verb    string    `json:"verb"`             // the button that saves a new one
	Cmds    [2]string `json:"cmds"`             // the commands for a new one and for a change
	Empty   string    `json:"empty,omitempty"`  // in place of a table without rows
	Hint    string    `json:"hint,omitempty"`   // below Empty
	Below   string    `json:"below,omitempty"`  // below the form
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
}

// Kind says how a field is edited, or how a column shows fields.
type Kind string

// Kinds. A column of kind Words shows all its fields, each as Says has it; one of kind Number counts their entries.
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
)

// named is the name of a noun in its form.
var named = Field{Name: "name", Label: "Name", IsMust: true}

var acceptRuleScreen = Screen{
	Called: "rule", Tab: "Accept rules",
	About: "A host that is discovered and matches a rule is accepted at once: it may be inspected, claimed and installed. " +
		"Others wait for a person.",
	Add: "Add a rule", Verb: "Add", Cmds: [2]string{"create"},
	Empty: "Every host waits for a person",
	Hint:  "With a rule, such as rack=r1, the hosts of a rack you trust are accepted by themselves.",
	Below: "The hosts above wait now. A rule accepts a host with its next packet.",
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
	About: "The hardware that every host of a kind must have. A part that an inspection does not find is an issue. " +
		"With “strict” no machine can claim such a host.",
	Add: "Describe a kind of host", Verb: "Save", Cmds: [2]string{"create", "set"},
	Empty: "Nothing is required yet",
	Hint:  "Then nobody hears of a disk that is missing, or of a DIMM that failed, unless they look for it.",
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
			Help: "What=version, one in a line: bios=2.1.0, bmc=5.10, disk:MODEL=…, port:DRIVER=…",
		},
		{
			Name: "requirements.expression", Label: "Expression", Says: "that {}", Flag: "require expression={}",
			Help: "For what the fields above cannot say, in CEL (docs/machines.md).",
		},
		{Name: "isStrict", Label: "Strict", Kind: Flag, Help: "A host that lacks something is not claimed.", Flag: "strict"},
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
	Add:   "Add a class", Verb: "Save", Cmds: [2]string{"create", "update"},
	Fields: []Field{
		named,
		{
			Name: "vendorClasses", Label: "Vendor classes", Kind: Lines, Rows: 2, Flag: "vendor-class",
			Help: "Option 60, one in a line; * stands for any text, as in onie_vendor:*",
		},
		{Name: "userClasses", Label: "User classes", Kind: Lines, Rows: 2, Help: "Option 77", Flag: "user-class"},
		{Name: "macPrefixes", Label: "Beginnings of MACs", Kind: Words, Help: "such as 00:04:f2", Flag: "mac-prefix"},
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
		{Name: "minSpare", Label: "Spare hosts", Kind: Number, Help: "So many stay unclaimed, to replace failed ones.", Flag: "min-spare"},
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
			Name: "requirements.expression", Label: "More that hosts must have", Kind: LongText, Rows: 2, Flag: "require expression={}",
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
			Help: "A secret, under Settings. With it, a token is minted for each host.",
		},
		{Name: "token", Label: "Or a token made elsewhere", Kind: Sealed, Flag: "token"},
		{Name: "pki", Label: "Certificate authorities for control planes", Kind: Sealed, Flag: "pki"},
		{Name: "tokenFor", Label: "How long a minted token lives", Example: "30m", Flag: "token-for"},
	},
}
