package inventory

import (
	"strings"
	"time"
)

// Records reads and writes the records of a plain noun, which one text names. Create is a Conflict when the name is taken.
// Update stores what is wanted; the record's Version must be the stored one. List returns records in order of their names.
type Records[R any] interface {
	Find(name string) (R, error)
	List(p Page) ([]R, error)
	Create(r *R, now time.Time) error
	Update(r *R, now time.Time) error
	Delete(name string) error
}

// RecordTx gives the records of plain nouns.
type RecordTx interface {
	AcceptRules() Records[AcceptRule]
	Classes() Records[Class]
	// Clusters refuse a secret that is not stored as Invalid. Update leaves alone what NoteCluster stores.
	Clusters() Records[Cluster]
	Goldens() Records[Golden]
	// Images refuse an artefact that is not stored as Invalid. They do not delete one that a profile or a machine uses: that is a
	// Conflict.
	Images() Records[Image]
	// JoinTargets refuse a secret that is not stored as Invalid.
	JoinTargets() Records[JoinTarget]
	// Layers are named by Layer.Key. Create and Update add a Revision when the text differs from the newest one, and fill in its
	// number. Numbers go on where a deleted layer of the same name ended.
	Layers() Records[Layer]
	// Pools do not delete one that a machine names: that is a Conflict.
	Pools() Records[Pool]
	// Profiles refuse an image that is not stored as Invalid, and keep revisions as Layers do. They do not delete one that a host
	// pins: that is a Conflict.
	Profiles() Records[Profile]
	// Racks are those that somebody has said something about, named by Rack.ID and listed by site, row and name.
	Racks() Records[Rack]
	// Secrets do not delete one that a join target or a cluster names: that is a Conflict. List leaves out Sealed.
	Secrets() Records[Secret]
	// Subnets refuse a network that overlaps another, with a Conflict that names it. Update refuses what does not leave machines
	// their addresses. Delete takes ranges, reservations and leases along. It is a Conflict while an address is kept for a machine.
	Subnets() Records[Subnet]
	// Users leave LoginAt and SealedFactors as they are in an Update. The tokens and logins of a deleted user go along, so that
	// nobody inherits them with the name.
	Users() Records[User]
}

// AcceptRule accepts discovered hosts by itself when its selector matches what they say of themselves.
type AcceptRule struct {
	Name      string    `json:"name"`
	Selector  string    `json:"selector"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	Version   int64     `json:"version"`
}

// Validate checks a rule by itself. A rule without a selector would accept nothing and is refused.
func (r *AcceptRule) Validate() error {
	if err := checkField("name", "acceptrule", r.Name); err != nil {
		return err
	}
	sel, err := ParseSelector(r.Selector)
	if err != nil {
		return err
	}
	if len(sel) == 0 {
		return Errorf(Invalid, "accept rule %s has no selector", r.Name).WithHint("to accept every host whose MAC is known, use: mac")
	}
	return nil
}

// Golden is the hardware that hosts of a kind must have. A missing part is an issue. If IsStrict, no machine can claim the
// host either.
type Golden struct {
	Name         string               `json:"name"`
	Selector     string               `json:"selector"` // of hosts
	Requirements HardwareRequirements `json:"requirements"`
	// Firmware maps "bios", "bmc", "disk:<model>" or "port:<driver>" to the version they must have.
	Firmware map[string]string `json:"firmware,omitempty"`
	// DiskN, PortN and DIMMN are exact counts; 0 asks for none in particular.
	DiskN     int       `json:"diskN,omitempty"`
	PortN     int       `json:"portN,omitempty"`
	DIMMN     int       `json:"dimmN,omitempty"`
	IsStrict  bool      `json:"isStrict"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	Version   int64     `json:"version"`
}

// Validate checks golden hardware by itself.
func (g *Golden) Validate() error {
	if err := checkField("name", "golden", g.Name); err != nil {
		return err
	}
	sel, err := ParseSelector(g.Selector)
	if err != nil {
		return err
	}
	if len(sel) == 0 {
		return Errorf(Invalid, "golden hardware %s has no selector", g.Name).WithHint("for every host, use: mac")
	}
	if len(g.Firmware) > 64 || g.DiskN < 0 || g.PortN < 0 || g.DIMMN < 0 {
		return Errorf(Invalid, "golden hardware %s: at most 64 versions of firmware are allowed, and no count is negative", g.Name)
	}
	for k, v := range g.Firmware {
		if kind, of, _ := strings.Cut(k, ":"); k != "bios" && k != "bmc" && (kind != "disk" && kind != "port" || of == "") {
			return Errorf(Invalid, "golden hardware %s: nothing is known of the firmware of %q", g.Name, Clean(k, 80)).
				WithHint("use bios, bmc, disk:MODEL or port:DRIVER")
		}
		if err := CheckText("golden hardware "+g.Name+": firmware", k+v, 512); err != nil {
			return err
		}
	}
	return g.Requirements.Validate()
}
