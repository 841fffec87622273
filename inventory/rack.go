package inventory

import (
	"cmp"
	"strings"
	"time"
)

// Numbering says where the units of a rack are counted from.
type Numbering string

// The numberings of racks.
const (
	FromBottom Numbering = "bottom" // unit 1 is the lowest
	FromTop    Numbering = "top"    // unit 1 is the highest
)

// Face is a side of a rack.
type Face string

// The faces. A place without one fills the depth of the rack.
const (
	Front Face = "front"
	Rear  Face = "rear"
)

// DefaultRackHeight is how many units a rack has of which nobody said it.
const DefaultRackHeight = 42

// Rack is a rack that somebody has said something about. A rack that only the places of hosts name also exists, with
// DefaultRackHeight and Version 0.
type Rack struct {
	Site      string    `json:"site,omitempty"`
	Row       string    `json:"row,omitempty"`
	Name      string    `json:"name"`
	Height    int       `json:"height"` // in units
	Numbering Numbering `json:"numbering"`
	Notes     string    `json:"notes,omitempty"`
	// Cables are how it should be cabled; what LLDP tells is compared with them.
	Cables    []Cable   `json:"cables,omitempty"`
	CreatedAt time.Time `json:"createdAt,omitzero"`
	UpdatedAt time.Time `json:"updatedAt,omitzero"`
	Version   int64     `json:"version"`
}

// Cable is a connection that should be there.
type Cable struct {
	Unit   int    `json:"unit"`           // of the host: the one that its place names
	Port   string `json:"port,omitempty"` // of the host, such as eno1; empty: any of its ports
	Switch string `json:"switch"`         // its name or chassis id
	To     string `json:"to"`             // port of the switch
}

var (
	escapeRack   = strings.NewReplacer("%", "%25", "/", "%2F")
	unescapeRack = strings.NewReplacer("%2F", "/", "%2f", "/", "%25", "%")
)

// RackID is how a rack is named in one word: its name, or site/row/name where one of these is known. A slash in them is
// written %2F.
func RackID(site, row, name string) string {
	if site == "" && row == "" {
		return escapeRack.Replace(name)
	}
	return escapeRack.Replace(site) + "/" + escapeRack.Replace(row) + "/" + escapeRack.Replace(name)
}

// ParseRackID reads what RackID writes.
func ParseRackID(id string) (site, row, name string, err error) {
	parts := strings.Split(id, "/")
	for i := range parts {
		parts[i] = unescapeRack.Replace(parts[i])
	}
	switch len(parts) {
	case 1:
		name = parts[0]
	case 3:
		site, row, name = parts[0], parts[1], parts[2]
	}
	if name == "" {
		return "", "", "", Errorf(Invalid, "%q does not name a rack", Clean(id, 80)).WithHint("write NAME or SITE/ROW/NAME; a part that is not known stays empty: //NAME")
	}
	return site, row, name, nil
}

// ID names the rack.
func (r *Rack) ID() string { return RackID(r.Site, r.Row, r.Name) }

// RackID names the rack that the place is in; "" when it is in none.
func (p Place) RackID() string {
	if p.Rack == "" {
		return ""
	}
	return RackID(p.Site, p.Row, p.Rack)
}

// Units are the lowest and the highest unit that the place fills; both are 0 when its unit is not known.
func (p Place) Units() (low, high int) {
	if p.Unit == 0 {
		return 0, 0
	}
	return p.Unit, p.Unit + max(p.Height, 1) - 1
}

// FillDefaults fills in what a rack need not say.
func (r *Rack) FillDefaults() {
	r.Height = cmp.Or(r.Height, DefaultRackHeight)
	r.Numbering = cmp.Or(r.Numbering, FromBottom)
}

// Validate checks a rack by itself. Hosts that do not fit are no fault of it: package elevation says which.
func (r *Rack) Validate() error {
	if r.Name == "" {
		return Errorf(Invalid, "a rack needs a name").At("name")
	}
	for _, t := range []struct{ field, text string }{{"site", r.Site}, {"row", r.Row}, {"name", r.Name}} {
		if err := CheckText(t.field, t.text, 256); err != nil {
			return err
		}
	}
	if r.Height < 1 || r.Height > 100 {
		return Errorf(Invalid, "rack %s: a height of %d units is not between 1 and 100", r.Name, r.Height).At("height")
	}
	if r.Numbering != FromBottom && r.Numbering != FromTop {
		return Errorf(Invalid, "rack %s: %q is not a numbering", r.Name, Clean(string(r.Numbering), 40)).At("numbering").WithHint("use bottom or top: where unit 1 is")
	}
	if err := CheckText("notes", r.Notes, 4096); err != nil {
		return err
	}
	if len(r.Cables) > 1000 {
		return Errorf(Invalid, "rack %s has %d cables; at most 1000 are allowed", r.Name, len(r.Cables)).At("cables")
	}
	for i, c := range r.Cables {
		if c.Unit < 1 || c.Unit > r.Height {
			return Errorf(Invalid, "rack %s, cable %d: unit %d is not in the rack", r.Name, i+1, c.Unit).At("cables").WithHint("it has units 1 to %d", r.Height)
		}
		if c.Switch == "" || c.To == "" {
			return Errorf(Invalid, "rack %s, cable %d: switch and port are missing", r.Name, i+1).At("cables").WithHint("say switch and to, as LLDP names them")
		}
		if err := CheckText("cables", c.Port+c.Switch+c.To, 512); err != nil {
			return err
		}
	}
	return nil
}
