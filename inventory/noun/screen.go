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
